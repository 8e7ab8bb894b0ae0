/*
 * Training text as numbered pairs: pair number `index` is a pure function of (seed, split, index).
 *
 * A corpus is a grammar (docs/grammar.md) or a text file. A grammar generates any number of
 * sentences, and knows for each word of a sentence which words could replace it (the admissible
 * set). A text file has one sentence per line, or sentence TAB following sentence.
 *
 * An open corpus is read-only and may be used by many threads.
 */
#ifndef QKV_MODEL_TRAIN_CORPUS_H
#define QKV_MODEL_TRAIN_CORPUS_H

#include "files/base.h"
#include "qkv/model.h"
#include "train/grammar/grammar.h"
#include "train/grammar/pair.h"

typedef struct qkvi_corpus qkvi_corpus;

/* Opens a corpus. Files are not trusted: messages name the line and the rule that it breaks. */
QKV_NODISCARD qkv_status qkvi_corpus_open_grammar(const char *path, qkvi_corpus **corpus,
                                                  qkv_error *error);
/* The same from bytes; name is for messages. */
QKV_NODISCARD qkv_status qkvi_corpus_open_grammar_memory(const char *name, const char *bytes,
                                                         size_t n_bytes, qkvi_corpus **corpus,
                                                         qkv_error *error);
QKV_NODISCARD qkv_status qkvi_corpus_open_text(const char *path, qkvi_corpus **corpus,
                                               qkv_error *error);
void qkvi_corpus_free(qkvi_corpus *corpus);

/* FNV-1a of the file's bytes, to compare corpora; not a cryptographic hash. */
uint64_t qkvi_corpus_hash(const qkvi_corpus *corpus);

/* The grammar of a corpus; NULL for a text. */
const qkvi_grammar *qkvi_corpus_grammar(const qkvi_corpus *corpus);

/*
 * Makes pair number `index` >= 0 of a split. Cannot fail. `pair` points into itself: do not copy
 * it. The held-out pairs of a text are its lines (is_next = 1), then each line with a TAB once
 * more, with the second half of another line (is_next = 0).
 */
void qkvi_corpus_pair(const qkvi_corpus *corpus, qkvi_split split, int64_t index, uint64_t seed,
                      qkvi_pair *pair);

/*
 * Makes a pronoun probe: like pair `index` of the held-out split, but always with has_probe = 1.
 * Returns 0 for a corpus without probes, such as a text.
 */
int qkvi_corpus_probe(const qkvi_corpus *corpus, int64_t index, uint64_t seed, qkvi_pair *pair);

/*
 * The words of a pair of a grammar, in order, with their admissible sets, in one allocation that
 * qkvi_slots_free frees. *n_slots = 0 for a pair that does not count for MLM, and for a text (where
 * each token is masked, and is the only admissible one).
 */
QKV_NODISCARD qkv_status qkvi_corpus_slots(const qkvi_corpus *corpus, const qkvi_pair *pair,
                                           qkvi_slot **slots, int32_t *n_slots, qkv_error *error);
void qkvi_slots_free(qkvi_slot *slots);

/*
 * Appends a document to text: a line of a text, or sentences of a grammar until the document has at
 * least `enough` bytes. MEMORY.
 */
QKV_NODISCARD qkv_status qkvi_corpus_document(const qkvi_corpus *corpus, qkvi_split split,
                                              int64_t index, uint64_t seed, int64_t enough,
                                              qkvi_growing *text, qkv_error *error);

/* Makes a pair of a line "source TAB target": a is the source, b the target. Cannot fail. */
void qkvi_corpus_translation(const qkvi_corpus *corpus, qkvi_split split, int64_t index,
                             uint64_t seed, qkvi_pair *pair);
/* To be called before that: FORMAT, naming the first line of another form; ARGUMENT: a grammar. */
QKV_NODISCARD qkv_status qkvi_corpus_check_translations(const qkvi_corpus *corpus,
                                                        qkv_error *error);

/* The number of held-out pairs that an evaluation should read (text: all of them). */
int64_t qkvi_corpus_held_out_pairs(const qkvi_corpus *corpus);

/*
 * Texts for making a vocabulary, with their counts: the lines of a text; of a grammar all words
 * that it can say, with counts so high that each becomes one token, and the printable ASCII
 * characters.
 */
int64_t qkvi_corpus_n_texts(const qkvi_corpus *corpus);
const char *qkvi_corpus_text(const qkvi_corpus *corpus, int64_t index, int64_t *bytes,
                             int64_t *count);

/* ---- Text files (corpus_text.c) -------------------------------------------------------------- */

typedef struct qkvi_text qkvi_text;

QKV_NODISCARD qkv_status qkvi_text_open(const char *path, qkvi_text **text, qkv_error *error);
void qkvi_text_free(qkvi_text *text);
/* FNV-1a of the file's bytes. */
uint64_t qkvi_text_hash(const qkvi_text *text);
int64_t qkvi_text_n_lines(const qkvi_text *text);
const char *qkvi_text_line(const qkvi_text *text, int64_t index, int64_t *bytes);
/* As qkvi_corpus_held_out_pairs and qkvi_corpus_pair. */
int64_t qkvi_text_n_pairs(const qkvi_text *text);
void qkvi_text_pair(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed,
                    qkvi_pair *pair);

/* The number of the line of an example: in training drawn at random, held out `index` modulo n. */
int64_t qkvi_text_draw(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed);
/* The two halves of a line. */
void qkvi_text_halves(const qkvi_text *text, int64_t line, qkvi_pair *pair);
/* FORMAT, naming the first line without a TAB, or without text on one side of it. */
QKV_NODISCARD qkv_status qkvi_text_check_tabs(const qkvi_text *text, qkv_error *error);

#endif
