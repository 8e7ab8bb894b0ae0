/** Fields of config.json of models with rotary positions: config_rotary.c and config_rope.c. */
#ifndef QKVI_CONFIG_CONFIG_ROTARY_H
#define QKVI_CONFIG_CONFIG_ROTARY_H

#include "files/base.h"
#include "model/arch/family.h"
#include "model/config/config.h"

/**
 * Heads, windows, biases, caps and positions of *info, whose other sizes have been read. FORMAT,
 * SHAPE, LIMIT; UNSUPPORTED for what would be computed otherwise.
 */
qkv_status qkvi_config_rotary(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info);

/** Rotary positions alone. */
qkv_status qkvi_config_rope(const qkvi_json_reader *reader, const qkvi_model_family *family,
                            qkv_model_info *info);

#endif
