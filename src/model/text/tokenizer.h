/** What a qkv_tokenizer is. Filled by vocab_txt.c or tokenizer_json.c, then read-only. */
#ifndef QKVI_TEXT_TOKENIZER_H
#define QKVI_TEXT_TOKENIZER_H

#include "model/text/wordpiece.h"
#include "qkv/model.h"

enum { QKVI_TEMPLATE_MAX = 16, QKVI_N_ROLES = QKV_TOKEN_MASK + 1 };

/** One place in the sequence around a text: a special token, or the tokens of a text. */
typedef struct qkvi_template_item {
    int32_t id; /* or one of the two below */
    uint8_t type;
} qkvi_template_item;

enum { QKVI_TEMPLATE_TEXT = -1, QKVI_TEMPLATE_PAIR = -2 };

typedef struct qkvi_template {
    int n;
    qkvi_template_item items[QKVI_TEMPLATE_MAX];
} qkvi_template;

struct qkv_tokenizer {
    qkvi_bert_rules rules;
    qkvi_wordpiece model;
    qkvi_pieces added;        /* tokens cut out of the raw text, by their ids */
    uint8_t added_first[256]; /* 1: some of them begins with this byte */
    int32_t special[QKVI_N_ROLES];
    qkvi_template single, pair;
};

extern const char *const qkvi_role_names[QKVI_N_ROLES]; /* "[UNK]", … by qkv_token_role */

/** BERT's own: all switches on, "##", 100 characters, no tokens. NULL without memory. */
qkv_tokenizer *qkvi_tokenizer_new(void);

/**
 * The two steps that end opening, each after the tokens it sorts were added. The first makes the
 * vocabulary usable, so that added tokens can be compared with it; the second the added tokens, and
 * finds the tokens of the roles not set yet.
 */
qkv_status qkvi_tokenizer_seal_model(qkv_tokenizer *tokenizer, qkv_error *error);
qkv_status qkvi_tokenizer_seal(qkv_tokenizer *tokenizer, qkv_error *error);

/** [CLS] A [SEP] and [CLS] A [SEP] B [SEP] with types 0 and 1, from the ids of cls and sep. */
void qkvi_tokenizer_bert_templates(qkv_tokenizer *tokenizer, int32_t cls, int32_t sep);

/** 1 if a token continues the word before it: "##ing". */
int qkvi_tokenizer_continues(const qkv_tokenizer *tokenizer, int32_t id);

/** Readers. name is for messages; *tokenizer is NULL on error. */
qkv_status qkvi_tokenizer_read_vocab(const char *name, const void *vocab, size_t vocab_bytes,
                                     const char *config_name, const void *config,
                                     size_t config_bytes, qkv_tokenizer **tokenizer,
                                     qkv_error *error);
qkv_status qkvi_tokenizer_read_json(const char *name, const void *json, size_t json_bytes,
                                    qkv_tokenizer **tokenizer, qkv_error *error);

#endif
