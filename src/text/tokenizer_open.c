/** Opens tokenizers: from the files of a folder, or from bytes in memory. */

#include "files/file.h"
#include "text/marian.h"
#include "text/siglip.h"
#include "text/tokenizer_json.h"

enum { FILE_LIMIT = 64 << 20, MAX_FILES = 8 };

/* A folder with this file is Marian's, whatever else is in it. */
#define MARIAN_FILE "source.spm"
/* SigLIP's pieces; other classes are read from tokenizer.json. */
#define PIECES_FILE "spiece.model"

/* What is read of a folder, and what that is kept in. */
struct folder {
    qkvi_text_files files;
    struct {
        char *path, *bytes;
        char name[QKVI_NAME_BYTES]; /* the path escaped */
    } kept[MAX_FILES];
    int n_kept;
};

/* A file of a folder, if it is there; its name stays for messages. */
static qkv_status load(struct folder *folder, const char *path, const char *name,
                       qkvi_text_file *file, qkv_error *error) {
    const int at = folder->n_kept++;
    char *const whole = folder->kept[at].path = qkvi_path_join(path, name);
    if (whole == NULL) return qkvi_no_memory(error, "a path");
    file->name =
        qkvi_escape(folder->kept[at].name, sizeof folder->kept[at].name, whole, strlen(whole));
    if (!qkvi_file_exists(whole)) return QKV_OK;
    QKV_TRY(qkvi_file_load(whole, FILE_LIMIT, &folder->kept[at].bytes, &file->n_bytes, error));
    file->bytes = folder->kept[at].bytes;
    return QKV_OK;
}

static void unload(struct folder *folder) {
    for (int i = 0; i < folder->n_kept; i++) {
        free(folder->kept[i].path);
        free(folder->kept[i].bytes);
    }
}

/* The small files that may stand beside any vocabulary. */
static qkv_status load_small(struct folder *folder, const char *path, qkv_error *error) {
    qkvi_text_files *const files = &folder->files;
    QKV_TRY(load(folder, path, "tokenizer_config.json", &files->tokenizer_config, error));
    QKV_TRY(load(folder, path, "special_tokens_map.json", &files->special_tokens_map, error));
    QKV_TRY(load(folder, path, "added_tokens.json", &files->added_tokens, error));
    QKV_TRY(load(folder, path, "chat_template.jinja", &files->chat_template, error));
    return load(folder, path, "config.json", &files->config, error);
}

static qkv_status open_json(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                            qkv_error *error) {
    struct folder folder = { .files.lower_first = lower_first };
    qkv_status status = load_small(&folder, path, error);
    if (status == QKV_OK)
        status = load(&folder, path, "tokenizer.json", &folder.files.tokenizer, error);
    folder.files.vocab.name = folder.files.tokenizer.name;
    if (status == QKV_OK) status = qkvi_tokenizer_read_json(&folder.files, tokenizer, error);
    unload(&folder);
    return status;
}

static qkv_status open_vocab(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                             qkv_error *error) {
    struct folder folder = { .files.lower_first = lower_first };
    qkv_status status = load_small(&folder, path, error);
    if (status == QKV_OK) status = load(&folder, path, "vocab.txt", &folder.files.vocab, error);
    if (status == QKV_OK) status = qkvi_tokenizer_read_vocab(&folder.files, tokenizer, error);
    unload(&folder);
    return status;
}

static qkv_status open_bpe(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                           qkv_error *error) {
    struct folder folder = { .files.lower_first = lower_first };
    qkv_status status = load_small(&folder, path, error);
    if (status == QKV_OK) status = load(&folder, path, "vocab.json", &folder.files.vocab, error);
    if (status == QKV_OK) status = load(&folder, path, "merges.txt", &folder.files.merges, error);
    if (status == QKV_OK) status = qkvi_tokenizer_read_bpe(&folder.files, tokenizer, error);
    unload(&folder);
    return status;
}

static qkv_status is_there(const char *folder, const char *name, int *there, qkv_error *error) {
    char *path = qkvi_path_join(folder, name);
    if (path == NULL) return qkvi_no_memory(error, "a path");
    *there = qkvi_file_exists(path);
    free(path);
    return QKV_OK;
}

/* A file that must be there. */
static qkv_status need(struct folder *folder, const char *path, const char *name,
                       qkvi_text_file *file, qkv_error *error) {
    QKV_TRY(load(folder, path, name, file, error));
    if (file->bytes) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "%s is not there, but %s is", file->name, MARIAN_FILE);
}

static qkv_status open_marian(const char *path, int is_target, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    struct folder folder = { 0 };
    qkvi_text_files *const files = &folder.files;
    int separate = 0;
    qkv_status status = load_small(&folder, path, error);
    if (status == QKV_OK) status = qkvi_marian_separate(&files->tokenizer_config, &separate, error);
    const int is_other = is_target && separate;
    if (status == QKV_OK)
        status = need(&folder, path, is_target ? "target.spm" : MARIAN_FILE, &files->spm, error);
    if (status == QKV_OK)
        status = need(&folder, path, is_other ? "target_vocab.json" : "vocab.json", &files->vocab,
                      error);
    if (status == QKV_OK) status = qkvi_marian_read(files, is_other, tokenizer, error);
    unload(&folder);
    return status;
}

static qkv_status open_source(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    (void)lower_first; /* as in the reference: this class does not know it */
    return open_marian(path, 0, tokenizer, error);
}

static qkv_status open_siglip(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    struct folder folder = { .files.lower_first = lower_first };
    qkv_status status = load_small(&folder, path, error);
    if (status == QKV_OK) status = load(&folder, path, PIECES_FILE, &folder.files.spm, error);
    if (status == QKV_OK) status = qkvi_siglip_read(&folder.files, tokenizer, error);
    unload(&folder);
    return status;
}

/* Whether pieces go before a tokenizer.json: the class reads nothing else. */
static qkv_status is_siglip(const char *path, int *is, qkv_error *error) {
    struct folder folder = { 0 };
    QKV_TRY(is_there(path, PIECES_FILE, is, error));
    if (!*is) return QKV_OK;
    const qkv_status status = load_small(&folder, path, error);
    *is = status == QKV_OK && qkvi_siglip_is_named(&folder.files);
    unload(&folder);
    return status;
}

/* Ways to open a folder, in the order in which they are tried: the first whose files are there. */
static const struct way {
    const char *files[2]; /* the second is nullable */
    qkv_status (*open)(const char *path, int lower_first, qkv_tokenizer **tokenizer,
                       qkv_error *error);
} ways[] = {
    { { MARIAN_FILE, NULL }, open_source },
    { { "tokenizer.json", NULL }, open_json },
    { { "vocab.txt", NULL }, open_vocab },
    { { "vocab.json", "merges.txt" }, open_bpe },
};

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

static qkv_status open_any(const char *directory, int lower_first, qkv_tokenizer **tokenizer,
                           qkv_error *error) {
    if (directory == NULL || tokenizer == NULL)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              tokenizer ? "directory" : "tokenizer");
    *tokenizer = NULL;
    char name[QKVI_NAME_BYTES];
    int of_siglip = 0;
    qkvi_escape(name, sizeof name, directory, strlen(directory));
    QKV_TRY(is_siglip(directory, &of_siglip, error));
    if (of_siglip) return open_siglip(directory, lower_first, tokenizer, error);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        const char *missing = NULL;
        int n = 0;
        QKV_TRY(count_files(directory, &ways[i], &n, &missing, error));
        if (n > 0 && missing)
            return qkvi_error_set(error, QKV_ERR_IO, "%s: %s is there, but not %s", name,
                                  missing == ways[i].files[0] ? ways[i].files[1] : ways[i].files[0],
                                  missing);
        if (n > 0) return ways[i].open(directory, lower_first, tokenizer, error);
    }
    return qkvi_error_set(error, QKV_ERR_IO,
                          "%s: neither tokenizer.json nor vocab.txt nor vocab.json with merges.txt "
                          "is there",
                          name);
}

qkv_status qkv_tokenizer_open(const char *directory, qkv_side side, qkv_tokenizer **tokenizer,
                              qkv_error *error) {
    int is_marian = 0;
    if (side != QKV_TARGET || !directory || !tokenizer)
        return open_any(directory, 0, tokenizer, error); /* which says what is NULL */
    *tokenizer = NULL;
    QKV_TRY(is_there(directory, MARIAN_FILE, &is_marian, error));
    return is_marian ? open_marian(directory, 1, tokenizer, error)
                     : open_any(directory, 0, tokenizer, error);
}

qkv_status qkvi_tokenizer_open_lower(const char *directory, qkv_tokenizer **tokenizer,
                                     qkv_error *error) {
    return open_any(directory, 1, tokenizer, error);
}

qkv_status qkv_tokenizer_open_memory(const void *vocab, size_t vocab_bytes, const void *config,
                                     size_t config_bytes, qkv_tokenizer **tokenizer,
                                     qkv_error *error) {
    if (tokenizer == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "tokenizer is NULL");
    *tokenizer = NULL;
    if (vocab == NULL) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "vocab is NULL");
    const qkvi_text_files files = {
        .vocab = { "vocab.txt", vocab, vocab_bytes },
        .tokenizer_config = { "tokenizer_config.json", config, config_bytes },
        .special_tokens_map.name = "special_tokens_map.json",
        .added_tokens.name = "added_tokens.json",
        .config.name = "config.json",
    };
    return qkvi_tokenizer_read_vocab(&files, tokenizer, error);
}
