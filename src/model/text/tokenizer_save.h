/** What the writers of a tokenizer's files share. */
#ifndef QKVI_TEXT_TOKENIZER_SAVE_H
#define QKVI_TEXT_TOKENIZER_SAVE_H

#include "model/store/file.h"
#include "model/store/json.h"
#include "model/text/tokenizer.h"

/** added_tokens of tokenizer.json. NULL without memory. */
json_t *qkvi_added_tokens_json(const qkv_tokenizer *tokenizer);

/** Adds a file of JSON. Takes root, which may be NULL for want of memory. */
QKV_NODISCARD qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                                             qkv_error *error);

#endif
