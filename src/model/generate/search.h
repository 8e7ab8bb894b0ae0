/*
 * The searches: which token comes next, in each of the sequences that a model writes side by side.
 */
#ifndef QKVI_GENERATE_SEARCH_H
#define QKVI_GENERATE_SEARCH_H

#include "model/generate/plan.h"
#include "qkv/generate.h"

/*
 * What a search sees of a model: tokens in, logits out, for a number of sequences side by side. The
 * model keeps what it computed for each (keys and values) in slots 0 ... n - 1. Before a search,
 * slot 0 has been given the prompt.
 */

typedef struct qkvi_lm {
    void *self;
    /* Appends ids[i] to slot i < n; logits [n][vocab] are of what follows. */
    qkv_status (*step)(void *self, int64_t n, const int32_t *ids, float *logits, qkv_error *error);
    /* Slot i < n goes on from what slot from[i] was; n may be more than there were. */
    qkv_status (*reorder)(void *self, int64_t n, const int32_t *from, qkv_error *error);
} qkvi_lm;

/*
 * Slot 0 of lm has been given the prompt [plan->lm.prompt_len]; logits [n_slots][vocab] begin with
 * the row behind it, and are overwritten. *generation is NULL on error.
 */
qkv_status qkvi_search(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                       float *logits, qkv_generation **generation, qkv_error *error);

/* A sequence that is being written: prompt and new tokens. */
typedef struct qkvi_draft {
    int32_t *ids; /* [max_total] */
    int64_t n;
    double score;
} qkvi_draft;

/*
 * Two searches; sequences are [plan->n_slots] of zeros, *n of them are filled, but for their texts.
 */
qkv_status qkvi_search_singly(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                              float *logits, qkv_generation *made, qkv_error *error);
qkv_status qkvi_search_beams(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                             float *logits, qkv_generation *made, qkv_error *error);

/* Drafts that begin with the prompt; NULL without memory. */
qkvi_draft *qkvi_drafts_make(const qkvi_plan *plan, const int32_t *prompt, int64_t n);
void qkvi_drafts_free(qkvi_draft *drafts, int64_t n); /* NULL is allowed */

/* Copies what is new of a draft. */
qkv_status qkvi_sequence_take(const qkvi_plan *plan, const qkvi_draft *draft, qkv_end end,
                              qkv_sequence *sequence, qkv_error *error);

/* Whether ids [n], prompt and all, are complete, and why. */
qkv_status qkvi_is_complete(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool *complete,
                            qkv_end *end, qkv_error *error);

/* CANCELLED if the caller wants no more. */
qkv_status qkvi_still_wanted(const qkvi_plan *plan, qkv_error *error);

/* Streams of random numbers (core/rng.h). */
enum { QKVI_DRAW_TOKEN = 0x67656e31, QKVI_DRAW_BEAMS = 0x67656e32 };

#endif
