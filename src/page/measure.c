/**
 * What is computed of a head before it is written: its thumbnail, and whether f16 is enough for q
 * and k.
 *
 *     p_ij = exp(scale q_i . k_j - lse_i)
 *
 * is computed twice, from q and k as they are, and rounded to f16. The head is written as f16 if no
 * weight changes by more than 1e-3; else as f32, and so are heads of up to 64 tokens, which are
 * small. Products and exp are those of the library's kernels, so the numbers do not depend on
 * instruction set and threads. A cell of the thumbnail is the largest weight of its tile. With more
 * than QKVI_PAGE_WHOLE^2 weights only QKVI_PAGE_SAMPLE rows, evenly spread, are computed.
 */
#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "core/half.h"
#include "kernels/gemm.h"
#include "page/head.h"
#include "page/mask.h"

enum {
    FULL_UP_TO = 64,          /* tokens: f32 costs 16 KB a head of 32 channels there */
    SCORES_AT_ONCE = 1 << 14, /* of some queries, which stay in the cache */
    QUERIES_AT_ONCE = 32,
    INFINITE = 0x7F800000 /* bits of a float; those of a NaN are larger */
};

static const double max_error = 1e-3;

/*
 * Packed keys, some queries and rows of their scores: of the numbers as they are [0], and as f16
 * [1]. Of long texts also sums of weights by key, and the mean distance of each query that was
 * looked at (else -1).
 */
struct rows {
    const qkvi_kernels *kernels;
    qkvi_pool *pool;
    int variants;
    int64_t at_once;
    float *keys[2], *scores[2], *queries;
    float *received, *distance;
};

static void rows_free(struct rows *rows) {
    for (int half = 0; half < 2; half++) {
        qkvi_aligned_free(rows->keys[half]);
        qkvi_aligned_free(rows->scores[half]);
    }
    qkvi_aligned_free(rows->queries);
    free(rows->received);
    free(rows->distance);
}

/* Floats become what f16 would hold of them. */
static void round_all(const qkvi_kernels *kernels, float *x, int64_t n) {
    enum { SOME = 1024 };
    uint16_t half[SOME];
    for (int64_t i = 0; i < n; i += SOME) {
        const int64_t some = n - i < SOME ? n - i : SOME;
        kernels->rows->store[QKV_F16](x + i, some, 1, some, 1, half, some);
        kernels->rows->load[QKV_F16](half, some, 1, some, x + i, some);
    }
}

static bool rows_make(struct rows *rows, const qkv_page *page, const float *k) {
    const int64_t n = page->n, d = page->head_dim;
    const size_t packed = qkvi_gemm_packed_elems(d, n);
    rows->at_once = SCORES_AT_ONCE / n;
    if (rows->at_once > QUERIES_AT_ONCE) rows->at_once = QUERIES_AT_ONCE;
    if (rows->at_once < 1) rows->at_once = 1;
    rows->queries = qkvi_aligned_array((size_t)(rows->at_once * d), sizeof(float));
    if (rows->queries == NULL) return false;
    for (int half = 0; half < rows->variants; half++) {
        rows->keys[half] = qkvi_aligned_array(packed, sizeof(float));
        rows->scores[half] = qkvi_aligned_array((size_t)(rows->at_once * n), sizeof(float));
        if (rows->keys[half] == NULL || rows->scores[half] == NULL) return false;
        qkvi_gemm_pack_b(rows->pool, rows->kernels, d, n, k, 1, d, rows->keys[half]);
        if (half) round_all(rows->kernels, rows->keys[half], (int64_t)packed);
    }
    if (n <= QKVI_PAGE_STRIP && page->n_queries <= QKVI_PAGE_STRIP) return true;
    rows->received = qkvi_calloc_array((size_t)n, sizeof(float));
    rows->distance = qkvi_calloc_array((size_t)page->n_queries, sizeof(float));
    return rows->received && rows->distance;
}

/* ---- Weights of some queries ----------------------------------------------------------------- */

/* Products of m queries, which lie at places[]. */
static void multiply(const struct rows *rows, const qkv_page *page, const float *q, int64_t m,
                     const int64_t *places) {
    const int64_t n = page->n, d = page->head_dim;
    for (int64_t r = 0; r < m; r++)
        memcpy(rows->queries + r * d, q + places[r] * d, (size_t)d * sizeof *q);
    for (int half = 0; half < rows->variants; half++) {
        if (half) round_all(rows->kernels, rows->queries, m * d);
        qkvi_gemm(rows->pool, &(qkvi_gemm_job){ .kernels = rows->kernels,
                                                .m = m,
                                                .n = n,
                                                .k = d,
                                                .a = rows->queries,
                                                .a_row = d,
                                                .a_col = 1,
                                                .packed_b = rows->keys[half],
                                                .c = rows->scores[half],
                                                .c_row = n });
    }
}

/* Products of query i with the keys from first to end become weights; 0 of what it does not see. */
static void weigh(const struct rows *rows, const qkv_page *page, const qkv_page_head *head,
                  int64_t i, int64_t first, int64_t end, float *row) {
    const float lse = head->lse[i];
    if (!(lse > -INFINITY))
        memset(row + first, 0, (size_t)(end - first) * sizeof *row);
    else if (page->softcap == 0 && head->alibi == 0 && !head->distance_bias)
        rows->kernels->layer->weights(end - first, qkvi_page_scale(page, head), lse, row + first);
    else
        for (int64_t j = first; j < end; j++)
            row[j] = (float)exp(qkvi_page_score(page, head, i, j, (double)row[j]) - (double)lse);
    for (int64_t j = first; (page->dropped || head->mask) && j < end; j++)
        if (qkvi_page_hidden(page, head, i, j)) row[j] = 0;
}

/* ---- What is measured of them ---------------------------------------------------------------- */

/* Numbers from 0 on have the order of their bits, which compilers know to compare in vectors. */
static int32_t bits_of(float x) {
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(int32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The largest weight of each tile of keys; a NaN is none. */
static void raise_peaks(const qkv_page *page, const float *row, int64_t first, int64_t end,
                        int side, float *peaks) {
    for (int64_t c = 0; c < side; c++) {
        const int64_t from = (c * page->n + side - 1) / side,
                      to = ((c + 1) * page->n + side - 1) / side;
        int32_t most = bits_of(peaks[c]);
        for (int64_t j = from > first ? from : first; j < to && j < end; j++) {
            const int32_t bits = bits_of(row[j]), weight = bits > INFINITE ? 0 : bits;
            most = weight > most ? weight : most;
        }
        peaks[c] = float_of(most);
    }
}

/* The largest difference, NaN if there is one; found among floats, and told in double. */
static double largest_change(const float *a, const float *b, int64_t n) {
    int32_t most = 0;
    for (int64_t j = 0; j < n; j++) {
        const int32_t bits = bits_of(fabsf(a[j] - b[j]));
        most = bits > most ? bits : most;
    }
    return (double)float_of(most);
}

static void add_sums(const struct rows *rows, const qkv_page *page, int64_t i, const float *row,
                     int64_t first, int64_t end) {
    const int64_t at = i + qkvi_page_offset(page);
    float distance = 0;
    for (int64_t j = first; j < end; j++) rows->received[j] += row[j];
    for (int64_t j = first; j < end; j++) distance += row[j] * (float)llabs(at - j);
    rows->distance[i] = distance;
}

static void measure_row(const struct rows *rows, const qkv_page *page, const qkv_page_head *head,
                        int64_t i, int64_t r, float *peaks, qkvi_page_measure *measure) {
    float *const row[2] = { rows->scores[0] + r * page->n,
                            rows->variants > 1 ? rows->scores[1] + r * page->n : NULL };
    int64_t first, end;
    qkvi_page_visible(page, head, i, &first, &end);
    for (int half = 0; half < rows->variants; half++)
        weigh(rows, page, head, i, first, end, row[half]);
    raise_peaks(page, row[0], first, end, measure->side,
                peaks + i * measure->rows / page->n_queries * measure->side);
    if (rows->received) add_sums(rows, page, i, row[0], first, end);
    if (rows->variants < 2) return;
    const double off = largest_change(row[0] + first, row[1] + first, end - first);
    if (!(off <= measure->error) && !isnan(measure->error)) measure->error = off;
}

static void measure_rows(const struct rows *rows, const qkv_page *page, const qkv_page_head *head,
                         int64_t n_rows, float *peaks, qkvi_page_measure *measure) {
    int64_t places[QUERIES_AT_ONCE];
    for (int64_t r0 = 0; r0 < n_rows; r0 += rows->at_once) {
        const int64_t m = n_rows - r0 < rows->at_once ? n_rows - r0 : rows->at_once;
        for (int64_t r = 0; r < m; r++)
            places[r] = (2 * (r0 + r) + 1) * page->n_queries / (2 * n_rows);
        multiply(rows, page, head->q, m, places);
        for (int64_t r = 0; r < m; r++) measure_row(rows, page, head, places[r], r, peaks, measure);
    }
}

/* By the caller's sums over all queries, or by those that were looked at. */
static void find_places(const qkv_page *page, const qkv_page_head *head, const struct rows *rows,
                        qkvi_page_places *places) {
    places->n_sinks = qkvi_page_largest(head->received ? head->received : rows->received, page->n,
                                        QKVI_PAGE_SINKS, places->sinks);
    places->n_far = 0;
    if (page->two_texts) return; /* no distances */
    places->n_far = qkvi_page_largest(head->distance ? head->distance : rows->distance,
                                      page->n_queries, QKVI_PAGE_FAR, places->far);
}

/* false: there is no memory. */
static bool measure_head(const qkv_page *page, const qkv_page_head *head,
                         qkvi_page_measure *measure) {
    const int64_t n = page->n, n_queries = page->n_queries;
    const bool whole = n_queries <= QKVI_PAGE_SAMPLE ||
                       n * n_queries <= (int64_t)QKVI_PAGE_WHOLE * QKVI_PAGE_WHOLE;
    float peaks[QKVI_PAGE_SIDE * QKVI_PAGE_SIDE] = { 0 };
    struct rows rows = { .kernels = page->ctx ? page->ctx->kernels : qkvi_kernels_best(),
                         .pool = page->ctx ? page->ctx->pool : NULL,
                         .variants = n > FULL_UP_TO || n_queries > FULL_UP_TO ? 2 : 1 };
    *measure = (qkvi_page_measure){
        .side = n < QKVI_PAGE_SIDE ? (int)n : QKVI_PAGE_SIDE,
        .rows = n_queries < QKVI_PAGE_SIDE ? (int)n_queries : QKVI_PAGE_SIDE,
    };
    const bool made = rows_make(&rows, page, head->k);
    if (made) measure_rows(&rows, page, head, whole ? n_queries : QKVI_PAGE_SAMPLE, peaks, measure);
    if (made && rows.received) find_places(page, head, &rows, &measure->places);
    rows_free(&rows);
    for (int c = 0; c < measure->rows * measure->side; c++)
        measure->thumb[c] = qkvi_page_level(peaks[c]);
    measure->half = rows.variants == 2 && measure->error <= max_error;
    return made;
}

uint8_t qkvi_page_level(float p) {
    const double t = p > 0 ? (log2((double)p) + 24) / 24 : 0;
    return (uint8_t)(fmin(fmax(t, 0), 1) * 255 + 0.5);
}

/* ---- Several heads --------------------------------------------------------------------------- */

struct work {
    const qkv_page *page;
    int64_t first;
    qkvi_page_measure *measures;
    bool made[QKVI_PAGE_HEADS_AT_ONCE];
};

static void measure_one(void *argument, int index) {
    struct work *const work = argument;
    const int64_t i = work->first + index;
    work->made[index] = measure_head(work->page, &work->page->heads[i], &work->measures[i]);
}

qkv_status qkvi_page_measure_heads(const qkv_page *page, int64_t first, int64_t n,
                                   qkvi_page_measure *measures, qkv_error *error) {
    struct work work = { page, first, measures, { false } };
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (n == 1)
        measure_one(&work, 0); /* its products are shared out */
    else
        qkvi_pool_run(page->ctx ? page->ctx->pool : NULL, (int)n, measure_one, &work);
    bool made = true;
    for (int64_t i = 0; i < n; i++) made = made && work.made[i];
    qkvi_fpstate_leave(saved);
    return made ? QKV_OK : qkvi_no_memory(error, "the keys of a head");
}
