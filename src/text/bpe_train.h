/**
 * Makes a byte-level BPE vocabulary from text. The same text and size always give the same one,
 * that of PyPI tokenizers' BpeTrainer with the 256 bytes as initial_alphabet and min_frequency 2.
 * Ids are in the order
 *
 *     special tokens, the 256 bytes in the order of their characters, merges
 *
 * A merge joins the most frequent pair, of equally frequent ones that with the smaller ids. A pair
 * that was seen once only is not merged.
 */
#ifndef QKVI_TEXT_BPE_TRAIN_H
#define QKVI_TEXT_BPE_TRAIN_H

#include "files/base.h"
#include "files/file.h"
#include "qkv/tokenizer.h"
#include "text/counter.h"

/** Whose tokenizer it is: its class in transformers and its special tokens. */
typedef struct qkvi_bpe_style {
    const char *class;
    const char *special[6]; /* NULL at the end */
    const char *bos, *eos, *unk;
    const char *sep, *cls, *pad, *mask; /* NULL: the class has none */
} qkvi_bpe_style;

extern const qkvi_bpe_style qkvi_bpe_gpt2; /* nothing around a text */
extern const qkvi_bpe_style qkvi_bpe_bart; /* <s> A </s> */

/** A vocabulary: the bytes of its two files, all 0 at first. */
typedef struct qkvi_bpe_vocab {
    const qkvi_bpe_style *style;
    qkvi_growing vocab, merges; /* vocab.json, merges.txt */
} qkvi_bpe_vocab;

/** Counts the words of a text, seen count times. FORMAT for invalid UTF-8; LIMIT; MEMORY. */
QKV_NODISCARD qkv_status qkvi_bpe_count(qkvi_counter *words, const char *text, size_t text_bytes,
                                        int64_t count, qkv_error *error);

/**
 * Makes a vocabulary of at most size tokens; fewer if no pair is left. ARGUMENT if size is too
 * small for the special tokens and the bytes; MEMORY.
 */
QKV_NODISCARD qkv_status qkvi_bpe_train(const qkvi_counter *words, const qkvi_bpe_style *style,
                                        int32_t size, qkvi_bpe_vocab *made, qkv_error *error);
void qkvi_bpe_vocab_free(qkvi_bpe_vocab *made);

/* ---- In tokenizer_save.c --------------------------------------------------------------------- */

QKV_NODISCARD qkv_status qkvi_bpe_vocab_open(const qkvi_bpe_vocab *made, qkv_tokenizer **tokenizer,
                                             qkv_error *error);
/**
 * Adds vocab.json, merges.txt, tokenizer.json and tokenizer_config.json to files. PyPI tokenizers
 * and transformers read them to the same ids.
 */
QKV_NODISCARD qkv_status qkvi_bpe_vocab_save(qkvi_files *files, const qkvi_bpe_vocab *made,
                                             int64_t max_len, qkv_error *error);

#endif
