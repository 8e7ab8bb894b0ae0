/**
 * Parts of a tokenizer.json that kinds of tokenizers share: lists of parts, Metaspace and its
 * decoders.
 */
#ifndef QKVI_TEXT_TOKENIZER_PARTS_H
#define QKVI_TEXT_TOKENIZER_PARTS_H

#include "text/metaspace.h"
#include "text/tokenizer_fields.h"

/** The part itself, or those of a Sequence, whose list has a name: how many, and each. */
size_t qkvi_part_count(const json_t *part, const char *list);
const json_t *qkvi_part_entry(const json_t *part, const char *list, size_t i);

/** Its type, "" if it has none; is it of a type? */
const char *qkvi_part_type(const json_t *part);
int qkvi_part_is(const json_t *part, const char *type);

/** Is its pattern {"String": text} or {"Regex": text}, as kind says? Is a field that text? */
int qkvi_part_has_pattern(const json_t *part, const char *kind, const char *text);
int qkvi_part_has_text(const json_t *part, const char *field, const char *text);
int qkvi_part_is_null(const json_t *part);

/** A pre-tokenizer Metaspace. FORMAT; UNSUPPORTED. */
qkv_status qkvi_metaspace_read(const qkvi_tokenizer_reader *r, const json_t *part,
                               qkvi_metaspace *rules);

/**
 * The decoder of such a tokenizer, an object with a type: Metaspace, or a Sequence of Replace,
 * ByteFallback, Fuse and Strip. FORMAT; UNSUPPORTED.
 */
qkv_status qkvi_metaspace_read_decoder(const qkvi_tokenizer_reader *r, const json_t *part,
                                       qkvi_metaspace *rules);

#endif
