/** Keys and numbers of a table: see table.h. */
#include "files/table.h"

#include <math.h>

#include "files/number.h"

/* ---- Fields ---------------------------------------------------------------------------------- */

/* The first line outside of quotes decides. */
void qkvi_table_begin(qkvi_table_reader *r) {
    bool quoted = false, comma = false, semicolon = false, tab = false, seen = false;
    for (const char *c = r->at; c < r->end && !(seen && !quoted && *c == '\n'); c++) {
        seen = seen || (*c != '\n' && *c != '\r');
        if (*c == '"') quoted = !quoted;
        if (quoted) continue;
        tab = tab || *c == '\t';
        comma = comma || *c == ',';
        semicolon = semicolon || *c == ';';
    }
    r->separator = tab ? '\t' : comma || !semicolon ? ',' : ';';
    r->line_begin = r->at;
    r->line = 1;
}

qkv_status qkvi_table_error(const qkvi_table_reader *r, int64_t line, int64_t column,
                            qkv_status status, const char *what, qkv_error *error) {
    return qkvi_error_set(error, status, "%s: line %lld, column %lld: %s", r->name, (long long)line,
                          (long long)column, what);
}

static int64_t column_of(const qkvi_table_reader *r, const char *at) {
    return at - r->line_begin + 1;
}

static void next_line(qkvi_table_reader *r) {
    r->at++;
    r->line++;
    r->line_begin = r->at;
}

static bool at_break(const qkvi_table_reader *r) {
    return *r->at == '\n' || (*r->at == '\r' && (r->at + 1 == r->end || r->at[1] == '\n'));
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

/* Blanks that are no separators. */
static void skip_blanks(qkvi_table_reader *r) {
    while (r->at < r->end && is_blank(*r->at) && *r->at != r->separator) r->at++;
}

/* Behind the opening quote: up to the closing one, and to the separator or break after it. */
static qkv_status read_quoted(qkvi_table_reader *r, qkvi_field *field, qkv_error *error) {
    char *to = ++r->at;
    field->text = to;
    for (;; r->at++) {
        if (r->at == r->end)
            return qkvi_table_error(r, field->line, field->column, QKV_ERR_FORMAT,
                                    "a quote that is never closed", error);
        if (*r->at == '"') {
            if (r->at + 1 == r->end || r->at[1] != '"') break;
            r->at++;
        } else if (*r->at == '\n') {
            r->line++;
            r->line_begin = r->at + 1;
        }
        *to++ = *r->at;
    }
    field->n = (size_t)(to - field->text);
    r->at++;
    skip_blanks(r);
    if (r->at < r->end && *r->at != r->separator && !at_break(r))
        return qkvi_table_error(r, r->line, column_of(r, r->at), QKV_ERR_FORMAT,
                                "text after a closing quote", error);
    return QKV_OK;
}

static qkv_status read_plain(qkvi_table_reader *r, qkvi_field *field, qkv_error *error) {
    field->text = r->at;
    for (; r->at < r->end && *r->at != r->separator && !at_break(r); r->at++)
        if (*r->at == '"')
            return qkvi_table_error(r, r->line, column_of(r, r->at), QKV_ERR_FORMAT,
                                    "a quote inside a field that does not begin with one", error);
    field->n = (size_t)(r->at - field->text);
    return QKV_OK;
}

/* Without blanks around it. */
static void trim(qkvi_field *field) {
    while (field->n > 0 && is_blank(field->text[0])) field->text++, field->n--;
    while (field->n > 0 && is_blank(field->text[field->n - 1])) field->n--;
}

static qkv_status read_field(qkvi_table_reader *r, qkv_error *error) {
    if (r->n_fields == QKVI_TABLE_FIELDS)
        return qkvi_table_error(r, r->line, column_of(r, r->at), QKV_ERR_LIMIT,
                                "more than 4096 values, the limit", error);
    qkvi_field *field = &r->fields[r->n_fields++];
    char *const begin = r->at;
    skip_blanks(r);
    *field = (qkvi_field){ .line = r->line, .column = column_of(r, r->at) };
    if (r->at < r->end && *r->at == '"') {
        QKV_TRY(read_quoted(r, field, error));
    } else {
        r->at = begin;
        QKV_TRY(read_plain(r, field, error));
    }
    trim(field);
    if (field->n <= QKVI_TABLE_FIELD_BYTES) return QKV_OK;
    return qkvi_table_error(r, field->line, field->column, QKV_ERR_LIMIT,
                            "a field of more than 65536 bytes, the limit", error);
}

/* A line of nothing but blanks, whatever the separator is. */
static bool skip_empty_line(qkvi_table_reader *r) {
    char *c = r->at;
    while (c < r->end && (is_blank(*c) || *c == '\r')) c++;
    if (c < r->end && *c != '\n') return false;
    if (c == r->end) {
        r->at = c;
        return false;
    }
    r->at = c;
    next_line(r);
    return true;
}

qkv_status qkvi_table_next(qkvi_table_reader *r, qkv_error *error) {
    r->n_fields = 0;
    while (r->at < r->end && skip_empty_line(r)) {
    }
    if (r->at == r->end) return QKV_OK;
    for (;;) {
        QKV_TRY(read_field(r, error));
        if (r->at == r->end) return QKV_OK;
        if (*r->at != r->separator) break;
        r->at++;
    }
    if (*r->at == '\r') r->at++;
    if (r->at < r->end) next_line(r);
    return QKV_OK;
}

enum { MAX_ROWS = 1000000 };

qkv_status qkvi_table_no_memory(qkv_error *error) { return qkvi_no_memory(error, "a table"); }

static qkv_status wrong(const qkvi_table_builder *b, const qkvi_field *field, qkv_status status,
                        const char *what, qkv_error *error) {
    return qkvi_table_error(&b->reader, field->line, field->column, status, what, error);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* A whole decimal number that a float can hold; no hexadecimal, no "inf". */
static bool parse_number(const char *text, size_t n, float *value) {
    float number;
    if (!qkvi_number_f32(text, n, &number) || !isfinite(number)) return false;
    *value = number;
    return true;
}

static qkv_status not_a_number(const qkvi_table_builder *b, const qkvi_field *field,
                               const char *text, size_t n, qkv_error *error) {
    char what[128];
    if (n == 0) return wrong(b, field, QKV_ERR_FORMAT, "a number is missing", error);
    snprintf(what, sizeof what, "'%s' is not a finite number", QKVI_PRINTABLE_BYTES(64, text, n));
    return wrong(b, field, QKV_ERR_FORMAT, what, error);
}

static qkv_status add_number(qkvi_table_builder *b, const qkvi_field *field, const char *text,
                             size_t n, qkv_error *error) {
    if (b->n_row == QKVI_TABLE_FIELDS - 1)
        return wrong(b, field, QKV_ERR_LIMIT, "more than 4096 values, the limit", error);
    if (!parse_number(text, n, &b->row[b->n_row])) return not_a_number(b, field, text, n, error);
    b->n_row++;
    return QKV_OK;
}

/* "1, 2, 3", "[1 2 3]": numbers between spaces, commas or semicolons; at least one. */
static qkv_status add_list(qkvi_table_builder *b, const qkvi_field *field, qkv_error *error) {
    static const char between[] = " \t\r\n";
    const char *at = field->text, *end = at + field->n;
    if (field->n >= 2 && *at == '[' && end[-1] == ']') at++, end--;
    for (;;) {
        while (at < end && strchr(between, *at)) at++;
        const char *begin = at;
        while (at < end && !strchr(between, *at) && *at != ',' && *at != ';') at++;
        QKV_TRY(add_number(b, field, begin, (size_t)(at - begin), error));
        while (at < end && strchr(between, *at)) at++;
        if (at == end) return QKV_OK;
        if (*at == ',' || *at == ';') at++;
    }
}

/* ---- Rows ------------------------------------------------------------------------------------ */

qkv_status qkvi_table_copy(const qkvi_field *field, char **text, qkv_error *error) {
    *text = qkvi_malloc_array(field->n + 1, 1);
    if (!*text) return qkvi_table_no_memory(error);
    memcpy(*text, field->text, field->n);
    (*text)[field->n] = '\0';
    return QKV_OK;
}

static qkv_status make_room(qkvi_table_builder *b, qkv_error *error) {
    qkv_table *const t = b->table;
    const size_t n = (size_t)t->n_rows + 1;
    size_t width, room = b->room; /* of both: what grew alone grows again */
    if (!qkvi_mul_size((size_t)t->n_values, sizeof *t->values, &width) ||
        qkvi_reserve(&t->keys, &room, n, sizeof *t->keys) != QKV_OK ||
        qkvi_reserve(&t->values, &b->room, n, width) != QKV_OK)
        return qkvi_table_no_memory(error);
    return QKV_OK;
}

static qkv_status read_values(qkvi_table_builder *b, qkv_error *error) {
    const qkvi_table_reader *r = &b->reader;
    b->n_row = 0;
    if (r->n_fields == 2) {
        QKV_TRY(add_list(b, &r->fields[1], error));
        b->has_lists |= b->n_row > 1;
        return QKV_OK;
    }
    for (int i = 1; i < r->n_fields; i++)
        QKV_TRY(add_number(b, &r->fields[i], r->fields[i].text, r->fields[i].n, error));
    return QKV_OK;
}

qkv_status qkvi_table_add(qkvi_table_builder *b, qkv_error *error) {
    qkv_table *t = b->table;
    const qkvi_field *key = &b->reader.fields[0];
    if (b->reader.n_fields < 2)
        return wrong(b, key, QKV_ERR_FORMAT, "a key without a value", error);
    if (key->n == 0) return wrong(b, key, QKV_ERR_FORMAT, "the key is empty", error);
    QKV_TRY(read_values(b, error));
    if (t->n_rows == 0) t->n_values = b->n_row;
    if (b->n_row != t->n_values) {
        char what[96];
        snprintf(what, sizeof what, "%lld values, the lines before have %lld", (long long)b->n_row,
                 (long long)t->n_values);
        return wrong(b, key, QKV_ERR_FORMAT, what, error);
    }
    if (t->n_rows == MAX_ROWS)
        return wrong(b, key, QKV_ERR_LIMIT, "more than 1000000 lines, the limit", error);
    QKV_TRY(make_room(b, error));
    memcpy(t->values + t->n_rows * t->n_values, b->row, (size_t)b->n_row * sizeof *b->row);
    QKV_TRY(qkvi_table_copy(key, &t->keys[t->n_rows], error));
    t->n_rows++;
    return QKV_OK;
}
