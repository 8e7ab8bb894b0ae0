/* Batches: see feed.h. */
#include "model/train/feed.h"

qkv_status qkvi_feed_make(qkvi_feed *batch, int64_t capacity, int64_t max_len, qkv_error *error) {
    int64_t tokens;
    memset(batch, 0, sizeof *batch);
    if (!qkvi_mul_i64(capacity, max_len, &tokens) || tokens > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "a batch of %lld times %lld tokens is too large", (long long)capacity,
                              (long long)max_len);
    batch->capacity = capacity;
    batch->max_len = max_len;
    batch->lengths = qkvi_malloc_array((size_t)capacity, sizeof *batch->lengths);
    batch->labels = qkvi_malloc_array((size_t)capacity, sizeof *batch->labels);
    batch->ids = qkvi_malloc_array((size_t)tokens, sizeof *batch->ids);
    batch->types = qkvi_malloc_array((size_t)tokens, sizeof *batch->types);
    batch->target_tokens = qkvi_malloc_array((size_t)tokens, sizeof *batch->target_tokens);
    batch->target_ids = qkvi_malloc_array((size_t)tokens, sizeof *batch->target_ids);
    batch->decoder_lengths = qkvi_malloc_array((size_t)capacity, sizeof *batch->decoder_lengths);
    batch->decoder_ids = qkvi_malloc_array((size_t)tokens, sizeof *batch->decoder_ids);
    if (!batch->lengths || !batch->labels || !batch->ids || !batch->types ||
        !batch->target_tokens || !batch->target_ids || !batch->decoder_lengths ||
        !batch->decoder_ids) {
        qkvi_feed_free(batch);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a batch");
    }
    batch->view = (qkvi_net_batch){ .lengths = batch->lengths,
                                    .ids = batch->ids,
                                    .types = batch->types,
                                    .target_tokens = batch->target_tokens,
                                    .target_ids = batch->target_ids,
                                    .labels = batch->labels };
    return QKV_OK;
}

void qkvi_feed_free(qkvi_feed *batch) {
    free(batch->lengths);
    free(batch->labels);
    free(batch->ids);
    free(batch->types);
    free(batch->target_tokens);
    free(batch->target_ids);
    free(batch->decoder_lengths);
    free(batch->decoder_ids);
    memset(batch, 0, sizeof *batch);
}

void qkvi_feed_clear(qkvi_feed *batch) {
    batch->view.n_sequences = batch->view.n_targets = batch->n_tokens = 0;
    batch->n_decoder_tokens = 0;
    batch->view.decoder_lengths = NULL;
    batch->view.decoder_ids = NULL;
}

int64_t qkvi_feed_add(qkvi_feed *batch, int64_t n, const int32_t *ids, const uint8_t *types,
                      int32_t label) {
    const int64_t first = batch->n_tokens, s = batch->view.n_sequences++;
    batch->lengths[s] = n;
    batch->labels[s] = label;
    memcpy(batch->ids + first, ids, (size_t)n * sizeof *ids);
    memcpy(batch->types + first, types, (size_t)n * sizeof *types);
    batch->n_tokens += n;
    return first;
}

int64_t qkvi_feed_add_decoder(qkvi_feed *batch, int64_t n, const int32_t *ids) {
    const int64_t first = batch->n_decoder_tokens;
    batch->decoder_lengths[batch->view.n_sequences - 1] = n;
    memcpy(batch->decoder_ids + first, ids, (size_t)n * sizeof *ids);
    batch->n_decoder_tokens += n;
    batch->view.decoder_lengths = batch->decoder_lengths;
    batch->view.decoder_ids = batch->decoder_ids;
    return first;
}

void qkvi_feed_target(qkvi_feed *batch, int64_t token, int32_t id) {
    batch->target_tokens[batch->view.n_targets] = token;
    batch->target_ids[batch->view.n_targets++] = id;
}
