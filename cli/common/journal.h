/*
 * What work in pieces (share.h) has answered so far, in a file, so that the same command goes on
 * from there after it was stopped: by Ctrl-C, by kill -9, by a machine that failed. On the first
 * rank.
 *
 *     "QKVJRNL1"  record: the command  record: the model's files  record: the answer to piece 0 …
 *     record: [uint64: bytes of data][uint32: crc32 of the piece]
 *             [uint32: crc32 of these two and data] data
 *
 * An answer counts only for the same piece, the same command but for its threads, and files of the
 * model that have the same sizes and times. The last record may be cut short: it is written again.
 * Code that reads an answer checks it as what comes from outside.
 */
#ifndef QKV_CLI_COMMON_JOURNAL_H
#define QKV_CLI_COMMON_JOURNAL_H

#include "common/lines.h"

/* The words of the command line; NULL ends them. */
extern char **cli_words;
/*
 * The version and the words, but for those that change no answer: from malloc, n bytes; NULL
 * without memory.
 */
char *command_text(size_t *n);

struct journal;

/*
 * Opens or makes it; NULL with the reason. model: a folder or a file, or NULL, the embedded one.
 * also: another file that answers come from, or NULL.
 */
struct journal *journal_open(const char *path, const char *model, const char *also,
                             qkv_error *error);

uint32_t journal_mark(const struct text *piece);
/*
 * The next answer in it, if there is one, to be freed; the piece with this mark must be its piece.
 */
qkv_status journal_next(struct journal *journal, uint32_t mark, struct text *answer, bool *found,
                        qkv_error *error);
/* Adds an answer, once journal_next has found no more. */
qkv_status journal_add(struct journal *journal, uint32_t mark, const struct text *answer,
                       qkv_error *error);

/*
 * There are n pieces and no more: an error if it has more answers. Not before each piece has its
 * answer.
 */
qkv_status journal_end(struct journal *journal, int64_t n, qkv_error *error);

/*
 * done: the file is removed; else it is kept for the next time, which a remark says. NULL is
 * allowed.
 */
void journal_close(struct journal *journal, bool done, bool quiet);

#endif
