/** The post_processor of a tokenizer.json: what is put around a text or a pair. */
#ifndef QKVI_TEXT_POST_PROCESSOR_H
#define QKVI_TEXT_POST_PROCESSOR_H

#include <jansson.h>

#include "model/text/tokenizer.h"

/**
 * Fills the templates of a tokenizer whose vocabularies are sealed. name is the file's, for
 * messages. UNSUPPORTED for a type that is not implemented; FORMAT;
 * LIMIT.
 */
qkv_status qkvi_post_processor_read(const char *name, const json_t *object, const char *type,
                                    qkv_tokenizer *tokenizer, qkv_error *error);

#endif
