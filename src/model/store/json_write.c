/* See json_write.h. */
#include "model/store/json_write.h"

qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                               qkv_error *error) {
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (text == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for JSON", name);
    const qkv_status status = qkvi_files_add(files, name, text, strlen(text), error);
    free(text);
    return status;
}
