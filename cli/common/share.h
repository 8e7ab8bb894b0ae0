/*
 * Work in pieces, such as the lines of a file, which ranks take as they are free. Answers come in
 * the order of pieces, and the first piece that fails is the last one that counts. So what is
 * written are the bytes of one process, which has the same code, and the message of a failure is
 * its message.
 */
#ifndef QKV_CLI_COMMON_SHARE_H
#define QKV_CLI_COMMON_SHARE_H

#include "common/job.h"
#include "common/lines.h"

/* All get `user`, and set *error if they do not return QKV_OK. */
struct share {
    void *user;
    /*
     * On the first rank: the next piece, until the one after it is asked for; false at the end, or
     * after a failure.
     */
    bool (*next)(void *user, struct text *piece, qkv_status *status, qkv_error *error);
    /* On any rank: its answer, from malloc, or NULL with a failure. */
    qkv_status (*make)(void *user, const struct text *piece, struct text *answer, qkv_error *error);
    /* On the first rank, in the order of pieces. */
    qkv_status (*take)(void *user, const struct text *answer, qkv_error *error);
    /* On the first rank: piece n, from 0, failed by *error. NULL: nothing to add. */
    void (*failed)(void *user, int64_t n, qkv_error *error);
    /*
     * Where answers are kept (journal.h), or NULL. Then `take` checks an answer as what comes from
     * outside.
     */
    const char *journal;
    const char *model; /* of the answers; NULL: the embedded one */
    const char *also;  /* another file that they come from, or NULL */
    bool quiet;
};

/*
 * next and failed of lines, each a piece; the first member of *user is an open struct lines
 * (share.c).
 */
bool share_next_line(void *user, struct text *piece, qkv_status *status, qkv_error *error);
void share_failed_line(void *user, int64_t n, qkv_error *error);

/* Does it. All ranks call it, and get the same status and message. */
qkv_status share_run(const struct share *share, qkv_error *error);

#endif
