/*
 * Options after they are read: checked once, defaults filled in, limits of the model applied. Below
 * this line they are right.
 */
#ifndef QKVI_GENERATE_PLAN_H
#define QKVI_GENERATE_PLAN_H

#include "files/base.h"
#include "model/generate/row.h"
#include "qkv/generate.h"

enum {
    QKVI_BEAMS_MAX = 256,
    QKVI_EOS_MAX = 64,
    QKVI_STOPS_MAX = 64,
    QKVI_STOP_BYTES_MAX = 4096,
    QKVI_BAD_WORDS_MAX = 65536
};

/* What a search must know about the model. */
typedef struct qkvi_lm_facts {
    int64_t vocab, max_len; /* max_len: tokens of a sequence of the decoder, prompt and all */
    int64_t prompt_len;     /* of the decoder, at least 1 */
    /*
     * Tokens that end a text, QKVI_EOS_MAX at most, and sequences that are never written, as bad
     * words.
     */
    int64_t n_eos, n_never;
    const int64_t *eos;
    const int32_t *never;
    const int64_t *never_lengths;
} qkvi_lm_facts;

typedef struct qkvi_plan {
    qkv_generate_options o;
    qkvi_lm_facts lm;
    int64_t max_total;  /* tokens of a sequence, at most: more than prompt_len */
    bool model_limits;  /* max_total is the model's length, not prompt_len + max_new */
    bool ends_early;    /* and that is less than was asked for */
    int64_t n_slots;    /* sequences side by side */
    const int32_t *eos; /* [n_eos], the caller's or own_eos */
    int32_t own_eos[QKVI_EOS_MAX];
    int64_t n_eos;
} qkvi_plan;

/*
 * options: nullable. The plan keeps the caller's pointers, and must not be moved. ARGUMENT, SHAPE,
 * VERSION.
 */
qkv_status qkvi_plan_make(qkvi_plan *plan, const qkv_generate_options *options,
                          const qkvi_lm_facts *lm, qkv_error *error);

static inline bool qkvi_plan_is_eos(const qkvi_plan *plan, int32_t id) {
    for (int64_t i = 0; i < plan->n_eos; i++)
        if (plan->eos[i] == id) return true;
    return false;
}

/*
 * What happens to a row before a token is chosen from it: transformers' logits processors
 * (generation/logits_process.py), each in its place. -infinity is "forbidden".
 */

/* Memory of one call, for a vocabulary; it may be used again. */
typedef struct qkvi_scratch {
    uint8_t *marks;       /* [vocab], all 0 between calls */
    qkvi_top_item *items; /* [vocab]; NULL if nothing is sampled */
} qkvi_scratch;

qkv_status qkvi_scratch_make(const qkvi_plan *plan, qkvi_scratch *scratch, qkv_error *error);
void qkvi_scratch_free(qkvi_scratch *scratch);

/* x [vocab] is the row after ids [n], prompt and all. */
void qkvi_process(const qkvi_plan *plan, const qkvi_scratch *scratch, int64_t n, const int32_t *ids,
                  double *x);

#endif
