/* Hints about a text that a model reads otherwise than its writer may think. */
#ifndef QKV_CLI_COMMON_HINTS_H
#define QKV_CLI_COMMON_HINTS_H

#include "common/lines.h"
#include "common/session.h"

/*
 * An empty text; a mask in another spelling, "[mask]"; words that the embedded model does not know.
 * They become session->hint. pair is nullable.
 */
void hints_make(struct session *session, const qkv_encoding *input, const struct text *text,
                const struct text *pair);
/* The same on standard error. */
void hints_say(const struct session *session);

#endif
