/* What a folder has in place of weights: see found.h. Names alone tell, nothing is opened. */
#include "model/store/found.h"

#include <dirent.h>
#include <errno.h>

#include "model/store/file.h"

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
#define GGUF                                                                                       \
    "which is llama.cpp's (GGUF). Take the model as it was published, or convert it: ",            \
        "transformers.AutoModel.from_pretrained(\"", "\", gguf_file=FILE).save_pretrained(NEW)"
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

static qkv_status no_memory(qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for the name of a file");
}

/* The entry of the foremost kind, of several the first by name, to be freed; NULL: there is none. */
static qkv_status find(DIR *list, char **name, int *found, qkv_error *error) {
    const struct dirent *entry;
    *found = N_KINDS;
    while ((entry = readdir(list))) {
        const int k = kind_of(entry->d_name);
        if (k == N_KINDS || k > *found) continue;
        if (k == *found && strcmp(entry->d_name, *name) > 0) continue;
        free(*name);
        *name = strdup(entry->d_name);
        if (!*name) return no_memory(error);
        *found = k;
    }
    return QKV_OK;
}

qkv_status qkvi_refuse_folder(const char *folder, qkv_error *error) {
    char printable[QKVI_NAME_BYTES], file[200], *name = NULL;
    int k = N_KINDS;
    qkv_status status = QKV_OK;
    DIR *const list = opendir(folder);
    if (!list && errno == ENOMEM) return no_memory(error);
    if (list) status = find(list, &name, &k, error);
    if (list) closedir(list);
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
