/* `qkv attend`: its options, and the problem made from them and from files. */
#ifndef QKV_CLI_ATTEND_H
#define QKV_CLI_ATTEND_H

#include <jansson.h>

#include "common/cli.h"
#include "common/rules.h"
#include <qkv/columns.h>
#include <qkv/files.h>
#include <qkv/stats.h>

struct attend_options {
    struct cli_common common;
    const char *q, *k, *v, *o, *lse, *mask, *mask_bits;
    const char *x, *x_kv, *wq, *wk, *wv, *wo, *bq, *bk, *bv, *bo;
    struct arg_int heads;
    bool transposed;
    const char *cu_seqlens, *cu_seqlens_k, *block_mask;
    struct arg_int block_len;
    struct arg_int dtype, arithmetic; /* of qkv_dtype, of qkv_class */
    const char *segments, *segments_q, *alibi, *sink;
    struct arg_real scale, softcap;
    const char *grad_out, *grad_lse, *dq, *dk, *dv, *dsink, *dmask;
    const char *dropout, *stats;
    bool explain, mpi;
};

/* Numbers of the options, read before any file is. */
struct attend_rules {
    struct rules seen;
    bool drops;
    double dropout;
    int64_t dropout_seed;
};

/* --mpi: rows of this rank, which its arrays have; first_q of all_q is its first query. */
struct attend_rows {
    int64_t n_q, n_k, first_q, all_q;
};

/*
 * --x: q, k and v [B,H,L,D] are made of it, and what is behind attention. wo, bo NULL: nothing is.
 */
struct attend_made {
    qkv_array q, k, v, *wo, *bo;
    int64_t n_joined, n_columns; /* of all heads side by side, and of the output */
};

/*
 * The whole problem. With --mpi q, k and v say the shapes of whole arrays, but hold this rank's
 * rows.
 */
struct attend_problem {
    qkv_attention_desc desc;
    struct attend_rows rows;
    qkv_array *q, *k, *v, *mask, *alibi, *sink, *grad_out, *grad_lse;
    int64_t *offsets; /* of packed sequences, one each: the last query sees the last key */
    int32_t *seg_q, *seg_k;
    uint8_t *bits;          /* --mask-bits */
    qkv_array *cu_q, *cu_k; /* cu_k NULL: as cu_q */
    int64_t *block_offsets;
    int32_t *block_index;
    struct attend_made *made;      /* q, k and v are its own; NULL without --x */
    int rank;                      /* of the arrays: 2, 3 or 4 */
    bool no_heads;                 /* --x without --heads: results have no dimension of them */
    bool q_is_vector, v_is_vector; /* [D], one query; [Lk], one number a key */
};

/*
 * --stats: the arrays of numbers, in the order of the file (stats.c). The first ATTEND_NUMBERS are
 * of rows, and have a mean.
 */
enum { ATTEND_NUMBERS = 8, ATTEND_ARRAYS = 19 };
enum attend_group { OF_ROWS, OF_KEYS, OF_DIAGONAL, OF_MAP };
extern const struct attend_array {
    const char *name;
    enum attend_group group;
    size_t offset;           /* of its pointer in struct attend_stats */
    bool is_integer, is_top; /* int64_t, else float; of the greatest weights: top_k numbers a row */
} attend_arrays[ATTEND_ARRAYS];

/* What is asked of the rows and of the columns, and what came of it (stats.c, stats_json.c). */
struct attend_stats {
    qkv_attention_stats rows;
    qkv_attention_columns columns;
    int64_t n_batch, n_heads, rows_q, rows_k; /* of the arrays */
    int64_t bounds[QKV_STATS_MAX_OFFSETS + 1];
    void *arrays[32];
    int n_arrays;
    bool made; /* there was memory for all */
    char *json;
    size_t n_json;
};

/* What is computed; NULL: not asked for, except o and lse, which the gradients need. */
struct attend_results {
    void *o, *dq, *dk, *dv; /* of the problem's type */
    float *lse, *dsink, *dmask;
    struct attend_stats *stats;
    float *joined, *projected; /* --x: [B,L,*], heads side by side, and those times W_O */
    double seconds;
};

/* Each returns an exit code, having said what is wrong. A problem points to its rules. */
int attend_rules_parse(const struct cli_command *command, const struct attend_options *options,
                       struct attend_rules *rules);
void attend_rules_free(struct attend_rules *rules);

int attend_problem_read(qkv_ctx *ctx, const struct attend_options *options,
                        struct attend_rules *rules, struct attend_problem *problem);
void attend_problem_free(struct attend_problem *problem);

/* --x (project.c): makes q, k and v; then, of the result of attention, the output. */
int attend_project(qkv_ctx *ctx, const struct attend_options *options,
                   struct attend_problem *problem);
int attend_join(qkv_ctx *ctx, const struct attend_problem *problem, struct attend_results *results);
void attend_made_free(struct attend_made *made);

/* --mpi (ranks.c): is it possible with the other options? All of the command, from there on. */
int attend_ranks_check(const struct cli_command *command, const struct attend_options *options);
int attend_ranks(const struct cli_command *command, const struct attend_options *options,
                 struct attend_rules *rules);

/*
 * --cu-seqlens: what was one batch becomes as many as there are sequences. --block-mask: as lists.
 */
int attend_packed_read(const struct attend_options *options, const struct attend_rules *rules,
                       struct attend_problem *problem);
int attend_blocks_read(const struct attend_options *options, struct attend_problem *problem);

/* Segments, bits, slopes, sinks and the gradient of lse. */
int attend_modifiers_read(const struct attend_options *options, struct attend_problem *problem);

/*
 * Which path the forward pass, and with --grad-out the backward pass, takes: printed, or added to
 * json if it is not NULL.
 */
int attend_explain(qkv_ctx *ctx, const struct attend_problem *problem, json_t *json);

/* The type of arrays that hold a type's elements. */
qkv_array_type attend_array_type(qkv_dtype dtype);
/* "[2,4,5]" */
const char *attend_shape_text(const qkv_array *array, char text[200]);
/* The size of dimension 0 ... 3 (batch, head, token, channel), 1 for those that an array lacks. */
int64_t attend_size(const qkv_array *array, int dimension);
/* An array whose elements are of `type`: floats, integers or booleans. */
int attend_read_array(const char *option, const char *path, qkv_array_type type, qkv_array **array);

/*
 * Integers that are all 0 or 1, as tokenizers make masks, become booleans in place: 1 is true. note
 * ends the message about another one. What is no integer stays.
 */
int attend_to_booleans(const char *option, const char *path, const char *note, qkv_array *array);

/* Arrays as text have two dimensions: one line or one column of them becomes a list. */
void attend_as_list(const char *path, qkv_array *array);

/* What an array, aligned on the right, has to cover. */
struct attend_fit {
    int64_t full[4];
    int n_repeat;       /* so many dimensions on the left may be 1, or missing, and repeat */
    bool may_end_early; /* the last one may be shorter */
    const char *note;   /* ends the message; nullable */
};
/* The strides of the array's elements, 0 where it repeats. */
int attend_broadcast(const char *option, const char *path, const qkv_array *array,
                     const struct attend_fit *fit, int64_t stride[4]);

/* To be freed in any case. */
int attend_results_alloc(const struct attend_options *options, const struct attend_problem *problem,
                         struct attend_results *results);
void attend_results_free(struct attend_results *results);
/* The context says what went wrong. */
qkv_status attend_compute(qkv_ctx *ctx, const struct attend_problem *problem, bool quiet,
                          struct attend_results *results);

/* Asks for all statistics; writes them as JSON, in memory, when they are there. Exit codes. */
int attend_stats_ask(const struct attend_problem *problem, struct attend_stats *stats);
int attend_stats_json(const struct attend_options *options, const struct attend_problem *problem,
                      const float *lse, struct attend_stats *stats);
void attend_stats_free(struct attend_stats *stats);

/*
 * Small results are printed, or added to json if it is not NULL (print.c): without -o and
 * --explain, and with --x and --explain, which shows its steps. Are they, and are they few enough?
 */
bool attend_prints(const struct attend_options *options);
int attend_print_check(const struct attend_options *options, const struct attend_problem *problem);
int attend_print(qkv_ctx *ctx, const struct attend_options *options,
                 const struct attend_problem *problem, const struct attend_results *results,
                 json_t *json);

/*
 * The scores that softmax takes (scores.c), [B,H,Lq,Lk], -infinity where a key is hidden and NaN in
 * a row whose lse is. *scores stays NULL where there are more keys than the library lists.
 */
int attend_scores(qkv_ctx *ctx, const struct attend_problem *problem, const float *lse,
                  float **scores);

/*
 * Before the computation: can all files be written? What can be known now should not cost an hour.
 */
int attend_outputs_check(const struct attend_options *options);
/* All files that were asked for, or none. */
int attend_outputs_write(const struct attend_options *options, const struct attend_problem *problem,
                         const struct attend_results *results);

#endif
