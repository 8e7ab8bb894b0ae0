/* Text: qkv/generate.h. */
#include <string.h>

#include "oom/calls.h"
#include "qkv/generate.h"

#define GPT2   QKV_TEST_DATA "/golden/decoder/gpt2_1"
#define MARIAN QKV_TEST_DATA "/golden/decoder/marian_1"

static const int32_t prompt_ids[] = { 9, 22, 31 };
static const char *const stops[] = { "zz" };

static qkv_ctx *ctx;
static qkv_model *gpt2, *marian;
static qkv_generate_options options;
static qkv_generation *made;
static qkv_perplexity_report report = { .struct_size = sizeof report };
static int64_t n_told;

static int tell(void *user, const char *bytes, size_t n) {
    (void)user, (void)bytes;
    n_told += (int64_t)n;
    return 0;
}

static qkv_status generate(const qkv_model *model, qkv_error *error) {
    static qkv_generation none;
    const qkv_encoding prompt = { .n = 3, .ids = (int32_t *)(uintptr_t)prompt_ids };
    made = &none; /* must become NULL or a generation */
    const qkv_status status = qkv_generate(ctx, model, &prompt, &options, &made, error);
    oom_claim(status == QKV_OK || !made, "generation is NULL after a failure");
    return status;
}

static void start(void) {
    options = (qkv_generate_options)qkv_generate_options_init();
    options.max_new = 6;
    options.stop = stops;
    options.n_stop = 1;
}

static qkv_status stream(qkv_error *error) {
    start();
    options.on_text = tell;
    return generate(gpt2, error);
}

static qkv_status draw(qkv_error *error) {
    start();
    options.sample = 1;
    options.top_k = 9;
    options.top_p = 0.9;
    options.n_return = 3;
    return generate(gpt2, error);
}

static qkv_status search_beams(qkv_error *error) {
    start();
    options.n_beams = 3;
    options.n_return = 2;
    return generate(marian, error);
}

static uint64_t take(void) {
    uint64_t hash = 0;
    for (int64_t i = 0; i < made->n_sequences; i++) {
        const qkv_sequence *const s = made->sequences[i];
        hash = oom_hash(hash, s->ids, (size_t)s->n * sizeof *s->ids);
        hash = oom_hash(hash, &s->score, sizeof s->score);
        hash = oom_hash(hash, s->text, (size_t)s->n_bytes);
    }
    return hash;
}

static void drop(void) {
    qkv_generation_free(made);
    made = NULL;
}

static qkv_status take_options(qkv_error *error) {
    options = (qkv_generate_options)qkv_generate_options_init();
    return qkv_generate_options_read(marian, &options, error);
}

static uint64_t hash_options(void) { return oom_hash(0, &options.n_beams, sizeof options.n_beams); }

static qkv_status measure(qkv_error *error) {
    static int32_t ids[60];
    const qkv_encoding text = { .n = 60, .ids = ids };
    const qkv_encoding *const texts[] = { &text };
    for (int i = 0; i < 60; i++) ids[i] = 5 + i % 40;
    return qkv_perplexity(ctx, gpt2, 1, texts, 30, &report, error);
}

static qkv_status measure_pair(qkv_error *error) {
    static int32_t ids[9] = { 5, 6, 7, 8, 9, 10, 11, 12, 2 };
    const qkv_encoding text = { .n = 9, .ids = ids };
    const qkv_encoding *const texts[] = { &text };
    return qkv_perplexity_pairs(ctx, marian, 1, texts, texts, &report, error);
}

static uint64_t hash_report(void) { return oom_hash(0, &report.loss, sizeof report.loss); }

static void set_up(void) {
    qkv_error error;
    oom_must(qkv_model_open(GPT2, NULL, &gpt2, &error), &error);
    oom_must(qkv_model_open(MARIAN, NULL, &marian, &error), &error);
    oom_must(qkv_ctx_create(NULL, &ctx, &error), &error);
}

static void tear_down(void) {
    qkv_model_free(gpt2);
    qkv_model_free(marian);
    qkv_ctx_free(ctx);
}

static const oom_call calls[] = {
    { "qkv_generate", "greedy, told", NULL, stream, take, drop, 0, 0 },
    { "qkv_generate", "three drawn", NULL, draw, take, drop, 0, 0 },
    { "qkv_generate", "beams, a pair of stacks", NULL, search_beams, take, drop, 0, 0 },
    { "qkv_generate_options_read", "Marian", NULL, take_options, hash_options, NULL, 0, 0 },
    { "qkv_perplexity", "three windows", NULL, measure, hash_report, NULL, 0, 0 },
    { "qkv_perplexity_pairs", "a pair", NULL, measure_pair, hash_report, NULL, 0, 0 },
};

const oom_group oom_generate = { "generate", calls, sizeof calls / sizeof *calls, set_up,
                                 tear_down };
