/* `qkv explain`: what its parts share. Each makes a report (common/report.h) of its own. */
#ifndef QKV_CLI_EXPLAIN_H
#define QKV_CLI_EXPLAIN_H

#include "common/attended.h"
#include "common/report.h"
#include <qkv/inspect.h>

struct explain_options {
    struct cli_common common;
    const char *pair, *image, *out, *query, *q, *k, *v, *tokens, *q_tokens, *scores;
    bool shapes, no_scale, positions, shuffle, causal;
    struct arg_int length, dim, seed;
};

/* What a report explains, and its sizes. */
struct explain {
    const struct explain_options *options;
    qkv_ctx *ctx;
    int width;      /* columns of the terminal, or of a page */
    int64_t n_rows; /* the most keys that a table shows */
    /* One query of a text in a head: */
    const struct session *session;
    const qkv_encoding *input;
    char **labels;
    const qkv_steps *steps;
    int64_t head;     /* of --shuffle, in layer 0 */
    const char *rule; /* the rule that chose head and query; NULL: the user named them */
};

/* Makes a report, and shows it on the terminal, or writes it as the page of -o (deliver.c). */
typedef qkv_status explain_maker(struct report *report, const struct explain *e, qkv_error *error);
qkv_status explain_report(struct explain *e, explain_maker *make, qkv_error *error);

/* Explains texts by a model (text.c). Returns an exit code. */
int explain_texts(const struct cli_command *command, const struct explain_options *options,
                  int n_words, char **words);
explain_maker explain_model; /* one query (model.c) */
qkv_status explain_model_json(const struct explain *e, json_t **json, qkv_error *error);
explain_maker explain_shuffle; /* the order of the words shuffled (shuffle.c) */

/* Without a model: vectors that can be checked by hand (example.c), or of files (arrays.c). */
explain_maker explain_example, explain_arrays;

/* --scores: softmax of given scores (scores.c). */
explain_maker explain_scores;
qkv_status explain_scores_json(const struct explain *e, json_t **json, qkv_error *error);

/*
 * --no-scale: softmax without 1/√d and with it, for d = 4, 16 … 4096; as curves in a file
 * (scale.c).
 */
explain_maker explain_scale;
qkv_status explain_scale_json(const struct explain *e, json_t **json, qkv_error *error);
qkv_status explain_scale_picture(const struct explain *e, qkv_error *error);

/* --positions: sinusoids; as a heat map in a file (positions.c). */
explain_maker explain_positions;
qkv_status explain_positions_picture(const struct explain *e, qkv_error *error);

/* ---- Steps that every attention has (attention.c) -------------------------------------------- */

/* The query that is explained, and its numbers. */
struct explained {
    const qkv_steps *steps;
    int64_t head_dim_v;
    const char *query_label;
    char *const *labels; /* [n] of keys, escaped */
    bool masked;         /* some scores are -infinity */
    int64_t n_rows;      /* the most keys that a table shows */
};

/* Adds the steps: scores, scale, mask (`why` explains it), softmax, sum of values. */
void explain_attention(struct report *report, const struct explained *e, const char *why);
/* The key with the largest weight. */
int64_t explain_best_key(const qkv_steps *s);

/* One query of vectors without a model; head_dim and head_dim_v may differ. */
struct vectors {
    int64_t n_keys, head_dim, head_dim_v;
    const float *q, *k, *v; /* q [head_dim] is that one query */
    const char *query_label;
    char *const *key_labels; /* escaped */
    int64_t query;
    bool causal; /* key j is hidden from query i if j > i */
};
/* Computes its numbers; y_error and lse_error are the differences of the library's o and lse. */
qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *x, qkv_steps **made,
                           qkv_error *error);
/* Adds all steps from scores to output, and the comparison with the library. */
void explain_vectors(struct report *report, const struct vectors *x, const qkv_steps *made,
                     int64_t n_rows);
void explain_check(struct report *report, const qkv_steps *made);
/* Begins the step of that comparison. */
void explain_check_step(struct report *report);

#endif
