/* `qkv explain`: what its parts share. Each makes a report (common/report.h) of its own. */
#ifndef QKV_CLI_EXPLAIN_H
#define QKV_CLI_EXPLAIN_H

#include "common/report.h"
#include <qkv/inspect.h>

struct explain_options {
    struct cli_common common;
    const char *pair, *out, *query, *q, *k, *v;
    bool shapes, no_scale, positions, shuffle, causal;
    struct arg_int length, dim, seed;
};

/* Keys that a table shows, at most. */
enum { EXPLAIN_KEYS_ON_TERMINAL = 24, EXPLAIN_KEYS_ON_PAGE = 200 };

/* ---- Options (options.c); exit codes, having said what is wrong ------------------------ */

/* -o: an ending that this report can be written as, in a folder where files can be written. */
int explain_check_out(const struct cli_command *command, const struct explain_options *o);
/* Options that are about another kind of report than the one that is asked for. */
int explain_check_kind(const struct cli_command *command, const struct explain_options *o,
                       bool has_text);
/* Does a path end in ".html"? */
bool explain_ends_in(const char *path, const char *ending);

/* ---- Lessons ----------------------------------------------------------------------------------- */

/* A report for the terminal, or for the page of -o; shows it there and frees it (deliver.c). */
void explain_begin(struct report *report, struct term *term, const struct explain_options *options);
qkv_status explain_deliver(struct report *report, struct term *term,
                           const struct explain_options *options, qkv_error *error);

/* Lessons of texts, through a model (text.c). An exit code. */
int explain_texts(const struct cli_command *command, const struct explain_options *options,
                  int n_words, char **words);

/* Which query is explained, and by what numbers. */
struct explained {
    const qkv_steps *steps;
    int64_t head_dim_v;
    const char *query_label;
    char *const *labels; /* [n], of keys, escaped */
    bool masked;         /* some scores are -infinity */
    int64_t n_rows;      /* of a table of keys, at most */
};

/*
 * The steps that every attention has, whether of a model or of three small vectors: scores, scale and
 * mask, softmax, sum of the values (attention.c).
 */
void explain_scores(struct report *report, const struct explained *e);
void explain_mask(struct report *report, const struct explained *e, const char *why);
void explain_softmax(struct report *report, const struct explained *e);
void explain_values(struct report *report, const struct explained *e);

/* One query of a model's head (model.c). */
struct explain_text {
    const struct session *session;
    const struct explain_options *options;
    const qkv_encoding *input;
    char **labels;
    const qkv_steps *steps;
    const char *rule; /* by what head and query were chosen; NULL: they were named */
};
void explain_model(struct report *report, const struct explain_text *text, int64_t n_rows);
qkv_status explain_model_json(const struct explain_text *text, json_t **json, qkv_error *error);

/* The order of the words shuffled, through a head of layer 0 (shuffle.c). */
qkv_status explain_shuffle(struct report *report, const struct explain_text *text, int64_t head,
                           qkv_error *error);

/* Without 1/√d and with it, for d = 4, 16 … 4096 (scale.c). */
enum { EXPLAIN_DIMS = 6, EXPLAIN_QUERIES = 32, EXPLAIN_KEYS = 64 };
qkv_status explain_measure(qkv_ctx *ctx, uint64_t seed, qkv_saturation rows[][2], qkv_error *error);
qkv_status explain_scale(qkv_ctx *ctx, struct report *report, uint64_t seed, qkv_error *error);
qkv_status explain_scale_json(qkv_ctx *ctx, uint64_t seed, json_t **json, qkv_error *error);

/* Sinusoids (positions.c). */
struct sinusoids {
    int64_t length, dim;
    float *table; /* [length][dim] */
};
qkv_status explain_sinusoids(const struct explain_options *options, struct sinusoids *sinusoids,
                             qkv_error *error);
void explain_positions(struct report *report, const struct sinusoids *sinusoids, int width);

/* The same as pictures, into the file of -o (picture.c). */
qkv_status explain_positions_picture(const struct explain_options *options, qkv_error *error);
qkv_status explain_scale_picture(qkv_ctx *ctx, const struct explain_options *options,
                                 qkv_error *error);

/*
 * Vectors without a model: those of an example (example.c), or of files (arrays.c).
 * head_dim and head_dim_v may differ, n_queries and n_keys, too.
 */
struct vectors {
    int64_t n_queries, n_keys, head_dim, head_dim_v;
    const float *q, *k, *v;
    char *const *query_labels, *const *key_labels; /* escaped */
    int64_t query;
    bool causal; /* key j is hidden from query i if j > i */
};

/* The numbers of one query; y_error and lse_error: how far the library's o and lse are from them. */
qkv_status explain_compute(qkv_ctx *ctx, const struct vectors *vectors, qkv_steps **steps,
                           qkv_error *error);
/* Everything but what the vectors are: scores to the mix, and what the library says. */
void explain_vectors(struct report *report, const struct vectors *vectors, const qkv_steps *steps,
                     int64_t n_rows);

qkv_status explain_example(qkv_ctx *ctx, struct report *report,
                           const struct explain_options *options, qkv_error *error);
qkv_status explain_arrays(qkv_ctx *ctx, struct report *report,
                          const struct explain_options *options, int64_t n_rows, qkv_error *error);

#endif
