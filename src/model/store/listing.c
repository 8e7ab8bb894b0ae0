/* qkv_tensor_list: what .safetensors files hold, from their checked headers alone. */
#include <string.h>

#include "core/status.h"
#include "model/store/shards.h"
#include "qkv/model.h"

qkv_status qkv_tensor_list(const char *path, void (*visit)(void *user, const qkv_tensor_entry *),
                           void *user, qkv_error *error) {
    qkvi_safetensors *file;
    if (!path || !visit)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "visit" : "path");
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
