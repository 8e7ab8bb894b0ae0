/*
 * `qkv look --q F --k F`: a source of queries and keys of any model, at any length. No array of
 * queries x keys is stored, unless a file of that size was asked for.
 */
#ifndef QKV_CLI_LOOK_ARRAYS_H
#define QKV_CLI_LOOK_ARRAYS_H

#include "common/array_names.h"
#include "common/rules.h"
#include "look/options.h"
#include <qkv/files.h>

struct arrays {
    struct seen seen; /* first, so that sinks can pass it back to the source */
    const struct look_options *options;
    qkv_array *q, *k, *sink, *alibi; /* NULL: no such */
    uint8_t *padding;                /* [n_keys], of a page: 1 for keys beyond --kv-len; NULL */
    qkv_heads_arrays desc;           /* for the library */
    struct rules rules;
    qkv_attention_desc mask; /* of one head, with these rules */
    bool window;             /* --window is given */
    struct array_names key_names, query_names;
    bool self;        /* queries are the same tokens as keys; then query_names is empty */
    int64_t layer;    /* what --layer, --head or --heads calls their layer; -1: nothing */
    int64_t n_places; /* how many heads of the array are looked at */
    int64_t *places;  /* [n_places]: their indices in the array, unless that has one head only */
};

/*
 * These return exit codes, having said what is wrong (arrays_read.c). arrays_free is called in any
 * case.
 */
int arrays_parse(const struct cli_command *command, const struct look_options *options,
                 struct arrays *arrays);
/* With --mpi each rank reads only its rows of the files. */
int arrays_read(struct arrays *arrays);
void arrays_free(struct arrays *arrays);

/* Measures the heads and fills in `seen`; the caller has set seen.ctx and seen.side. */
qkv_status arrays_look(struct arrays *arrays, qkv_error *error);

#endif
