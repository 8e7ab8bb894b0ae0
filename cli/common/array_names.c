/*
 * --tokens F has one token a line, as many as there are keys; --q-tokens F the same for queries. A
 * token may be any bytes; labels are escaped.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/array_names.h"
#include "common/lines.h"
#include "common/rows.h"
#include "common/term.h"

enum { LONGEST = 4096 }; /* bytes of a token */

/* A file of tokens, and the array that they name. */
struct names {
    const char *option, *path, *array, *what; /* "--tokens", …, "--k", "keys" */
    int64_t n, n_others; /* lines that it must have, and that the other file must have */
    bool quiet;
    struct array_names *made;
    qkv_error *error;
};

static qkv_status too_many(const struct names *names) {
    if (names->n == names->n_others)
        return text_error(names->error, QKV_ERR_FORMAT,
                          "%s %s: more than %" PRId64 " lines, %s has %" PRId64 " %s",
                          names->option, names->path, names->n, names->array, names->n,
                          names->what);
    return text_error(names->error, QKV_ERR_FORMAT,
                      "%s %s: more than %" PRId64 " lines: it names the %s of %s, not the %" PRId64
                      " %s",
                      names->option, names->path, names->n, names->what, names->array,
                      names->n_others, strcmp(names->what, "keys") == 0 ? "queries" : "keys");
}

/* A token as it is, but for one that holds a NUL: that is escaped, since texts end with one. */
static qkv_status take(const struct names *names, int64_t j, const struct text *line) {
    const char *const token = line->n > 0 ? line->bytes : "";
    names->made->labels[j] = term_escape(token, line->n);
    names->made->tokens[j] =
        memchr(token, 0, line->n) ? term_escape(token, line->n) : strndup(token, line->n);
    return names->made->labels[j] && names->made->tokens[j] ? QKV_OK : text_no_memory(names->error);
}

/*
 * Ends at the first line that is too long, or one too many: a file without an end is not read to
 * it.
 */
static qkv_status read_lines(const struct names *names, struct lines *lines) {
    qkv_error error;
    qkv_status status = QKV_OK;
    while (lines_next(lines, &status, &error)) {
        if (status == QKV_ERR_LIMIT)
            return text_error(names->error, QKV_ERR_FORMAT,
                              "%s %s: line %" PRId64 " has more than %d bytes", names->option,
                              names->path, lines->number, LONGEST);
        if (status != QKV_OK) return text_no_memory(names->error);
        if (lines->number > names->n) return too_many(names);
        status = take(names, lines->number - 1, &lines->line);
        if (status != QKV_OK) return status;
    }
    if (lines_end(lines, &error) != QKV_OK)
        return text_error(names->error, QKV_ERR_FORMAT, "%s %s", names->option, error.message);
    return lines->number == names->n
               ? QKV_OK
               : text_error(names->error, QKV_ERR_FORMAT,
                            "%s %s: %" PRId64 " lines, %s has %" PRId64 " %s", names->option,
                            names->path, lines->number, names->array, names->n, names->what);
}

static qkv_status read_names(const struct names *names) {
    struct array_names *made = names->made;
    made->tokens = calloc((size_t)names->n, sizeof(char *));
    made->labels = calloc((size_t)names->n, sizeof(char *));
    if (!made->tokens || !made->labels) return text_no_memory(names->error);
    struct lines lines = { .quiet = names->quiet, .most = LONGEST };
    qkv_error error;
    qkv_status status = lines_open(&lines, names->path, &error);
    status = status == QKV_OK
                 ? read_lines(names, &lines)
                 : text_error(names->error, status, "%s %s", names->option, error.message);
    lines_close(&lines);
    return status;
}

static qkv_status make_names(const struct names *names, const char *before) {
    if (names->path) return read_names(names);
    names->made->labels = rows_labels(before, names->n, 1);
    return names->made->labels ? QKV_OK : text_no_memory(names->error);
}

qkv_status array_names_read(const struct array_tokens *tokens, bool self, struct array_names *keys,
                            struct array_names *queries, qkv_error *error) {
    const int64_t n_keys = tokens->n_keys, n_queries = tokens->n_queries;
    const struct names of_keys = { "--tokens", tokens->keys,  "--k", "keys", n_keys,
                                   n_queries,  tokens->quiet, keys,  error },
                       of_queries = { "--q-tokens", tokens->queries, "--q",   "queries", n_queries,
                                      n_keys,       tokens->quiet,   queries, error };
    const qkv_status status = make_names(&of_keys, tokens->before);
    return status != QKV_OK || self ? status : make_names(&of_queries, "q");
}

void array_names_free(struct array_names *names, int64_t n) {
    session_labels_free(names->tokens, n);
    session_labels_free(names->labels, n);
}
