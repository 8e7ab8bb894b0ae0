/**
 * Makes a WordPiece vocabulary from text: the same text and size always give the same one. Ids are
 * in the order
 *
 *     [PAD] [UNK] [CLS] [SEP] [MASK], characters, their ## forms, words, pieces
 *
 * The result is the bytes of a vocab.txt, which qkv_tokenizer_open_memory opens.
 */
#ifndef QKVI_TEXT_VOCAB_H
#define QKVI_TEXT_VOCAB_H

#include "files/file.h"
#include "qkv/tokenizer.h"
#include "text/normalize.h"

/**
 * A word with this count enters the vocabulary whole while there is room; words with smaller counts
 * leave the last eighth of the room to pieces.
 */
enum { QKVI_WHOLE_WORD_COUNT = 1000000 };

/** The counts of normalised words. */
typedef struct qkvi_word_counts qkvi_word_counts;

/** The switches of an uncased BERT. */
extern const qkvi_bert_rules qkvi_bert_uncased;

/** NULL without memory. */
qkvi_word_counts *qkvi_word_counts_create(const qkvi_bert_rules *rules);
void qkvi_word_counts_free(qkvi_word_counts *counts);

/**
 * Adds the words of a text, seen count times. FORMAT for invalid UTF-8, with the byte offset;
 * LIMIT; MEMORY.
 */
QKV_NODISCARD qkv_status qkvi_word_counts_add(qkvi_word_counts *counts, const char *text,
                                              size_t text_bytes, int64_t count, qkv_error *error);

/**
 * Makes a vocabulary of at most size tokens; fewer if the text has no more pieces. All characters
 * of the text enter first, the most frequent if size is too small for all, so every word made of
 * them can be spelled.
 *
 * @param vocab  receives the bytes of a vocab.txt, to be freed by free().
 * @return QKV_OK; QKV_ERR_ARGUMENT if size is too small for the special tokens and ASCII;
 *         QKV_ERR_MEMORY.
 */
QKV_NODISCARD qkv_status qkvi_wordpiece_train(const qkvi_word_counts *counts, int32_t size,
                                              char **vocab, size_t *vocab_bytes, qkv_error *error);

/**
 * Adds vocab.txt, tokenizer.json and tokenizer_config.json to files. PyPI tokenizers and
 * transformers read them to the same ids.
 */
QKV_NODISCARD qkv_status qkvi_tokenizer_save(qkvi_files *files, const char *vocab,
                                             size_t vocab_bytes, const qkvi_bert_rules *rules,
                                             int64_t max_len, qkv_error *error);

#endif
