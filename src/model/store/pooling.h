/**
 * How a folder of sentence-transformers makes a sentence's vector: modules.json lists what follows the
 * encoder, and the pooling module's config.json how the hidden states become one vector.
 */
#ifndef QKVI_STORE_POOLING_H
#define QKVI_STORE_POOLING_H

#include "qkv/model.h"

/**
 * Sets info's pooling, normalizes and sentence_len; without a modules.json they stay as they are. What
 * we do not compute (a Dense module, two poolings side by side) is UNSUPPORTED, by name.
 */
qkv_status qkvi_pooling_read(const char *folder, qkv_model_info *info, qkv_error *error);

#endif
