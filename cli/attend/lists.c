/*
 * Lists of integers and blocks that `qkv attend` reads: where packed sequences begin, and which
 * blocks of keys a block of queries sees.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "attend/attend.h"

/* ---- Packed sequences ------------------------------------------------------------------------ */

/* [n + 1] integers from 0 to `rows`, never falling; *longest is the greatest step. */
static int read_starts(const char *option, const char *path, bool quiet, int64_t rows,
                       qkv_array **array, int64_t *longest) {
    char shape[200];
    const int code = attend_read_array(option, path, quiet, QKV_ARRAY_I64, array);
    if (code) return code;
    attend_as_list(path, *array);
    if ((*array)->rank != 1 || (*array)->shape[0] < 1)
        return cli_fail("%s %s: shape %s is not [N + 1]", option, path,
                        attend_shape_text(*array, shape));
    const int64_t n = (*array)->shape[0] - 1, *at = (*array)->data;
    if (at[0] != 0) return cli_fail("%s %s: begins with %" PRId64 ", not 0", option, path, at[0]);
    for (int64_t b = 0; b < n; b++) {
        if (at[b + 1] < at[b])
            return cli_fail("%s %s: falls from %" PRId64 " to %" PRId64, option, path, at[b],
                            at[b + 1]);
        if (at[b + 1] - at[b] > *longest) *longest = at[b + 1] - at[b];
    }
    if (at[n] != rows)
        return cli_fail("%s %s: ends with %" PRId64 ", but the arrays have %" PRId64 " rows",
                        option, path, at[n], rows);
    return EXIT_OK;
}

/* The last query of each sequence sees its last key. */
static int align_right(struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    problem->offsets = calloc((size_t)d->n_batch + 1, sizeof(int64_t));
    if (!problem->offsets) return cli_fail("out of memory");
    for (int64_t b = 0; b < d->n_batch; b++)
        problem->offsets[b] = (d->cu_seqlens_k[b + 1] - d->cu_seqlens_k[b]) -
                              (d->cu_seqlens_q[b + 1] - d->cu_seqlens_q[b]);
    d->q_offsets = problem->offsets;
    return EXIT_OK;
}

int attend_packed_read(const struct attend_options *options, const struct attend_rules *rules,
                       struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    int64_t longest_q = 0, longest_k = 0;
    if (!options->cu_seqlens) return EXIT_OK;
    if (d->n_batch != 1)
        return cli_fail("--cu-seqlens: --q has %" PRId64 " batches; sequences are packed in one",
                        d->n_batch);
    if (!options->cu_seqlens_k && d->len_q != d->len_k)
        return cli_fail("--cu-seqlens: %" PRId64 " queries and %" PRId64
                        " keys: name where the keys' sequences begin with --cu-seqlens-k",
                        d->len_q, d->len_k);
    const bool quiet = options->common.quiet;
    int code = read_starts("--cu-seqlens", options->cu_seqlens, quiet, d->len_q, &problem->cu_q,
                           &longest_q);
    if (code) return code;
    if (options->cu_seqlens_k)
        code = read_starts("--cu-seqlens-k", options->cu_seqlens_k, quiet, d->len_k, &problem->cu_k,
                           &longest_k);
    else
        longest_k = longest_q;
    if (code) return code;
    const qkv_array *keys = problem->cu_k ? problem->cu_k : problem->cu_q;
    if (keys->shape[0] != problem->cu_q->shape[0])
        return cli_fail("--cu-seqlens has %" PRId64 " sequences, --cu-seqlens-k %" PRId64,
                        problem->cu_q->shape[0] - 1, keys->shape[0] - 1);
    d->flags |= QKV_SET_CU_SEQLENS;
    d->cu_seqlens_q = problem->cu_q->data;
    d->cu_seqlens_k = keys->data;
    d->n_batch = problem->cu_q->shape[0] - 1;
    d->len_q = longest_q;
    d->len_k = longest_k;
    d->q_stride[0] = d->k_stride[0] = d->v_stride[0] = d->o_stride[0] = d->lse_stride[0] = 0;
    return rules->seen.causal == CAUSAL_BOTTOM_RIGHT ? align_right(problem) : EXIT_OK;
}

/* ---- Visible blocks -------------------------------------------------------------------------- */

static int check_blocks(const char *path, const qkv_array *blocks, const int64_t full[4],
                        int64_t block_len) {
    char note[80];
    int64_t stride[4]; /* lists have their own */
    snprintf(note, sizeof note, ", blocks of %" PRId64 " queries and keys (--block-len)",
             block_len);
    const struct attend_fit fit = { { full[0], full[1], full[2], full[3] },
                                    .n_repeat = 2,
                                    .note = note };
    return attend_broadcast("--block-mask", path, blocks, &fit, stride);
}

/* Rows of booleans become lists of what is true. */
static void list_blocks(const qkv_array *blocks, int64_t n_rows, int64_t rows_a_list,
                        struct attend_problem *problem) {
    const uint8_t *see = blocks->data;
    const int64_t n_columns = attend_size(blocks, 3);
    int64_t n = 0, *offset = problem->block_offsets;
    for (int64_t r = 0; r < n_rows; r++) {
        if (r % rows_a_list == 0) *offset++ = n;
        for (int64_t c = 0; c < n_columns; c++)
            if (see[r * n_columns + c]) problem->block_index[n++] = (int32_t)c;
        *offset++ = n;
    }
}

int attend_blocks_read(const struct attend_options *options, struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    const char *path = options->block_mask;
    const int64_t len = options->block_len.set ? options->block_len.value : 64;
    const int64_t full[4] = { d->n_batch, d->n_heads, (d->len_q + len - 1) / len,
                              (d->len_k + len - 1) / len };
    qkv_array *blocks = NULL;
    if (!path) return EXIT_OK;
    int code =
        attend_read_array("--block-mask", path, options->common.quiet, QKV_ARRAY_BOOL, &blocks);
    if (!code) code = check_blocks(path, blocks, full, len);
    const int64_t n_lists = code ? 0 : attend_size(blocks, 0) * attend_size(blocks, 1);
    const int64_t n_rows = n_lists * full[2];
    if (!code) {
        problem->block_offsets = malloc((size_t)(n_rows + n_lists + 1) * sizeof(int64_t));
        problem->block_index = malloc((size_t)(blocks->n_elems + 1) * sizeof(int32_t));
        if (!problem->block_offsets || !problem->block_index) code = cli_fail("out of memory");
    }
    if (!code && n_rows == 0) /* lists of no rows */
        for (int64_t n = 0; n <= n_lists; n++) problem->block_offsets[n] = 0;
    if (!code) {
        list_blocks(blocks, n_rows, full[2], problem);
        d->flags |= QKV_SET_BLOCK_MASK;
        d->block_len = len;
        d->block_offsets = problem->block_offsets;
        d->block_index = problem->block_index;
        d->block_offsets_stride[1] = attend_size(blocks, 1) > 1 ? full[2] + 1 : 0;
        d->block_offsets_stride[0] =
            attend_size(blocks, 0) > 1 ? attend_size(blocks, 1) * (full[2] + 1) : 0;
    }
    qkv_array_free(blocks);
    return code;
}
