/**
 * config.json of a GGUF file's keys, with the fields that transformers has, so that one reader
 * (model/config/config.h) decides for both. A key of the architecture that is not known is refused
 * by its name: it could change what the model computes.
 */
#ifndef QKVI_GGUF_CONFIG_H
#define QKVI_GGUF_CONFIG_H

#include <jansson.h>

#include "files/gguf_keys.h"
#include "gguf/families.h"

enum { QKVI_GGUF_MAX_LAYERS = 1024 }; /* QKV_MAX_LAYERS */

/** Values of the key pooling_type. */
typedef enum qkvi_gguf_pooling {
    QKVI_GGUF_POOLING_NONE, /* or the file says nothing */
    QKVI_GGUF_POOLING_MEAN,
    QKVI_GGUF_POOLING_FIRST,
    QKVI_GGUF_POOLING_LAST
} qkvi_gguf_pooling;

typedef struct qkvi_gguf_config {
    const qkvi_gguf_family *family;
    qkvi_gguf_sizes sizes;
    qkvi_gguf_pooling pooling;
    bool may_slide; /* sizes of a Mistral whose window the format cannot say */
    json_t *json;   /* config.json */
} qkvi_gguf_config;

/** FORMAT, SHAPE, UNSUPPORTED, MEMORY; config may be freed also then. */
qkv_status qkvi_gguf_config_make(const qkvi_gguf_keys *keys, const qkvi_gguf_parts *parts,
                                 qkvi_gguf_config *config);
void qkvi_gguf_config_free(qkvi_gguf_config *config);

#endif
