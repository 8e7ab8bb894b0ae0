/*
 * --tokens F: one token a line, as many as there are keys. Any bytes: what cannot be shown is escaped,
 * a carriage return before the end of a line belongs to the end. Without the file tokens are numbers.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "term.h"

enum { LONGEST = 4096 }; /* bytes of a token */

static int too_many(const char *path, int64_t n_keys, int64_t n_queries) {
    if (n_keys == n_queries)
        return cli_fail("--tokens %s: more than %" PRId64 " lines, --k has %" PRId64 " keys", path,
                        n_keys, n_keys);
    return cli_fail("--tokens %s: more than %" PRId64 " lines: it names the keys of --k, not the "
                    "%" PRId64 " queries",
                    path, n_keys, n_queries);
}

/* A token as it is, but for one that holds a NUL: that is escaped, since texts end with one. */
static int take(struct dump *dump, const char *path, int64_t j, const char *line, size_t n) {
    if (n > LONGEST)
        return cli_fail("--tokens %s: line %" PRId64 " has more than %d bytes", path, j + 1,
                        LONGEST);
    dump->labels[j] = term_escape(line, n);
    dump->tokens[j] = memchr(line, 0, n) ? term_escape(line, n) : strndup(line, n);
    return dump->labels[j] && dump->tokens[j] ? EXIT_OK : cli_fail("out of memory");
}

/* Whole lines only, of LONGEST bytes at most: a file without an end has no endless line. */
static int read_lines(struct dump *dump, const char *path, FILE *file) {
    char line[LONGEST + 2];
    size_t n = 0;
    int64_t j = 0;
    for (int c = 0, code; c != EOF;) {
        c = getc(file);
        if (c != EOF && c != '\n' && n < sizeof line) line[n++] = (char)c;
        if ((c == EOF || c != '\n') && n < sizeof line && !(c == EOF && n > 0)) continue;
        if (n > 0 && line[n - 1] == '\r') n--;
        if (j == dump->n_keys) return too_many(path, j, dump->n_queries);
        if ((code = take(dump, path, j++, line, n))) return code;
        n = 0;
    }
    if (ferror(file)) return cli_fail("--tokens %s: %s", path, strerror(errno));
    return j == dump->n_keys ? EXIT_OK
                             : cli_fail("--tokens %s: %" PRId64 " lines, --k has %" PRId64 " keys",
                                        path, j, dump->n_keys);
}

static int number(struct dump *dump) {
    for (int64_t j = 0; j < dump->n_keys; j++) {
        char text[24];
        snprintf(text, sizeof text, "%" PRId64, j);
        if (!(dump->labels[j] = strdup(text))) return cli_fail("out of memory");
    }
    return EXIT_OK;
}

int dump_tokens_read(struct dump *dump) {
    const char *path = dump->options->tokens;
    dump->labels = calloc((size_t)dump->n_keys, sizeof(char *));
    if (!dump->labels) return cli_fail("out of memory");
    if (!path) return number(dump);
    dump->tokens = calloc((size_t)dump->n_keys, sizeof(char *));
    if (!dump->tokens) return cli_fail("out of memory");
    FILE *file = fopen(path, "r");
    if (!file) return cli_fail("--tokens %s: %s", path, strerror(errno));
    const int code = read_lines(dump, path, file);
    fclose(file);
    return code;
}
