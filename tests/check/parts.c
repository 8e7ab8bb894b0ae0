/*
 * The parts of every kernel table: the scalar one against its definition where that is a formula of
 * a line, every other against the scalar one, bit by bit, on arrays that end or begin at a page
 * without access.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "core/fma.h"
#include "core/os.h"
#include "kernels/table.h"

enum { MAX_ARRAYS = 16 };

/* One random call of one part, made once per table. */
typedef struct trial {
    const qkvi_kernels *kernels; /* of this call */
    rng r;                       /* the same for every table, so the same sizes and values */
    bool at_end;
    bool any_size; /* inputs have any size, each a band of its own */
    guarded arrays[MAX_ARRAYS];
    int n_arrays;
    const char *part;
    check_report *report;
    float *result; /* what is compared */
    size_t n_result;
} trial;

static float *array(trial *t, int64_t n) {
    guarded *g = &t->arrays[t->n_arrays++];
    *g = guarded_new((size_t)n * sizeof(float), t->at_end);
    return g->data;
}

static float special(rng *r) {
    static const float values[] = { 0, -0.0f, 1e-42f, -1e-42f, 3e38f, 88, -88, -104, 1e-30f };
    return values[rng_between(r, 0, 8)];
}

static float *sized(trial *t, int64_t n) {
    const size_band s = band_random(&t->r, -149, 126);
    float *x = array(t, n);
    for (int64_t i = 0; i < n; i++) x[i] = (float)band_draw(&t->r, &s);
    return x;
}

static float *input(trial *t, int64_t n) {
    if (t->any_size) return sized(t, n);
    float *x = array(t, n);
    for (int64_t i = 0; i < n; i++)
        x[i] = rng_chance(&t->r, 3) ? special(&t->r) : rng_normal(&t->r);
    return x;
}

static float *ordinary(trial *t, int64_t n) {
    if (t->any_size) return sized(t, n);
    float *x = array(t, n);
    for (int64_t i = 0; i < n; i++) x[i] = rng_normal(&t->r);
    return x;
}

static void result(trial *t, float *x, int64_t n) {
    t->result = x;
    t->n_result = (size_t)n;
}

static int64_t length(trial *t) {
    return rng_chance(&t->r, 50) ? rng_between(&t->r, 1, 40) : rng_between(&t->r, 1, 300);
}

static void same(trial *t, float got, float want, int64_t i) {
    if (first_difference(&got, &want, 1) >= 0)
        check_failed(t->report, "%s on %s, element %" PRId64 ": %.9g instead of %.9g", t->part,
                     t->kernels->name, i, (double)got, (double)want);
}

/* ---- Matrix kernel --------------------------------------------------------------------------- */

static void part_gemm_tile(trial *t) {
    const int rows = (int)rng_between(&t->r, 1, 12), cols = (int)rng_between(&t->r, 1, 32);
    const int64_t k = rng_between(&t->r, 0, 200), ldc = cols + rng_between(&t->r, 0, 3);
    const bool by_rows = rng_chance(&t->r, 50);
    const int add = rng_chance(&t->r, 50);
    const int64_t pad = rng_between(&t->r, 0, 2);
    const int64_t a_row = by_rows ? k + pad : 1, a_col = by_rows ? 1 : rows + pad;
    const float *a = input(t, k ? (rows - 1) * a_row + (k - 1) * a_col + 1 : 0);
    const float *b = input(t, 32 * k), *bias = rng_chance(&t->r, 50) ? input(t, cols) : NULL;
    float *c = ordinary(t, (rows - 1) * ldc + cols), *before = ordinary(t, (rows - 1) * ldc + cols);
    memcpy(before, c, (size_t)((rows - 1) * ldc + cols) * sizeof *c);
    const int mr = t->kernels->mr;
    for (int i = 0; i < rows; i += mr)
        t->kernels->gemm->tile(rows - i < mr ? rows - i : mr, cols, k, a + i * a_row, a_row, a_col,
                               b, c + i * ldc, ldc, add, bias, b, k / (1 + i));
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            float sum = 0;
            for (int64_t n = 0; n < k; n++)
                sum = qkvi_fmaf(a[i * a_row + n * a_col], b[32 * n + j], sum);
            if (add) sum = before[i * ldc + j] + sum;
            same(t, c[i * ldc + j], bias ? sum + bias[j] : sum, i * ldc + j);
        }
    result(t, c, (rows - 1) * ldc + cols);
}

/* ---- Backward -------------------------------------------------------------------------------- */

/*
 * Which of n rows to read, in words, or NULL for all; the others hold NaN, since they must not be
 * read.
 */
static const uint32_t *some(trial *t, float *x, int64_t stride, int64_t n, int64_t dim,
                            uint32_t words[8]) {
    if (rng_chance(&t->r, 50)) return NULL;
    for (int w = 0; w < 8; w++)
        words[w] = rng_chance(&t->r, 50) ? UINT32_MAX : (uint32_t)rng_next(&t->r);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; !(words[i / 32] >> i % 32 & 1) && c < dim; c++) x[i * stride + c] = NAN;
    return words;
}

static bool has(const uint32_t *words, int64_t i) { return !words || words[i / 32] >> i % 32 & 1; }

static void part_pack_channels(trial *t) {
    const int64_t n = rng_between(&t->r, 0, 128), dim = rng_between(&t->r, 1, 130);
    const int64_t stride = dim + rng_between(&t->r, 0, 3), panels = (dim + 31) / 32;
    float *x = ordinary(t, n ? (n - 1) * stride + dim : 0), *y = array(t, panels * 128 * 32);
    uint32_t words[8];
    const uint32_t *see = some(t, x, stride, n, dim, words);
    const int64_t bad = n ? rng_between(&t->r, 0, n - 1) : 0;
    const bool spoil = n && has(see, bad) && rng_chance(&t->r, 50);
    if (spoil)
        x[bad * stride + rng_between(&t->r, 0, dim - 1)] = rng_chance(&t->r, 50) ? NAN : -INFINITY;
    const bool finite = t->kernels->rows->pack_channels[QKV_F32](x, stride, n, dim, 128, see, y);
    if (finite == spoil) check_failed(t->report, "%s: finite is %d", t->part, finite);
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < panels * 32; c++)
            same(t, y[c / 32 * 128 * 32 + i * 32 + c % 32],
                 c < dim && has(see, i) ? x[i * stride + c] : 0, c);
    result(t, y, panels * 128 * 32);
}

static void part_pack_keys(trial *t) {
    const int64_t n = rng_between(&t->r, 0, 100), dim = rng_between(&t->r, 1, 130);
    const int64_t stride = dim + rng_between(&t->r, 0, 3), panels = (n + 31) / 32;
    float *x = input(t, n ? (n - 1) * stride + dim : 0), *y = array(t, panels * dim * 32);
    uint32_t words[8];
    const uint32_t *see = some(t, x, stride, n, dim, words);
    t->kernels->rows->pack_keys[QKV_F32](x, stride, n, dim, see, y);
    for (int64_t j = 0; j < panels * 32; j++)
        for (int64_t c = 0; c < dim; c++)
            same(t, y[j / 32 * dim * 32 + c * 32 + j % 32],
                 j < n && has(see, j) ? x[j * stride + c] : 0, c);
    result(t, y, panels * dim * 32);
}

static void part_attend_small(trial *t) {
    const int n_queries = (int)rng_between(&t->r, 1, 16), n_keys = (int)rng_between(&t->r, 1, 16);
    const int64_t dim = 16 * rng_between(&t->r, 1, 5), dim_v = 32 * rng_between(&t->r, 1, 3);
    const int64_t gap = rng_between(&t->r, 0, 3);
    uint16_t see[QKVI_SMALL];
    for (int j = 0; j < n_keys; j++) {
        see[j] = (uint16_t)(rng_chance(&t->r, 50) ? 0xFFFF : rng_between(&t->r, 0, 0xFFFF));
        see[j] |= (uint16_t)(0xFFFFu << n_queries);
    }
    const bool odd = rng_chance(&t->r, 10);
    float *(*const values)(trial *, int64_t) = odd ? input : ordinary;
    float *o = ordinary(t, n_queries * (dim_v + gap) + n_queries + 1);
    const qkvi_attend_small a = {
        .head_dim = dim,
        .head_dim_v = dim_v,
        .n_queries = n_queries,
        .n_keys = n_keys,
        .q = values(t, n_queries * (dim + gap) - gap),
        .k = values(t, n_keys * (dim + gap) - gap),
        .v = values(t, n_keys * (dim_v + gap) - gap),
        .q_row = dim + gap,
        .k_row = dim + gap,
        .v_row = dim_v + gap,
        .see = see,
        .work = qkvi_os_aligned(64, (size_t)(QKVI_SMALL_WORK + 32 * dim) * sizeof(float)),
        .factor = 0.18f,
        .o = o,
        .o_row = dim_v + gap,
        .lse = o + n_queries * (dim_v + gap),
        .lse_row = 1,
    };
    const bool done = t->kernels->attend->small(&a);
    qkvi_os_aligned_free(a.work);
    o[n_queries * (dim_v + gap) + n_queries] = done;
    result(t, o, n_queries * (dim_v + gap) + n_queries + 1);
}

/* Every kind of explicit mask, with and without segments, by its definition. */
static void part_mask_any(trial *t) {
    enum { BOOLS, ADDS, BITS, NONE };
    const int kind = (int)rng_between(&t->r, BOOLS, NONE), n_keys = (int)rng_between(&t->r, 1, 32);
    const int64_t n_rows = rng_between(&t->r, 1, 40);
    const int64_t key = kind == BITS ? 1 : rng_between(&t->r, 0, 2);
    const int64_t width = kind == BITS ? (n_keys + 7) / 8 : (n_keys - 1) * key + 1;
    const int64_t row = rng_chance(&t->r, 30) ? 0 : width;
    const int64_t begin = rng_between(&t->r, -60, 30), end = begin + rng_between(&t->r, 0, 60);
    const int64_t n = (n_rows - 1) * row + width, rare = rng_between(&t->r, 0, 99);
    float *adds = array(t, n), *seen = array(t, n_keys);
    int32_t *seg_q = (int32_t *)array(t, n_rows), *seg_k = (int32_t *)array(t, n_keys);
    guarded *g = &t->arrays[t->n_arrays++];
    *g = guarded_new((size_t)n, t->at_end);
    uint8_t *bytes = (uint8_t *)g->data;
    for (int64_t e = 0; e < n; e++) {
        const bool sees = rng_chance(&t->r, (int)rare);
        bytes[e] = kind == BITS ? (uint8_t)rng_next(&t->r) : sees ? 2 : 0;
        adds[e] = sees ? rng_normal(&t->r) : -INFINITY;
    }
    for (int64_t i = 0; i < n_rows; i++) seg_q[i] = (int32_t)rng_between(&t->r, -1, 1);
    for (int64_t j = 0; j < n_keys; j++) seg_k[j] = (int32_t)rng_between(&t->r, -1, 1);
    const bool segments = rng_chance(&t->r, 30);
    const qkvi_mask mask = { .bools = kind == BOOLS ? bytes : NULL,
                             .bits = kind == BITS ? bytes : NULL,
                             .adds = kind == ADDS ? adds : NULL,
                             .row = row,
                             .key = key,
                             .seg_q = segments ? seg_q : NULL,
                             .seg_k = segments ? seg_k : NULL };
    const uint32_t bits = t->kernels->attend->mask_any(&mask, n_rows, n_keys, begin, end);
    for (int j = 0; j < 32; j++) {
        bool want = false;
        for (int64_t i = 0; j < n_keys && i < n_rows; i++) {
            const bool open = kind == BOOLS  ? bytes[i * row + j * key] != 0
                              : kind == ADDS ? !(adds[i * row + j * key] == -INFINITY)
                              : kind == BITS ? bytes[i * row + j / 8] >> j % 8 & 1
                                             : true;
            want |= open && j >= begin + i && j < end + i && (!segments || seg_q[i] == seg_k[j]);
        }
        if (j < n_keys) seen[j] = (float)(bits >> j & 1);
        if ((bits >> j & 1) != want) check_failed(t->report, "%s: key %d", t->part, j);
    }
    result(t, seen, n_keys);
}

static void part_delta(trial *t) {
    const int64_t n = rng_between(&t->r, 1, 40), dim = rng_between(&t->r, 0, 100);
    const float *o = input(t, n * dim), *d_o = input(t, n * dim);
    float *delta = array(t, n);
    t->kernels->bwd->delta[QKV_F32](o, dim, d_o, dim, n, dim, delta);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0;
        for (int64_t c = 0; c < dim; c++) sum = qkvi_fmaf(d_o[i * dim + c], o[i * dim + c], sum);
        same(t, delta[i], sum, i);
    }
    result(t, delta, n);
}

/* ---- Merge ----------------------------------------------------------------------------------- */

static void part_merge_row(trial *t) {
    enum { PARTS = 5 };
    const int n_parts = (int)rng_between(&t->r, 1, PARTS);
    const int64_t dim = rng_between(&t->r, 0, 150);
    const void *o_parts[PARTS];
    const float *lse_parts[PARTS];
    float *y = array(t, dim + 1);
    for (int p = 0; p < n_parts; p++) {
        float *lse = array(t, 1);
        o_parts[p] = ordinary(t, dim);
        *lse = rng_chance(&t->r, 15) ? -INFINITY : 5 * rng_normal(&t->r);
        lse_parts[p] = lse;
    }
    t->kernels->rows->merge[QKV_F32](n_parts, o_parts, lse_parts, 0, 0, dim, y, y + dim);
    result(t, y, dim + 1);
    for (int64_t c = 0; c < dim; c++)
        if (y[c] == 0 && signbit(y[c])) check_failed(t->report, "merge: o is -0");
    if (t->any_size) return;
    double sum = 0;
    for (int p = 0; p < n_parts; p++) sum += exp((double)*lse_parts[p]);
    if (sum == 0) same(t, y[dim], -INFINITY, dim);
    if (sum > 0 && !(fabs((double)y[dim] - log(sum)) <= 0x1p-22 * (4 + fabs(log(sum)))))
        check_failed(t->report, "merge: lse %.9g, exactly %.17g", (double)y[dim], log(sum));
    for (int64_t c = 0; c < dim; c++) {
        double o = 0;
        for (int p = 0; p < n_parts && sum > 0; p++)
            o += exp((double)*lse_parts[p]) / sum * (double)((const float *)o_parts[p])[c];
        if (!(fabs((double)y[c] - o) <= 0x1p-18))
            check_failed(t->report, "merge: o %.9g, exactly %.17g", (double)y[c], o);
    }
}

/* ---- Layers: scalar is tested by the layers' own tests --------------------------------------- */

static void part_norm(trial *t) {
    const int64_t rows = rng_between(&t->r, 1, 5), n = length(t);
    const float *residual = rng_chance(&t->r, 50) ? ordinary(t, rows * n) : NULL;
    const float *gamma = ordinary(t, n), *beta = ordinary(t, n), *d_y = ordinary(t, rows * n);
    float *s = ordinary(t, rows * n);
    float *all = ordinary(t, 2 * rows * n + 2 * rows + 2 * n);
    float *y = all, *d_s = y + rows * n, *stats = d_s + rows * n, *d_gamma = stats + 2 * rows;
    t->kernels->layer->norm_forward(rows, n, residual, gamma, beta, 1e-12f, s, y, stats);
    t->kernels->layer->norm_backward(rows, n, s, stats, gamma, d_y, d_s, d_gamma, d_gamma + n);
    result(t, all, 2 * rows * n + 2 * rows + 2 * n);
}

static void part_act(trial *t) {
    const int64_t n = length(t);
    const float *x = input(t, n), *d_y = input(t, n);
    float *all = array(t, 2 * n * QKVI_N_ACTS);
    for (int act = 0; act < QKVI_N_ACTS; act++) {
        float *y = all + 2 * n * act;
        t->kernels->layer->act_forward[act](n, x, y);
        t->kernels->layer->act_backward[act](n, x, d_y, y + n);
    }
    result(t, all, 2 * n * QKVI_N_ACTS);
}

static void part_tanh(trial *t) {
    const int64_t n = length(t);
    const float *x = input(t, n), *d_y = input(t, n);
    float *y = array(t, 2 * n);
    t->kernels->layer->tanh_forward(n, x, y);
    t->kernels->layer->tanh_backward(n, y, d_y, y + n);
    result(t, y, 2 * n);
}

static void part_softmax(trial *t) {
    const int64_t n = length(t);
    float *x = ordinary(t, n), *all = array(t, 2 * n + 2);
    memcpy(all, x, (size_t)n * sizeof *x);
    t->kernels->layer->softmax_forward(n, x, all + 2 * n, all + 2 * n + 1);
    memcpy(all + n, x, (size_t)n * sizeof *x);
    t->kernels->layer->softmax_backward(n, rng_between(&t->r, 0, n - 1), 0.9f, 0.01f, 0.25f,
                                        all[2 * n], all + n);
    t->kernels->layer->weights(n, 0.3f, all[2 * n + 1], all);
    result(t, all, 2 * n + 2);
}

static void part_rows(trial *t) {
    enum { ROWS = 4 };
    const int64_t n = length(t);
    const float *a = input(t, n), *b = input(t, n), *c = input(t, n), *x = input(t, ROWS * n);
    float *y = ordinary(t, 3 * n + 2);
    t->kernels->layer->add3(n, 1.7f, a, b, c, y);
    t->kernels->layer->add(n, a, y + n);
    t->kernels->layer->sum_rows(ROWS, NULL, n, 0.6f, x, y + 2 * n);
    y[3 * n] = t->kernels->layer->sum_squares(n, c);
    y[3 * n + 1] = t->kernels->layer->sum(n, c);
    result(t, y, 3 * n + 2);
}

static void part_dropout(trial *t) {
    const int64_t n_rows = rng_between(&t->r, 1, 5), n = length(t);
    const qkvi_dropout d = { .key = { { 1, 2 }, { 3, 4 } },
                             .last = (uint32_t)rng_next(&t->r),
                             .head = { 5, 0x80000000u },
                             .row = rng_between(&t->r, 0, 1000),
                             .factor = 1.5f };
    float *x = input(t, n_rows * n);
    t->kernels->layer->dropout(n_rows, n, &d, x);
    result(t, x, n_rows * n);
}

static void part_adamw(trial *t) {
    const qkvi_adamw_step step = { 0.7f, 0.9f, 0.1f, 0.999f, 0.001f, 0.9999f, 0.01f, 1.3f, 1e-8f };
    const int64_t n = length(t);
    const float *g = ordinary(t, n);
    float *all = ordinary(t, 3 * n);
    for (int64_t i = 2 * n; i < 3 * n; i++) all[i] *= all[i]; /* v */
    t->kernels->layer->adamw(n, &step, g, all, all + n, all + 2 * n);
    result(t, all, 3 * n);
}

/* ---- All parts on all tables ----------------------------------------------------------------- */

static const struct {
    const char *name;
    void (*run)(trial *t);
} PARTS[] = {
    { "gemm_tile", part_gemm_tile }, { "pack_channels", part_pack_channels },
    { "pack_keys", part_pack_keys }, { "mask_any", part_mask_any },
    { "delta", part_delta },         { "merge_row", part_merge_row },
    { "norm", part_norm },           { "act", part_act },
    { "tanh", part_tanh },           { "softmax", part_softmax },
    { "rows", part_rows },           { "dropout", part_dropout },
    { "adamw", part_adamw },         { "attend_small", part_attend_small },
};

static trial run_part(const qkvi_kernels *kernels, int part, bool any_size, uint64_t seed,
                      check_report *report) {
    trial t = { .kernels = kernels, .r = { seed + (uint64_t)part * 7919 }, .report = report };
    t.part = PARTS[part].name;
    t.at_end = rng_chance(&t.r, 60);
    t.any_size = any_size;
    PARTS[part].run(&t);
    for (int n = 0; n < t.n_arrays; n++)
        if (!guarded_intact(&t.arrays[n]))
            check_failed(report, "%s on %s wrote next to an array", t.part, kernels->name);
    return t;
}

static void free_trial(trial *t) {
    for (int n = 0; n < t->n_arrays; n++) guarded_free(&t->arrays[n]);
}

static void check_part(const check_options *options, int part, bool any_size, uint64_t seed,
                       check_report *report) {
    const char *isas[CHECK_MAX_ISAS];
    const int n_isas = check_isas(options, isas);
    trial scalar = run_part(qkvi_kernels_named(isas[0]), part, any_size, seed, report);
    if (!any_size) digest_add(report, ELEMENT_F32, scalar.result, scalar.n_result);
    for (int n = 1; n < n_isas; n++) {
        trial other = run_part(qkvi_kernels_named(isas[n]), part, any_size, seed, report);
        const int64_t at = first_difference(other.result, scalar.result, scalar.n_result);
        if (at >= 0)
            check_failed(report, "%s%s: element %" PRId64 " is %.9g on %s, %.9g on scalar",
                         PARTS[part].name, any_size ? ", any size" : "", at,
                         (double)other.result[at], isas[n], (double)scalar.result[at]);
        free_trial(&other);
    }
    free_trial(&scalar);
}

void check_parts(const check_options *options, uint64_t seed, check_report *report) {
    for (int part = 0; part < (int)(sizeof PARTS / sizeof *PARTS); part++) {
        check_part(options, part, false, seed, report);
        check_part(options, part, true, seed, report);
    }
}
