/*
 * Folders whose heads and words are tied or not, against transformers 5 in float64
 * (tools/untied_cases.py): what is tied, what is unused, logits of every token, the loss, and of
 * every gradient its norm and a product with fixed numbers. Weights are a formula of their names,
 * so that a folder is made here. Bounds: 1e-5 of the largest logit and of the loss, 2e-5 of a
 * gradient's norm.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "files/safetensors.h"
#include "limits/temporary.h"
#include "model/arch/net.h"
#include "model/model_impl.h"
#include "qkv/train.h"

enum { MAX_TENSORS = 100, MAX_TOKENS = 16 };

typedef struct untied {
    const char *name;
    json_t *root;
    char folder[TEMPORARY_PATH];
    qkv_model *model, *trained;
    qkv_ctx *ctx;
    int64_t n, n_words;
    int64_t lengths[4], decoder_lengths[4], n_tokens; /* n_tokens: that have logits */
    int32_t ids[MAX_TOKENS], decoder_ids[MAX_TOKENS];
} untied;

/* ---- Weights by formula ---------------------------------------------------------------------- */

static uint64_t splitmix(uint64_t x) {
    x += 0x9E3779B97F4A7C15;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
    x = (x ^ x >> 27) * 0x94D049BB133111EB;
    return x ^ x >> 31;
}

static float number(const char *name, uint64_t i) {
    uint64_t h = 0xCBF29CE484222325;
    for (const char *at = name; *at; at++) h = (h ^ (unsigned char)*at) * 0x100000001B3;
    return (float)(splitmix(h + i) >> 40) / 8388608 - 1;
}

static qkvi_stored_out make_tensor(const json_t *entry) {
    const json_t *const shape = json_array_get(entry, 1);
    const float scale = (float)json_number_value(json_array_get(entry, 2)),
                offset = (float)json_number_value(json_array_get(entry, 3));
    const char *const formula = json_string_value(json_array_get(entry, 4));
    qkvi_stored_out out = { .name = json_string_value(json_array_get(entry, 0)),
                            .type = QKVI_F32,
                            .rank = (int)json_array_size(shape) };
    size_t n = 1;
    for (int d = 0; d < out.rank; d++) {
        out.shape[d] = json_integer_value(json_array_get(shape, (size_t)d));
        n *= (size_t)out.shape[d];
    }
    float *const data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) data[i] = offset + scale * number(formula, i);
    out.data = data;
    return out;
}

/* ---- A folder -------------------------------------------------------------------------------- */

static const char *path_of(const untied *u, const char *name) {
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", u->folder, name);
    return path;
}

static void write_weights(const untied *u) {
    const json_t *const list = json_object_get(u->root, "tensors");
    static qkvi_stored_out tensors[MAX_TENSORS];
    const size_t n = json_array_size(list);
    qkv_error error;
    assert_true(n <= MAX_TENSORS);
    for (size_t t = 0; t < n; t++) tensors[t] = make_tensor(json_array_get(list, t));
    if (qkvi_safetensors_write(path_of(u, "model.safetensors"), tensors, (int64_t)n, "format", "pt",
                               &error) != QKV_OK)
        fail_msg("%s", error.message);
    for (size_t t = 0; t < n; t++) free((void *)(uintptr_t)tensors[t].data);
}

static void write_folder(untied *u) {
    const int64_t n_words =
        json_integer_value(json_object_get(json_object_get(u->root, "config"), "vocab_size"));
    assert_non_null(mkdtemp(temporary("qkv-untied", u->folder)));
    assert_int_equal(
        json_dump_file(json_object_get(u->root, "config"), path_of(u, "config.json"), 0), 0);
    FILE *const vocab = fopen(path_of(u, "vocab.txt"), "wb");
    assert_non_null(vocab);
    fprintf(vocab, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n");
    for (int64_t w = 5; w < n_words; w++) fprintf(vocab, "w%d\n", (int)w);
    fclose(vocab);
    write_weights(u);
}

static void remove_folder(const untied *u) {
    static const char *const names[] = { "config.json", "vocab.txt", "model.safetensors" };
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) unlink(path_of(u, names[f]));
    assert_int_equal(rmdir(u->folder), 0); /* it is empty */
}

/* A list of lists of ids, one after another. */
static int64_t read_ids(const json_t *lists, int64_t lengths[4], int32_t *ids) {
    int64_t n = 0;
    for (size_t b = 0; b < json_array_size(lists); b++) {
        const json_t *const list = json_array_get(lists, b);
        lengths[b] = (int64_t)json_array_size(list);
        for (size_t i = 0; i < json_array_size(list); i++)
            ids[n++] = (int32_t)json_integer_value(json_array_get(list, i));
    }
    assert_true(n <= MAX_TOKENS);
    return n;
}

static void open_case(untied *u, const char *name) {
    char path[512];
    qkv_error error;
    *u = (untied){ .name = name };
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/untied/%s.json", name);
    u->root = json_load_file(path, 0, NULL);
    assert_non_null(u->root);
    write_folder(u);
    if (qkv_model_open(u->folder, NULL, &u->model, &error) != QKV_OK) fail_msg("%s", error.message);
    if (qkvi_model_open_to_train(u->folder, &u->trained, &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(NULL, &u->ctx, NULL), QKV_OK);
    u->n_words = u->model->info.target_vocab_size;
    u->n = (int64_t)json_array_size(json_object_get(u->root, "ids"));
    u->n_tokens = read_ids(json_object_get(u->root, "ids"), u->lengths, u->ids);
    if (u->model->net->n_stacks == 2)
        u->n_tokens =
            read_ids(json_object_get(u->root, "decoder_ids"), u->decoder_lengths, u->decoder_ids);
}

static void close_case(untied *u) {
    qkv_model_free(u->model);
    qkv_model_free(u->trained);
    qkv_ctx_free(u->ctx);
    remove_folder(u);
    json_decref(u->root);
}

/* ---- What is told ---------------------------------------------------------------------------- */

static void test_ties(void **state) {
    untied u;
    open_case(&u, *state);
    const json_t *const unused = json_object_get(u.root, "unused");
    const size_t n = json_array_size(unused);
    assert_int_equal(u.model->info.untied, json_integer_value(json_object_get(u.root, "untied")));
    for (size_t i = 0; i < n; i++)
        assert_string_equal(qkv_model_unused(u.model, (int64_t)i),
                            json_string_value(json_array_get(unused, i)));
    assert_null(qkv_model_unused(u.model, (int64_t)n));
    close_case(&u);
}

/* ---- Logits ---------------------------------------------------------------------------------- */

static qkv_run *run_all(const untied *u, const qkv_model *model) {
    qkv_encoding all[2][4];
    const qkv_encoding *lists[2][4];
    const bool is_pair = model->net->n_stacks == 2;
    int64_t at = 0, decoder_at = 0;
    qkv_run *run = NULL;
    qkv_error error;
    for (int64_t b = 0; b < u->n; b++) {
        all[0][b] = (qkv_encoding){ .n = u->lengths[b], .ids = (int32_t *)u->ids + at };
        all[1][b] = (qkv_encoding){ .n = u->decoder_lengths[b],
                                    .ids = (int32_t *)u->decoder_ids + decoder_at };
        at += u->lengths[b];
        decoder_at += u->decoder_lengths[b];
        for (int s = 0; s < 2; s++) lists[s][b] = &all[s][b];
    }
    const qkv_status status =
        is_pair ? qkv_model_run(u->ctx, model, u->n, lists[0], 0,
                                &(qkv_run_options){ .struct_size = sizeof(qkv_run_options),
                                                    .targets = lists[1] },
                                &run, &error)
                : qkv_model_run(u->ctx, model, u->n, lists[0], 0, NULL, &run, &error);
    if (status != QKV_OK) fail_msg("%s: %s", u->name, error.message);
    return run;
}

/* Of every token; one each of a judge. *n: how many. */
static float *logits_of(const untied *u, const qkv_model *model, size_t *n) {
    const qkv_model_info *const info = &model->info;
    const bool is_pair = model->net->n_stacks == 2;
    const int64_t width = info->has_discriminator ? 1 : u->n_words;
    float *const logits = malloc((size_t)(u->n_tokens * width) * sizeof *logits), *at = logits;
    qkv_run *const run = run_all(u, model);
    for (int64_t b = 0; b < u->n; b++) {
        const int64_t length = is_pair ? u->decoder_lengths[b] : u->lengths[b];
        if (info->has_discriminator)
            assert_int_equal(qkv_model_discriminate(u->ctx, model, run, b, at, NULL), QKV_OK);
        for (int64_t i = 0; i < length && !info->has_discriminator; i++)
            assert_int_equal(qkv_model_logits(u->ctx, model, run,
                                              info->has_lm ? QKV_HEAD_NEXT : QKV_HEAD_MASKED, b, i,
                                              at + i * width, NULL),
                             QKV_OK);
        at += length * width;
    }
    qkv_run_free(run);
    *n = (size_t)(u->n_tokens * width);
    return logits;
}

static float *expected_logits(const untied *u, size_t n) {
    const json_t *const list = json_object_get(u->root, "logits");
    float *const y = malloc(n * sizeof *y);
    assert_int_equal(json_array_size(list), n);
    for (size_t i = 0; i < n; i++) y[i] = (float)json_number_value(json_array_get(list, i));
    return y;
}

static float largest(const float *y, size_t n) {
    float top = 0;
    for (size_t i = 0; i < n; i++) top = fmaxf(top, fabsf(y[i]));
    return top;
}

static void expect_near(const untied *u, const char *what, const float *x, const float *y, size_t n,
                        float share) {
    const float bound = share * largest(y, n);
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(x[i] - y[i]) <= bound))
            fail_msg("%s: %s %zu is %g, expected %g within %g", u->name, what, i, (double)x[i],
                     (double)y[i], (double)bound);
}

static void test_logits(void **state) {
    untied u;
    size_t n;
    open_case(&u, *state);
    float *const x = logits_of(&u, u.model, &n), *const y = expected_logits(&u, n);
    expect_near(&u, "logit", x, y, n, 1e-5f);
    free(x);
    free(y);
    close_case(&u);
}

/* Rounded to bf16, weights are near; what is multiplied with is not taken for what is looked up. */
static void test_logits_in_bf16(void **state) {
    const qkv_model_open_options options = { .struct_size = sizeof options,
                                             .weights = QKV_WEIGHTS_BF16_DP };
    untied u;
    qkv_error error;
    qkv_model *half;
    size_t n;
    open_case(&u, *state);
    if (qkv_model_open(u.folder, &options, &half, &error)) fail_msg("%s", error.message);
    float *const x = logits_of(&u, half, &n), *const y = expected_logits(&u, n);
    expect_near(&u, "logit in bf16", x, y, n, 0.06f);
    free(x);
    free(y);
    qkv_model_free(half);
    close_case(&u);
}

/* ---- Training -------------------------------------------------------------------------------- */

static double compute_grads(const untied *u, float *arena) {
    const qkv_model *const trained = u->trained;
    int64_t targets[MAX_TOKENS];
    int32_t target_ids[MAX_TOKENS];
    qkvi_net *net, *grads;
    qkvi_net_pass *pass;
    qkvi_net_losses losses;
    qkv_error error;
    for (int64_t i = 0; i < u->n_tokens; i++) {
        targets[i] = i;
        target_ids[i] = (int32_t)((7 * i + 3) % u->n_words);
    }
    const bool is_pair = u->model->net->n_stacks == 2;
    const qkvi_net_batch batch = { .n_sequences = u->n,
                                   .lengths = u->lengths,
                                   .ids = u->ids,
                                   .decoder_lengths = is_pair ? u->decoder_lengths : NULL,
                                   .decoder_ids = u->decoder_ids,
                                   .n_targets = u->n_tokens,
                                   .target_tokens = targets,
                                   .target_ids = target_ids };
    assert_int_equal(qkvi_net_bind(&trained->info, &trained->params, trained->arena,
                                   QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &net, NULL),
                     QKV_OK);
    assert_int_equal(qkvi_net_bind(&trained->info, &trained->params, arena, 0, &grads, NULL),
                     QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    qkvi_net_take_buffers(net, trained->lm_bias, trained->positions);
    qkvi_net_pack(u->ctx, net);
    for (int round = 0; round < 2; round++) /* the second must not see what the first left */
        if (qkvi_net_loss(u->ctx, net, &batch, pass, grads, &losses, &error) != QKV_OK)
            fail_msg("%s", error.message);
    qkvi_net_pass_free(pass);
    qkvi_net_free(grads);
    qkvi_net_free(net);
    return u->model->info.has_lm ? losses.lm : losses.mlm;
}

/* The gradient of a stored tensor, whose first row this is, as the file would have it. */
static double *stored_gradient(const qkvi_param *row, const float *arena, size_t *n) {
    *n = row->n_elems * (size_t)row->n_parts;
    float *const stored = malloc(*n * sizeof *stored);
    double *const wide = malloc(*n * sizeof *wide);
    for (int p = 0; p < row->n_parts; p++)
        qkvi_param_to_stored(row + p, arena + row[p].offset, stored);
    for (size_t i = 0; i < *n; i++) wide[i] = (double)stored[i];
    free(stored);
    return wide;
}

/* Norm and product; "largest" is the largest norm of all. */
static void expect_gradient(const untied *u, const qkvi_param *row, const float *arena,
                            double top) {
    const char *const name = qkvi_param_stored_name(row);
    const json_t *const entry = json_object_get(json_object_get(u->root, "gradients"), name);
    char formula[140];
    size_t n;
    if (!entry) fail_msg("%s: %s has no gradient in transformers", u->name, name);
    double *const g = stored_gradient(row, arena, &n), norm = 0, product = 0;
    snprintf(formula, sizeof formula, "p:%s", name);
    for (size_t i = 0; i < n; i++) {
        norm += g[i] * g[i];
        product += g[i] * (double)number(formula, i);
    }
    free(g);
    const double y = json_number_value(json_array_get(entry, 0)),
                 z = json_number_value(json_array_get(entry, 1));
    const double bound = 2e-5 * fmax(y, 0.01 * top);
    if (!(fabs(sqrt(norm) - y) <= bound && fabs(product - z) <= bound))
        fail_msg("%s: gradient of %s: norm %.9g, product %.9g; expected %.9g, %.9g", u->name, name,
                 sqrt(norm), product, y, z);
}

static void test_gradients(void **state) {
    untied u;
    open_case(&u, *state);
    const json_t *const gradients = json_object_get(u.root, "gradients");
    const qkvi_param_table *const table = &u.trained->params;
    float *const arena = qkvi_params_arena(table);
    const char *key;
    json_t *value;
    double top = 0;
    size_t n_tensors = 0;
    memset(arena, 0x7f, table->n_elems * sizeof *arena); /* must be overwritten */
    const double loss = compute_grads(&u, arena),
                 expected = json_number_value(json_object_get(u.root, "loss"));
    if (!(fabs(loss - expected) <= 1e-5 * expected))
        fail_msg("%s: the loss is %.9g, expected %.9g", u.name, loss, expected);
    json_object_foreach((json_t *)(uintptr_t)gradients, key, value) top =
        fmax(top, json_number_value(json_array_get(value, 0)));
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        if (row->part > 0 || strstr(row->name, ".pooler.")) continue;
        expect_gradient(&u, row, arena, top);
        n_tensors++;
    }
    assert_int_equal(n_tensors, json_object_size(gradients));
    free(arena);
    close_case(&u);
}

/* ---- A trained folder ------------------------------------------------------------------------ */

/* Two steps on a few lines, written to out. */
static void train(const untied *u, const char *text, const char *out) {
    qkv_train_options options;
    qkv_error error;
    FILE *const lines = fopen(text, "wb");
    assert_non_null(lines);
    for (int i = 0; i < 12; i++)
        fprintf(lines, "w%d w%d w%d%sw%d w%d\n", 5 + i, 6 + 2 * i, 30 - i,
                u->trained->info.kind == QKV_MODEL_PAIR ? "\t" : " ", 7 + i, 8 + 2 * i);
    fclose(lines);
    options = qkv_train_options_init();
    options.text = text;
    options.from = u->folder;
    options.out = out;
    options.n_steps = 2;
    options.batch = 3;
    options.max_len = 8;
    options.report_every = options.checkpoint_every = 0;
    if (qkv_train(u->ctx, &options, &error) != QKV_OK) fail_msg("%s: %s", u->name, error.message);
}

/*
 * What the folder had stored the new one has, or its tie says the same; and what was untied stays
 * so.
 */
static void expect_same_parts(const untied *u, const char *out) {
    const json_t *const list = json_object_get(u->root, "tensors");
    const int ties =
        !json_is_false(json_object_get(json_object_get(u->root, "config"), "tie_word_embeddings"));
    char path[400];
    qkv_model *model;
    qkvi_safetensors *file;
    qkv_error error;
    if (qkv_model_open(out, NULL, &model, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(model->info.untied, u->model->info.untied);
    const char *const unused = qkv_model_unused(model, 0);
    assert_true(!unused ||
                strcmp(unused, "model.shared.weight") == 0); /* of which nothing is computed */
    assert_int_equal(model->positions[1] != NULL, u->model->positions[1] != NULL);
    snprintf(path, sizeof path, "%s/model.safetensors", out);
    assert_int_equal(qkvi_safetensors_open(path, &file, &error), QKV_OK);
    for (size_t t = 0; t < json_array_size(list); t++) {
        const char *const name = json_string_value(json_array_get(json_array_get(list, t), 0));
        const qkvi_param *const row = qkvi_params_find(&model->params, name);
        if (!qkvi_safetensors_find(file, name) && (!ties || row))
            fail_msg("%s: %s is not stored any more", u->name, name);
    }
    qkvi_safetensors_close(file);
    qkv_model_free(model);
}

static void test_trained_folder(void **state) {
    static const char *const names[] = { "config.json", "vocab.txt", "model.safetensors",
                                         "train_log.tsv", "train_run.txt" };
    untied u;
    char out[320], path[400];
    open_case(&u, *state);
    snprintf(out, sizeof out, "%s/new", u.folder);
    train(&u, path_of(&u, "text"), out);
    expect_same_parts(&u, out);
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        snprintf(path, sizeof path, "%s/%s", out, names[f]);
        unlink(path);
    }
    assert_int_equal(rmdir(out), 0);
    unlink(path_of(&u, "text"));
    close_case(&u);
}

int main(void) {
    static char names[][24] = { "bert_untied",         "bert_differs",    "bert_bias",
                                "bert_same",           "roberta_differs", "distilbert_untied",
                                "electra_differs",     "gpt2_untied",     "gpt2_differs",
                                "bart_untied",         "bart_differs",    "bart_decoder",
                                "bart_without_shared", "marian_differs",  "marian_separate",
                                "electra_judge" };
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[5 * N];
    int n = 0;
    for (int m = 0; m < N; m++) {
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_ties, names[m]);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_logits, names[m]);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_logits_in_bf16, names[m]);
        if (m == N - 1) continue; /* nothing here trains a judge */
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_gradients, names[m]);
        tests[n++] = (struct CMUnitTest)cmocka_unit_test_prestate(test_trained_folder, names[m]);
    }
    return _cmocka_run_group_tests("untied", tests, (size_t)n, NULL, NULL);
}
