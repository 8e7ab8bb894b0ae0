/*
 * `qkv bench --mpi`: a case over ranks, its arrays, and the four things that are timed.
 *
 * Every rank has whole arrays, and passes pointers to its piece. (The speed of a call does not
 * depend on values, so they need not agree.)
 */
#ifndef QKV_CLI_BENCH_RANKS_CASE_H
#define QKV_CLI_BENCH_RANKS_CASE_H

#include "bench/bench.h"
#include "common/ranks.h"

struct ranks_case {
    const char *scheme;
    enum bench_call call;
    bool causal;
    int64_t n_heads, n_kv_heads, head_dim; /* n_heads 0: as many as ranks */
};

/*
 * What is timed. BOTH: the call. COMPUTE: the same work on each rank alone, which has all keys.
 * TRANSFER: the same messages without computing. ONE: one process with all threads, while other
 * ranks sleep.
 */
enum ranks_part { PART_BOTH, PART_COMPUTE, PART_TRANSFER, PART_ONE, N_PARTS };

struct ranks_bench {
    const struct ranks_case *c;
    int64_t len;            /* of the whole sequence; pieces are of one, even length */
    qkv_ctx *ctx, *all_ctx; /* all_ctx: for PART_ONE, on the first rank */
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    qkv_attention_columns columns;
    int64_t no_keys; /* 0, the kv_len of PART_TRANSFER */
    char *q, *k, *v, *o;
    float *lse;
    void *memory;
};

/* The n-th case, NULL past the end; its name; and whether the name has the word `word`. */
const struct ranks_case *ranks_case_at(int index);
void ranks_case_name(const struct ranks_case *c, int64_t len, char name[100]);
bool ranks_case_is(const struct ranks_case *c, int64_t len, const char *word);

/*
 * Does a case have a part? Causal backward passes have no COMPUTE: a rank alone would have other
 * work.
 */
bool ranks_case_has(const struct ranks_case *c, enum ranks_part part);

/* False: no memory, and nothing to free. */
bool ranks_bench_make(struct ranks_bench *b, const struct ranks_case *c, int64_t len);
void ranks_bench_free(struct ranks_bench *b);

/* Runs a part once, on this rank. */
qkv_status ranks_bench_run(struct ranks_bench *b, enum ranks_part part, qkv_error *error);

/* Runs all cases, or those with the words. json: the file of results, nullable. An exit code. */
struct ranks_options {
    const struct cli_command *command;
    const struct cli_common *common;
    int n_words;
    char **words;
    int rounds;
    int64_t len;
    const char *json;
};
int ranks_bench_all(const struct ranks_options *options);

#endif
