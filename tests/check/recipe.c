/*
 * Random recipes: shapes are small more often than large, every feature is in a part of the cases.
 */
#include "check/recipe.h"

static const struct {
    const char *name;
    int percent; /* of random cases */
    bool exists;
} features[FEATURES] = {
    [FEATURE_CAUSAL] = { "causal", 30, true },
    [FEATURE_WINDOW] = { "window", 20, true },
    [FEATURE_KV_LEN] = { "kv_len", 25, true },
    [FEATURE_MASK_BOOL] = { "bool mask", 12, true },
    [FEATURE_MASK_BITS] = { "bit mask", 12, true },
    [FEATURE_MASK_ADDED] = { "added mask", 15, true },
    [FEATURE_BLOCK_MASK] = { "block mask", 15, true },
    [FEATURE_SEGMENTS] = { "segments", 15, true },
    [FEATURE_ALIBI] = { "ALiBi", 15, true },
    [FEATURE_SINKS] = { "sinks", 15, true },
    [FEATURE_SOFTCAP] = { "soft cap", 20, true },
    [FEATURE_DROPOUT] = { "dropout", 15, true },
    [FEATURE_VARLEN] = { "varlen", 15, true },
    [FEATURE_GQA] = { "GQA", 45, true },
    [FEATURE_DV] = { "Dv != D", 30, true },
    [FEATURE_DISTANCE] = { "distances", 15, true },
    [FEATURE_SCALE] = { "scale", 25, true },
    [FEATURE_OFFSET] = { "offset", 40, true },
    [FEATURE_Q_LEN] = { "q_len", 20, true },
    [FEATURE_PREFIX] = { "prefix", 8, true },
    [FEATURE_CHUNK] = { "chunk", 15, true },
};

const kind_of_type check_types[TYPES] = { { "f32", ELEMENT_F32, QKV_CLASS_F32 },
                                          { "bf16", ELEMENT_BF16, QKV_CLASS_F32 },
                                          { "f16", ELEMENT_F16, QKV_CLASS_F32 },
                                          { "bf16 dp", ELEMENT_BF16, QKV_CLASS_DP },
                                          { "bf16 amx", ELEMENT_BF16, QKV_CLASS_AMX } };

static const bool types_exist[TYPES] = { true, true, true, true, true };
const bool added_masks_of_16_bits = true;

const char *feature_name(feature f) { return features[f].name; }
bool feature_exists(feature f) { return features[f].exists; }
bool type_exists(int type) { return types_exist[type]; }

static int64_t random_length(rng *r) {
    const int64_t kind = rng_between(r, 0, 99);
    if (kind < 4) return 0;
    if (kind < 12) return 1;
    if (kind < 55) return rng_between(r, 2, 40);
    if (kind < 82) return rng_between(r, 41, 130);
    return rng_between(r, 131, 300);
}

static int64_t random_dim(rng *r) {
    static const int64_t common[] = { 16, 32, 64, 63, 65, 80, 96, 128, 130 };
    if (rng_chance(r, 3)) return 0;
    if (rng_chance(r, 45)) return rng_between(r, 1, 24);
    return common[rng_between(r, 0, 8)];
}

static void random_shape(rng *r, recipe *x) {
    static const int64_t groups[][2] = { { 2, 1 }, { 4, 2 }, { 3, 1 }, { 6, 2 } };
    static const int64_t alone[] = { 1, 1, 2, 3, 4 };
    x->n_batch = rng_between(r, 1, 3);
    x->n_heads = x->n_kv_heads = alone[rng_between(r, 0, 4)];
    if (recipe_has(x, FEATURE_GQA)) {
        const int64_t *const group = groups[rng_between(r, 0, 3)];
        x->n_heads = group[0];
        x->n_kv_heads = group[1];
    }
    x->len_q = random_length(r);
    x->len_k = random_length(r);
    x->head_dim = random_dim(r);
    x->head_dim_v = recipe_has(x, FEATURE_DV) ? random_dim(r) : x->head_dim;
    if (x->n_batch * x->n_heads * x->len_q * x->len_k * (x->head_dim + x->head_dim_v) > 4000000) {
        x->n_batch = 1;
        x->n_heads = x->n_heads == x->n_kv_heads ? 1 : 2;
        x->n_kv_heads = 1;
    }
}

recipe recipe_random(rng *r) {
    recipe x = { .features = 0 };
    for (int f = 0; f < FEATURES; f++)
        if (rng_chance(r, features[f].percent) && features[f].exists) x.features |= 1u << f;
    for (int f = FEATURE_MASK_BOOL + 1; f <= FEATURE_MASK_ADDED; f++) /* one mask a call */
        if (x.features >> FEATURE_MASK_BOOL & ((1u << (f - FEATURE_MASK_BOOL)) - 1))
            x.features &= ~(1u << f);
    if (!recipe_has(&x, FEATURE_CAUSAL)) x.features &= ~(1u << FEATURE_PREFIX);
    x.type = rng_chance(r, 50) ? 0 : (int)rng_between(r, 0, TYPES - 1);
    if (!types_exist[x.type]) x.type = 0;
    x.o_f32 = rng_chance(r, 25) && check_types[x.type].type != ELEMENT_F32;
    random_shape(r, &x);
    return x;
}
