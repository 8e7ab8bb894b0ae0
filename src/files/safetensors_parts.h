/** Checks of a safetensors header that loader and audit share: entries, length, layout. */
#ifndef QKVI_FILES_SAFETENSORS_PARTS_H
#define QKVI_FILES_SAFETENSORS_PARTS_H

#include "files/file.h"
#include "files/json.h"
#include "files/safetensors.h"

/** The tensor that messages name: "FILE: tensor 'NAME': …", or only "…" if file is NULL. */
typedef struct qkvi_place {
    const char *file;
    char name[128]; /* escaped */
    qkv_error *error;
} qkvi_place;

qkvi_place qkvi_place_of(const char *file, const char *name, qkv_error *error);
qkv_status qkvi_tensor_failed(const qkvi_place *at, qkv_status status, const char *rule);

/** The fields of an entry: "dtype", "shape", "data_offsets". */
enum { QKVI_ENTRY_FIELDS = 3 };
extern const char *const qkvi_entry_fields[QKVI_ENTRY_FIELDS];

/**
 * Read one field into *tensor. The type must come before the shape, whose size in bytes needs it.
 * FORMAT, LIMIT, UNSUPPORTED.
 */
qkv_status qkvi_read_dtype(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);
qkv_status qkvi_read_shape(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);
qkv_status qkvi_read_offsets(const qkvi_place *at, const json_t *value, qkvi_stored *tensor);

/**
 * Reads an entry, which must have these three fields and no other, into *tensor, except its name;
 * begin and end are relative to the data section. FORMAT, LIMIT, UNSUPPORTED.
 */
qkv_status qkvi_read_entry(const qkvi_place *at, const json_t *entry, qkvi_stored *tensor);

/**
 * Limits of a header: 16 MiB and 300,000 values; more with QKV_MAX_TENSORS=N in the environment,
 * for trusted files, since a value takes up to 325 bytes. ARGUMENT if N is no number.
 */
qkv_status qkvi_header_limits(qkvi_json_limits *limits, qkv_error *error);

/** Reads the length of the header, the first 8 bytes. FORMAT; LIMIT; IO. */
qkv_status qkvi_header_length(const qkvi_source *source, const qkvi_json_limits *limits,
                              uint64_t *length, qkv_error *error);

/**
 * A fault of the layout. In the order of their offsets the first tensor must begin at 0, each
 * further one where the one before ends, and the data must end with the last one; each must have
 * the size of its shape and type. So no bytes are hidden between tensors, and all readers see the
 * same tensors.
 */
typedef struct qkvi_layout_fault {
    const char *rule;          /* "hole" */
    const qkvi_stored *tensor; /* NULL: the data as a whole */
    uint64_t offset;           /* of the fault in the data */
    const char *text;
} qkvi_layout_fault;

/**
 * Sorts the tensors by their offsets, which count from the start of the data, and calls visit for
 * each fault until it returns something other than QKV_OK, which is returned.
 */
qkv_status qkvi_check_layout(qkvi_stored *tensors, int64_t n_tensors, uint64_t data_bytes,
                             qkv_status (*visit)(void *user, const qkvi_layout_fault *fault),
                             void *user);

#endif
