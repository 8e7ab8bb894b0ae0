/*
 * Training examples: see examples.h. Each slot is filled by one task; the batch is then put
 * together in order.
 */
#include "model/train/examples.h"

#include "attn/ctx.h"

static int make_slot(qkvi_example *slot, size_t max_len) {
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
        whole = make_slot(&examples->slots[s], (size_t)examples->max_len);
    if (whole) return QKV_OK;
    qkvi_examples_free(examples);
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a batch");
}

void qkvi_examples_free(qkvi_examples *examples) {
    for (int64_t s = 0; examples->slots && s < examples->capacity; s++) {
        free(examples->slots[s].ids);
        free(examples->slots[s].decoder_ids);
        free(examples->slots[s].target_ids);
        free(examples->slots[s].types);
        free(examples->slots[s].targets);
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

qkv_status qkvi_examples_fill(qkv_ctx *ctx, qkvi_examples *examples, qkvi_split split,
                              int64_t first, int64_t n, qkvi_feed *batch, qkv_error *error) {
    job j = { examples, split, first };
    qkvi_feed_clear(batch);
    qkvi_pool_run(ctx->pool, (int)n, fill_slot, &j);
    for (int64_t s = 0; s < n; s++) {
        const qkvi_example *const slot = &examples->slots[s];
        if (slot->status != QKV_OK)
            return qkvi_error_set(error, slot->status, "pair %lld of the corpus: %s",
                                  (long long)(first + s), slot->error.message);
        int64_t token = qkvi_feed_add(batch, slot->n, slot->ids, slot->types, slot->label);
        if (slot->n_decoder > 0)
            token = qkvi_feed_add_decoder(batch, slot->n_decoder, slot->decoder_ids);
        for (int64_t t = 0; t < slot->n_targets; t++)
            qkvi_feed_target(batch, token + slot->targets[t], slot->target_ids[t]);
    }
    return QKV_OK;
}
