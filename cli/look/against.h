/*
 * `qkv look --against MODEL`: a source that runs two models of the same shape on one text, such as
 * a base model and one that was fine-tuned from it. Each head is compared with the head of the same
 * layer and number.
 */
#ifndef QKV_CLI_LOOK_AGAINST_H
#define QKV_CLI_LOOK_AGAINST_H

#include "look/text.h"

/* other: the session of the second model. against_free frees *made, after a failure too. */
qkv_status against_look(const struct text_job *job, const struct session *other,
                        const qkv_encoding *input, const struct what_if *what_if,
                        struct text_seen **made, qkv_error *error);
void against_free(struct text_seen *made);

#endif
