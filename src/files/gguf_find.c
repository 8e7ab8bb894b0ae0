/* Finds the GGUF file that a name means: see gguf_find.h. */
#include "files/gguf_find.h"

#include "files/file.h"
#include "files/ollama.h"
#include "files/shards.h"

/* A file of another name is opened only to see how it begins. */
static qkv_status has_magic(const char *path, bool *has, qkv_error *error) {
    qkvi_source source;
    char magic[4] = "";
    *has = false;
    if (!qkvi_file_exists(path)) return QKV_OK;
    QKV_TRY(qkvi_source_open(path, &source, error));
    qkv_status status = QKV_OK;
    if (source.n_bytes >= sizeof magic)
        status = qkvi_source_read(&source, 0, magic, sizeof magic, error);
    *has = memcmp(magic, "GGUF", sizeof magic) == 0;
    qkvi_source_close(&source);
    return status;
}

bool qkvi_is_gguf_name(const char *name) {
    return qkvi_has_stem(name, ".gguf") || qkvi_is_ollama(name);
}

qkv_status qkvi_gguf_find(const char *path_or_name, char **path, qkv_error *error) {
    bool is_gguf = qkvi_has_stem(path_or_name, ".gguf");
    *path = NULL;
    if (qkvi_is_ollama(path_or_name)) return qkvi_ollama_find(path_or_name, path, error);
    const bool is_known =
        qkvi_has_stem(path_or_name, ".safetensors") || qkvi_is_index(path_or_name);
    if (!is_gguf && !is_known) QKV_TRY(has_magic(path_or_name, &is_gguf, error));
    if (!is_gguf) return QKV_OK;
    *path = strdup(path_or_name);
    return *path ? QKV_OK : qkvi_no_memory(error, "a path");
}
