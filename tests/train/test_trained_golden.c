/*
 * Folders that are trained here against transformers (tools/trained_cases.py): a few steps of each
 * architecture, and a few more from the result. The bits of a run are the same everywhere, so
 * expected.safetensors, logits of transformers in float64, has a hash of the model.safetensors that
 * it belongs to; the folder's tokenizer and this library then give the same ids, and logits within
 *
 *     max|x - y| <= 1e-5 max|y|
 *
 * golden_trained --write FOLDER trains for the script.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/safetensors.h"
#include "limits/temporary.h"
#include "qkv/model.h"
#include "qkv/train.h"
#include "train/run_fields.h"

#define SOURCE "the red door"
#define TARGET "door red the"
#define TEXT                                                                                       \
    SOURCE "\t" TARGET "\n"                                                                        \
           "two dogs barked\tbarked dogs two\n"                                                    \
           "she saw some cat\tcat some saw she\n"

static const struct trained {
    const char *name;
    qkv_model_kind kind;
    const char *from; /* an earlier one */
} all[] = {
    { "bert", QKV_MODEL_ENCODER, NULL },      { "gpt2", QKV_MODEL_DECODER, NULL },
    { "bart", QKV_MODEL_PAIR, NULL },         { "bert_on", QKV_MODEL_ENCODER, "bert" },
    { "gpt2_on", QKV_MODEL_DECODER, "gpt2" }, { "bart_on", QKV_MODEL_PAIR, "bart" },
};
enum { N_TRAINED = sizeof all / sizeof *all };

static char folder[TEMPORARY_PATH];

static char *in(const char *parent, const char *name, char path[512]) {
    assert_true(snprintf(path, 512, "%s/%s", parent, name) < 512);
    return path;
}

/* ---- Training -------------------------------------------------------------------------------- */

static void write_text(const char *parent) {
    char path[512];
    FILE *const out = fopen(in(parent, "text.txt", path), "wb");
    assert_non_null(out);
    fputs(TEXT, out);
    assert_int_equal(fclose(out), 0);
}

static void train(qkv_ctx *ctx, const char *parent, const struct trained *which) {
    char text[512], out[512], from[512];
    qkv_train_options options;
    qkv_error error;
    options = qkv_train_options_init();
    options.text = in(parent, "text.txt", text);
    options.out = in(parent, which->name, out);
    options.n_layers = 2;
    options.n_heads = 2;
    options.hidden = 20;
    options.intermediate = 36;
    options.vocab_size = 290;
    options.max_len = 16;
    options.n_steps = 12;
    options.batch = 6;
    options.warmup = 2;
    options.learning_rate = 0.01;
    options.kind = which->kind;
    options.accumulate = 2;
    options.dropout = which->from ? 0 : 0.1;
    if (which->kind != QKV_MODEL_ENCODER) options.label_smoothing = 0.1;
    if (which->kind == QKV_MODEL_PAIR && !which->from) options.n_decoder_layers = 1;
    if (which->from) options.from = in(parent, which->from, from);
    if (qkv_train(ctx, &options, &error)) fail_msg("%s: %s", which->name, error.message);
}

/* ---- Running --------------------------------------------------------------------------------- */

static qkv_encoding *encode(const qkv_tokenizer *tokenizer, const char *text) {
    qkv_encoding *encoding;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &encoding, &error))
        fail_msg("%s", error.message);
    return encoding;
}

/* What a decoder reads while it writes what encoding has. */
static void shift(qkv_encoding *encoding, int64_t start) {
    for (int64_t i = encoding->n - 1; i > 0; i--) encoding->ids[i] = encoding->ids[i - 1];
    encoding->ids[0] = (int32_t)start;
}

typedef struct outcome {
    qkv_encoding *source, *target; /* the second of pairs */
    float *logits;                 /* of every token, of the decoder's if there are two */
    int64_t n, n_words;
} outcome;

static outcome run(qkv_ctx *ctx, const qkv_model *model) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    outcome o = { .n_words = info->vocab_size };
    qkv_run *result;
    qkv_error error;
    qkv_status status;
    o.source = encode(qkv_model_tokenizer(model, QKV_SOURCE), SOURCE);
    if (info->kind == QKV_MODEL_PAIR) {
        o.target = encode(qkv_model_tokenizer(model, QKV_TARGET), TARGET);
        shift(o.target, info->start_id);
        status =
            qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&o.source, 0,
                          &(qkv_run_options){ .struct_size = sizeof(qkv_run_options),
                                              .targets = (const qkv_encoding *const *)&o.target },
                          &result, &error);
    } else {
        status = qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&o.source, 0, NULL,
                               &result, &error);
    }
    if (status) fail_msg("%s", error.message);
    o.n = o.target ? o.target->n : o.source->n;
    o.logits = malloc((size_t)(o.n * o.n_words) * sizeof *o.logits);
    assert_non_null(o.logits);
    for (int64_t i = 0; i < o.n; i++) {
        float *const row = o.logits + i * o.n_words;
        status = info->has_lm
                     ? qkv_model_logits(ctx, model, result, QKV_HEAD_NEXT, 0, i, row, &error)
                     : qkv_model_logits(ctx, model, result, QKV_HEAD_MASKED, 0, i, row, &error);
        if (status) fail_msg("%s", error.message);
    }
    qkv_run_free(result);
    return o;
}

static void free_outcome(outcome *o) {
    qkv_encoding_free(o->source);
    qkv_encoding_free(o->target);
    free(o->logits);
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static const qkvi_stored *find(const qkvi_safetensors *file, const char *name) {
    const qkvi_stored *const stored = qkvi_safetensors_find(file, name);
    if (!stored) fail_msg("expected.safetensors lacks %s", name);
    return stored;
}

static void compare_ids(const qkvi_safetensors *file, const char *name, const qkv_encoding *ours) {
    const qkvi_stored *const stored = find(file, name);
    int32_t ids[64];
    assert_true(stored->n_elems == (size_t)ours->n && ours->n <= 64);
    assert_int_equal(qkvi_safetensors_read_raw(file, stored, ids, NULL), QKV_OK);
    assert_memory_equal(ids, ours->ids, stored->n_elems * sizeof *ids);
}

/* The model is the one that the expected numbers are of. */
static void check_hash(const qkvi_safetensors *file, const char *name, const char *path) {
    char key[64], model[600], hash[17], *bytes;
    size_t n;
    qkv_error error;
    snprintf(model, sizeof model, "%s/model.safetensors", path);
    if (qkvi_file_load(model, 1 << 24, &bytes, &n, &error)) fail_msg("%s", error.message);
    snprintf(hash, sizeof hash, "%016llx",
             (unsigned long long)qkvi_hash(QKVI_HASH_START, bytes, n));
    free(bytes);
    snprintf(key, sizeof key, "%s.hash", name);
    const qkvi_stored *const stored = find(file, key);
    char expected[17] = "";
    assert_int_equal(stored->n_elems, 16);
    assert_int_equal(qkvi_safetensors_read_raw(file, stored, expected, NULL), QKV_OK);
    if (strcmp(hash, expected) != 0)
        fail_msg("%s was trained to other bits, %s, not %s: tools/trained_cases.py", name, hash,
                 expected);
}

static void compare(qkv_ctx *ctx, const qkvi_safetensors *file, const char *name,
                    const char *path) {
    char key[64];
    qkv_model *model;
    qkv_error error;
    check_hash(file, name, path);
    if (qkv_model_open(path, NULL, &model, &error)) fail_msg("%s", error.message);
    assert_null(qkv_model_unused(model, 0));
    outcome o = run(ctx, model);
    snprintf(key, sizeof key, "%s.ids", name);
    compare_ids(file, key, o.source);
    snprintf(key, sizeof key, "%s.decoder_ids", name);
    if (o.target) compare_ids(file, key, o.target);
    snprintf(key, sizeof key, "%s.logits", name);
    const qkvi_stored *const stored = find(file, key);
    const size_t n = (size_t)(o.n * o.n_words);
    float *const expected = malloc(n * sizeof *expected);
    float worst = 0, top = 0;
    assert_int_equal(stored->n_elems, n);
    assert_int_equal(qkvi_safetensors_read_f32(file, stored, expected, NULL), QKV_OK);
    for (size_t i = 0; i < n; i++) {
        worst = fmaxf(worst, fabsf(o.logits[i] - expected[i]));
        top = fmaxf(top, fabsf(expected[i]));
    }
    print_message("%s: logits are off by at most %.2g of the largest, %.3g\n", name,
                  (double)(worst / top), (double)top);
    assert_true(worst <= 1e-5f * top);
    free(expected);
    free_outcome(&o);
    qkv_model_free(model);
}

/* ---------------------------------------------------------------------------------------------- */

static void remove_folder(const char *path) {
    static const char *const names[] = { "config.json",
                                         "generation_config.json",
                                         "vocab.txt",
                                         "vocab.json",
                                         "merges.txt",
                                         "tokenizer.json",
                                         "train_log.tsv",
                                         "train_run.txt",
                                         "tokenizer_config.json",
                                         "model.safetensors" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char file[512];
        unlink(in(path, names[n], file));
    }
    assert_int_equal(rmdir(path), 0);
}

static void test_transformers_logits(void **state) {
    (void)state;
    char path[512];
    qkv_ctx *ctx;
    qkvi_safetensors *file;
    qkv_error error;
    assert_int_equal(qkv_ctx_create(NULL, &ctx, NULL), QKV_OK);
    if (qkvi_safetensors_open(QKV_TEST_DATA "/golden/trained.safetensors", &file, &error))
        fail_msg("%s", error.message);
    assert_non_null(mkdtemp(temporary("qkv-trained", folder)));
    write_text(folder);
    for (int t = 0; t < N_TRAINED; t++) {
        train(ctx, folder, &all[t]);
        compare(ctx, file, all[t].name, in(folder, all[t].name, path));
    }
    for (int t = 0; t < N_TRAINED; t++) remove_folder(in(folder, all[t].name, path));
    unlink(in(folder, "text.txt", path));
    assert_int_equal(rmdir(folder), 0);
    qkvi_safetensors_close(file);
    qkv_ctx_free(ctx);
}

static int write_folders(const char *parent) {
    qkv_ctx *ctx;
    if (qkv_ctx_create(NULL, &ctx, NULL)) return 1;
    write_text(parent);
    for (int t = 0; t < N_TRAINED; t++) train(ctx, parent, &all[t]);
    qkv_ctx_free(ctx);
    return 0;
}

int main(int n_words, char **words) {
    if (n_words > 2 && strcmp(words[1], "--write") == 0) return write_folders(words[2]);
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_transformers_logits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
