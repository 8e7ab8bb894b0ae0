/* A pair of sentences for training and evaluation, made by a grammar or read from a text. */
#include "files/base.h"

#ifndef QKV_MODEL_GRAMMAR_PAIR_H
#define QKV_MODEL_GRAMMAR_PAIR_H

typedef enum qkvi_split {
    QKVI_SPLIT_TRAIN,   /* of a grammar: nothing that is held out */
    QKVI_SPLIT_HELD_OUT /* of a grammar: only what is held out; of a text: the lines in order */
} qkvi_split;

enum {
    QKVI_PAIR_WORDS = 48, /* most words of a pair of a grammar, both halves */
    QKVI_WORD_BYTES = 32, /* most bytes of a word */
    QKVI_PAIR_BYTES = QKVI_PAIR_WORDS * (QKVI_WORD_BYTES + 1) + 1 /* with spaces and a NUL */
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
    /* UTF-8 without NUL at the end, in the corpus (of a text) or in `buffer` (of a grammar). */
    const char *a, *b;
    int64_t a_bytes, b_bytes; /* b_bytes 0: a single sentence, without NSP label */
    int is_next;              /* 1: b follows a; 0: it does not */
    /*
     * 0: the pair has no MLM loss. If halves of a grammar's pair do not belong together, the
     * grammar does not say which word should replace a mask. Such pairs are masked like all others,
     * since masks must not reveal the label, but their MLM targets do not count.
     */
    int counts_for_mlm;

    /*
     * A pronoun probe (of a grammar, held out, a single sentence): the pronoun to mask, its
     * antecedent, which determines it, and all content words of a, of which the antecedent is one.
     */
    int has_probe;
    qkvi_span pronoun, antecedent;
    qkvi_span content[QKVI_PAIR_WORDS];
    int32_t n_content;

    uint64_t origin; /* for the grammar: how the pair was made */
    char buffer[QKVI_PAIR_BYTES];
} qkvi_pair;

#endif
