/**
 * The audit of a safetensors file, qkv_tensor_audit: what its files share.
 *
 * The loader stops at the first fault. The audit goes on as far as the rest of the file can be
 * understood, with the loader's checks of fields and layout. A file without findings is given to
 * the loader, so that no file is called clean that does not open.
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
    int is_hidden;   /* the same key comes again, and readers see that one */
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
    /*
     * The tensors whose offsets are valid, with escaped names. If type or shape is not valid, a
     * tensor counts as bytes (U8) of the size that its offsets give.
     */
    qkvi_stored *tensors; /* [n_tensors] */
    int64_t *tensor_keys; /* [n_tensors]: indices of their keys */
    int64_t n_tensors;
    size_t room;     /* of both arrays */
    int is_complete; /* all tensors of the header are among these */
} qkvi_audit;

/** Reports a finding. shown: the name of the tensor, escaped, or NULL. */
void qkvi_audit_find(qkvi_audit *audit, const char *rule, uint64_t offset, const char *shown,
                     const char *format, ...) __attribute__((format(printf, 5, 6)));
qkv_status qkvi_audit_no_memory(qkvi_audit *audit);

/** Decodes and appends a key of the header. An invalid string is a finding, appended as it is. */
qkv_status qkvi_audit_add_key(qkvi_audit *audit, qkvi_keys *keys, qkvi_json_span span,
                              const char *shown);
void qkvi_keys_free(qkvi_keys *keys);

/**
 * Reports keys that come twice, and marks all but the last as hidden. shown: the tensor whose keys
 * they are; NULL: keys of the root or of the metadata.
 */
qkv_status qkvi_audit_duplicates(qkvi_audit *audit, qkvi_keys *keys, const char *shown);
/** Reports names that look like other names, that cannot be seen, or that look misleading. */
qkv_status qkvi_audit_names(qkvi_audit *audit);

/** Audits a member of the root: __metadata__ or a tensor. user is the audit. */
qkv_status qkvi_audit_member(void *user, qkvi_json_span key, qkvi_json_span value);

/** Audits layout, alignment and values. */
qkv_status qkvi_audit_data(qkvi_audit *audit);

/** qkv_tensor_audit of bytes in memory. */
qkv_status qkvi_audit_memory(const char *name, const void *bytes, size_t n_bytes,
                             void (*visit)(void *user, const qkv_finding *finding), void *user,
                             qkv_audit *audit, qkv_error *error);

#endif
