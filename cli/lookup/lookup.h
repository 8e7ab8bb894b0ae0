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

/* Into how many pieces a text was tokenized. */
struct lookup_pieces {
    int64_t n;
    bool split, unknown; /* some word is several pieces; some piece is not in the vocabulary */
};

/* One lookup: every query with every key. Vectors are [n][dim]. */
struct lookup {
    const struct session *session;
    const struct lookup_options *options;
    const qkv_table *table;
    const qkv_table *own; /* the vectors of --vectors; NULL: vectors of the model */
    double *lengths;      /* [keys, then queries]: norms of the vectors before normalization */
    int64_t n_queries, dim;
    char **queries;   /* as on the command line */
    float *q, *k;     /* vectors; of norm 1 with LOOKUP_COSINE */
    uint8_t *unknown; /* [n_queries]: 1 if a query has a piece that is not in the vocabulary */
    double temperature;
    int64_t n_top;     /* keys that are shown for each query */
    float *values;     /* [n_queries][n_values] */
    float *entropy;    /* [n_queries] */
    int64_t *top_keys; /* [n_queries][n_top], the nearest first */
    float *top_weights;
};

/* A term of a query, which may be a sum "king - man + woman". */
struct lookup_term {
    const char *begin, *text; /* the whole query; the word of this term */
    size_t n;                 /* bytes of the word */
    int sign;
};
/*
 * Reads the next term at *at, and moves *at, which is the query at first; false: there is no more.
 * The caller sets term->begin to the query.
 */
bool lookup_next_term(const char **at, struct lookup_term *term);
bool lookup_is_sum(const char *text);
/* Reads the vectors of --vectors (own.c). */
qkv_status lookup_own(struct lookup *lookup, qkv_error *error);

/* Makes vectors of queries and keys by the model, of words or of sentences (vectors.c). */
qkv_status lookup_vectors(struct lookup *lookup, qkv_error *error);

/* Computes weights and values by one call of attention (compute.c). */
qkv_status lookup_compute(struct lookup *lookup, qkv_error *error);
/* The similarity of a query and a key: cosine, or dot product. */
double lookup_similarity(const struct lookup *lookup, int64_t query, int64_t key);
/* The row whose key has the bytes of the query, or -1. */
int64_t lookup_equal(const struct lookup *lookup, int64_t query);

/* Appends "Word vectors of the model embedded." or "Vectors of words.csv." */
void lookup_source(const struct lookup *lookup, struct caption *caption);
/* The picture of -o (plane.c). */
qkv_status lookup_plane(const struct lookup *lookup, qkv_error *error);
/* On the terminal, and as an object (text.c). */
qkv_status lookup_print(const struct lookup *lookup, qkv_error *error);
qkv_status lookup_json(const struct lookup *lookup, json_t **json, qkv_error *error);

#endif
