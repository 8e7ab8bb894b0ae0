/*
 * `qkv look --q F --k F`: queries and keys of any model, without the model, at any length. Nothing
 * here stores queries x keys unless a file of that size was asked for.
 */
#ifndef QKV_CLI_LOOK_ARRAYS_H
#define QKV_CLI_LOOK_ARRAYS_H

#include "common/rules.h"
#include "look/look.h"
#include "qkv/files.h"

struct arrays {
    const struct look_options *options;
    qkv_array *q, *k;
    qkv_heads_arrays given; /* what the library is told */
    struct rules rules;
    qkv_attention_desc seen; /* with these rules, of one head */
    bool window;
    char **tokens;   /* [n_keys], of --tokens; NULL: numbers */
    char **labels;   /* [n_keys], escaped */
    char **q_tokens; /* [n_queries], of --q-tokens; NULL: those of keys if … */
    char **q_labels; /* [n_queries], escaped or numbered; NULL with self */
    bool self; /* … queries are the tokens that keys are, as many and without names of their own */
    bool named;      /* heads were named */
    int64_t layer;   /* the name of their layer; -1: none */
    int64_t n_shown; /* heads that are looked at … */
    int64_t *names;  /* … and which: places in the array, unless that has one head only */
};

/* Exit codes, having said what is wrong: of the options before any file is read, then of the files. */
int arrays_parse(const struct cli_command *command, const struct look_options *options,
                 struct arrays *arrays);
int arrays_read(struct arrays *arrays);
int arrays_tokens_read(struct arrays *arrays);
void arrays_free(struct arrays *arrays);

/* Arrays, shapes, scale and mask in words. */
void arrays_describe(const struct arrays *arrays, char caption[LOOK_CAPTION]);
/* Statistics as an object. */
qkv_status arrays_json(const struct look *look, json_t **json, qkv_error *error);
/* On a terminal: a line for each head, and the map of one. */
qkv_status arrays_print(const struct look *look, qkv_error *error);

/* The page of heads, at any length: queries, keys and lse, never weights (arrays_page.c). */
qkv_status arrays_page(const struct look *look, qkv_page_head *heads, const char *path,
                       qkv_error *error);

/* The name of the query, or key, that a tile begins with. */
enum { LOOK_LABEL = 24 };
const char *look_tile_label(const struct look *look, bool is_query, int64_t i,
                            char room[LOOK_LABEL]);

/* Arrays of which a browser does not compute all weights: what keys receive is not measured, either. */
enum { LONG_SIDE = 2048, LONG_SAMPLE = 512 };
static inline bool arrays_are_long(const struct arrays *arrays) {
    return arrays->given.n_queries > LONG_SAMPLE &&
           arrays->given.n_queries > (int64_t)LONG_SIDE * LONG_SIDE / arrays->given.n_keys;
}

#endif
