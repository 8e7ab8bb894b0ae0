/*
 * Rules and masks of the cases of `qkv bench`. Masks hide one key in ten, at random.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "suite/suite.h"

enum { WINDOW = 512, DOCUMENT = 512, BLOCK = 64 };

bool bench_causal(struct bench *bench) {
    bench->desc.flags |= QKV_SET_CAUSAL;
    bench->pairs /= 2;
    return true;
}

/* Causal, and no further back than WINDOW. */
bool bench_window(struct bench *bench) {
    const double n = (double)bench->desc.len_q, seen = WINDOW + 1;
    bench->desc.flags |= QKV_SET_WINDOW;
    bench->desc.window_left = WINDOW;
    bench->desc.window_right = 0;
    bench->pairs = n * seen - seen * (seen - 1) / 2;
    return true;
}

/* Documents of DOCUMENT tokens, one after the other. */
bool bench_segments(struct bench *bench) {
    const int64_t n = bench->desc.len_k;
    int32_t *segments = malloc((size_t)n * sizeof *segments);
    bench->rule = segments;
    if (!segments) return false;
    for (int64_t j = 0; j < n; j++) segments[j] = (int32_t)(j / DOCUMENT);
    bench->desc.flags |= QKV_SET_SEGMENTS;
    bench->desc.seg_q = bench->desc.seg_k = segments;
    bench->pairs = (double)n * DOCUMENT;
    return true;
}

/* One block of BLOCK x BLOCK in four, at random, and the diagonal; the same for all heads. */
bool bench_blocks(struct bench *bench) {
    qkv_attention_desc *d = &bench->desc;
    const int64_t rows = (d->len_q + BLOCK - 1) / BLOCK, columns = (d->len_k + BLOCK - 1) / BLOCK;
    const size_t offset_bytes = (size_t)(rows + 1) * sizeof(int64_t);
    int64_t *offsets = calloc(1, offset_bytes + (size_t)(rows * columns) * sizeof(int32_t));
    bench->rule = offsets;
    if (!offsets) return false;
    int32_t *index = (int32_t *)(void *)(offsets + rows + 1);
    uint32_t state = 1;
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = offsets[r];
        for (int64_t c = 0; c < columns; c++)
            if (c == r || bench_random(&state) < (1U << 24) / 4) index[n++] = (int32_t)c;
        offsets[r + 1] = n;
    }
    d->flags |= QKV_SET_BLOCK_MASK;
    d->block_len = BLOCK;
    d->block_offsets = offsets;
    d->block_index = index;
    bench->pairs = (double)offsets[rows] * BLOCK * BLOCK; /* lengths are multiples of BLOCK */
    return true;
}

/*
 * Sequences of len_q / n_batch, twice as much, … len_q tokens, packed one after another: arrays are
 * fuller than they need be.
 */
bool bench_packed(struct bench *bench) {
    qkv_attention_desc *d = &bench->desc;
    int64_t *cu = calloc((size_t)d->n_batch + 1, sizeof *cu);
    bench->rule = cu;
    if (!cu) return false;
    bench->pairs = 0;
    for (int64_t b = 0; b < d->n_batch; b++) {
        const int64_t n = d->len_q * (b + 1) / d->n_batch;
        cu[b + 1] = cu[b] + n;
        bench->pairs += (double)n * (double)n / (double)d->n_batch;
    }
    const int64_t all = cu[d->n_batch];
    const int64_t q[] = { 0, all * d->head_dim, d->head_dim };
    const int64_t v[] = { 0, all * d->head_dim_v, d->head_dim_v }, lse[] = { 0, all, 1 };
    bench->bytes *= (double)all / (double)(d->n_batch * d->len_q);
    memcpy(d->q_stride, q, sizeof q);
    memcpy(d->k_stride, q, sizeof q);
    memcpy(d->v_stride, v, sizeof v);
    memcpy(d->o_stride, v, sizeof v);
    memcpy(d->lse_stride, lse, sizeof lse);
    d->flags |= QKV_SET_CU_SEQLENS;
    d->cu_seqlens_q = d->cu_seqlens_k = cu;
    return true;
}

bool bench_packed_causal(struct bench *bench) { return bench_packed(bench) && bench_causal(bench); }

/* A mask of all batches and heads, [1][1][queries][keys]; the keys are a multiple of 8. */
static bool random_mask(struct bench *bench, qkv_mask_type type) {
    const int64_t keys = bench->desc.len_k, n = bench->desc.len_q * keys;
    float *const numbers = calloc((size_t)n, sizeof *numbers);
    uint8_t *const bytes = (uint8_t *)numbers;
    uint32_t state = 1;
    bench->rule = numbers;
    bench->desc.flags |= QKV_SET_MASK;
    bench->desc.mask = numbers;
    bench->desc.mask_type = type;
    bench->desc.mask_stride[2] = type == QKV_MASK_BITS ? keys / 8 : keys;
    bench->desc.mask_stride[3] = 1;
    for (int64_t i = 0; numbers && i < n; i++) {
        const bool seen = bench_random(&state) >= (1U << 24) / 10;
        switch (type) {
        case QKV_MASK_BOOL: bytes[i] = seen; break;
        case QKV_MASK_BITS: bytes[i / 8] = (uint8_t)(bytes[i / 8] | seen << i % 8); break;
        default: numbers[i] = seen ? 0 : -INFINITY;
        }
    }
    return numbers;
}

bool bench_bools(struct bench *bench) { return random_mask(bench, QKV_MASK_BOOL); }
bool bench_bits(struct bench *bench) { return random_mask(bench, QKV_MASK_BITS); }
bool bench_numbers(struct bench *bench) { return random_mask(bench, QKV_MASK_F32); }
