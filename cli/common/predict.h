/*
 * What the output head of a model says of a text: candidates for each [MASK] or for the next token,
 * probabilities of labels, or which tokens were replaced.
 */
#ifndef QKV_CLI_COMMON_PREDICT_H
#define QKV_CLI_COMMON_PREDICT_H

#include "common/job.h"
#include "common/term.h"

struct predictions {
    bool is_next;         /* candidates for the token after one position, not for masks */
    int64_t n_masks, top; /* top: candidates for each mask, at most the size of the vocabulary */
    int64_t *positions;   /* [n_masks] */
    qkv_candidate *candidates; /* [n_masks][top] */
};

/* The mask token of the model, "[MASK]" or "<mask>", escaped for printing; from malloc. */
char *mask_name(const struct session *session);

int64_t count_masks(const struct session *session, const qkv_encoding *input);

/* Candidates for each mask, by the MLM head. predictions_free also after a failure. */
qkv_status predictions_make(const struct session *session, const qkv_run *run,
                            const qkv_encoding *input, int64_t top, struct predictions *predictions,
                            qkv_error *error);
/* Candidates for the token after `position`, by the head of a causal language model. */
qkv_status predictions_next(const struct session *session, const qkv_run *run, int64_t position,
                            int64_t top, struct predictions *predictions, qkv_error *error);
void predictions_free(struct predictions *predictions);

/* Prints a line of a name, which may be NULL, and how likely it is. */
void predictions_bar(const char *name, double probability, struct term *term);
void predictions_print(const struct session *session, const struct predictions *predictions,
                       struct term *term);
/*
 * [{position, candidates: [{token, id, probability}]}]; for a next token only the array of
 * candidates.
 */
json_t *predictions_json(const struct session *session, const struct predictions *predictions);

/*
 * The output of a classifier: [n_labels] probabilities, or values of a regression, in *labels,
 * which the caller frees; NULL for a model without a classifier of texts.
 */
qkv_status labels_make(const struct session *session, const qkv_run *run, double **labels,
                       qkv_error *error);
/* The model's name of a label, or its number. */
enum { LABEL_ROOM = 24 };
const char *label_name(const struct session *session, int64_t label, char number[LABEL_ROOM]);
/* Prints the `top` largest of them. */
void labels_print(const struct session *session, const double *labels, int64_t top,
                  struct term *term);
/*
 * [{label, probability or value}] in the model's order; a label without a name is called by number.
 */
json_t *labels_json(const struct session *session, const double *labels);

/*
 * The output of ELECTRA's discriminator: [n] probabilities that a token was replaced, in *replaced,
 * which the caller frees; NULL for a model without such a head.
 */
qkv_status replaced_make(const struct session *session, const qkv_run *run,
                         const qkv_encoding *input, double **replaced, qkv_error *error);
/* Prints the `top` tokens with the largest probability. */
void replaced_print(const struct session *session, const qkv_encoding *input,
                    const double *replaced, int64_t top, struct term *term);

#endif
