/** One head of a page: what its numbers become in the file. */
#ifndef QKVI_PAGE_HEAD_H
#define QKVI_PAGE_HEAD_H

#include "files/base.h"
#include "qkv/page.h"

/** Maps of more rows are measured on some of them. */
enum { QKVI_PAGE_SIDE = 32, QKVI_PAGE_WHOLE = 2048, QKVI_PAGE_SAMPLE = 512 };

/** Where to go in a long text: keys that receive most, queries that look farthest; by place. */
enum { QKVI_PAGE_SINKS = 8, QKVI_PAGE_FAR = 64, QKVI_PAGE_STRIP = 300 };

typedef struct qkvi_page_places {
    int n_sinks, n_far; /* 0 up to QKVI_PAGE_STRIP tokens, which are all on the screen */
    int64_t sinks[QKVI_PAGE_SINKS], far[QKVI_PAGE_FAR];
} qkvi_page_places;

typedef struct qkvi_page_measure {
    int side, rows; /* of the thumbnail: min(n, 32), min(n_queries, 32) */
    uint8_t thumb[QKVI_PAGE_SIDE * QKVI_PAGE_SIDE]; /* log2 p from -24 to 0 as 0 ... 255 */
    double error; /* largest |p of f16 - p| over what was measured */
    int half;     /* 1: q and k are written as f16 */
    qkvi_page_places places;
} qkvi_page_measure;

/** Queries and keys of a tile of peaks, and how many there are. */
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
 * Heads first … first + n - 1, at most QKVI_PAGE_HEADS_AT_ONCE, into their places of measures; by
 * the threads of the page's context.
 */
enum { QKVI_PAGE_HEADS_AT_ONCE = 64 };
qkv_status qkvi_page_measure_heads(const qkv_page *page, int64_t first, int64_t n,
                                   qkvi_page_measure *measures, qkv_error *error);

/**
 * The places of the largest numbers above 0, at most `most`, in ascending order; of equal ones the
 * first. Returns how many.
 */
int qkvi_page_largest(const float *values, int64_t n, int most, int64_t *places);

/** Text (base85.h) of q, k and lse in this order: f16 or f32, f16 or f32, f32; little-endian. */
void qkvi_page_head_add(qkvi_bytes *bytes, const qkv_page *page, const qkv_page_head *head,
                        int half);
/** Text of the places of a map as u16, [n_queries + n][2]; and their bytes before. */
void qkvi_page_map_add(qkvi_bytes *bytes, const qkv_page *page, const double *places);
size_t qkvi_page_map_bytes(const qkv_page *page);

/** How many characters of the file a head takes, at most. */
size_t qkvi_page_head_bytes(const qkv_page *page, const qkv_page_head *head, int half);

#endif
