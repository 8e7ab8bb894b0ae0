/**
 * SigLIP's tokenizer: the pieces of a SentencePiece model, with their own ids.
 *
 *     spiece.model             pieces and ids
 *     tokenizer_config.json    do_lower_case, and what settings.h reads
 *
 * Between special tokens a text is made canonical: U+2581 is a space, letters are lower case,
 * ASCII punctuation is dropped, runs of white space are one space, none is at the ends; but the
 * text begins with U+2581. The model sees the name of the unknown token in front, whose pieces are
 * dropped again. eos ends every text.
 * Reference: transformers, models/siglip/tokenization_siglip.py.
 */
#ifndef QKVI_TEXT_SIGLIP_H
#define QKVI_TEXT_SIGLIP_H

#include "text/settings.h"

/** FORMAT, LIMIT, UNSUPPORTED, MEMORY; *tokenizer is NULL then. */
qkv_status qkvi_siglip_read(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                            qkv_error *error);

/** Whether the small files name this class, or a model that has it. */
int qkvi_siglip_is_named(const qkvi_text_files *files);

#endif
