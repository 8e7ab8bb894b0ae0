/*
 * Reading safetensors: see safetensors.h. The order of the checks is that of the reference: size,
 * header length, JSON, each tensor alone, then all tensors in the order of their offsets. No
 * allocation here has the size of the data.
 */
#include "files/safetensors.h"

#include "files/json.h"
#include "files/safetensors_parts.h"

enum { CONVERT_BYTES = 1 << 18 };

/* ---- All entries ----------------------------------------------------------------------------- */

static qkv_status check_metadata(const char *file, const json_t *metadata, qkv_error *error) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: __metadata__ is not an object", file);
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) {
        if (json_is_string(value)) continue;
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: a value in __metadata__ is not a string",
                              file);
    }
    return QKV_OK;
}

/* Room for all entries and a copy of all their names. */
static qkv_status allocate_entries(qkvi_safetensors *file, json_t *root, qkv_error *error) {
    size_t name_bytes = 1;
    const char *key;
    json_t *value;
    json_object_foreach(root, key, value) {
        const size_t n = strlen(key);
        if (n > QKVI_MAX_NAME)
            return qkvi_error_set(error, QKV_ERR_LIMIT,
                                  "%s: a tensor name has %zu bytes, the limit is %d",
                                  file->source.name, n, QKVI_MAX_NAME);
        name_bytes += n + 1;
    }
    file->tensors = calloc(json_object_size(root) + 1, sizeof *file->tensors);
    file->names = malloc(name_bytes);
    if (file->tensors && file->names) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for its names", file->source.name);
}

static qkv_status read_entries(qkvi_safetensors *file, json_t *root, qkv_error *error) {
    const char *key;
    json_t *value;
    QKV_TRY(allocate_entries(file, root, error));
    char *name = file->names;
    json_object_foreach(root, key, value) {
        if (strcmp(key, "__metadata__") == 0) {
            QKV_TRY(check_metadata(file->source.name, value, error));
            file->metadata = json_incref(value);
            continue;
        }
        qkvi_stored *const tensor = &file->tensors[file->n_tensors++];
        const qkvi_place at = qkvi_place_of(file->source.name, key, error);
        QKV_TRY(qkvi_read_entry(&at, value, tensor));
        tensor->name = strcpy(name, key);
        name += strlen(key) + 1;
    }
    return QKV_OK;
}

int qkvi_stored_by_name(const void *left, const void *right) {
    return strcmp(((const qkvi_stored *)left)->name, ((const qkvi_stored *)right)->name);
}

typedef struct loading {
    qkvi_safetensors *file;
    qkv_error *error;
} loading;

/* The loader ends at the first fault. */
static qkv_status refuse(void *user, const qkvi_layout_fault *fault) {
    const loading *const job = user;
    if (!fault->tensor)
        return qkvi_error_set(job->error, QKV_ERR_FORMAT, "%s: %s", job->file->source.name,
                              fault->text);
    const qkvi_place at = qkvi_place_of(job->file->source.name, fault->tensor->name, job->error);
    return qkvi_tensor_failed(&at, QKV_ERR_FORMAT, fault->text);
}

/* All tensors together; then their offsets count from the start of the file. */
static qkv_status check_layout(qkvi_safetensors *file, uint64_t data_start, qkv_error *error) {
    loading job = { file, error };
    QKV_TRY(qkvi_check_layout(file->tensors, file->n_tensors, file->source.n_bytes - data_start,
                              refuse, &job));
    for (int64_t t = 0; t < file->n_tensors; t++) {
        file->tensors[t].begin += data_start;
        file->tensors[t].end += data_start;
    }
    qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, qkvi_stored_by_name);
    return qkvi_source_check(&file->source, error);
}

static qkv_status read_file(qkvi_safetensors *file, qkv_error *error) {
    const qkvi_source *const source = &file->source;
    qkvi_json_limits limits;
    uint64_t length;
    json_t *root = NULL;
    QKV_TRY(qkvi_header_limits(&limits, error));
    QKV_TRY(qkvi_header_length(source, &limits, &length, error));
    char *const header = malloc((size_t)length + 1);
    if (!header)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for its header", source->name);
    qkv_status status = qkvi_source_read(source, 8, header, (size_t)length, error);
    if (status == QKV_OK)
        status = qkvi_json_load(source->name, header, (size_t)length, &limits, &root, error);
    free(header);
    if (status == QKV_OK) status = read_entries(file, root, error);
    if (status == QKV_OK) status = check_layout(file, 8 + length, error);
    json_decref(root);
    return status;
}

static qkv_status open_source(qkvi_source *source, qkvi_safetensors **file, qkv_error *error) {
    *file = calloc(1, sizeof **file);
    if (!*file) {
        qkvi_source_close(source);
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to open a file");
    }
    (*file)->source = *source;
    const qkv_status status = read_file(*file, error);
    if (status != QKV_OK) {
        qkvi_safetensors_close(*file);
        *file = NULL;
    }
    return status;
}

qkv_status qkvi_safetensors_open(const char *path, qkvi_safetensors **file, qkv_error *error) {
    qkvi_source source;
    *file = NULL;
    QKV_TRY(qkvi_source_open(path, &source, error));
    return open_source(&source, file, error);
}

qkv_status qkvi_safetensors_open_memory(const char *name, const void *bytes, size_t n_bytes,
                                        qkvi_safetensors **file, qkv_error *error) {
    qkvi_source source;
    *file = NULL;
    QKV_TRY(qkvi_source_memory(name, bytes, n_bytes, &source, error));
    return open_source(&source, file, error);
}

void qkvi_safetensors_close(qkvi_safetensors *file) {
    if (!file) return;
    for (int64_t s = 0; s < file->n_shards; s++) qkvi_safetensors_close(file->shards[s]);
    free(file->shards);
    qkvi_source_close(&file->source);
    json_decref(file->metadata);
    free(file->reader.user);
    free(file->tensors);
    free(file->names);
    free(file);
}

const char *qkvi_shape_text(int rank, const int64_t *shape, char *text, size_t text_bytes) {
    size_t at = 0;
    for (int d = 0; d < rank && at < text_bytes; d++)
        at += (size_t)snprintf(text + at, text_bytes - at, "%s%lld", d ? "," : "[",
                               (long long)shape[d]);
    if (at < text_bytes) snprintf(text + at, text_bytes - at, rank ? "]" : "[]");
    return text;
}

/* ---- Data ------------------------------------------------------------------------------------ */

const qkvi_stored *qkvi_safetensors_find(const qkvi_safetensors *file, const char *name) {
    const qkvi_stored key = { .name = name };
    return bsearch(&key, file->tensors, (size_t)file->n_tensors, sizeof key, qkvi_stored_by_name);
}

const qkvi_safetensors *qkvi_safetensors_home(const qkvi_safetensors *file,
                                              const qkvi_stored *tensor) {
    return file->n_shards ? file->shards[tensor->shard] : file;
}

qkv_status qkvi_safetensors_read_rows(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                      int64_t first, int64_t n, uint8_t *destination,
                                      qkv_error *error) {
    return file->reader.read_rows(file->reader.user, tensor, tensor - file->tensors, first, n,
                                  destination, error);
}

qkv_status qkvi_safetensors_read_raw(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     void *destination, qkv_error *error) {
    return qkvi_source_read(&qkvi_safetensors_home(file, tensor)->source, tensor->begin,
                            destination, (size_t)(tensor->end - tensor->begin), error);
}

qkv_status qkvi_safetensors_read_part(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                      size_t first, size_t n, float *destination,
                                      qkv_error *error) {
    if (file->reader.read)
        return file->reader.read(file->reader.user, tensor, tensor - file->tensors, first, n,
                                 destination, error);
    const size_t width = qkvi_elem_bytes(tensor->type), chunk = CONVERT_BYTES / width;
    const qkvi_source *const source = &qkvi_safetensors_home(file, tensor)->source;
    const uint64_t begin = tensor->begin + first * width;
    qkv_status status = QKV_OK;
    if (!qkvi_elem_is_float(tensor->type)) {
        const qkvi_place at = qkvi_place_of(source->name, tensor->name, error);
        return qkvi_tensor_failed(&at, QKV_ERR_UNSUPPORTED,
                                  "holds integers where floats are needed");
    }
    if (tensor->type == QKVI_F32)
        return qkvi_source_read(source, begin, destination, n * width, error);
    char *const buffer = malloc(CONVERT_BYTES);
    if (!buffer)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to convert", source->name);
    for (size_t i = 0; i < n && status == QKV_OK; i += chunk) {
        const size_t some = n - i < chunk ? n - i : chunk;
        status = qkvi_source_read(source, begin + i * width, buffer, some * width, error);
        if (status == QKV_OK) qkvi_elems_to_f32(tensor->type, buffer, some, destination + i);
    }
    free(buffer);
    return status;
}

qkv_status qkvi_safetensors_read_f32(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     float *destination, qkv_error *error) {
    return qkvi_safetensors_read_part(file, tensor, 0, tensor->n_elems, destination, error);
}
