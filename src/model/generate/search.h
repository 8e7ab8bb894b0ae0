/*
 * The searches: which token comes next, in each of the sequences that a model writes side by side.
 */
#ifndef QKVI_GENERATE_SEARCH_H
#define QKVI_GENERATE_SEARCH_H

#include "model/generate/lm.h"
#include "model/generate/plan.h"

/*
 * Slot 0 of lm has been given the prompt [plan->lm.prompt_len]; logits [n_slots][vocab] begin with the
 * row behind it, and are overwritten. *generation is NULL on error.
 */
qkv_status qkvi_search(const qkvi_plan *plan, const qkvi_lm *lm, const int32_t *prompt,
                       float *logits, qkv_generation **generation, qkv_error *error);

/* A sequence that is being written: prompt and new tokens. */
typedef struct qkvi_draft {
    int32_t *ids; /* [max_total] */
    int64_t n;
    double score;
} qkvi_draft;

/* Two searches; sequences are [plan->n_slots] of zeros, *n of them are filled, but for their texts. */
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
