/*
 * Training text as numbered pairs: pair number `index` is a pure function of (seed, split, index).
 *
 * A corpus is a grammar (docs/grammar.md) or a text file. A grammar speaks without end and knows,
 * for every word of a sentence, which words could stand in its place (the admissible set). A text
 * file has one sentence per line, or sentence TAB following sentence.
 *
 * A corpus is read-only after it is opened and may be used by many threads.
 *
 * Size of the embedded model (so that model.safetensors stays under 4,000,000 bytes in f32): 4
 * layers, 4 heads, hidden 128, feed-forward 384, vocabulary <= 1,600, 48 positions.
 */
#ifndef QKV_MODEL_TRAIN_CORPUS_H
#define QKV_MODEL_TRAIN_CORPUS_H

#include "files/base.h"
#include "qkv/model.h"
#include "train/grammar/grammar.h"
#include "train/grammar/pair.h"

typedef struct qkvi_corpus qkvi_corpus;

/* Open a corpus. The file is data from anywhere: messages name the line and the rule it breaks. */
QKV_NODISCARD qkv_status qkvi_corpus_open_grammar(const char *path, qkvi_corpus **corpus,
                                                  qkv_error *error);
/* The same from bytes; name is what messages call them. */
QKV_NODISCARD qkv_status qkvi_corpus_open_grammar_memory(const char *name, const char *bytes,
                                                         size_t n_bytes, qkvi_corpus **corpus,
                                                         qkv_error *error);
QKV_NODISCARD qkv_status qkvi_corpus_open_text(const char *path, qkvi_corpus **corpus,
                                               qkv_error *error);
void qkvi_corpus_free(qkvi_corpus *corpus);

/* FNV-1a of the file's bytes: tells one corpus from another, not friend from foe. */
uint64_t qkvi_corpus_hash(const qkvi_corpus *corpus);

/* NULL for a text. */
const qkvi_grammar *qkvi_corpus_grammar(const qkvi_corpus *corpus);

/*
 * Pair number `index` >= 0 of a split. Cannot fail. `pair` points into itself: do not copy it.
 * Text, held out: each line as it is (is_next = 1), then each line with a TAB with the second half
 * of another (is_next = 0).
 */
void qkvi_corpus_pair(const qkvi_corpus *corpus, qkvi_split split, int64_t index, uint64_t seed,
                      qkvi_pair *pair);

/* A pronoun probe: like pair `index` of the held-out split, but always has_probe = 1. Returns 0 for
 * a corpus without probes (text). */
int qkvi_corpus_probe(const qkvi_corpus *corpus, int64_t index, uint64_t seed, qkvi_pair *pair);

/* The words of a pair made by a grammar, in order, with their admissible sets. For a pair that does
 * not count for MLM, and for text, *n_slots = 0 (text: mask every token; it alone is admissible).
 * *slots is one allocation of the callee, freed by qkvi_slots_free. */
QKV_NODISCARD qkv_status qkvi_corpus_slots(const qkvi_corpus *corpus, const qkvi_pair *pair,
                                           qkvi_slot **slots, int32_t *n_slots, qkv_error *error);
void qkvi_slots_free(qkvi_slot *slots);

/*
 * A document: a line of a text, or what a grammar says, sentence after sentence, until it has at
 * least enough bytes. Appended to text. MEMORY.
 */
QKV_NODISCARD qkv_status qkvi_corpus_document(const qkvi_corpus *corpus, qkvi_split split,
                                              int64_t index, uint64_t seed, int64_t enough,
                                              qkvi_growing *text, qkv_error *error);

/* A line of a text of translations: a is the source, b the target. Cannot fail. */
void qkvi_corpus_translation(const qkvi_corpus *corpus, qkvi_split split, int64_t index,
                             uint64_t seed, qkvi_pair *pair);
/* Before that: FORMAT, naming the first line that is none; ARGUMENT for a grammar. */
QKV_NODISCARD qkv_status qkvi_corpus_check_translations(const qkvi_corpus *corpus,
                                                        qkv_error *error);

/* The number of held-out pairs that an evaluation should read (text: all of them). */
int64_t qkvi_corpus_held_out_pairs(const qkvi_corpus *corpus);

/*
 * Raw text for making the vocabulary: piece `index` of qkvi_corpus_n_texts, with its count. Of a
 * grammar these are all words that it can say, each with a count so high that it becomes one token,
 * and the printable characters of ASCII.
 */
int64_t qkvi_corpus_n_texts(const qkvi_corpus *corpus);
const char *qkvi_corpus_text(const qkvi_corpus *corpus, int64_t index, int64_t *bytes,
                             int64_t *count);

/* A text file as pairs: one sentence per line, or sentence TAB following sentence. */

typedef struct qkvi_text qkvi_text;

QKV_NODISCARD qkv_status qkvi_text_open(const char *path, qkvi_text **text, qkv_error *error);
void qkvi_text_free(qkvi_text *text);
/* FNV-1a of the file's bytes. */
uint64_t qkvi_text_hash(const qkvi_text *text);
int64_t qkvi_text_n_lines(const qkvi_text *text);
const char *qkvi_text_line(const qkvi_text *text, int64_t index, int64_t *bytes);
/* Each line as it is, then each line with a TAB with the second half of another. */
int64_t qkvi_text_n_pairs(const qkvi_text *text);
void qkvi_text_pair(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed,
                    qkvi_pair *pair);

/* Lines as they are: of the training split drawn at random, held out one after another. */
int64_t qkvi_text_draw(const qkvi_text *text, qkvi_split split, int64_t index, uint64_t seed);
/* The two halves of a line. */
void qkvi_text_halves(const qkvi_text *text, int64_t line, qkvi_pair *pair);
/* FORMAT, naming it: a line lacks a TAB or the text on one side of it. */
QKV_NODISCARD qkv_status qkvi_text_check_tabs(const qkvi_text *text, qkv_error *error);

#endif
