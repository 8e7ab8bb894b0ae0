/*
 * The recipe of a case: features, types, shapes. A random recipe has random features; those of
 * pairs have two.
 */
#ifndef QKV_TESTS_RECIPE_H
#define QKV_TESTS_RECIPE_H

#include "check/chance.h"
#include "check/elements.h"

typedef enum feature {
    FEATURE_CAUSAL,
    FEATURE_WINDOW,
    FEATURE_KV_LEN,
    FEATURE_MASK_BOOL,
    FEATURE_MASK_BITS,
    FEATURE_MASK_ADDED,
    FEATURE_BLOCK_MASK,
    FEATURE_SEGMENTS,
    FEATURE_ALIBI,
    FEATURE_SINKS,
    FEATURE_SOFTCAP,
    FEATURE_DROPOUT,
    FEATURE_VARLEN,
    FEATURE_GQA,
    FEATURE_DV, /* head_dim_v differs from head_dim */
    FEATURE_DISTANCE,
    FEATURE_PAIRED, /* so many are paired with each other; and the others: */
    FEATURE_SCALE = FEATURE_PAIRED,
    FEATURE_OFFSET,
    FEATURE_Q_LEN,
    FEATURE_PREFIX,
    FEATURE_CHUNK,
    FEATURES
} feature;

const char *feature_name(feature f);
/* Does the library have it? */
bool feature_exists(feature f);

/* An input type, and the class of arithmetic that computes with it. */
typedef struct kind_of_type {
    const char *name;
    elem_type type;
    qkv_class arithmetic;
} kind_of_type;

enum { TYPES = 5 };
extern const kind_of_type check_types[TYPES]; /* f32, bf16, f16, bf16 in classes dp and amx */
bool type_exists(int type);
extern const bool added_masks_of_16_bits;

typedef struct recipe {
    uint32_t features; /* bit f: feature f */
    int type;          /* of check_types */
    bool o_f32;
    bool any_size; /* numbers of any magnitude: case_sizes.c */
    int64_t n_batch, n_heads, n_kv_heads, len_q, len_k, head_dim, head_dim_v;
} recipe;

static inline bool recipe_has(const recipe *x, feature f) { return x->features >> f & 1; }

recipe recipe_random(rng *r);

#endif
