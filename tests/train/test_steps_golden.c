/*
 * Steps of training against PyTorch's autograd and AdamW in float64 (tools/step_cases.py): tiny
 * models of every family, three steps with clipping, weight decay, betas and eps that are not the
 * usual ones. Texts hold padding tokens, whose rows learn nothing as embeddings, but do as rows of
 * a tied head. Every parameter after the last step is within the bound of golden_model.h.
 */
#include "golden/golden_model.h"
#include "model/arch/net.h"
#include "model/config/config.h"
#include "train/adamw.h"

static const double rates[] = { 0.02, 0.01, 0.005 };
static qkvi_safetensors *file;

/* ---- Weights by a formula -------------------------------------------------------------------- */

static int ends_with(const char *text, const char *ending) {
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

static void fill(const char *name, int rank, size_t n, float *values) {
    const double one = rank == 1 && ends_with(name, "weight") ? 1.0 : 0.0;
    uint32_t h = 0;
    for (const char *c = name; *c; c++) h = (h * 31 + (unsigned char)*c) % 1009;
    for (size_t i = 0; i < n; i++)
        values[i] = (float)(((double)((i * 379 + h) % 1009) / 1009 - 0.5) * 0.8 + one);
}

/* A row of the table, of the tensor that it is stored in. */
static void take_row(const qkvi_param *row, float *stored, float *values) {
    qkvi_stored_rows all = { .values = stored, .kernels = qkvi_kernels_best() };
    int64_t n_cols;
    qkvi_param own = *row;
    own.offset = 0;
    qkvi_param_stored_matrix(row, &all.n, &n_cols);
    qkvi_param_from_stored(&own, &all, values);
}

static float *make_params(const qkvi_param_table *table) {
    float *const params = qkvi_params_arena(table);
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        const size_t n = row->n_elems * (size_t)row->n_parts;
        float *const stored = malloc(n * sizeof *stored);
        fill(qkvi_param_stored_name(row), row->rank, n, stored);
        take_row(row, stored, params + row->offset);
        free(stored);
    }
    return params;
}

/* ---- A case ---------------------------------------------------------------------------------- */

static qkv_model_info read_info(const char *name) {
    const char *const text = json_string_value(json_object_get(file->metadata, "cases"));
    json_t *const cases = json_loads(text, 0, NULL);
    char *const config = json_dumps(json_object_get(cases, name), 0);
    qkv_model_info info;
    qkv_error error;
    assert_non_null(config);
    if (qkvi_config_read(name, config, strlen(config), &info, &error))
        fail_msg("%s", error.message);
    info.has_mlm = !info.has_lm;
    info.n_labels = 0; /* which the weights decide, as they do about other heads */
    free(config);
    json_decref(cases);
    return info;
}

static int32_t *ints(golden *g, const char *what, int64_t *n) {
    char name[64];
    snprintf(name, sizeof name, "%s/%s", g->name, what);
    return qkvi_safetensors_find(file, name) ? read_ints(g, name, n) : NULL;
}

/* Three steps on the same batch. */
static void train(const golden *g, const qkv_model_info *info, const qkvi_param_table *table,
                  float *params) {
    float *const arenas[] = { qkvi_params_arena(table), qkvi_params_arena(table),
                              qkvi_params_arena(table) };
    int64_t *const lengths = widened(g->lengths, g->n_sequences);
    int64_t *const targets = widened(g->target_tokens, g->n_targets);
    int64_t *const decoder_lengths =
        g->decoder_ids ? widened(g->decoder_lengths, g->n_sequences) : NULL;
    const qkvi_net_batch batch = { .n_sequences = g->n_sequences,
                                   .lengths = lengths,
                                   .ids = g->ids,
                                   .decoder_lengths = decoder_lengths,
                                   .decoder_ids = g->decoder_ids,
                                   .n_targets = g->n_targets,
                                   .target_tokens = targets,
                                   .target_ids = g->target_ids };
    qkvi_net *net, *grads;
    qkvi_net_pass *pass;
    qkvi_net_losses losses;
    qkvi_adamw adamw;
    qkv_error error;
    assert_int_equal(
        qkvi_net_bind(info, table, params, QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &net, NULL),
        QKV_OK);
    assert_int_equal(qkvi_net_bind(info, table, arenas[0], 0, &grads, NULL), QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    assert_int_equal(qkvi_adamw_make(table, &adamw, NULL), QKV_OK);
    adamw.beta1 = 0.8;
    adamw.beta2 = 0.95;
    adamw.eps = 1e-3;
    adamw.weight_decay = 0.1;
    adamw.clip = 0.5;
    for (int step = 0; step < 3; step++) {
        qkvi_net_pack(g->ctx, net);
        if (qkvi_net_loss(g->ctx, net, &batch, pass, grads, &losses, &error))
            fail_msg("%s", error.message);
        qkvi_adamw_run(g->ctx, &adamw, step + 1, rates[step], arenas[0], params, arenas[1],
                       arenas[2]);
    }
    qkvi_adamw_free(&adamw);
    qkvi_net_pass_free(pass);
    qkvi_net_free(grads);
    qkvi_net_free(net);
    for (int a = 0; a < 3; a++) free(arenas[a]);
    free(lengths);
    free(targets);
    free(decoder_lengths);
}

static void compare_params(golden *g, const qkvi_param_table *table, const float *params) {
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        char name[128];
        snprintf(name, sizeof name, "%s/after.%s", g->name, qkvi_param_stored_name(row));
        const size_t n = row->n_elems * (size_t)row->n_parts;
        float *const stored = read_floats(g, name, n);
        float *const expected = malloc(row->n_elems * sizeof *expected);
        take_row(row, stored, expected);
        compare_arrays(g, row->name, params + row->offset, expected, row->n_elems, 1);
        free(expected);
        free(stored);
    }
}

static void test_case(void **state) {
    golden g = { .name = *state, .expected = file };
    qkvi_param_table table = { 0 };
    int64_t n;
    const qkv_model_info info = read_info(g.name);
    assert_int_equal(qkv_ctx_create(NULL, &g.ctx, NULL), QKV_OK);
    g.lengths = ints(&g, "lengths", &g.n_sequences);
    g.ids = ints(&g, "ids", &g.n_tokens);
    g.target_tokens = ints(&g, "target_tokens", &g.n_targets);
    g.target_ids = ints(&g, "target_ids", &n);
    g.decoder_lengths = ints(&g, "decoder_lengths", &n);
    g.decoder_ids = ints(&g, "decoder_ids", &g.n_decoder_tokens);
    assert_int_equal(qkvi_net_table(&info, &table, NULL), QKV_OK);
    float *const params = make_params(&table);
    train(&g, &info, &table, params);
    compare_params(&g, &table, params);
    print_message("%s: at most %.3f of the bound\n", g.name, (double)g.worst);
    int32_t *const all[] = { g.lengths,    g.ids,         g.target_tokens,
                             g.target_ids, g.decoder_ids, g.decoder_lengths };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
    free(params);
    qkvi_params_free(&table);
    qkv_ctx_free(g.ctx);
}

static int open_file(void **state) {
    (void)state;
    return qkvi_safetensors_open(QKV_TEST_DATA "/golden/steps.safetensors", &file, NULL) != QKV_OK;
}

static int close_file(void **state) {
    (void)state;
    qkvi_safetensors_close(file);
    return 0;
}

int main(void) {
    char names[][20] = { "bert",    "bert_last", "bert_none", "distilbert", "roberta",
                         "electra", "gpt2",      "bart",      "marian",     "marian_separate" };
    enum { N = sizeof names / sizeof *names };
    struct CMUnitTest tests[N];
    for (int c = 0; c < N; c++) {
        tests[c] = (struct CMUnitTest)cmocka_unit_test_prestate(test_case, names[c]);
        tests[c].name = names[c];
    }
    return cmocka_run_group_tests_name("steps", tests, open_file, close_file);
}
