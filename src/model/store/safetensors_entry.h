/**
 * One tensor's entry in a safetensors header: its fields checked alone, before all of them
 * together.
 */
#ifndef QKVI_STORE_SAFETENSORS_ENTRY_H
#define QKVI_STORE_SAFETENSORS_ENTRY_H

#include "model/store/safetensors.h"

/** A tensor being read, for messages: "FILE: tensor 'NAME': …". */
typedef struct qkvi_place {
    const char *file;
    char name[128]; /* escaped */
    qkv_error *error;
} qkvi_place;

qkvi_place qkvi_place_of(const char *file, const char *name, qkv_error *error);
qkv_status qkvi_tensor_failed(const qkvi_place *at, qkv_status status, const char *rule);

/**
 * {"dtype":…,"shape":…,"data_offsets":…} and nothing else into *tensor, all but its name; begin and
 * end are relative to the data section. Arrays must have been counted (at most QKVI_MAX_RANK
 * entries). FORMAT, LIMIT, UNSUPPORTED.
 */
qkv_status qkvi_read_entry(const qkvi_place *at, const json_t *entry, qkvi_stored *tensor);

#endif
