/**
 * Spaces written as U+2581, for metaspace BPE and Unigram: how a stretch is converted, where words
 * begin, and how decoders turn tokens into text.
 *
 * Reference: PyPI tokenizers, pre_tokenizers/metaspace.rs, decoders/{byte_fallback,fuse,strip}.rs.
 */
#ifndef QKVI_TEXT_METASPACE_H
#define QKVI_TEXT_METASPACE_H

#include "text/tokenizer.h"

#define QKVI_META "\xE2\x96\x81" /* U+2581 */
enum { QKVI_META_CODE = 0x2581, QKVI_META_BYTES = 3, QKVI_BYTE_TOKEN = 6 };

/** When U+2581 is put before a stretch that does not begin with it. */
typedef enum qkvi_prepend {
    QKVI_PREPEND_NEVER,
    QKVI_PREPEND_FIRST,
    QKVI_PREPEND_ALWAYS
} qkvi_prepend;

typedef struct qkvi_metaspace {
    /* The normalizer of BPE, which runs before the second pass of added tokens (added.h). */
    int replaces; /* spaces become U+2581 */
    int prepends; /* U+2581 is put before each stretch */
    /* The pre-tokenizer, which runs after that. */
    int is_on;  /* there is one: spaces become U+2581 */
    int splits; /* U+2581 begins a word */
    qkvi_prepend prepend;
    /* The decoder. */
    int joins_bytes; /* tokens such as <0xE6> become bytes */
    int drops_first; /* U+2581 at the begin of the first token is removed, not a space */
    int strips;      /* the most spaces that are removed from the begin of the text */
} qkvi_metaspace;

/** Does U+2581 begin these bytes? */
int qkvi_begins_meta(const char *text, size_t n);

/** Is U+2581 put before a stretch with these bytes, which begins at `place` of the raw text? */
int qkvi_metaspace_prepends(const qkvi_metaspace *rules, const char *text, size_t n,
                            uint32_t place);

/** Where the next word begins: the first U+2581 after the first character, or end. */
uint32_t qkvi_metaspace_word_end(const char *text, uint32_t begin, uint32_t end);

/** The byte of a token such as "<0xE6>"; -1 for any other token. */
int qkvi_metaspace_byte(const char *token, size_t n);

/** The tokens of bytes in a sealed vocabulary, -1 where there is none. */
void qkvi_metaspace_find_bytes(const qkv_tokenizer *tokenizer, int32_t ids[256]);

/** `decode` of qkvi_tokenizer_kind or, with goes_on, its decode_on. */
qkv_status qkvi_metaspace_decode(const qkv_tokenizer *tokenizer, const qkvi_metaspace *rules,
                                 const int32_t *ids, size_t n, int goes_on, qkvi_growing *text);

/** `piece` and `show` of qkvi_tokenizer_kind. */
int qkvi_metaspace_piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes);
qkv_status qkvi_metaspace_show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text);

#endif
