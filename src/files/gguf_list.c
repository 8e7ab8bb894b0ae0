/* Lists the tensors and keys of GGUF files: see gguf_list.h. */
#include "files/gguf_list.h"

#include "files/gguf_find.h"
#include "files/gguf_keys.h"
#include "files/gguf_parts.h"

enum { MAX_SHOWN_NAME = 400, MAX_SHOWN = 2400 };

static qkv_status open_named(const char *name, qkvi_gguf_parts *parts, qkv_error *error) {
    char *path;
    *parts = (qkvi_gguf_parts){ 0 };
    QKV_TRY(qkvi_gguf_find(name, &path, error));
    if (!path)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is no GGUF file",
                              QKVI_PRINTABLE(QKVI_NAME_BYTES, name));
    const qkv_status status = qkvi_gguf_parts_open(path, parts, error);
    free(path);
    return status;
}

/* The rule of weights/resolver_load.c, without its model: no table of positions is multiplied. */
static int64_t opened_bytes(const qkvi_gguf_tensor *tensor) {
    const bool is_table = strcmp(tensor->name, "position_embd.weight") == 0 ||
                          strcmp(tensor->name, "token_types.weight") == 0;
    const bool as_it_lies = tensor->type->is_multiplied && tensor->rank == 2 && !is_table;
    return (int64_t)(as_it_lies ? tensor->n_bytes : tensor->n_elems * sizeof(float));
}

qkv_status qkvi_gguf_list_tensors(const char *name,
                                  void (*visit)(void *user, const qkv_tensor_entry *entry),
                                  void *user, qkv_error *error) {
    qkvi_gguf_parts parts;
    QKV_TRY(open_named(name, &parts, error));
    for (int64_t t = 0; t < parts.n_tensors; t++) {
        const qkvi_gguf_tensor *const tensor = parts.tensors[t];
        char shown[MAX_SHOWN_NAME];
        qkv_tensor_entry entry = { .name = shown,
                                   .type = tensor->type->name,
                                   .rank = tensor->rank,
                                   .opened_bytes = opened_bytes(tensor) };
        qkvi_escape(shown, sizeof shown, tensor->name, strlen(tensor->name));
        memcpy(entry.shape, tensor->shape, sizeof tensor->shape);
        visit(user, &entry);
    }
    qkvi_gguf_parts_close(&parts);
    return QKV_OK;
}

qkv_status qkv_key_list(const char *path, void (*visit)(void *user, const qkv_key_entry *entry),
                        void *user, qkv_error *error) {
    qkvi_gguf_parts parts;
    if (!path || !visit)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "visit" : "path");
    QKV_TRY(open_named(path, &parts, error));
    const qkvi_gguf_file *const file = parts.files[0];
    for (int64_t k = 0; k < file->n_keys; k++) {
        const qkvi_gguf_key *const key = &file->keys[k];
        char name[MAX_SHOWN_NAME], type[40], text[MAX_SHOWN];
        qkvi_escape(name, sizeof name, key->name, strlen(key->name));
        snprintf(type, sizeof type, "%s%s", key->is_array ? "array of " : "",
                 qkvi_gguf_kind_name(key->kind));
        qkvi_gguf_show(file, key, text, sizeof text);
        visit(user, &(qkv_key_entry){ name, type, (int64_t)key->count, text });
    }
    qkvi_gguf_parts_close(&parts);
    return QKV_OK;
}
