/**
 * One tensor's entry in a safetensors header: its fields checked alone, before all of them
 * together.
 */
#ifndef QKVI_FILES_SAFETENSORS_PARTS_H
#define QKVI_FILES_SAFETENSORS_PARTS_H

#include "files/file.h"
#include "files/json.h"
#include "files/safetensors.h"

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

/**
 * 16 MiB and 300,000 values; more if the environment says QKV_MAX_TENSORS=N, which is for files
 * that one trusts: a value costs up to 325 bytes. ARGUMENT if it says no number.
 */
qkv_status qkvi_header_limits(qkvi_json_limits *limits, qkv_error *error);

/** The length in the first 8 bytes. FORMAT; LIMIT if legal but above limits; IO. */
qkv_status qkvi_header_length(const qkvi_source *source, const qkvi_json_limits *limits,
                              uint64_t *length, qkv_error *error);

/**
 * All tensors of a safetensors file together: in the order of their offsets each begins where the
 * last one ended, the first at 0, each is as long as its shape and type say, and the data ends
 * where the last one does. Two readers of such a file cannot see two files, and nothing hides
 * between the tensors.
 */

typedef struct qkvi_layout_fault {
    const char *rule;          /* "hole" */
    const qkvi_stored *tensor; /* NULL: the data as a whole */
    uint64_t offset;           /* in the data: where it shows */
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
