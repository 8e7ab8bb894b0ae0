/*
 * Parsing the lexicon of a grammar: strings, words, features, classes and their entries.
 */
#ifndef QKV_MODEL_GRAMMAR_WORDS_H
#define QKV_MODEL_GRAMMAR_WORDS_H

#include "train/grammar/grammar.h"

enum { QKVI_MAX_READINGS = 4 }; /* persons of a class: "he she" */

/* The state of reading a grammar; name and line are for messages, "grammar.txt:12: …". */
typedef struct qkvi_reader {
    qkvi_grammar *g;
    const char *name;
    int32_t line;
    qkv_error *error;
} qkvi_reader;

/* A piece of the file. */
typedef struct qkvi_grammar_token {
    const char *text;
    int32_t bytes;
} qkvi_grammar_token;

qkv_status qkvi_reader_fail(const qkvi_reader *r, qkv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A token, escaped and cut for a message. */
typedef struct qkvi_quoted {
    char text[64];
} qkvi_quoted;
qkvi_quoted qkvi_token_quote(qkvi_grammar_token token);

bool qkvi_token_is(qkvi_grammar_token token, const char *text);

/* Makes room for one more element of *array. */
qkv_status qkvi_reader_grow(const qkvi_reader *r, void *array, int32_t n, int32_t *capacity,
                            size_t size);
/* Copies bytes into a string that lives as long as the grammar. */
qkv_status qkvi_reader_keep(const qkvi_reader *r, const char *text, int32_t bytes,
                            const char **kept);

/* Finds the word of a token, or adds it. */
qkv_status qkvi_word_add(const qkvi_reader *r, qkvi_grammar_token token, int32_t *word);

/* Finds the feature of this name; if there is none, adds it (`add`) or fails. */
qkv_status qkvi_reader_feature(const qkvi_reader *r, qkvi_grammar_token token, bool add,
                               int32_t *feature);
qkv_status qkvi_reader_link(const qkvi_reader *r, qkvi_grammar_token token, bool add,
                            int32_t *link);

/* The part of a class's line that holds for all its entries. */
typedef struct qkvi_class_head {
    int32_t class_id;
    qkvi_kind kind;
    qkvi_features features, links[QKVI_MAX_LINKS];
    int32_t persons[QKVI_MAX_READINGS], n_persons; /* an entry becomes a lexeme for each person */
    int32_t weight;
} qkvi_class_head;

/*
 * element.c. Adds an entry: "door", "box/boxes", "tea/", "/scissors", "open",
 * "close/closes/closed/closing".
 */
qkv_status qkvi_entry_add(const qkvi_reader *r, const qkvi_class_head *head,
                          qkvi_grammar_token entry);

/* class.c: whole lines, as tokens. */
qkv_status qkvi_function_words(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
qkv_status qkvi_person_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
qkv_status qkvi_class_line(const qkvi_reader *r, qkvi_kind kind, const qkvi_grammar_token *tokens,
                           int32_t n, qkvi_class_head *head);
qkv_status qkvi_entries(const qkvi_reader *r, const qkvi_class_head *head,
                        const qkvi_grammar_token *tokens, int32_t n);

/* To be called after the last entry: fills `uses` of all words. */
qkv_status qkvi_words_finish(const qkvi_reader *r);

void qkvi_words_free(qkvi_grammar *g);

uint64_t qkvi_word_hash(const char *text, size_t bytes);

/* draw.c: fills the pools, and checks that every template can be drawn. */
qkv_status qkvi_grammar_pools(const qkvi_reader *r);

#endif
