/* A pair of sentences as training and evaluation see it, made by a grammar or read from a file. */
#include "files/base.h"

#ifndef QKV_MODEL_GRAMMAR_PAIR_H
#define QKV_MODEL_GRAMMAR_PAIR_H

typedef enum qkvi_split {
    QKVI_SPLIT_TRAIN,   /* never says what is held out */
    QKVI_SPLIT_HELD_OUT /* grammar: only what is held out; text: the lines in order */
} qkvi_split;

enum {
    QKVI_PAIR_WORDS = 48, /* most words of one pair that a grammar says, both halves */
    QKVI_WORD_BYTES = 32, /* of the longest of them */
    QKVI_PAIR_BYTES = QKVI_PAIR_WORDS * (QKVI_WORD_BYTES + 1) + 1 /* of their text: spaces, a NUL */
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

#endif
