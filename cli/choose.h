/* Which head to show of all, and what to say about it. */
#ifndef QKV_CLI_CHOOSE_H
#define QKV_CLI_CHOOSE_H

#include "session.h"
#include <qkv/inspect.h>

/* Which attention of a run is looked at: its queries look, its keys are looked at. */
struct attention_view {
    qkv_attention_of which;
    int64_t n_layers, n_heads;
    qkv_token_list queries, keys;
    bool causal; /* queries see keys up to their own place */
};

/* Of a text through the only stack of a model, or through its encoder. */
struct attention_view view_of_text(const struct session *session, const qkv_encoding *input);

struct choice {
    int64_t layer, head;
    int64_t query, key; /* what this head is shown for; -1: nothing in particular */
    float weight;
    const char *rule; /* by what it was chosen */
};

/*
 * The head in which a [MASK] looks most sharply at a content word; heads labelled next or prev are
 * left out unless there are no others. Without a content word: at any other token. Without a
 * [MASK]: the head in which one content word (else one ordinary token, else any token) looks most
 * sharply at another. Where queries are causal: the head with the largest weight on what followed an
 * earlier place of the token, if that is above the threshold of the label "induction"; else as without
 * a [MASK], the first token, where heads rest, aside as a key. Of cross-attention: the one in which a
 * token looks most sharply at a content word of the source. With `given`, the head is choice->layer
 * and head, and only query and key are looked for. stats: of every head.
 */
qkv_status choose_head(const struct session *session, const qkv_run *run,
                       const struct attention_view *view, const qkv_head_stats *stats, bool given,
                       struct choice *choice, qkv_error *error);

/* The same, of a run whose statistics nobody has made. */
qkv_status choose_head_of_run(const struct session *session, const qkv_run *run,
                              const struct attention_view *view, bool given, struct choice *choice,
                              qkv_error *error);

#endif
