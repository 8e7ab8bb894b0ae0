/* See world.h. word[0] of a request counts the messages that are not complete. */
#include "dist/world.h"

#include <string.h>

qkv_status world_ibcast(qkvi_transport *t, void *data, size_t bytes, int root,
                        qkvi_request *request, qkv_error *error) {
    if (t->rank != root) return t->ops->irecv(t, data, bytes, root, request, error);
    for (int to = 0; to < t->size; to++)
        if (to != root) QKV_TRY(t->ops->isend(t, data, bytes, to, request, error));
    return QKV_OK;
}

qkv_status world_allgather(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                           qkv_error *error) {
    memcpy((char *)all + (size_t)t->rank * bytes, mine, bytes);
    for (int root = 0; root < t->size; root++) {
        qkvi_request request = { { 0 } };
        QKV_TRY(
            t->ops->ibcast(t, (char *)all + (size_t)root * bytes, bytes, root, &request, error));
        QKV_TRY(t->ops->wait(t, &request, 1, error));
    }
    return QKV_OK;
}

bool world_all_done(const qkvi_request *requests, int n) {
    for (int i = 0; i < n; i++)
        if (requests[i].word[0]) return false;
    return true;
}
