/*
 * --ids: a text as token ids that another program made, "2 7 12 3", with nothing put around them.
 * The encoding is as the tokenizer's, but its ranges are of no text: a token that is none of
 * [CLS], [SEP] and [PAD] has the range of its own number, so that none continues a word.
 */
#ifndef QKV_CLI_COMMON_IDS_H
#define QKV_CLI_COMMON_IDS_H

#include "common/session.h"
#include "common/text.h"

/* Ids are separated by spaces, commas or line breaks. ids_free frees it, in any case. */
qkv_status ids_read(const struct session *session, const struct text *text, qkv_encoding **encoding,
                    qkv_error *error);
void ids_free(qkv_encoding *encoding);

#endif
