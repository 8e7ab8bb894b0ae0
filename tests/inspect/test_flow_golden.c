/*
 * Attention rollout of all tokens and norms of values (qkv/patterns.h) against transformers in
 * float64 (tools/flow_cases.py): models of every kind of block, their encoders, decoders and
 * cross-attention. A row of the map is also what qkv_inspect_rollout says of its token.
 */
#include "golden/golden_model.h"
#include "qkv/patterns.h"

/* Behind "/golden/"; the golden of each has the last name, "mild" left out. */
static char names[][32] = { "bert_new",         "llama/llama_2",       "llama/gemma2_1",
                            "llama/olmo2_1",    "llama/mistral_1",     "llama/modernbert_1",
                            "llama/gpt_neox_1", "llama/gptj_1",        "llama/bloom_2",
                            "llama/opt_2",      "decoder/gpt2_1/mild", "decoder/bart_1/mild",
                            "decoder/t5_2/mild" };
enum { N_MODELS = sizeof names / sizeof *names, MOST = 24 };

static const char *const kinds[] = { "self", "decoder", "cross" };
static const char *const fuses[] = { "mean", "max", "min" };

static void golden_path(const char *name, char path[512]) {
    char stem[32];
    snprintf(stem, sizeof stem, "%s", name);
    char *const mild = strstr(stem, "/mild");
    if (mild) *mild = 0;
    const char *const slash = strrchr(stem, '/');
    snprintf(path, 512, QKV_TEST_DATA "/golden/flow/%s.safetensors", slash ? slash + 1 : stem);
}

/* The model, and what float64 makes of one text. */
static golden open_flow(const char *name) {
    golden g = { .name = name };
    char path[512];
    qkv_error error;
    snprintf(path, sizeof path, QKV_TEST_DATA "/golden/%s", name);
    if (qkv_model_open(path, NULL, &g.model, &error) != QKV_OK) fail_msg("%s", error.message);
    golden_path(name, path);
    if (qkvi_safetensors_open(path, &g.expected, &error) != QKV_OK) fail_msg("%s", error.message);
    g.ids = read_ints(&g, "ids", &g.n_tokens);
    if (qkvi_safetensors_find(g.expected, "decoder_ids"))
        g.decoder_ids = read_ints(&g, "decoder_ids", &g.n_decoder_tokens);
    assert_int_equal(qkv_ctx_create(NULL, &g.ctx, NULL), QKV_OK);
    return g;
}

static qkv_run *run(const golden *g, uint32_t flags) {
    const qkv_encoding input = { .n = g->n_tokens, .ids = g->ids }, *const inputs[] = { &input };
    const qkv_encoding target = { .n = g->n_decoder_tokens, .ids = g->decoder_ids },
                       *const targets[] = { &target };
    qkv_run_options options = qkv_run_options_init();
    qkv_run *made;
    qkv_error error;
    if (g->decoder_ids) options.targets = targets;
    if (qkv_model_run(g->ctx, g->model, 1, inputs, flags, &options, &made, &error) != QKV_OK)
        fail_msg("%s: %s", g->name, error.message);
    return made;
}

/* ---- Norms ----------------------------------------------------------------------------------- */

static void check_norms(golden *g, const qkv_run *made, qkv_attention_kind which, int64_t layer) {
    qkv_capture c = qkv_capture_init();
    char name[40];
    qkv_error error;
    float norms[MOST * MOST];
    assert_int_equal(qkv_run_capture(made, which, 0, layer, &c, NULL), QKV_OK);
    assert_true(c.n_heads <= MOST && c.n_keys <= MOST);
    snprintf(name, sizeof name, "norms.%s.%d", kinds[which], (int)layer);
    if (qkv_inspect_norms(g->ctx, g->model, made, which, 0, layer, norms, &error) != QKV_OK)
        fail_msg("%s: %s: %s", g->name, name, error.message);
    compare(g, name, norms, (size_t)(c.n_heads * c.n_keys), 0);
}

/* ---- Rollout --------------------------------------------------------------------------------- */

/* Rows by themselves, which walk the other way. */
static void check_rows(const golden *g, const qkv_run *made, qkv_rollout_heads heads, int64_t n,
                       const float *map) {
    float row[MOST];
    for (int64_t i = 0; i < n; i++) {
        assert_int_equal(qkv_inspect_rollout(g->ctx, g->model, made, 0, i, i + 1, heads, row, NULL),
                         QKV_OK);
        for (int64_t j = 0; j < n; j++)
            if (!(fabsf(row[j] - map[i * n + j]) <= 1e-6f))
                fail_msg("%s: row %d, token %d: %g alone, %g among all", g->name, (int)i, (int)j,
                         (double)row[j], (double)map[i * n + j]);
    }
}

static void check_rollout(golden *g, const qkv_run *made, qkv_attention_kind which, int64_t n) {
    char name[40];
    float map[MOST * MOST];
    for (int f = 0; f < 3; f++) {
        const qkv_rollout_heads heads = (qkv_rollout_heads)f;
        snprintf(name, sizeof name, "rollout.%s.%s", kinds[which], fuses[f]);
        assert_int_equal(
            qkv_inspect_rollout_map(g->ctx, g->model, made, which, 0, heads, map, NULL), QKV_OK);
        compare(g, name, map, (size_t)(n * n), 0);
        if (which == QKV_SELF) check_rows(g, made, heads, n, map);
    }
}

static void test_flow(void **state) {
    golden g = open_flow(*state);
    qkv_run *const made = run(&g, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN);
    const qkv_model_info *const info = qkv_model_get_info(g.model);
    for (int which = QKV_SELF; which <= (g.decoder_ids ? QKV_CROSS : QKV_SELF); which++) {
        const int64_t n_layers = which == QKV_SELF ? info->n_layers : info->n_decoder_layers;
        for (int64_t l = 0; l < n_layers; l++) check_norms(&g, made, (qkv_attention_kind)which, l);
        if (which != QKV_CROSS)
            check_rollout(&g, made, (qkv_attention_kind)which,
                          which == QKV_SELF ? g.n_tokens : g.n_decoder_tokens);
    }
    qkv_run_free(made);
    close_golden(&g);
}

/* ---- Errors, and values that are no numbers -------------------------------------------------- */

static void test_errors(void **state) {
    (void)state;
    golden g = open_flow("decoder/bart_1/mild");
    qkv_run *const made = run(&g, QKV_RUN_CAPTURE);
    float room[MOST * MOST];
    qkv_error error;
    assert_int_equal(qkv_inspect_norms(g.ctx, g.model, made, QKV_SELF, 0, 0, room, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "the run was made without QKV_RUN_HIDDEN");
    assert_int_equal(qkv_inspect_norms(g.ctx, g.model, made, QKV_DECODER, 0, 7, room, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkv_inspect_rollout_map(g.ctx, g.model, made, QKV_CROSS, 0, QKV_ROLLOUT_MEAN, room, &error),
        QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "of two texts"));
    assert_int_equal(qkv_inspect_rollout_map(g.ctx, g.model, made, QKV_SELF, 0,
                                             (qkv_rollout_heads)3, room, &error),
                     QKV_ERR_ARGUMENT);
    assert_int_equal(
        qkv_inspect_rollout_map(g.ctx, g.model, made, QKV_SELF, 1, QKV_ROLLOUT_MEAN, room, &error),
        QKV_ERR_ARGUMENT);
    qkv_run_free(made);
    close_golden(&g);
}

/* Without a key that it sees a token is made of itself; the bits do not depend on threads. */
static void test_dropped(void **state) {
    (void)state;
    golden g = open_flow("bert_new");
    uint8_t all[MOST];
    memset(all, 1, sizeof all);
    const uint8_t *const dropped[] = { all };
    const qkv_encoding input = { .n = g.n_tokens, .ids = g.ids }, *const inputs[] = { &input };
    qkv_run_options options = qkv_run_options_init();
    qkv_ctx_options threads = qkv_ctx_options_init();
    qkv_run *made, *const plain = run(&g, QKV_RUN_CAPTURE);
    qkv_ctx *other;
    float map[MOST * MOST], again[MOST * MOST];
    options.dropped = dropped;
    threads.n_threads = 3;
    assert_int_equal(
        qkv_model_run(g.ctx, g.model, 1, inputs, QKV_RUN_CAPTURE, &options, &made, NULL), QKV_OK);
    assert_int_equal(qkv_ctx_create(&threads, &other, NULL), QKV_OK);
    for (int f = 0; f < 3; f++) {
        const qkv_rollout_heads heads = (qkv_rollout_heads)f;
        assert_int_equal(
            qkv_inspect_rollout_map(g.ctx, g.model, made, QKV_SELF, 0, heads, map, NULL), QKV_OK);
        for (int64_t c = 0; c < g.n_tokens * g.n_tokens; c++)
            assert_true(map[c] == (c % (g.n_tokens + 1) == 0));
        assert_int_equal(
            qkv_inspect_rollout_map(g.ctx, g.model, plain, QKV_SELF, 0, heads, map, NULL), QKV_OK);
        assert_int_equal(
            qkv_inspect_rollout_map(other, g.model, plain, QKV_SELF, 0, heads, again, NULL),
            QKV_OK);
        assert_memory_equal(map, again, (size_t)(g.n_tokens * g.n_tokens) * sizeof *map);
    }
    qkv_run_free(made);
    qkv_run_free(plain);
    qkv_ctx_free(other);
    close_golden(&g);
}

int main(void) {
    struct CMUnitTest tests[N_MODELS + 2];
    for (int m = 0; m < N_MODELS; m++)
        tests[m] = (struct CMUnitTest){ names[m], test_flow, NULL, NULL, names[m] };
    tests[N_MODELS] = (struct CMUnitTest)cmocka_unit_test(test_errors);
    tests[N_MODELS + 1] = (struct CMUnitTest)cmocka_unit_test(test_dropped);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
