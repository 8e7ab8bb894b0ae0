/*
 * Sets of safetensors files: see shards.h. The names of the shards are sorted, so that neither a
 * set nor the first fault that is reported depends on the order of the map.
 */
#include "files/shards.h"

#include "files/json.h"
#include "files/safetensors_parts.h"

enum { MAX_INDEX_DEPTH = 16, MAX_SHARD_NAME = 255 };

int qkvi_is_index(const char *path) { return qkvi_has_stem(path, ".safetensors.index.json"); }

/* A set while it is opened. */
typedef struct opening {
    qkvi_safetensors *set;
    const char *path;   /* of the index */
    const json_t *map;  /* of tensors to names of shards */
    const char **names; /* [set->n_shards], sorted; they live in map */
    int64_t n_names;
    int64_t max_tensors;
    qkv_error *error;
} opening;

static qkv_status no_memory(const opening *job) {
    return qkvi_error_set(job->error, QKV_ERR_MEMORY, "%s: no memory for its shards",
                          job->set->source.name);
}

static const char *escaped(const char *name, char printable[200]) {
    return qkvi_escape(printable, 200, name, strlen(name));
}

/* ---- The index ------------------------------------------------------------------------------- */

/* The name of a safetensors file in the folder of the index, printable as it is, and no path. */
static int is_plain(const char *name) {
    for (const char *at = name; *at; at++)
        if (*at < ' ' || *at > '~' || *at == '/' || *at == '\\') return 0;
    return strlen(name) <= MAX_SHARD_NAME && name[0] != '.' && !strstr(name, "..") &&
           qkvi_has_stem(name, ".safetensors");
}

static int by_text(const void *left, const void *right) {
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

/* The different names in the map, in order. */
static qkv_status list_shards(opening *job) {
    const char *tensor, *const file = job->set->source.name;
    char printable[200], printable_tensor[200];
    json_t *value;
    int64_t n = 0;
    job->names = calloc(json_object_size(job->map) + 1, sizeof *job->names);
    if (!job->names) return no_memory(job);
    json_object_foreach((json_t *)(uintptr_t)job->map, tensor, value) {
        const char *const name = json_string_value(value);
        if (!name)
            return qkvi_error_set(job->error, QKV_ERR_FORMAT,
                                  "%s: weight_map['%s'] is not a string", file,
                                  escaped(tensor, printable_tensor));
        if (!is_plain(name))
            return qkvi_error_set(job->error, QKV_ERR_FORMAT,
                                  "%s: weight_map['%s'] = '%s' is not the plain name of a "
                                  ".safetensors file in the same folder",
                                  file, escaped(tensor, printable_tensor),
                                  escaped(name, printable));
        job->names[n++] = name;
    }
    if (n == 0) return qkvi_error_set(job->error, QKV_ERR_FORMAT, "%s: weight_map is empty", file);
    qsort(job->names, (size_t)n, sizeof *job->names, by_text);
    for (int64_t i = 0; i < n; i++)
        if (job->n_names == 0 || strcmp(job->names[job->n_names - 1], job->names[i]) != 0)
            job->names[job->n_names++] = job->names[i];
    if (job->n_names <= QKVI_MAX_SHARDS) return QKV_OK;
    return qkvi_error_set(job->error, QKV_ERR_LIMIT, "%s: %lld shards, the limit is %d", file,
                          (long long)job->n_names, QKVI_MAX_SHARDS);
}

/* Larger files than headers may be are not read. */
static qkv_status limits_of_index(qkvi_json_limits *limits, qkv_error *error) {
    QKV_TRY(qkvi_header_limits(limits, error));
    limits->strict_ends = 0;
    limits->max_depth = MAX_INDEX_DEPTH;
    limits->max_array = 0;
    return QKV_OK;
}

static qkv_status parse_index(opening *job, const void *bytes, size_t n_bytes, json_t **root) {
    qkvi_json_limits limits;
    QKV_TRY(limits_of_index(&limits, job->error));
    job->max_tensors = limits.max_values;
    QKV_TRY(qkvi_json_load(job->set->source.name, bytes, n_bytes, &limits, root, job->error));
    job->map = json_object_get(*root, "weight_map");
    if (json_is_object(job->map)) return QKV_OK;
    return qkvi_error_set(job->error, QKV_ERR_FORMAT, "%s: weight_map is %s", job->set->source.name,
                          job->map ? "not an object" : "missing");
}

/* ---- The shards ------------------------------------------------------------------------------ */

static qkv_status open_shards(opening *job) {
    qkvi_safetensors *const set = job->set;
    const size_t n_folder = (size_t)(qkvi_path_name(job->path) - job->path);
    set->shards = calloc((size_t)job->n_names, sizeof *set->shards);
    if (!set->shards) return no_memory(job);
    for (int64_t s = 0; s < job->n_names; s++) {
        char *const path = malloc(n_folder + strlen(job->names[s]) + 1);
        if (!path) return no_memory(job);
        memcpy(path, job->path, n_folder);
        strcpy(path + n_folder, job->names[s]);
        const qkv_status status = qkvi_safetensors_open(path, &set->shards[s], job->error);
        free(path);
        if (status != QKV_OK) return status;
        set->n_shards++;
        set->n_tensors += set->shards[s]->n_tensors;
        if (set->n_tensors > job->max_tensors)
            return qkvi_error_set(job->error, QKV_ERR_LIMIT,
                                  "%s: more than %lld tensors in its shards; QKV_MAX_TENSORS=N "
                                  "raises the limit",
                                  set->source.name, (long long)job->max_tensors);
    }
    return QKV_OK;
}

/* Aliases of all shards. What shards say different things about is an alias of nothing. */
static qkv_status merge_metadata(opening *job) {
    qkvi_safetensors *const set = job->set;
    json_t *const refused = json_object();
    set->metadata = json_object();
    int ok = refused && set->metadata;
    for (int64_t s = 0; ok && s < set->n_shards; s++) {
        const char *key;
        json_t *value;
        json_object_foreach(set->shards[s]->metadata, key, value) {
            json_t *const other = json_object_get(set->metadata, key);
            json_t *const to = other && !json_equal(other, value) ? refused : set->metadata;
            ok &= json_object_set(to, key, value) == 0;
        }
    }
    const char *key;
    json_t *value;
    json_object_foreach(refused, key, value) json_object_del(set->metadata, key);
    json_decref(refused);
    return ok ? QKV_OK : no_memory(job);
}

/* All tensors in one order; one of a name. */
static qkv_status merge_tensors(opening *job) {
    qkvi_safetensors *const set = job->set;
    qkvi_stored *to = set->tensors = calloc((size_t)set->n_tensors + 1, sizeof *to);
    char printable[200];
    if (!to) return no_memory(job);
    for (int64_t s = 0; s < set->n_shards; s++)
        for (int64_t t = 0; t < set->shards[s]->n_tensors; t++, to++) {
            *to = set->shards[s]->tensors[t];
            to->shard = s;
        }
    qsort(set->tensors, (size_t)set->n_tensors, sizeof *set->tensors, qkvi_stored_by_name);
    for (int64_t t = 1; t < set->n_tensors; t++) {
        const qkvi_stored *const pair = &set->tensors[t - 1];
        if (strcmp(pair[0].name, pair[1].name) == 0)
            return qkvi_error_set(job->error, QKV_ERR_FORMAT,
                                  "%s: tensor '%s' is in two shards, %s and %s", set->source.name,
                                  escaped(pair[0].name, printable), job->names[pair[0].shard],
                                  job->names[pair[1].shard]);
    }
    return QKV_OK;
}

/* Each tensor of the map is where the map says. */
static qkv_status check_map(const opening *job) {
    const qkvi_safetensors *const set = job->set;
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)job->map, tensor, value) {
        const char *const name = json_string_value(value);
        const qkvi_stored *const stored = qkvi_safetensors_find(set, tensor);
        char printable[200], printable_name[200];
        if (stored && strcmp(job->names[stored->shard], name) == 0) continue;
        return qkvi_error_set(
            job->error, QKV_ERR_FORMAT, "%s: tensor '%s' is not in %s as weight_map says%s%s",
            set->source.name, escaped(tensor, printable), escaped(name, printable_name),
            stored ? ", but in " : "", stored ? job->names[stored->shard] : "");
    }
    return QKV_OK;
}

static qkv_status open_set(opening *job, const void *bytes, size_t n_bytes) {
    json_t *root = NULL;
    qkv_status status = parse_index(job, bytes, n_bytes, &root);
    if (status == QKV_OK) status = list_shards(job);
    if (status == QKV_OK) status = open_shards(job);
    if (status == QKV_OK) status = merge_metadata(job);
    if (status == QKV_OK) status = merge_tensors(job);
    if (status == QKV_OK) status = check_map(job);
    free((void *)job->names);
    json_decref(root);
    return status;
}

qkv_status qkvi_shards_open(const char *path, const void *bytes, size_t n_bytes,
                            qkvi_safetensors **file, qkv_error *error) {
    *file = calloc(1, sizeof **file);
    if (!*file) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to open a file");
    opening job = { .set = *file, .path = path, .error = error };
    qkv_status status = qkvi_source_memory(path, NULL, 0, &(*file)->source, error);
    if (status == QKV_OK) status = open_set(&job, bytes, n_bytes);
    if (status != QKV_OK) {
        qkvi_safetensors_close(*file);
        *file = NULL;
    }
    return status;
}

qkv_status qkvi_weights_open(const char *path, qkvi_safetensors **file, qkv_error *error) {
    qkvi_json_limits limits;
    char *bytes;
    size_t n_bytes;
    *file = NULL;
    if (!qkvi_is_index(path)) return qkvi_safetensors_open(path, file, error);
    QKV_TRY(limits_of_index(&limits, error));
    QKV_TRY(qkvi_file_load(path, limits.max_bytes, &bytes, &n_bytes, error));
    const qkv_status status = qkvi_shards_open(path, bytes, n_bytes, file, error);
    free(bytes);
    return status;
}
