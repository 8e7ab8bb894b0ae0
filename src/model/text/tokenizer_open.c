/** Where a tokenizer comes from: the files of a folder, or bytes in memory. */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/file.h"
#include "model/text/tokenizer.h"

enum { FILE_LIMIT = 64 << 20 };

/* A file of a folder, if it is there; *path stays for messages. */
struct folder_file {
    char *path;
    char name[QKVI_NAME_BYTES]; /* the path escaped */
    char *bytes;
    size_t n_bytes;
    int exists;
};

static qkv_status load(struct folder_file *file, const char *folder, const char *name,
                       qkv_error *error) {
    file->path = qkvi_path_join(folder, name);
    if (file->path == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    qkvi_escape(file->name, sizeof file->name, file->path, strlen(file->path));
    file->exists = qkvi_file_exists(file->path);
    if (!file->exists) return QKV_OK;
    return qkvi_file_load(file->path, FILE_LIMIT, &file->bytes, &file->n_bytes, error);
}

static void unload(struct folder_file *file) {
    free(file->path);
    free(file->bytes);
}

static qkv_status open_vocab(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    struct folder_file vocab = { 0 }, config = { 0 };
    char name[QKVI_NAME_BYTES];
    qkv_status status = load(&vocab, folder, "vocab.txt", error);
    if (status == QKV_OK) status = load(&config, folder, "tokenizer_config.json", error);
    if (status == QKV_OK && !vocab.exists)
        status =
            qkvi_error_set(error, QKV_ERR_IO, "%s: neither tokenizer.json nor vocab.txt is there",
                           qkvi_escape(name, sizeof name, folder, strlen(folder)));
    if (status == QKV_OK)
        status = qkvi_tokenizer_read_vocab(vocab.name, vocab.bytes, vocab.n_bytes, config.name,
                                           config.bytes, config.n_bytes, tokenizer, error);
    unload(&vocab);
    unload(&config);
    return status;
}

qkv_status qkv_tokenizer_open(const char *directory, qkv_tokenizer **tokenizer, qkv_error *error) {
    if (directory == NULL || tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              tokenizer ? "directory" : "tokenizer");
    *tokenizer = NULL;
    struct folder_file json = { 0 };
    qkv_status status = load(&json, directory, "tokenizer.json", error);
    if (status == QKV_OK && json.exists)
        status = qkvi_tokenizer_read_json(json.name, json.bytes, json.n_bytes, tokenizer, error);
    else if (status == QKV_OK)
        status = open_vocab(directory, tokenizer, error);
    unload(&json);
    return status;
}

qkv_status qkv_tokenizer_open_memory(const void *vocab, size_t vocab_bytes, const void *config,
                                     size_t config_bytes, qkv_tokenizer **tokenizer,
                                     qkv_error *error) {
    if (tokenizer == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tokenizer is NULL");
    *tokenizer = NULL;
    if (vocab == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "vocab is NULL");
    return qkvi_tokenizer_read_vocab("vocab.txt", vocab, vocab_bytes, "tokenizer_config.json",
                                     config, config_bytes, tokenizer, error);
}
