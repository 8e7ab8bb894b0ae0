/* Checking a batch, and sorting it by length: see batch.h. */
#include "model/arch/batch.h"

#include <string.h>

#include "core/status.h"

/* ---- Check ----------------------------------------------------------------------------------- */

qkv_status qkvi_batch_check_lengths(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                                    int64_t *n_rows, qkv_error *error) {
    int64_t total = 0;
    if (batch->n_sequences < 1 || batch->n_sequences > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a batch of %lld inputs is not between 1 and 2^31 - 1",
                              (long long)batch->n_sequences);
    for (int64_t b = 0; b < batch->n_sequences; b++) {
        if (batch->lengths[b] < 1 || batch->lengths[b] > params->max_len)
            return qkvi_error_set(
                error, QKV_ERR_SHAPE, "input %lld has %lld tokens; the model takes 1 to %lld",
                (long long)b, (long long)batch->lengths[b], (long long)params->max_len);
        total += batch->lengths[b];
    }
    if (total > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the batch has %lld tokens, more than 2^31 - 1",
                              (long long)total);
    *n_rows = total;
    return QKV_OK;
}

static qkv_status check_tokens(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                               int64_t n_rows, qkv_error *error) {
    for (int64_t t = 0; t < n_rows; t++) {
        if (batch->ids[t] < 0 || batch->ids[t] >= params->vocab_size)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "token %lld has the id %d; the model has ids 0 to %lld",
                                  (long long)t, batch->ids[t], (long long)params->vocab_size - 1);
        if (params->n_types > 0 && batch->types && batch->types[t] >= params->n_types)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "token %lld has the type %d; the model has types 0 to %lld",
                                  (long long)t, batch->types[t], (long long)params->n_types - 1);
    }
    return QKV_OK;
}

static qkv_status check_targets(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                                int64_t n_rows, qkv_error *error) {
    int64_t last = -1;
    for (int64_t i = 0; i < batch->n_targets; i++) {
        const int64_t token = batch->target_tokens[i];
        if (token <= last || token >= n_rows)
            return qkvi_error_set(
                error, QKV_ERR_ARGUMENT, "target_tokens[%lld] = %lld is not between %lld and %lld",
                (long long)i, (long long)token, (long long)last + 1, (long long)n_rows - 1);
        if (batch->target_ids[i] < 0 || batch->target_ids[i] >= params->vocab_size)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "target_ids[%lld] = %d is not between 0 and %lld", (long long)i,
                                  batch->target_ids[i], (long long)params->vocab_size - 1);
        last = token;
    }
    if (batch->n_targets > 0 && !params->has_mlm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no MLM head");
    return QKV_OK;
}

qkv_status qkvi_batch_check(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                            int64_t *n_rows, qkv_error *error) {
    QKV_TRY(qkvi_batch_check_lengths(params, batch, n_rows, error));
    QKV_TRY(check_tokens(params, batch, *n_rows, error));
    QKV_TRY(check_targets(params, batch, *n_rows, error));
    if (!batch->labels) return QKV_OK;
    if (!params->has_nsp) return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no NSP head");
    for (int64_t b = 0; b < batch->n_sequences; b++)
        if (batch->labels[b] < -1 || batch->labels[b] > 1)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "labels[%lld] = %d is not -1, 0 or 1",
                                  (long long)b, batch->labels[b]);
    return QKV_OK;
}

/* ---- Sort ------------------------------------------------------------------------------------ */

void qkvi_batch_cut(const qkvi_bert_params *params, const qkvi_bert_batch *batch, int64_t n_rows,
                    qkvi_cutter *cutter, qkvi_batch_rows *rows) {
    const int64_t n = batch->n_sequences;
    *rows = (qkvi_batch_rows){ .n_sequences = n, .n_rows = n_rows };
    rows->groups = qkvi_cut(cutter, n, sizeof *rows->groups);
    rows->ids = qkvi_cut(cutter, n_rows, sizeof *rows->ids);
    rows->types = qkvi_cut(cutter, n_rows, sizeof *rows->types);
    rows->places = qkvi_cut(cutter, n_rows, sizeof *rows->places);
    if (batch->change.seen) rows->seen = qkvi_cut(cutter, n_rows, sizeof *rows->seen);
    rows->row_of_token = qkvi_cut(cutter, n_rows, sizeof *rows->row_of_token);
    rows->first_row = qkvi_cut(cutter, n, sizeof *rows->first_row);
    rows->starts = qkvi_cut(cutter, params->max_len + 2, sizeof *rows->starts);
}

/* starts[len] = the first row of sequences of that length; groups of those there are. */
static void make_groups(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                        qkvi_batch_rows *rows) {
    int64_t *starts = rows->starts, row = 0;
    memset(starts, 0, (size_t)(params->max_len + 2) * sizeof *starts);
    for (int64_t b = 0; b < batch->n_sequences; b++) starts[batch->lengths[b]]++;
    rows->n_groups = 0;
    for (int64_t len = 1; len <= params->max_len; len++) {
        const int64_t count = starts[len];
        starts[len] = row;
        if (!count) continue;
        rows->groups[rows->n_groups++] = (qkvi_group){ row, count, len };
        row += count * len;
    }
}

int32_t qkvi_bert_place(const qkvi_bert_params *params, const int32_t *ids, int64_t i) {
    const int64_t padding = params->first_position - 1; /* -1: no id is it */
    int64_t place = i;
    if (padding < 0) return (int32_t)place;
    if (ids[i] == padding) return (int32_t)padding;
    for (int64_t j = 0; j < i; j++) place -= ids[j] == padding;
    return (int32_t)(params->first_position + place);
}

void qkvi_batch_sort(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                     qkvi_batch_rows *rows) {
    make_groups(params, batch, rows);
    int64_t token = 0;
    for (int64_t b = 0; b < batch->n_sequences; b++) {
        const int64_t len = batch->lengths[b], first = rows->starts[len];
        rows->first_row[b] = first;
        rows->starts[len] += len;
        for (int64_t i = 0; i < len; i++, token++) {
            rows->ids[first + i] = batch->ids[token];
            rows->types[first + i] = qkvi_bert_type(params, batch->types, token);
            rows->places[first + i] = qkvi_bert_place(params, batch->ids + token - i, i);
            if (rows->seen) rows->seen[first + i] = batch->change.seen[token];
            rows->row_of_token[token] = (int32_t)(first + i);
        }
    }
}
