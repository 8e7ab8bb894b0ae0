/*
 * The text of what is generated: strings that end it, and pieces of it for who reads along.
 *
 * Decoders append: the text of more tokens begins with that of fewer, but for U+FFFD at its end,
 * which may stand for the first bytes of a character (docs/tokenizers.md). So the end of a text,
 * from such signs on, is open, and so is what may be the beginning of a string of stop.
 */
#ifndef QKVI_GENERATE_TEXT_H
#define QKVI_GENERATE_TEXT_H

#include "model/generate/plan.h"

/* ids that have no token, and special tokens, are left out. NULL without a tokenizer. */
qkv_status qkvi_generated_text(const qkv_tokenizer *tokenizer, const int32_t *ids, int64_t n,
                               qkv_text **text, qkv_error *error);

/* Where the first string of stop begins in bytes [n]; -1: none is there. */
int64_t qkvi_find_stop(const qkvi_plan *plan, const char *bytes, int64_t n);

/* Whether the text of ids has such a string. */
qkv_status qkvi_has_stop(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool *has,
                         qkv_error *error);

/* How many of bytes [n] are open no more. */
int64_t qkvi_settled(const qkvi_plan *plan, const char *bytes, int64_t n);

/*
 * Gives on_text what is settled of the text of ids, and has not been given: *sent bytes have. At
 * the end all is settled. *ended: on_text wants no more.
 */
qkv_status qkvi_tell(const qkvi_plan *plan, const int32_t *ids, int64_t n, bool at_end,
                     int64_t *sent, bool *ended, qkv_error *error);

/*
 * Fills text and n_bytes of a complete sequence; with QKV_END_CALLER the text is the n_bytes that
 * were told. MEMORY.
 */
qkv_status qkvi_sequence_text(const qkvi_plan *plan, qkv_sequence *sequence, qkv_error *error);

#endif
