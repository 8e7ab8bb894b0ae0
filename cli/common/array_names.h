/* Tokens of the keys and queries of arrays, from the files of --tokens and --q-tokens. */
#ifndef QKV_CLI_ARRAY_NAMES_H
#define QKV_CLI_ARRAY_NAMES_H

#include "common/job.h"

struct array_names {
    char **tokens; /* as in the file, but a NUL is escaped; NULL: no file */
    char **labels; /* escaped for printing; without a file numbers such as "k0", "q0" */
};

/* What is to be read. A file must have n_keys or n_queries lines; NULL: there is no file. */
struct array_tokens {
    const char *keys, *queries;
    int64_t n_keys, n_queries;
    const char *before; /* prefix of the numbers of keys without tokens: "k" makes k0, k1, … */
    bool quiet;         /* no remarks */
};

/*
 * Reads both files. self: queries are the keys, and *queries stays as it is. The caller frees the
 * names with array_names_free, after a failure too.
 */
qkv_status array_names_read(const struct array_tokens *tokens, bool self, struct array_names *keys,
                            struct array_names *queries, qkv_error *error);
void array_names_free(struct array_names *names, int64_t n);

#endif
