/* Parsing families of a grammar: their variables, and their templates, compiled into frames. */
#ifndef QKV_MODEL_GRAMMAR_FAMILY_H
#define QKV_MODEL_GRAMMAR_FAMILY_H

#include "train/grammar/words.h"

/* ---- family.c ---- */

/* "family NAME [hold V [W]] [*N]", tokens without the first; V and W are looked up at the end. */
qkv_status qkvi_family_begin(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
/* An indented line: "V = …", "say …", "pair … | …", "held say …", "held pair … | …". */
qkv_status qkvi_family_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
/* To be called after the last line of a grammar: resolves hold variables, and checks. */
qkv_status qkvi_family_end(const qkvi_reader *r);

/* ---- domain.c ---- */

/* The family that is being read; the index of its variable of this name, or -1. */
qkvi_family *qkvi_family_current(const qkvi_reader *r);
int32_t qkvi_family_var(const qkvi_family *family, qkvi_grammar_token token);
/* Splits a token at the first c; false if there is none. */
bool qkvi_token_split(qkvi_grammar_token token, char c, qkvi_grammar_token *left,
                      qkvi_grammar_token *right);
/* "V = …" */
qkv_status qkvi_variable_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);

/* ---- element.c ---- */

/* An element of a template line, before each <X> is expanded to two frames. */
typedef struct qkvi_proto_element {
    qkvi_element element;
    bool is_optional, is_bar;
} qkvi_proto_element;

qkv_status qkvi_element_parse(const qkvi_reader *r, qkvi_grammar_token token,
                              qkvi_proto_element *proto);
/* "when|while|until" */
qkv_status qkvi_literal_parse(const qkvi_reader *r, qkvi_grammar_token token,
                              qkvi_element *element);

#endif
