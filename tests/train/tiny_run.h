/*
 * A training run of a few steps in a folder of its own, for tests that include it after cmocka.
 */
#ifndef TINY_RUN_H
#define TINY_RUN_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/file.h"
#include "limits/temporary.h"
#include "make_ctx.h"
#include "qkv/train.h"

#define FIRST_A  "the red door opened at noon"
#define FIRST_B  "it was a very old one"
#define SECOND_A "two dogs barked in my garden"
#define SECOND_B "they saw some cat run by"

#define TEXT FIRST_A "\t" FIRST_B "\n" SECOND_A "\t" SECOND_B "\n"

static char folder[TEMPORARY_PATH];
static char text_path[TEMPORARY_PATH + 8], out_path[TEMPORARY_PATH + 8];

static inline void write_text(const char *text) {
    FILE *const out = fopen(text_path, "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

/* A small run: 2 layers of 2 heads, six steps. */
static inline qkv_train_options small_run(void) {
    qkv_train_options options = qkv_train_options_init();
    options.text = text_path;
    options.out = out_path;
    options.n_layers = 2;
    options.n_heads = 2;
    options.hidden = 20;
    options.intermediate = 36;
    options.vocab_size = 200;
    options.max_len = 16;
    options.n_steps = 6;
    options.batch = 12;
    options.warmup = 2;
    options.report_every = 2;
    options.seed = 7;
    return options;
}

static inline char *slurp(const char *name, size_t *n) {
    char path[300], *bytes;
    qkv_error error;
    snprintf(path, sizeof path, "%s/%s", out_path, name);
    if (qkvi_file_load(path, 1 << 24, &bytes, n, &error) != QKV_OK) fail_msg("%s", error.message);
    return bytes;
}

static inline int exists(const char *name) {
    char path[300];
    snprintf(path, sizeof path, "%s/%s", out_path, name);
    return qkvi_file_exists(path);
}

static inline void clear_out(void) {
    static const char *const names[] = { "config.json",
                                         "vocab.txt",
                                         "tokenizer.json",
                                         "tokenizer_config.json",
                                         "model.safetensors",
                                         "train_log.tsv",
                                         "generation_config.json",
                                         "vocab.json",
                                         "merges.txt",
                                         "preprocessor_config.json",
                                         "checkpoint.safetensors",
                                         "train_run.txt" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", out_path, names[n]);
        unlink(path);
    }
    rmdir(out_path); /* fails if anything else is left, and so does the folder's at the end */
}

static inline void train(qkv_ctx *ctx, const qkv_train_options *options) {
    qkv_error error;
    if (qkv_train(ctx, options, &error) != QKV_OK) fail_msg("%s", error.message);
}

typedef struct result {
    char *model, *log;
    size_t n_model, n_log;
} result;

static inline result take_result(void) {
    result r;
    r.model = slurp("model.safetensors", &r.n_model);
    r.log = slurp("train_log.tsv", &r.n_log);
    clear_out();
    return r;
}

static inline void free_result(const result *r) {
    free(r->model);
    free(r->log);
}

/* A run without a stop, with which stopped runs, and others, are compared. */
static inline result whole_run(const qkv_train_options *options) {
    qkv_ctx *const ctx = make_ctx("scalar", 1);
    train(ctx, options);
    qkv_ctx_free(ctx);
    return take_result();
}

static inline void expect_same(result got, const result *expected, const char *what) {
    if (got.n_model != expected->n_model || memcmp(got.model, expected->model, got.n_model) != 0)
        fail_msg("%s: another model", what);
    if (got.n_log != expected->n_log || memcmp(got.log, expected->log, got.n_log) != 0)
        fail_msg("%s: another log:\n%s", what, got.log);
    free(got.model);
    free(got.log);
}

/* Four sentences, repeated often, in which each word follows from the others. */
static inline int make_folder(void **state) {
    *state = mkdtemp(temporary("qkv-train", folder));
    if (!*state) return -1;
    snprintf(text_path, sizeof text_path, "%s/text", folder);
    snprintf(out_path, sizeof out_path, "%s/out", folder);
    write_text(TEXT);
    return 0;
}

static inline int remove_folder(void **state) {
    (void)state;
    unlink(text_path);
    return rmdir(folder);
}

#endif
