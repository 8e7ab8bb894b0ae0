/*
 * --q and --k: queries and keys of any model, at any length, as a source. Nothing here stores
 * queries x keys unless a file of that size was asked for.
 */
#ifndef QKV_CLI_LOOK_ARRAYS_H
#define QKV_CLI_LOOK_ARRAYS_H

#include "common/array_names.h"
#include "common/rules.h"
#include "look/options.h"
#include <qkv/files.h>

struct arrays {
    struct seen seen; /* the first: what a sink knows */
    const struct look_options *options;
    qkv_array *q, *k;
    qkv_heads_arrays desc; /* what the library is told */
    struct rules rules;
    qkv_attention_desc mask; /* with these rules, of one head */
    bool window;
    struct array_names key_names, query_names; /* queries without any, with self: … */
    bool self; /* … they are the tokens that keys are, as many and without names of their own */
    int64_t layer;    /* the name of their layer; -1: none */
    int64_t n_places; /* heads that are looked at … */
    int64_t *places;  /* … and which: places in the array, unless that has one head only */
};

/* Exit codes, having said what is wrong (arrays_read.c). To be freed in any case. */
int arrays_parse(const struct cli_command *command, const struct look_options *options,
                 struct arrays *arrays);
/* With --mpi each rank reads its rows of the files and no others. */
int arrays_read(struct arrays *arrays);
void arrays_free(struct arrays *arrays);

/* Measures and describes the heads; seen.ctx and seen.side are set. */
qkv_status arrays_look(struct arrays *arrays, qkv_error *error);

#endif
