/**
 * Tensors of GGUF files behind the interface of safetensors: by the names of transformers, with the
 * rows, columns and values that a folder would have. A tensor is a view: all or some rows of a
 * stored one, in another order or turned, computed each time that a part is read.
 */
#ifndef QKVI_GGUF_WEIGHTS_H
#define QKVI_GGUF_WEIGHTS_H

#include "files/gguf_parts.h"
#include "files/safetensors.h"

/** How a parameter comes out of a stored tensor. */
typedef struct qkvi_gguf_view {
    char *name; /* of the parameter */
    const qkvi_gguf_tensor *tensor;
    int64_t first_row, n_rows; /* of the stored tensor; a vector has rows of one */
    /* Rows of each of so many heads stand as (0, d/2, 1, d/2 + 1, …), which llama.cpp rotates as
     * neighbours: in order they are 0 … d - 1. 0: rows are in order. */
    int64_t n_heads;
    /* Instead: rows of all queries, keys and values stand below each other, and of each of the
     * n_heads in turn its query, its key and its value are the parameter's. */
    bool by_head;
    float add;   /* to each value */
    bool turned; /* the parameter is the transpose */
} qkvi_gguf_view;

typedef struct qkvi_gguf_views {
    qkvi_gguf_view *views;
    size_t n, capacity;
} qkvi_gguf_views;

/** Adds one; its name is copied. MEMORY. */
qkv_status qkvi_gguf_views_add(qkvi_gguf_views *views, const char *name, qkvi_gguf_view view,
                               qkv_error *error);
void qkvi_gguf_views_free(qkvi_gguf_views *views);

/**
 * The views as a set of tensors, which lives no longer than the parts and the views. Sorts the
 * views by their names. UNSUPPORTED for a type that is not computed, FORMAT for a name twice, SHAPE
 * for heads that do not divide rows; MEMORY.
 */
qkv_status qkvi_gguf_weights(const qkvi_gguf_parts *parts, qkvi_gguf_views *views,
                             qkvi_safetensors **file, qkv_error *error);

#endif
