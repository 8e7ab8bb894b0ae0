/* Which head to show of all, and what to say about it. */
#ifndef QKV_CLI_CHOOSE_H
#define QKV_CLI_CHOOSE_H

#include "session.h"
#include <qkv/inspect.h>

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
 * sharply at another. With `given`, the head is choice->layer and head, and only query and key are
 * looked for. stats: of every head.
 */
qkv_status choose_head(const struct session *session, const qkv_run *run, const qkv_encoding *input,
                       const qkv_head_stats *stats, bool given, struct choice *choice,
                       qkv_error *error);

/* The same, of a run whose statistics nobody has made. */
qkv_status choose_head_of_run(const struct session *session, const qkv_run *run,
                              const qkv_encoding *input, bool given, struct choice *choice,
                              qkv_error *error);

#endif
