/** Fields of config.json that only models of images have. */
#ifndef QKVI_CONFIG_IMAGES_H
#define QKVI_CONFIG_IMAGES_H

#include "model/arch/family.h"
#include "model/config/config.h"

/**
 * Whose row reads a file: `family`, or where images are asked for the row that reads those of a
 * model with two towers. A CLIP that is trained to tell classes of images has no other tower.
 */
const qkvi_model_family *qkvi_config_tower(const qkvi_json_reader *reader,
                                           const qkvi_model_family *family, bool images);

/**
 * The part of the file that has the sizes of a tower, or the file itself, to be given back with
 * json_decref: an object `part`, and over it, as old files have it, `part_dict`. FORMAT, MEMORY.
 */
qkv_status qkvi_config_part(const qkvi_json_reader *reader, const char *part, json_t **object);

/** Sizes of images and patches, rows before them, and the width of the feed-forward. */
qkv_status qkvi_config_images(const qkvi_json_reader *reader, const qkvi_model_family *family,
                              qkv_model_info *info);

/**
 * What both towers are projected to: root has it where the file has two, of SigLIP the part of its
 * texts.
 */
qkv_status qkvi_config_joint(const qkvi_json_reader *reader, const qkvi_model_family *family,
                             qkv_model_info *info);

#endif
