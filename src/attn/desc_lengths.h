/**
 * What the descriptor lists for each batch: offsets, lengths, prefixes, and where packed sequences
 * begin. The lists are checked against its sizes, entry by entry, and become the problem's.
 */
#ifndef QKVI_ATTN_DESC_LENGTHS_H
#define QKVI_ATTN_DESC_LENGTHS_H

#include "attn/desc.h"

/** After the problem's flags of position: a prefix needs the causal rule. */
QKV_NODISCARD qkv_status qkvi_lengths_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                           qkv_error *error);

/** After lengths, which it bounds, and strides. */
QKV_NODISCARD qkv_status qkvi_packed_read(const qkv_attention_desc *desc, qkvi_problem *problem,
                                          qkv_error *error);

/** Arrays of packed sequences have no stride of the batch. */
QKV_NODISCARD qkv_status qkvi_check_packed_stride(const qkvi_problem *problem, const char *name,
                                                  const int64_t stride[3], qkv_error *error);

#endif
