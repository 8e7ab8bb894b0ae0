/* See pairs.h. */
#include "check/pairs.h"

#include "check/check.h"

pair pair_of(int index) {
    int a = 0;
    for (; index >= FEATURE_PAIRED - a; a++) index -= FEATURE_PAIRED - a;
    return (pair){ (feature)a, (feature)(a + index) };
}

static bool is_mask(feature f) {
    return f == FEATURE_MASK_BOOL || f == FEATURE_MASK_BITS || f == FEATURE_MASK_ADDED;
}

const char *pair_refusal(pair p) {
    if (p.a != p.b && is_mask(p.a) && is_mask(p.b))
        return "a call has one explicit mask: an added one can hold both";
    return NULL;
}

const pair_column check_columns[COLUMNS] = {
    { "f32", 0, false, ELEMENT_F32, true },       { "bf16", 1, false, ELEMENT_BF16, true },
    { "f16", 2, false, ELEMENT_F16, true },       { "bf16 dp", 3, false, ELEMENT_BF16, true },
    { "bf16 amx", 4, false, ELEMENT_BF16, true }, { "f32", 0, true, ELEMENT_F32, true },
    { "from bf16", 0, true, ELEMENT_BF16, true }, { "from f16", 0, true, ELEMENT_F16, true },
    { "from i8", 0, true, ELEMENT_I8, true },     { "bf16", 1, true, ELEMENT_BF16, true },
    { "f16", 2, true, ELEMENT_F16, true },
};

static bool decode_has(feature f) { return f != FEATURE_DROPOUT && f != FEATURE_VARLEN; }

bool pair_exists(pair p, int column) {
    const bool decode = check_columns[column].decode;
    return check_columns[column].exists && feature_exists(p.a) && feature_exists(p.b) &&
           !pair_refusal(p) && (!decode || (decode_has(p.a) && decode_has(p.b)));
}

/* ---- One case -------------------------------------------------------------------------------- */

static void choose_size(pair p, bool decode, int size, recipe *x) {
    /* around 1, a tile of 12 rows, a word of 32 keys, a block of 128 queries, of 256 keys */
    static const int64_t forward[PAIR_SIZES][4] = {
        { 1, 257, 16, 24 }, { 12, 33, 8, 3 },   { 13, 31, 33, 16 },  { 33, 32, 24, 64 },
        { 31, 255, 5, 8 },  { 97, 96, 16, 31 }, { 128, 33, 64, 32 }, { 129, 65, 12, 40 },
        { 3, 513, 20, 7 },  { 255, 40, 9, 17 }, { 64, 256, 8, 12 },  { 257, 257, 4, 6 },
    };
    /* few queries; around 1, 16 and 32 keys, a block of 512, a split of 1024 */
    static const int64_t stored[PAIR_SIZES][4] = {
        { 1, 1, 16, 24 },   { 1, 31, 64, 32 },    { 2, 32, 8, 3 },    { 4, 33, 33, 16 },
        { 1, 255, 80, 64 }, { 1, 511, 16, 128 },  { 3, 512, 5, 8 },   { 7, 513, 24, 65 },
        { 1, 1023, 20, 7 }, { 1, 1025, 128, 96 }, { 16, 257, 9, 17 }, { 1, 2100, 32, 16 },
    };
    const int64_t *const s = (decode ? stored : forward)[size % PAIR_SIZES];
    x->len_q = s[0];
    x->len_k = s[1];
    x->head_dim = s[2];
    x->head_dim_v = p.a == FEATURE_DV || p.b == FEATURE_DV ? s[3] : s[2];
}

recipe pair_recipe(pair p, int column, int size, rng *r) {
    const int type = check_columns[column].type;
    recipe x = { .features = 1u << p.a | 1u << p.b, .type = type };
    if (rng_chance(r, 30)) x.features |= 1u << FEATURE_OFFSET;
    x.o_f32 = check_types[type].type != ELEMENT_F32 && rng_chance(r, 30);
    x.n_batch = recipe_has(&x, FEATURE_VARLEN) ? 3 : recipe_has(&x, FEATURE_KV_LEN) ? 2 : 1;
    x.n_heads = recipe_has(&x, FEATURE_GQA) ? 4 : rng_between(r, 1, 2);
    x.n_kv_heads = recipe_has(&x, FEATURE_GQA) ? 2 : x.n_heads;
    choose_size(p, check_columns[column].decode, size, &x);
    return x;
}

enum { RUN_SHIFT = 20 };
_Static_assert(PAIRS *TYPES *PAIR_SIZES < 1 << RUN_SHIFT, "a case of a run has its own seed");

uint64_t pair_seed(uint64_t run, int n) { return run << RUN_SHIFT | (uint64_t)n; }
uint64_t pair_run(uint64_t seed) { return seed >> RUN_SHIFT; }

void check_pair(const check_options *options, uint64_t seed, check_report *report) {
    const int n = (int)(seed % (1u << RUN_SHIFT)), index = n % PAIRS, at = n / PAIRS % COLUMNS;
    const int size = n / PAIRS / COLUMNS + 5 * index + 3 * at + (int)(pair_run(seed) % 7);
    rng r = { seed };
    const recipe x = pair_recipe(pair_of(index), at, size, &r);
    if (check_columns[at].decode)
        check_decode_of(options, &x, check_columns[at].stored, seed, report);
    else
        check_whole_of(options, &x, seed, report);
}
