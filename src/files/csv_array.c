/**
 * Arrays as text: F.csv and F.tsv, a line for each row (qkv/files.h has the format). Records are
 * read as those of tables (table_rows.c). Numbers are kept as doubles until the type of the whole
 * array is known: booleans, integers or floats. Integers up to 2^53 are exact. What is no double is
 * rounded to odd, so that a float is rounded once.
 */
#include <math.h>
#include <strings.h>

#include "core/fpstate.h"
#include "files/csv_array.h"
#include "files/file.h"
#include "files/number.h"
#include "files/table.h"

enum { MAX_FILE = 1 << 26, MAX_ROWS = 1000000 };

typedef struct csv_builder {
    qkvi_table_reader reader;
    double *values;
    size_t n, room;
    int64_t n_rows, n_columns;
    int n_words, has_fractions; /* fields that are true or false; numbers that are not whole */
} csv_builder;

static int is_text(const qkvi_field *field, const char *text) {
    return field->n == strlen(text) && strncasecmp(field->text, text, field->n) == 0;
}

static int is_word(const qkvi_field *field) {
    return is_text(field, "true") || is_text(field, "false");
}

static qkv_status wrong(const csv_builder *b, const qkvi_field *field, qkv_status status,
                        const char *what, qkv_error *error) {
    return qkvi_table_error(&b->reader, field->line, field->column, status, what, error);
}

/* A decimal number, or an infinity or NaN as numpy spells them: a mask has those. */
static int parse_number(const qkvi_field *field, double *value) {
    const int has_sign = field->n > 0 && (*field->text == '+' || *field->text == '-');
    const char *const word = field->text + has_sign;
    if (field->n - (size_t)has_sign == 3) {
        const int is_inf = strncasecmp(word, "inf", 3) == 0;
        if (is_inf || strncasecmp(word, "nan", 3) == 0) {
            *value = copysign(is_inf ? INFINITY : NAN, has_sign && *field->text == '-' ? -1 : 1);
            return 1;
        }
    }
    return qkvi_number_f64(field->text, field->n, true, value) && isfinite(*value);
}

static qkv_status add_field(csv_builder *b, const qkvi_field *field, qkv_error *error) {
    double value = is_text(field, "true");
    char what[128];
    if (is_word(field)) {
        b->n_words++;
    } else if (!parse_number(field, &value)) {
        if (field->n == 0) return wrong(b, field, QKV_ERR_FORMAT, "a number is missing", error);
        snprintf(what, sizeof what, "'%s' is not a number",
                 QKVI_PRINTABLE_BYTES(64, field->text, field->n));
        return wrong(b, field, QKV_ERR_FORMAT, what, error);
    } else if (memchr(field->text, '.', field->n) || !(fabs(value) <= 0x1p53) ||
               value != floor(value)) {
        b->has_fractions = 1;
    }
    if (b->n_words > 0 && (size_t)b->n_words != b->n + 1)
        return wrong(b, field, QKV_ERR_FORMAT, "true and false beside numbers", error);
    b->values[b->n++] = value;
    return QKV_OK;
}

static qkv_status add_row(csv_builder *b, qkv_error *error) {
    const qkvi_table_reader *r = &b->reader;
    char what[96];
    if (b->n_rows == 0) b->n_columns = r->n_fields;
    if (r->n_fields != b->n_columns) {
        snprintf(what, sizeof what, "%d values, the lines before have %lld", r->n_fields,
                 (long long)b->n_columns);
        return wrong(b, &r->fields[0], QKV_ERR_FORMAT, what, error);
    }
    if (b->n_rows == MAX_ROWS)
        return wrong(b, &r->fields[0], QKV_ERR_LIMIT, "more than 1000000 lines, the limit", error);
    if (qkvi_reserve(&b->values, &b->room, b->n + (size_t)r->n_fields, sizeof *b->values) != QKV_OK)
        return qkvi_no_memory(error, "an array");
    for (int i = 0; i < r->n_fields; i++) QKV_TRY(add_field(b, &r->fields[i], error));
    b->n_rows++;
    return QKV_OK;
}

/* The first record has names if none of its fields could be a value. */
static int has_names(const qkvi_table_reader *r) {
    for (int i = 0; i < r->n_fields; i++)
        if (qkvi_table_like_number(&r->fields[i]) || is_word(&r->fields[i])) return 0;
    return r->n_fields > 0;
}

static qkv_status read_rows(csv_builder *b, qkv_error *error) {
    QKV_TRY(qkvi_table_next(&b->reader, error));
    if (has_names(&b->reader)) {
        b->n_columns = b->reader.n_fields;
        QKV_TRY(qkvi_table_next(&b->reader, error));
        if (b->reader.n_fields > 0 && b->reader.n_fields != b->n_columns)
            return qkvi_error_set(error, QKV_ERR_FORMAT,
                                  "%s: line 1 names %lld columns, the lines below have %d",
                                  b->reader.name, (long long)b->n_columns, b->reader.n_fields);
    }
    while (b->reader.n_fields > 0) {
        QKV_TRY(add_row(b, error));
        QKV_TRY(qkvi_table_next(&b->reader, error));
    }
    if (b->n_rows > 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: no line has a number", b->reader.name);
}

/* To an array of the type that all fields have. */
static qkv_status settle(csv_builder *b, qkv_array_type floats, qkv_array **array,
                         qkv_error *error) {
    const int64_t shape[2] = { b->n_rows, b->n_columns };
    const qkv_array_type type = b->n_words > 0      ? QKV_ARRAY_BOOL
                                : !b->has_fractions ? QKV_ARRAY_I64
                                                    : floats;
    QKV_TRY(qkvi_array_make(type, 2, shape, b->n, array, error));
    if (type == floats)
        return qkvi_array_convert(b->reader.name, QKVI_F64, b->values, b->n, *array, error);
    for (size_t i = 0; i < b->n; i++) {
        if (type == QKV_ARRAY_BOOL)
            ((uint8_t *)(*array)->data)[i] = b->values[i] > 0;
        else
            ((int64_t *)(*array)->data)[i] = (int64_t)b->values[i];
    }
    return QKV_OK;
}

qkv_status qkvi_csv_parse(const char *name, char *bytes, size_t n_bytes, qkv_array_type floats,
                          qkv_array **array, qkv_error *error) {
    char shown[QKVI_NAME_BYTES];
    csv_builder b = { .reader = { .name = qkvi_escape(shown, sizeof shown, name, strlen(name)),
                                  .at = bytes,
                                  .end = bytes + n_bytes } };
    if (n_bytes > MAX_FILE)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %zu bytes of text, the limit is %d",
                              b.reader.name, n_bytes, MAX_FILE);
    b.reader.fields = qkvi_malloc_array(QKVI_TABLE_FIELDS, sizeof *b.reader.fields);
    qkv_status status =
        b.reader.fields ? qkvi_table_check(&b.reader, error) : qkvi_no_memory(error, "an array");
    if (status == QKV_OK) {
        qkvi_table_begin(&b.reader);
        const qkvi_fpstate saved = qkvi_fpstate_enter();
        status = read_rows(&b, error);
        if (status == QKV_OK) status = settle(&b, floats, array, error);
        qkvi_fpstate_leave(saved);
    }
    free(b.reader.fields);
    free(b.values);
    return status;
}

qkv_status qkvi_csv_read_array(const char *path, qkv_array_type floats, qkv_array **array,
                               qkv_error *error) {
    char *bytes;
    size_t n_bytes;
    QKV_TRY(qkvi_file_load_text(path, MAX_FILE, &bytes, &n_bytes, error));
    const qkv_status status = qkvi_csv_parse(path, bytes, n_bytes, floats, array, error);
    free(bytes);
    return status;
}
