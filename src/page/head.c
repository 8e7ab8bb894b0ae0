/** Writing one head of a page: q, k and lse, and a map. */
#include "page/head.h"

#include <math.h>

#include "attn/ctx.h"
#include "core/fpstate.h"
#include "files/encode.h"
#include "kernels/table.h"
#include "page/base85.h"
#include "page/mask.h"

static size_t raw_bytes(const qkv_page *page, int half) {
    const size_t n = (size_t)page->n, n_queries = (size_t)page->n_queries,
                 width = half ? sizeof(uint16_t) : sizeof(float);
    return (n_queries + n) * (size_t)page->head_dim * width + n_queries * sizeof(float);
}

/* What the manifest has of a mask, of a bias by distance and of a long text. */
static size_t long_bytes(const qkv_page *page, const qkv_page_head *head) {
    return (head->received ? (size_t)page->n * sizeof(float) : 0) +
           (head->mask ? (size_t)page->n_queries * qkvi_page_mask_row_bytes(page) : 0) +
           (head->distance_bias
                ? (size_t)(head->distance_before + 1 + head->distance_after) * sizeof(float)
                : 0) +
           (head->peaks ? (size_t)qkvi_page_tiles(page, head) : 0);
}

size_t qkvi_page_head_bytes(const qkv_page *page, const qkv_page_head *head, int half) {
    enum { MANIFEST = 2048, ESCAPED = 6 }; /* the thumbnail is 1,280 of them */
    const size_t map = head->map ? 2 * qkvi_page_map_bytes(page) : 0;
    const size_t note = head->map_note ? ESCAPED * strlen(head->map_note) : 0;
    return qkvi_base85_chars(raw_bytes(page, half) + long_bytes(page, head) + map) + MANIFEST +
           note;
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
    qkvi_base85_add(bytes, raw, n * sizeof *raw);
    free(raw);
}

static unsigned char *put(const qkvi_kernels *kernels, unsigned char *at, const float *from,
                          size_t n, int half) {
    if (half)
        kernels->rows->store[QKV_F16](from, (int64_t)n, 1, (int64_t)n, 1, at, (int64_t)n);
    else
        memcpy(at, from, n * sizeof *from);
    return at + n * (half ? sizeof(uint16_t) : sizeof *from);
}

void qkvi_page_head_add(qkvi_bytes *bytes, const qkv_page *page, const qkv_page_head *head,
                        int half) {
    const qkvi_kernels *const kernels = page->ctx ? page->ctx->kernels : qkvi_kernels_best();
    const size_t n = (size_t)page->n, d = (size_t)page->head_dim;
    unsigned char *const raw = qkvi_malloc_array(raw_bytes(page, half), 1);
    if (raw == NULL) {
        bytes->failed = 1;
        return;
    }
    const size_t n_queries = (size_t)page->n_queries;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    unsigned char *at = put(kernels, raw, head->q, n_queries * d, half);
    at = put(kernels, at, head->k, n * d, half);
    at = put(kernels, at, head->lse, n_queries, 0);
    qkvi_fpstate_leave(saved);
    qkvi_base85_add(bytes, raw, (size_t)(at - raw));
    free(raw);
}
