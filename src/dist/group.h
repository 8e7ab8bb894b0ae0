/*
 * Ranks that call together, and how they agree: each call begins and ends with an exchange of
 * records, one from each rank.
 *
 * No rank leaves a call before the others: one that has failed still takes part in all
 * communication. So a failure of one rank becomes the same status and message on all.
 */
#ifndef QKVI_DIST_GROUP_H
#define QKVI_DIST_GROUP_H

#include "dist/transport.h"

enum { QKVI_RECORD_FIELDS = 40 };

/* What a rank sends to all others. */
typedef struct qkvi_record {
    int64_t status;
    int64_t value[QKVI_RECORD_FIELDS];
} qkvi_record;

/* The scheme of a call, the same on all ranks. */
typedef enum qkvi_scheme {
    QKVI_SCHEME_ORDERED,
    QKVI_SCHEME_RING,
    QKVI_SCHEME_ZIGZAG,
    QKVI_SCHEME_ULYSSES,
    QKVI_N_SCHEMES,
    QKVI_SCHEME_AUTO = QKVI_N_SCHEMES, /* the fastest by costs.h */
    QKVI_SCHEME_TREE                   /* only of decode: decode.h */
} qkvi_scheme;

typedef struct qkvi_group {
    qkvi_transport *transport;
    qkv_error error;            /* of the last call */
    qkvi_record *records;       /* [size], of the last exchange */
    int64_t *first_q, *first_k; /* [size + 1]: where pieces begin; the last is the whole length */
    qkvi_request *requests;     /* [2][size] */
    qkvi_scheme scheme;         /* of the present call */
    int64_t *pairs;     /* of tests: counts pairs of query and key on this rank; NULL: does not */
    int64_t chunk_keys; /* of tests: keys of a chunk, a multiple of 256; 0: by size */
    bool broken;        /* the transport has failed: all further calls fail */
} qkvi_group;

/* NULL without memory. The transport must outlive the group. */
qkvi_group *qkvi_group_new(qkvi_transport *transport);
void qkvi_group_free(qkvi_group *group);

/* Sets the message of a failure of this rank, and returns status. */
qkv_status qkvi_group_fail(qkvi_group *group, qkv_status status, const char *format, ...)
    QKVI_PRINTF(3, 4);

/*
 * Sends `mine` to all ranks and fills group->records. mine->status and group->error are the result
 * of this rank so far. Returns on all ranks status and message of the lowest rank that has failed.
 */
QKV_NODISCARD qkv_status qkvi_group_exchange(qkvi_group *group, const qkvi_record *mine);

/* The same with only a status. */
QKV_NODISCARD qkv_status qkvi_group_agree(qkvi_group *group, qkv_status mine);

/*
 * A value that must be the same on all ranks. QKVI_FIELD_FLOAT: its low 32 bits are those of a
 * float.
 */
typedef struct qkvi_group_value {
    const char *name;
    enum { QKVI_FIELD_INT, QKVI_FIELD_FLOAT, QKVI_FIELD_HASH } kind;
} qkvi_group_value;

/* Compares value[0 … n) of all records; QKV_ERR_ARGUMENT names the first that differs. */
QKV_NODISCARD qkv_status qkvi_group_compare(qkvi_group *group, const qkvi_group_value *fields,
                                            int n);

/* Waits for operations; a failure of the transport breaks the group. */
QKV_NODISCARD qkv_status qkvi_group_wait(qkvi_group *group, qkvi_request *requests, int n);

#endif
