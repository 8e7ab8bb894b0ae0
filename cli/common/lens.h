/* --lens: what each layer would predict for each [MASK], or as the next token. */
#ifndef QKV_CLI_COMMON_LENS_H
#define QKV_CLI_COMMON_LENS_H

#include "common/job.h"

/* Answers one text, as text_job wants it. */
qkv_status lens_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                       qkv_error *error);

#endif
