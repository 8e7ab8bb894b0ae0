/* Everything that `qkv look` knows about one text, and the ways to show it. */
#ifndef QKV_CLI_LOOK_H
#define QKV_CLI_LOOK_H

#include "choose.h"
#include "predict.h"
#include <qkv/inspect.h>
#include <qkv/view.h>

struct look_options {
    struct cli_common common;
    const char *pair, *out;
    struct arg_int top;
};

struct look {
    const struct session *session;
    const struct look_options *options;
    const qkv_encoding *input;
    qkv_run *run;
    struct predictions predictions;
    qkv_head_stats *stats; /* [n_layers * n_heads] */
    char **labels;         /* tokens, escaped */
    bool given;            /* a head was named */
    struct choice choice;
};

/* On the terminal: predictions, grid of heads, heat map of the chosen head (look_text.c). */
qkv_status look_print(const struct look *look, qkv_error *error);
/* As an object (look_json.c). */
qkv_status look_json(const struct look *look, json_t **json, qkv_error *error);

/* ---- Files: of the named head, else of all heads --------------------------------------------- */

/* A picture, by the path's ending: .png, .svg or .pdf (look_picture.c). */
qkv_status look_picture(const struct look *look, const char *path, qkv_error *error);
/* A page for a browser (look_page.c). */
qkv_status look_page(const struct look *look, const char *path, qkv_error *error);

/* Maps of the first head of a page and, where that is quick, of all (look_maps.c). */
struct look_maps {
    double *places; /* of each head: map and pca, [2 n_tokens][2] each */
    char *notes;
};
qkv_status look_maps_make(const struct look *look, qkv_page_head *heads, int64_t n_heads,
                          struct look_maps *maps, qkv_error *error);
void look_maps_free(struct look_maps *maps);

/* [n, n] of the named head, else [layers, heads, n, n] (look_table.c). */
qkv_status look_npy(const struct look *look, const char *path, qkv_error *error);
/*
 * The named head: a row for each query, with tokens as the first row and column. All heads: a row
 * for each weight, layer,head,query,key,weight (look_table.c).
 */
qkv_status look_csv(const struct look *look, const char *path, qkv_error *error);

enum { WEIGHTS_LIMIT = 1 << 28, CSV_LIMIT = 1 << 24 };

/*
 * The weights that a file holds in a new array, at most `limit` of them; otherwise, says what else
 * to do, and `advice`.
 */
qkv_status look_weights(const struct look *look, int64_t limit, const char *advice, float **weights,
                        qkv_error *error);

#endif
