/*
 * Attention received: column sums of the weights of a head, at any length, in memory of a few numbers a key.
 *
 *     r_j = sum_i exp(s_ij - lse_i) = exp(lse'_j),   lse'_j = ln sum_i exp(s_ji' + bias_i),  bias_i = -lse_i
 *
 * is the log-sum-exp of another attention, in which keys look at queries: q and k change places, the band
 * of what is seen is turned over, and an added mask, the same for every row, takes lse_i away. Queries
 * that see no key, and those whose weights are no numbers, are hidden.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "term.h"

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "attention received", done, total);
}

/* first <= j - i <= last as a window of key j on queries: -left <= i - (j + offset) <= right. */
static void turn_mask(const struct dump_mask *mask, qkv_attention_desc *d) {
    if (!mask->to && !mask->from) return;
    d->flags |= QKV_SET_WINDOW | QKV_SET_Q_OFFSET;
    d->q_offset = mask->to ? -mask->last : -mask->first;
    d->window_left = mask->to ? 0 : -1;
    d->window_right = !mask->from ? -1 : mask->to ? mask->last - mask->first : 0;
}

static qkv_status pass(const struct dump *dump, int64_t shown, const float *bias, float *o,
                       float *received) {
    static const float no_value;
    struct progress progress;
    qkv_call_options call = QKV_CALL_OPTIONS_INIT;
    qkv_attention_desc d;
    call.cancel = &cli_cancelled;
    call.progress = show_progress;
    call.progress_user = &progress;
    qkv_attention_desc_contiguous(&d, 1, 1, 1, dump->n_keys, dump->n_queries, dump->head_dim, 1);
    memset(d.v_stride, 0, sizeof d.v_stride);
    d.flags = QKV_SET_SCALE | QKV_SET_MASK;
    d.scale = (float)dump->scale;
    d.mask = bias;
    d.mask_type = QKV_MASK_F32;
    memset(d.mask_stride, 0, sizeof d.mask_stride);
    d.mask_stride[3] = 1;
    turn_mask(&dump->mask, &d);
    progress_begin(&progress, dump->options->common.quiet);
    const qkv_status status =
        qkv_attention_forward(dump->ctx, &d, dump_keys(dump, shown), dump_queries(dump, shown),
                              &no_value, o, received, &call);
    progress_end(&progress);
    return status;
}

qkv_status dump_received(const struct dump *dump, int64_t shown, float *received,
                         qkv_error *error) {
    const float *lse = dump->heads[shown].lse;
    float *bias = malloc((size_t)dump->n_queries * sizeof *bias),
          *o = malloc((size_t)dump->n_keys * sizeof *o);
    qkv_status status = QKV_ERR_MEMORY;
    if (bias && o && dump->mask.from && dump->mask.to && dump->mask.first > dump->mask.last) {
        for (int64_t j = 0; j < dump->n_keys; j++) received[j] = -INFINITY; /* nothing is seen */
        status = QKV_OK;
    } else if (bias && o) {
        for (int64_t i = 0; i < dump->n_queries; i++)
            bias[i] = isfinite(lse[i]) ? -lse[i] : -INFINITY;
        status = pass(dump, shown, bias, o, received);
    }
    for (int64_t j = 0; status == QKV_OK && j < dump->n_keys; j++) received[j] = expf(received[j]);
    free(bias);
    free(o);
    if (status == QKV_OK) return QKV_OK;
    return text_error(error, status, "%s",
                      status == QKV_ERR_MEMORY ? "out of memory"
                      : cli_cancelled          ? "nothing was written"
                                               : qkv_ctx_message(dump->ctx));
}
