/*
 * BERT, its family and ModernBERT against transformers in float64 (tools/fixtures.py,
 * tools/family_cases.py, tools/llama_cases.py): tiny random models, a batch of sequences of several
 * lengths. Hidden states of every layer, weights of every head, logits of every head on top that
 * the model has, its losses, every gradient (of bert_long, whose sums are long, losses and
 * gradients only), each within the bound of docs/numerics.md:
 *
 *     max|x - y| <= 1e-5 max(max|y|, 0.01 g)      g: the largest |y| of that kind in the model
 */
#include "golden/golden_model.h"
#include "model/arch/net.h"

/* ---- Running --------------------------------------------------------------------------------- */

static qkv_run *run_all(golden *g, uint32_t flags) {
    qkv_encoding *encodings = calloc((size_t)g->n_sequences, sizeof *encodings);
    const qkv_encoding **inputs = calloc((size_t)g->n_sequences, sizeof *inputs);
    uint8_t *types = malloc((size_t)g->n_tokens);
    qkv_error error;
    qkv_run *run;
    for (int64_t t = 0; t < g->n_tokens; t++) types[t] = (uint8_t)g->types[t];
    for (int64_t b = 0, at = 0; b < g->n_sequences; at += g->lengths[b++]) {
        encodings[b] =
            (qkv_encoding){ .n = g->lengths[b], .ids = g->ids + at, .types = types + at };
        inputs[b] = &encodings[b];
    }
    if (qkv_model_run(g->ctx, g->model, g->n_sequences, inputs, flags, NULL, &run, &error) !=
        QKV_OK)
        fail_msg("%s", error.message);
    free(types);
    free(inputs);
    free(encodings);
    return run;
}

static void check_hidden(golden *g, const qkv_run *run) {
    const qkv_model_info *info = qkv_model_get_info(g->model);
    const size_t n = (size_t)(g->n_tokens * info->hidden);
    float *x = malloc(n * sizeof *x);
    for (int64_t layer = 0; layer <= info->n_layers; layer++) {
        char name[64];
        snprintf(name, sizeof name, "hidden.%d", (int)layer);
        for (int64_t b = 0, at = 0; b < g->n_sequences; at += g->lengths[b++])
            memcpy(x + at * info->hidden, qkv_run_hidden(run, QKV_SELF, b, layer),
                   (size_t)(g->lengths[b] * info->hidden) * sizeof *x);
        compare(g, name, x, n, 0);
    }
    free(x);
}

static void check_weights(golden *g, const qkv_run *run) {
    const qkv_model_info *info = qkv_model_get_info(g->model);
    size_t n = 0;
    for (int64_t b = 0; b < g->n_sequences; b++)
        n += (size_t)(info->n_heads * g->lengths[b] * g->lengths[b]);
    float *x = malloc(n * sizeof *x);
    for (int64_t layer = 0; layer < info->n_layers; layer++) {
        char name[64];
        float *at = x;
        snprintf(name, sizeof name, "weights.%d", (int)layer);
        for (int64_t b = 0; b < g->n_sequences; b++)
            for (int64_t h = 0; h < info->n_heads; h++, at += g->lengths[b] * g->lengths[b])
                assert_int_equal(qkv_run_weights(run, QKV_SELF, b, layer, h, at, NULL), QKV_OK);
        compare(g, name, x, n, 0);
    }
    free(x);
}

static void check_mlm(golden *g, const qkv_run *run) {
    const size_t n_words = (size_t)qkv_model_get_info(g->model)->vocab_size;
    const size_t n = (size_t)g->n_targets * n_words;
    float *mlm = malloc(n * sizeof *mlm);
    int64_t b = 0, first = 0;
    for (int64_t i = 0; i < g->n_targets; i++) {
        while (g->target_tokens[i] >= first + g->lengths[b]) first += g->lengths[b++];
        assert_int_equal(qkv_model_logits(g->ctx, g->model, run, QKV_HEAD_MASKED, b,
                                          g->target_tokens[i] - first, mlm + (size_t)i * n_words,
                                          NULL),
                         QKV_OK);
    }
    compare(g, "mlm", mlm, n, 0);
    free(mlm);
}

static void check_nsp(golden *g, const qkv_run *run) {
    const size_t n = (size_t)g->n_sequences * 2;
    float *nsp = malloc(n * sizeof *nsp);
    for (int64_t b = 0; b < g->n_sequences; b++)
        assert_int_equal(qkv_model_nsp(g->ctx, g->model, run, b, nsp + 2 * b, NULL), QKV_OK);
    compare(g, "nsp", nsp, n, 0);
    free(nsp);
}

static void check_judge(golden *g, const qkv_run *run) {
    float *logits = malloc((size_t)g->n_tokens * sizeof *logits), *at = logits;
    for (int64_t b = 0; b < g->n_sequences; at += g->lengths[b++])
        assert_int_equal(qkv_model_discriminate(g->ctx, g->model, run, b, at, NULL), QKV_OK);
    compare(g, "judge", logits, (size_t)g->n_tokens, 0);
    free(logits);
}

/* What the model lacks is refused, with its name. */
static void check_heads(golden *g, const qkv_run *run) {
    const qkv_model_info *const info = qkv_model_get_info(g->model);
    float *logits = malloc((size_t)(info->vocab_size + 64) * sizeof *logits);
    if (info->has_mlm)
        check_mlm(g, run);
    else
        assert_int_equal(
            qkv_model_logits(g->ctx, g->model, run, QKV_HEAD_MASKED, 0, 0, logits, NULL),
            QKV_ERR_UNSUPPORTED);
    if (info->has_nsp)
        check_nsp(g, run);
    else
        assert_int_equal(qkv_model_nsp(g->ctx, g->model, run, 0, logits, NULL),
                         QKV_ERR_UNSUPPORTED);
    if (info->has_discriminator)
        check_judge(g, run);
    else
        assert_int_equal(qkv_model_discriminate(g->ctx, g->model, run, 0, logits, NULL),
                         QKV_ERR_UNSUPPORTED);
    free(logits);
}

static void test_run(void **state) {
    golden g;
    open_golden(&g, *state);
    qkv_run *run = run_all(&g, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN);
    check_hidden(&g, run);
    check_weights(&g, run);
    check_heads(&g, run);
    qkv_run_free(run);
    close_golden(&g);
}

/* What is not kept is not there, and what is left has the same bits. */
static void test_run_keeps_only_what_is_asked(void **state) {
    golden g;
    qkv_capture capture = qkv_capture_init();
    open_golden(&g, *state);
    const int64_t n_layers = qkv_model_get_info(g.model)->n_layers;
    const size_t hidden = (size_t)qkv_model_get_info(g.model)->hidden;
    qkv_run *all = run_all(&g, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN), *none = run_all(&g, 0);
    assert_null(qkv_run_hidden(none, QKV_SELF, 0, 0));
    assert_int_equal(qkv_run_capture(none, QKV_SELF, 0, 0, &capture, NULL), QKV_ERR_ARGUMENT);
    for (int64_t b = 0; b < g.n_sequences; b++)
        assert_memory_equal(qkv_run_hidden(none, QKV_SELF, b, n_layers),
                            qkv_run_hidden(all, QKV_SELF, b, n_layers),
                            (size_t)g.lengths[b] * hidden * sizeof(float));
    qkv_run_free(all);
    qkv_run_free(none);
    close_golden(&g);
}

/* ---- Training -------------------------------------------------------------------------------- */

static void compute_grads(golden *g, float *grads_arena, qkvi_net_losses *losses) {
    const qkvi_param_table *table = &g->trained->params;
    qkvi_net *params, *grads;
    qkvi_net_pass *pass;
    qkv_error error;
    int64_t *lengths = widened(g->lengths, g->n_sequences);
    int64_t *targets = widened(g->target_tokens, g->n_targets);
    uint8_t *types = malloc((size_t)g->n_tokens);
    for (int64_t t = 0; t < g->n_tokens; t++) types[t] = (uint8_t)g->types[t];
    const qkvi_net_batch batch = { .n_sequences = g->n_sequences,
                                   .lengths = lengths,
                                   .ids = g->ids,
                                   .types = types,
                                   .n_targets = g->n_targets,
                                   .target_tokens = targets,
                                   .target_ids = g->target_ids,
                                   .labels = g->labels };
    assert_int_equal(qkvi_net_bind(&g->trained->info, table, g->trained->arena,
                                   QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &params, NULL),
                     QKV_OK);
    assert_int_equal(qkvi_net_bind(&g->trained->info, table, grads_arena, 0, &grads, NULL), QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    qkvi_net_pack(g->ctx, params);
    for (int round = 0; round < 2; round++) /* the second must not see what the first left */
        if (qkvi_net_loss(g->ctx, params, &batch, pass, grads, losses, &error) != QKV_OK)
            fail_msg("%s", error.message);
    qkvi_net_pass_free(pass);
    qkvi_net_free(grads);
    qkvi_net_free(params);
    free(lengths);
    free(targets);
    free(types);
}

static float largest_gradient(const golden *g, const qkvi_param_table *table) {
    float top = 0;
    for (int64_t r = 0; r < table->n_rows; r++) {
        float *y = expected_gradient(g, &table->rows[r]);
        top = fmaxf(top, largest(y, table->rows[r].n_elems));
        free(y);
    }
    return top;
}

static void test_loss_and_gradients(void **state) {
    golden g;
    qkvi_net_losses losses;
    open_golden(&g, *state);
    const qkvi_param_table *table = &g.trained->params;
    float *grads = qkvi_params_arena(table);
    memset(grads, 0x7f, table->n_elems * sizeof *grads); /* must be overwritten */
    compute_grads(&g, grads, &losses);
    const float both[2] = { (float)losses.mlm, (float)losses.nsp };
    compare(&g, "loss.mlm", &both[0], 1, 0);
    if (g.labels) compare(&g, "loss.nsp", &both[1], 1, 0);
    assert_int_equal(losses.n_mlm, g.n_targets);
    assert_int_equal(losses.n_nsp, g.labels ? g.n_sequences : 0);
    const float kind = largest_gradient(&g, table);
    for (int64_t r = 0; r < table->n_rows; r++) {
        char name[128];
        float *y = expected_gradient(&g, &table->rows[r]);
        snprintf(name, sizeof name, "grad.%s", table->rows[r].name);
        compare_arrays(&g, name, grads + table->rows[r].offset, y, table->rows[r].n_elems, kind);
        free(y);
    }
    free(grads);
    close_golden(&g);
}

int main(void) {
    char old[] = "bert_old", new[] = "bert_new", longer[] = "bert_long";
    char distil1[] = "family/distilbert_1", distil2[] = "family/distilbert_2";
    char distil3[] = "family/distilbert_3", roberta1[] = "family/roberta_1";
    char roberta2[] = "family/roberta_2", roberta3[] = "family/roberta_3";
    char xlm1[] = "family/xlm_roberta_1", xlm2[] = "family/xlm_roberta_2";
    char electra1[] = "family/electra_1", electra2[] = "family/electra_2";
    char electra3[] = "family/electra_3";
    char modern1[] = "llama/modernbert_1", modern2[] = "llama/modernbert_2";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_run, old),
        cmocka_unit_test_prestate(test_run, new),
        cmocka_unit_test_prestate(test_run, distil1),
        cmocka_unit_test_prestate(test_run, distil2),
        cmocka_unit_test_prestate(test_run, distil3),
        cmocka_unit_test_prestate(test_run, roberta1),
        cmocka_unit_test_prestate(test_run, roberta2),
        cmocka_unit_test_prestate(test_run, roberta3),
        cmocka_unit_test_prestate(test_run, xlm1),
        cmocka_unit_test_prestate(test_run, xlm2),
        cmocka_unit_test_prestate(test_run, electra1),
        cmocka_unit_test_prestate(test_run, electra2),
        cmocka_unit_test_prestate(test_run, electra3),
        cmocka_unit_test_prestate(test_run, modern1),
        cmocka_unit_test_prestate(test_run, modern2),
        cmocka_unit_test_prestate(test_run_keeps_only_what_is_asked, modern1),
        cmocka_unit_test_prestate(test_loss_and_gradients, modern1),
        cmocka_unit_test_prestate(test_loss_and_gradients, modern2),
        cmocka_unit_test_prestate(test_run_keeps_only_what_is_asked, old),
        cmocka_unit_test_prestate(test_run_keeps_only_what_is_asked, new),
        cmocka_unit_test_prestate(test_loss_and_gradients, old),
        cmocka_unit_test_prestate(test_loss_and_gradients, new),
        cmocka_unit_test_prestate(test_loss_and_gradients, longer),
        cmocka_unit_test_prestate(test_loss_and_gradients, distil1),
        cmocka_unit_test_prestate(test_loss_and_gradients, distil3),
        cmocka_unit_test_prestate(test_loss_and_gradients, roberta1),
        cmocka_unit_test_prestate(test_loss_and_gradients, roberta3),
        cmocka_unit_test_prestate(test_loss_and_gradients, xlm1),
        cmocka_unit_test_prestate(test_loss_and_gradients, electra3),
    };
    return cmocka_run_group_tests_name("bert", tests, NULL, NULL);
}
