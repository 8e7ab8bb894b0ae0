/**
 * Which stored tensor is meant by a parameter's name. Published checkpoints spell the same
 * parameter in several ways; the rules, in this order:
 *
 *   1 the exact name
 *   2 without or with the prefix of the architecture, "bert."
 *   3 LayerNorm .weight and .bias as .gamma and .beta
 *   4 an alias in __metadata__
 *   5 the other end of a tie: decoder and word embeddings, the two decoder biases, the words of
 *     encoder and decoder
 */
#ifndef QKVI_STORE_RESOLVER_H
#define QKVI_STORE_RESOLVER_H

#include "model/params.h"
#include "model/store/safetensors.h"

/** How an architecture's files vary its names. */
typedef struct qkvi_spelling {
    const char *prefix;
    const char *ties[4][2]; /* the parameter, and the name of what is tied to it; or NULL */
    const char *ignored[2]; /* endings of names of buffers that nobody needs; or NULL */
} qkvi_spelling;

typedef struct qkvi_resolver {
    const qkvi_safetensors *file;
    const qkvi_spelling *spelling;
    uint8_t *used; /* [n_tensors] */
} qkvi_resolver;

qkv_status qkvi_resolver_make(const qkvi_safetensors *file, const qkvi_spelling *spelling,
                              qkvi_resolver *resolver, qkv_error *error);
void qkvi_resolver_free(qkvi_resolver *resolver);

/** The stored tensor of that parameter, or NULL. */
const qkvi_stored *qkvi_resolve(const qkvi_resolver *resolver, const char *name);

/**
 * Checks that every row is stored with its shape; a missing one is named with the nearest stored
 * names.
 */
qkv_status qkvi_resolver_check(qkvi_resolver *resolver, const qkvi_param_table *table,
                               qkv_error *error);
/**
 * Reads every row into its place in arena, from the form in which it is stored to that in which it is kept,
 * some rows at a time: beside arena it takes 1 MiB, or 32 rows of a wider tensor. Marks what it read as used.
 */
qkv_status qkvi_resolver_load(qkvi_resolver *resolver, const qkvi_param_table *table, float *arena,
                              qkv_error *error);

/** Counts the tensor of that name, if there is one, as used although nobody reads it. */
void qkvi_resolver_skip(qkvi_resolver *resolver, const char *name);

/** Escaped names of the tensors that nobody used and that are not known buffers or ties. */
qkv_status qkvi_resolver_unused(const qkvi_resolver *resolver, char ***names, int64_t *n_names,
                                qkv_error *error);

#endif
