/*
 * `qkv look --against MODEL`: two models of the same shape on one text as a source. Each head is
 * compared with the head in its place: those of a base model and of what was made of it.
 */
#ifndef QKV_CLI_LOOK_AGAINST_H
#define QKV_CLI_LOOK_AGAINST_H

#include "look/text.h"

/* other: the second model. *made is to be freed by against_free, after a failure, too. */
qkv_status against_look(const struct text_job *job, const struct session *other,
                        const qkv_encoding *input, const struct what_if *what_if,
                        struct text_seen **made, qkv_error *error);
void against_free(struct text_seen *made);

#endif
