/* `qkv attend`: its options, the problem that they and files describe, results, and statistics. */
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
    struct arg_int dtype, arithmetic; /* values of qkv_dtype and of qkv_class */
    const char *segments, *segments_q, *alibi, *sink;
    struct arg_real scale, softcap;
    const char *grad_out, *grad_lse, *dq, *dk, *dv, *dsink, *dmask;
    const char *dropout, *stats;
    bool explain, mpi;
};

/*
 * Reads one number for each head, in a text as a line or as a column; path NULL: *values stays as
 * it is. Returns an exit code (modifiers.c).
 */
int attend_read_per_head(const char *option, const char *path, bool quiet, int64_t n_heads,
                         qkv_array **array, const float **values);

/* The options that are numbers or words, parsed before any file is read. */
struct attend_rules {
    struct rules seen;
    bool drops;
    double dropout;
    int64_t dropout_seed;
};

/*
 * --mpi: the arrays of this rank have n_q queries and n_k keys; query 0 is query first_q of the
 * all_q queries of all ranks.
 */
struct attend_rows {
    int64_t n_q, n_k, first_q, all_q;
};

/* --x: q, k and v [B,H,L,D], projected from inputs; and the projection of o, NULL without. */
struct attend_made {
    qkv_array q, k, v, *wo, *bo;
    int64_t n_joined, n_columns; /* columns of the joined heads, and of the output */
};

/*
 * The whole problem. With --mpi q, k and v have the shapes of whole arrays, but this rank's rows.
 */
struct attend_problem {
    qkv_attention_desc desc;
    struct attend_rows rows;
    qkv_array *q, *k, *v, *mask, *alibi, *sink, *grad_out, *grad_lse;
    int64_t *offsets; /* q_offsets of packed sequences: the last query sees the last key */
    int32_t *seg_q, *seg_k;
    uint8_t *bits;          /* --mask-bits */
    qkv_array *cu_q, *cu_k; /* cu_k NULL: the same as cu_q */
    int64_t *block_offsets;
    int32_t *block_index;
    struct attend_made *made;      /* q, k and v point into it; NULL without --x */
    int rank;                      /* dimensions of the arrays: 2, 3 or 4 */
    bool no_heads;                 /* --x without --heads: results have no dimension for heads */
    bool q_is_vector, v_is_vector; /* the file has [D], one query; [Lk], one number a key */
};

/*
 * --stats: the arrays of statistics, in the order of the file (stats.c). The first ATTEND_NUMBERS
 * are numbers of rows, of which the file also has means.
 */
enum { ATTEND_NUMBERS = 8, ATTEND_ARRAYS = 19 };
enum attend_group { OF_ROWS, OF_KEYS, OF_DIAGONAL, OF_MAP };
extern const struct attend_array {
    const char *name;
    enum attend_group group;
    size_t offset;   /* of its pointer in struct attend_stats */
    bool is_integer; /* int64_t, else float */
    bool is_top;     /* of the largest weights: top_k numbers a row */
} attend_arrays[ATTEND_ARRAYS];

/* The statistics that are requested, their arrays, and their JSON (stats.c, stats_json.c). */
struct attend_stats {
    qkv_attention_stats rows;
    qkv_attention_columns columns;
    int64_t n_batch, n_heads, rows_q, rows_k;  /* sizes of the arrays */
    int64_t bounds[QKV_STATS_MAX_OFFSETS + 1]; /* of classes of offsets */
    void *arrays[32];                          /* [n_arrays], to be freed */
    int n_arrays;
    bool made; /* all allocations succeeded */
    char *json;
    size_t n_json;
};

/* Results; NULL: not requested. o and lse are always computed if gradients are. */
struct attend_results {
    void *o, *dq, *dk, *dv; /* of the problem's type */
    float *lse, *dsink, *dmask;
    struct attend_stats *stats;
    float *joined, *projected; /* --x: [B,L,*], heads side by side, and those times W_O */
    double seconds;
};

/* Functions that return int return an exit code, having said what is wrong. */
int attend_rules_parse(const struct cli_command *command, const struct attend_options *options,
                       struct attend_rules *rules);
void attend_rules_free(struct attend_rules *rules);

/* Reads the arrays and makes the problem, which points to rules. */
int attend_problem_read(qkv_ctx *ctx, const struct attend_options *options,
                        struct attend_rules *rules, struct attend_problem *problem);
void attend_problem_free(struct attend_problem *problem);

/* --x (project.c): projects inputs to q, k and v; after attention, joins heads and projects o. */
int attend_project(qkv_ctx *ctx, const struct attend_options *options,
                   struct attend_problem *problem);
int attend_join(qkv_ctx *ctx, const struct attend_problem *problem, struct attend_results *results);
void attend_made_free(struct attend_made *made);

/* --mpi (ranks.c): checks that other options allow it; does all of the command after that. */
int attend_ranks_check(const struct cli_command *command, const struct attend_options *options);
int attend_ranks(const struct cli_command *command, const struct attend_options *options,
                 struct attend_rules *rules);

/* --cu-seqlens: one batch becomes a batch for each sequence. --block-mask: makes its lists. */
int attend_packed_read(const struct attend_options *options, const struct attend_rules *rules,
                       struct attend_problem *problem);
int attend_blocks_read(const struct attend_options *options, struct attend_problem *problem);

/* Reads segments, bits of a mask, ALiBi slopes, sinks and the gradient of lse. */
int attend_modifiers_read(const struct attend_options *options, struct attend_problem *problem);

/*
 * --explain: prints which path the forward pass and, with --grad-out, the backward pass takes, or
 * adds it to json unless that is NULL.
 */
int attend_explain(qkv_ctx *ctx, const struct attend_problem *problem, json_t *json);

/* The type of qkv_array for elements of a type. */
qkv_array_type attend_array_type(qkv_dtype dtype);
/* "[2,4,5]" */
const char *attend_shape_text(const qkv_array *array, char text[200]);
/* The size of dimension 0 ... 3 (batch, head, token, channel), 1 for those that an array lacks. */
int64_t attend_size(const qkv_array *array, int dimension);
/* Reads an array whose elements must be of `type`: floats, integers or booleans. */
int attend_read_array(const char *option, const char *path, bool quiet, qkv_array_type type,
                      qkv_array **array);

/*
 * Converts integers to booleans in place, 1 is true: tokenizers make masks of integers. Other
 * values are refused, with a message that ends with note. Other types are left as they are.
 */
int attend_to_booleans(const char *option, const char *path, const char *note, qkv_array *array);

/* An array from a text file, which has two dimensions, with one line or column becomes a list. */
void attend_as_list(const char *path, qkv_array *array);

/* The shape to which an array is broadcast; dimensions are aligned on the right. */
struct attend_fit {
    int64_t full[4];
    int n_repeat;       /* so many dimensions on the left may be 1 or missing */
    bool may_end_early; /* the last dimension may be shorter */
    const char *note;   /* the end of the message; nullable */
};
/* Sets the strides of an array, in elements; 0 in a dimension that is broadcast. */
int attend_broadcast(const char *option, const char *path, const qkv_array *array,
                     const struct attend_fit *fit, int64_t stride[4]);

/* Allocates results; attend_results_free is called in any case. */
int attend_results_alloc(const struct attend_options *options, const struct attend_problem *problem,
                         struct attend_results *results);
void attend_results_free(struct attend_results *results);
/* Computes results. The message of a failure is in the context. */
qkv_status attend_compute(qkv_ctx *ctx, const struct attend_problem *problem, bool quiet,
                          struct attend_results *results);

/* Requests all statistics; after the computation, formats them as JSON in memory. */
int attend_stats_ask(const struct attend_problem *problem, struct attend_stats *stats);
int attend_stats_json(const struct attend_options *options, const struct attend_problem *problem,
                      const float *lse, struct attend_stats *stats);
void attend_stats_free(struct attend_stats *stats);

/*
 * Results on standard output (print.c): without -o and --explain, and with --x and --explain, which
 * shows the steps of --x.
 */
/* Do the options ask for it? */
bool attend_prints(const struct attend_options *options);
/* Refuses results that are too large for it. */
int attend_print_check(const struct attend_options *options, const struct attend_problem *problem);
/* Prints results, or adds them to json unless that is NULL. */
int attend_print(qkv_ctx *ctx, const struct attend_options *options,
                 const struct attend_problem *problem, const struct attend_results *results,
                 json_t *json);

/*
 * The scores before softmax (scores.c), [B,H,Lq,Lk]: -infinity where a key is hidden, NaN in rows
 * whose lse is NaN. *scores stays NULL if there are more keys than a list of the library can have.
 */
int attend_scores(qkv_ctx *ctx, const struct attend_problem *problem, const float *lse,
                  float **scores);

/*
 * Checks before the computation that all files can be written, so that an hour of computing is not
 * lost.
 */
int attend_outputs_check(const struct attend_options *options);
/* Writes all files that were requested, or none. */
int attend_outputs_write(const struct attend_options *options, const struct attend_problem *problem,
                         const struct attend_results *results);

#endif
