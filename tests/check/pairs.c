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

bool pair_exists(pair p) { return feature_exists(p.a) && feature_exists(p.b); }

recipe pair_recipe(pair p, int type, int size, rng *r) {
    /* around 1, a tile of 12 rows, a word of 32 keys, a block of 128 queries, of 256 keys */
    static const int64_t sizes[PAIR_SIZES][4] = {
        { 1, 257, 16, 24 }, { 12, 33, 8, 3 },   { 13, 31, 33, 16 },  { 33, 32, 24, 64 },
        { 31, 255, 5, 8 },  { 97, 96, 16, 31 }, { 128, 33, 64, 32 }, { 129, 65, 12, 40 },
        { 3, 513, 20, 7 },  { 255, 40, 9, 17 }, { 64, 256, 8, 12 },  { 257, 257, 4, 6 },
    };
    const int64_t *const s = sizes[size % PAIR_SIZES];
    recipe x = { .features = 1u << p.a | 1u << p.b, .type = type };
    if (rng_chance(r, 30)) x.features |= 1u << FEATURE_OFFSET;
    x.o_f32 = check_types[type].type != ELEMENT_F32 && rng_chance(r, 30);
    x.n_batch = recipe_has(&x, FEATURE_VARLEN) ? 3 : recipe_has(&x, FEATURE_KV_LEN) ? 2 : 1;
    x.n_heads = recipe_has(&x, FEATURE_GQA) ? 4 : rng_between(r, 1, 2);
    x.n_kv_heads = recipe_has(&x, FEATURE_GQA) ? 2 : x.n_heads;
    x.len_q = s[0];
    x.len_k = s[1];
    x.head_dim = s[2];
    x.head_dim_v = recipe_has(&x, FEATURE_DV) ? s[3] : s[2];
    return x;
}

enum { RUN_SHIFT = 20 };
_Static_assert(PAIRS *TYPES *PAIR_SIZES < 1 << RUN_SHIFT, "a case of a run has its own seed");

uint64_t pair_seed(uint64_t run, int n) { return run << RUN_SHIFT | (uint64_t)n; }
uint64_t pair_run(uint64_t seed) { return seed >> RUN_SHIFT; }

void check_pair(const check_options *options, uint64_t seed, check_report *report) {
    const int n = (int)(seed % (1u << RUN_SHIFT));
    const int index = n % PAIRS, type = n / PAIRS % TYPES;
    const int size = n / PAIRS / TYPES + 5 * index + 3 * type + (int)(pair_run(seed) % 7);
    rng r = { seed };
    const recipe x = pair_recipe(pair_of(index), type, size, &r);
    check_case c;
    case_make_of(&c, &x, seed);
    if (options->one) printf("%s\n", c.text);
    check_case_everywhere(options, &c, seed, report);
    check_tell_case(report, &c);
    case_free(&c);
}
