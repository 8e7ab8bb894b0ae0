/** The fields of a table: see table_fields.h. */
#include "model/store/table_fields.h"

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
