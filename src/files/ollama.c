/* Finds models of Ollama: see ollama.h. Names and digests are checked before they enter a path. */
#include "files/ollama.h"

#include "core/os.h"
#include "files/file.h"
#include "files/json.h"

#define PREFIX "ollama:"

enum { MAX_MANIFEST = 1 << 20, MAX_PART = 128, DIGEST = 64 };

bool qkvi_is_ollama(const char *name) { return strncmp(name, PREFIX, strlen(PREFIX)) == 0; }

/* ---- The name -------------------------------------------------------------------------------- */

/* Letters, digits, '.', '_' and '-', of which the first is none of the last three. */
static bool is_part(const char *text, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char c = text[i];
        const bool is_letter =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_letter && (i == 0 || (c != '.' && c != '_' && c != '-'))) return false;
    }
    return n > 0 && n < MAX_PART;
}

/* "manifests/registry.ollama.ai/library/NAME/TAG", or with USER in place of library. */
static bool manifest_of(const char *name, char path[4 * MAX_PART]) {
    const char *const colon = strchr(name, ':'), *const tag = colon ? colon + 1 : "latest";
    const size_t n = colon ? (size_t)(colon - name) : strlen(name);
    const char *const slash = memchr(name, '/', n), *const model = slash ? slash + 1 : name;
    const char *const user = slash ? name : "library";
    const size_t n_user = slash ? (size_t)(slash - name) : strlen(user);
    const size_t n_model = n - (size_t)(model - name);
    if (!is_part(user, n_user) || !is_part(model, n_model) || !is_part(tag, strlen(tag)))
        return false;
    snprintf(path, 4 * MAX_PART, "manifests/registry.ollama.ai/%.*s/%.*s/%s", (int)n_user, user,
             (int)n_model, model, tag);
    return true;
}

/* ---- The folder ------------------------------------------------------------------------------ */

/*
 * The n-th place where models may be, to be freed; NULL without memory. *is_last: there is none
 * behind it.
 */
static char *root_of(int n, bool *is_last) {
    const char *const given = getenv("OLLAMA_MODELS"), *const home = qkvi_os_home();
    *is_last = n == 1 || (given && *given);
    if (given && *given) return strdup(given);
    if (n == 1) return strdup("/usr/share/ollama/.ollama/models");
    return qkvi_path_join(home ? home : "", ".ollama/models");
}

/* The first that has the file; *root NULL: none has. */
static qkv_status find_root(const char *file, char **root, qkv_error *error) {
    bool is_last = false;
    *root = NULL;
    for (int n = 0; !is_last; n++) {
        char *const place = root_of(n, &is_last);
        char *const path = place ? qkvi_path_join(place, file) : NULL;
        const bool is_there = path && qkvi_file_exists(path);
        if (is_there) *root = place;
        if (!is_there) free(place);
        free(path);
        if (!path) return qkvi_no_memory(error, "a path");
        if (is_there) return QKV_OK;
    }
    return QKV_OK;
}

static qkv_status not_there(const char *name, qkv_error *error) {
    bool is_last;
    char *const root = root_of(0, &is_last);
    if (!root) return qkvi_no_memory(error, "a path");
    qkvi_error_set(
        error, QKV_ERR_IO, "Ollama has no model '%s' in %s%s; to download it: ollama pull %s",
        QKVI_PRINTABLE(160, name), QKVI_PRINTABLE(200, root),
        is_last ? "" : ", nor in /usr/share/ollama/.ollama/models", QKVI_PRINTABLE(160, name));
    free(root);
    return QKV_ERR_IO;
}

/* ---- The manifest ---------------------------------------------------------------------------- */

static qkv_status layer_fail(const char *file, qkv_error *error, const char *type) {
    return qkvi_file_fail(error, QKV_ERR_UNSUPPORTED, file,
                          "has a layer of type '%s', without which the model would be another",
                          QKVI_PRINTABLE(128, type));
}

/* The digest of the only layer that is a model. */
static qkv_status find_digest(const char *file, const json_t *root, const char **digest,
                              qkv_error *error) {
    static const char image[] = "application/vnd.ollama.image.";
    const qkvi_json_reader top = { file, "", root, error };
    const json_t *layers = NULL;
    *digest = NULL;
    QKV_TRY(qkvi_json_take_array(&top, "layers", &layers));
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *const layer = json_array_get(layers, i);
        const qkvi_json_reader inner = { file, "layers", layer, error };
        const char *type = "";
        if (!json_is_object(layer))
            return qkvi_file_fail(error, QKV_ERR_FORMAT, file, "layers[%zu] is no object", i);
        QKV_TRY(qkvi_json_need_string(&inner, "mediaType", &type));
        const char *const kind =
            strncmp(type, image, strlen(image)) == 0 ? type + strlen(image) : "";
        if (strcmp(kind, "adapter") == 0 || strcmp(kind, "projector") == 0)
            return layer_fail(file, error, type);
        if (strcmp(kind, "model") != 0) continue;
        if (*digest)
            return qkvi_file_fail(error, QKV_ERR_UNSUPPORTED, file, "has two layers of a model");
        QKV_TRY(qkvi_json_need_string(&inner, "digest", digest));
    }
    if (*digest) return QKV_OK;
    return qkvi_file_fail(error, QKV_ERR_FORMAT, file, "has no layer of a model");
}

static qkv_status blob_of(const char *file, const json_t *manifest, const char *root, char **path,
                          qkv_error *error) {
    static const char prefix[] = "sha256:";
    const char *digest;
    char name[24 + DIGEST];
    QKV_TRY(find_digest(file, manifest, &digest, error));
    const bool is_sha = strncmp(digest, prefix, strlen(prefix)) == 0;
    const char *const hex = is_sha ? digest + strlen(prefix) : "";
    if (strlen(hex) != DIGEST || strspn(hex, "0123456789abcdef") != DIGEST)
        return qkvi_file_fail(error, QKV_ERR_FORMAT, file,
                              "digest '%s' is not sha256: and 64 hexadecimal digits",
                              QKVI_PRINTABLE(128, digest));
    snprintf(name, sizeof name, "blobs/sha256-%s", hex);
    *path = qkvi_path_join(root, name);
    return *path ? QKV_OK : qkvi_no_memory(error, "a path");
}

static qkv_status read_manifest(const char *root, const char *name, char **path, qkv_error *error) {
    char *bytes = NULL, *const file = qkvi_path_join(root, name);
    size_t n_bytes = 0;
    json_t *json = NULL;
    if (!file) return qkvi_no_memory(error, "a path");
    const char *const shown = QKVI_PRINTABLE(QKVI_NAME_BYTES, file);
    qkv_status status = qkvi_file_load(file, MAX_MANIFEST, &bytes, &n_bytes, error);
    if (status == QKV_OK)
        status = qkvi_json_load(shown, bytes, n_bytes, &qkvi_json_limits_config, &json, error);
    if (status == QKV_OK) status = blob_of(shown, json, root, path, error);
    json_decref(json);
    free(bytes);
    free(file);
    return status;
}

qkv_status qkvi_ollama_find(const char *name, char **path, qkv_error *error) {
    const char *const model = name + strlen(PREFIX);
    char manifest[4 * MAX_PART], *root;
    *path = NULL;
    if (!manifest_of(model, manifest))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "'%s' is not ollama:NAME, ollama:NAME:TAG or ollama:USER/NAME:TAG of "
                              "letters, digits, '.', '_' and '-'",
                              QKVI_PRINTABLE(200, name));
    QKV_TRY(find_root(manifest, &root, error));
    if (!root) return not_there(model, error);
    const qkv_status status = read_manifest(root, manifest, path, error);
    free(root);
    return status;
}
