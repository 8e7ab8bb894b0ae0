/**
 * Turns of a user and of a model, as the chat template of a tokenizer's files has them. A template
 * is a program in Jinja. None is run here: those of the table below are recognised by the
 * expression that writes a turn of the user, and by what it writes before the answer. A template
 * that has anything else around these is not known.
 */
#ifndef QKVI_TEXT_CHAT_H
#define QKVI_TEXT_CHAT_H

#include <stdbool.h>
#include <stddef.h>

#include "qkv/qkv.h"

/** A template of the table: what stands around a turn of the user, and before the answer. */
typedef struct qkvi_chat_kind {
    const char *name;
    const char *before, *behind; /* behind goes on to where the answer begins */
    const char *system_before,
        *system_behind; /* around a turn of the system; NULL: there is none */
    const char *end;    /* the token that ends an answer; NULL: EOS */
    bool ends_in_eos;   /* EOS and a newline stand between text and behind */
    bool has_bos;       /* a text begins with BOS, if the file does not say */
    bool trims;         /* white space around a turn is left out */
} qkvi_chat_kind;

/** What the files of a tokenizer say. Zeros: they have no template. */
typedef struct qkvi_chat {
    bool is_there;
    const qkvi_chat_kind *kind; /* NULL: it is not known */
    char *begin;                /* of a template that is not known, fit to print */
    char *bos, *eos;            /* NULL: none */
    char *system;               /* what the template itself says as the system; NULL: nothing */
    const char *opening;        /* of the answer, by the template: "" or "<think>\n" */
    bool has_bos;
} qkvi_chat;

/** "chatml, gemma, …": for messages. */
extern const char qkvi_chat_names[];

/** A kind by its name; NULL: there is none. */
const qkvi_chat_kind *qkvi_chat_kind_of(const char *name);

/**
 * Recognises a template, unless it is NULL, and keeps the names of two tokens, which may be NULL,
 * too. MEMORY.
 */
qkv_status qkvi_chat_read(const char *template, size_t n, const char *bos, const char *eos,
                          qkvi_chat *chat);
void qkvi_chat_free(qkvi_chat *chat);

/** A template in the one spelling that is recognised; ends in a NUL, to be freed. MEMORY. */
qkv_status qkvi_chat_spell(const char *template, size_t n, char **text);
/** What Jinja leaves out beside a tag with a minus. */
bool qkvi_chat_is_white(char c);

#endif
