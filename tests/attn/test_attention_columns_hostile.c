/*
 * Invalid requests of a pass over columns, or of a rectangle of weights: each is refused with its
 * status and message, and nothing is written. Also: the workspace is that of the formula in
 * docs/numerics.md and is enough, and the cancel flag ends a call.
 */
#include <math.h>
#include <stdio.h>

#include <qkv/columns.h>

#include "attn/attention_world.h"

enum { TILES = 3, DIAGONALS = LQ + LK - 1, CELLS = LQ * LK };
enum { PASS = 1, BYTES = 2, WEIGHTS = 4, BOTH = PASS | BYTES, ALL = PASS | BYTES | WEIGHTS };

/* All that the calls write, one after the other, and what else a test may break. */
typedef struct arrays {
    float received[B * H * LK], largest[B * H * LK], diagonal[B * H * DIAGONALS];
    float mass[B * H * TILES * TILES], p[CELLS];
    int64_t n_queries[B * H * DIAGONALS], counts[B * H];
} arrays;

static _Alignas(64) arrays out;
static arrays before;
static float row_weights[B * H * LQ];
static qkv_attention_columns want;
static const qkv_attention_columns *given;
static struct rectangle {
    int64_t b, h, i0, i1, j0, j1, row;
    float *p;
} cut;

static world *fresh_columns(void) {
    world *w = fresh();
    memset(&out, UNTOUCHED, sizeof out);
    memset(row_weights, 0, sizeof row_weights);
    qkv_attention_columns_contiguous(&want, &w->d);
    want.received = out.received;
    given = &want;
    cut = (struct rectangle){ 1, 2, 1, LQ, 0, LK, LK, out.p };
    return w;
}

static qkv_status call_of(world *w, int which) {
    const qkv_attention_desc *const d = w->no_desc ? NULL : &w->d;
    if (which == PASS)
        return qkv_attention_columns_pass(world_ctx, d, w->q, w->k, w->saved_lse, given, &w->call);
    if (which == BYTES) return qkv_attention_columns_workspace(world_ctx, d, given, w->bytes);
    return qkv_attention_weights(world_ctx, d, w->q, w->k, w->saved_lse, cut.b, cut.h, cut.i0,
                                 cut.i1, cut.j0, cut.j1, cut.p, cut.row, &w->call);
}

static void refuse_columns(world *w, int calls, qkv_status status, const char *text) {
    static world was; /* too large for a stack */
    was = *w;
    before = out;
    for (int which = 1; which <= WEIGHTS; which *= 2) {
        if (!(calls & which)) continue;
        const qkv_status got = call_of(w, which);
        const char *const says = qkv_ctx_message(world_ctx);
        if (got != status || strcmp(says, text) != 0)
            fail_msg("call %d: %s \"%s\" instead of %s \"%s\"", which, qkv_status_name(got), says,
                     qkv_status_name(status), text);
        if (memcmp(&out, &before, sizeof out) != 0 || memcmp(w, &was, sizeof was) != 0)
            fail_msg("call %d: refused \"%s\", but wrote something", which, text);
    }
}

#define NO(calls, change, status, text)                                                            \
    do {                                                                                           \
        world *w = fresh_columns();                                                                \
        change;                                                                                    \
        refuse_columns(w, calls, status, text);                                                    \
    } while (0)

static void what_is_right(void **state) {
    (void)state;
    world *w = fresh_columns();
    for (int which = 1; which <= WEIGHTS; which *= 2) assert_int_equal(call_of(w, which), QKV_OK);
}

static void the_structs(void **state) {
    (void)state;
    NO(ALL, w->no_desc = true, QKV_ERR_ARGUMENT, "desc is NULL");
    NO(BOTH, given = NULL, QKV_ERR_ARGUMENT, "columns is NULL");
    NO(BYTES, w->bytes = NULL, QKV_ERR_ARGUMENT, "bytes is NULL");
    NO(BOTH, want.struct_size = 0, QKV_ERR_ARGUMENT,
       "columns.struct_size = 0 is less than 12; fill the struct by its _init()");
    NO(ALL, w->d.flags |= QKV_SET_STATS, QKV_ERR_ARGUMENT,
       "stats is NULL, but QKV_SET_STATS is set");
    qkv_attention_stats stats;
    NO(ALL,
       (qkv_attention_stats_contiguous(&stats, &w->d), w->d.stats = &stats,
        w->d.flags |= QKV_SET_STATS),
       QKV_ERR_UNSUPPORTED,
       "QKV_SET_STATS: the pass over columns has no statistics of rows; forward has");
    NO(PASS | WEIGHTS, w->call.struct_size = 1, QKV_ERR_ARGUMENT,
       "call.struct_size = 1 is less than 12; fill the struct by its _init()");
}

static void numbers(void **state) {
    (void)state;
    NO(BOTH, want.n_tiles_q = -1, QKV_ERR_ARGUMENT, "columns.n_tiles_q = -1 is not in [0, 1024]");
    NO(BOTH, want.n_tiles_k = INT64_MAX, QKV_ERR_ARGUMENT,
       "columns.n_tiles_k = 9223372036854775807 is not in [0, 1024]");
    NO(BOTH, want.n_diagonals = -1, QKV_ERR_ARGUMENT,
       "columns.n_diagonals = -1 is not in [0, 562949953421312]");
    NO(BOTH, want.first_diagonal = INT64_MIN, QKV_ERR_ARGUMENT,
       "columns.first_diagonal = -9223372036854775808 is not in [-1125899906842624, "
       "1125899906842624]");
    NO(BOTH, want.tile_mass = out.mass, QKV_ERR_ARGUMENT,
       "columns.tile_mass, tile_peak or tile_rows is set without columns.n_tiles_q");
    NO(BOTH, want.tile_rows = out.counts, QKV_ERR_ARGUMENT,
       "columns.tile_mass, tile_peak or tile_rows is set without columns.n_tiles_q");
    NO(BOTH, (want.tile_peak = out.mass, want.n_tiles_q = 1), QKV_ERR_ARGUMENT,
       "columns.tile_mass or tile_peak is set without columns.n_tiles_k");
    NO(BOTH, want.tiny = -1, QKV_ERR_ARGUMENT,
       "columns.tiny = -1 is not a finite number of 0 or more");
    NO(BOTH, want.tiny = NAN, QKV_ERR_ARGUMENT,
       "columns.tiny = nan is not a finite number of 0 or more");
    NO(PASS, (want.row_weights = row_weights, row_weights[(2 + H) * LQ + 1] = INFINITY),
       QKV_ERR_ARGUMENT, "columns.row_weights[1][2][1] = inf is not finite");
}

static const char *text_of(const char *format, const void *address) {
    static char text[128];
    snprintf(text, sizeof text, format, address);
    return text;
}

static void addresses(void **state) {
    (void)state;
    NO(PASS | WEIGHTS, w->q = NULL, QKV_ERR_ARGUMENT, "q is NULL, but has the shape [2][4][3][8]");
    NO(PASS | WEIGHTS, w->k = NULL, QKV_ERR_ARGUMENT, "k is NULL, but has the shape [2][2][5][8]");
    NO(PASS | WEIGHTS, w->saved_lse = NULL, QKV_ERR_ARGUMENT,
       "lse is NULL, but has the shape [2][4][3][1]");
    NO(PASS, want.received = (float *)((uintptr_t)out.received + 2), QKV_ERR_ARGUMENT,
       "columns.received is not aligned to its element, 4 bytes");
    NO(PASS, want.n_cells = (int64_t *)((uintptr_t)out.counts + 4), QKV_ERR_ARGUMENT,
       "columns.n_cells is not aligned to its element, 8 bytes");
    NO(PASS, want.largest = out.received, QKV_ERR_ARGUMENT,
       "columns.received, an output, overlaps columns.largest");
    NO(PASS, want.n_cells = want.n_tiny = out.counts, QKV_ERR_ARGUMENT,
       "columns.n_cells, an output, overlaps columns.n_tiny");
    NO(PASS, want.received = w->k_data, QKV_ERR_ARGUMENT,
       "columns.received, an output, overlaps k");
    NO(PASS, (want.row_weights = out.received), QKV_ERR_ARGUMENT,
       "columns.received, an output, overlaps columns.row_weights");
    NO(WEIGHTS, cut.p = w->q_data, QKV_ERR_ARGUMENT, "p, an output, overlaps q");
    NO(WEIGHTS, cut.p = NULL, QKV_ERR_ARGUMENT, "p is NULL, but has the shape [1][1][2][5]");
    NO(PASS | WEIGHTS, (w->call.workspace = out.mass + 1, w->call.workspace_bytes = 64),
       QKV_ERR_ARGUMENT, text_of("workspace = %p is not aligned to 64 bytes", w->call.workspace));
    NO(PASS, (w->call.workspace = out.received, w->call.workspace_bytes = 64), QKV_ERR_ARGUMENT,
       "workspace, scratch memory, overlaps columns.received");
}

static void strides(void **state) {
    (void)state;
    NO(BOTH, want.stride[2] = 0, QKV_ERR_STRIDE,
       "columns.stride[2] = 0 is less than 1, the elements that it steps over: rows would "
       "overlap");
    NO(BOTH, want.stride[1] = -1, QKV_ERR_STRIDE, "columns.stride[1] = -1 is negative");
    NO(BOTH, want.stride[0] = INT64_MAX, QKV_ERR_STRIDE,
       "columns.stride[0] = 9223372036854775807 times 1 overflows the address space");
    NO(BOTH, (want.row_weights = row_weights, want.row_weights_stride[1] = -LQ), QKV_ERR_STRIDE,
       "columns.row_weights_stride[1] = -3 is negative");
    NO(ALL, w->d.lse_stride[2] = -1, QKV_ERR_STRIDE, "lse_stride[2] = -1 is negative");
    NO(WEIGHTS, cut.row = LK - 1, QKV_ERR_STRIDE,
       "p_stride[2] = 4 is less than 5, the elements that it steps over: rows would overlap");
    NO(BOTH,
       (want.diagonal = out.diagonal, want.n_diagonals = INT64_C(1) << 48, w->d.n_batch = 1 << 14),
       QKV_ERR_STRIDE,
       "columns.diagonal_stride[0] = 1125899906842624 times 16383 overflows the address space");
}

static void rectangles(void **state) {
    (void)state;
    NO(WEIGHTS, cut.b = -1, QKV_ERR_ARGUMENT, "b = -1 is not in [0, 2)");
    NO(WEIGHTS, cut.h = H, QKV_ERR_ARGUMENT, "h = 4 is not in [0, 4)");
    NO(WEIGHTS, cut.i0 = -1, QKV_ERR_ARGUMENT, "i0 = -1 is not in [0, i1 = 3]");
    NO(WEIGHTS, cut.i0 = LQ + 1, QKV_ERR_ARGUMENT, "i0 = 4 is not in [0, i1 = 3]");
    NO(WEIGHTS, cut.i1 = LQ + 1, QKV_ERR_ARGUMENT, "i1 = 4 is greater than the 3 queries");
    NO(WEIGHTS, cut.j1 = INT64_MAX, QKV_ERR_ARGUMENT,
       "j1 = 9223372036854775807 is greater than the 5 keys");
    NO(WEIGHTS,
       (w->d.len_q = w->d.len_k = 8193, cut.i0 = cut.j0 = 0, cut.i1 = cut.j1 = cut.row = 8193),
       QKV_ERR_LIMIT,
       "(i1 - i0) (j1 - j0) = 67125249 weights are more than QKV_WEIGHTS_MAX_CELLS = 67108864; "
       "without a limit: qkv_attention_columns_pass (columns, diagonals, tiles), QKV_SET_STATS "
       "(rows)");
    world *w = fresh_columns(); /* nothing of it */
    cut.i0 = cut.i1 = 2, cut.p = NULL;
    assert_int_equal(call_of(w, WEIGHTS), QKV_OK);
}

/* Sizes beside a 0, whatever they are: nothing to do, or zeros to write. */
static void nothing_to_see(void **state) {
    (void)state;
    world *w = fresh_columns();
    w->d.len_q = 0;
    for (int n = 0; n < 3; n++) w->d.q_stride[n] = INT64_C(1) << 60;
    want.n_tiles_q = want.n_tiles_k = TILES;
    want.tile_mass = out.mass;
    want.n_nan_rows = out.counts;
    assert_int_equal(call_of(w, PASS), QKV_OK);
    for (int n = 0; n < B * H * LK; n++) assert_true(out.received[n] == 0);
    for (int n = 0; n < B * H * TILES * TILES; n++) assert_true(out.mass[n] == 0);
    for (int n = 0; n < B * H; n++) assert_int_equal(out.counts[n], 0);
    w = fresh_columns(); /* strides of nothing */
    want.received = NULL;
    want.n_cells = out.counts;
    for (int n = 0; n < 3; n++) want.stride[n] = want.row_weights_stride[n] = INT64_MAX;
    assert_int_equal(call_of(w, PASS), QKV_OK);
    w = fresh_columns(); /* sums that are not begun */
    w->d.len_q = 0;
    want.received = NULL;
    want.n_tiles_q = want.n_tiles_k = TILES;
    want.tile_peak = out.mass;
    want.diagonal = out.diagonal;
    want.n_diagonals = DIAGONALS;
    want.diagonal_rows = out.n_queries;
    assert_int_equal(call_of(w, PASS), QKV_OK);
    for (int n = 0; n < B * H * TILES * TILES; n++) assert_true(out.mass[n] == 0);
    for (int n = 0; n < B * H * DIAGONALS; n++)
        assert_true(out.diagonal[n] == 0 && out.n_queries[n] == 0);
    for (int n = 0; n < 3; n++) {
        w = fresh_columns();
        want.received = NULL;
        w->d.n_batch = w->d.len_k = INT64_C(1) << 30;
        w->d.len_q = n == 0 ? 0 : 8;
        w->d.n_heads = n == 1 ? 0 : 1;
        w->d.n_kv_heads = 1;
        if (n == 2) w->d.n_batch = 0;
        if (n == 0) w->d.n_batch = 1;
        for (int e = 0; e < 3; e++) w->d.k_stride[e] = 0;
        w->d.head_dim = 0;
        assert_int_equal(call_of(w, PASS), QKV_OK);
    }
}

/* docs/numerics.md, Columns, Workspace: of one thread, in pieces rounded up to 64. */
static void workspace_is_the_formula(void **state) {
    (void)state;
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_ctx *ctx = NULL;
    options.n_threads = 1;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    for (int n = 1; n < 40; n++) {
        size_t bytes[5];
        world *w = fresh_columns();
        w->d.n_batch = w->d.n_heads = w->d.n_kv_heads = 1;
        w->d.len_q = 64 * n, w->d.len_k = 100 * n;
        for (int e = 0; e < 5; e++) {
            if (e == 1) want.diagonal = out.diagonal, want.n_diagonals = 16 * n;
            if (e == 2) want.diagonal = NULL, want.tile_mass = out.mass;
            want.n_tiles_q = 8, want.n_tiles_k = 16 * n;
            if (e == 3) want.tile_mass = NULL, w->d.flags = QKV_SET_SINKS, w->d.sinks = w->sinks;
            if (e == 4) w->d.q_stride[2] = 1024;
            assert_int_equal(qkv_attention_columns_workspace(ctx, &w->d, &want, &bytes[e]), QKV_OK);
        }
        const size_t pairs = (size_t)((100 * n + 255) / 256 + 16 * n);
        assert_int_equal(bytes[0], 64 + 121600 + 32256 + 1024 * D);
        assert_int_equal(bytes[1] - bytes[0], 128 * 16 * n);
        assert_int_equal(bytes[2] - bytes[0], 64 * pairs + (32 * pairs + 63) / 64 * 64 + 64 + 4288);
        assert_int_equal(bytes[3] - bytes[0], 64 * n);
        assert_int_equal(bytes[4] - bytes[3], 384 * (16 + 16)); /* 4 KiB apart */
    }
    qkv_ctx_free(ctx);
}

static void a_flag_ends_a_pass(void **state) {
    (void)state;
    const int raised = 1;
    world *w = fresh_columns();
    w->call.cancel = &raised;
    assert_int_equal(call_of(w, PASS), QKV_ERR_CANCELLED);
    assert_int_equal(call_of(w, WEIGHTS), QKV_ERR_CANCELLED);
    assert_string_equal(qkv_ctx_message(world_ctx), "cancelled by the caller's flag");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right),
        cmocka_unit_test(the_structs),
        cmocka_unit_test(numbers),
        cmocka_unit_test(addresses),
        cmocka_unit_test(strides),
        cmocka_unit_test(rectangles),
        cmocka_unit_test(nothing_to_see),
        cmocka_unit_test(workspace_is_the_formula),
        cmocka_unit_test(a_flag_ends_a_pass),
    };
    return cmocka_run_group_tests(tests, make_world_ctx, destroy_world_ctx);
}
