/*
 * Invalid requests of statistics: each is refused with its status and message, and nothing is
 * written. Also: the workspace is that of the formula in docs/numerics.md, and statistics that are
 * not requested need none.
 */
#include "attn/attention_world.h"

enum { TOP = 3, CLASSES = 2, BINS = 2 };

static float rows[B * H * LQ], lists[B * H * LQ * TOP];
static int64_t keys[B * H * LQ * TOP], counts[B * H];
static const uint8_t classes[B * LK];
static const int32_t tokens[B * LK];
static const float weights[B * H * LK];
static const int64_t offsets[BINS + 1] = { -1, 0, 1 };
static qkv_attention_stats stats;

static world *fresh_stats(void) {
    world *w = fresh();
    qkv_attention_stats_contiguous(&stats, &w->d);
    w->d.flags = QKV_SET_STATS;
    w->d.stats = &stats;
    return w;
}

#define REFUSE_STATS(calls, change, status, text)                                                  \
    do {                                                                                           \
        world *w = fresh_stats();                                                                  \
        change;                                                                                    \
        refuse(w, calls, status, text);                                                            \
    } while (0)

enum {
    BOTH = FORWARD | DECODE,
    BOTH_BYTES = FORWARD_BYTES | DECODE_BYTES,
    STATS = BOTH | BOTH_BYTES
};

static void the_struct(void **state) {
    (void)state;
    accept(fresh_stats(), STATS | MERGE);
    REFUSE_STATS(EVERY | DECODE | DECODE_BYTES, w->d.stats = NULL, QKV_ERR_ARGUMENT,
                 "stats is NULL, but QKV_SET_STATS is set");
    REFUSE_STATS(STATS, stats.struct_size = 0, QKV_ERR_ARGUMENT,
                 "stats.struct_size = 0 is less than 12; fill the struct by its _init()");
    REFUSE_STATS(BACKWARD | BACKWARD_BYTES, (void)w, QKV_ERR_UNSUPPORTED,
                 "QKV_SET_STATS: backward has no statistics; forward and decode have");
}

static void numbers(void **state) {
    (void)state;
    REFUSE_STATS(STATS, stats.top_k = -1, QKV_ERR_ARGUMENT, "stats.top_k = -1 is not in [0, 64]");
    REFUSE_STATS(STATS, stats.top_k = 65, QKV_ERR_ARGUMENT, "stats.top_k = 65 is not in [0, 64]");
    REFUSE_STATS(STATS, stats.n_classes = INT64_MAX, QKV_ERR_ARGUMENT,
                 "stats.n_classes = 9223372036854775807 is not in [0, 64]");
    REFUSE_STATS(STATS, stats.n_offsets = INT64_MIN, QKV_ERR_ARGUMENT,
                 "stats.n_offsets = -9223372036854775808 is not in [0, 64]");
    REFUSE_STATS(STATS, stats.top_keys = keys, QKV_ERR_ARGUMENT,
                 "stats.top_keys is set without stats.top_k");
    REFUSE_STATS(STATS, stats.top_weights = lists, QKV_ERR_ARGUMENT,
                 "stats.top_weights is set without stats.top_k");
    REFUSE_STATS(STATS, stats.class_mass = lists, QKV_ERR_ARGUMENT,
                 "stats.class_mass is set without stats.n_classes");
    REFUSE_STATS(STATS, stats.offset_mass = lists, QKV_ERR_ARGUMENT,
                 "stats.offset_mass is set without stats.n_offsets");
    REFUSE_STATS(STATS, (stats.offset_mass = lists, stats.n_offsets = 1), QKV_ERR_ARGUMENT,
                 "stats.offset_mass is set without stats.offsets");
    REFUSE_STATS(STATS, stats.weighted_mass = rows, QKV_ERR_ARGUMENT,
                 "stats.weighted_mass is set without stats.key_weights");
    REFUSE_STATS(STATS, (stats.same_token = rows, stats.tokens_k = tokens), QKV_ERR_ARGUMENT,
                 "stats.same_token is set without stats.tokens_q");
    REFUSE_STATS(STATS, (stats.induction = rows, stats.tokens_q = tokens), QKV_ERR_ARGUMENT,
                 "stats.induction is set without stats.tokens_k");
    REFUSE_STATS(BOTH_BYTES,
                 (w->d.n_heads = w->d.n_kv_heads = w->d.n_batch = 1, w->d.len_k = INT64_C(1) << 31,
                  stats.top_k = TOP, stats.top_keys = keys),
                 QKV_ERR_LIMIT,
                 "stats.top_k = 3 needs len_k = 2147483648 to be at most 2147483647");
}

static void refuse_offsets(const int64_t *of, const char *text) {
    REFUSE_STATS(STATS, (stats.offset_mass = lists, stats.n_offsets = BINS, stats.offsets = of),
                 QKV_ERR_ARGUMENT, text);
}

static void bounds_of_bins(void **state) {
    (void)state;
    refuse_offsets((const int64_t[]){ 0, 2, 1 },
                   "stats.offsets[2] = 1 is not in [2, 281474976710656]");
    refuse_offsets((const int64_t[]){ INT64_MIN, 0, 0 },
                   "stats.offsets[0] = -9223372036854775808 is not in [-281474976710656, "
                   "281474976710656]");
    refuse_offsets((const int64_t[]){ 0, 0, INT64_MAX },
                   "stats.offsets[2] = 9223372036854775807 is not in [0, 281474976710656]");
    refuse_offsets((const int64_t *)((uintptr_t)offsets + 4),
                   "stats.offsets is not aligned to its element, 8 bytes");
}

static void addresses(void **state) {
    (void)state;
    REFUSE_STATS(BOTH, stats.entropy = (float *)((uintptr_t)rows + 2), QKV_ERR_ARGUMENT,
                 "stats.entropy is not aligned to its element, 4 bytes");
    REFUSE_STATS(BOTH, stats.entropy = w->out.o, QKV_ERR_ARGUMENT,
                 "o, an output, overlaps stats.entropy");
    REFUSE_STATS(BOTH, stats.largest = stats.entropy = rows, QKV_ERR_ARGUMENT,
                 "stats.largest, an output, overlaps stats.entropy");
    REFUSE_STATS(BOTH, stats.n_empty_rows = stats.n_nan_rows = counts, QKV_ERR_ARGUMENT,
                 "stats.n_empty_rows, an output, overlaps stats.n_nan_rows");
    REFUSE_STATS(BOTH, (stats.n_classes = CLASSES, stats.class_mass = lists), QKV_ERR_ARGUMENT,
                 "stats.classes is NULL, but has the shape [2][1][1][5]");
    REFUSE_STATS(BOTH,
                 (stats.duplicate = rows, stats.tokens_q = tokens,
                  stats.tokens_k = (const int32_t *)((uintptr_t)tokens + 1)),
                 QKV_ERR_ARGUMENT, "stats.tokens_k is not aligned to its element, 4 bytes");
    REFUSE_STATS(
        STATS,
        (stats.weighted_mass = rows, stats.key_weights = weights, stats.key_weights_stride[1] = -1),
        QKV_ERR_STRIDE, "stats.key_weights_stride[1] = -1 is negative");
    REFUSE_STATS(STATS, (stats.entropy = rows, stats.stride[2] = 0), QKV_ERR_STRIDE,
                 "stats.stride[2] = 0 is less than 1, the elements that it steps over: rows "
                 "would overlap");
    REFUSE_STATS(STATS, (stats.entropy = rows, stats.stride[0] = -1), QKV_ERR_STRIDE,
                 "stats.stride[0] = -1 is negative");
    REFUSE_STATS(STATS,
                 (stats.top_k = TOP, stats.top_weights = lists, stats.stride[0] = INT64_MAX / 2),
                 QKV_ERR_STRIDE,
                 "stats.stride[0] = 9223372036854775807 times 1 overflows the address "
                 "space");
}

/* ---- Merging --------------------------------------------------------------------------------- */

static float other_rows[B * H * LQ], lse[B * H * LQ];
static qkv_attention_stats part;
static const qkv_attention_stats *parts[2];
static const float *lse_parts[2];

static world *fresh_parts(void) {
    world *w = fresh_stats();
    w->d.flags = 0;
    qkv_attention_stats_contiguous(&part, &w->d);
    part.entropy = other_rows;
    stats.entropy = rows;
    parts[0] = parts[1] = &part;
    lse_parts[0] = lse_parts[1] = lse;
    return w;
}

static void refuse_parts(const world *w, int n_parts, const qkv_attention_stats *const *of,
                         qkv_status status, const char *text) {
    qkv_ctx *ctx = NULL;
    float before[B * H * LQ];
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    memcpy(before, rows, sizeof rows);
    assert_int_equal(qkv_attention_stats_merge(ctx, &w->d, n_parts, of, lse_parts, NULL, &stats),
                     status);
    assert_string_equal(qkv_ctx_message(ctx), text);
    assert_memory_equal(rows, before, sizeof rows);
    qkv_ctx_free(ctx);
}

static void parts_that_do_not_fit(void **state) {
    (void)state;
    world *w = fresh_parts();
    refuse_parts(w, 0, parts, QKV_ERR_ARGUMENT, "n_parts = 0 is less than 1");
    refuse_parts(w, 2, NULL, QKV_ERR_ARGUMENT, "parts is NULL");
    parts[1] = NULL;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT, "parts[1] is NULL");
    w = fresh_parts();
    part.struct_size = 8;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT,
                 "parts[0].struct_size = 8 is less than 12; fill the struct by its _init()");
    w = fresh_parts();
    part.entropy = NULL;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT, "parts[0].entropy is NULL, but it is needed");
    w = fresh_parts();
    stats.logit_mean = part.logit_mean = lists;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT, "parts[0].n_seen is NULL, but it is needed");
    w = fresh_parts();
    stats.top_k = 3, part.top_k = 2;
    stats.top_keys = part.top_keys = keys;
    part.top_scores = lists;
    refuse_parts(w, 2, parts, QKV_ERR_SHAPE, "parts[0].top_k = 2, that of the result is 3");
    w = fresh_parts();
    part.entropy = rows;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT, "stats.entropy, an output, overlaps stats.entropy");
    w = fresh_parts();
    lse_parts[1] = rows;
    refuse_parts(w, 2, parts, QKV_ERR_ARGUMENT, "stats.entropy, an output, overlaps lse_parts[1]");
    w = fresh_parts();
    part.stride[2] = -1;
    refuse_parts(w, 2, parts, QKV_ERR_STRIDE, "stats.stride[2] = -1 is negative");
    w = fresh_parts();
    w->d.flags = QKV_SET_SINKS;
    w->d.sinks = lists;
    refuse_parts(
        w, 2, parts, QKV_ERR_UNSUPPORTED,
        "QKV_SET_SINKS: a sink is in the lse of one part only, so shares of keys cannot be "
        "told from it");
}

/* ---- Workspace ------------------------------------------------------------------------------- */

static qkv_ctx *one_thread(void) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx = NULL;
    options.n_threads = 1;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}

/* n keys in lists, 64 - n classes, n / 2 bins, of one head and one query, or of so many. */
static world *ask_for(int n) {
    static const int64_t none[65];
    world *w = fresh_stats();
    stats.top_k = n, stats.n_classes = 64 - n, stats.n_offsets = n / 2;
    if (n) stats.top_keys = keys;
    if (n < 64) stats.classes = classes, stats.class_mass = lists;
    if (n > 1) stats.offsets = none, stats.offset_mass = lists;
    return w;
}

static int round_up(int n, int to) { return (n + to - 1) / to * to; }

/* docs/numerics.md, Statistics: of one thread. */
static void workspace_is_the_formula(void **state) {
    (void)state;
    qkv_ctx *ctx = one_thread();
    for (int n = 0; n <= 64; n++) {
        size_t plain = 0, with = 0;
        world *w = ask_for(n);
        w->d.n_batch = w->d.n_heads = w->d.n_kv_heads = w->d.len_q = 1;
        assert_int_equal(qkv_attention_workspace(ctx, &w->d, &with), QKV_OK);
        w->d.flags = 0;
        assert_int_equal(qkv_attention_workspace(ctx, &w->d, &plain), QKV_OK);
        const int k = round_up(n, 8), c = 64 - n, b = n / 2;
        assert_int_equal(with - plain, 64 + 48768 + 4 * c * (96 + 256) + 768 * k + 384 * b);
    }
    qkv_ctx_free(ctx);
}

/* docs/numerics.md, Decode: of one thread. */
static void workspace_of_decode_is_the_formula(void **state) {
    (void)state;
    qkv_ctx *ctx = one_thread();
    for (int n = 0; n <= 64; n++) {
        size_t plain = 0, with = 0;
        world *w = ask_for(n);
        assert_int_equal(qkv_attention_decode_workspace(ctx, &w->d, &with), QKV_OK);
        w->d.flags = 0;
        assert_int_equal(qkv_attention_decode_workspace(ctx, &w->d, &plain), QKV_OK);
        const int k = round_up(n, 8), c = 64 - n, b = n / 2;
        const int shared = 64 + 48768 + 4 * c * (96 + 256) + 768 * k + 384 * b;
        const int row = round_up(64 + 8 * k + 4 * (64 - n) + 4 * b, 64);
        assert_int_equal(with - plain,
                         shared + 121600 + 320 + round_up(32 * 272, 64) + 2 * 32 * row);
    }
    qkv_ctx_free(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_struct),
        cmocka_unit_test(numbers),
        cmocka_unit_test(bounds_of_bins),
        cmocka_unit_test(addresses),
        cmocka_unit_test(parts_that_do_not_fit),
        cmocka_unit_test(workspace_is_the_formula),
        cmocka_unit_test(workspace_of_decode_is_the_formula),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
