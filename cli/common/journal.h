/*
 * A file of the answers that work in pieces (share.h) has so far, so that the same command goes on
 * from there after it was stopped: by Ctrl-C, by kill -9, by a machine that failed. Only the first
 * rank has it.
 *
 *     "QKVJRNL1", record: the command, record: the model's files, record: the answer to piece 0, …
 *     record: [uint64: bytes of data][uint32: crc32 of the piece]
 *             [uint32: crc32 of these two and data] data
 *
 * An answer counts only for the same piece and the same command (without --threads, --journal and
 * --quiet), and if the files of the model have the same sizes and times. A last record that is cut
 * short is overwritten. Who reads an answer checks it like any input from outside.
 */
#ifndef QKV_CLI_COMMON_JOURNAL_H
#define QKV_CLI_COMMON_JOURNAL_H

#include "common/lines.h"

/* The words of the command line; NULL ends them. */
extern char **cli_words;
/*
 * The version and the words of the command line, without those that change no answer: n bytes from
 * malloc; NULL without memory.
 */
char *command_text(size_t *n);

struct journal;

/*
 * Opens or makes a journal; NULL with the reason in *error. model: its folder or file; NULL: the
 * embedded one. also: another file that answers depend on, or NULL.
 */
struct journal *journal_open(const char *path, const char *model, const char *also,
                             qkv_error *error);

/* The crc32 of a piece, by which an answer knows its piece. */
uint32_t journal_mark(const struct text *piece);
/*
 * Reads the next answer, if there is one, which the caller frees. An error if it is not the answer
 * to the piece with this mark.
 */
qkv_status journal_next(struct journal *journal, uint32_t mark, struct text *answer, bool *found,
                        qkv_error *error);
/* Adds an answer; only after journal_next has found no more. */
qkv_status journal_add(struct journal *journal, uint32_t mark, const struct text *answer,
                       qkv_error *error);

/*
 * To be called when all n pieces have their answers: an error if the journal has more.
 */
qkv_status journal_end(struct journal *journal, int64_t n, qkv_error *error);

/*
 * done: removes the file; else keeps it for the next time, and says so unless quiet. NULL is
 * allowed.
 */
void journal_close(struct journal *journal, bool done, bool quiet);

#endif
