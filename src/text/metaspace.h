/**
 * Spaces as U+2581, which metaspace BPE and Unigram share: how a stretch is written so, where words
 * begin, and what decoders make of tokens.
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
    /* Of BPE, the normalizer, before the added tokens of the second pass are found. */
    int replaces, prepends; /* spaces become U+2581; one is put in front of each stretch */
    /* The pre-tokenizer, behind it; is_on 0: there is none. */
    int is_on, splits; /* spaces become U+2581, which begins a word */
    qkvi_prepend prepend;
    /* The decoder. */
    int joins_bytes; /* tokens of bytes are bytes */
    int drops_first; /* U+2581 of the first token is nothing, not a space */
    int strips;      /* so many spaces at the front of the text are left out */
} qkvi_metaspace;

/** Does U+2581 begin these bytes? */
int qkvi_begins_meta(const char *text, size_t n);

/** Is one put in front of a stretch with these bytes, which begins at a place of the raw text? */
int qkvi_metaspace_prepends(const qkvi_metaspace *rules, const char *text, size_t n,
                            uint32_t place);

/** Where the next word begins, behind the first character. */
uint32_t qkvi_metaspace_word_end(const char *text, uint32_t begin, uint32_t end);

/** The byte of a token "<0xE6>"; -1 if it is none. */
int qkvi_metaspace_byte(const char *token, size_t n);

/** The tokens of bytes in a sealed vocabulary, -1 where there is none. */
void qkvi_metaspace_find_bytes(const qkv_tokenizer *tokenizer, int32_t ids[256]);

/** As the kind's decode and, with goes_on, decode_on. */
qkv_status qkvi_metaspace_decode(const qkv_tokenizer *tokenizer, const qkvi_metaspace *rules,
                                 const int32_t *ids, size_t n, int goes_on, qkvi_growing *text);

/** As the kind's piece and show. */
int qkvi_metaspace_piece(const qkv_tokenizer *tokenizer, int32_t id, char *text, size_t *n_bytes);
qkv_status qkvi_metaspace_show(const qkv_tokenizer *tokenizer, int32_t id, qkvi_growing *text);

#endif
