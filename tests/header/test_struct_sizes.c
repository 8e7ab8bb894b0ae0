/*
 * Callers with older and newer headers: every struct and every element that a function of the model
 * library fills is tried with other sizes. A smaller one gets the fields that it has, a larger one
 * zeros in the others, and bytes beyond it stay as they are. Structs of options are tested with
 * their functions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "qkv/files.h"
#include "qkv/generate.h"
#include "qkv/inspect.h"
#include "qkv/page.h"
#include "qkv/train.h"

#define GOLDEN QKV_TEST_DATA "/golden/"

enum { ROOM = 2048, CANARY = 0xa5, N = 9 };

static qkv_ctx *ctx;
static qkv_model *bert, *gpt, *bart, *answerer;
static qkv_run *run, *pair_run;
static qkv_heads *heads;
static qkv_error error;
static int32_t ids[N] = { 5, 8, 11, 14, 17, 20, 23, 26, 29 };
static uint8_t types[N], special[N];
static qkv_encoding text = { .n = N, .ids = ids, .types = types, .special = special };
static const qkv_encoding *const texts[] = { &text };

static int begin_tests(void **state) {
    (void)state;
    if (qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK ||
        qkv_model_open(GOLDEN "bert_old", NULL, &bert, NULL) != QKV_OK ||
        qkv_model_open(GOLDEN "decoder/gpt2_1", NULL, &gpt, NULL) != QKV_OK ||
        qkv_model_open(GOLDEN "decoder/bart_1", NULL, &bart, NULL) != QKV_OK ||
        qkv_model_open(GOLDEN "classify/roberta_answers", NULL, &answerer, NULL) != QKV_OK)
        return -1;
    qkv_run_options pair = qkv_run_options_init();
    pair.targets = texts;
    const qkv_token_list tokens = { qkv_model_tokenizer(bert, QKV_SOURCE), &text };
    if (qkv_model_run(ctx, bert, 1, texts, QKV_RUN_CAPTURE, NULL, &run, NULL) != QKV_OK ||
        qkv_model_run(ctx, bart, 1, texts, QKV_RUN_CAPTURE, &pair, &pair_run, NULL) != QKV_OK ||
        qkv_heads_open_run(ctx, run, QKV_SELF, 0, &tokens, NULL, &heads, &error) != QKV_OK)
        return -1;
    return qkv_heads_measure(heads, 0, NULL, &error);
}

static int end_tests(void **state) {
    (void)state;
    qkv_heads_free(heads);
    qkv_run_free(pair_run);
    qkv_run_free(run);
    qkv_model_free(bart);
    qkv_model_free(answerer);
    qkv_model_free(gpt);
    qkv_model_free(bert);
    qkv_ctx_free(ctx);
    return 0;
}

static void expect_canary(const char *name, const unsigned char *bytes, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (bytes[i] != CANARY) fail_msg("%s: byte %zu is written", name, i);
}

static void expect_zeros(const char *name, const unsigned char *bytes, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (bytes[i] != 0) fail_msg("%s: byte %zu is not 0", name, i);
}

static void expect_status(const char *name, qkv_status got, qkv_status wanted) {
    if (got != wanted) fail_msg("%s: %s %s", name, qkv_status_name(got), error.message);
}

/* ---- Structs --------------------------------------------------------------------------------- */

static qkv_status capture(void *made) { return qkv_run_capture(run, QKV_SELF, 0, 0, made, &error); }

static void ignore(void *user, const qkv_finding *finding) { (void)user, (void)finding; }

static qkv_status audit(void *made) {
    return qkv_tensor_audit(GOLDEN "bert_old/model.safetensors", ignore, NULL, made, &error);
}

static qkv_status perplexity(void *made) {
    return qkv_perplexity(ctx, gpt, 1, texts, 0, made, &error);
}

static qkv_status sentences(void *made) {
    return qkv_eval_sentences(QKV_TEST_ROOT "/models/default/grammar.txt",
                              QKV_TEST_ROOT "/README.md", NULL, NULL, made, &error);
}

static qkv_status view(void *made) { return qkv_heads_view(heads, 1, made, &error); }

static qkv_status divergence(void *made) {
    qkv_head_view x = qkv_head_view_init(), y = x;
    if (qkv_heads_view(heads, 0, &x, &error) != QKV_OK) return QKV_ERR_IO;
    if (qkv_heads_view(heads, 1, &y, &error) != QKV_OK) return QKV_ERR_IO;
    return qkv_inspect_divergence(ctx, &x, &y, 0, NULL, made, NULL, &error);
}

static qkv_status sharpest(void *made) {
    return qkv_heads_sharpest(heads, NULL, NULL, NULL, made, &error);
}

static qkv_status choice(void *made) { return qkv_heads_choose(heads, -1, made, &error); }

static qkv_status probe_report(void *made) {
    qkv_head_probes all[64];
    return qkv_inspect_probes(ctx, bert, NULL, all, sizeof *all, made, NULL, &error);
}

static qkv_status map_report(void *made) {
    qkv_map_options options = qkv_map_options_init();
    float q[4 * N];
    double places[4 * N];
    for (int i = 0; i < 4 * N; i++) q[i] = (float)(i * i % 7 + 1);
    options.n_iters = options.n_runs = 1;
    return qkv_inspect_map(ctx, &options, N, N, 4, q, q, places, NULL, NULL, made, NULL, &error);
}

static qkv_status page_result(void *made) {
    static const char *const tokens[2] = { "a", "b" };
    static const float ones[4] = { 1, 1, 1, 1 };
    const qkv_page_head head = { .q = ones, .k = ones, .lse = ones };
    const qkv_page page = { .struct_size = sizeof page,
                            .n = 2,
                            .head_dim = 2,
                            .scale = 1,
                            .query = -1,
                            .tokens = tokens,
                            .n_heads = 1,
                            .heads = &head,
                            .head_bytes = sizeof head };
    return qkv_page_write(&page, QKV_TEST_BUILD "/struct_sizes.html", made, &error);
}

/* `older` is where a field begins that an older header does not have. */
static const struct form {
    const char *name;
    size_t size, older;
    qkv_status (*call)(void *made);
} forms[] = {
#define FORM(type, field, call)                                                                    \
    { #type, sizeof(type), offsetof(type, field), call }
    FORM(qkv_capture, scale, capture),
    FORM(qkv_audit, n_findings, audit),
    FORM(qkv_perplexity_report, perplexity, perplexity),
    FORM(qkv_sentence_score, n_held_out, sentences),
    FORM(qkv_head_view, lse, view),
    FORM(qkv_divergence, n_left_out, divergence),
    FORM(qkv_sharpest, weight, sharpest),
    FORM(qkv_heads_choice, rule, choice),
    FORM(qkv_probe_report, chance, probe_report),
    FORM(qkv_map_report, balance, map_report),
    FORM(qkv_page_result, max_error, page_result),
};

typedef union room {
    size_t struct_size;
    unsigned char bytes[ROOM];
} room;

/* A struct of `size` bytes, all 0, and the caller's own bytes behind it. */
static void make(room *made, size_t size) {
    memset(made, CANARY, sizeof *made);
    memset(made, 0, size);
    made->struct_size = size;
}

static void check_form(const struct form *f) {
    room ours, made;
    const size_t head = sizeof made.struct_size, newer = f->size + 24;
    make(&ours, f->size);
    expect_status(f->name, f->call(&ours), QKV_OK);
    expect_canary(f->name, ours.bytes, f->size, ROOM);

    make(&made, f->older);
    expect_status(f->name, f->call(&made), QKV_OK);
    assert_int_equal(made.struct_size, f->older);
    assert_memory_equal(made.bytes + head, ours.bytes + head, f->older - head);
    expect_canary(f->name, made.bytes, f->older, ROOM);

    make(&made, newer);
    expect_status(f->name, f->call(&made), QKV_OK);
    assert_int_equal(made.struct_size, newer);
    assert_memory_equal(made.bytes + head, ours.bytes + head, f->size - head);
    expect_zeros(f->name, made.bytes, f->size, newer);
    expect_canary(f->name, made.bytes, newer, ROOM);

    made.bytes[newer - 1] = 1;
    expect_status(f->name, f->call(&made), QKV_ERR_VERSION);
    made.struct_size = SIZE_MAX; /* not made by _init() */
    expect_status(f->name, f->call(&made), QKV_ERR_VERSION);
    made.struct_size = 3;
    expect_status(f->name, f->call(&made), QKV_ERR_ARGUMENT);
}

static void structs(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check_form(&forms[i]);
}

/* ---- Elements -------------------------------------------------------------------------------- */

static qkv_status candidates(void *array, size_t bytes) {
    return qkv_model_candidates(ctx, bert, run, QKV_HEAD_MASKED, 0, 3, 5, array, bytes, &error);
}

static qkv_status probes(void *array, size_t bytes) {
    return qkv_inspect_probes(ctx, bert, NULL, array, bytes, NULL, NULL, &error);
}

static qkv_status aligned(void *array, size_t bytes) {
    return qkv_inspect_align(pair_run, 0, NULL, array, bytes, NULL, &error);
}

static qkv_status saturation(void *array, size_t bytes) {
    return qkv_inspect_saturation(ctx, 4, 2, 3, 5, 1, array, bytes, &error);
}

static qkv_status answers(void *array, size_t bytes) {
    static int64_t begin[N] = { 0 }, end[N];
    const qkv_encoding words = { .n = N, .begin = begin, .end = end };
    double p[2 * N];
    int64_t n = 0;
    for (int i = 0; i < N; i++) end[i] = 1;
    for (int i = 0; i < 2 * N; i++) p[i] = 1.0 / (1 + i);
    return qkv_model_answers(answerer, &words, p, 4, array, bytes, &n, &error);
}

static const struct list {
    const char *name;
    size_t size, older, n;
    qkv_status (*call)(void *array, size_t bytes);
} lists[] = {
#define LIST(type, field, n, call)                                                                 \
    { #type, sizeof(type), offsetof(type, field), n, call }
    LIST(qkv_candidate, probability, 5, candidates), LIST(qkv_head_probes, antecedent, 4, probes),
    LIST(qkv_aligned, weight, N, aligned),           LIST(qkv_answer, probability, 4, answers),
    LIST(qkv_saturation, gradient, 2, saturation),
};

/* The first `known` bytes of each element are those of ours, and zeros follow. */
static void compare(const struct list *l, const room *ours, size_t bytes) {
    const size_t known = bytes < l->size ? bytes : l->size;
    room made;
    memset(&made, CANARY, sizeof made);
    expect_status(l->name, l->call(&made, bytes), QKV_OK);
    for (size_t i = 0; i < l->n; i++) {
        assert_memory_equal(made.bytes + i * bytes, ours->bytes + i * l->size, known);
        expect_zeros(l->name, made.bytes, i * bytes + known, (i + 1) * bytes);
    }
    expect_canary(l->name, made.bytes, l->n * bytes, ROOM);
}

static void elements(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const struct list *const l = &lists[i];
        room ours;
        memset(&ours, CANARY, sizeof ours);
        expect_status(l->name, l->call(&ours, l->size), QKV_OK);
        expect_canary(l->name, ours.bytes, l->n * l->size, ROOM);
        compare(l, &ours, l->older);
        compare(l, &ours, l->size + 24);
        expect_status(l->name, l->call(&ours, 3), QKV_ERR_ARGUMENT);
        expect_status(l->name, l->call(&ours, SIZE_MAX), QKV_ERR_VERSION);
    }
}

/* ---- Structs that are read ------------------------------------------------------------------- */

/* An older profile ends before by_offset: whatever lies there is not written to. */
static void an_older_profile(void **state) {
    (void)state;
    double received[N], wild[1] = { 77 };
    qkv_heads_profile profile = qkv_heads_profile_init();
    profile.received = received;
    profile.by_offset = wild;
    profile.struct_size = offsetof(qkv_heads_profile, by_offset);
    expect_status("position", qkv_heads_position(heads, 0, &profile, NULL, &error), QKV_OK);
    assert_true(wild[0] == 77);
    profile.struct_size = 3;
    expect_status("position", qkv_heads_position(heads, 0, &profile, NULL, &error),
                  QKV_ERR_ARGUMENT);
}

/* An older view ends before b and h, which are 0 then; a newer one may set nothing that is new. */
static void views_of_other_sizes(void **state) {
    (void)state;
    struct {
        qkv_head_view known;
        char more[8];
    } x = { .known = qkv_head_view_init() };
    qkv_divergence apart = qkv_divergence_init();
    expect_status("view", qkv_heads_view(heads, 1, &x.known, &error), QKV_OK);
    const qkv_head_view same = x.known;
    x.known.b = x.known.h = 1000;
    x.known.struct_size = offsetof(qkv_head_view, b);
    expect_status("older",
                  qkv_inspect_divergence(ctx, &x.known, &same, 0, NULL, &apart, NULL, &error),
                  QKV_OK);
    assert_true(apart.sum == 0);
    x.known = same;
    x.known.struct_size = sizeof x;
    expect_status("newer",
                  qkv_inspect_divergence(ctx, &x.known, &same, 0, NULL, &apart, NULL, &error),
                  QKV_OK);
    x.more[7] = 1;
    expect_status("newer",
                  qkv_inspect_divergence(ctx, &x.known, &same, 0, NULL, &apart, NULL, &error),
                  QKV_ERR_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(structs), cmocka_unit_test(elements),
                                        cmocka_unit_test(an_older_profile),
                                        cmocka_unit_test(views_of_other_sizes) };
    return cmocka_run_group_tests(tests, begin_tests, end_tests);
}
