/**
 * The start of a safetensors file, before its JSON is believed to be some: how long it claims to
 * be, and how much of it we are ready to read.
 */
#ifndef QKVI_STORE_SAFETENSORS_HEADER_H
#define QKVI_STORE_SAFETENSORS_HEADER_H

#include "model/store/file.h"
#include "model/store/json.h"

/**
 * 16 MiB and 300,000 values; more if the environment says QKV_MAX_TENSORS=N, which is for files
 * that one trusts: a value costs up to 325 bytes. ARGUMENT if it says no number.
 */
qkv_status qkvi_header_limits(qkvi_json_limits *limits, qkv_error *error);

/** The length in the first 8 bytes. FORMAT; LIMIT if legal but above limits; IO. */
qkv_status qkvi_header_length(const qkvi_source *source, const qkvi_json_limits *limits,
                              uint64_t *length, qkv_error *error);

#endif
