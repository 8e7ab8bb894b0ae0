/*
 * --tokens F: one token a line, as many as there are keys; --q-tokens F: the same of queries. Any
 * bytes: what cannot be shown is escaped, a carriage return before the end of a line belongs to the
 * end. Without the file tokens are numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/lines.h"
#include "common/rows.h"
#include "look/look.h"

enum { LONGEST = 4096 }; /* bytes of a token */

/* A file of tokens, and whose they are. */
struct names {
    const char *option, *path, *array, *what; /* "--tokens", …, "--k", "keys" */
    int64_t n, n_others; /* there are; of the others, whom these may be meant for */
    struct array_names *made;
};

static int too_many(const struct names *names) {
    if (names->n == names->n_others)
        return cli_fail("%s %s: more than %" PRId64 " lines, %s has %" PRId64 " %s", names->option,
                        names->path, names->n, names->array, names->n, names->what);
    return cli_fail("%s %s: more than %" PRId64 " lines: it names the %s of %s, not the %" PRId64
                    " %s",
                    names->option, names->path, names->n, names->what, names->array,
                    names->n_others, strcmp(names->what, "keys") == 0 ? "queries" : "keys");
}

/* A token as it is, but for one that holds a NUL: that is escaped, since texts end with one. */
static int take(const struct names *names, int64_t j, const char *line, size_t n) {
    if (n > LONGEST)
        return cli_fail("%s %s: line %" PRId64 " has more than %d bytes", names->option,
                        names->path, j + 1, LONGEST);
    names->made->labels[j] = term_escape(line, n);
    names->made->tokens[j] = memchr(line, 0, n) ? term_escape(line, n) : strndup(line, n);
    return names->made->labels[j] && names->made->tokens[j] ? EXIT_OK : cli_fail("out of memory");
}

/* Whole lines only, of LONGEST bytes at most: a file without an end has no endless line. */
static int read_lines(const struct names *names, FILE *file) {
    char line[LONGEST + 2];
    size_t n = 0;
    int64_t j = 0;
    for (int c = 0, code; c != EOF;) {
        c = getc(file);
        if (c != EOF && c != '\n' && n < sizeof line) line[n++] = (char)c;
        if ((c == EOF || c != '\n') && n < sizeof line && !(c == EOF && n > 0)) continue;
        if (n > 0 && line[n - 1] == '\r') n--;
        if (j == names->n) return too_many(names);
        if ((code = take(names, j++, line, n))) return code;
        n = 0;
    }
    if (ferror(file)) return cli_fail("%s %s: %s", names->option, names->path, strerror(errno));
    return j == names->n
               ? EXIT_OK
               : cli_fail("%s %s: %" PRId64 " lines, %s has %" PRId64 " %s", names->option,
                          names->path, j, names->array, names->n, names->what);
}

static int read_names(const struct names *names) {
    struct array_names *made = names->made;
    made->tokens = calloc((size_t)names->n, sizeof(char *));
    made->labels = calloc((size_t)names->n, sizeof(char *));
    if (!made->tokens || !made->labels) return cli_fail("out of memory");
    qkv_error error;
    FILE *file = open_text(names->path, &error);
    if (!file) return cli_fail("%s %s", names->option, error.message);
    const int code = read_lines(names, file);
    fclose(file);
    return code;
}

static int make_names(const struct names *names, const char *before) {
    if (names->path) return read_names(names);
    names->made->labels = rows_labels(before, names->n, 1);
    return names->made->labels ? EXIT_OK : cli_fail("out of memory");
}

int arrays_tokens_read(struct arrays *arrays) {
    const struct look_options *o = arrays->options;
    const int64_t n_keys = arrays->given.n_keys, n_queries = arrays->given.n_queries;
    const struct names keys = { "--tokens", o->tokens, "--k",        "keys",
                                n_keys,     n_queries, &arrays->keys },
                       queries = { "--q-tokens", o->q_tokens, "--q",           "queries",
                                   n_queries,    n_keys,      &arrays->queries };
    const int code = make_names(&keys, "");
    return code || arrays->self ? code : make_names(&queries, "q");
}
