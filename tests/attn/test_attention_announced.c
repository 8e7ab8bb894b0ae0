/*
 * The cache lines that kernels prefetch (kernels/ahead.h), in random attention problems with every
 * rule and type, forward, backward, over columns and from stored keys, and in products of matrices
 * in f32, bf16 and int8. Every line must have a byte of an array that the call reads or writes (of
 * keys only those that some query sees), or a byte of the workspace that it has written. One call
 * of a kernel prefetches no line twice, except lines that stored keys share.
 *
 * Usage: unit_attention_announced [CASES [SEED]]
 */
#include <stdio.h>
#include <string.h>

#include "attn/announced/announced.h"
#include "attn/attention_problem.h"
#include "attn/ctx.h"
#include "check/check.h"
#include "check/outputs.h"
#include "check/rules.h"
#include "check/stored_case.h"
#include "core/alloc.h"
#include "kernels/gemm_bf16.h"
#include "kernels/gemm_int8.h"
#include "qkv/columns.h"

static int n_cases = UNDER_SANITIZER ? 5 : 15;
static uint64_t first_seed = 5; /* whose first cases have stored keys that are announced */

/* ---- What was announced ---------------------------------------------------------------------- */

enum { LINE = 64, MOST_LINES = 1 << 20, MOST_REGIONS = 16 };

typedef struct announcement {
    uintptr_t line;
    int call; /* of a kernel */
} announcement;

static announcement told[MOST_LINES];
static int n_told, call_now;
static int64_t n_checked;

void announced_line(const void *p) {
    if (n_told < MOST_LINES) told[n_told] = (announcement){ (uintptr_t)p / LINE, call_now };
    n_told++;
}

/* Memory that may be announced: all of it, or bytes that are not 0 in `of`. */
typedef struct region {
    const char *name;
    const unsigned char *at;
    size_t bytes;
    unsigned char *of;
} region;

static region regions[MOST_REGIONS];
static int n_regions;

static region *region_add(const char *name, const void *at, size_t bytes) {
    assert_true(n_regions < MOST_REGIONS);
    regions[n_regions] = (region){ .name = name, .at = at, .bytes = at ? bytes : 0 };
    return &regions[n_regions++];
}

static void region_of(region *x) {
    x->of = calloc(x->bytes + 1, 1);
    assert_non_null(x->of);
}

static void begin(void) {
    for (int n = 0; n < n_regions; n++) free(regions[n].of);
    n_regions = n_told = call_now = 0;
}

static bool region_has(const region *x, uintptr_t line) {
    const uintptr_t at = (uintptr_t)x->at, from = line * LINE;
    const uintptr_t first = from > at ? from : at;
    const uintptr_t end = from + LINE < at + x->bytes ? from + LINE : at + x->bytes;
    for (uintptr_t p = first; p < end; p++)
        if (!x->of || x->of[p - at]) return true;
    return false;
}

/*
 * Which byte of which array a line is, for messages: the array that begins nearest below its end.
 */
static void fail_line(const char *why, uintptr_t line, const char *text) {
    const char *name = "nothing";
    long long at = 0;
    for (int n = 0; n < n_regions; n++) {
        const long long byte = (long long)(line * LINE) - (long long)(uintptr_t)regions[n].at;
        if (byte > -LINE && (strcmp(name, "nothing") == 0 || byte < at))
            at = byte, name = regions[n].name;
    }
    fail_msg("announced: a line at byte %lld of %s, %s\n%s", at, name, why, text);
}

static bool is_known(uintptr_t line) {
    for (int n = 0; n < n_regions; n++)
        if (region_has(&regions[n], line)) return true;
    return false;
}

static int compare_announcements(const void *a, const void *b) {
    const announcement *const x = a, *const y = b;
    if (x->call != y->call) return x->call < y->call ? -1 : 1;
    return x->line < y->line ? -1 : x->line > y->line;
}

/* Every line is known, and no call announced it more than `most` times. */
static void expect_lines(int most, const char *text) {
    assert_true(n_told <= MOST_LINES);
    qsort(told, (size_t)n_told, sizeof *told, compare_announcements);
    for (int n = 0; n < n_told; n++) {
        if (!is_known(told[n].line))
            fail_line("which the call neither reads nor writes", told[n].line, text);
        if (n >= most && compare_announcements(&told[n], &told[n - most]) == 0)
            fail_line("more often than once", told[n].line, text);
    }
    n_checked += n_told;
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static const qkvi_kernels *plain;

static void attend_block(const qkvi_attend *a) {
    call_now++;
    plain->attend->block(a);
}

static void decode_split(const qkvi_decode *a) {
    call_now++;
    plain->decode->split(a);
}

static void columns_block(const qkvi_columns *c) {
    call_now++;
    plain->columns->block(c);
}

/* Each call of a kernel gets a number. */
static qkvi_kernels numbered(const qkvi_kernels *of) {
    static qkvi_attend_kernels attend;
    static qkvi_decode_kernels decode;
    static qkvi_columns_kernels columns;
    qkvi_kernels x = *of;
    plain = of;
    attend = *of->attend, decode = *of->decode, columns = *of->columns;
    attend.block = attend_block;
    decode.split = decode_split;
    columns.block = columns_block;
    x.attend = &attend, x.decode = &decode, x.columns = &columns;
    return x;
}

/* ---- Calls on a workspace -------------------------------------------------------------------- */

/* Canaries: what differs from them after the call was written. */
typedef struct room {
    unsigned char *at, *before;
    size_t bytes;
    qkv_call_options call;
} room;

static room room_new(rng *r, size_t bytes) {
    room x = { .bytes = bytes, .call = qkv_call_options_init() };
    x.at = qkvi_aligned_array(bytes + 64, 1);
    x.before = malloc(bytes + 1);
    assert_non_null(x.at);
    assert_non_null(x.before);
    for (size_t n = 0; n < bytes; n++) x.before[n] = (unsigned char)rng_next(r);
    memcpy(x.at, x.before, bytes);
    x.call.workspace = x.at;
    x.call.workspace_bytes = bytes;
    return x;
}

static void room_close(room *x, int most, const char *text) {
    region *const w = region_add("the workspace", x->at, x->bytes);
    region_of(w);
    for (size_t n = 0; n < x->bytes; n++) w->of[n] = x->at[n] != x->before[n];
    expect_lines(most, text);
    begin();
    free(x->at);
    free(x->before);
}

static qkv_ctx *context_of(const qkvi_kernels *kernels) {
    qkv_ctx *const ctx = context_on("scalar", 1);
    ctx->kernels = kernels;
    return ctx;
}

static void expect_ok(qkv_status status, const qkv_ctx *ctx, const check_case *c) {
    if (status != QKV_OK) fail_msg("%s\n%s", qkv_ctx_message(ctx), c->text);
}

/* ---- Regions of a case ----------------------------------------------------------------------- */

/* Is the key read: by a query of a head that shares it? */
static bool key_is_seen(const qkv_attention_desc *d, int64_t b, int64_t g, int64_t j) {
    const int64_t group = d->n_heads / d->n_kv_heads;
    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t i = 0; i < layout_queries(d, b); i++)
            if (rule_sees(d, b, h, i, j)) return true;
    return false;
}

/* K and V: rows of keys that are seen. */
static void add_keys(const check_case *c) {
    const qkv_attention_desc *const d = &c->d;
    const size_t size = element_bytes((elem_type)d->dtype);
    region *const k = region_add("k", c->k.data, c->k.bytes);
    region *const v = region_add("v", c->v.data, c->v.bytes);
    region_of(k);
    region_of(v);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t g = 0; g < d->n_kv_heads; g++)
            for (int64_t j = 0; j < layout_rows(d, 'k', b); j++) {
                if (!key_is_seen(d, b, g, j)) continue;
                memset(k->of + (size_t)layout_place(d, 'k', d->k_stride, b, g, j) * size, 1,
                       (size_t)d->head_dim * size);
                memset(v->of + (size_t)layout_place(d, 'v', d->v_stride, b, g, j) * size, 1,
                       (size_t)d->head_dim_v * size);
            }
}

/* What is stored of the token j of a sequence and head. */
static void mark_stored(region *x, const qkv_kv_view *view, const int64_t stride[3], int64_t b,
                        int64_t g, int64_t j, int64_t dim) {
    const size_t size = element_bytes((elem_type)view->dtype);
    int64_t page = b, token = view->ring_len ? j % view->ring_len : j;
    if (view->page_len) {
        page = view->pages[b * view->pages_stride + token / view->page_len];
        token %= view->page_len;
    }
    const int64_t at = page * stride[0] + g * stride[1] + token * stride[2];
    memset(x->of + (size_t)at * size, 1, (size_t)dim * size);
}

/*
 * Stored rows that share a line, of at least 16 elements or 16 bytes; each is announced by itself.
 */
enum { MOST_IN_LINE = 4 };

/* How often a page stands in the table at most; and pages may lie between each other's rows. */
static int most_shared(const stored_case *y) {
    const qkv_kv_view *const view = &y->kv.view;
    const size_t n = y->kv.pages.bytes / sizeof(int32_t);
    const int32_t *const table = y->kv.pages.data;
    int most = 1;
    if (view->page_len &&
        (view->k_stride[0] < view->k_stride[2] || view->v_stride[0] < view->v_stride[2]))
        return (int)n;
    for (size_t a = 0; a < n; a++) {
        int same = 0;
        for (size_t b = 0; b < n; b++) same += table[b] == table[a];
        most = same > most && table[a] >= 0 && table[a] < y->kv.view.n_pages ? same : most;
    }
    return most;
}

static void add_stored(const stored_case *y) {
    const qkv_attention_desc *const d = &y->c.d;
    const qkv_kv_view *const view = &y->kv.view;
    region *const k = region_add("k", y->kv.k.data, y->kv.k.bytes);
    region *const v = region_add("v", y->kv.v.data, y->kv.v.bytes);
    region_of(k);
    region_of(v);
    for (int64_t b = 0; b < d->n_batch; b++)
        for (int64_t g = 0; g < d->n_kv_heads; g++)
            for (int64_t j = 0; j < d->len_k; j++) {
                if (!key_is_seen(d, b, g, j)) continue;
                mark_stored(k, view, view->k_stride, b, g, j, d->head_dim);
                mark_stored(v, view, view->v_stride, b, g, j, d->head_dim_v);
            }
}

static void add_queries(const check_case *c, const outputs *x) {
    region_add("q", c->q.data, c->q.bytes);
    region_add("o", x->o.data, x->o.bytes);
    if (c->mask.map) region_add("the mask", c->mask.data, c->mask.bytes);
}

/* ---- Attention ------------------------------------------------------------------------------- */

static void run_forward(qkv_ctx *ctx, const check_case *c, const outputs *x, rng *r) {
    size_t bytes = 0;
    expect_ok(qkv_attention_workspace(ctx, &c->d, &bytes), ctx, c);
    room w = room_new(r, bytes);
    add_keys(c);
    add_queries(c, x);
    expect_ok(qkv_attention_forward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data,
                                    x->lse.data, &w.call),
              ctx, c);
    room_close(&w, 1, c->text);
}

static void run_backward(qkv_ctx *ctx, const check_case *c, const outputs *x, rng *r) {
    const qkv_attention_grads grads = outputs_grads(c, x);
    size_t bytes = 0;
    expect_ok(qkv_attention_backward_workspace(ctx, &c->d, &bytes), ctx, c);
    room w = room_new(r, bytes);
    add_keys(c);
    add_queries(c, x);
    expect_ok(qkv_attention_backward(ctx, &c->d, c->q.data, c->k.data, c->v.data, x->o.data,
                                     x->lse.data, &grads, &w.call),
              ctx, c);
    room_close(&w, 1, c->text);
}

static void run_columns(qkv_ctx *ctx, const check_case *c, const outputs *x, rng *r) {
    const qkv_attention_desc *const d = &c->d;
    qkv_attention_columns columns;
    size_t bytes = 0;
    qkv_attention_columns_contiguous(&columns, d);
    columns.received = floats(d->n_batch * d->n_heads * d->len_k);
    const qkv_status status = qkv_attention_columns_workspace(ctx, d, &columns, &bytes);
    if (status == QKV_OK) {
        room w = room_new(r, bytes);
        add_keys(c);
        add_queries(c, x);
        expect_ok(qkv_attention_columns_pass(ctx, d, c->q.data, c->k.data, x->lse.data, &columns,
                                             &w.call),
                  ctx, c);
        room_close(&w, 1, c->text);
    }
    free(columns.received);
}

/* Now and then longer than other checks are, with one head. */
static recipe recipe_of(rng *r) {
    recipe x = recipe_random(r);
    x.any_size = false;
    if (rng_chance(r, 30)) {
        x.n_batch = rng_between(r, 1, 2);
        x.n_heads = x.n_kv_heads = 1;
        x.len_q = rng_between(r, 1, 40);
        x.len_k = rng_between(r, 1, 600);
    }
    return x;
}

static void attention_on(const qkvi_kernels *of) {
    const qkvi_kernels kernels = numbered(of);
    qkv_ctx *const ctx = context_of(&kernels);
    rng r = { first_seed };
    for (int n = 0; n < n_cases; n++) {
        const uint64_t seed = rng_next(&r);
        rng own = { seed };
        const recipe y = recipe_of(&own);
        check_case c;
        case_make_of(&c, &y, seed);
        outputs x = outputs_new(&c);
        run_forward(ctx, &c, &x, &own);
        run_backward(ctx, &c, &x, &own);
        run_columns(ctx, &c, &x, &own);
        outputs_free(&x);
        case_free(&c);
    }
    qkv_ctx_free(ctx);
}

static void decode_on(const qkvi_kernels *of) {
    const qkvi_kernels kernels = numbered(of);
    qkv_ctx *const ctx = context_of(&kernels);
    rng r = { first_seed };
    for (int n = 0; n < n_cases; n++) {
        const uint64_t seed = rng_next(&r);
        elem_type stored;
        const recipe y = stored_recipe(seed, &stored);
        stored_case x;
        size_t bytes = 0;
        stored_case_make_of(&x, &y, stored, seed);
        outputs to = { .o = output_new(&x.c.d, 'o', x.c.d.o_stride, x.c.at_end),
                       .lse = output_new(&x.c.d, 'l', x.c.d.lse_stride, x.c.at_end) };
        expect_ok(qkv_attention_decode_workspace(ctx, &x.c.d, &bytes), ctx, &x.c);
        room w = room_new(&r, bytes);
        add_stored(&x);
        add_queries(&x.c, &to);
        expect_ok(qkv_attention_decode(ctx, &x.c.d, x.c.q.data, &x.kv.view, to.o.data, to.lse.data,
                                       &w.call),
                  ctx, &x.c);
        room_close(&w, MOST_IN_LINE * most_shared(&x), x.c.text);
        outputs_free(&to);
        stored_case_free(&x);
    }
    qkv_ctx_free(ctx);
}

/* ---- Products of matrices -------------------------------------------------------------------- */

typedef struct product {
    int64_t m, n, k;
    float *a, *b, *c;
    char text[80];
} product;

static product product_new(rng *r) {
    static const int64_t few[] = { 1, 2, 6, 7, 12, 13, 24 };
    product x = { .m = rng_chance(r, 50) ? few[rng_between(r, 0, 6)] : rng_between(r, 1, 200),
                  .n = rng_between(r, 1, 200),
                  .k = rng_chance(r, 20) ? rng_between(r, 700, 900) : rng_between(r, 1, 300) };
    x.a = normals(r, x.m * x.k);
    x.b = normals(r, x.k * x.n);
    x.c = floats(x.m * x.n);
    snprintf(x.text, sizeof x.text, "product %lld x %lld x %lld", (long long)x.m, (long long)x.n,
             (long long)x.k);
    region_add("a", x.a, (size_t)(x.m * x.k) * sizeof *x.a);
    region_add("c", x.c, (size_t)(x.m * x.n) * sizeof *x.c);
    return x;
}

static void product_free(product *x) {
    free(x->a);
    free(x->b);
    free(x->c);
}

/*
 * B is announced once for each block of at most 96 rows, by a stream once in each pass; a tile of C
 * once for each chain of 256.
 */
static int times_of(const product *x) {
    const int of_b = x->m <= 24 ? 2 : (int)qkvi_ceil_div(x->m, 96);
    const int of_c = (int)qkvi_ceil_div(x->k, 256);
    return of_b > of_c ? of_b : of_c;
}

static void floats_by(const qkvi_kernels *kernels, rng *r) {
    product x = product_new(r);
    const size_t elems = qkvi_gemm_packed_elems(x.k, x.n);
    float *const packed = qkvi_aligned_array(elems + 1, sizeof *packed);
    assert_non_null(packed);
    qkvi_gemm_pack_b(NULL, NULL, x.k, x.n, x.b, x.n, 1, packed);
    region_add("packed b", packed, elems * sizeof *packed);
    qkvi_gemm(NULL, &(qkvi_gemm_job){ .kernels = kernels,
                                      .m = x.m,
                                      .n = x.n,
                                      .k = x.k,
                                      .a = x.a,
                                      .a_row = x.k,
                                      .a_col = 1,
                                      .packed_b = packed,
                                      .c = x.c,
                                      .c_row = x.n });
    expect_lines(times_of(&x), x.text);
    begin();
    free(packed);
    product_free(&x);
}

static void int8_by(const qkvi_kernels *kernels, rng *r) {
    product x = product_new(r);
    const size_t panels = qkvi_int8_packed_panels(x.k, x.n);
    qkvi_int8_panel *const packed = qkvi_aligned_array(panels + 1, sizeof *packed);
    qkvi_int8_group *const rows = qkvi_aligned_array(qkvi_int8_groups(x.m, x.k), sizeof *rows);
    assert_non_null(packed);
    assert_non_null(rows);
    qkvi_int8_pack_b(kernels, NULL, x.k, x.n, x.b, x.n, 1, packed);
    region_add("packed b", packed, panels * sizeof *packed);
    const qkvi_gemm_int8_job job = { .kernels = kernels,
                                     .m = x.m,
                                     .n = x.n,
                                     .k = x.k,
                                     .a = x.a,
                                     .packed_b = packed,
                                     .c = x.c,
                                     .rows = rng_chance(r, 80) ? rows : NULL };
    qkvi_gemm_int8(NULL, 1, &job);
    expect_lines(times_of(&x), x.text);
    begin();
    free(packed);
    free(rows);
    product_free(&x);
}

/* Rows of B and columns of A are dense, or the other way round. */
static void bf16_by(const qkvi_kernels *kernels, rng *r) {
    product x = product_new(r);
    const bool across = rng_chance(r, 50);
    const size_t words = qkvi_bf16_packed_words(x.k, x.n);
    uint32_t *const packed = qkvi_aligned_array(words + 1, sizeof *packed);
    uint16_t *const half = qkvi_aligned_array(qkvi_bf16_input_elems(x.m, x.k), sizeof *half);
    assert_non_null(packed);
    assert_non_null(half);
    region_add("b", x.b, (size_t)(x.k * x.n) * sizeof *x.b);
    qkvi_bf16_pack_b_by(kernels, NULL, x.k, x.n, x.b, across ? x.n : 1, across ? 1 : x.k, packed);
    const qkvi_gemm_bf16_job job = { .kernels = kernels,
                                     .class = QKVI_CLASS_DP,
                                     .m = x.m,
                                     .n = x.n,
                                     .k = x.k,
                                     .a = x.a,
                                     .a_row = across ? 1 : x.k,
                                     .a_col = across ? x.m : 1,
                                     .packed_b = packed,
                                     .c = x.c,
                                     .c_row = x.n,
                                     .half = half };
    qkvi_gemm_bf16(NULL, &job);
    expect_lines(1, x.text);
    begin();
    free(packed);
    free(half);
    product_free(&x);
}

static void products_on(const qkvi_kernels *kernels) {
    rng r = { first_seed };
    for (int n = 0; n < n_cases; n++) {
        floats_by(kernels, &r);
        int8_by(kernels, &r);
        bf16_by(kernels, &r);
    }
}

/* ---------------------------------------------------------------------------------------------- */

static void on_both(void **state) {
    begin();
    void (*const property)(const qkvi_kernels *) = *(void (**)(const qkvi_kernels *)) * state;
    const qkvi_kernels *const both[] = { &announced_6x16_kernels, &announced_12x32_kernels };
    for (int n = 0; n < 2; n++) {
        n_checked = 0;
        property(both[n]);
        printf("%s: %lld lines\n", both[n]->name, (long long)n_checked);
        assert_true(n_checked > 10 * n_cases);
    }
}

#define PROPERTY_OF_BOTH(name)                                                                     \
    {                                                                                              \
#name, on_both, NULL, NULL, &(void (*[1])(const qkvi_kernels *)) { name }                  \
    }

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { PROPERTY_OF_BOTH(attention_on), PROPERTY_OF_BOTH(decode_on),
                                        PROPERTY_OF_BOTH(products_on) };
    if (argc > 1) n_cases = atoi(argv[1]);
    if (argc > 2) first_seed = strtoull(argv[2], NULL, 10);
    printf("seed %llu\n", (unsigned long long)first_seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
