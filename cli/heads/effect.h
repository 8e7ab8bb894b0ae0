/* `qkv heads --effect`: what heads are worth for a prediction, alone and in groups. */
#ifndef QKV_CLI_HEADS_EFFECT_H
#define QKV_CLI_HEADS_EFFECT_H

#include "common/number.h"
#include "heads/heads.h"
#include <qkv/effects.h>

/* A set of heads: the first ones are single heads in their order, those behind are --group. */
struct effect_set {
    const int64_t *heads; /* [n] of layer * n_heads + head */
    int64_t n;
    double nats, probability; /* changes */
    double sum;               /* of the nats of its heads alone */
};

struct effect {
    const struct heads_options *options;
    const struct session *session;
    const qkv_encoding *input;
    const struct text *said[2]; /* as in text_job */
    qkv_attention_kind which;
    int64_t n_layers, n_heads, n_all; /* n_all: of the sets of one head */
    struct pair pair;                 /* what a decoder over an encoder reads */
    const qkv_tokenizer *words_of;
    bool is_loss; /* the words are those of the text, not what the model would say */

    qkv_effects asked;
    int64_t *positions;
    int32_t *words;
    int64_t *ends, *heads;
    float *means;
    int64_t n_mean; /* tokens that the means are over */
    qkv_encoding *source;
    struct pair source_pair;
    qkv_run *source_run;

    double *log_p; /* [n_sets + 1][n_places] */
    double value;  /* mean ln p of the words, as the model is */
    struct effect_set *sets;
    struct sort_key *order; /* [n_all], from the head that helps most */
    int64_t n_shown;
};

/* EXIT_USAGE, having said so, if a head of --group is none (effect.c). */
int effect_check(const struct session *session, const struct heads_options *options);
/* Answers one text, as text_job wants it. */
qkv_status effect_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error);

/* What is asked of the library (effect_ask.c): words, sets, and what ablated heads give. */
qkv_status effect_words(struct effect *effect, struct text_job *job, qkv_error *error);
qkv_status effect_sets(struct effect *effect, qkv_error *error);
qkv_status effect_given(struct effect *effect, qkv_error *error);

/* "1.2", "1.2+1.3" in room for a name; longer ones end in an ellipsis. */
enum { EFFECT_NAME = 96 };
void effect_name(const struct effect *effect, const struct effect_set *set, char name[EFFECT_NAME]);
/* What was done, and what numbers are; table: those of the table, too, which a picture has not. */
void effect_caption(const struct effect *effect, bool table, struct caption *caption);
/* "[MASK] (token 5): door, p 0.43"; what was looked at. */
void effect_looked_at(const struct effect *effect, struct caption *caption);

#define EFFECT_ENDINGS ".csv .tsv .json .png .svg .pdf"
void effect_print(const struct effect *effect);
json_t *effect_json(const struct effect *effect);
qkv_status effect_write(const struct effect *effect, const char *path, qkv_error *error);

#endif
