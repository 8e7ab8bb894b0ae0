/**
 * The audit of a safetensors file, from within: what its parts share. See qkv_tensor_audit.
 *
 * The loader stops at the first fault. The audit goes on wherever what follows still has a meaning,
 * with the loader's own checks of fields and layout; and a file in which it finds nothing is given
 * to the loader, so that no file is called clean that does not open.
 */
#ifndef QKVI_FILES_AUDIT_H
#define QKVI_FILES_AUDIT_H

#include "files/json.h"
#include "files/safetensors.h"
#include "qkv/files.h"

enum { QKVI_SHOWN_BYTES = 400 };

/** A key of a JSON object. */
typedef struct qkvi_key {
    char *bytes; /* decoded, may hold NUL; a NUL follows */
    size_t n;
    char *shown;     /* escaped */
    uint64_t offset; /* in the file */
    int is_hidden;   /* the same key comes again */
} qkvi_key;

typedef struct qkvi_keys {
    qkvi_key *at;
    int64_t n;
    size_t capacity;
} qkvi_keys;

typedef struct qkvi_audit {
    qkvi_source source;
    void (*visit)(void *user, const qkv_finding *finding);
    void *user;
    qkv_error *error;
    int64_t n_findings;
    char *header; /* the JSON */
    size_t n_header;
    uint64_t data_start;
    qkvi_keys keys; /* of the root, in their order */
    /* Tensors whose place is known, with the number of their key; their names are shown ones. One
     * whose size is not known from its shape claims what it has: bytes of type U8. */
    qkvi_stored *tensors;
    int64_t *tensor_keys;
    int64_t n_tensors;
    size_t room;     /* of both */
    int is_complete; /* 1: all tensors are among them */
} qkvi_audit;

/** Tells a finding. shown: the tensor, escaped, or NULL. */
void qkvi_audit_find(qkvi_audit *audit, const char *rule, uint64_t offset, const char *shown,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
qkv_status qkvi_audit_no_memory(qkvi_audit *audit);

/**
 * Decodes a key of the header and appends it; what is no string is told and appended as it stands.
 */
qkv_status qkvi_audit_add_key(qkvi_audit *audit, qkvi_keys *keys, qkvi_json_span span,
                              const char *shown);
void qkvi_keys_free(qkvi_keys *keys);

/** Keys that come twice: told, and all but the last hidden. shown: the tensor whose keys they are,
 * NULL for the root's or the metadata's. */
qkv_status qkvi_audit_duplicates(qkvi_audit *audit, qkvi_keys *keys, const char *shown);
/** Names that look like others, like nothing, or like what they are not. */
qkv_status qkvi_audit_names(qkvi_audit *audit);

/** A member of the root: __metadata__ or a tensor. user is the audit. */
qkv_status qkvi_audit_member(void *user, qkvi_json_span key, qkvi_json_span value);

/** Layout, alignment, values. */
qkv_status qkvi_audit_data(qkvi_audit *audit);

/** qkv_tensor_audit of bytes in memory. */
qkv_status qkvi_audit_memory(const char *name, const void *bytes, size_t n_bytes,
                             void (*visit)(void *user, const qkv_finding *finding), void *user,
                             qkv_audit *audit, qkv_error *error);

#endif
