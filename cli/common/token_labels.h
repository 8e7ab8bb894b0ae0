/*
 * What a classifier says of each token of a text: its label, or where the answer to a question is
 * (qkv_model_answers).
 */
#ifndef QKV_CLI_COMMON_TOKEN_LABELS_H
#define QKV_CLI_COMMON_TOKEN_LABELS_H

#include "common/job.h"
#include "common/term.h"

/*
 * [n][n_labels] probabilities in *labels, which the caller frees; NULL for a model without such a
 * classifier.
 */
qkv_status token_labels_make(const struct session *session, const qkv_run *run,
                             const qkv_encoding *input, double **labels, qkv_error *error);
/* Prints the likeliest label of each token, or the `top` likeliest answers. */
void token_labels_print(const struct session *session, const qkv_encoding *input,
                        const double *labels, int64_t top, struct term *term);
/*
 * Adds "token_labels", for each token [{label, probability}] in the model's order; or "answers",
 * [{begin, end, text, probability}] by token, end included, null of both: there is none; and
 * "begins" and "ends", a probability for each token.
 */
void token_labels_json(const struct session *session, const qkv_encoding *input,
                       const double *labels, int64_t top, json_t *object);

#endif
