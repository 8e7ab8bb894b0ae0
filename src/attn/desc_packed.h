/**
 * Where packed sequences begin. The lists are checked against the descriptor's sizes, entry by
 * entry, and become the problem's.
 */
#ifndef QKVI_ATTN_DESC_PACKED_H
#define QKVI_ATTN_DESC_PACKED_H

#include "attn/desc.h"

/** After lengths, which it bounds, and strides. */
QKV_NODISCARD qkv_status qkvi_packed_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                          qkv_error *error);

/** Arrays of packed sequences have no stride of the batch. */
QKV_NODISCARD qkv_status qkvi_check_packed_stride(const qkvi_problem *problem, const char *name,
                                                  const int64_t stride[3], qkv_error *error);

#endif
