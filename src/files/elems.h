/**
 * Element types of stored arrays and their conversion to f32 and i64. Stored bytes may be
 * unaligned.
 */
#ifndef QKVI_FILES_ELEMS_H
#define QKVI_FILES_ELEMS_H

#include "files/base.h"

typedef enum qkvi_elem_type {
    QKVI_F64,
    QKVI_F32,
    QKVI_F16,
    QKVI_BF16,
    QKVI_I64,
    QKVI_I32,
    QKVI_I16,
    QKVI_I8,
    QKVI_U64,
    QKVI_U32,
    QKVI_U16,
    QKVI_U8,
    QKVI_BOOL
} qkvi_elem_type;

enum { QKVI_N_ELEMS = QKVI_BOOL + 1 };

/** The name in safetensors: "F32". */
const char *qkvi_elem_name(qkvi_elem_type type);
size_t qkvi_elem_bytes(qkvi_elem_type type);
int qkvi_elem_is_float(qkvi_elem_type type);

/**
 * f64, f32, f16 or bf16 to f32; f64 is rounded to nearest even. source and destination do not
 * overlap.
 */
void qkvi_elems_to_f32(qkvi_elem_type type, const void *source, size_t n, float *destination);

/** The same to bf16 or f16, rounded once to nearest even. */
void qkvi_elems_to_half(qkvi_elem_type type, const void *source, size_t n, qkvi_elem_type half,
                        uint16_t *destination);

/**
 * Any integer type or bool to i64. @return the index of the first value that does not fit (u64), or
 * n.
 */
size_t qkvi_elems_to_i64(qkvi_elem_type type, const void *source, size_t n, int64_t *destination);

/** Reverses the bytes of each element in place. */
void qkvi_elems_swap(qkvi_elem_type type, void *elems, size_t n);

#endif
