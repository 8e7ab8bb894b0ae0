/* Tokens of the keys and queries of arrays: --tokens F and --q-tokens F, one a line. */
#ifndef QKV_CLI_ARRAY_NAMES_H
#define QKV_CLI_ARRAY_NAMES_H

#include "common/job.h"

struct array_names {
    char **tokens; /* as a file has them (a NUL escaped); NULL: there is none */
    char **labels; /* escaped, or the numbers of the rows */
};

/* The files, NULL where tokens are numbers, and how many there must be. */
struct array_tokens {
    const char *keys, *queries;
    int64_t n_keys, n_queries;
    const char *before; /* the number of a key without a token: "k" makes k0, k1 … */
    bool quiet;         /* no remarks */
};

/*
 * Reads both. self: queries are the keys, and get no names of their own. Names are
 * to be freed in any case.
 */
qkv_status array_names_read(const struct array_tokens *tokens, bool self, struct array_names *keys,
                            struct array_names *queries, qkv_error *error);
void array_names_free(struct array_names *names, int64_t n);

#endif
