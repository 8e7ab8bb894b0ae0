/*
 * Runs the model on the texts of a file: each line is a text, or two texts with a tab between. Some
 * lines are run at a time, and ranks share them (common/share.h). The result of a line does not
 * depend on other lines, and memory does not depend on their number.
 */
#ifndef QKV_CLI_HEADS_TEXTS_H
#define QKV_CLI_HEADS_TEXTS_H

#include "common/lines.h"
#include "common/pair.h"

/* One text that was run. */
struct texts_one {
    const qkv_run *run;
    int64_t b, line; /* its index in the run; the number of its line, from 1 */
    const qkv_encoding *input;
    const struct pair *pair; /* of --cross and --decoder; else all 0 */
};

struct texts {
    const struct session *session;
    const char *path;
    qkv_attention_kind which; /* QKV_SELF: the second text is a sentence B, else a target */
    uint32_t flags;           /* QKV_RUN_… */
    const qkv_run_options *run_options;
    const char *journal, *also; /* as in struct share */
    /* On any rank: makes the record of a text, from malloc, of about record_bytes. */
    qkv_status (*make)(void *user, const struct texts_one *one, struct text *record,
                       qkv_error *error);
    size_t record_bytes;
    /*
     * On the first rank, in the order of lines: takes a record, whose bytes begin at a multiple of
     * 8. With a journal they come from outside. NULL, with one rank: make does everything.
     */
    qkv_status (*take)(void *user, const struct text *record, qkv_error *error);
    void *user;
    /* Counters, on the first rank. */
    int64_t n_texts, n_cut, n_tokens, n_targets;
};

/*
 * Reads and runs all texts. All ranks call it, and get the same status and message; but if the file
 * has no text, only the first rank gets the error.
 */
qkv_status texts_read(struct texts *texts, qkv_error *error);

#endif
