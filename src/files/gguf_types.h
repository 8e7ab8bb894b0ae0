/**
 * Types of tensors in a GGUF file, and what their numbers are as floats.
 *
 * A row is a number of whole blocks; each has some numbers in few bits and the factors that they
 * are multiplied with. The formulas are those of ggml's dequantize_row_…, bit for bit: products are
 * exact in f32, and only the last sum of a value rounds.
 */
#ifndef QKVI_FILES_GGUF_TYPES_H
#define QKVI_FILES_GGUF_TYPES_H

#include "files/base.h"

enum { QKVI_GGUF_MAX_BLOCK = 256 };

typedef struct qkvi_gguf_type {
    uint32_t id;
    const char *name;     /* "Q4_K" */
    int n_elems, n_bytes; /* of a block */
    /** The numbers of a block; NULL: they are not computed here. */
    void (*to_f32)(const uint8_t *block, float *values);
} qkvi_gguf_type;

enum { QKVI_GGUF_F32 = 0, QKVI_GGUF_F16 = 1, QKVI_GGUF_F64 = 28, QKVI_GGUF_BF16 = 30 };

/** NULL: no type has that number, or one that was removed from the format. */
const qkvi_gguf_type *qkvi_gguf_type_of(uint32_t id);

/**
 * n_blocks blocks that lie one behind the other; the caller has the default modes of arithmetic.
 */
void qkvi_gguf_to_f32(const qkvi_gguf_type *type, const uint8_t *blocks, size_t n_blocks,
                      float *values);

#endif
