/* Checks of the header, the entries and the layout of a safetensors file: safetensors_parts.h. */
#include "files/safetensors_parts.h"

#include <errno.h>

#include "core/os.h"
#include "files/safetensors.h"

const char *const qkvi_entry_fields[QKVI_ENTRY_FIELDS] = { "dtype", "shape", "data_offsets" };

static const int64_t max_dimension = (int64_t)1 << 48;

/* Known to the format, but nothing here can hold them. */
static const char *const unsupported[] = { "C64",     "F4",          "F6_E2M3",
                                           "F6_E3M2", "F8_E5M2",     "F8_E4M3",
                                           "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ" };

qkvi_place qkvi_place_of(const char *file, const char *name, qkv_error *error) {
    qkvi_place at = { .file = file, .error = error };
    qkvi_escape(at.name, sizeof at.name, name, strlen(name));
    return at;
}

qkv_status qkvi_tensor_failed(const qkvi_place *at, qkv_status status, const char *rule) {
    if (!at->file) return qkvi_error_set(at->error, status, "%s", rule);
    return qkvi_error_set(at->error, status, "%s: tensor '%s': %s", at->file, at->name, rule);
}

qkv_status qkvi_read_dtype(const qkvi_place *at, const json_t *value, qkvi_stored *tensor) {
    char rule[160], printable[64];
    if (!json_is_string(value))
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, "dtype is not a string");
    const char *const name = json_string_value(value);
    for (int type = 0; type < QKVI_N_ELEMS; type++)
        if (strcmp(qkvi_elem_name((qkvi_elem_type)type), name) == 0) {
            tensor->type = (qkvi_elem_type)type;
            return QKV_OK;
        }
    for (size_t u = 0; u < sizeof unsupported / sizeof *unsupported; u++)
        if (strcmp(unsupported[u], name) == 0) {
            snprintf(rule, sizeof rule, "unsupported dtype %s", name);
            return qkvi_tensor_failed(at, QKV_ERR_UNSUPPORTED, rule);
        }
    qkvi_escape(printable, sizeof printable, name, strlen(name));
    snprintf(rule, sizeof rule, "unknown dtype '%s'", printable);
    return qkvi_tensor_failed(at, QKV_ERR_FORMAT, rule);
}

/* The elements of a JSON array of non-negative integers. */
static qkv_status read_integers(const qkvi_place *at, const json_t *value, const char *field,
                                int64_t *numbers, int *n_numbers) {
    char rule[96];
    if (!json_is_array(value)) {
        snprintf(rule, sizeof rule, "%s is not an array", field);
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, rule);
    }
    if (json_array_size(value) > QKVI_MAX_RANK) {
        snprintf(rule, sizeof rule, "%s has more than %d entries", field, QKVI_MAX_RANK);
        return qkvi_tensor_failed(at, QKV_ERR_LIMIT, rule);
    }
    *n_numbers = (int)json_array_size(value);
    for (int d = 0; d < *n_numbers; d++) {
        const json_t *const entry = json_array_get(value, (size_t)d);
        numbers[d] = json_integer_value(entry);
        if (json_is_integer(entry) && numbers[d] >= 0) continue;
        snprintf(rule, sizeof rule, "%s[%d] is not an integer of at least 0", field, d);
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, rule);
    }
    return QKV_OK;
}

qkv_status qkvi_read_shape(const qkvi_place *at, const json_t *value, qkvi_stored *tensor) {
    size_t elems = 1, bytes;
    int overflow = 0;
    QKV_TRY(read_integers(at, value, "shape", tensor->shape, &tensor->rank));
    for (int d = 0; d < tensor->rank; d++) {
        overflow |= __builtin_mul_overflow(elems, (size_t)tensor->shape[d], &elems);
    }
    overflow |= __builtin_mul_overflow(elems, qkvi_elem_bytes(tensor->type), &bytes);
    if (overflow)
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, "the product of its shape overflows");
    for (int d = 0; d < tensor->rank; d++)
        if (tensor->shape[d] > max_dimension)
            return qkvi_tensor_failed(at, QKV_ERR_LIMIT, "a dimension is above the limit 2^48");
    tensor->n_elems = elems;
    return QKV_OK;
}

qkv_status qkvi_read_offsets(const qkvi_place *at, const json_t *value, qkvi_stored *tensor) {
    int64_t offsets[QKVI_MAX_RANK] = { 0 };
    int n_offsets = 0;
    QKV_TRY(read_integers(at, value, "data_offsets", offsets, &n_offsets));
    if (n_offsets != 2)
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, "data_offsets does not have two entries");
    if (offsets[1] < offsets[0])
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, "data_offsets end before they begin");
    tensor->begin = (uint64_t)offsets[0];
    tensor->end = (uint64_t)offsets[1];
    return QKV_OK;
}

qkv_status qkvi_read_entry(const qkvi_place *at, const json_t *entry, qkvi_stored *tensor) {
    const char *const *const fields = qkvi_entry_fields;
    char rule[96], printable[64];
    const char *key;
    json_t *value;
    if (!json_is_object(entry)) return qkvi_tensor_failed(at, QKV_ERR_FORMAT, "is not an object");
    for (int f = 0; f < QKVI_ENTRY_FIELDS; f++)
        if (!json_object_get(entry, fields[f])) {
            snprintf(rule, sizeof rule, "%s is missing", fields[f]);
            return qkvi_tensor_failed(at, QKV_ERR_FORMAT, rule);
        }
    json_object_foreach((json_t *)(uintptr_t)entry, key, value) {
        if (!strcmp(key, fields[0]) || !strcmp(key, fields[1]) || !strcmp(key, fields[2])) continue;
        qkvi_escape(printable, sizeof printable, key, strlen(key));
        snprintf(rule, sizeof rule, "unknown field '%s'", printable);
        return qkvi_tensor_failed(at, QKV_ERR_FORMAT, rule);
    }
    QKV_TRY(qkvi_read_dtype(at, json_object_get(entry, "dtype"), tensor));
    QKV_TRY(qkvi_read_shape(at, json_object_get(entry, "shape"), tensor));
    return qkvi_read_offsets(at, json_object_get(entry, "data_offsets"), tensor);
}

/* ---- Before the JSON ------------------------------------------------------------------------- */

enum {
    MAX_HEADER = 100000000,
    MOST_TENSORS = 10000000,
    VALUES_A_TENSOR = 16,
    BYTES_A_TENSOR = 1024
};

static const char tensors_variable[] = "QKV_MAX_TENSORS";

/* Ours, or with the variable at least what so many tensors of any shape and short names need. */
qkv_status qkvi_header_limits(qkvi_json_limits *limits, qkv_error *error) {
    const char *const text = qkvi_os_trusted_variable(tensors_variable);
    char *end;
    *limits = (qkvi_json_limits){ .max_bytes = (size_t)16 << 20,
                                  .max_values = 300000,
                                  .max_depth = 4,
                                  .max_array = QKVI_MAX_RANK,
                                  .raised_by = tensors_variable,
                                  .strict_ends = 1 };
    if (!text || !*text) return QKV_OK;
    errno = 0;
    const long long n = strtoll(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || n < 1 || n > MOST_TENSORS)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "%s: '%s' is not a whole number from 1 to %d", tensors_variable,
                              QKVI_PRINTABLE(64, text), MOST_TENSORS);
    const size_t bytes = (size_t)n * BYTES_A_TENSOR;
    if (n * VALUES_A_TENSOR > limits->max_values) limits->max_values = n * VALUES_A_TENSOR;
    if (bytes > limits->max_bytes) limits->max_bytes = bytes < MAX_HEADER ? bytes : MAX_HEADER;
    return QKV_OK;
}

/* What else the file may be, by its first bytes: a zip or a bare pickle, the formats of PyTorch. */
static const char *hint_of(const uint8_t bytes[8]) {
    const int is_zip = memcmp(bytes, "PK\3\4", 4) == 0;
    const int is_pickle = bytes[0] == 0x80 && bytes[1] >= 2 && bytes[1] <= 5;
    return is_zip || is_pickle ? "; a pickle of PyTorch? tools/bin2safetensors.py converts it" : "";
}

qkv_status qkvi_header_length(const qkvi_source *source, const qkvi_json_limits *limits,
                              uint64_t *length, qkv_error *error) {
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
    if (*length > limits->max_bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "%s: header length %llu, the limit is %zu (%s raises it)%s",
                              source->name, (unsigned long long)*length, limits->max_bytes,
                              limits->raised_by, hint_of(bytes));
    return QKV_OK;
}

/* ---- All tensors together -------------------------------------------------------------------- */

typedef struct layout {
    qkv_status (*visit)(void *user, const qkvi_layout_fault *fault);
    void *user;
    uint64_t end; /* of all tensors so far */
} layout;

/* By name those that have the same bytes, so that every C library has the same fault first. */
static int by_offset(const void *left, const void *right) {
    const qkvi_stored *const a = left, *const b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static qkv_status check_place(const layout *all, const qkvi_stored *tensor, int is_first) {
    static const char *const rules[] = { "not-at-0", "overlap", "hole" };
    static const char *const forms[] = {
        "is the first but does not begin at 0: it begins at %llu",
        "overlaps the tensors before it: it begins at %llu, they end at %llu",
        "leaves a hole: it begins at %llu, the tensors before it end at %llu"
    };
    char text[128];
    if (tensor->begin == all->end) return QKV_OK;
    const int kind = is_first ? 0 : tensor->begin < all->end ? 1 : 2;
    snprintf(text, sizeof text, forms[kind], (unsigned long long)tensor->begin,
             (unsigned long long)all->end);
    const uint64_t offset = kind == 1 ? tensor->begin : all->end;
    return all->visit(all->user, &(qkvi_layout_fault){ rules[kind], tensor, offset, text });
}

static qkv_status check_size(const layout *all, const qkvi_stored *tensor) {
    char text[128];
    const uint64_t there = tensor->end - tensor->begin;
    const size_t needed = tensor->n_elems * qkvi_elem_bytes(tensor->type);
    if (there == needed) return QKV_OK;
    snprintf(text, sizeof text,
             "data_offsets do not fit its shape and dtype: %llu bytes, they need %zu",
             (unsigned long long)there, needed);
    return all->visit(all->user, &(qkvi_layout_fault){ "size", tensor, tensor->begin, text });
}

static qkv_status check_end(const layout *all, uint64_t data_bytes) {
    char text[128];
    if (all->end == data_bytes) return QKV_OK;
    const int is_more = data_bytes > all->end;
    snprintf(text, sizeof text, "%llu bytes of data, but its tensors need %llu",
             (unsigned long long)data_bytes, (unsigned long long)all->end);
    return all->visit(all->user,
                      &(qkvi_layout_fault){ is_more ? "trailing-bytes" : "missing-bytes", NULL,
                                            is_more ? all->end : data_bytes, text });
}

qkv_status qkvi_check_layout(qkvi_stored *tensors, int64_t n_tensors, uint64_t data_bytes,
                             qkv_status (*visit)(void *user, const qkvi_layout_fault *fault),
                             void *user) {
    layout all = { visit, user, 0 };
    if (n_tensors > 0) qsort(tensors, (size_t)n_tensors, sizeof *tensors, by_offset);
    for (int64_t t = 0; t < n_tensors; t++) {
        QKV_TRY(check_place(&all, &tensors[t], t == 0));
        QKV_TRY(check_size(&all, &tensors[t]));
        if (tensors[t].end > all.end) all.end = tensors[t].end;
    }
    return check_end(&all, data_bytes);
}
