/* Names of files that say what is in them. */
#ifndef QKV_CLI_COMMON_NAMED_H
#define QKV_CLI_COMMON_NAMED_H

#include "common/job.h"

enum { NAMED_ROOM = 4096 };

/*
 * The file of -o. Where only an ending is given, ".png" or "figures/.png", the file is named by
 * what is in it, the `what` of a command, and by the first words of the text:
 * "look-3.0-i-was-watching.png". said: as in text_job; NULL: of no text.
 */
const char *named_file(const char *out, const char *what, const struct text *const said[2],
                       char room[NAMED_ROOM]);

#endif
