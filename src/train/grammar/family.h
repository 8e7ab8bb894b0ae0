/* Families while they are read: their variables, and their templates compiled into frames. */
#ifndef QKV_MODEL_GRAMMAR_FAMILY_H
#define QKV_MODEL_GRAMMAR_FAMILY_H

#include "train/grammar/words.h"

/* ---- family.c ---- */

/* "family NAME [hold V [W]] [*N]": tokens after the first. Hold names are looked up at the end. */
qkv_status qkvi_family_begin(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
/* An indented line: "V = …", "say …", "pair … | …", "held say …", "held pair … | …". */
qkv_status qkvi_family_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);
/* After the last line of the last family: hold variables and checks. */
qkv_status qkvi_family_end(const qkvi_reader *r);

/* ---- domain.c ---- */

/* The family that is being read, and its variable of this name, or -1. */
qkvi_family *qkvi_family_current(const qkvi_reader *r);
int32_t qkvi_family_var(const qkvi_family *family, qkvi_grammar_token token);
/* Splits at the first c; false if there is none. */
bool qkvi_token_split(qkvi_grammar_token token, char c, qkvi_grammar_token *left,
                      qkvi_grammar_token *right);
/* "V = …" */
qkv_status qkvi_variable_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n);

/* ---- element.c ---- */

/* One token of a template before <X> is expanded. */
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
