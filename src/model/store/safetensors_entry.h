/**
 * One tensor's entry in a safetensors header: its fields checked alone, before all of them
 * together.
 */
#ifndef QKVI_STORE_SAFETENSORS_ENTRY_H
#define QKVI_STORE_SAFETENSORS_ENTRY_H

#include "model/store/safetensors.h"

/** A tensor being read, for messages: "FILE: tensor 'NAME': …", or only "…" if file is NULL. */
typedef struct qkvi_place {
    const char *file;
    char name[128]; /* escaped */
    qkv_error *error;
} qkvi_place;

qkvi_place qkvi_place_of(const char *file, const char *name, qkv_error *error);
qkv_status qkvi_tensor_failed(const qkvi_place *at, qkv_status status, const char *rule);

/** "dtype", "shape", "data_offsets". */
enum { QKVI_ENTRY_FIELDS = 3 };
extern const char *const qkvi_entry_fields[QKVI_ENTRY_FIELDS];

/**
 * Each field's value into *tensor; the shape after the type, whose width its product needs. FORMAT,
 * LIMIT, UNSUPPORTED.
 */
qkv_status qkvi_read_dtype(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);
qkv_status qkvi_read_shape(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);
qkv_status qkvi_read_offsets(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);

/**
 * {"dtype":…,"shape":…,"data_offsets":…} and nothing else into *tensor, all but its name; begin and
 * end are relative to the data section. FORMAT, LIMIT, UNSUPPORTED.
 */
qkv_status qkvi_read_entry(const qkvi_place *at, const json_t *entry, qkvi_stored *tensor);

#endif
