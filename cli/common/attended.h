/* A text, or it and its target, through a model: `look`, `heads`, `map`, `explain` begin so. */
#ifndef QKV_CLI_COMMON_ATTENDED_H
#define QKV_CLI_COMMON_ATTENDED_H

#include "common/pair.h"

struct attended {
    const struct session *session;
    const qkv_encoding *input;
    char **labels; /* of its tokens, escaped */
    struct pair pair;
    struct attention_view view;
    struct what_if what_if; /* what is asked of this text */
    qkv_run *run;
    qkv_heads *heads;
};

/*
 * Labels, the target and what is asked. The session and the input are set, all else is 0; target:
 * NULL for what the model writes; parsed: NULL without a question. attended_free is for after a
 * failure, too.
 */
qkv_status attended_open(struct attended *of, qkv_attention_kind which, const char *target,
                         const struct what_if *parsed, qkv_error *error);
/* Runs the model with capture, and measures the heads. */
qkv_status attended_run(struct attended *of, uint32_t flags, qkv_error *error);
/* The head that is named, else one by the rules of qkv_heads_choose; and a query of it. */
qkv_status attended_choose(const struct attended *of, bool named, int64_t layer, int64_t head,
                           qkv_heads_choice *choice, qkv_error *error);
/*
 * Names of queries and keys: a decoder's queries by what it read and predicts, its own keys by
 * what it read.
 */
char *const *attended_queries(const struct attended *of);
char *const *attended_keys(const struct attended *of);
void attended_free(struct attended *of);

#endif
