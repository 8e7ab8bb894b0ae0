/* `qkv explain`: what its parts share. Each makes a report (common/report.h) of its own. */
#ifndef QKV_CLI_EXPLAIN_H
#define QKV_CLI_EXPLAIN_H

#include "common/attended.h"
#include "common/report.h"
#include <qkv/inspect.h>

struct explain_options {
    struct cli_common common;
    const char *pair, *out, *query, *q, *k, *v, *tokens, *q_tokens, *scores;
    bool shapes, no_scale, positions, shuffle, causal;
    struct arg_int length, dim, seed;
};

/* What a report is of, and where it goes. */
struct explain {
    const struct explain_options *options;
    qkv_ctx *ctx;
    int width;      /* columns that it has room for … */
    int64_t n_rows; /* … and keys that a table shows, at most */
    /* Of one query of a text in a head: */
    const struct session *session;
    const qkv_encoding *input;
    char **labels;
    const qkv_steps *steps;
    int64_t head;     /* of --shuffle, in layer 0 */
    const char *rule; /* by what head and query were chosen; NULL: they were named */
};

/* Makes a report, and shows it on the terminal or writes it as the page of -o (cmd_explain.c). */
typedef qkv_status explain_maker(struct report *report, const struct explain *e, qkv_error *error);
qkv_status explain_report(struct explain *e, explain_maker *make, qkv_error *error);

/* Of texts, through a model (text.c). An exit code. */
int explain_texts(const struct cli_command *command, const struct explain_options *options,
                  int n_words, char **words);
explain_maker explain_model; /* one query (model.c) */
qkv_status explain_model_json(const struct explain *e, json_t **json, qkv_error *error);
explain_maker explain_shuffle; /* the order of the words shuffled (shuffle.c) */

/* Without a model: vectors that can be checked by hand (example.c), or of files (arrays.c). */
explain_maker explain_example, explain_arrays;

/* Softmax of scores that are given (scores.c). */
explain_maker explain_scores;
qkv_status explain_scores_json(const struct explain *e, json_t **json, qkv_error *error);

/* Without 1/√d and with it, for d = 4, 16 … 4096; and as curves in the file of -o (scale.c). */
explain_maker explain_scale;
qkv_status explain_scale_json(const struct explain *e, json_t **json, qkv_error *error);
qkv_status explain_scale_picture(const struct explain *e, qkv_error *error);

/* Sinusoids; and as a heat map in the file of -o (positions.c). */
explain_maker explain_positions;
qkv_status explain_positions_picture(const struct explain *e, qkv_error *error);

/* ---- Steps that every attention has (attention.c) -------------------------------------------- */

/* Which query is explained, and by what numbers. */
struct explained {
    const qkv_steps *steps;
    int64_t head_dim_v;
    const char *query_label;
    char *const *labels; /* [n], of keys, escaped */
    bool masked;         /* some scores are -infinity */
    int64_t n_rows;      /* of a table of keys, at most */
};

/* Scores, scale and mask (and why), softmax, sum of the values. */
void explain_attention(struct report *report, const struct explained *e, const char *why);
/* The key with the largest weight. */
int64_t explain_best_key(const qkv_steps *s);

/* One query of vectors without a model; head_dim and head_dim_v may differ. */
struct vectors {
    int64_t n_keys, head_dim, head_dim_v;
    const float *q, *k, *v; /* q: of the query alone */
    const char *query_label;
    char *const *key_labels; /* escaped */
    int64_t query;
    bool causal; /* key j is hidden from query i if j > i */
};
/* Its numbers; y_error and lse_error: how far the library's o and lse are from them. */
qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *x, qkv_steps **made,
                           qkv_error *error);
/* Everything but what the vectors are, scores to the mix; and what the library says. */
void explain_vectors(struct report *report, const struct vectors *x, const qkv_steps *made,
                     int64_t n_rows);
void explain_check(struct report *report, const qkv_steps *made);
/* The step above what the library says. */
void explain_check_step(struct report *report);

#endif
