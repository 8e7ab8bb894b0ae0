/** What the writers of a tokenizer's files share. */
#ifndef QKVI_TEXT_TOKENIZER_SAVE_H
#define QKVI_TEXT_TOKENIZER_SAVE_H

#include "model/store/json.h"
#include "model/text/tokenizer.h"

/** added_tokens of tokenizer.json. NULL without memory. */
json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer);

#endif
