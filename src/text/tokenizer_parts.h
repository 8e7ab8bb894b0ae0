/**
 * Parts of a tokenizer.json that kinds of tokenizers share: lists of parts, Metaspace and its
 * decoders.
 */
#ifndef QKVI_TEXT_TOKENIZER_PARTS_H
#define QKVI_TEXT_TOKENIZER_PARTS_H

#include "text/metaspace.h"
#include "text/tokenizer_fields.h"

/**
 * The parts of a Sequence, in its field `list`; any other part is a list of itself, null an empty
 * one. Their number, and the i-th.
 */
size_t qkvi_part_count(const json_t *part, const char *list);
const json_t *qkvi_part_entry(const json_t *part, const char *list, size_t i);

/** The type of a part, "" if it has none; and whether it is `type`. */
const char *qkvi_part_type(const json_t *part);
int qkvi_part_is(const json_t *part, const char *type);

/** Is its pattern {kind: text}, where kind is "String" or "Regex"? Is a field the string text? */
int qkvi_part_has_pattern(const json_t *part, const char *kind, const char *text);
int qkvi_part_has_text(const json_t *part, const char *field, const char *text);
int qkvi_part_is_null(const json_t *part);

/** Reads a pre-tokenizer Metaspace. FORMAT; UNSUPPORTED. */
qkv_status qkvi_metaspace_read(const qkvi_tokenizer_reader *r, const json_t *part,
                               qkvi_metaspace *rules);

/**
 * Reads the decoder of a tokenizer with Metaspace: Metaspace, or a Sequence of Replace,
 * ByteFallback, Fuse and Strip. FORMAT; UNSUPPORTED.
 */
qkv_status qkvi_metaspace_read_decoder(const qkvi_tokenizer_reader *r, const json_t *part,
                                       qkvi_metaspace *rules);

#endif
