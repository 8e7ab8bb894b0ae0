/**
 * Which stored tensor is meant by a parameter's name. Published checkpoints spell the same
 * parameter in several ways; the rules, in this order:
 *
 *   1 the exact name
 *   2 without or with the prefix of the architecture, "bert."
 *   3 LayerNorm .weight and .bias as .gamma and .beta
 *   4 an alias in __metadata__
 *   5 what other files call a head (GPT-NeoX: embed_out is transformers' lm_head)
 *   6 another end of a tie, where ties hold: of words, the first of their copies that is stored
 *
 * Of the two biases of a head for masked words the decoder's own is the one that transformers adds;
 * the other one is it by their tie, where only that is stored.
 */
#ifndef QKVI_WEIGHTS_RESOLVER_H
#define QKVI_WEIGHTS_RESOLVER_H

#include "core/pool.h"
#include "files/safetensors.h"
#include "model/weights/params.h"

enum { QKVI_TIES = 2, QKVI_TIE_COPIES = 3 };

/*
 * Matrices that are one unless a file says otherwise, in the order in which transformers ties them.
 */
typedef struct qkvi_tie {
    const char *source, *copies[QKVI_TIE_COPIES]; /* or NULL */
} qkvi_tie;

/** How an architecture's files vary its names. */
typedef struct qkvi_spelling {
    const char *prefix;
    qkvi_tie ties[QKVI_TIES];
    const char *bias[2];    /* of a head: the parameter, and the decoder's own; or NULL */
    const char *ignored[3]; /* endings of names of buffers that are not needed; or NULL */
    const char *other[2];   /* a parameter, and what other files call it; or NULL */
} qkvi_spelling;

typedef struct qkvi_resolver {
    const qkvi_safetensors *file;
    const qkvi_spelling *spelling;
    bool ties;     /* they hold: tie_word_embeddings of config.json */
    uint8_t *used; /* [n_tensors] */
} qkvi_resolver;

qkv_status qkvi_resolver_make(const qkvi_safetensors *file, const qkvi_spelling *spelling,
                              qkvi_resolver *resolver, qkv_error *error);
void qkvi_resolver_free(qkvi_resolver *resolver);

/** The stored tensor of that parameter, or NULL. */
const qkvi_stored *qkvi_resolve(const qkvi_resolver *resolver, const char *name);
/** The same without ties: rules 1 to 5. */
const qkvi_stored *qkvi_resolve_own(const qkvi_resolver *resolver, const char *name);

/** Whether two tensors have the same shape and, as floats, the same bits. IO, MEMORY. */
qkv_status qkvi_resolver_compare(const qkvi_resolver *resolver, const qkvi_stored *a,
                                 const qkvi_stored *b, bool *same, qkv_error *error);

/**
 * Checks that every row is stored with its shape; a missing one is named with the nearest stored
 * names.
 */
qkv_status qkvi_resolver_check(qkvi_resolver *resolver, const qkvi_param_table *table,
                               qkv_error *error);
/**
 * Chooses the rows that are kept in the blocks of the file, of those that multiply and of words:
 * their tensor has blocks that layers multiply by, in rows of the parameter. Returns whether there
 * are any.
 */
bool qkvi_resolver_blocks(const qkvi_resolver *resolver, qkvi_param_table *table);

/**
 * Reads every row into its place in arena, from the form in which it is stored to that in which it
 * is kept, some rows at a time: beside arena each thread takes 1 MiB, or 64 rows of a wider tensor.
 * Marks what it read as used. Of several tensors that fail the first one is told. pool may be NULL.
 */
qkv_status qkvi_resolver_load(qkvi_resolver *resolver, const qkvi_param_table *table,
                              qkvi_pool *pool, float *arena, qkv_error *error);
/** Numbers that are read, or compared, together. */
enum { QKVI_PIECE_ELEMS = 1 << 18 };

/** Counts a tensor, if there is one, as used although it is not read. */
void qkvi_resolver_skip(qkvi_resolver *resolver, const qkvi_stored *tensor);

/** Escaped names of the tensors that were not used and that are not known buffers. */
qkv_status qkvi_resolver_unused(const qkvi_resolver *resolver, char ***names, int64_t *n_names,
                                qkv_error *error);

#endif
