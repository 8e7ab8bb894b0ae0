/*
 * Work in pieces, such as the lines of a file, which ranks take as they become free. Answers are
 * taken in the order of the pieces, and none after the first piece that fails. So several ranks
 * write the same bytes, and the same message of a failure, as one process, which runs this code,
 * too.
 */
#ifndef QKV_CLI_COMMON_SHARE_H
#define QKV_CLI_COMMON_SHARE_H

#include "common/job.h"
#include "common/lines.h"

/* All functions get `user`, and set *error if they do not return QKV_OK. */
struct share {
    void *user;
    /*
     * On the first rank: gives the next piece, whose bytes stay until the next call; false at the
     * end, or after a failure.
     */
    bool (*next)(void *user, struct text *piece, qkv_status *status, qkv_error *error);
    /* On any rank: makes the answer to a piece, from malloc; NULL after a failure. */
    qkv_status (*make)(void *user, const struct text *piece, struct text *answer, qkv_error *error);
    /* On the first rank: takes the answers, in the order of pieces. */
    qkv_status (*take)(void *user, const struct text *answer, qkv_error *error);
    /* On the first rank: adds to *error of piece n, from 0, which failed. NULL: nothing to add. */
    void (*failed)(void *user, int64_t n, qkv_error *error);
    /*
     * The file that keeps answers (journal.h), or NULL. With a journal, `take` must check answers
     * like any input from outside.
     */
    const char *journal;
    const char *model; /* its folder or file; NULL: the embedded one */
    const char *also;  /* another file that answers depend on, or NULL */
    bool quiet;
};

/*
 * `next` and `failed` where each line of a text is a piece. The first member of *user must be a
 * struct lines that is open.
 */
bool share_next_line(void *user, struct text *piece, qkv_status *status, qkv_error *error);
void share_failed_line(void *user, int64_t n, qkv_error *error);

/* Runs the work. All ranks call it, and get the same status and message. */
qkv_status share_run(const struct share *share, qkv_error *error);

#endif
