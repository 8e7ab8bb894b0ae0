/* See group.h. */
#include "dist/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

qkvi_group *qkvi_group_new(qkvi_transport *t) {
    const size_t n = (size_t)t->size;
    qkvi_group *const group = qkvi_calloc_array(1, sizeof *group);
    if (!group) return NULL;
    group->transport = t;
    group->records = qkvi_calloc_array(n, sizeof *group->records);
    group->first_q = qkvi_calloc_array(n + 1, sizeof *group->first_q);
    group->first_k = qkvi_calloc_array(n + 1, sizeof *group->first_k);
    group->requests = qkvi_calloc_array(2 * n, sizeof *group->requests);
    if (group->records && group->first_q && group->first_k && group->requests) return group;
    qkvi_group_free(group);
    return NULL;
}

void qkvi_group_free(qkvi_group *group) {
    if (!group) return;
    free(group->records);
    free(group->first_q);
    free(group->first_k);
    free(group->requests);
    free(group);
}

qkv_status qkvi_group_fail(qkvi_group *group, qkv_status status, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    qkvi_error_vset(&group->error, status, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- Agreement ------------------------------------------------------------------------------- */

static qkv_status broke(qkvi_group *group, qkv_status status) {
    if (status != QKV_OK) group->broken = true;
    return status;
}

/* The failure of rank `root` becomes that of all. */
static qkv_status share_failure(qkvi_group *group, int root) {
    qkvi_transport *const t = group->transport;
    qkvi_request request = { { 0 } };
    qkv_error theirs = { QKV_OK, "" }, error;
    if (root == t->rank) theirs = group->error;
    QKV_TRY(broke(group, t->ops->ibcast(t, &theirs, sizeof theirs, root, &request, &group->error)));
    QKV_TRY(qkvi_group_wait(group, &request, 1));
    theirs.message[sizeof theirs.message - 1] = '\0';
    error.status = theirs.status;
    if (t->size == 1)
        error = theirs;
    else
        snprintf(error.message, sizeof error.message, "rank %d: %.960s", root, theirs.message);
    group->error = error;
    return error.status;
}

qkv_status qkvi_group_exchange(qkvi_group *group, const qkvi_record *mine) {
    qkvi_transport *const t = group->transport;
    if (mine->status != QKV_OK && group->error.status != mine->status)
        qkvi_group_fail(group, (qkv_status)mine->status, "%s",
                        qkv_status_name((qkv_status)mine->status));
    QKV_TRY(broke(group, t->ops->allgather(t, mine, sizeof *mine, group->records, &group->error)));
    for (int rank = 0; rank < t->size; rank++)
        if (group->records[rank].status != QKV_OK) return share_failure(group, rank);
    group->error = (qkv_error){ QKV_OK, "" };
    return QKV_OK;
}

qkv_status qkvi_group_agree(qkvi_group *group, qkv_status mine) {
    const qkvi_record record = { .status = mine };
    return group->broken ? group->error.status : qkvi_group_exchange(group, &record);
}

/* ---- The same values everywhere -------------------------------------------------------------- */

static void print_value(char *text, size_t bytes, const qkvi_group_value *field, int64_t value) {
    const uint32_t bits = (uint32_t)value;
    float x;
    memcpy(&x, &bits, sizeof x);
    if (field->kind == QKVI_FIELD_FLOAT)
        snprintf(text, bytes, "%g", (double)x);
    else
        snprintf(text, bytes, "%" PRId64, value);
}

qkv_status qkvi_group_compare(qkvi_group *group, const qkvi_group_value *fields, int n) {
    const qkvi_record *const first = &group->records[0];
    char here[32], there[32];
    for (int rank = 1; rank < group->transport->size; rank++)
        for (int f = 0; f < n; f++) {
            const int64_t x = group->records[rank].value[f];
            if (x == first->value[f]) continue;
            if (fields[f].kind == QKVI_FIELD_HASH)
                return qkvi_group_fail(group, QKV_ERR_ARGUMENT,
                                       "%s of rank %d differs from that of rank 0", fields[f].name,
                                       rank);
            print_value(here, sizeof here, &fields[f], x);
            print_value(there, sizeof there, &fields[f], first->value[f]);
            return qkvi_group_fail(group, QKV_ERR_ARGUMENT, "%s = %s on rank %d, but %s on rank 0",
                                   fields[f].name, here, rank, there);
        }
    return QKV_OK;
}

qkv_status qkvi_group_wait(qkvi_group *group, qkvi_request *requests, int n) {
    qkvi_transport *const t = group->transport;
    return broke(group, t->ops->wait(t, requests, n, &group->error));
}
