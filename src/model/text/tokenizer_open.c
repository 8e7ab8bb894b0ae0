/** Where a tokenizer comes from: the files of a folder, or bytes in memory. */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/file.h"
#include "model/text/bpe_files.h"
#include "model/text/marian.h"
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

/* Several files, each if it is there. */
static qkv_status load_all(struct folder_file *files, int n, const char *folder,
                           const char *const *names, qkv_error *error) {
    for (int i = 0; i < n; i++) QKV_TRY(load(&files[i], folder, names[i], error));
    return QKV_OK;
}

static void unload_all(struct folder_file *files, int n) {
    for (int i = 0; i < n; i++) unload(&files[i]);
}

static qkv_status open_json(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    struct folder_file json = { 0 };
    qkv_status status = load(&json, folder, "tokenizer.json", error);
    if (status == QKV_OK)
        status = qkvi_tokenizer_read_json(json.name, json.bytes, json.n_bytes, tokenizer, error);
    unload(&json);
    return status;
}

static qkv_status open_vocab(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    static const char *const names[] = { "vocab.txt", "tokenizer_config.json" };
    struct folder_file files[2] = { { 0 } };
    qkv_status status = load_all(files, 2, folder, names, error);
    if (status == QKV_OK)
        status = qkvi_tokenizer_read_vocab(files[0].name, files[0].bytes, files[0].n_bytes,
                                           files[1].name, files[1].bytes, files[1].n_bytes,
                                           tokenizer, error);
    unload_all(files, 2);
    return status;
}

static qkvi_bpe_file bpe_file(const struct folder_file *file) {
    return (qkvi_bpe_file){ file->name, file->bytes, file->n_bytes };
}

static qkv_status open_bpe(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    static const char *const names[] = {
        "vocab.json",        "merges.txt", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "config.json"
    };
    struct folder_file files[6] = { { 0 } };
    qkv_status status = load_all(files, 6, folder, names, error);
    if (status == QKV_OK) {
        const qkvi_bpe_files parts = { bpe_file(&files[0]), bpe_file(&files[1]),
                                       bpe_file(&files[2]), bpe_file(&files[3]),
                                       bpe_file(&files[4]), bpe_file(&files[5]) };
        status = qkvi_tokenizer_read_bpe(&parts, tokenizer, error);
    }
    unload_all(files, 6);
    return status;
}

/* A folder with this file is Marian's, whatever else is in it. */
#define MARIAN_FILE "source.spm"

static qkvi_marian_file marian(const struct folder_file *file) {
    return (qkvi_marian_file){ file->name, file->bytes, file->n_bytes };
}

/* A file that must be there. */
static qkv_status need(struct folder_file *file, const char *folder, const char *name,
                       qkv_error *error) {
    QKV_TRY(load(file, folder, name, error));
    if (file->exists) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "%s is not there, but %s is", file->name, MARIAN_FILE);
}

static qkv_status open_marian(const char *folder, int is_target, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    struct folder_file spm = { 0 }, vocab = { 0 }, config = { 0 };
    int separate = 0;
    qkv_status status = load(&config, folder, "tokenizer_config.json", error);
    const qkvi_marian_file settings = marian(&config);
    if (status == QKV_OK) status = qkvi_marian_separate(&settings, &separate, error);
    if (status == QKV_OK)
        status = need(&spm, folder, is_target ? "target.spm" : MARIAN_FILE, error);
    if (status == QKV_OK)
        status =
            need(&vocab, folder, is_target && separate ? "target_vocab.json" : "vocab.json", error);
    if (status == QKV_OK) {
        const qkvi_marian_files files = { marian(&spm), marian(&vocab), settings };
        status = qkvi_marian_read(&files, tokenizer, error);
    }
    unload(&spm);
    unload(&vocab);
    unload(&config);
    return status;
}

static qkv_status open_source(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error) {
    return open_marian(folder, 0, tokenizer, error);
}

/* Ways to open a folder, in the order in which they are tried: the first whose files are there. */
static const struct way {
    const char *files[2]; /* the second is nullable */
    qkv_status (*open)(const char *folder, qkv_tokenizer **tokenizer, qkv_error *error);
} ways[] = {
    { { MARIAN_FILE, NULL }, open_source },
    { { "tokenizer.json", NULL }, open_json },
    { { "vocab.txt", NULL }, open_vocab },
    { { "vocab.json", "merges.txt" }, open_bpe },
};

static qkv_status is_there(const char *folder, const char *name, int *there, qkv_error *error) {
    char *path = qkvi_path_join(folder, name);
    if (path == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    *there = qkvi_file_exists(path);
    free(path);
    return QKV_OK;
}

/* How many of the files of a way are there; *missing is one that is not. */
static qkv_status count_files(const char *folder, const struct way *way, int *n,
                              const char **missing, qkv_error *error) {
    *n = 0;
    for (int i = 0; i < 2 && way->files[i]; i++) {
        int there = 0;
        QKV_TRY(is_there(folder, way->files[i], &there, error));
        if (!there) *missing = way->files[i];
        *n += there;
    }
    return QKV_OK;
}

qkv_status qkv_tokenizer_open(const char *directory, qkv_tokenizer **tokenizer, qkv_error *error) {
    if (directory == NULL || tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              tokenizer ? "directory" : "tokenizer");
    *tokenizer = NULL;
    char name[QKVI_NAME_BYTES];
    qkvi_escape(name, sizeof name, directory, strlen(directory));
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *missing = NULL;
        int n = 0;
        QKV_TRY(count_files(directory, &ways[i], &n, &missing, error));
        if (n > 0 && missing)
            return qkvi_error_set(error, QKV_ERR_IO, "%s: %s is there, but not %s", name,
                                  missing == ways[i].files[0] ? ways[i].files[1] : ways[i].files[0],
                                  missing);
        if (n > 0) return ways[i].open(directory, tokenizer, error);
    }
    return qkvi_error_set(error, QKV_ERR_IO,
                          "%s: neither tokenizer.json nor vocab.txt nor vocab.json with merges.txt "
                          "is there",
                          name);
}

qkv_status qkv_tokenizer_open_target(const char *directory, qkv_tokenizer **tokenizer,
                                     qkv_error *error) {
    int is_marian = 0;
    if (directory == NULL || tokenizer == NULL)
        return qkv_tokenizer_open(directory, tokenizer, error); /* which says so */
    *tokenizer = NULL;
    QKV_TRY(is_there(directory, MARIAN_FILE, &is_marian, error));
    return is_marian ? open_marian(directory, 1, tokenizer, error)
                     : qkv_tokenizer_open(directory, tokenizer, error);
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
