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

#include "qkv/model.h"

typedef struct qkvi_corpus qkvi_corpus;

typedef enum qkvi_split {
    QKVI_SPLIT_TRAIN,   /* never says what is held out */
    QKVI_SPLIT_HELD_OUT /* grammar: only what is held out; text: the lines in order */
} qkvi_split;

enum {
    QKVI_PAIR_BYTES = 1024, /* longest text of one pair that a grammar says, both halves */
    QKVI_PAIR_WORDS = 48    /* most words of one pair that a grammar says */
};

/* The bytes [begin, end) of text `half` (0: a, 1: b). */
typedef struct qkvi_span {
    int half;
    int32_t begin, end;
} qkvi_span;

/* One word of a sentence and the words that the grammar admits in its place, given all others. */
typedef struct qkvi_slot {
    qkvi_span span;
    const char *type;         /* "name", "door", "pronoun", "event", …: a row of the evaluation */
    const char *const *words; /* lower case, each one word; sorted */
    int32_t n_words;
} qkvi_slot;

typedef struct qkvi_pair {
    const char *a,
        *b; /* UTF-8, not terminated; into the corpus (text) or into `buffer` (grammar) */
    int64_t a_bytes, b_bytes; /* b_bytes == 0: a sentence alone, which has no NSP label */
    int is_next;              /* 1: b belongs after a; 0: it does not */
    /* 0: no MLM loss. A grammar's pair that does not belong together says nothing about which word
     * should fill a blank in it, so masking it teaches NSP only. Such pairs are masked like all
     * others (a mask must not give the label away), but their MLM targets do not count. */
    int counts_for_mlm;

    /* Pronoun probes (grammar, held out, a alone): the pronoun to mask, the word that decides it,
     * and every content word of a (the antecedent is one of them). has_probe == 0: none here. */
    int has_probe;
    qkvi_span pronoun, antecedent;
    qkvi_span content[QKVI_PAIR_WORDS];
    int32_t n_content;

    uint64_t origin; /* the grammar's own note of how the pair was made */
    char buffer[QKVI_PAIR_BYTES];
} qkvi_pair;

/* Open a corpus. The file is data from anywhere: messages name the line and the rule it breaks. */
QKV_NODISCARD qkv_status qkvi_corpus_open_grammar(const char *path, qkvi_corpus **corpus,
                                                  qkv_error *error);
QKV_NODISCARD qkv_status qkvi_corpus_open_text(const char *path, qkvi_corpus **corpus,
                                               qkv_error *error);
void qkvi_corpus_free(qkvi_corpus *corpus);

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

#endif
