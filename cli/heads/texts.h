/*
 * Texts of a file through the model: a text, or two separated by a tab, a line. Lines are run some
 * at a time, and ranks share them (common/share.h). What comes of a line does not depend on the
 * others, and memory not on their number.
 */
#ifndef QKV_CLI_HEADS_TEXTS_H
#define QKV_CLI_HEADS_TEXTS_H

#include "common/lines.h"
#include "common/pair.h"

/* One text that was run. */
struct texts_one {
    const qkv_run *run;
    int64_t b, line; /* its place in the run; its line of the file, from 1 */
    const qkv_encoding *input;
    const struct pair *pair; /* of --cross and --decoder; without inputs otherwise */
};

struct texts {
    const struct session *session;
    const char *path;
    qkv_attention_kind
        which;      /* QKV_SELF: the second text of a line is a sentence B, else a target */
    uint32_t flags; /* QKV_RUN_… */
    const qkv_run_options *asked;
    const char *journal; /* share.h; NULL: none */
    const char *also;
    /* On any rank: what is kept of a text, from malloc, about `record_bytes` of it. */
    qkv_status (*make)(void *user, const struct texts_one *one, struct text *record,
                       qkv_error *error);
    size_t record_bytes;
    /*
     * On the first rank, in the order of lines; NULL: of one rank, where make does it all. The
     * bytes begin at a multiple of 8. With a journal they come from outside.
     */
    qkv_status (*take)(void *user, const struct text *record, qkv_error *error);
    void *user;
    /* What was read; on the first rank. */
    int64_t n_texts, n_cut, n_tokens, n_targets;
};

/*
 * All ranks call it, and get the same status and message; but that there is no text only the first
 * rank says.
 */
qkv_status texts_read(struct texts *texts, qkv_error *error);

#endif
