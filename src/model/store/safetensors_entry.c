/* One tensor's entry in a header: see safetensors_entry.h. */
#include "model/store/safetensors_entry.h"

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
        if (strcmp(qkvi_elem_name((qkvi_elem)type), name) == 0) {
            tensor->type = (qkvi_elem)type;
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
