/*
 * The files of a model: see hub.h. The cache is that of huggingface_hub:
 *
 *     ROOT/models--ORG--NAME/refs/main                 a commit, 40 hexadecimal digits
 *     ROOT/models--ORG--NAME/snapshots/COMMIT/FILE     usually a link into ../../blobs
 *
 * with ROOT = $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, else
 * ~/.cache/huggingface/hub. Names and refs are checked before a path is made of them.
 */
#include "model/store/hub.h"

#include <sys/stat.h>

#include "model/store/file.h"
#include "model/store/found.h"
#include "model/store/shards.h"

enum { COMMIT_DIGITS = 40, MAX_REF = 64 };

static qkv_status no_memory(qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
}

static int is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static qkv_status folder_has(const char *folder, const char *name, int *there, qkv_error *error) {
    char *const path = qkvi_path_join(folder, name);
    if (!path) return no_memory(error);
    *there = qkvi_file_exists(path);
    free(path);
    return QKV_OK;
}

static int ends_with(const char *text, const char *ending) {
    const size_t n = strlen(text), m = strlen(ending);
    return n > m && strcmp(text + n - m, ending) == 0;
}

/* ---- A folder -------------------------------------------------------------------------------- */

/* One file before several, as transformers has it, which looks for an index only without it. */
static qkv_status weights_of(const char *folder, char **weights, qkv_error *error) {
    static const char *const names[] = { "model.safetensors", "model.safetensors.index.json" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        int there = 0;
        QKV_TRY(folder_has(folder, names[n], &there, error));
        if (!there) continue;
        *weights = qkvi_path_join(folder, names[n]);
        return *weights ? QKV_OK : no_memory(error);
    }
    return qkvi_refuse_folder(folder, error);
}

/* "…-00001-of-00002.safetensors", but not "…-00001-of-00001.safetensors", which is all there is. */
static int is_one_of_several(const char *path) {
    static const char pattern[] = "-#####-of-#####.safetensors";
    const size_t n = strlen(path), m = sizeof pattern - 1;
    const char *const end = n > m ? path + n - m : NULL;
    for (size_t i = 0; end && i < m; i++)
        if (pattern[i] == '#' ? end[i] < '0' || end[i] > '9' : end[i] != pattern[i]) return 0;
    return end && memcmp(end + 10, "00001.", 6) != 0;
}

static qkv_status refuse_shard(const char *path, const char *folder, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], printable_folder[200];
    qkvi_escape(printable, sizeof printable, path, strlen(path));
    qkvi_escape(printable_folder, sizeof printable_folder, folder, strlen(folder));
    return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                          "%s is one of several files of a model; name their folder, %s, which "
                          "needs a model.safetensors.index.json",
                          printable, printable_folder);
}

static char *folder_of(const char *path) {
    const char *const slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* ---- The cache ------------------------------------------------------------------------------- */

/* NAME or ORG/NAME of letters, digits, '.', '_', '-'; no part starts with '.', none holds "..". */
static int is_model_name(const char *name) {
    int slashes = 0;
    if (strlen(name) > 200 || strstr(name, "..") || strstr(name, "--")) return 0;
    for (const char *at = name; *at; at++) {
        const int starts = at == name || at[-1] == '/';
        if (*at == '/' && (starts || ++slashes > 1 || !at[1])) return 0;
        if (*at == '.' && starts) return 0;
        if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/", *at))
            return 0;
    }
    return *name != '\0';
}

static char *cache_root(void) {
    const char *value = getenv("HF_HUB_CACHE");
    if (!value || !*value) value = getenv("HUGGINGFACE_HUB_CACHE");
    if (value && *value) return strdup(value);
    value = getenv("HF_HOME");
    if (value && *value) return qkvi_path_join(value, "hub");
    value = getenv("HOME");
    return qkvi_path_join(value ? value : "", ".cache/huggingface/hub");
}

/* ROOT/models--ORG--NAME */
static char *repository_of(const char *root, const char *name) {
    char folder[512] = "models--";
    size_t n = strlen(folder);
    for (const char *at = name; *at; at++) {
        folder[n++] = *at == '/' ? '-' : *at;
        if (*at == '/') folder[n++] = '-';
    }
    folder[n] = '\0';
    return qkvi_path_join(root, folder);
}

static qkv_status not_cached(const char *root, const char *name, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], printable_root[200];
    qkvi_escape(printable, sizeof printable, name, strlen(name));
    if (!is_model_name(name))
        return qkvi_error_set(error, QKV_ERR_IO, "'%s' is no folder and no .safetensors file",
                              printable);
    qkvi_escape(printable_root, sizeof printable_root, root, strlen(root));
    return qkvi_error_set(error, QKV_ERR_IO,
                          "'%s' is no folder, no .safetensors file, and not in the Hugging Face "
                          "cache %s; to download it: hf download %s",
                          printable, printable_root, printable);
}

/* snapshots/COMMIT of refs/main. */
static qkv_status snapshot_of(const char *repository, char **folder, qkv_error *error) {
    char name[16 + COMMIT_DIGITS] = "snapshots/", printable[QKVI_NAME_BYTES];
    char *commit = NULL;
    size_t n = 0;
    char *const path = qkvi_path_join(repository, "refs/main");
    if (!path) return no_memory(error);
    const qkv_status status = qkvi_file_load(path, MAX_REF, &commit, &n, error);
    qkvi_escape(printable, sizeof printable, path, strlen(path));
    free(path);
    if (status != QKV_OK) return status;
    const int is_commit = n == COMMIT_DIGITS && strspn(commit, "0123456789abcdef") == COMMIT_DIGITS;
    if (is_commit) strcat(name, commit);
    free(commit);
    if (!is_commit)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s is not 40 hexadecimal digits", printable);
    *folder = qkvi_path_join(repository, name);
    return *folder ? QKV_OK : no_memory(error);
}

static qkv_status find_cached(const char *name, char **folder, qkv_error *error) {
    char *const root = cache_root();
    char *const repository = root ? repository_of(root, is_model_name(name) ? name : "") : NULL;
    qkv_status status;
    if (!repository)
        status = no_memory(error);
    else if (!is_model_name(name) || !is_folder(repository))
        status = not_cached(root, name, error);
    else
        status = snapshot_of(repository, folder, error);
    free(repository);
    free(root);
    return status;
}

qkv_status qkvi_hub_find(const char *path_or_name, char **folder, char **weights,
                         qkv_error *error) {
    qkv_status status = QKV_OK;
    *folder = *weights = NULL;
    if (is_folder(path_or_name)) {
        *folder = strdup(path_or_name);
    } else if (ends_with(path_or_name, ".safetensors") || qkvi_is_index(path_or_name)) {
        *folder = folder_of(path_or_name);
        *weights = strdup(path_or_name);
        if (!*folder || !*weights)
            status = no_memory(error);
        else if (is_one_of_several(path_or_name))
            status = refuse_shard(path_or_name, *folder, error);
    } else {
        status = find_cached(path_or_name, folder, error);
    }
    if (status == QKV_OK && !*folder) status = no_memory(error);
    if (status == QKV_OK && !*weights) status = weights_of(*folder, weights, error);
    if (status == QKV_OK) return QKV_OK;
    free(*folder);
    free(*weights);
    *folder = *weights = NULL;
    return status;
}
