/*
 * Llama and its relatives, and ModernBERT: each family is opened, run with all captures, asked for
 * predictions, and generates with a cache of rings. Their graphs have features that others do not
 * have: packed matrices, norms of queries and keys, soft caps, windows, two kinds of RoPE.
 */
#include <stdlib.h>

#include "oom/calls.h"
#include "qkv/effects.h"
#include "qkv/generate.h"
#include "qkv/heads.h"
#include "qkv/inspect.h"
#include "qkv/model.h"

#define FOLDER(name) QKV_TEST_DATA "/golden/llama/" name

enum { LEN = 9, MOST_WORDS = 64 };

static int32_t ids[LEN] = { 9, 22, 31, 7, 40, 12, 9, 22, 17 };
static uint8_t zeros[LEN];
static int64_t places[LEN] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
static const qkv_encoding text = { LEN, ids, zeros, zeros, places, places, NULL };
static const qkv_encoding *const texts[] = { &text };

static const char *folder;
static qkv_ctx *ctx;
static qkv_model *model, *opened;
static qkv_run *run, *made_run;
static qkv_generation *generation;
static qkv_heads *heads;
static qkv_steps *steps;
static float logits[MOST_WORDS];
static double log_p[2], probabilities[MOST_WORDS];
static qkv_answer answers[5];
static int64_t n_answers;
static qkv_perplexity_report perplexity = { .struct_size = sizeof perplexity };

/* ---- Before and after a call ----------------------------------------------------------------- */

static void new_ctx(void) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    options.n_threads = 2;
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
}

static void load(qkv_model_weights weights) {
    qkv_model_open_options options = qkv_model_open_options_init();
    qkv_error error;
    options.weights = weights;
    oom_must(qkv_model_open(folder, &options, &model, &error), &error);
    new_ctx();
}

/* A model, and a run of it with everything. */
static void load_run(void) {
    qkv_error error;
    load(QKV_WEIGHTS_F32);
    oom_must(qkv_model_run(ctx, model, 1, texts, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS,
                           NULL, &run, &error),
             &error);
    qkv_ctx_free(ctx);
    new_ctx(); /* an arena that has not grown yet */
}

static void drop(void) {
    qkv_run_free(made_run);
    qkv_run_free(run);
    qkv_generation_free(generation);
    qkv_heads_free(heads);
    qkv_steps_free(steps);
    qkv_model_free(opened);
    qkv_model_free(model);
    qkv_ctx_free(ctx);
    made_run = run = NULL;
    generation = NULL;
    heads = NULL;
    steps = NULL;
    opened = model = NULL;
    ctx = NULL;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static qkv_status open_family(qkv_error *error) {
    return qkv_model_open(folder, NULL, &opened, error);
}
static uint64_t take_opened(void) {
    const qkv_model_info *const info = qkv_model_get_info(opened);
    const uint64_t hash = oom_hash(0, &info->n_parameters, sizeof info->n_parameters);
    qkv_model_free(opened);
    opened = NULL;
    return hash;
}

static qkv_status run_family(qkv_error *error) {
    return qkv_model_run(ctx, model, 1, texts, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS,
                         NULL, &made_run, error);
}
static uint64_t take_run(void) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    uint64_t hash = 0;
    for (int64_t layer = 0; layer <= info->n_layers; layer++)
        hash = oom_hash(hash, qkv_run_hidden(made_run, QKV_SELF, 0, layer),
                        (size_t)(LEN * info->hidden) * sizeof(float));
    for (int64_t layer = 0; layer < info->n_layers; layer++) {
        qkv_capture c = qkv_capture_init();
        qkv_error error;
        oom_must(qkv_run_capture(made_run, QKV_SELF, 0, layer, &c, &error), &error);
        hash = oom_hash(hash, c.k, (size_t)(c.n_kv_heads * LEN * c.head_dim) * sizeof *c.k);
        hash = oom_hash(hash, c.lse, (size_t)(c.n_heads * LEN) * sizeof *c.lse);
    }
    qkv_run_free(made_run);
    made_run = NULL;
    return hash;
}

static qkv_word_head word_head(void) {
    return qkv_model_get_info(model)->kind == QKV_MODEL_DECODER ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
}
static qkv_status ask_words(qkv_error *error) {
    return qkv_model_logits(ctx, model, run, word_head(), 0, 2, logits, error);
}
static uint64_t take_logits(void) {
    return oom_hash(0, logits, (size_t)qkv_model_get_info(model)->vocab_size * sizeof *logits);
}

static qkv_status classify(qkv_error *error) {
    return qkv_model_classify(ctx, model, run, 0, logits, error);
}
static qkv_status classify_tokens(qkv_error *error) {
    return qkv_model_classify_tokens(ctx, model, run, 0, logits, error);
}
/* Of a text of one word a token. */
static qkv_status find_answers(qkv_error *error) {
    static int64_t ends[LEN] = { 0, 2, 3, 4, 5, 6, 7, 8, 9 };
    const qkv_encoding words = { .n = LEN, .begin = places, .end = ends };
    double p[2 * LEN];
    for (int i = 0; i < 2 * LEN; i++) p[i] = 1.0 / (1 + i);
    return qkv_model_answers(model, &words, p, 5, answers, sizeof *answers, &n_answers, error);
}
static uint64_t take_answers(void) {
    return oom_hash(0, answers, (size_t)n_answers * sizeof *answers);
}
static qkv_status make_probabilities(qkv_error *error) {
    return qkv_model_probabilities(model, NULL, 1, logits, probabilities, error);
}
static uint64_t take_probabilities(void) {
    return oom_hash(0, probabilities,
                    (size_t)qkv_model_get_info(model)->n_labels * sizeof *probabilities);
}

static uint64_t take_classes(void) {
    return oom_hash(0, logits, (size_t)qkv_model_get_info(model)->n_labels * sizeof *logits);
}

static qkv_status write_text(int64_t n_beams, qkv_error *error) {
    qkv_generate_options options = qkv_generate_options_init();
    options.max_new = 8; /* beyond windows of 4 and 5 */
    options.n_beams = n_beams;
    return qkv_generate(ctx, model, &text, &options, &generation, error);
}
static qkv_status write_greedily(qkv_error *error) { return write_text(1, error); }
static qkv_status write_by_beams(qkv_error *error) { return write_text(3, error); }
static uint64_t take_text(void) {
    const qkv_sequence *const s = generation->sequences[0];
    const uint64_t hash =
        oom_hash(oom_hash(0, s->ids, (size_t)s->n * sizeof *s->ids), &s->score, sizeof s->score);
    qkv_generation_free(generation);
    generation = NULL;
    return hash;
}

static qkv_status measure(qkv_error *error) {
    return qkv_perplexity(ctx, model, 1, texts, 6, &perplexity, error);
}
static uint64_t take_perplexity(void) {
    return oom_hash(0, &perplexity.loss, sizeof perplexity.loss);
}

static qkv_status measure_heads(qkv_error *error) {
    const qkv_token_list tokens = { qkv_model_tokenizer(model, QKV_SOURCE), &text };
    qkv_status status = qkv_heads_open_run(ctx, run, QKV_SELF, 0, &tokens, NULL, &heads, error);
    if (status == QKV_OK) status = qkv_heads_measure(heads, QKV_HEADS_RECEIVED, NULL, error);
    if (status == QKV_OK) return status;
    qkv_heads_free(heads);
    heads = NULL;
    return status;
}
static uint64_t take_heads(void) {
    const qkv_heads_info *const info = qkv_heads_get_info(heads);
    const size_t n = (size_t)(info->n_layers * info->n_heads * qkv_head_number_count());
    const uint64_t hash = oom_hash(0, qkv_heads_numbers(heads, 0), n * sizeof(double));
    qkv_heads_free(heads);
    heads = NULL;
    return hash;
}

static qkv_status explain(qkv_error *error) {
    return qkv_inspect_steps(model, run, 0, &text, 1, 1, 4, &steps, error);
}
static uint64_t take_steps(void) {
    const uint64_t hash = oom_hash(0, steps->y, (size_t)steps->hidden * sizeof *steps->y);
    qkv_steps_free(steps);
    steps = NULL;
    return hash;
}

static qkv_status ablate(qkv_error *error) {
    static const int64_t position = 4, ends[] = { 1 };
    static const int32_t word = 12;
    const int64_t ablated = qkv_model_get_info(model)->n_heads + 1; /* layer 1, head 1 */
    qkv_effects asked = qkv_effects_init();
    asked.head = word_head();
    asked.n_places = asked.n_sets = 1;
    asked.positions = &position;
    asked.words = &word;
    asked.ends = ends;
    asked.heads = &ablated;
    return qkv_inspect_effects(ctx, model, &text, &asked, log_p, NULL, error);
}
static uint64_t take_effects(void) { return oom_hash(0, log_p, sizeof log_p); }

/* ---- The rows of a family -------------------------------------------------------------------- */

#define BEGIN(name)                                                                                \
    static void name##_only(void) { folder = FOLDER(#name); }                                      \
    static void name##_model(void) {                                                               \
        name##_only();                                                                             \
        load(QKV_WEIGHTS_F32);                                                                     \
    }                                                                                              \
    static void name##_half(void) {                                                                \
        name##_only();                                                                             \
        load(QKV_WEIGHTS_BF16);                                                                    \
    }                                                                                              \
    static void name##_run(void) {                                                                 \
        name##_only();                                                                             \
        load_run();                                                                                \
    }
enum { IO_SLOW = OOM_IO | OOM_SLOW };
#define EACH(name)                                                                                 \
    { "qkv_model_open", #name, name##_only, open_family, take_opened, drop, IO_SLOW, 100 },        \
        { "qkv_model_run", #name, name##_model, run_family, take_run, drop, 0, 0 },                \
        { "qkv_model_run", #name " in bf16", name##_half, run_family, take_run, drop, 0, 0 }, {    \
        "qkv_model_logits", #name, name##_run, ask_words, take_logits, drop, 0, 0                  \
    }
#define DECODER(name)                                                                              \
    EACH(name), { "qkv_generate", #name, name##_model, write_greedily, take_text, drop, 0, 0 }

BEGIN(llama_1)
BEGIN(mistral_1)
BEGIN(qwen2_1)
BEGIN(qwen3_1)
BEGIN(gemma_1)
BEGIN(gemma2_1)
BEGIN(gemma3_text_1)
BEGIN(smollm3_1)
BEGIN(olmo2_1)
BEGIN(phi3_1)
BEGIN(gpt_neox_1)
BEGIN(opt_2)
BEGIN(gptj_3)
BEGIN(bloom_2)
BEGIN(modernbert_1)

static void classifier_only(void) { folder = QKV_TEST_DATA "/golden/classify/modernbert_mean"; }
static void classifier_run(void) {
    classifier_only();
    load_run();
}

static void tagger_run(void) {
    folder = QKV_TEST_DATA "/golden/classify/roberta_answers";
    load_run();
}

static const oom_call calls[] = {
    DECODER(llama_1),
    DECODER(mistral_1),
    DECODER(qwen2_1),
    DECODER(qwen3_1),
    DECODER(gemma_1),
    DECODER(gemma2_1),
    DECODER(gemma3_text_1),
    DECODER(smollm3_1),
    DECODER(olmo2_1),
    DECODER(phi3_1),
    DECODER(gpt_neox_1),
    DECODER(opt_2),
    DECODER(gptj_3),
    DECODER(bloom_2),
    EACH(modernbert_1),
    { "qkv_model_open", "a classifier", classifier_only, open_family, take_opened, drop,
      OOM_IO | OOM_SLOW, 100 },
    { "qkv_model_classify", "the mean", classifier_run, classify, take_classes, drop, 0, 0 },
    { "qkv_model_classify_tokens", "answers", tagger_run, classify_tokens, take_classes, drop, 0,
      0 },
    { "qkv_model_probabilities", "of a text", classifier_run, make_probabilities,
      take_probabilities, drop, 0, 0 },
    { "qkv_model_answers", "five spans", tagger_run, find_answers, take_answers, drop, 0, 0 },
    { "qkv_generate", "beams over rings", gemma2_1_model, write_by_beams, take_text, drop, 0, 0 },
    { "qkv_perplexity", "windows of rings", gemma3_text_1_model, measure, take_perplexity, drop, 0,
      0 },
    { "qkv_heads_measure", "soft caps and windows", gemma2_1_run, measure_heads, take_heads, drop,
      0, 0 },
    { "qkv_heads_measure", "windows to both sides", modernbert_1_run, measure_heads, take_heads,
      drop, 0, 0 },
    { "qkv_inspect_steps", "soft caps, norms after parts", gemma2_1_run, explain, take_steps, drop,
      0, 0 },
    { "qkv_inspect_steps", "norms of whole rows", olmo2_1_run, explain, take_steps, drop, 0, 0 },
    { "qkv_inspect_steps", "words that are projected", opt_2_run, explain, take_steps, drop, 0, 0 },
    { "qkv_inspect_effects", "a head of a window", gemma2_1_model, ablate, take_effects, drop, 0,
      0 },
    { "qkv_inspect_effects", "of an encoder", modernbert_1_model, ablate, take_effects, drop, 0,
      0 },
};

const oom_group oom_rotary = { "rotary", calls, sizeof calls / sizeof *calls, NULL, NULL };
