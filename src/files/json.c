/*
 * JSON of untrusted files: the scan, jansson, and checked fields. See json.h.
 *
 * The scan reads each byte once, with one bit of state (inside a string or not). It counts 1 +
 * commas + opening brackets outside strings, which is at least the number of values: a container
 * with n > 0 entries has n - 1 commas and one bracket. It accepts much that is not JSON, which
 * jansson then refuses.
 */
#include "files/json.h"

#include <math.h>

enum { MAX_DEPTH = 64 };

const qkvi_json_limits qkvi_json_limits_config = {
    .max_bytes = (size_t)1 << 20, .max_values = 20000, .max_depth = 16, .wide_integers = 1
};

/* What the scan has seen so far. entries[d] counts the commas of the open container at depth d. */
typedef struct scan {
    const char *file;
    const qkvi_json_limits *limits;
    qkv_error *error;
    int64_t n_values, n_containers;
    int depth;
    int is_array[MAX_DEPTH + 1];
    int64_t commas[MAX_DEPTH + 1];
} scan;

static qkv_status scan_open(scan *s, int is_array) {
    const int64_t max_containers = s->limits->max_containers;
    s->n_values++;
    if (++s->n_containers > max_containers && max_containers)
        return qkvi_error_set(s->error, QKV_ERR_LIMIT,
                              "%s: JSON has more than %lld objects and arrays, the limit", s->file,
                              (long long)max_containers);
    if (++s->depth > s->limits->max_depth)
        return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: JSON is nested deeper than %d levels",
                              s->file, s->limits->max_depth);
    s->is_array[s->depth] = is_array;
    s->commas[s->depth] = 0;
    return QKV_OK;
}

static qkv_status scan_comma(scan *s) {
    const int max_array = s->limits->max_array;
    s->n_values++;
    if (max_array && s->is_array[s->depth] && ++s->commas[s->depth] >= max_array)
        return qkvi_error_set(s->error, QKV_ERR_LIMIT, "%s: a JSON array has more than %d entries",
                              s->file, max_array);
    return QKV_OK;
}

static qkv_status scan_bytes(scan *s, const unsigned char *bytes, size_t n) {
    for (size_t i = 0; i < n;) {
        const unsigned char c = bytes[i];
        if (c == '"') {
            i = qkvi_json_skip_string((const char *)bytes, n, i);
            continue;
        }
        if (c == '{' || c == '[') QKV_TRY(scan_open(s, c == '['));
        if (c == '}' || c == ']') s->depth -= s->depth > 0;
        if (c == ',') QKV_TRY(scan_comma(s));
        if (s->n_values > s->limits->max_values)
            return qkvi_error_set(
                s->error, QKV_ERR_LIMIT, "%s: JSON has more than %lld values, the limit%s%s%s",
                s->file, (long long)s->limits->max_values, s->limits->raised_by ? " (" : "",
                s->limits->raised_by ? s->limits->raised_by : "",
                s->limits->raised_by ? " raises it)" : "");
        i++;
    }
    return QKV_OK;
}

qkv_status qkvi_json_scan(const char *file, const void *bytes, size_t n_bytes,
                          const qkvi_json_limits *limits, qkv_error *error) {
    scan s = { .file = file, .limits = limits, .error = error, .n_values = 1 };
    if (limits->max_depth > MAX_DEPTH)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "max_depth = %d is more than %d",
                              limits->max_depth, MAX_DEPTH);
    return scan_bytes(&s, bytes, n_bytes);
}

/* safetensors allows only '{' … '}' and spaces after it. */
static qkv_status check_ends(const char *file, const unsigned char *bytes, size_t n,
                             qkv_error *error) {
    if (n == 0 || bytes[0] != '{')
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON header does not start with '{'",
                              file);
    while (n > 0 && bytes[n - 1] == ' ') n--;
    if (bytes[n - 1] != '}')
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: the JSON header does not end with '}' and spaces", file);
    return QKV_OK;
}

/* jansson's own words hold raw bytes of the input, so they are escaped. */
static qkv_status parse_failed(const char *file, const json_error_t *cause, qkv_error *error) {
    char text[2 * sizeof cause->text];
    /* Out of memory in its buffers jansson says nothing at all. */
    if (json_error_code(cause) == json_error_out_of_memory || cause->text[0] == '\0')
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to parse the JSON", file);
    qkvi_escape(text, sizeof text, cause->text, strlen(cause->text));
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: line %d, column %d: %s", file, cause->line,
                          cause->column, text);
}

/* Of a text that the scan has let pass. */
static qkv_status parse(const char *file, const char *text, size_t n,
                        const qkvi_json_limits *limits, json_t **root, qkv_error *error) {
    json_error_t cause;
    char *wide = NULL;
    if (limits->wide_integers) QKV_TRY(qkvi_json_widen(file, text, n, &wide, error));
    *root = json_loadb(wide ? wide : text, n, JSON_REJECT_DUPLICATES, &cause);
    free(wide);
    return *root ? QKV_OK : parse_failed(file, &cause, error);
}

qkv_status qkvi_json_load_any(const char *file, const void *bytes, size_t n_bytes,
                              const qkvi_json_limits *limits, json_t **root, qkv_error *error) {
    *root = NULL;
    if (n_bytes > limits->max_bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %zu bytes of JSON, the limit is %zu", file,
                              n_bytes, limits->max_bytes);
    if (limits->strict_ends) QKV_TRY(check_ends(file, bytes, n_bytes, error));
    QKV_TRY(qkvi_json_scan(file, bytes, n_bytes, limits, error));
    return parse(file, bytes, n_bytes, limits, root, error);
}

qkv_status qkvi_json_load(const char *file, const void *bytes, size_t n_bytes,
                          const qkvi_json_limits *limits, json_t **root, qkv_error *error) {
    QKV_TRY(qkvi_json_load_any(file, bytes, n_bytes, limits, root, error));
    if (json_is_object(*root)) return QKV_OK;
    json_decref(*root);
    *root = NULL;
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: the JSON is not an object", file);
}

/* ---- Fields ---------------------------------------------------------------------------------- */

static const char *type_name(const json_t *value) {
    static const char *const names[] = { "an object", "an array", "a string", "an integer",
                                         "a number",  "true",     "false",    "null" };
    return names[json_typeof(value)];
}

static qkv_status field_failed(const qkvi_json_reader *reader, const char *field, qkv_status status,
                               const char *rule) {
    return QKVI_JSON_FAIL(reader, status, "%s%s%s %s", reader->path, *reader->path ? "." : "",
                          field, rule);
}

static qkv_status wrong_type(const qkvi_json_reader *reader, const char *field, const json_t *value,
                             const char *wanted) {
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "%s%s%s is %s, must be %s", reader->path,
                          *reader->path ? "." : "", field, type_name(value), wanted);
}

/* The value of a field; NULL if absent or null. */
static const json_t *find(const qkvi_json_reader *reader, const char *field) {
    const json_t *value = json_object_get(reader->object, field);
    return json_is_null(value) ? NULL : value;
}

/*
 * An integer beyond 64 bits, which json_walk.c made a real: no other real is as large and whole by
 * chance.
 */
static int is_wide(const json_t *value) {
    return json_is_real(value) && fabs(json_real_value(value)) >= 0x1p63;
}

static qkv_status to_int(const qkvi_json_reader *reader, const char *field, const json_t *found,
                         int64_t limit, int64_t *value) {
    char rule[96];
    if (is_wide(found)) {
        snprintf(rule, sizeof rule, "= %g is not between 0 and 2147483647", json_real_value(found));
        return field_failed(reader, field, QKV_ERR_FORMAT, rule);
    }
    if (!json_is_integer(found)) return wrong_type(reader, field, found, "an integer");
    const long long number = json_integer_value(found);
    if (number < 0 || number > INT32_MAX) {
        snprintf(rule, sizeof rule, "= %lld is not between 0 and 2147483647", number);
        return field_failed(reader, field, QKV_ERR_FORMAT, rule);
    }
    if (number > limit) {
        snprintf(rule, sizeof rule, "= %lld is above the limit %lld", number, (long long)limit);
        return field_failed(reader, field, QKV_ERR_LIMIT, rule);
    }
    *value = number;
    return QKV_OK;
}

qkv_status qkvi_json_take_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value) {
    const json_t *found = find(reader, field);
    return found ? to_int(reader, field, found, limit, value) : QKV_OK;
}

qkv_status qkvi_json_take_limit(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                int64_t *value) {
    const json_t *found = find(reader, field);
    if (found && ((is_wide(found) && json_real_value(found) > 0) ||
                  (json_is_integer(found) && json_integer_value(found) > limit))) {
        *value = limit;
        return QKV_OK;
    }
    return found ? to_int(reader, field, found, limit, value) : QKV_OK;
}

/* Below 0 there is no token, which is what people write it for. */
static qkv_status to_id(const qkvi_json_reader *reader, const char *field, const json_t *found,
                        int64_t *id) {
    *id = -1;
    if (json_is_integer(found) && json_integer_value(found) < 0) return QKV_OK;
    return to_int(reader, field, found, INT32_MAX, id);
}

qkv_status qkvi_json_take_ids(const qkvi_json_reader *reader, const char *field, int64_t max_n,
                              int64_t *ids, int64_t *n) {
    const json_t *const found = json_object_get(reader->object, field);
    char rule[64];
    if (!found) return QKV_OK;
    *n = 0;
    if (json_is_null(found)) return QKV_OK;
    if (!json_is_array(found)) {
        *n = 1;
        return to_id(reader, field, found, ids);
    }
    if (json_array_size(found) > (size_t)max_n) {
        snprintf(rule, sizeof rule, "has %zu entries, the limit is %lld", json_array_size(found),
                 (long long)max_n);
        return field_failed(reader, field, QKV_ERR_LIMIT, rule);
    }
    for (; *n < (int64_t)json_array_size(found); ++*n)
        QKV_TRY(to_id(reader, field, json_array_get(found, (size_t)*n), &ids[*n]));
    return QKV_OK;
}

qkv_status qkvi_json_need_int(const qkvi_json_reader *reader, const char *field, int64_t limit,
                              int64_t *value) {
    if (!find(reader, field)) return field_failed(reader, field, QKV_ERR_FORMAT, "is missing");
    return qkvi_json_take_int(reader, field, limit, value);
}

qkv_status qkvi_json_take_bool(const qkvi_json_reader *reader, const char *field, int *value) {
    const json_t *found = find(reader, field);
    if (!found) return QKV_OK;
    if (!json_is_boolean(found)) return wrong_type(reader, field, found, "true or false");
    *value = json_is_true(found);
    return QKV_OK;
}

qkv_status qkvi_json_take_real(const qkvi_json_reader *reader, const char *field, double *value) {
    const json_t *found = find(reader, field);
    if (!found) return QKV_OK;
    if (!json_is_number(found)) return wrong_type(reader, field, found, "a number");
    *value = json_number_value(found);
    return QKV_OK;
}

qkv_status qkvi_json_take_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value) {
    const json_t *found = find(reader, field);
    if (!found) return QKV_OK;
    if (!json_is_string(found)) return wrong_type(reader, field, found, "a string");
    *value = json_string_value(found);
    return QKV_OK;
}

qkv_status qkvi_json_need_string(const qkvi_json_reader *reader, const char *field,
                                 const char **value) {
    if (!find(reader, field)) return field_failed(reader, field, QKV_ERR_FORMAT, "is missing");
    return qkvi_json_take_string(reader, field, value);
}

qkv_status qkvi_json_take_object(const qkvi_json_reader *reader, const char *field,
                                 const json_t **value) {
    *value = find(reader, field);
    if (!*value || json_is_object(*value)) return QKV_OK;
    return wrong_type(reader, field, *value, "an object");
}

qkv_status qkvi_json_take_array(const qkvi_json_reader *reader, const char *field,
                                const json_t **value) {
    *value = find(reader, field);
    if (!*value || json_is_array(*value)) return QKV_OK;
    return wrong_type(reader, field, *value, "an array");
}

qkv_status qkvi_files_add_json(qkvi_files *files, const char *name, json_t *root,
                               qkv_error *error) {
    char *text = root ? json_dumps(root, JSON_INDENT(1)) : NULL;
    json_decref(root);
    if (text == NULL) return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for JSON", name);
    const qkv_status status = qkvi_files_add(files, name, text, strlen(text), error);
    free(text);
    return status;
}
