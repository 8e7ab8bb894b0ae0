/*
 * `qkv bench --mpi`: a case over ranks, its arrays, and the four things that are timed.
 *
 * Every rank has all of the arrays, of one sequence, and passes its piece. How fast a call is does
 * not depend on the values.
 */
#ifndef QKV_CLI_BENCH_RANKS_CASE_H
#define QKV_CLI_BENCH_RANKS_CASE_H

#include "bench/bench.h"
#include "common/ranks.h"

struct ranks_case {
    const char *scheme;
    enum bench_call call;
    bool causal;
    int64_t n_heads, n_kv_heads, head_dim; /* heads of 0: as many as ranks */
};

/*
 * BOTH is the call. COMPUTE is the same work by each rank alone, which has all keys already.
 * TRANSFER is the same messages with nothing to compute. ONE is one process with all threads, while
 * the others sleep.
 */
enum ranks_part { PART_BOTH, PART_COMPUTE, PART_TRANSFER, PART_ONE, N_PARTS };

struct ranks_bench {
    const struct ranks_case *c;
    int64_t len;            /* of the whole sequence: pieces are equal and even */
    qkv_ctx *ctx, *all_ctx; /* all_ctx: of PART_ONE, on the first rank */
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    qkv_attention_columns columns;
    int64_t no_keys; /* kv_len: that no key exists */
    char *q, *k, *v, *o;
    float *lse;
    void *memory;
};

/* The n-th case, NULL past the end; the words of its name; is one of them `word`? */
const struct ranks_case *ranks_case_at(int index);
void ranks_case_name(const struct ranks_case *c, int64_t len, char name[100]);
bool ranks_case_is(const struct ranks_case *c, int64_t len, const char *word);

/*
 * Is there such a part? Under a causal mask backward passes have other work on each rank than
 * COMPUTE.
 */
bool ranks_case_has(const struct ranks_case *c, enum ranks_part part);

/* False: no memory, and nothing to free. */
bool ranks_bench_make(struct ranks_bench *b, const struct ranks_case *c, int64_t len);
void ranks_bench_free(struct ranks_bench *b);

/* Once, on this rank. */
qkv_status ranks_bench_run(struct ranks_bench *b, enum ranks_part part, qkv_error *error);

/* All cases, or those of the words: an exit code. json: nullable, where results go. */
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
