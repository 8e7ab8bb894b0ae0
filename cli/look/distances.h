/*
 * How far each head of one run is from the head in its place of another: what --against shows of
 * texts (against.c) and of images (image_against.c).
 */
#ifndef QKV_CLI_LOOK_DISTANCES_H
#define QKV_CLI_LOOK_DISTANCES_H

#include "common/number.h"
#include "look/options.h"

/* How far a head is from the one in its place. */
struct distance {
    double mean;     /* Jensen-Shannon divergence of its rows, in nats */
    int64_t n_rows;  /* that have one */
    int64_t query;   /* of the largest divergence; -1: none */
    double largest;  /* that one */
    int64_t keys[2]; /* what it looks at most, in each run */
    float weights[2];
};

struct distances {
    struct distance *list;  /* [n_all] */
    struct sort_key *order; /* from the farthest head */
    int64_t n_layers, n_heads, n_all, n_shown;
};

/* What a number is, in words. */
extern const char distances_what[];

/* Have the runs of both models as many layers and heads? */
qkv_status distances_check(const struct session *const of[2], const int64_t n_layers[2],
                           const int64_t n_heads[2], qkv_error *error);
/* Compares heads with as many queries and keys. top: how many are shown; not set: all. */
qkv_status distances_make(qkv_ctx *ctx, qkv_heads *const heads[2], const struct arg_int *top,
                          struct distances *d, qkv_error *error);
void distances_free(struct distances *d);

/* The label of a query or of a key, from malloc. */
typedef char *distances_label(const void *of, bool is_key, int64_t i);
/* Prints a table of the heads that are shown, and what its columns are. */
void distances_print(const struct distances *d, struct term *term, distances_label *label,
                     const void *of);

/* An object for each head that is shown; token makes one of a key. */
typedef json_t *distances_token(const void *of, int64_t key);
json_t *distances_json(const struct distances *d, distances_token *token, const void *of);

/* The divergence of each head, as a picture of layers and heads; below a caption of its own. */
qkv_status distances_picture(const struct distances *d, const struct look_options *options,
                             const char *title, const char *caption, const char *path,
                             qkv_error *error);

/*
 * Adds the heads of both to a page whose two texts are those of A and B, in pairs from the farthest
 * on, and tables of their distances. kind: "two models"; label: as in a page, not escaped.
 */
qkv_status distances_page(const struct distances *d, const struct seen *const both[2],
                          const char *kind, const char *sources, distances_label *label,
                          const void *of, struct page *page, qkv_error *error);

#endif
