/**
 * What GGUF files know of model families: the model_type of an architecture, and which parameter of
 * transformers a stored tensor is. A tensor that is no parameter is refused by its name: it could
 * change what the model computes.
 */
#ifndef QKVI_GGUF_FAMILIES_H
#define QKVI_GGUF_FAMILIES_H

#include "gguf/weights.h"

/** A part of a block, or of what is around the blocks: "attn_q", and its name in transformers. */
typedef struct qkvi_gguf_part {
    const char *stored, *parameter;
    bool may_lack; /* the weight is not in every file, or not in every layer */
} qkvi_gguf_part;

enum { QKVI_GGUF_PARTS = 18 };

typedef struct qkvi_gguf_family {
    const char *arch;       /* general.architecture */
    const char *model_type; /* of config.json */
    const char *layer;      /* "model.layers." */
    qkvi_gguf_part ends[QKVI_GGUF_PARTS], block[QKVI_GGUF_PARTS];
    bool permuted;    /* rows of queries and keys are in the order of rotated neighbours */
    bool adds_one;    /* to the weights of norms */
    bool turns;       /* transformers has the linear layers of blocks as [in][out] */
    bool keeps_fused; /* transformers has queries, keys and values in one tensor, too … */
    bool by_head;     /* … of each head in turn its query, its key and its value */
    int64_t swa;      /* one layer of so many has no window; 0: the family has no layer_types */
} qkvi_gguf_family;

/** has_types: token_types.weight is there. NULL: none is known by that name. */
const qkvi_gguf_family *qkvi_gguf_family_of(const char *arch, bool has_types);

/** "llama", "qwen2" …, for messages. */
extern const char qkvi_gguf_archs[];

/** What views need to know of a model's sizes. */
typedef struct qkvi_gguf_sizes {
    int64_t n_layers, n_heads, n_kv_heads, head_dim;
} qkvi_gguf_sizes;

/**
 * A view of each stored tensor, and three of one that fuses queries, keys and values where
 * transformers has them apart. UNSUPPORTED: a tensor is not known; FORMAT: a weight is missing;
 * SHAPE; MEMORY.
 */
qkv_status qkvi_gguf_views_of(const qkvi_gguf_family *family, const qkvi_gguf_sizes *sizes,
                              const qkvi_gguf_parts *parts, qkvi_gguf_views *views,
                              qkv_error *error);

#endif
