/* The audit of the members of a header: tensors one by one, and the metadata. See audit.h. */
#include "files/audit.h"
#include "files/safetensors_parts.h"

static const char metadata_key[] = "__metadata__";

/* The value of a span, or NULL having told why; *is_memory: because there was none. */
static json_t *parse(qkvi_audit *audit, qkvi_json_span span, const char *shown, int *is_memory) {
    json_error_t cause;
    char text[2 * sizeof cause.text];
    json_t *const value =
        json_loadb(audit->header + span.begin, span.end - span.begin, JSON_DECODE_ANY, &cause);
    *is_memory = !value && (json_error_code(&cause) == json_error_out_of_memory || !*cause.text);
    if (!value && !*is_memory)
        qkvi_audit_find(audit, "not-json", 8 + span.begin, shown, "%s",
                        qkvi_escape(text, sizeof text, cause.text, strlen(cause.text)));
    return value;
}

/* ---- A tensor -------------------------------------------------------------------------------- */

/* The keys of an object inside the root. */
typedef struct inner {
    qkvi_audit *audit;
    const char *shown;
    qkvi_keys keys;
} inner;

static qkv_status add_inner(void *user, qkvi_json_span key, qkvi_json_span value) {
    inner *const object = user;
    (void)value;
    return qkvi_audit_add_key(object->audit, &object->keys, key, object->shown);
}

/* Keys that come twice; what is no JSON is told when the value is parsed. */
static qkv_status walk_inner(inner *object, qkvi_json_span span) {
    qkvi_audit *const audit = object->audit;
    size_t at = span.begin;
    int is_broken;
    QKV_TRY(qkvi_json_walk(audit->header, span.end, &at, &is_broken, add_inner, object));
    return qkvi_audit_duplicates(audit, &object->keys, object->shown);
}

static void tell_unknown(const inner *object) {
    for (int64_t k = 0; k < object->keys.n; k++) {
        const qkvi_key *const key = &object->keys.at[k];
        int is_known = 0;
        for (int f = 0; f < QKVI_ENTRY_FIELDS; f++)
            is_known |= strcmp(key->bytes, qkvi_entry_fields[f]) == 0;
        if (!is_known)
            qkvi_audit_find(object->audit, "unknown-field", key->offset, object->shown,
                            "unknown field '%s'", key->shown);
    }
}

/* One field by the loader's check. 1 if it is good. */
static int check_field(const inner *object, const json_t *entry, int field, uint64_t offset,
                       qkvi_stored *tensor) {
    static qkv_status (*const readers[])(const qkvi_place *, const json_t *,
                                         qkvi_stored *) = { qkvi_read_dtype, qkvi_read_shape,
                                                            qkvi_read_offsets };
    static const char *const rules[] = { "dtype", "shape", "offsets" };
    const char *const name = qkvi_entry_fields[field];
    const json_t *const value = json_object_get(entry, name);
    qkv_error error;
    const qkvi_place at = { .error = &error };
    if (!value)
        qkvi_audit_find(object->audit, "missing-field", offset, object->shown, "%s is missing",
                        name);
    else if (readers[field](&at, value, tensor) != QKV_OK)
        qkvi_audit_find(object->audit, rules[field], offset, object->shown, "%s", error.message);
    else
        return 1;
    return 0;
}

static qkv_status append_tensor(qkvi_audit *audit, const qkvi_stored *tensor) {
    const size_t n = (size_t)audit->n_tensors;
    size_t room = audit->room; /* of both: what grew alone grows again */
    if (qkvi_reserve(&audit->tensors, &room, n + 1, sizeof *tensor) != QKV_OK ||
        qkvi_reserve(&audit->tensor_keys, &audit->room, n + 1, sizeof(int64_t)) != QKV_OK)
        return qkvi_audit_no_memory(audit);
    audit->tensors[n] = *tensor;
    audit->tensor_keys[n] = audit->keys.n - 1;
    audit->n_tensors++;
    return QKV_OK;
}

static qkv_status check_entry(inner *object, const json_t *entry, uint64_t offset) {
    qkvi_stored tensor = { .name = object->shown, .type = QKVI_U8 };
    if (!json_is_object(entry)) {
        object->audit->is_complete = 0;
        qkvi_audit_find(object->audit, "not-a-tensor", offset, object->shown, "is not an object");
        return QKV_OK;
    }
    tell_unknown(object);
    const int has_type = check_field(object, entry, 0, offset, &tensor);
    const int has_shape = check_field(object, entry, 1, offset, &tensor);
    if (!check_field(object, entry, 2, offset, &tensor)) {
        object->audit->is_complete = 0;
        return QKV_OK;
    }
    if (!has_type || !has_shape) {
        tensor.type = QKVI_U8;
        tensor.n_elems = (size_t)(tensor.end - tensor.begin);
    }
    return append_tensor(object->audit, &tensor);
}

/* ---- Members of the root --------------------------------------------------------------------- */

static void check_metadata(qkvi_audit *audit, const json_t *metadata, uint64_t offset) {
    const char *key;
    json_t *value;
    if (!json_is_object(metadata)) {
        qkvi_audit_find(audit, "metadata", offset, NULL, "__metadata__ is not an object");
        return;
    }
    json_object_foreach((json_t *)(uintptr_t)metadata, key, value) if (!json_is_string(value))
        qkvi_audit_find(audit, "metadata", offset, NULL,
                        "the value of '%s' in __metadata__ is not a string",
                        QKVI_PRINTABLE(128, key));
}

qkv_status qkvi_audit_member(void *user, qkvi_json_span key, qkvi_json_span span) {
    qkvi_audit *const audit = user;
    QKV_TRY(qkvi_audit_add_key(audit, &audit->keys, key, NULL));
    const qkvi_key *const name = &audit->keys.at[audit->keys.n - 1];
    const int is_metadata =
        strcmp(name->bytes, metadata_key) == 0 && name->n == strlen(name->bytes);
    inner object = { .audit = audit, .shown = is_metadata ? NULL : name->shown };
    int is_memory = 0;
    qkv_status status = walk_inner(&object, span);
    json_t *const value = status == QKV_OK ? parse(audit, span, object.shown, &is_memory) : NULL;
    if (is_memory) status = qkvi_audit_no_memory(audit);
    if (!value && !is_metadata) audit->is_complete = 0;
    if (value && is_metadata) check_metadata(audit, value, name->offset);
    if (value && !is_metadata) status = check_entry(&object, value, name->offset);
    json_decref(value);
    qkvi_keys_free(&object.keys);
    return status;
}

/* ---- The data -------------------------------------------------------------------------------- */

/*
 * The audit of the data: where the tensors lie, and whether their values are numbers. See audit.h.
 */

enum { CHUNK_BYTES = 1 << 18 };

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Of a name that is there twice readers take the last: the others lie nowhere. */
static void drop_hidden(qkvi_audit *audit) {
    int64_t kept = 0;
    for (int64_t t = 0; t < audit->n_tensors; t++)
        if (!audit->keys.at[audit->tensor_keys[t]].is_hidden)
            audit->tensors[kept++] = audit->tensors[t];
    audit->n_tensors = kept;
}

static qkv_status tell_fault(void *user, const qkvi_layout_fault *fault) {
    qkvi_audit *const audit = user;
    qkvi_audit_find(audit, fault->rule, audit->data_start + fault->offset,
                    fault->tensor ? fault->tensor->name : NULL, "%s", fault->text);
    return QKV_OK;
}

static void check_alignment(qkvi_audit *audit) {
    if (audit->data_start % 8 != 0)
        qkvi_audit_find(audit, "unaligned-data", audit->data_start, NULL,
                        "the data begins at byte %llu, which is not a multiple of 8",
                        (unsigned long long)audit->data_start);
    for (int64_t t = 0; t < audit->n_tensors; t++) {
        const qkvi_stored *const tensor = &audit->tensors[t];
        const size_t width = qkvi_elem_bytes(tensor->type);
        if (tensor->begin % width != 0)
            qkvi_audit_find(audit, "unaligned-tensor", audit->data_start + tensor->begin,
                            tensor->name,
                            "begins at %llu of the data, which is not a multiple of the %zu bytes "
                            "of its type",
                            (unsigned long long)tensor->begin, width);
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct counts {
    int64_t n_nan, n_inf;
    uint64_t first; /* the first of them */
} counts;

/* By their bits, in the stored type: f64 that only f32 cannot hold is a number. */
static void count_not_finite(qkvi_elem_type type, const unsigned char *bytes, size_t n,
                             uint64_t index, counts *found) {
    const uint64_t exponent = type == QKVI_F64    ? UINT64_C(0x7ff0000000000000)
                              : type == QKVI_F32  ? 0x7f800000
                              : type == QKVI_BF16 ? 0x7f80
                                                  : 0x7c00;
    const uint64_t mantissa = (exponent & -exponent) - 1; /* the bits below the exponent */
    const size_t width = qkvi_elem_bytes(type);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t b = 0; b < width; b++) bits |= (uint64_t)bytes[i * width + b] << 8 * b;
        if ((bits & exponent) != exponent) continue;
        const int is_inf = (bits & mantissa) == 0;
        if (found->n_nan + found->n_inf == 0) found->first = index + i;
        found->n_inf += is_inf;
        found->n_nan += !is_inf;
    }
}

static qkv_status check_values(qkvi_audit *audit, const qkvi_stored *tensor,
                               unsigned char *buffer) {
    const size_t width = qkvi_elem_bytes(tensor->type), chunk = CHUNK_BYTES / width;
    counts found = { 0 };
    for (size_t i = 0; i < tensor->n_elems; i += chunk) {
        const size_t n = tensor->n_elems - i < chunk ? tensor->n_elems - i : chunk;
        QKV_TRY(qkvi_source_read(&audit->source, audit->data_start + tensor->begin + i * width,
                                 buffer, n * width, audit->error));
        count_not_finite(tensor->type, buffer, n, i, &found);
    }
    if (found.n_nan + found.n_inf > 0)
        qkvi_audit_find(
            audit, "not-finite", audit->data_start + tensor->begin + found.first * width,
            tensor->name, "%lld NaN and %lld infinite values, the first at element %llu",
            (long long)found.n_nan, (long long)found.n_inf, (unsigned long long)found.first);
    return QKV_OK;
}

qkv_status qkvi_audit_data(qkvi_audit *audit) {
    const uint64_t data_bytes = audit->source.n_bytes - audit->data_start;
    drop_hidden(audit);
    if (audit->is_complete)
        QKV_TRY(qkvi_check_layout(audit->tensors, audit->n_tensors, data_bytes, tell_fault, audit));
    check_alignment(audit);
    unsigned char *const buffer = malloc(CHUNK_BYTES);
    qkv_status status = buffer ? QKV_OK : qkvi_audit_no_memory(audit);
    for (int64_t t = 0; status == QKV_OK && t < audit->n_tensors; t++) {
        const qkvi_stored *const tensor = &audit->tensors[t];
        const uint64_t there = tensor->end - tensor->begin;
        if (!qkvi_elem_is_float(tensor->type) || tensor->end > data_bytes ||
            there != tensor->n_elems * qkvi_elem_bytes(tensor->type))
            continue;
        status = check_values(audit, tensor, buffer);
    }
    free(buffer);
    return status;
}
