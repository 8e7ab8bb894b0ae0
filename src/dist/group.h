/*
 * Ranks that call together, and what they need to agree: each call begins and ends with an exchange
 * of records, one of each rank.
 *
 * No rank leaves a call before the others: one that cannot compute still takes part in all
 * communication. So a failure on one rank becomes the same status and message on all of them.
 */
#ifndef QKVI_DIST_GROUP_H
#define QKVI_DIST_GROUP_H

#include "dist/transport.h"

enum { QKVI_RECORD_FIELDS = 40 };

/* What a rank tells the others. */
typedef struct qkvi_record {
    int64_t status;
    int64_t value[QKVI_RECORD_FIELDS];
} qkvi_record;

/* How a call goes about it; the same on all ranks. */
typedef enum qkvi_scheme {
    QKVI_SCHEME_ORDERED,
    QKVI_SCHEME_RING,
    QKVI_SCHEME_ZIGZAG,
    QKVI_SCHEME_ULYSSES,
    QKVI_N_SCHEMES,
    QKVI_SCHEME_AUTO = QKVI_N_SCHEMES, /* one of them is chosen: costs.h */
    QKVI_SCHEME_TREE                   /* of decode: decode.h */
} qkvi_scheme;

typedef struct qkvi_group {
    qkvi_transport *transport;
    qkv_error error;            /* of the last call */
    qkvi_record *records;       /* [size], of the last exchange */
    int64_t *first_q, *first_k; /* [size + 1]: the pieces of a call; the last is the sum */
    qkvi_request *requests;     /* [2][size] */
    qkvi_scheme scheme;         /* of a call */
    /* NULL, or where a test has pairs of a query and a key counted that this rank computes. */
    int64_t *pairs;
    int64_t chunk_keys; /* a test's choice, a multiple of 256; 0: by size */
    bool broken;        /* the transport has failed: nothing works any more */
} qkvi_group;

/* NULL without memory. The transport outlives the group. */
qkvi_group *qkvi_group_new(qkvi_transport *transport);
void qkvi_group_free(qkvi_group *group);

/* Writes the message of this rank's failure, and returns status. */
qkv_status qkvi_group_fail(qkvi_group *group, qkv_status status, const char *format, ...)
    QKVI_PRINTF(3, 4);

/*
 * Gives `mine` to all ranks and fills group->records. mine->status and group->error are this rank's
 * result so far. Returns the status of the lowest rank that has failed, with its message, on all.
 */
QKV_NODISCARD qkv_status qkvi_group_exchange(qkvi_group *group, const qkvi_record *mine);

/* The same with a status alone. */
QKV_NODISCARD qkv_status qkvi_group_agree(qkvi_group *group, qkv_status mine);

/* A value that must be the same on all ranks. is_float: its low bits are those of a float. */
typedef struct qkvi_group_value {
    const char *name;
    enum { QKVI_FIELD_INT, QKVI_FIELD_FLOAT, QKVI_FIELD_HASH } kind;
} qkvi_group_value;

/* Compares value[0 … n) of all records; QKV_ERR_ARGUMENT names the first that differs. */
QKV_NODISCARD qkv_status qkvi_group_compare(qkvi_group *group, const qkvi_group_value *fields,
                                            int n);

/* Waits; a failure of the transport breaks the group. */
QKV_NODISCARD qkv_status qkvi_group_wait(qkvi_group *group, qkvi_request *requests, int n);

#endif
