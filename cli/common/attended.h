/*
 * One text through a model, with the target of an encoder-decoder: the common beginning of `look`,
 * `heads`, `map` and `explain`.
 */
#ifndef QKV_CLI_COMMON_ATTENDED_H
#define QKV_CLI_COMMON_ATTENDED_H

#include "common/pair.h"

struct attended {
    const struct session *session;
    const qkv_encoding *input;
    char **labels; /* of the tokens of input, escaped */
    struct pair pair;
    struct attention_view view;
    struct what_if what_if; /* --what-if, with the tokens of this text that are dropped */
    qkv_run *run;
    qkv_heads *heads;
};

/*
 * Makes the labels, the target and the what-if of a text. The caller has set session and input,
 * and all else to 0. target: NULL for what the model itself writes. parsed: NULL without --what-if.
 * After a failure attended_free is called, too.
 */
qkv_status attended_open(struct attended *of, qkv_attention_kind which, const char *target,
                         const struct what_if *parsed, qkv_error *error);
/* Runs the model with capture, and measures the heads. */
qkv_status attended_run(struct attended *of, uint32_t flags, qkv_error *error);
/* Chooses a query of the named head, or both head and query if none is named: qkv_heads_choose. */
qkv_status attended_choose(const struct attended *of, bool named, int64_t layer, int64_t head,
                           qkv_heads_choice *choice, qkv_error *error);
/* The edges that may be cut: those of the attention that is looked at. */
struct what_if_edges attended_edges(const struct attended *of);
/*
 * Labels of queries and of keys. A query of a decoder over an encoder is labelled by the token it
 * reads and the token it predicts, "a -> b"; a key of the decoder's own by the token it reads.
 */
char *const *attended_queries(const struct attended *of);
char *const *attended_keys(const struct attended *of);
void attended_free(struct attended *of);

#endif
