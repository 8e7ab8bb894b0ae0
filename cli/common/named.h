/* Names for the file of -o where the user gives only an ending. */
#ifndef QKV_CLI_COMMON_NAMED_H
#define QKV_CLI_COMMON_NAMED_H

#include "common/job.h"

enum { NAMED_ROOM = 4096 };

/*
 * The path of the file to write: `out`, or if that is only an ending, ".png" or "figures/.png", a
 * name of `what` (the command and its head) and the first words of the text,
 * "look-3.0-i-was-watching.png". said: as in text_job; NULL: there is no text.
 */
const char *named_file(const char *out, const char *what, const struct text *const said[2],
                       char room[NAMED_ROOM]);

#endif
