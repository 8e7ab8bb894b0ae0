/*
 * Classes of arithmetic: each is one definition of every product and sum, with the same bits on all
 * processors (docs/numerics.md). Here is what differs between them outside of the kernels; what the
 * kernels do in each is a row of tmpl/attend_classes.h.
 *
 * Packed K and V are words of 32 bits. A word is a float, or a pair of bf16 that are neighbours
 * along the depth, the first in its lower half: two channels of a key in K, two keys of a channel
 * in V.
 */
#ifndef QKVI_KERNELS_CLASS_H
#define QKVI_KERNELS_CLASS_H

#include <stdbool.h>

#include "core/ints.h"
#include "qkv/qkv.h"

struct qkvi_kernels;

typedef enum qkvi_arithmetic {
    QKVI_CLASS_F32,
    QKVI_CLASS_DP,
    QKVI_CLASS_AMX,       /* without the instruction */
    QKVI_CLASS_AMX_TILES, /* by the instruction: the same bits */
    QKVI_N_CLASSES
} qkvi_arithmetic;

enum { QKVI_N_GIVEN = QKV_CLASS_AMX + 1 };
#define QKVI_GIVEN_NAMES "QKV_CLASS_AUTO, QKV_CLASS_F32, QKV_CLASS_DP, QKV_CLASS_AMX"

typedef struct qkvi_class_row {
    qkv_class given;        /* what a caller asks for */
    const char *given_name; /* as messages write it */
    const char *name;       /* as qkv_attention_explain writes it */
    qkv_dtype type;         /* of q, k and v as the kernels read them */
    int per_word;           /* elements of packed K and V in a word */
    int step;               /* depths of K and V are filled up with zeros to a multiple of it */
    int q_rows;           /* q is copied into a multiple of so many rows, with that depth; 0: not */
    bool rounds;          /* weights are rounded to the type after they were summed */
    bool forward_only;    /* backward is that of QKVI_CLASS_F32; decode always is */
    const char *no_small; /* why attend_small cannot do it; NULL: it can */
    const char *how;      /* for qkv_attention_explain; NULL: conversion to floats */
} qkvi_class_row;

extern const qkvi_class_row qkvi_classes[QKVI_N_CLASSES];

/*
 * How these kernels compute what a caller may ask for, on this processor. QKV_CLASS_AUTO stands for
 * inputs in bf16; others are computed by QKVI_CLASS_F32.
 */
void qkvi_classes_here(const struct qkvi_kernels *kernels, qkvi_arithmetic of[QKVI_N_GIVEN]);

/* The row that a caller asks for; NULL: there is none. */
const qkvi_class_row *qkvi_class_given(qkv_class given);

/* Words of a key in packed K. */
static inline int64_t qkvi_key_words(qkvi_arithmetic class, int64_t head_dim) {
    const qkvi_class_row *const c = &qkvi_classes[class];
    return qkvi_round_up(head_dim, c->step) / c->per_word;
}

#endif
