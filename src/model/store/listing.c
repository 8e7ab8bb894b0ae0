/* qkv_tensor_list: what .safetensors and .npz files hold, from their checked headers alone. */

#include "model/store/npz.h"
#include "model/store/shards.h"
#include "qkv/files.h"

static qkv_status list_weights(const char *path, qkvi_visit_entry *visit, void *user,
                               qkv_error *error) {
    qkvi_safetensors *file;
    QKV_TRY(qkvi_weights_open(path, &file, error));
    for (int64_t i = 0; i < file->n_tensors; i++) {
        const qkvi_stored *const tensor = &file->tensors[i];
        char name[400];
        qkv_tensor_entry entry = { .name = name, .rank = tensor->rank };
        qkvi_escape(name, sizeof name, tensor->name, strlen(tensor->name));
        entry.type = qkvi_elem_name(tensor->type);
        memcpy(entry.shape, tensor->shape, (size_t)tensor->rank * sizeof *entry.shape);
        visit(user, &entry);
    }
    qkvi_safetensors_close(file);
    return QKV_OK;
}

qkv_status qkv_tensor_list(const char *path, void (*visit)(void *user, const qkv_tensor_entry *),
                           void *user, qkv_error *error) {
    if (!path || !visit)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "visit" : "path");
    const size_t n = strlen(path);
    const int is_npz = n > 4 && strcmp(path + n - 4, ".npz") == 0;
    return (is_npz ? qkvi_npz_list : list_weights)(path, visit, user, error);
}
