/** One head of a page: how q, k, lse and a map are written, and what is measured before. */
#ifndef QKVI_PAGE_HEAD_H
#define QKVI_PAGE_HEAD_H

#include "files/base.h"
#include "qkv/page.h"

/**
 * Side of a thumbnail; heads with more than WHOLE^2 weights are measured on SAMPLE rows.
 */
enum { QKVI_PAGE_SIDE = 32, QKVI_PAGE_WHOLE = 2048, QKVI_PAGE_SAMPLE = 512 };

/** Marks of a long text: the keys that receive most, and the queries that look farthest. */
enum { QKVI_PAGE_SINKS = 8, QKVI_PAGE_FAR = 64, QKVI_PAGE_STRIP = 300 };

typedef struct qkvi_page_places {
    int n_sinks, n_far; /* 0 for at most QKVI_PAGE_STRIP tokens, which all fit the screen */
    int64_t sinks[QKVI_PAGE_SINKS], far[QKVI_PAGE_FAR];
} qkvi_page_places;

typedef struct qkvi_page_measure {
    int side, rows; /* columns and rows of the thumbnail: min(n, 32), min(n_queries, 32) */
    uint8_t thumb[QKVI_PAGE_SIDE * QKVI_PAGE_SIDE]; /* qkvi_page_level of each cell */
    double error; /* largest |p from q and k in f16 - p| over the rows that were measured */
    int half;     /* 1: q and k are written as f16 */
    qkvi_page_places places;
} qkvi_page_measure;

/** The side of a tile of head->peaks, in queries and keys, and the number of tiles. */
static inline int64_t qkvi_page_tile(const qkv_page *page, const qkv_page_head *head) {
    return head->tile ? head->tile : (page->n + head->side - 1) / head->side;
}
static inline int64_t qkvi_page_tiles(const qkv_page *page, const qkv_page_head *head) {
    const int64_t tile = qkvi_page_tile(page, head);
    return (page->n_queries + tile - 1) / tile * head->side;
}

/** log2 p from -24 to 0 as 0 ... 255. */
uint8_t qkvi_page_level(float p);

/**
 * Measures heads first … first + n - 1, at most QKVI_PAGE_HEADS_AT_ONCE, into measures at the same
 * indices, on the threads of the page's context.
 */
enum { QKVI_PAGE_HEADS_AT_ONCE = 64 };
qkv_status qkvi_page_measure_heads(const qkv_page *page, int64_t first, int64_t n,
                                   qkvi_page_measure *measures, qkv_error *error);

/**
 * Writes the indices of the largest values > 0, at most `most`, in ascending order; of equal values
 * the first ones. Returns their number.
 */
int qkvi_page_largest(const float *values, int64_t n, int most, int64_t *places);

/** Adds q, k (f16 if half, else f32) and lse (f32) in this order as text (base85.h). */
void qkvi_page_head_add(qkvi_bytes *bytes, const qkv_page *page, const qkv_page_head *head,
                        int half);
/** Adds the coordinates of a map, u16 [n_queries + n][2], as text; and the bytes of these. */
void qkvi_page_map_add(qkvi_bytes *bytes, const qkv_page *page, const double *places);
size_t qkvi_page_map_bytes(const qkv_page *page);

/** The most characters of the file that a head takes. */
size_t qkvi_page_head_bytes(const qkv_page *page, const qkv_page_head *head, int half);

#endif
