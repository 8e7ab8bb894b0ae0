/* Hints about a text that a model does not read as its writer may think. */
#ifndef QKV_CLI_COMMON_HINTS_H
#define QKV_CLI_COMMON_HINTS_H

#include "common/lines.h"
#include "common/session.h"

/*
 * Sets session->hint for an empty text, a mask in another spelling ("[mask]"), and words that the
 * embedded model does not know. pair is nullable.
 */
void hints_make(struct session *session, const qkv_encoding *input, const struct text *text,
                const struct text *pair);
/* Prints session->hint on standard error. */
void hints_say(const struct session *session);

/* A text of the command line that is the name of a file, which is not read. */
void hints_say_file(const struct session *session, const char *text);

#endif
