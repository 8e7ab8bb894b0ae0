/**
 * Types of tensors in a GGUF file, and their conversion to floats.
 *
 * A row consists of whole blocks; a block has some numbers in few bits and the factors that they
 * are multiplied with. The results have the bits of ggml's dequantize_row_…: products are exact in
 * f32, and only the last sum of a value rounds.
 */
#ifndef QKVI_FILES_GGUF_TYPES_H
#define QKVI_FILES_GGUF_TYPES_H

#include "files/base.h"

enum { QKVI_GGUF_MAX_BLOCK = 256 };

typedef struct qkvi_gguf_type {
    uint32_t id;
    const char *name;     /* "Q4_K" */
    int n_elems, n_bytes; /* of a block */
    /** Converts a block; NULL: this type is not supported. */
    void (*to_f32)(const uint8_t *block, float *values);
    bool is_multiplied; /* products take its blocks as they lie: kernels/blocks.h */
} qkvi_gguf_type;

enum { QKVI_GGUF_F32 = 0, QKVI_GGUF_F16 = 1, QKVI_GGUF_F64 = 28, QKVI_GGUF_BF16 = 30 };

/** The type with this number; NULL: there is none, or it was removed from the format. */
const qkvi_gguf_type *qkvi_gguf_type_of(uint32_t id);

/**
 * Converts n_blocks consecutive blocks. The caller has set the default floating-point state.
 */
void qkvi_gguf_to_f32(const qkvi_gguf_type *type, const uint8_t *blocks, size_t n_blocks,
                      float *values);

#endif
