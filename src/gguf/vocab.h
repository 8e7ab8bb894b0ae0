/**
 * The vocabulary of a GGUF file: its tokens in the order of their ids, what kind each is, and
 * merges. Every length and id has been checked, and tokens are valid UTF-8 without NUL.
 */
#ifndef QKVI_GGUF_VOCAB_H
#define QKVI_GGUF_VOCAB_H

#include "files/gguf_keys.h"

typedef enum qkvi_gguf_token_kind {
    QKVI_GGUF_NORMAL = 1,
    QKVI_GGUF_UNKNOWN,
    QKVI_GGUF_CONTROL,
    QKVI_GGUF_USER,   /* found in texts before anything else, as control tokens are */
    QKVI_GGUF_UNUSED, /* only fills the table of words */
    QKVI_GGUF_BYTE
} qkvi_gguf_token_kind;

typedef enum qkvi_gguf_role {
    QKVI_GGUF_BOS,
    QKVI_GGUF_EOS,
    QKVI_GGUF_EOT,
    QKVI_GGUF_EOM,
    QKVI_GGUF_UNK,
    QKVI_GGUF_SEP,
    QKVI_GGUF_PAD,
    QKVI_GGUF_CLS,
    QKVI_GGUF_MASK,
    QKVI_GGUF_N_ROLES
} qkvi_gguf_role;

typedef struct qkvi_gguf_vocab {
    const qkvi_gguf_keys *keys;
    qkvi_gguf_text *tokens; /* bytes of the file */
    uint8_t *kinds;
    int32_t *sorted; /* ids of all but unused tokens, in byte order of the tokens */
    int64_t n, n_sorted;
    int64_t roles[QKVI_GGUF_N_ROLES]; /* ids by the file; -1: none */
    char *marks;                      /* what runs of spaces are spelled as */
} qkvi_gguf_vocab;

/**
 * marks: runs of two and more spaces become as many U+2581, normal tokens, by which texts have them
 * (Gemma). FORMAT, LIMIT, MEMORY; vocab may be freed also then.
 */
qkv_status qkvi_gguf_vocab_read(const qkvi_gguf_keys *keys, bool marks, qkvi_gguf_vocab *vocab);
void qkvi_gguf_vocab_free(qkvi_gguf_vocab *vocab);

/** The id of a token that is not unused, or -1. */
int32_t qkvi_gguf_token(const qkvi_gguf_vocab *vocab, const char *bytes, size_t n);

/** "[…]" of tokenizer.ggml.merges, as it is. FORMAT: missing, or an entry is no pair of tokens. */
qkv_status qkvi_gguf_put_merges(const qkvi_gguf_vocab *vocab, qkvi_bytes *out);

/**
 * "[…]" of merges that SentencePiece's scores stand for: it merges the pair whose joined piece has
 * the best score. So each piece gives a merge of every two pieces that make it, in the order of
 * scores; of one piece longer left halves come first, as in converted files. by_id: in the order of
 * ids, as Gemma's scores do not follow it. FORMAT: scores are missing or have another length;
 * MEMORY.
 */
qkv_status qkvi_gguf_put_merges_of_scores(const qkvi_gguf_vocab *vocab, bool by_id,
                                          qkvi_bytes *out);

/** The scores of all tokens, an array of f32 or i32. FORMAT. */
qkv_status qkvi_gguf_find_scores(const qkvi_gguf_vocab *vocab, const qkvi_gguf_key **scores);

#endif
