/* Everything that `qkv look` knows about one text, and the ways to show it. */
#ifndef QKV_CLI_LOOK_H
#define QKV_CLI_LOOK_H

#include "choose.h"
#include "predict.h"
#include <qkv/inspect.h>

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
/* As a picture: of the named head, else of all heads (look_png.c). */
qkv_status look_png(const struct look *look, const char *path, qkv_error *error);

#endif
