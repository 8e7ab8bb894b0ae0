/*
 * Decode with keys on several ranks: qkvmpi_attention_decode. seams.h says which rank computes
 * which split.
 */
#ifndef QKVI_DIST_DECODE_H
#define QKVI_DIST_DECODE_H

#include "dist/call.h"

/* NULL, "ordered" or "auto" is ordered, so that bits do not depend on rates; or "tree". */
QKV_NODISCARD qkv_status qkvi_decode_scheme_named(const char *name, qkvi_scheme *scheme,
                                                  qkv_error *error);

/* Decode by a scheme. refused: as in qkvi_forward_by. ctx, desc and view may be NULL. */
QKV_NODISCARD qkv_status qkvi_decode_by(qkvi_group *group, qkv_ctx *ctx, qkvi_scheme scheme,
                                        const qkv_error *refused, const qkv_attention_desc *desc,
                                        const qkv_kv_view *view, const qkvi_dist_arrays *arrays);

#endif
