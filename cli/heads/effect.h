/* `qkv heads --effect`: how a prediction changes when heads are ablated, alone and in groups. */
#ifndef QKV_CLI_HEADS_EFFECT_H
#define QKV_CLI_HEADS_EFFECT_H

#include "common/number.h"
#include "heads/heads.h"
#include <qkv/effects.h>

/* A set of heads that are ablated together. */
struct effect_set {
    const int64_t *heads; /* [n] of layer * n_heads + head */
    int64_t n;
    double nats, probability; /* changes of mean ln p and of p */
    double sum;               /* of nats of the sets of its single heads */
};

/* Edges of --edge that are cut together. */
struct effect_edge {
    const char *name;         /* as the user wrote them */
    int64_t n;                /* how many */
    double nats, probability; /* as of a set */
};

struct effect {
    const struct heads_options *options;
    const struct session *session;
    const qkv_encoding *input;
    const struct text *said[2]; /* as in text_job */
    qkv_attention_kind which;
    int64_t n_layers, n_heads, n_all; /* n_all: n_layers * n_heads */
    struct pair pair;                 /* of an encoder-decoder */
    const qkv_tokenizer *words_of;    /* the tokenizer of the words */
    bool is_loss;  /* the words are those of the text, not those that the model predicts */
    bool is_label; /* of an image: the word is a label */

    qkv_effects request;
    int64_t *positions;
    int32_t *words;
    int64_t *ends, *heads;
    float *means;
    int64_t n_mean; /* tokens over which means are taken */
    qkv_encoding *source;
    struct pair source_pair;
    qkv_run *source_run;

    double *log_p;             /* [n_sets + 1][n_places] */
    double value;              /* mean ln p of the words without ablation */
    struct effect_set *sets;   /* [n_all] of single heads in order, then those of --group */
    struct effect_edge *edges; /* [n_edges] of --edge, in their order */
    int64_t n_edges;
    struct sort_key *order; /* [n_all], first the head that helps most */
    int64_t n_shown;
};

/* Refuses heads of --group that the model does not have (effect.c). Returns an exit code. */
int effect_check(const struct session *session, const struct heads_options *options);
/* Answers one text, as text_job wants it. */
qkv_status effect_answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error);

/* Make the request to the library (effect_ask.c): words, sets, and the output of ablated heads. */
qkv_status effect_words(struct effect *effect, struct text_job *job, qkv_error *error);
qkv_status effect_sets(struct effect *effect, qkv_error *error);
qkv_status effect_given(struct effect *effect, qkv_error *error);
/* Measures what each --edge is worth, when the rest is known (effect_edges.c). */
qkv_status effect_edges(struct effect *effect, qkv_error *error);

/* Appends what was done, and what the numbers mean; table: also numbers that only a table has. */
void effect_caption(const struct effect *effect, bool table, struct caption *caption);
/* Appends what groups and edges are worth: "Ablated together: 1.0+1.1 -1.35 nats (sum -0.82). ". */
void effect_together(const struct effect *effect, struct caption *caption);
/* Appends the predictions: "[MASK] (token 5): door, p 0.43". */
void effect_looked_at(const struct effect *effect, struct caption *caption);

#define EFFECT_ENDINGS ".csv .tsv .json .png .svg .pdf"
void effect_print(const struct effect *effect);
json_t *effect_json(const struct effect *effect);
qkv_status effect_write(const struct effect *effect, const char *path, qkv_error *error);

#endif
