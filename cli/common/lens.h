/* --lens: what each layer would predict for each [MASK], or as the next token. */
#ifndef QKV_CLI_COMMON_LENS_H
#define QKV_CLI_COMMON_LENS_H

#include "common/job.h"
#include <qkv/effects.h>

/* An error if the model has two stacks, an encoder and a decoder. */
qkv_status lens_check(const struct session *session, qkv_error *error);
/*
 * What each layer would predict at a position: rows [n_layers + 1], the embeddings first, with the
 * probability of `word` (-1: of none). The run must have kept its hidden states.
 */
qkv_status lens_read(const struct session *session, const qkv_run *run, qkv_word_head head,
                     int64_t position, int32_t word, qkv_lens *rows, qkv_error *error);

/* Answers one text, as text_job wants it. */
qkv_status lens_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                       qkv_error *error);

#endif
