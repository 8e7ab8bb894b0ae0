/*
 * Training examples: see examples.h. Each slot is filled by one task; the batch is then put
 * together in order.
 */
#include "model/train/examples.h"

#include <stdlib.h>
#include <string.h>

#include "attn/ctx.h"
#include "core/alloc.h"
#include "core/rng.h"

enum { MASK_PERCENT = 15, PURPOSE_MASK = 0x6d61736b /* "mask" */, MAX_LEN = 1 << 20 };

typedef struct qkvi_example {
    int64_t n, n_targets;
    int32_t *ids, *target_ids; /* [max_len] */
    uint8_t *types;
    int64_t *targets; /* positions */
    int32_t label;
    qkv_status status;
    qkv_error error;
} qkvi_example;

qkv_status qkvi_examples_make(qkvi_examples *examples, const qkvi_corpus *corpus,
                              const qkv_tokenizer *tokenizer, uint64_t seed, int64_t capacity,
                              int64_t max_len, qkv_error *error) {
    *examples = (qkvi_examples){ .corpus = corpus,
                                 .tokenizer = tokenizer,
                                 .seed = seed,
                                 .max_len = max_len,
                                 .capacity = capacity };
    examples->slots = qkvi_calloc_array((size_t)capacity, sizeof *examples->slots);
    int whole = examples->slots != NULL;
    for (int64_t s = 0; whole && s < capacity; s++) {
        qkvi_example *const slot = &examples->slots[s];
        slot->ids = qkvi_malloc_array((size_t)max_len, sizeof *slot->ids);
        slot->target_ids = qkvi_malloc_array((size_t)max_len, sizeof *slot->target_ids);
        slot->types = qkvi_malloc_array((size_t)max_len, sizeof *slot->types);
        slot->targets = qkvi_malloc_array((size_t)max_len, sizeof *slot->targets);
        whole = slot->ids && slot->target_ids && slot->types && slot->targets;
    }
    if (whole) return QKV_OK;
    qkvi_examples_free(examples);
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a batch");
}

void qkvi_examples_free(qkvi_examples *examples) {
    for (int64_t s = 0; examples->slots && s < examples->capacity; s++) {
        free(examples->slots[s].ids);
        free(examples->slots[s].target_ids);
        free(examples->slots[s].types);
        free(examples->slots[s].targets);
    }
    free(examples->slots);
    memset(examples, 0, sizeof *examples);
}

/* ---- One example ----------------------------------------------------------------------------- */

/* A token that is not one of the five special ones. */
static int32_t random_token(qkvi_rng *rng, const qkv_tokenizer *tokenizer) {
    const uint32_t size = (uint32_t)qkv_tokenizer_size(tokenizer);
    for (int attempt = 0; attempt < 100; attempt++) {
        const int32_t id = (int32_t)qkvi_rng_below(rng, size);
        int special = 0;
        for (int role = QKV_TOKEN_UNK; role <= QKV_TOKEN_MASK; role++)
            special |= id == qkv_tokenizer_special(tokenizer, (qkv_token_role)role);
        if (!special) return id;
    }
    return 0; /* a vocabulary of special tokens only */
}

/* Masks the token at a position, or not. The draws: told or not, how, and by what. */
static void mask_token(const qkvi_examples *examples, uint64_t index, int64_t at, int counts,
                       qkvi_example *slot) {
    qkvi_rng rng = qkvi_rng_make(examples->seed, PURPOSE_MASK, index * MAX_LEN + (uint64_t)at);
    if (qkvi_rng_below(&rng, 100) >= MASK_PERCENT) return;
    const uint32_t how = qkvi_rng_below(&rng, 10);
    if (counts) {
        slot->targets[slot->n_targets] = at;
        slot->target_ids[slot->n_targets++] = slot->ids[at];
    }
    if (how < 8)
        slot->ids[at] = qkv_tokenizer_special(examples->tokenizer, QKV_TOKEN_MASK);
    else if (how == 8)
        slot->ids[at] = random_token(&rng, examples->tokenizer);
}

static void make_example(const qkvi_examples *examples, qkvi_split split, int64_t index,
                         qkvi_example *slot) {
    qkvi_pair pair;
    qkv_encoding *encoding = NULL;
    qkvi_corpus_pair(examples->corpus, split, index, examples->seed, &pair);
    slot->status = qkv_tokenizer_encode(examples->tokenizer, pair.a, (size_t)pair.a_bytes,
                                        pair.b_bytes ? pair.b : NULL, (size_t)pair.b_bytes,
                                        &encoding, &slot->error);
    if (slot->status != QKV_OK) return;
    qkv_encoding_cut(encoding, examples->max_len);
    slot->n = encoding->n;
    slot->n_targets = 0;
    slot->label = pair.b_bytes == 0 ? -1 : !pair.is_next;
    memcpy(slot->ids, encoding->ids, (size_t)slot->n * sizeof *slot->ids);
    memcpy(slot->types, encoding->types, (size_t)slot->n * sizeof *slot->types);
    const uint64_t number = (uint64_t)index * 2 + (split == QKVI_SPLIT_HELD_OUT);
    for (int64_t at = 0; at < slot->n; at++)
        if (!encoding->special[at]) mask_token(examples, number, at, pair.counts_for_mlm, slot);
    qkv_encoding_free(encoding);
}

/* ---- A batch --------------------------------------------------------------------------------- */

typedef struct job {
    const qkvi_examples *examples;
    qkvi_split split;
    int64_t first;
} job;

static void fill_slot(void *argument, int index) {
    const job *const j = argument;
    make_example(j->examples, j->split, j->first + index, &j->examples->slots[index]);
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
        const int64_t token = qkvi_feed_add(batch, slot->n, slot->ids, slot->types, slot->label);
        for (int64_t t = 0; t < slot->n_targets; t++)
            qkvi_feed_target(batch, token + slot->targets[t], slot->target_ids[t]);
    }
    return QKV_OK;
}
