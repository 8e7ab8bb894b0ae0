/** Fields of config.json of models whose scores have a bias by distance: T5, mT5 and BLOOM. */
#ifndef QKVI_CONFIG_CONFIG_DISTANCE_H
#define QKVI_CONFIG_CONFIG_DISTANCE_H

#include "files/base.h"
#include "model/arch/family.h"
#include "model/config/config.h"

/** The activation, and whether it is gated. */
qkv_status qkvi_config_feed_forward(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                    qkv_model_info *info);

/**
 * The decoder has as many layers as the encoder unless the file says otherwise: as many as the
 * model's own name of them says, before the general name that goes before it.
 */
qkv_status qkvi_config_own_layers(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                  json_t *root);

/**
 * Heads, buckets of distances and the scale of logits of *info, whose other
 * sizes have been read. FORMAT, SHAPE, LIMIT; UNSUPPORTED.
 */
qkv_status qkvi_config_distances(const qkvi_json_reader *reader, const qkvi_model_family *family,
                                 qkv_model_info *info);

/** What BLOOM has in place of positions. UNSUPPORTED. */
qkv_status qkvi_config_alibi(const qkvi_json_reader *reader, qkv_model_info *info);

#endif
