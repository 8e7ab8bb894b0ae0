/**
 * Chat templates: what a model was trained to read around the turns of a user, a system and itself.
 * In the files of a tokenizer a template is a program in Jinja. No program is run here: a table has
 * the known templates, which are recognised by the expression that writes a turn of the user and by
 * the text before the answer. A template that writes anything else around these is unknown.
 */
#ifndef QKVI_TEXT_CHAT_H
#define QKVI_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "qkv/qkv.h"

/** A template of the table. */
typedef struct qkvi_chat_kind {
    const char *name;
    const char *before, *behind; /* around a user's turn; behind ends where the answer begins */
    const char *system_before, *system_behind; /* around a system's turn; NULL: it has none */
    const char *end;                           /* the token that ends an answer; NULL: EOS */
    bool ends_in_eos;                          /* EOS and a newline come between turn and behind */
    bool has_bos; /* a text begins with BOS, if the file does not say */
    bool trims;   /* white space around a turn is removed */
} qkvi_chat_kind;

/** The template in the files of a tokenizer. All 0: there is none. */
typedef struct qkvi_chat {
    bool is_there;
    const qkvi_chat_kind *kind; /* NULL: unknown */
    char *begin;                /* the beginning of an unknown template, escaped for messages */
    char *bos, *eos;            /* NULL: none */
    char *system;               /* the text of the system that the template adds; NULL: none */
    const char *opening;        /* of the answer, written by the template: "" or "<think>\n" */
    bool has_bos;
} qkvi_chat;

/** "chatml, gemma, …": for messages. */
extern const char qkvi_chat_names[];

/** A kind by its name; NULL: there is none. */
const qkvi_chat_kind *qkvi_chat_kind_of(const char *name);

/**
 * Recognises a template, and copies the tokens bos and eos; all three may be NULL. MEMORY.
 */
qkv_status qkvi_chat_read(const char *template, size_t n, const char *bos, const char *eos,
                          qkvi_chat *chat);
void qkvi_chat_free(qkvi_chat *chat);

/** A template in the canonical spelling of chat_spell.c, a string to be freed. MEMORY. */
qkv_status qkvi_chat_spell(const char *template, size_t n, char **text);
/** Is c white space that Jinja removes beside a tag with a minus? */
bool qkvi_chat_is_white(char c);

#endif
