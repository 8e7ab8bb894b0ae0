/* qkv_tensor_list: what a .safetensors file holds, from its checked header alone. */
#include <string.h>

#include "core/status.h"
#include "model/store/safetensors.h"
#include "qkv/model.h"

static const char *const type_names[] = {
    [QKVI_F64] = "F64",   [QKVI_F32] = "F32", [QKVI_F16] = "F16", [QKVI_BF16] = "BF16",
    [QKVI_I64] = "I64",   [QKVI_I32] = "I32", [QKVI_I16] = "I16", [QKVI_I8] = "I8",
    [QKVI_U64] = "U64",   [QKVI_U32] = "U32", [QKVI_U16] = "U16", [QKVI_U8] = "U8",
    [QKVI_BOOL] = "BOOL",
};

qkv_status qkv_tensor_list(const char *path, void (*visit)(void *user, const qkv_tensor_entry *),
                           void *user, qkv_error *error) {
    qkvi_safetensors *file;
    if (!path || !visit)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "visit" : "path");
    QKV_TRY(qkvi_safetensors_open(path, &file, error));
    for (int64_t i = 0; i < file->n_tensors; i++) {
        const qkvi_stored *const tensor = &file->tensors[i];
        char name[400];
        qkv_tensor_entry entry = { .name = name, .rank = tensor->rank };
        qkvi_escape(name, sizeof name, tensor->name, strlen(tensor->name));
        entry.type = type_names[tensor->type];
        memcpy(entry.shape, tensor->shape, (size_t)tensor->rank * sizeof *entry.shape);
        visit(user, &entry);
    }
    qkvi_safetensors_close(file);
    return QKV_OK;
}
