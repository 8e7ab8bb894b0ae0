/*
 * Reads what `qkv attend` takes besides q, k, v and the mask into the descriptor: segments, packed
 * bits of a mask, ALiBi slopes, sinks, and the gradient of lse.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdlib.h>

#include "attend/attend.h"

int attend_read_per_head(const char *option, const char *path, bool quiet, int64_t n_heads,
                         qkv_array **array, const float **values) {
    if (!path) return EXIT_OK;
    const int code = attend_read_array(option, path, quiet, QKV_ARRAY_F32, array);
    if (code) return code;
    char shape[200];
    attend_as_list(path, *array);
    if ((*array)->rank != 1 || (*array)->shape[0] != n_heads)
        return cli_fail("%s %s: shape %s is not [H], H = %" PRId64, option, path,
                        attend_shape_text(*array, shape), n_heads);
    *values = (*array)->data;
    return EXIT_OK;
}

/* Integers [B,L] or [L] as 32-bit identities; *stride is that of the batch. */
static int read_segments(const char *option, const char *path, bool quiet, int64_t n_batch,
                         int64_t length, int32_t **ids, int64_t *stride) {
    qkv_array *array = NULL;
    char shape[200];
    int code = attend_read_array(option, path, quiet, QKV_ARRAY_I64, &array);
    const int64_t *values = code ? NULL : array->data;
    if (!code && (array->rank < 1 || array->rank > 2 || array->shape[array->rank - 1] != length ||
                  (array->rank == 2 && array->shape[0] != n_batch && array->shape[0] != 1)))
        code = cli_fail("%s %s: shape %s is neither [B,L] nor [L], B = %" PRId64 ", L = %" PRId64,
                        option, path, attend_shape_text(array, shape), n_batch, length);
    if (!code && !(*ids = malloc((size_t)array->n_elems * sizeof **ids + 1)))
        code = cli_fail("out of memory");
    for (int64_t n = 0; !code && n < array->n_elems; n++) {
        (*ids)[n] = (int32_t)values[n];
        if (values[n] < INT32_MIN || values[n] > INT32_MAX)
            code = cli_fail("%s %s: %" PRId64 " does not fit 32 bits", option, path, values[n]);
    }
    if (!code) *stride = array->rank == 2 && array->shape[0] > 1 ? length : 0;
    qkv_array_free(array);
    return code;
}

static int apply_segments(const struct attend_options *options, struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    if (!options->segments) return EXIT_OK;
    const bool quiet = options->common.quiet;
    int code = read_segments("--segments", options->segments, quiet, d->n_batch, d->len_k,
                             &problem->seg_k, &d->seg_k_stride);
    if (code) return code;
    d->flags |= QKV_SET_SEGMENTS;
    d->seg_k = d->seg_q = problem->seg_k;
    d->seg_q_stride = d->seg_k_stride;
    if (options->segments_q) {
        code = read_segments("--segments-q", options->segments_q, quiet, d->n_batch, d->len_q,
                             &problem->seg_q, &d->seg_q_stride);
        d->seg_q = problem->seg_q;
    } else if (d->len_q != d->len_k) {
        code = cli_fail("--segments: %" PRId64 " queries and %" PRId64
                        " keys: name the queries' segments with --segments-q",
                        d->len_q, d->len_k);
    }
    return code;
}

/* Integers 0 ... 255, [..,ceil(Lk / 8)], aligned on the right; they become bytes. */
static int apply_bits(const char *path, bool quiet, struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    if (!path) return EXIT_OK;
    int code = attend_read_array("--mask-bits", path, quiet, QKV_ARRAY_I64, &problem->mask);
    if (code) return code;
    const qkv_array *mask = problem->mask;
    const struct attend_fit fit = {
        { d->n_batch, d->n_heads, d->len_q, d->len_k / 8 + (d->len_k % 8 != 0) },
        .n_repeat = 3,
        .note = ", the last of them bytes of 8 keys",
    };
    code = attend_broadcast("--mask-bits", path, mask, &fit, d->mask_stride);
    if (code) return code;
    problem->bits = malloc((size_t)mask->n_elems + 1);
    if (!problem->bits) return cli_fail("out of memory");
    for (int64_t n = 0; n < mask->n_elems; n++) {
        const int64_t byte = ((const int64_t *)mask->data)[n];
        if (byte < 0 || byte > 255)
            return cli_fail("--mask-bits %s: %" PRId64 " is not a byte", path, byte);
        problem->bits[n] = (uint8_t)byte;
    }
    d->flags |= QKV_SET_MASK;
    d->mask = problem->bits;
    d->mask_type = QKV_MASK_BITS;
    return EXIT_OK;
}

static int read_grad_lse(const char *path, bool quiet, struct attend_problem *problem) {
    if (!path) return EXIT_OK;
    const int code =
        attend_read_array("--grad-lse", path, quiet, QKV_ARRAY_F32, &problem->grad_lse);
    if (code) return code;
    const qkv_array *grad = problem->grad_lse;
    const qkv_array *q = problem->q;
    const int64_t full[3] = { attend_size(q, 0), attend_size(q, 1), attend_size(q, 2) };
    bool fits = grad->rank == problem->rank - 1 - (problem->q_is_vector ? 1 : 0);
    for (int n = 0; fits && n < grad->rank; n++) fits = grad->shape[n] == full[3 - grad->rank + n];
    char shape[200];
    return fits ? EXIT_OK
                : cli_fail("--grad-lse %s: shape %s is not that of lse, q's without the last", path,
                           attend_shape_text(grad, shape));
}

int attend_modifiers_read(const struct attend_options *options, struct attend_problem *problem) {
    qkv_attention_desc *d = &problem->desc;
    const bool quiet = options->common.quiet;
    int code = apply_segments(options, problem);
    if (!code) code = apply_bits(options->mask_bits, quiet, problem);
    if (!code)
        code = attend_read_per_head("--alibi", options->alibi, quiet, d->n_heads, &problem->alibi,
                                    &d->alibi_slopes);
    if (!code)
        code = attend_read_per_head("--sink", options->sink, quiet, d->n_heads, &problem->sink,
                                    &d->sinks);
    if (!code) code = read_grad_lse(options->grad_lse, quiet, problem);
    if (code) return code;
    if (options->alibi) d->flags |= QKV_SET_ALIBI;
    if (options->sink) d->flags |= QKV_SET_SINKS;
    return EXIT_OK;
}
