/* What a model's head says of a text: words for every [MASK], or which tokens were replaced. */
#ifndef QKV_CLI_COMMON_PREDICT_H
#define QKV_CLI_COMMON_PREDICT_H

#include "common/job.h"
#include "common/term.h"

struct predictions {
    bool is_next;         /* of one place: tokens that follow it, instead of words for blanks */
    int64_t n_masks, top; /* top: candidates of each, at most the vocabulary */
    int64_t *positions;
    qkv_candidate *candidates; /* [n_masks][top] */
};

/* What the model's blank is called, escaped for printing: "[MASK]", "<mask>"; malloc. */
char *mask_name(const struct session *session);

int64_t count_masks(const struct session *session, const qkv_encoding *input);

/* Asks the MLM head. Free with predictions_free, also after a failure. */
qkv_status predictions_make(const struct session *session, const qkv_run *run,
                            const qkv_encoding *input, int64_t top, struct predictions *predictions,
                            qkv_error *error);
/* Asks the head of a language model what follows a token of its only stack. */
qkv_status predictions_next(const struct session *session, const qkv_run *run, int64_t position,
                            int64_t top, struct predictions *predictions, qkv_error *error);
void predictions_free(struct predictions *predictions);

void predictions_print(const struct session *session, const struct predictions *predictions,
                       struct term *term);
/*
 * [{position, candidates: [{token, id, probability}]}]; of what follows a token only its
 * candidates.
 */
json_t *predictions_json(const struct session *session, const struct predictions *predictions);

/*
 * What a classifier says of a text: [n_labels] probabilities or values, as the model's labels are,
 * to be freed by free(); NULL for a model without a classifier.
 */
qkv_status labels_make(const struct session *session, const qkv_run *run, double **labels,
                       qkv_error *error);
/* The largest `top` of them. */
void labels_print(const struct session *session, const double *labels, int64_t top,
                  struct term *term);
/*
 * [{label, probability or value}] in the order of the model; a label without a name is its number.
 */
json_t *labels_json(const struct session *session, const double *labels);

/*
 * ELECTRA's judgement: how likely each token is to stand in place of another one, [n] numbers to be
 * freed by free(); NULL for a model without such a head.
 */
qkv_status replaced_make(const struct session *session, const qkv_run *run,
                         const qkv_encoding *input, double **replaced, qkv_error *error);
/* The likeliest `top` of them. */
void replaced_print(const struct session *session, const qkv_encoding *input,
                    const double *replaced, int64_t top, struct term *term);
json_t *replaced_json(const qkv_encoding *input, const double *replaced);

#endif
