/*
 * The files of a model: see hub.h. The cache is that of huggingface_hub:
 *
 *     ROOT/models--ORG--NAME/refs/main                 a commit, 40 hexadecimal digits
 *     ROOT/models--ORG--NAME/snapshots/COMMIT/FILE     usually a link into ../../blobs
 *
 * with ROOT = $HF_HUB_CACHE, else $HUGGINGFACE_HUB_CACHE, else $HF_HOME/hub, else
 * ~/.cache/huggingface/hub. Names and refs are checked before a path is made of them.
 */
#include "files/hub.h"

#include <errno.h>

#include "core/os.h"
#include "files/file.h"
#include "files/shards.h"

/* ---- What a folder has in place of weights --------------------------------------------------- */

/* Names alone tell, nothing is opened. */

/* How a name is recognised. */
typedef enum match { WHOLE, BEGINS, ENDS } match;

/* What people have; the first of these kinds that is there is told. */
typedef struct kind {
    match match;
    const char *text;
    const char *is;
    const char *before, *after; /* a command, around the folder; or NULL */
} kind;

#define TORCH                                                                                      \
    "a pickle file; qkv reads safetensors. Convert once: ", "python3 tools/bin2safetensors.py ", ""
#define ADAPTER                                                                                    \
    "an adapter (LoRA), which is no model by itself. Merge it into its base model: ",              \
        "peft.AutoPeftModel.from_pretrained(\"", "\").merge_and_unload().save_pretrained(NEW)"
#define SENTENCES                                                                                  \
    "where older versions of sentence-transformers have the model. Save it anew: ",                \
        "sentence_transformers.SentenceTransformer(\"", "\").save_pretrained(NEW)"
#define TENSORFLOW                                                                                 \
    "which is TensorFlow's. Convert it by transformers 4, as 5 cannot: ",                          \
        "AutoModel.from_pretrained(\"", "\", from_tf=True).save_pretrained(NEW)"
#define FLAX                                                                                       \
    "which is Flax's. Convert it by transformers 4, as 5 cannot: ",                                \
        "AutoModel.from_pretrained(\"", "\", from_flax=True).save_pretrained(NEW)"
#define GGUF "a GGUF file, which may be a model: then name the file itself", NULL, NULL
#define ONNX "which is ONNX. Take the model that it was exported from", NULL, NULL

static const kind kinds[] = {
    { WHOLE, "pytorch_model.bin", TORCH },
    { WHOLE, "pytorch_model.bin.index.json", TORCH },
    { WHOLE, "adapter_config.json", ADAPTER },
    { WHOLE, "adapter_model.safetensors", ADAPTER },
    { WHOLE, "adapter_model.bin", ADAPTER },
    { BEGINS, "0_", SENTENCES },
    { ENDS, ".safetensors", "which may be a model: then name the file itself", NULL, NULL },
    { ENDS, ".gguf", GGUF },
    { ENDS, ".h5", TENSORFLOW },
    { ENDS, ".ckpt.index", TENSORFLOW },
    { WHOLE, "saved_model.pb", TENSORFLOW },
    { WHOLE, "saved_model", TENSORFLOW },
    { ENDS, ".msgpack", FLAX },
    { ENDS, ".onnx", ONNX },
    { WHOLE, "onnx", ONNX },
};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static int matches(const kind *k, const char *name) {
    const size_t n = strlen(name), m = strlen(k->text);
    if (n < m) return 0;
    switch (k->match) {
    case WHOLE: return strcmp(name, k->text) == 0;
    case BEGINS: return strncmp(name, k->text, m) == 0;
    default: return strcmp(name + n - m, k->text) == 0;
    }
}

/* The kind of a name; N_KINDS: none. */
static int kind_of(const char *name) {
    int k = 0;
    while (k < N_KINDS && !matches(&kinds[k], name)) k++;
    return k;
}

/*
 * The entry of the foremost kind, of several the first by name, to be freed; NULL: there is none.
 */
static qkv_status find(qkvi_os_list *list, char **name, int *found, qkv_error *error) {
    const char *entry;
    *found = N_KINDS;
    while ((entry = qkvi_os_list_next(list))) {
        const int k = kind_of(entry);
        if (k == N_KINDS || k > *found) continue;
        if (k == *found && strcmp(entry, *name) > 0) continue;
        free(*name);
        *name = strdup(entry);
        if (!*name) return qkvi_no_memory(error, "the name of a file");
        *found = k;
    }
    return QKV_OK;
}

/* UNSUPPORTED, naming the file; IO if there is nothing of a model. MEMORY. */
static qkv_status refuse_folder(const char *folder, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], file[200], *name = NULL;
    int k = N_KINDS;
    qkv_status status = QKV_OK;
    qkvi_os_list *const list = qkvi_os_list_open(folder);
    if (!list && errno == ENOMEM) return qkvi_no_memory(error, "the name of a file");
    if (list) status = find(list, &name, &k, error);
    if (list) qkvi_os_list_close(list);
    qkvi_escape(printable, sizeof printable, folder, strlen(folder));
    if (status != QKV_OK) return status;
    if (!name)
        return qkvi_error_set(error, QKV_ERR_IO, "%s: no model.safetensors in this folder",
                              printable);
    qkvi_escape(file, sizeof file, name, strlen(name));
    free(name);
    const kind *const of = &kinds[k];
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s holds only %s, %s%s%s%s", printable, file,
                          of->is, of->before ? of->before : "", of->before ? printable : "",
                          of->before ? of->after : "");
}

enum { COMMIT_DIGITS = 40, MAX_REF = 64 };

static int is_folder(const char *path) {
    qkvi_os_about about;
    return qkvi_os_examine(path, &about) == 0 && about.kind == QKVI_OS_FOLDER;
}

static qkv_status folder_has(const char *folder, const char *name, int *there, qkv_error *error) {
    char *const path = qkvi_path_join(folder, name);
    if (!path) return qkvi_no_memory(error, "a path");
    *there = qkvi_file_exists(path);
    free(path);
    return QKV_OK;
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
        return *weights ? QKV_OK : qkvi_no_memory(error, "a path");
    }
    return refuse_folder(folder, error);
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
    value = qkvi_os_home();
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

/*
 * Is it the name of a repository, OWNER/NAME, rather than a path with a slip: is there no folder
 * OWNER here?
 */
static int is_repository(const char *name) {
    char owner[QKVI_NAME_BYTES];
    const char *const slash = strchr(name, '/');
    if (!slash || (size_t)(slash - name) >= sizeof owner) return 0;
    snprintf(owner, sizeof owner, "%.*s", (int)(slash - name), name);
    return !is_folder(owner);
}

static qkv_status not_cached(const char *root, const char *name, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], printable_root[200];
    qkvi_os_about about;
    qkvi_escape(printable, sizeof printable, name, strlen(name));
    if (qkvi_os_examine(name, &about) == 0)
        return qkvi_error_set(error, QKV_ERR_IO,
                              "'%s' is no folder and no .safetensors or .gguf file", printable);
    if (!is_model_name(name))
        return qkvi_error_set(error, QKV_ERR_IO, "'%s': no such file or folder", printable);
    qkvi_escape(printable_root, sizeof printable_root, root, strlen(root));
    if (!is_repository(name))
        return qkvi_error_set(error, QKV_ERR_IO,
                              "'%s': no such file or folder, and no model of that name in the "
                              "Hugging Face cache %s",
                              printable, printable_root);
    return qkvi_error_set(error, QKV_ERR_IO,
                          "'%s': no such file or folder, and not in the Hugging Face cache %s; to "
                          "download it: hf download %s",
                          printable, printable_root, printable);
}

/* snapshots/COMMIT of refs/main. */
static qkv_status snapshot_of(const char *repository, char **folder, qkv_error *error) {
    char name[16 + COMMIT_DIGITS] = "snapshots/", printable[QKVI_NAME_BYTES];
    char *commit = NULL;
    size_t n = 0;
    char *const path = qkvi_path_join(repository, "refs/main");
    if (!path) return qkvi_no_memory(error, "a path");
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
    return *folder ? QKV_OK : qkvi_no_memory(error, "a path");
}

static qkv_status find_cached(const char *name, char **folder, qkv_error *error) {
    char *const root = cache_root();
    char *const repository = root ? repository_of(root, is_model_name(name) ? name : "") : NULL;
    qkv_status status;
    if (!repository)
        status = qkvi_no_memory(error, "a path");
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
    } else if (qkvi_has_stem(path_or_name, ".safetensors") || qkvi_is_index(path_or_name)) {
        *folder = qkvi_path_folder(path_or_name);
        *weights = strdup(path_or_name);
        if (!*folder || !*weights)
            status = qkvi_no_memory(error, "a path");
        else if (is_one_of_several(path_or_name))
            status = refuse_shard(path_or_name, *folder, error);
    } else {
        status = find_cached(path_or_name, folder, error);
    }
    if (status == QKV_OK && !*folder) status = qkvi_no_memory(error, "a path");
    if (status == QKV_OK && !*weights) status = weights_of(*folder, weights, error);
    if (status == QKV_OK) return QKV_OK;
    free(*folder);
    free(*weights);
    *folder = *weights = NULL;
    return status;
}
