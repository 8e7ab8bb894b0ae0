/*
 * A grammar: words with features, and frames that say which words go together (docs/grammar.md).
 *
 *   word     an inflected form as it is written, such as "Opened", with its lower-case key
 *   lexeme   an entry of a class: up to five words (forms), a set of features, the row of the
 *            person table with its pronouns, and links (features that it requires of another
 *            lexeme)
 *   frame    a fixed sequence of elements, each of which is one word of the text: a literal, a form
 *            of a variable, or something that agrees with one (pronoun, verb, article)
 *   template a line of the file: one frame, or 2^k for k subjects <X> (with or without "the")
 *   family   variables with their domains, and the templates that use them
 *
 * Every element is exactly one word, and every variable determines some element. So the words that
 * may be at one place, given all others, are found by matching: the other words determine the
 * lexemes of all variables but one, and that one goes through its domain (match.c).
 *
 * A text of a family is held out if the words of the family's `hold` variables are (one in eight,
 * by a hash of the family's name and these words; or by a `shown` line), or if its template is
 * marked `held`.
 */
#ifndef QKV_MODEL_GRAMMAR_H
#define QKV_MODEL_GRAMMAR_H

#include "core/rng.h"
#include "qkv/status.h"
#include "train/grammar/pair.h"

enum {
    QKVI_MAX_FEATURES = 128,
    QKVI_MAX_LINKS = 8,
    QKVI_MAX_PERSONS = 16,
    QKVI_MAX_VARS = 12,
    QKVI_MAX_ANY = 8, /* conditions "one of these features" of one variable, links included */
    QKVI_MAX_ALTERNATIVES = 8, /* of a literal: when|while|until */
    QKVI_N_FORMS = 5,
    QKVI_HELD_ONE_IN = 8,
    QKVI_GRAMMAR_BYTES = 1 << 22 /* largest file */
};

typedef struct qkvi_features {
    uint64_t bits[QKVI_MAX_FEATURES / 64];
} qkvi_features;

/* Columns of the person table: he him his was is has does. */
typedef enum qkvi_column {
    QKVI_SUBJ,
    QKVI_OBJ,
    QKVI_OWN,
    QKVI_WAS,
    QKVI_IS,
    QKVI_HAS,
    QKVI_DOES,
    QKVI_N_COLUMNS
} qkvi_column;

typedef enum qkvi_kind { QKVI_KIND_NOUN, QKVI_KIND_VERB, QKVI_KIND_WORD } qkvi_kind;

/* Forms of a noun: its own, singular, plural; of a verb: base, he opens, past, opening, done. */
typedef struct qkvi_lexeme {
    int32_t forms[QKVI_N_FORMS]; /* words; -1: there is none */
    qkvi_features features;
    qkvi_features links[QKVI_MAX_LINKS];
    int16_t person; /* row of the person table; -1: none */
    int16_t class_id;
    int16_t weight;
} qkvi_lexeme;

typedef struct qkvi_grammar_word {
    const char *text, *key; /* as written; in lower case */
    int32_t *uses;          /* [n_uses]: lexeme * QKVI_N_FORMS + form, for each form spelled so */
    int32_t n_uses, n_lexemes;
    uint64_t hash;    /* of the key */
    bool is_function; /* listed by a `function` line */
    bool is_content;  /* a form of some lexeme */
    bool is_said;     /* some frame can say it */
} qkvi_grammar_word;

typedef struct qkvi_class {
    const char *name, *type; /* type: the first of its features, the row in an evaluation */
    qkvi_kind kind;
    int32_t n_lexemes;
} qkvi_class;

typedef struct qkvi_person {
    const char *name;
    int32_t words[QKVI_N_COLUMNS];
    bool takes_s; /* verbs are "opens", not "open": the person is he, she or it */
} qkvi_person;

/* A condition on the lexeme of a variable, given that of another variable, `other`. */
typedef enum qkvi_relation_kind {
    QKVI_RELATION_LINK,        /* has one of the features in other.links[link] */
    QKVI_RELATION_OTHER_WORD,  /* is not other */
    QKVI_RELATION_OTHER_PERSON /* has another pronoun than other */
} qkvi_relation_kind;

typedef struct qkvi_relation {
    qkvi_relation_kind kind;
    int32_t other, link;
} qkvi_relation;

typedef enum qkvi_bareness { QKVI_ANY, QKVI_BARE, QKVI_NOT_BARE, QKVI_N_BARENESS } qkvi_bareness;

typedef struct qkvi_domain {
    int32_t *members; /* lexemes */
    int32_t n;
    int32_t *pool; /* each member as often as its weight, for drawing */
    int32_t n_pool;
} qkvi_domain;

typedef struct qkvi_var {
    const char *name;
    qkvi_features all, none, any[QKVI_MAX_ANY];
    int32_t n_any;
    qkvi_relation relations[QKVI_MAX_VARS];
    int32_t n_relations;
    qkvi_domain domains[QKVI_N_BARENESS];
    int32_t most_alike; /* most lexemes of the domain that share a spelling */
} qkvi_var;

typedef enum qkvi_element_kind {
    QKVI_LITERAL, /* one of some words */
    QKVI_FORM,    /* form of var */
    QKVI_PERSON,  /* a column of var's person: pronoun or auxiliary */
    QKVI_AGREE,   /* the verb var in the present, with `other` as its subject */
    QKVI_ARTICLE  /* a or an, before var */
} qkvi_element_kind;

typedef struct qkvi_element {
    qkvi_element_kind kind;
    int8_t var, other;
    int8_t form;                          /* form, or qkvi_column */
    bool is_probe;                        /* a pronoun probe, whose antecedent is var */
    int32_t words[QKVI_MAX_ALTERNATIVES]; /* [n_words] of a literal */
    int32_t n_words;
} qkvi_element;

typedef struct qkvi_sentence_frame {
    int32_t family, template;
    int32_t first_element, n_elements;
    int32_t n_a; /* elements of the first half; n_elements if there is no second one */
    uint8_t bareness[QKVI_MAX_VARS]; /* qkvi_bareness of each variable */
} qkvi_sentence_frame;

typedef struct qkvi_sentence_template {
    int32_t family;
    int32_t first_frame; /* of 2^n_optional: in frame first_frame + f, optional[i] is bare if bit i
                            of f is set */
    int32_t optional[QKVI_MAX_VARS]; /* the variables written <X> */
    int32_t n_optional;
    uint32_t vars[2]; /* sets of bits: the variables of each half */
    bool is_pair, is_held, has_probe;
} qkvi_sentence_template;

typedef struct qkvi_family {
    const char *name;
    uint64_t name_hash;
    qkvi_var vars[QKVI_MAX_VARS];
    int32_t n_vars;
    const char *hold_names[2];
    int32_t hold[2], n_hold;
    int32_t weight;
    int32_t first_template, n_templates;
    int32_t line;
} qkvi_family;

/* Templates to draw from, each as often as its weight. */
typedef struct qkvi_template_pool {
    int32_t *entries, n;
} qkvi_template_pool;

enum {
    QKVI_POOL_SINGLE, /* not marked held */
    QKVI_POOL_PAIR,
    QKVI_POOL_HELD_SINGLE, /* marked held, or of a family with `hold` variables */
    QKVI_POOL_HELD_PAIR,
    QKVI_POOL_PROBE, /* held singles with a probe */
    QKVI_N_POOLS
};

typedef struct qkvi_grammar qkvi_grammar;
struct qkvi_grammar {
    qkvi_grammar_word *words;
    int32_t n_words, cap_words;
    int32_t *word_table; /* hash of the key -> word + 1 */
    int32_t n_word_table;
    qkvi_lexeme *lexemes;
    int32_t n_lexemes, cap_lexemes;
    qkvi_class *classes;
    int32_t n_classes, cap_classes;
    qkvi_person persons[QKVI_MAX_PERSONS];
    int32_t n_persons;
    const char *features[QKVI_MAX_FEATURES];
    int32_t n_features;
    const char *links[QKVI_MAX_LINKS];
    int32_t n_links;
    qkvi_element *elements;
    int32_t n_elements, cap_elements;
    qkvi_sentence_frame *frames;
    int32_t n_frames, cap_frames;
    qkvi_sentence_template *templates;
    int32_t n_templates, cap_templates;
    qkvi_family *families;
    int32_t n_families, cap_families;
    uint64_t *shown; /* sorted qkvi_hold_key of what `shown` lines hold out */
    int32_t n_shown, cap_shown;
    qkvi_template_pool pools[QKVI_N_POOLS];
    int32_t n_domain_entries;
    int32_t *said, n_said;     /* the words that some frame can say, ascending */
    int32_t article[2];        /* a, an */
    struct qkvi_chunk *chunks; /* strings */
};

/* The lexeme of each variable of a frame; -1: the frame has no such variable. */
typedef struct qkvi_assignment {
    int32_t lexeme[QKVI_MAX_VARS];
} qkvi_assignment;

/* The words of a text or pair; a masked word is -1, a word unknown to the grammar -2. */
typedef struct qkvi_sentence {
    int32_t words[QKVI_PAIR_WORDS];
    qkvi_span spans[QKVI_PAIR_WORDS];
    int32_t n, n_a; /* n == n_a: no second half */
} qkvi_sentence;

typedef enum qkvi_said {
    QKVI_NEVER_SAID, /* not in the language */
    QKVI_HELD_OUT,   /* in the language; no parse of it occurs in training */
    QKVI_TRAINED
} qkvi_said;

/* ---- read.c: from bytes ---- */

/* Parses a grammar; name is for messages. */
QKV_NODISCARD qkv_status qkvi_grammar_parse(const char *name, const char *bytes, size_t n_bytes,
                                            qkvi_grammar **grammar, qkv_error *error);
void qkvi_grammar_free(qkvi_grammar *grammar);

/* ---- match.c: which words fit ---- */

/* The word with this lower-case key, or -1. */
int32_t qkvi_word_find(const qkvi_grammar *g, const char *key, int32_t bytes);

/* Characters that are words of their own. */
static inline bool qkvi_is_punctuation(char c) {
    return c == '.' || c == ',' || c == '?' || c == '!' || c == ';' || c == ':' || c == '"';
}

/*
 * Splits a text, or a pair (b is nullable), into lower-case words and punctuation; "[MASK]" is a
 * masked word. False if there are more than QKVI_PAIR_WORDS.
 */
bool qkvi_grammar_split(const qkvi_grammar *g, const char *a, int64_t a_bytes, const char *b,
                        int64_t b_bytes, qkvi_sentence *sentence);

/*
 * Calls visit for every frame and assignment that give the sentence; visit returns false to stop.
 * At most one word may be masked. part 0: the sentence or pair is a whole frame; 1, 2: the sentence
 * is the first or second half of a pair.
 */
typedef bool (*qkvi_visit)(void *user, const qkvi_sentence_frame *frame,
                           const qkvi_assignment *assignment);
void qkvi_grammar_match(const qkvi_grammar *g, const qkvi_sentence *sentence, int part,
                        qkvi_visit visit, void *user);

/* Does a pair without masked words belong together? */
bool qkvi_grammar_is_pair(const qkvi_grammar *g, const qkvi_sentence *sentence);

/*
 * Writes the words that may replace the one masked word, sorted by key, into set [g->n_words];
 * returns their number.
 */
int32_t qkvi_grammar_admissible(const qkvi_grammar *g, const qkvi_sentence *sentence, int32_t *set);

/*
 * Can the sentence occur in training? n_parts 1: as it is; 2: also as the first half of a pair; 3:
 * also as the second half.
 */
qkvi_said qkvi_grammar_said(const qkvi_grammar *g, const qkvi_sentence *sentence, int n_parts);

/* ---- template.c: elements ---- */

/*
 * Writes the words that an element may be under an assignment; returns their number, at most
 * QKVI_MAX_ALTERNATIVES.
 */
int32_t qkvi_element_words(const qkvi_grammar *g, const qkvi_element *element,
                           const qkvi_assignment *assignment, int32_t *words);
/* Fills g->said, which has room for all words. */
void qkvi_mark_said(qkvi_grammar *g);
/* Does a lexeme have the features that a variable requires? */
bool qkvi_var_admits(const qkvi_var *var, const qkvi_lexeme *lexeme);
bool qkvi_domain_has(const qkvi_domain *domain, int32_t lexeme);
/* Does a lexeme satisfy all relations of var to variables that are assigned? */
bool qkvi_relations_hold(const qkvi_grammar *g, const qkvi_var *var, int32_t lexeme,
                         const qkvi_assignment *assignment);
/* Is an assignment to the variables of a template held out? */
bool qkvi_is_held(const qkvi_grammar *g, const qkvi_sentence_template *template,
                  const qkvi_assignment *assignment);
uint64_t qkvi_hold_key(const qkvi_grammar *g, const qkvi_family *family,
                       const qkvi_assignment *assignment);

/* ---- template.c: making pairs ---- */

void qkvi_grammar_pair(const qkvi_grammar *g, qkvi_split split, int64_t index, uint64_t seed,
                       qkvi_pair *pair);
int qkvi_grammar_probe(const qkvi_grammar *g, int64_t index, uint64_t seed, qkvi_pair *pair);

/* ---- features ---- */

static inline bool qkvi_features_meet(qkvi_features a, qkvi_features b) {
    return ((a.bits[0] & b.bits[0]) | (a.bits[1] & b.bits[1])) != 0;
}
static inline bool qkvi_features_contain(qkvi_features a, qkvi_features b) {
    return ((b.bits[0] & ~a.bits[0]) | (b.bits[1] & ~a.bits[1])) == 0;
}
static inline void qkvi_features_add(qkvi_features *a, int32_t feature) {
    a->bits[feature / 64] |= UINT64_C(1) << (feature % 64);
}
static inline bool qkvi_features_empty(qkvi_features a) { return (a.bits[0] | a.bits[1]) == 0; }

#endif
