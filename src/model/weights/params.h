/**
 * The parameters of an architecture as one table: name, shape, place in one float arena.
 *
 * The table is written once, by the architecture (arch/net_table.c), and is what all other code
 * walks: the loader to know which tensors it wants and which shapes config.json promised, the
 * trainer to lay out parameters, gradients and both moments alike, the writer to store them. Names
 * are those that transformers stores today; of tensors that hold several parameters (GPT-2's
 * c_attn) each has a name of ours.
 *
 * The arena is made of 32-bit words. To be trained, every parameter is a matrix of floats in it. A
 * model that only runs has the weights of its linear layers there as the panels that these multiply
 * with, in f32, bf16 or int8 (qkvi_params_pack), or in the blocks of a GGUF file, and nowhere else.
 */
#ifndef QKVI_WEIGHTS_PARAMS_H
#define QKVI_WEIGHTS_PARAMS_H

#include "files/base.h"
#include "layer/weights.h"

typedef enum qkvi_param_form {
    QKVI_PARAM_FLOATS, /* [shape[0]][shape[1]] */
    QKVI_PARAM_PANELS, /* transposed: qkvi_gemm_pack_b */
    QKVI_PARAM_HALF,   /* transposed: qkvi_bf16_pack_b */
    QKVI_PARAM_INT8,   /* transposed: qkvi_int8_pack_b */
    QKVI_PARAM_BLOCKS  /* rows of blocks, as the file has them */
} qkvi_param_form;

enum { QKVI_STORED_AXES = 4 };

typedef struct qkvi_param {
    char name[96]; /* "bert.encoder.layer.0.attention.self.query.weight" */
    int rank;
    int64_t shape[2];
    size_t offset;            /* in words from the start of the arena; a multiple of 16: 64 bytes */
    size_t n_elems;           /* product of shape */
    bool multiplies;          /* the weights of a linear layer: may be kept as panels … */
    qkvi_param_form form;     /* … and how it is kept */
    bool is_words;            /* vectors of words, which may be kept in blocks, too */
    qkvi_block_format format; /* of the blocks that it is kept in; n_elems 0: in none */
    /*
     * How files have it, if not as it is: under another name, [cols][rows], and beside others in
     * one tensor, whose last axis has n_parts equal parts; this is one of them.
     */
    char stored[96]; /* "": name */
    bool transposed;
    int part, n_parts; /* 0, 1: all of it */
    /* Or rows first_row … of a tensor [stored_rows][cols] whose parts need not be equal, and are
     * not transposed; stored_rows 0: not so. */
    int64_t first_row, stored_rows;
    int64_t turn; /* parts take turns in it, so many rows of each at a time; 0: one after another */
    /* Or with the same numbers in the same order, as an array of more axes; rank 0: not so. */
    int stored_rank;
    int64_t stored_axes[QKVI_STORED_AXES];
} qkvi_param;

typedef struct qkvi_param_table {
    qkvi_param *rows;
    int64_t n_rows, capacity;
    size_t n_elems; /* words in an arena, gaps included */
} qkvi_param_table;

/** Appends a row; shape[1] is ignored if rank is 1. The name is made by printf. LIMIT, MEMORY. */
qkv_status qkvi_params_add(qkvi_param_table *table, int rank, int64_t rows, int64_t cols,
                           qkv_error *error, const char *name_format, ...)
    __attribute__((format(printf, 6, 7)));

/**
 * The last row is stored otherwise: see qkvi_param. Rows of one tensor follow each other, parts
 * ascending; parts of a matrix are parts of a transposed one.
 */
void qkvi_params_stored_as(qkvi_param_table *table, bool transposed, int part, int n_parts,
                           const char *name_format, ...) __attribute__((format(printf, 5, 6)));

/**
 * The last row is rows of a tensor: see qkvi_param. Its first part has n_parts rows of the table,
 * itself among them, which follow each other; of the others only part > 0 counts.
 */
void qkvi_params_stored_rows(qkvi_param_table *table, int part, int n_parts, int64_t first_row,
                             int64_t stored_rows, const char *name_format, ...)
    __attribute__((format(printf, 6, 7)));

/** The last row is stored as an array of that rank, at most QKVI_STORED_AXES: see qkvi_param. */
void qkvi_params_stored_axes(qkvi_param_table *table, int rank, const int64_t *axes);

/** Parts of the last row's tensor take turns, n rows of each at a time: see qkvi_param. */
void qkvi_params_take_turns(qkvi_param_table *table, int64_t n);

/** The last row is the weights of a linear layer. */
void qkvi_params_multiplies(qkvi_param_table *table);

/** Lays the table out anew, with rows that multiply in that form, or in their format. LIMIT. */
qkv_status qkvi_params_pack(qkvi_param_table *table, qkvi_param_form form, qkv_error *error);

/** Words that a row takes in the arena. */
size_t qkvi_param_words(const qkvi_param *row);

/** The name and the shape of the tensor in a file, and its rank. */
const char *qkvi_param_stored_name(const qkvi_param *row);
int qkvi_param_stored_shape(const qkvi_param *row, int64_t shape[QKVI_STORED_AXES]);

/**
 * Where row r of a parameter that is not transposed is stored, and how many of its rows, this one
 * among them, follow each other there.
 */
int64_t qkvi_param_stored_row(const qkvi_param *row, int64_t r, int64_t *n);

/** The stored tensor as a matrix; of rank 1: one row. */
void qkvi_param_stored_matrix(const qkvi_param *row, int64_t *n_rows, int64_t *n_cols);

/**
 * Rows first … first + n - 1 of it. first is a multiple of 64, and n is unless they are the last.
 */
typedef struct qkvi_stored_rows {
    int64_t first, n;
    const float *values;
    /* By which bf16 and int8 are packed; all pack the same bits. */
    const struct qkvi_kernels *kernels;
} qkvi_stored_rows;

/** What the rows have of the parameter, to its place in the arena, in its form. */
void qkvi_param_from_stored(const qkvi_param *row, const qkvi_stored_rows *stored, float *arena);

/** Its values, which are floats, to its part of the whole stored tensor. */
void qkvi_param_to_stored(const qkvi_param *row, const float *values, float *stored);

/** A matrix in the arena, in any form. */
qkvi_weights qkvi_param_weights(const qkvi_param *row, const float *arena);

/** The row of that name, or NULL. */
const qkvi_param *qkvi_params_find(const qkvi_param_table *table, const char *name);

/** n zeros, aligned to 64 bytes, for qkvi_aligned_free; NULL without memory. */
float *qkvi_params_zeros(size_t n);

/**
 * An arena for the table, aligned to 64 bytes, for qkvi_aligned_free; NULL without memory. Of
 * zeros; or, as room for values that will all be set, with zeros in the gaps alone, so that no page
 * of it is touched before it is needed.
 */
float *qkvi_params_arena(const qkvi_param_table *table);
float *qkvi_params_room(const qkvi_param_table *table);

void qkvi_params_free(qkvi_param_table *table);

#endif
