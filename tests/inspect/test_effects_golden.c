/*
 * Ablated heads and the lens against transformers in float64 with hooks (tools/effect_cases.py):
 * every head alone and groups of heads; zero, mean and patched outputs; BERT, GPT-2, BART and
 * Marian, each attention, Llama, Gemma 2, GPT-NeoX and OPT. Then properties: batches, threads and
 * other sets change no bit, and neither does patching with the outputs of the text itself.
 */
#include "golden/golden_model.h"
#include "qkv/effects.h"

static const struct kind {
    const char *name, *folder;
    qkv_attention_kind which;
} cases[] = { { "bert", "models/default", QKV_SELF },
              { "gpt2", "tests/golden/decoder/gpt2_2/mild", QKV_SELF },
              { "bart_encoder", "tests/golden/decoder/bart_1/mild", QKV_SELF },
              { "bart_decoder", "tests/golden/decoder/bart_2/mild", QKV_DECODER },
              { "marian_cross", "tests/golden/decoder/marian_3/mild", QKV_CROSS },
              { "llama", "tests/golden/llama/llama_2", QKV_SELF },
              { "gemma2", "tests/golden/llama/gemma2_1", QKV_SELF },
              { "gpt_neox", "tests/golden/llama/gpt_neox_1", QKV_SELF },
              { "opt", "tests/golden/llama/opt_3", QKV_SELF } };

/* A case: its model, texts and sets. */
typedef struct fixture {
    golden g;
    const struct kind *kind;
    qkv_encoding input, source, target, source_target;
    int32_t *words;
    int64_t *positions, *heads, *ends;
    qkv_effects asked;
    int64_t n_words, n_rows; /* rows: of log_p */
    double *log_p;
} fixture;

static int32_t *ints_of(const fixture *f, const char *what, int64_t *n) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s", f->kind->name, what);
    return read_ints(&f->g, name, n);
}

static int64_t *wide_ints(const fixture *f, const char *what, int64_t *n) {
    int32_t *const ints = ints_of(f, what, n);
    int64_t *const wide = widened(ints, *n);
    free(ints);
    return wide;
}

static qkv_encoding encoding_of(const fixture *f, const char *what) {
    qkv_encoding encoding = { .n = 0 };
    encoding.ids = ints_of(f, what, &encoding.n);
    return encoding;
}

static void open_fixture(fixture *f, const struct kind *kind) {
    char path[512];
    qkv_error error;
    int64_t n;
    *f = (fixture){ .kind = kind, .g = { .name = kind->name }, .asked = qkv_effects_init() };
    snprintf(path, sizeof path, QKV_TEST_ROOT "/%s", kind->folder);
    if (qkv_model_open(path, NULL, &f->g.model, &error) != QKV_OK) fail_msg("%s", error.message);
    if (qkvi_safetensors_open(QKV_TEST_DATA "/golden/effects.safetensors", &f->g.expected,
                              &error) != QKV_OK)
        fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(NULL, &f->g.ctx, NULL), QKV_OK);
    f->input = encoding_of(f, "ids");
    f->source = encoding_of(f, "source_ids");
    f->positions = wide_ints(f, "positions", &f->asked.n_places);
    f->words = ints_of(f, "words", &n);
    f->ends = wide_ints(f, "ends", &f->asked.n_sets);
    f->heads = wide_ints(f, "heads", &n);
    f->asked.which = kind->which;
    f->asked.head = f->g.model->info.has_lm ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    f->asked.positions = f->positions;
    f->asked.words = f->words;
    f->asked.ends = f->ends;
    f->asked.heads = f->heads;
    f->n_words = f->g.model->info.target_vocab_size;
    f->n_rows = (f->asked.n_sets + 1) * f->asked.n_places;
    f->log_p = calloc((size_t)f->n_rows, sizeof *f->log_p);
    if (f->g.model->info.kind != QKV_MODEL_PAIR) return;
    f->target = encoding_of(f, "target_ids");
    f->source_target = encoding_of(f, "source_target_ids");
    f->asked.target = &f->target;
}

static void close_fixture(fixture *f) {
    int32_t *const ids[] = { f->input.ids, f->source.ids, f->target.ids, f->source_target.ids,
                             f->words };
    for (int i = 0; i < 5; i++) free(ids[i]);
    free(f->positions);
    free(f->heads);
    free(f->ends);
    free(f->log_p);
    qkvi_safetensors_close(f->g.expected);
    qkv_model_free(f->g.model);
    qkv_ctx_free(f->g.ctx);
}

static qkv_run *run_text(const fixture *f, const qkv_encoding *input, const qkv_encoding *target) {
    qkv_run_options options = qkv_run_options_init();
    qkv_run *run = NULL;
    if (f->asked.target) options.targets = &target;
    assert_int_equal(qkv_model_run(f->g.ctx, f->g.model, 1, &input,
                                   QKV_RUN_OUTPUTS | QKV_RUN_HIDDEN, &options, &run, NULL),
                     QKV_OK);
    return run;
}

static void ask(const fixture *f, double *log_p) {
    qkv_error error;
    if (qkv_inspect_effects(f->g.ctx, f->g.model, &f->input, &f->asked, log_p, NULL, &error) !=
        QKV_OK)
        fail_msg("%s: %s", f->kind->name, error.message);
}

/* ---- Against transformers -------------------------------------------------------------------- */

/* Effects in nats, and as probability. */
static void check_log_p(fixture *f, const char *kind) {
    char name[64];
    const int64_t n = f->asked.n_places;
    double worst = 0;
    snprintf(name, sizeof name, "%s.%s.log_p", f->kind->name, kind);
    float *const wanted = read_floats(&f->g, name, (size_t)f->n_rows);
    for (int64_t i = 0; i < f->n_rows; i++) {
        const double ours = f->log_p[i] - f->log_p[i % n];
        const double theirs = (double)wanted[i] - (double)wanted[i % n];
        const double p = exp(f->log_p[i]) - exp((double)wanted[i]);
        if (!(fabs(ours - theirs) <= 1e-4) || !(fabs(p) <= 1e-4))
            fail_msg("%s: place %lld of row %lld: %g nats, not %g", name, (long long)(i % n),
                     (long long)(i / n), ours, theirs);
        worst = fmax(worst, fabs(ours - theirs));
    }
    print_message("%s: off by at most %.2g nats\n", name, worst);
    free(wanted);
}

static void check_logits(fixture *f, const float *logits) {
    char name[64];
    const size_t n = (size_t)(f->n_rows * f->n_words);
    snprintf(name, sizeof name, "%s.zero.logits", f->kind->name);
    float *const wanted = read_floats(&f->g, name, n);
    const float top = largest(wanted, n);
    float worst = 0;
    for (size_t i = 0; i < n; i++) worst = fmaxf(worst, fabsf(logits[i] - wanted[i]));
    print_message("%s: off by %.2g of the largest\n", name, (double)(worst / top));
    assert_true(worst <= 5e-6f * top);
    free(wanted);
}

static void test_zero(void **state) {
    fixture f;
    open_fixture(&f, *state);
    f.asked.logits = malloc((size_t)(f.n_rows * f.n_words) * sizeof(float));
    ask(&f, f.log_p);
    check_log_p(&f, "zero");
    check_logits(&f, f.asked.logits);
    free(f.asked.logits);
    close_fixture(&f);
}

static void test_mean(void **state) {
    fixture f;
    open_fixture(&f, *state);
    qkv_run *const run = run_text(&f, &f.source, &f.source_target);
    const qkv_model_info *const info = &f.g.model->info;
    const int64_t n_layers = f.kind->which == QKV_SELF ? info->n_layers : info->n_decoder_layers;
    const int64_t width = f.kind->which == QKV_SELF ? info->n_heads * info->head_dim : info->hidden;
    const int64_t n = n_layers * width;
    const int64_t n_tokens = f.kind->which == QKV_SELF ? f.source.n : f.source_target.n;
    double *const sums = calloc((size_t)n, sizeof *sums);
    float *const means = calloc((size_t)n, sizeof *means);
    assert_int_equal(qkv_run_add_outputs(run, f.kind->which, 0, sums, NULL), QKV_OK);
    for (int64_t c = 0; c < n; c++) means[c] = (float)(sums[c] / (double)n_tokens);
    f.asked.means = means;
    ask(&f, f.log_p);
    check_log_p(&f, "mean");
    qkv_run_free(run);
    free(sums);
    free(means);
    close_fixture(&f);
}

static void test_patch(void **state) {
    fixture f;
    open_fixture(&f, *state);
    qkv_run *const run = run_text(&f, &f.source, &f.source_target);
    f.asked.source = run;
    ask(&f, f.log_p);
    check_log_p(&f, "patch");
    qkv_run_free(run);
    close_fixture(&f);
}

static void test_lens(void **state) {
    fixture f;
    char name[64];
    open_fixture(&f, *state);
    const int64_t n_layers =
        f.asked.target ? f.g.model->info.n_decoder_layers : f.g.model->info.n_layers;
    const int64_t n = (n_layers + 1) * f.asked.n_places;
    int64_t n_best;
    snprintf(name, sizeof name, "%s.lens.log_p", f.kind->name);
    float *const wanted = read_floats(&f.g, name, (size_t)n);
    int32_t *const best = ints_of(&f, "lens.best", &n_best);
    qkv_run *const run = run_text(&f, &f.input, &f.target);
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = i % f.asked.n_places;
        qkv_lens lens = qkv_lens_init();
        assert_int_equal(qkv_inspect_lens(f.g.ctx, f.g.model, run, f.asked.head, 0,
                                          f.positions[place], i / f.asked.n_places, f.words[place],
                                          &lens, NULL),
                         QKV_OK);
        assert_true(fabs(lens.log_p - (double)wanted[i]) <= 1e-4);
        assert_int_equal(lens.best, best[i]);
        assert_true((lens.rank == 0) == (best[i] == f.words[place]));
        assert_true(lens.best_log_p >= lens.log_p && lens.entropy >= 0);
    }
    qkv_run_free(run);
    free(wanted);
    free(best);
    close_fixture(&f);
}

/* ---- Properties ------------------------------------------------------------------------------ */

/* One copy at a time, one thread, and each set alone: the same bits. */
static void test_same_bits(void **state) {
    fixture f;
    open_fixture(&f, *state);
    ask(&f, f.log_p);
    const int64_t n_sets = f.asked.n_sets, n = f.asked.n_places;
    int n_alone = 0;
    double *const other = calloc((size_t)f.n_rows, sizeof *other);
    qkv_ctx_options one = qkv_ctx_options_init();
    one.n_threads = 1;
    qkv_ctx_free(f.g.ctx);
    assert_int_equal(qkv_ctx_create(&one, &f.g.ctx, NULL), QKV_OK);
    f.asked.max_tokens = 1;
    ask(&f, other);
    assert_memory_equal(other, f.log_p, (size_t)f.n_rows * sizeof *other);
    for (int64_t s = 0; s < n_sets; s += 3) {
        const int64_t begin = s ? f.ends[s - 1] : 0, end = f.ends[s] - begin;
        f.asked.heads = f.heads + begin;
        f.asked.ends = &end;
        f.asked.n_sets = 1;
        ask(&f, other);
        assert_memory_equal(other + n, f.log_p + (s + 1) * n, (size_t)n * sizeof *other);
        if (end != 1) continue;
        f.asked.ends = NULL; /* a head alone is a set */
        ask(&f, other);
        assert_memory_equal(other + n, f.log_p + (s + 1) * n, (size_t)n * sizeof *other);
        n_alone++;
    }
    assert_true(n_alone > 0);
    free(other);
    close_fixture(&f);
}

/* Heads that give what they give anyway, and no heads, change no bit. */
static void test_nothing_changes(void **state) {
    fixture f;
    open_fixture(&f, *state);
    qkv_run *const run = run_text(&f, &f.input, &f.target);
    f.asked.source = run;
    ask(&f, f.log_p);
    const int64_t n = f.asked.n_places;
    for (int64_t s = 1; s <= f.asked.n_sets; s++)
        assert_memory_equal(f.log_p + s * n, f.log_p, (size_t)n * sizeof *f.log_p);
    qkv_run_free(run);
    close_fixture(&f);
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static void refused(const fixture *f, const qkv_effects *asked, qkv_status status,
                    const char *words) {
    qkv_error error;
    assert_int_equal(
        qkv_inspect_effects(f->g.ctx, f->g.model, &f->input, asked, f->log_p, NULL, &error),
        status);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
}

#define REFUSED(field, value, status, words)                                                       \
    do {                                                                                           \
        qkv_effects wrong = f.asked;                                                               \
        wrong.field = value;                                                                       \
        refused(&f, &wrong, status, words);                                                        \
    } while (0)

static void test_mistakes(void **state) {
    fixture f;
    open_fixture(&f, *state);
    const int64_t far[] = { 1 << 20, -1 };
    const int32_t none[] = { -1, 1 << 30 };
    const int64_t falling[] = { 2, 1 };
    float mean = 0;
    qkv_run *const run = run_text(&f, &f.source, &f.source_target);
    REFUSED(which, (qkv_attention_kind)3, QKV_ERR_ARGUMENT, "which = 3");
    REFUSED(head, (qkv_word_head)7, QKV_ERR_ARGUMENT, "head = 7");
    REFUSED(head, f.asked.head == QKV_HEAD_NEXT ? QKV_HEAD_MASKED : QKV_HEAD_NEXT,
            QKV_ERR_UNSUPPORTED, "head");
    REFUSED(n_places, 0, QKV_ERR_ARGUMENT, "n_places = 0");
    REFUSED(positions, NULL, QKV_ERR_ARGUMENT, "positions is NULL");
    REFUSED(positions, far, QKV_ERR_ARGUMENT, "positions[0] = 1048576");
    REFUSED(words, none, QKV_ERR_ARGUMENT, "words[0] = -1");
    REFUSED(n_sets, -1, QKV_ERR_ARGUMENT, "n_sets = -1");
    REFUSED(ends, falling, QKV_ERR_ARGUMENT, "ends[1] = 1 is below 2");
    REFUSED(heads, far, QKV_ERR_ARGUMENT, "heads[0] = 1048576");
    REFUSED(max_tokens, -1, QKV_ERR_ARGUMENT, "max_tokens = -1");
    REFUSED(struct_size, 0, QKV_ERR_ARGUMENT, "struct_size");
    f.asked.source = run;
    REFUSED(means, &mean, QKV_ERR_ARGUMENT, "both given");
    REFUSED(source_b, 1, QKV_ERR_ARGUMENT, "source_b = 1");
    if (f.kind->which == QKV_SELF)
        f.input.n--;
    else
        f.target.n--;
    f.asked.n_places = 1;
    refused(&f, &f.asked, QKV_ERR_SHAPE, "the source has");
    qkv_run_free(run);
    close_fixture(&f);
}

int main(void) {
    enum { N = sizeof cases / sizeof *cases };
    const CMUnitTestFunction functions[] = { test_zero,    test_mean,      test_patch,
                                             test_lens,    test_same_bits, test_nothing_changes,
                                             test_mistakes };
    enum { M = sizeof functions / sizeof *functions };
    struct CMUnitTest tests[N * M];
    for (int i = 0; i < N * M; i++)
        tests[i] = (struct CMUnitTest){ .name = cases[i % N].name,
                                        .test_func = functions[i / N],
                                        .initial_state = (void *)(uintptr_t)&cases[i % N] };
    return cmocka_run_group_tests_name("effects", tests, NULL, NULL);
}
