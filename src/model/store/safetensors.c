/*
 * safetensors, read: see safetensors.h. The order of the checks is that of the reference: size,
 * header length, JSON, each tensor alone, then all tensors in order of their offsets. Nothing is
 * believed before it is checked, and nothing of the size of the data is allocated here.
 */
#include "model/store/safetensors.h"

#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/json.h"
#include "model/store/safetensors_entry.h"

enum { MAX_HEADER = 100000000, MAX_NAME = 1 << 16, CONVERT_BYTES = 1 << 18 };

static const qkvi_json_limits header_limits = { .max_bytes = (size_t)16 << 20,
                                                .max_values = 300000,
                                                .max_depth = 4,
                                                .max_array = QKVI_MAX_RANK,
                                                .strict_ends = 1 };

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
        if (n > MAX_NAME)
            return qkvi_error_set(error, QKV_ERR_LIMIT,
                                  "%s: a tensor name has %zu bytes, the limit is %d",
                                  file->source.name, n, MAX_NAME);
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

static int by_offset(const void *left, const void *right) {
    const qkvi_stored *const a = left, *const b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const qkvi_stored *)left)->name, ((const qkvi_stored *)right)->name);
}

/*
 * Tensors in order of their bytes: no hole, no overlap, each as long as its shape says, and nothing
 * after the last.
 */
static qkv_status check_layout(qkvi_safetensors *file, uint64_t data_start, qkv_error *error) {
    const char *const name = file->source.name;
    const uint64_t data_bytes = file->source.n_bytes - data_start;
    uint64_t end = 0;
    qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_offset);
    for (int64_t t = 0; t < file->n_tensors; t++) {
        qkvi_stored *const tensor = &file->tensors[t];
        const qkvi_place at = qkvi_place_of(name, tensor->name, error);
        if (tensor->begin != end)
            return qkvi_tensor_failed(&at, QKV_ERR_FORMAT,
                                      t == 0 ? "is the first but does not begin at 0"
                                      : tensor->begin < end
                                          ? "overlaps the tensor before it"
                                          : "leaves a hole after the tensor before it");
        if (tensor->end - tensor->begin != tensor->n_elems * qkvi_elem_bytes(tensor->type))
            return qkvi_tensor_failed(&at, QKV_ERR_FORMAT,
                                      "data_offsets do not fit its shape and dtype");
        end = tensor->end;
        tensor->begin += data_start;
        tensor->end += data_start;
    }
    if (end != data_bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: %llu bytes of data, but its tensors need %llu", name,
                              (unsigned long long)data_bytes, (unsigned long long)end);
    qsort(file->tensors, (size_t)file->n_tensors, sizeof *file->tensors, by_name);
    return qkvi_source_check(&file->source, error);
}

/* What else the file may be, by its first bytes: a zip or a bare pickle, the formats of PyTorch. */
static const char *hint_of(const uint8_t bytes[8]) {
    const int is_zip = memcmp(bytes, "PK\3\4", 4) == 0;
    const int is_pickle = bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
    return is_zip || is_pickle ? "; a pickle of PyTorch? tools/bin2safetensors.py converts it" : "";
}

static qkv_status read_header_length(const qkvi_source *source, uint64_t *length,
                                     qkv_error *error) {
    uint8_t bytes[8];
    *length = 0;
    if (source->n_bytes < sizeof bytes)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %llu bytes are too few for safetensors",
                              source->name, (unsigned long long)source->n_bytes);
    QKV_TRY(qkvi_source_read(source, 0, bytes, sizeof bytes, error));
    for (int b = 7; b >= 0; b--) *length = *length << 8 | bytes[b];
    const uint64_t there = source->n_bytes - sizeof bytes;
    const uint64_t most = there < MAX_HEADER ? there : MAX_HEADER;
    if (*length > most)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: header length %llu is more than %llu%s",
                              source->name, (unsigned long long)*length, (unsigned long long)most,
                              hint_of(bytes));
    if (*length > header_limits.max_bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: header length %llu, the limit is %zu%s",
                              source->name, (unsigned long long)*length, header_limits.max_bytes,
                              hint_of(bytes));
    return QKV_OK;
}

static qkv_status read_file(qkvi_safetensors *file, qkv_error *error) {
    const qkvi_source *const source = &file->source;
    uint64_t length;
    json_t *root = NULL;
    QKV_TRY(read_header_length(source, &length, error));
    char *const header = malloc((size_t)length + 1);
    if (!header)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for its header", source->name);
    qkv_status status = qkvi_source_read(source, 8, header, (size_t)length, error);
    if (status == QKV_OK)
        status = qkvi_json_load(source->name, header, (size_t)length, &header_limits, &root, error);
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
    qkvi_source_close(&file->source);
    json_decref(file->metadata);
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
    return bsearch(&key, file->tensors, (size_t)file->n_tensors, sizeof key, by_name);
}

qkv_status qkvi_safetensors_read_raw(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     void *destination, qkv_error *error) {
    return qkvi_source_read(&file->source, tensor->begin, destination,
                            (size_t)(tensor->end - tensor->begin), error);
}

qkv_status qkvi_safetensors_read_f32(const qkvi_safetensors *file, const qkvi_stored *tensor,
                                     float *destination, qkv_error *error) {
    const size_t width = qkvi_elem_bytes(tensor->type), chunk = CONVERT_BYTES / width;
    qkv_status status = QKV_OK;
    if (!qkvi_elem_is_float(tensor->type)) {
        const qkvi_place at = qkvi_place_of(file->source.name, tensor->name, error);
        return qkvi_tensor_failed(&at, QKV_ERR_UNSUPPORTED,
                                  "holds integers where floats are needed");
    }
    if (tensor->type == QKVI_F32)
        return qkvi_safetensors_read_raw(file, tensor, destination, error);
    char *const buffer = malloc(CONVERT_BYTES);
    if (!buffer)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to convert", file->source.name);
    for (size_t i = 0; i < tensor->n_elems && status == QKV_OK; i += chunk) {
        const size_t n = tensor->n_elems - i < chunk ? tensor->n_elems - i : chunk;
        status =
            qkvi_source_read(&file->source, tensor->begin + i * width, buffer, n * width, error);
        if (status == QKV_OK) qkvi_elems_to_f32(tensor->type, buffer, n, destination + i);
    }
    free(buffer);
    return status;
}
