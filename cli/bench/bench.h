/* `qkv bench`: reports of what bench/suite measures (report.c, compare.c), and files (file.c). */
#ifndef QKV_CLI_BENCH_H
#define QKV_CLI_BENCH_H

#include <jansson.h>

#include "common/cli.h"
#include "suite/suite.h"

void bench_print_head(const qkv_ctx *ctx, int rounds);
void bench_print(const struct bench_result *result);
/* If some result is busy, prints what the mark means. */
void bench_print_busy(bool busy);
json_t *bench_json(const qkv_ctx *ctx, int rounds, int n, const struct bench_result *results);

/* A file of results. */
struct bench_file {
    json_t *json; /* owns the names */
    const char *isa;
    int64_t threads;
    int n;
    struct bench_result *results;
};

/*
 * Reads a file. Returns an exit code, having said what is wrong; after that nothing is to be freed.
 */
int bench_file_read(const char *path, struct bench_file *file);
void bench_file_free(struct bench_file *file);

/*
 * Prints old results beside new ones. *slowest receives the smallest ratio new / old of shares of
 * the peak, or of speeds if a peak is unknown.
 */
int bench_compare(const struct bench_file *before, const char *isa, int64_t threads, int n,
                  const struct bench_result *now, double *slowest);

#endif
