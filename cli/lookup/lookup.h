/* `qkv lookup`: what its parts share. */
#ifndef QKV_CLI_LOOKUP_H
#define QKV_CLI_LOOKUP_H

#include "common/pictured.h"
#include "common/report.h"
#include "common/rows.h"
#include "qkv/files.h"

struct lookup_options {
    struct cli_common common;
    struct arg_int metric, top;
    struct arg_real temperature;
    bool hard, sentence;
    const char *vectors, *out;
    struct picture_options picture;
};

enum { LOOKUP_COSINE, LOOKUP_DOT };

/* How a text became tokens. */
struct lookup_pieces {
    int64_t n;
    bool split, unknown; /* a word is several pieces; is not in the vocabulary */
};

/* One lookup: every query with every key. Vectors are [n][dim]. */
struct lookup {
    const struct session *session;
    const struct lookup_options *options;
    const qkv_table *table;
    const qkv_table *own; /* of --vectors; NULL: those of the model */
    double *lengths;      /* [keys, then queries]: of the vectors, before they have length 1 */
    int64_t n_queries, dim;
    char **queries;   /* as on the command line */
    float *q, *k;     /* vectors; with cosine of length 1 */
    uint8_t *unknown; /* [n_queries]: 1 if a query has a piece that is not in the vocabulary */
    double temperature;
    int64_t n_top;     /* of keys that are shown for a query */
    float *values;     /* [n_queries][n_values] */
    float *entropy;    /* [n_queries] */
    int64_t *top_keys; /* [n_queries][n_top], the nearest first */
    float *top_weights;
};

/* A word of a query, which may be a sum "king - man + woman". */
struct lookup_term {
    const char *begin, *text; /* of the query, and of the word */
    size_t n;
    int sign;
};
/* The next word at *at, the query at first; false: there is no more. term->begin is set. */
bool lookup_next_term(const char **at, struct lookup_term *term);
bool lookup_is_sum(const char *text);
/* Vectors of one's own (own.c). */
qkv_status lookup_own(struct lookup *lookup, qkv_error *error);

/* Vectors of queries and keys: of words, or of sentences (vectors.c). */
qkv_status lookup_vectors(struct lookup *lookup, qkv_error *error);

/* Weights and values by one call of attention (compute.c). */
qkv_status lookup_compute(struct lookup *lookup, qkv_error *error);
/* Similarity of a query and a key: cosine, or the product. */
double lookup_similarity(const struct lookup *lookup, int64_t query, int64_t key);
/* The row whose key is the query, byte for byte, or -1. */
int64_t lookup_equal(const struct lookup *lookup, int64_t query);

/* "Word vectors of the model embedded.", "Vectors of words.csv." */
void lookup_source(const struct lookup *lookup, struct caption *caption);
/* The picture of -o (plane.c). */
qkv_status lookup_plane(const struct lookup *lookup, qkv_error *error);
/* On the terminal, and as an object (text.c). */
qkv_status lookup_print(const struct lookup *lookup, qkv_error *error);
qkv_status lookup_json(const struct lookup *lookup, json_t **json, qkv_error *error);

#endif
