/*
 * Training examples: see examples.h. One task fills each slot; then the examples are appended to
 * the batch in order.
 */
#include "train/examples.h"

#include "attn/ctx.h"

/* ---- Batches --------------------------------------------------------------------------------- */

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
    batch->images = qkvi_malloc_array((size_t)capacity, sizeof *batch->images);
    if (!batch->images || !batch->lengths || !batch->labels || !batch->ids || !batch->types ||
        !batch->target_tokens || !batch->target_ids || !batch->decoder_lengths ||
        !batch->decoder_ids) {
        qkvi_feed_free(batch);
        return qkvi_no_memory(error, "a batch");
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
    free(batch->images);
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

/* What goes into the decoder over the sequence added last, likewise. */
static int64_t feed_add_decoder(qkvi_feed *batch, int64_t n, const int32_t *ids) {
    const int64_t first = batch->n_decoder_tokens;
    batch->decoder_lengths[batch->view.n_sequences - 1] = n;
    memcpy(batch->decoder_ids + first, ids, (size_t)n * sizeof *ids);
    batch->n_decoder_tokens += n;
    batch->view.decoder_lengths = batch->decoder_lengths;
    batch->view.decoder_ids = batch->decoder_ids;
    return first;
}

/* The word that stood at a token; tokens in ascending order. */
static void feed_target(qkvi_feed *batch, int64_t token, int32_t id) {
    batch->target_tokens[batch->view.n_targets] = token;
    batch->target_ids[batch->view.n_targets++] = id;
}

static int make_slot(qkvi_example *slot, size_t max_len, int64_t side) {
    const size_t n = (size_t)(3 * side * side);
    slot->rgb = n > 0 ? qkvi_malloc_array(n, 1) : NULL;
    slot->pixels = n > 0 ? qkvi_malloc_array(n, sizeof *slot->pixels) : NULL;
    if (n > 0 && (!slot->rgb || !slot->pixels)) return 0;
    slot->ids = qkvi_malloc_array(max_len, sizeof *slot->ids);
    slot->decoder_ids = qkvi_malloc_array(max_len, sizeof *slot->decoder_ids);
    slot->target_ids = qkvi_malloc_array(max_len, sizeof *slot->target_ids);
    slot->types = qkvi_malloc_array(max_len, sizeof *slot->types);
    slot->targets = qkvi_malloc_array(max_len, sizeof *slot->targets);
    return slot->ids && slot->decoder_ids && slot->target_ids && slot->types && slot->targets;
}

qkv_status qkvi_examples_make(qkvi_examples *examples, int64_t capacity, qkv_error *error) {
    examples->capacity = capacity;
    examples->slots = qkvi_calloc_array((size_t)capacity, sizeof *examples->slots);
    int whole = examples->slots != NULL;
    for (int64_t s = 0; whole && s < capacity; s++)
        whole = make_slot(&examples->slots[s], (size_t)examples->max_len, examples->image_side);
    if (whole) return QKV_OK;
    qkvi_examples_free(examples);
    return qkvi_no_memory(error, "a batch");
}

void qkvi_examples_free(qkvi_examples *examples) {
    for (int64_t s = 0; examples->slots && s < examples->capacity; s++) {
        free(examples->slots[s].ids);
        free(examples->slots[s].decoder_ids);
        free(examples->slots[s].target_ids);
        free(examples->slots[s].types);
        free(examples->slots[s].targets);
        free(examples->slots[s].rgb);
        free(examples->slots[s].pixels);
    }
    free(examples->slots);
    memset(examples, 0, sizeof *examples);
}

typedef struct job {
    const qkvi_examples *examples;
    qkvi_split split;
    int64_t first;
} job;

static void fill_slot(void *argument, int index) {
    const job *const j = argument;
    qkvi_example *const slot = &j->examples->slots[index];
    slot->n = slot->n_decoder = slot->n_targets = 0;
    slot->label = -1;
    slot->status = QKV_OK;
    j->examples->make(j->examples, j->split, j->first + index, slot);
}

qkv_status qkvi_examples_draw(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkv_error *error) {
    job j = { examples, split, first };
    qkvi_pool_run(ctx->pool, (int)n, fill_slot, &j);
    for (int64_t s = 0; s < n; s++)
        if (examples->slots[s].status != QKV_OK)
            return qkvi_error_set(error, examples->slots[s].status, "pair %lld of the corpus: %s",
                                  (long long)(first + s), examples->slots[s].error.message);
    return QKV_OK;
}

void qkvi_examples_take(const qkvi_examples *examples, int64_t from, int64_t end,
                        qkvi_feed *batch) {
    qkvi_feed_clear(batch);
    batch->view.images = examples->pictures ? batch->images : NULL;
    for (int64_t s = from; s < end; s++) {
        const qkvi_example *const slot = &examples->slots[s];
        batch->images[batch->view.n_sequences] =
            (qkvi_pixels){ slot->pixels, examples->image_side, examples->image_side };
        int64_t token = qkvi_feed_add(batch, slot->n, slot->ids, slot->types, slot->label);
        if (slot->n_decoder > 0)
            token = feed_add_decoder(batch, slot->n_decoder, slot->decoder_ids);
        for (int64_t t = 0; t < slot->n_targets; t++)
            feed_target(batch, token + slot->targets[t], slot->target_ids[t]);
    }
}

qkv_status qkvi_examples_fill(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkvi_feed *batch, qkv_error *error) {
    QKV_TRY(qkvi_examples_draw(ctx, examples, split, first, n, error));
    qkvi_examples_take(examples, 0, n, batch);
    return QKV_OK;
}
