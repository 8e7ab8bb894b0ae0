/** The words of a script without spaces: what page_names.c must know of each. */
#ifndef QKVI_VIEW_PAGE_WORDS_H
#define QKVI_VIEW_PAGE_WORDS_H

#include <stddef.h>

typedef enum qkvi_script_word_kind {
    QKVI_SCRIPT_NAME, /* of a variable, a property or a key */
    QKVI_SCRIPT_WORD, /* of the language */
    QKVI_SCRIPT_MARK, /* one character */
    QKVI_SCRIPT_OTHER, /* a number, a pattern, a string or a part of one, up to its ${ or from its } on */
} qkvi_script_word_kind;

typedef struct qkvi_script_word {
    const char *text;
    int n;
    qkvi_script_word_kind kind;
    int around; /* the innermost bracket that is open here; -1: none */
    int other;  /* of a bracket: the one that belongs to it; -1: none */
    int object; /* of '{': 1 if it begins an object or a pattern, 0 if a block */
} qkvi_script_word;

typedef struct qkvi_script_words {
    qkvi_script_word *list;
    int n, failed;
} qkvi_script_words;

/** All of a script in which no template stands in another; free the list. */
qkvi_script_words qkvi_script_words_read(const char *at, const char *end);

int qkvi_script_word_is(const qkvi_script_word *token, const char *text);
/** A word of the language, or a name that must not be given to anything else. */
int qkvi_script_reserved(const char *text, int n);

#endif
