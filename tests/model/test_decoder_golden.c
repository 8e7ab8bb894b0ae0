/*
 * GPT-2, BART, Marian and T5, Llama and its kin against transformers in float64
 * (tools/decoder_cases.py, tools/llama_cases.py): tiny random models, a batch of sequences, or of
 * pairs, of several lengths. Hidden states of every layer of each stack, weights of every head
 * (self, decoder, cross), logits of every token, the loss with and without label smoothing, every
 * gradient; each within the bound of golden_model.h.
 */
#include "golden/golden_model.h"
#include "model/arch/net.h"
#include "qkv/generate.h"

/* ---- Running --------------------------------------------------------------------------------- */

/* Encodings of a batch, pointing into ids. */
static qkv_encoding *encodings_of(int64_t n, const int32_t *lengths, int32_t *ids,
                                  const qkv_encoding **list) {
    qkv_encoding *all = calloc((size_t)n, sizeof *all);
    for (int64_t b = 0; b < n; ids += lengths[b++]) {
        all[b] = (qkv_encoding){ .n = lengths[b], .ids = ids };
        list[b] = &all[b];
    }
    return all;
}

static qkv_run *run_all(golden *g, uint32_t flags) {
    const qkv_encoding *sources[16], *targets[16];
    qkv_error error;
    qkv_run *run = NULL;
    qkv_status status;
    qkv_encoding *from = encodings_of(g->n_sequences, g->lengths, g->ids, sources), *to = NULL;
    if (g->decoder_ids) {
        to = encodings_of(g->n_sequences, g->decoder_lengths, g->decoder_ids, targets);
        status = qkv_model_run(
            g->ctx, g->model, g->n_sequences, sources, flags,
            &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = targets }, &run,
            &error);
    } else {
        status =
            qkv_model_run(g->ctx, g->model, g->n_sequences, sources, flags, NULL, &run, &error);
    }
    if (status != QKV_OK) fail_msg("%s: %s", g->name, error.message);
    free(from);
    free(to);
    return run;
}

static void check_hidden(golden *g, const qkv_run *run, const char *kind, bool decoder) {
    const qkv_model_info *info = qkv_model_get_info(g->model);
    const int32_t *lengths = decoder ? g->decoder_lengths : g->lengths;
    const int64_t n_layers = decoder ? info->n_decoder_layers : info->n_layers;
    const size_t n = (size_t)((decoder ? g->n_decoder_tokens : g->n_tokens) * info->hidden);
    float *x = malloc(n * sizeof *x);
    for (int64_t layer = 0; layer <= n_layers; layer++) {
        char name[64];
        snprintf(name, sizeof name, "%s.%d", kind, (int)layer);
        for (int64_t b = 0, at = 0; b < g->n_sequences; at += lengths[b++]) {
            const float *hidden = decoder ? qkv_run_hidden(run, QKV_DECODER, b, layer)
                                          : qkv_run_hidden(run, QKV_SELF, b, layer);
            memcpy(x + at * info->hidden, hidden, (size_t)(lengths[b] * info->hidden) * sizeof *x);
        }
        compare(g, name, x, n, 0);
    }
    free(x);
}

static void check_weights(golden *g, const qkv_run *run, const char *kind,
                          qkv_attention_kind which) {
    const qkv_model_info *info = qkv_model_get_info(g->model);
    const int64_t n_layers = which == QKV_SELF ? info->n_layers : info->n_decoder_layers;
    for (int64_t layer = 0; layer < n_layers; layer++) {
        char name[64];
        size_t n = 0;
        qkv_capture c = qkv_capture_init();
        for (int64_t b = 0; b < g->n_sequences; b++) {
            assert_int_equal(qkv_run_capture(run, which, b, layer, &c, NULL), QKV_OK);
            n += (size_t)(c.n_heads * c.n * c.n_keys);
        }
        float *x = malloc(n * sizeof *x), *at = x;
        for (int64_t b = 0; b < g->n_sequences; b++) {
            assert_int_equal(qkv_run_capture(run, which, b, layer, &c, NULL), QKV_OK);
            for (int64_t h = 0; h < c.n_heads; h++, at += c.n * c.n_keys)
                assert_int_equal(qkv_run_weights(run, which, b, layer, h, at, NULL), QKV_OK);
        }
        snprintf(name, sizeof name, "%s.%d", kind, (int)layer);
        compare(g, name, x, n, 0);
        free(x);
    }
}

static void check_logits(golden *g, const qkv_run *run) {
    const int32_t *lengths = g->decoder_ids ? g->decoder_lengths : g->lengths;
    const int64_t n_tokens = g->decoder_ids ? g->n_decoder_tokens : g->n_tokens;
    const int64_t n_words = qkv_model_get_info(g->model)->target_vocab_size;
    float *x = malloc((size_t)(n_tokens * n_words) * sizeof *x), *at = x;
    for (int64_t b = 0; b < g->n_sequences; b++)
        for (int64_t i = 0; i < lengths[b]; i++, at += n_words)
            assert_int_equal(qkv_model_logits(g->ctx, g->model, run, QKV_HEAD_NEXT, b, i, at, NULL),
                             QKV_OK);
    compare(g, "logits", x, (size_t)(n_tokens * n_words), 0);
    free(x);
}

static void test_run(void **state) {
    golden g;
    open_golden(&g, *state);
    qkv_run *run = run_all(&g, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN);
    if (g.decoder_ids) {
        check_hidden(&g, run, "encoder_hidden", false);
        check_hidden(&g, run, "decoder_hidden", true);
        check_weights(&g, run, "encoder_weights", QKV_SELF);
        check_weights(&g, run, "decoder_weights", QKV_DECODER);
        check_weights(&g, run, "cross_weights", QKV_CROSS);
    } else {
        check_hidden(&g, run, "hidden", false);
        check_weights(&g, run, "weights", QKV_SELF);
    }
    check_logits(&g, run);
    qkv_run_free(run);
    close_golden(&g);
}

static void test_wrong_calls_are_refused(void **state) {
    golden g;
    qkv_capture capture = qkv_capture_init();
    qkv_error error;
    open_golden(&g, *state);
    float *logits = malloc((size_t)qkv_model_get_info(g.model)->target_vocab_size * sizeof *logits);
    qkv_run *run = run_all(&g, QKV_RUN_CAPTURE), *encoder = NULL;
    const qkv_encoding one = { .n = 2, .ids = g.ids }, *const inputs[] = { &one };
    assert_int_equal(qkv_model_logits(g.ctx, g.model, run, QKV_HEAD_MASKED, 0, 0, logits, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_int_equal(qkv_model_logits(g.ctx, g.model, run, QKV_HEAD_NEXT, 0, 99, logits, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_run_capture(run, (qkv_attention_kind)3, 0, 0, &capture, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkv_model_run(g.ctx, g.model, 1, inputs, QKV_RUN_CAPTURE, NULL, &encoder, &error), QKV_OK);
    assert_int_equal(qkv_run_capture(encoder, QKV_CROSS, 0, 0, &capture, &error), QKV_ERR_ARGUMENT);
    assert_null(qkv_run_hidden(encoder, QKV_DECODER, 0, 0));
    if (g.decoder_ids) {
        assert_int_equal(
            qkv_model_logits(g.ctx, g.model, encoder, QKV_HEAD_NEXT, 0, 0, logits, &error),
            QKV_ERR_ARGUMENT);
        assert_string_equal(error.message, "the run is of the encoder alone");
    } else {
        qkv_run *pairs;
        assert_int_equal(qkv_model_run(g.ctx, g.model, 1, inputs, 0,
                                       &(qkv_run_options){ .struct_size = sizeof(qkv_run_options),
                                                           .targets = inputs },
                                       &pairs, &error),
                         QKV_ERR_UNSUPPORTED);
        assert_null(pairs);
    }
    qkv_run_free(encoder);
    qkv_run_free(run);
    free(logits);
    close_golden(&g);
}

/* ---- Training -------------------------------------------------------------------------------- */

static void compute_grads(golden *g, double smoothing, float *grads_arena,
                          qkvi_net_losses *losses) {
    const qkvi_param_table *table = &g->trained->params;
    qkvi_net *net, *grads = NULL;
    qkvi_net_pass *pass;
    qkv_error error;
    int64_t *lengths = widened(g->lengths, g->n_sequences);
    int64_t *targets = widened(g->target_tokens, g->n_targets);
    int64_t *decoder_lengths = g->decoder_ids ? widened(g->decoder_lengths, g->n_sequences) : NULL;
    const qkvi_net_batch batch = { .n_sequences = g->n_sequences,
                                   .lengths = lengths,
                                   .ids = g->ids,
                                   .decoder_lengths = decoder_lengths,
                                   .decoder_ids = g->decoder_ids,
                                   .n_targets = g->n_targets,
                                   .target_tokens = targets,
                                   .target_ids = g->target_ids,
                                   .label_smoothing = smoothing };
    assert_int_equal(qkvi_net_bind(&g->trained->info, table, g->trained->arena,
                                   QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &net, NULL),
                     QKV_OK);
    if (grads_arena)
        assert_int_equal(qkvi_net_bind(&g->trained->info, table, grads_arena, 0, &grads, NULL),
                         QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&pass, NULL), QKV_OK);
    net->lm.bias = g->model->net->lm.bias; /* no parameter */
    qkvi_net_pack(g->ctx, net);
    for (int round = 0; round < 2; round++) /* the second must not see what the first left */
        if (qkvi_net_loss(g->ctx, net, &batch, pass, grads, losses, &error) != QKV_OK)
            fail_msg("%s", error.message);
    qkvi_net_pass_free(pass);
    qkvi_net_free(grads);
    qkvi_net_free(net);
    free(lengths);
    free(targets);
    free(decoder_lengths);
}

static void test_loss_and_gradients(void **state) {
    golden g;
    qkvi_net_losses plain, losses;
    open_golden(&g, *state);
    const qkvi_param_table *table = &g.trained->params;
    float *grads = qkvi_params_arena(table), top = 0;
    float *smoothing = read_floats(&g, "label_smoothing", 1);
    memset(grads, 0x7f, table->n_elems * sizeof *grads); /* must be overwritten */
    compute_grads(&g, 0, NULL, &plain);
    compute_grads(&g, (double)*smoothing, grads, &losses);
    const float both[2] = { (float)plain.lm, (float)losses.lm };
    compare(&g, "loss.plain", &both[0], 1, 0);
    compare(&g, "loss.lm", &both[1], 1, 0);
    assert_int_equal(losses.n_lm, g.n_targets);
    for (int64_t r = 0; r < table->n_rows; r++) {
        float *y = expected_gradient(&g, &table->rows[r]);
        top = fmaxf(top, largest(y, table->rows[r].n_elems));
        free(y);
    }
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *row = &table->rows[r];
        float *y = expected_gradient(&g, row);
        compare_arrays(&g, row->name, grads + row->offset, y, row->n_elems, top);
        free(y);
    }
    free(smoothing);
    free(grads);
    close_golden(&g);
}

/* ---- Perplexity ------------------------------------------------------------------------------ */

/* The labels, of which the decoder's inputs are made again, and transformers' loss in float64. */
static void test_perplexity_of_pairs(void **state) {
    golden g;
    const qkv_encoding *sources[17], *targets[17];
    const qkv_encoding nothing = { 0 };
    qkv_perplexity_report report = qkv_perplexity_report_init();
    qkv_error error;
    open_golden(&g, *state);
    const int64_t n = g.n_sequences;
    qkv_encoding *const from = encodings_of(n, g.lengths, g.ids, sources);
    qkv_encoding *const to = encodings_of(n, g.decoder_lengths, g.target_ids, targets);
    sources[n] = sources[0], targets[n] = &nothing; /* counts nothing */
    if (qkv_perplexity_pairs(g.ctx, g.model, n + 1, sources, targets, &report, &error) != QKV_OK)
        fail_msg("%s: %s", g.name, error.message);
    const float loss = (float)report.loss;
    compare(&g, "loss.plain", &loss, 1, 0);
    assert_int_equal(report.n_tokens, g.n_targets);
    assert_true(fabs(report.perplexity - exp(report.loss)) < 1e-9 * report.perplexity);
    assert_int_equal(qkv_perplexity(g.ctx, g.model, n, sources, 0, &report, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_int_equal(qkv_perplexity_pairs(g.ctx, g.model, -1, sources, targets, &report, &error),
                     QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "n = -1 is negative"));
    sources[1] = NULL;
    assert_int_equal(qkv_perplexity_pairs(g.ctx, g.model, n, sources, targets, &report, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "sources[1] is NULL");
    free(from);
    free(to);
    close_golden(&g);
}

/* ---- Vectors --------------------------------------------------------------------------------- */

/*
 * With the last token's pooling a text's vector is its row of the last hidden states, which
 * transformers has in float64; or of what some OPT project of them.
 */
static void test_last_token_pooling(void **state) {
    golden g;
    const qkv_encoding *inputs[16];
    qkv_embed_options options = qkv_embed_options_init();
    qkv_error error;
    char name[32];
    open_golden(&g, *state);
    const qkv_model_info *const info = qkv_model_get_info(g.model);
    const size_t width = (size_t)info->pooled_dim, n = (size_t)g.n_sequences;
    qkv_encoding *const texts = encodings_of(g.n_sequences, g.lengths, g.ids, inputs);
    snprintf(name, sizeof name, "hidden.%d", (int)info->n_layers);
    if (info->pooled_dim != info->hidden) snprintf(name, sizeof name, "projected");
    float *const rows = read_floats(&g, name, (size_t)g.n_tokens * width);
    float *const wanted = malloc(n * width * sizeof *wanted), *const got =
                                                                  malloc(n * width * sizeof *got);
    for (int64_t b = 0, end = 0; b < g.n_sequences; b++) {
        end += g.lengths[b];
        memcpy(wanted + (size_t)b * width, rows + (size_t)(end - 1) * width, width * sizeof *rows);
    }
    options.pooling = QKV_POOLING_LAST;
    if (qkv_model_embed(g.ctx, g.model, g.n_sequences, inputs, &options, got, &error) != QKV_OK)
        fail_msg("%s: %s", g.name, error.message);
    compare_arrays(&g, "the last token", got, wanted, n * width, 0);
    free(got);
    free(wanted);
    free(rows);
    free(texts);
    close_golden(&g);
}

int main(void) {
    char names[][24] = { "decoder/gpt2_1/mild",   "decoder/gpt2_2/mild",   "decoder/gpt2_3/mild",
                         "decoder/bart_1/mild",   "decoder/bart_2/mild",   "decoder/bart_3/mild",
                         "decoder/marian_1/mild", "decoder/marian_2/mild", "decoder/marian_3/mild",
                         "decoder/t5_1/mild",     "decoder/t5_2/mild",     "decoder/mt5_1/mild",
                         "llama/llama_1",         "llama/llama_2",         "llama/llama_3",
                         "llama/llama_4",         "llama/llama_5",         "llama/mistral_1",
                         "llama/qwen2_1",         "llama/qwen3_1",         "llama/gemma_1",
                         "llama/gemma2_1",        "llama/gemma3_text_1",   "llama/smollm3_1",
                         "llama/olmo2_1",         "llama/phi3_1",          "llama/gpt_neox_1",
                         "llama/gpt_neox_2",      "llama/gpt_neox_3",      "llama/opt_1",
                         "llama/opt_2",           "llama/opt_3",           "llama/opt_4",
                         "llama/gptj_1",          "llama/gptj_2",          "llama/gptj_3",
                         "llama/bloom_1",         "llama/bloom_2",         "llama/bloom_3" };
    enum { N = sizeof names / sizeof *names };
    enum { FIRST_PAIR = 3, FIRST_LLAMA = 12 };
    static struct CMUnitTest tests[5 * N];
    int n_tests = 3 * N;
    for (int m = 0; m < N; m++) {
        tests[m] = (struct CMUnitTest)cmocka_unit_test_prestate(test_run, names[m]);
        tests[N + m] =
            (struct CMUnitTest)cmocka_unit_test_prestate(test_loss_and_gradients, names[m]);
        tests[2 * N + m] =
            (struct CMUnitTest)cmocka_unit_test_prestate(test_wrong_calls_are_refused, names[m]);
    }
    for (int m = 0; m < N; m++) /* of pairs a vector is the encoder's: test_embed_golden.c */
        if (m < FIRST_PAIR || m >= FIRST_LLAMA)
            tests[n_tests++] =
                (struct CMUnitTest)cmocka_unit_test_prestate(test_last_token_pooling, names[m]);
    for (int m = FIRST_PAIR; m < FIRST_LLAMA; m++)
        tests[n_tests++] =
            (struct CMUnitTest)cmocka_unit_test_prestate(test_perplexity_of_pairs, names[m]);
    return _cmocka_run_group_tests("decoder", tests, (size_t)n_tests, NULL, NULL);
}
