/**
 * One head of a page: its thumbnail, and how wide its numbers must be.
 *
 * p_ij = exp(s_ij - lse_i) is computed twice, from q and k as they are and as f16 would hold them. The head is written as f16 if no weight moves by more than 1e-3; as f32 otherwise, and where it
 * costs little, up to 64 tokens. Scores are sums of floats in channel order, a row at a time over
 * transposed keys. A cell of the thumbnail is the largest weight of its tile. Above QKVI_PAGE_WHOLE^2
 * weights both look at QKVI_PAGE_SAMPLE rows, evenly spread.
 */
#include "page/head.h"

#include <math.h>

#include "core/half.h"
#include "model/store/encode.h"
#include "page/mask.h"

enum { FULL_UP_TO = 64 }; /* tokens: f32 costs 16 KB a head of 32 channels there */

static const double max_error = 1e-3;

/*
 * Transposed keys and one row of scores: of the numbers as they are [0], and as f16 [1]. Of long texts
 * also sums of weights by key, and the mean distance of each query that was looked at (else -1).
 */
struct rows {
    float *keys[2], *scores[2];
    float *received, *distance;
};

static float rounded(float x, int half) { return half ? qkvi_f32_of_f16(qkvi_f16_of_f32(x)) : x; }

static void rows_free(struct rows *rows) {
    for (int half = 0; half < 2; half++) {
        free(rows->keys[half]);
        free(rows->scores[half]);
    }
    free(rows->received);
    free(rows->distance);
}

static int rows_make(struct rows *rows, const qkv_page *page, const float *k, int variants) {
    const size_t n = (size_t)page->n, d = (size_t)page->head_dim;
    for (int half = 0; half < variants; half++) {
        float *const keys = rows->keys[half] = qkvi_malloc_array(n * d, sizeof(float));
        rows->scores[half] = qkvi_malloc_array(n, sizeof(float));
        if (keys == NULL || rows->scores[half] == NULL) return 0;
        for (size_t j = 0; j < n; j++)
            for (size_t c = 0; c < d; c++) keys[c * n + j] = rounded(k[j * d + c], half);
    }
    if (n <= QKVI_PAGE_STRIP && page->n_queries <= QKVI_PAGE_STRIP) return 1;
    rows->received = qkvi_calloc_array(n, sizeof(float));
    rows->distance = qkvi_calloc_array((size_t)page->n_queries, sizeof(float));
    return rows->received && rows->distance;
}

static void score_row(const struct rows *rows, const qkv_page *page, const float *q, int half) {
    const int64_t n = page->n;
    float *restrict scores = rows->scores[half];
    memset(scores, 0, (size_t)n * sizeof *scores);
    for (int64_t c = 0; c < page->head_dim; c++) {
        const float *restrict keys = rows->keys[half] + c * n, x = rounded(q[c], half);
        for (int64_t j = 0; j < n; j++) scores[j] += x * keys[j];
    }
}

/* Of a dot product; 0 in a row that sees no key. */
static float weight(const qkv_page *page, const qkv_page_head *head, int64_t i, int64_t j,
                    float dot) {
    const float lse = head->lse[i];
    if (!(lse > -INFINITY)) return 0;
    if (page->softcap == 0 && head->alibi == 0)
        return expf(dot * qkvi_page_scale(page, head) - lse);
    return (float)exp(qkvi_page_score(page, head, i, j, (double)dot) - (double)lse);
}

uint8_t qkvi_page_level(float p) {
    const double t = p > 0 ? (log2((double)p) + 24) / 24 : 0;
    return (uint8_t)(fmin(fmax(t, 0), 1) * 255 + 0.5);
}

static void measure_row(const struct rows *rows, const qkv_page *page, const qkv_page_head *head,
                        int64_t i, int variants, float *peaks, qkvi_page_measure *measure) {
    const int64_t n = page->n, side = measure->side;
    int64_t first, end;
    qkvi_page_visible(page, head, i, &first, &end);
    for (int half = 0; half < variants; half++)
        score_row(rows, page, head->q + i * page->head_dim, half);
    for (int64_t j = first; j < end; j++) {
        if (qkvi_page_hidden(page, head, i, j)) continue;
        const float p = weight(page, head, i, j, rows->scores[0][j]);
        float *const peak = &peaks[i * measure->rows / page->n_queries * side + j * side / n];
        if (p > *peak) *peak = p;
        if (rows->received) {
            rows->received[j] += p;
            rows->distance[i] += p * (float)llabs(i + qkvi_page_offset(page) - j);
        }
        if (variants < 2) continue;
        const double off = fabs((double)weight(page, head, i, j, rows->scores[1][j]) - (double)p);
        if (!(off <= measure->error) && !isnan(measure->error)) measure->error = off;
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

qkv_status qkvi_page_measure_head(const qkv_page *page, const qkv_page_head *head,
                                  qkvi_page_measure *measure, qkv_error *error) {
    const int64_t n = page->n, n_queries = page->n_queries;
    const int whole = n_queries <= QKVI_PAGE_SAMPLE ||
                      n * n_queries <= (int64_t)QKVI_PAGE_WHOLE * QKVI_PAGE_WHOLE;
    const int64_t n_rows = whole ? n_queries : QKVI_PAGE_SAMPLE;
    const int variants = n > FULL_UP_TO || n_queries > FULL_UP_TO ? 2 : 1;
    float peaks[QKVI_PAGE_SIDE * QKVI_PAGE_SIDE] = { 0 };
    struct rows rows = { 0 };
    *measure = (qkvi_page_measure){
        .side = n < QKVI_PAGE_SIDE ? (int)n : QKVI_PAGE_SIDE,
        .rows = n_queries < QKVI_PAGE_SIDE ? (int)n_queries : QKVI_PAGE_SIDE,
    };
    const int made = rows_make(&rows, page, head->k, variants);
    for (int64_t r = 0; made && r < n_rows; r++)
        measure_row(&rows, page, head, (2 * r + 1) * n_queries / (2 * n_rows), variants, peaks,
                    measure);
    if (made && rows.received) find_places(page, head, &rows, &measure->places);
    rows_free(&rows);
    if (!made) return qkvi_no_memory(error, "the keys of a head");
    for (int c = 0; c < measure->rows * measure->side; c++)
        measure->thumb[c] = qkvi_page_level(peaks[c]);
    measure->half = variants == 2 && measure->error <= max_error;
    return QKV_OK;
}

/* ---- The numbers in the file ----------------------------------------------------------------- */

static size_t raw_bytes(const qkv_page *page, int half) {
    const size_t n = (size_t)page->n, n_queries = (size_t)page->n_queries,
                 width = half ? sizeof(uint16_t) : sizeof(float);
    return (n_queries + n) * (size_t)page->head_dim * width + n_queries * sizeof(float);
}

/* What the manifest has of a mask and of a long text. */
static size_t long_bytes(const qkv_page *page, const qkv_page_head *head) {
    return (head->received ? (size_t)page->n * sizeof(float) : 0) +
           (head->mask ? (size_t)page->n_queries * qkvi_page_mask_row_bytes(page) : 0) +
           (head->peaks ? (size_t)qkvi_page_tiles(page, head) : 0);
}

size_t qkvi_page_head_bytes(const qkv_page *page, const qkv_page_head *head, int half) {
    enum { MANIFEST = 2048, ESCAPED = 6 }; /* the thumbnail is 1,368 of them */
    const size_t map = head->map ? 2 * qkvi_page_map_bytes(page) : 0;
    const size_t note = head->map_note ? ESCAPED * strlen(head->map_note) : 0;
    return (raw_bytes(page, half) + long_bytes(page, head) + map + 2) / 3 * 4 + MANIFEST + note;
}

/* Two numbers for each query and key. */
static size_t map_elems(const qkv_page *page) { return 2 * (size_t)(page->n_queries + page->n); }
size_t qkvi_page_map_bytes(const qkv_page *page) { return map_elems(page) * sizeof(uint16_t); }

/* The box of the places is put into a square of 65,535, with one scale for both axes. */
void qkvi_page_map_add(qkvi_bytes *bytes, const qkv_page *page, const double *places) {
    const size_t n = map_elems(page);
    uint16_t *const raw = qkvi_malloc_array(n, sizeof *raw);
    if (raw == NULL) {
        bytes->failed = 1;
        return;
    }
    double low[2] = { INFINITY, INFINITY }, high[2] = { -INFINITY, -INFINITY };
    for (size_t i = 0; i < n; i++) { /* halves, whose differences are finite */
        low[i % 2] = fmin(low[i % 2], places[i] / 2);
        high[i % 2] = fmax(high[i % 2], places[i] / 2);
    }
    const double span = fmax(high[0] - low[0], high[1] - low[1]);
    for (size_t i = 0; i < n; i++)
        raw[i] = span > 0 ? (uint16_t)((places[i] / 2 - low[i % 2]) / span * UINT16_MAX + 0.5) : 0;
    qkvi_base64_add(bytes, raw, n * sizeof *raw);
    free(raw);
}

static unsigned char *put(unsigned char *at, const float *from, size_t n, int half) {
    if (!half) {
        memcpy(at, from, n * sizeof *from);
        return at + n * sizeof *from;
    }
    for (size_t i = 0; i < n; i++) {
        const uint16_t x = qkvi_f16_of_f32(from[i]);
        memcpy(at + i * sizeof x, &x, sizeof x);
    }
    return at + n * sizeof(uint16_t);
}

void qkvi_page_head_add(qkvi_bytes *bytes, const qkv_page *page, const qkv_page_head *head,
                        int half) {
    const size_t n = (size_t)page->n, d = (size_t)page->head_dim;
    unsigned char *const raw = qkvi_malloc_array(raw_bytes(page, half), 1);
    if (raw == NULL) {
        bytes->failed = 1;
        return;
    }
    const size_t n_queries = (size_t)page->n_queries;
    unsigned char *at = put(raw, head->q, n_queries * d, half);
    at = put(at, head->k, n * d, half);
    at = put(at, head->lse, n_queries, 0);
    qkvi_base64_add(bytes, raw, (size_t)(at - raw));
    free(raw);
}
