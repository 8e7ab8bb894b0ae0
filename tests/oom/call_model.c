/*
 * Models and runs: the middle of qkv/model.h. The embedded model, its file alone, a model of the
 * Hugging Face cache, one whose file has unused tensors, and a name that is nowhere.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "oom/calls.h"
#include "qkv/model.h"

#define DEFAULT QKV_TEST_ROOT "/models/default"
#define SMALL   QKV_TEST_DATA "/golden/bert_old"
#define JUDGE   QKV_TEST_DATA "/golden/family/electra_1"
#define WRITER  QKV_TEST_DATA "/golden/decoder/gpt2_1"
#define PAIR    QKV_TEST_DATA "/golden/decoder/bart_1"
#define ODD     QKV_TEST_DATA "/golden/decoder/marian_1"
#define POOLED  QKV_TEST_DATA "/golden/embed/mean"
#define STEPS   QKV_TEST_DATA "/golden/sentence/bert"    /* every module, prompts */
#define LOWER   QKV_TEST_DATA "/golden/sentence/roberta" /* do_lower_case: two tokenizers */
#define COMMIT  "0123456789abcdef0123456789abcdef01234567"

typedef struct bytes {
    char *at;
    size_t n;
} bytes;

static bytes config, vocab, weights;
static qkv_model *opened, *model;
static qkv_ctx *ctx;
static qkv_encoding *inputs[2];
static qkv_run *run, *captured, *judged;
static qkv_model *electra, *sentences;
static float *logits, *attention;
static qkv_candidate candidates[5];

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status open_model(const char *name, qkv_error *error) {
    opened = model; /* must become NULL or a model */
    const qkv_status status = qkv_model_open(name, NULL, &opened, error);
    oom_claim(status == QKV_OK || !opened, "model is NULL after a failure");
    return status;
}

static qkv_status open_default(qkv_error *error) { return open_model(DEFAULT, error); }
static qkv_status open_small(qkv_error *error) { return open_model(SMALL, error); }
static qkv_status open_file(qkv_error *error) {
    return open_model(SMALL "/model.safetensors", error);
}
static qkv_status open_pooled(qkv_error *error) { return open_model(POOLED, error); }
static qkv_status open_steps(qkv_error *error) { return open_model(STEPS, error); }
static qkv_status open_lower(qkv_error *error) { return open_model(LOWER, error); }
static qkv_status open_judge(qkv_error *error) { return open_model(JUDGE, error); }
static qkv_status open_shards(qkv_error *error) {
    return open_model(QKV_TEST_DATA "/golden/stored/sharded", error);
}
static qkv_status open_writer(qkv_error *error) { return open_model(WRITER, error); }
static qkv_status open_pair(qkv_error *error) { return open_model(PAIR, error); }
static qkv_status open_gemma(qkv_error *error) {
    return open_model(QKV_TEST_DATA "/golden/llama/gemma3_text_1", error);
}
static qkv_status open_cached(qkv_error *error) { return open_model("some/model", error); }

static qkv_status open_gguf(qkv_error *error) {
    return open_model(QKV_TEST_DATA "/golden/gguf/tiny.gguf", error);
}

static qkv_status open_half(qkv_error *error) {
    qkv_model_open_options options = qkv_model_open_options_init();
    options.weights = QKV_WEIGHTS_BF16;
    opened = model;
    const qkv_status status = qkv_model_open(SMALL, &options, &opened, error);
    oom_claim(status == QKV_OK || !opened, "model is NULL after a failure");
    return status;
}

/*
 * Words of its encoder alone, positions that are no sinusoids, integers beyond 64 bits, and no way
 * to generate.
 */
static qkv_status open_odd(qkv_error *error) {
    char path[256];
    oom_path(path, "odd");
    return open_model(path, error);
}

static qkv_status open_other(qkv_error *error) {
    char path[256];
    oom_path(path, "other");
    const qkv_status status = open_model(path, error);
    return status == QKV_ERR_UNSUPPORTED ? QKV_OK : status;
}

static qkv_status open_nothing(qkv_error *error) {
    const qkv_status status = open_model("no/such-model", error);
    return status == QKV_ERR_IO ? QKV_OK : status;
}

static qkv_status open_memory(qkv_error *error) {
    opened = model;
    const qkv_status status = qkv_model_open_memory(config.at, config.n, vocab.at, vocab.n,
                                                    weights.at, weights.n, NULL, &opened, error);
    oom_claim(status == QKV_OK || !opened, "model is NULL after a failure");
    return status;
}

static uint64_t take_run(void);

/* What it says of itself, and what it computes. */
static uint64_t take_model(void) {
    if (!opened) return 1;
    const qkv_model_info *const info = qkv_model_get_info(opened);
    const qkv_encoding *const input = inputs[0];
    qkv_error error;
    uint64_t hash = oom_hash(0, &info->n_parameters, sizeof info->n_parameters);
    for (int64_t u = 0; qkv_model_unused(opened, u); u++)
        hash = oom_hash_text(hash, qkv_model_unused(opened, u));
    oom_must(qkv_model_run(ctx, opened, 1, &input, 0, NULL, &run, &error), &error);
    const uint64_t last = take_run();
    qkv_run_free(run);
    run = NULL;
    return oom_hash(hash, &last, sizeof last);
}

static uint64_t take_files(void) {
    uint64_t hash = 0;
    for (int64_t f = 0; qkv_model_file(opened, f); f++)
        hash = oom_hash_text(hash, qkv_model_file(opened, f));
    return hash;
}

static void drop_model(void) {
    qkv_model_free(opened);
    opened = NULL;
}

/* ---- Sentences ------------------------------------------------------------------------------- */

static qkv_encoding *sentence;
static int64_t n_prompt;
static float sentence_vector[5]; /* truncate_dim */

static uint64_t take_sentence(void) {
    const uint64_t hash = oom_hash(0, &n_prompt, sizeof n_prompt);
    return oom_hash(hash, sentence->ids, (size_t)sentence->n * sizeof *sentence->ids);
}

static void drop_sentence(void) {
    qkv_encoding_free(sentence);
    sentence = NULL;
}

/* A model's prompts, and the tokens of a text behind the first one. */
static uint64_t take_prompts(void) {
    const qkv_prompt *prompt;
    uint64_t hash = 0;
    qkv_error error;
    if (!opened) return 1;
    for (int64_t p = 0; (prompt = qkv_model_prompt(opened, p)); p++)
        hash = oom_hash_text(oom_hash_text(hash, prompt->name), prompt->text);
    oom_must(qkv_model_encode_sentence(opened, "The ", "Door", 4, &sentence, &n_prompt, &error),
             &error);
    const uint64_t last = take_sentence();
    drop_sentence();
    return oom_hash(hash, &last, sizeof last);
}

static qkv_status encode_sentence(qkv_error *error) {
    static qkv_encoding none;
    sentence = &none; /* must become NULL or an encoding */
    const qkv_status status =
        qkv_model_encode_sentence(sentences, "query: ", "the door", 8, &sentence, &n_prompt, error);
    oom_claim(status == QKV_OK || !sentence, "encoding is NULL after a failure");
    return status;
}

static qkv_status embed_sentence(qkv_error *error) {
    const qkv_encoding *const inputs_of[] = { inputs[0] };
    qkv_embed_options options = qkv_embed_options_init();
    options.n_prompt = 3;
    return qkv_model_embed(ctx, sentences, 1, inputs_of, &options, sentence_vector, error);
}

static uint64_t take_sentence_vector(void) {
    return oom_hash(0, sentence_vector, sizeof sentence_vector);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* An arena that has not grown yet. */
static void new_ctx(void) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    options.n_threads = 2;
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
}

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

static qkv_status run_flags(uint32_t flags, qkv_error *error) {
    run = captured; /* must become NULL or a run */
    const qkv_status status =
        qkv_model_run(ctx, model, 2, (const qkv_encoding *const *)inputs, flags, NULL, &run, error);
    oom_claim(status == QKV_OK || !run, "run is NULL after a failure");
    return status;
}

static qkv_status run_plain(qkv_error *error) { return run_flags(0, error); }
static qkv_status run_all(qkv_error *error) {
    return run_flags(QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, error);
}

static qkv_status run_changed(qkv_error *error) {
    static const uint8_t marks[64] = { 0, 1 };
    static const uint8_t *const dropped[] = { marks, NULL };
    const qkv_run_options what_if = { sizeof what_if, .causal = 1, .no_scale = 1, .temperature = 2,
                                      .dropped = dropped };
    run = captured; /* must become NULL or a run */
    const qkv_status status =
        qkv_model_run(ctx, model, 2, (const qkv_encoding *const *)inputs,
                      QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, &what_if, &run, error);
    oom_claim(status == QKV_OK || !run, "run is NULL after a failure");
    return status;
}

static qkv_status run_cut(qkv_error *error) {
    static const int64_t cuts[][4] = { { -1, -1, 1, 0 }, { 0, 1, 2, 1 } };
    const qkv_run_options what_if = { sizeof what_if, .cuts = *cuts, .n_cuts = 2 };
    run = captured; /* must become NULL or a run */
    const qkv_status status =
        qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)inputs,
                      QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, &what_if, &run, error);
    oom_claim(status == QKV_OK || !run, "run is NULL after a failure");
    return status;
}

static uint64_t hash_capture(uint64_t hash, const qkv_capture *c) {
    const size_t n = (size_t)(c->n_heads * c->n), dim = (size_t)c->head_dim;
    hash = oom_hash(hash, c->q, n * dim * sizeof(float));
    hash = oom_hash(hash, c->k, n * dim * sizeof(float));
    return oom_hash(hash, c->lse, n * sizeof(float));
}

/* Of the model that it was made with: the one just opened, or the one that stays. */
static uint64_t take_run(void) {
    const qkv_model_info *const info = qkv_model_get_info(opened ? opened : model);
    uint64_t hash = 0;
    for (int64_t layer = 0; layer <= info->n_layers; layer++) {
        qkv_capture c = qkv_capture_init();
        const float *const hidden = qkv_run_hidden(run, QKV_SELF, 0, layer);
        if (hidden)
            hash = oom_hash(hash, hidden, (size_t)(inputs[0]->n * info->hidden) * sizeof *hidden);
        if (layer < info->n_layers && qkv_run_capture(run, QKV_SELF, 0, layer, &c, NULL) == QKV_OK)
            hash = hash_capture(hash, &c);
    }
    return hash;
}

static void drop_run(void) {
    qkv_run_free(run);
    run = NULL;
    drop_ctx();
}

/* ---- Questions to a run ---------------------------------------------------------------------- */

static qkv_capture last = { .struct_size = sizeof last };

static qkv_status capture(qkv_error *error) {
    return qkv_run_capture(captured, QKV_SELF, 1, 0, &last, error);
}
static uint64_t take_capture(void) { return hash_capture(0, &last); }

static float word[512];
static qkv_status word_vector(qkv_error *error) {
    oom_claim(qkv_model_get_info(model)->hidden <= 512, "the vector has room");
    return qkv_model_word_vector(model, 7, word, error);
}
static uint64_t take_word(void) { return oom_hash(0, word, sizeof word); }

static size_t n_weights(void) { return (size_t)(inputs[1]->n * inputs[1]->n); }
static float table[6 * 4];
static qkv_status sinusoids(qkv_error *error) { return qkv_sinusoids(6, 4, table, error); }
static uint64_t take_sinusoids(void) { return oom_hash(0, table, sizeof table); }

static qkv_status find_weights(qkv_error *error) {
    return qkv_run_weights(captured, QKV_SELF, 1, 0, 1, attention, error);
}
static uint64_t take_weights(void) {
    return oom_hash(0, attention, n_weights() * sizeof *attention);
}

static qkv_status mlm(qkv_error *error) {
    return qkv_model_logits(ctx, model, captured, QKV_HEAD_MASKED, 1, 2, logits, error);
}
static uint64_t take_mlm(void) {
    return oom_hash(0, logits, (size_t)qkv_model_get_info(model)->vocab_size * sizeof *logits);
}

static qkv_status nsp(qkv_error *error) {
    return qkv_model_nsp(ctx, model, captured, 1, logits, error);
}
static uint64_t take_nsp(void) { return oom_hash(0, logits, 2 * sizeof *logits); }

static qkv_status judge(qkv_error *error) {
    return qkv_model_discriminate(ctx, electra, judged, 0, logits, error);
}
static uint64_t take_judge(void) {
    return oom_hash(0, logits, (size_t)inputs[0]->n * sizeof *logits);
}

static float vectors[2 * 20]; /* of the small model's hidden channels */
static qkv_status embed(qkv_error *error) {
    return qkv_model_embed(ctx, model, 2, (const qkv_encoding *const *)inputs, NULL, vectors,
                           error);
}
static uint64_t take_vectors(void) { return oom_hash(0, vectors, sizeof vectors); }

static qkv_status fill(qkv_error *error) {
    return qkv_model_candidates(ctx, model, captured, QKV_HEAD_MASKED, 1, 2, 5, candidates,
                                sizeof(qkv_candidate), error);
}
static uint64_t take_fill(void) { return oom_hash(0, candidates, sizeof candidates); }

/* ---- Setup ----------------------------------------------------------------------------------- */

static void load(bytes *b, const char *path) {
    qkv_error error;
    oom_must(qkvi_file_load(path, 1 << 24, &b->at, &b->n, &error), &error);
}

/* FOLDER/models--some--model with its snapshot, a link to the small model's folder. */
static void make_cache(void) {
    static const char *const folders[] = { "models--some--model", "models--some--model/refs",
                                           "models--some--model/snapshots" };
    char path[256];
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
        oom_path(path, folders[f]);
        oom_claim(mkdir(path, 0777) == 0, "a folder of the cache can be made");
    }
    oom_path(path, "models--some--model/refs/main");
    oom_put(path, COMMIT, strlen(COMMIT));
    oom_path(path, "models--some--model/snapshots/" COMMIT);
    oom_claim(symlink(SMALL, path) == 0, "a link can be made");
    setenv("HF_HUB_CACHE", oom_folder, 1);
}

static void put(const char *name, const char *text) {
    char path[256];
    oom_path(path, name);
    oom_put(path, text, strlen(text));
}

static void make_folder(const char *name) {
    char path[256];
    oom_path(path, name);
    oom_claim(mkdir(path, 0777) == 0, "a folder can be made");
}

/* The tensors of a Marian, and two more. */
static void make_odd_weights(void) {
    enum { ROWS = 256, WORDS = 53, COLS = 20 };
    static qkvi_stored_out tensors[120];
    static float zeros[ROWS * COLS];
    char path[256];
    qkvi_safetensors *file;
    qkv_error error;
    int64_t n = 0;
    oom_must(qkvi_safetensors_open(ODD "/model.safetensors", &file, &error), &error);
    for (; n < file->n_tensors; n++) {
        const qkvi_stored *const from = &file->tensors[n];
        void *const raw = malloc((size_t)(from->end - from->begin) + 1);
        oom_must(qkvi_safetensors_read_raw(file, from, raw, &error), &error);
        tensors[n] = (qkvi_stored_out){ from->name, from->type, from->rank, { 0 }, raw };
        memcpy(tensors[n].shape, from->shape, sizeof from->shape);
    }
    tensors[n] = (qkvi_stored_out){
        "model.encoder.embed_tokens.weight", QKVI_F32, 2, { WORDS, COLS }, zeros
    };
    tensors[n + 1] = (qkvi_stored_out){
        "model.decoder.embed_positions.weight", QKVI_F32, 2, { ROWS, COLS }, zeros
    };
    oom_path(path, "odd/model.safetensors");
    oom_must(qkvi_safetensors_write(path, tensors, n + 2, NULL, NULL, &error), &error);
    for (int64_t t = 0; t < n + 2; t++)
        if (tensors[t].data != zeros) free((void *)(uintptr_t)tensors[t].data);
    qkvi_safetensors_close(file);
}

static void make_odd(void) {
    bytes old;
    char text[4096];
    make_folder("odd");
    make_odd_weights();
    load(&old, ODD "/config.json");
    snprintf(text, sizeof text, "{\"nobody_needs\": 100000000000000000000,%.*s", (int)old.n - 1,
             old.at + 1);
    put("odd/config.json", text);
    free(old.at);
    load(&old, ODD "/vocab.txt");
    snprintf(text, sizeof text, "%.*s", (int)old.n, old.at);
    put("odd/vocab.txt", text);
    free(old.at);
    put("odd/generation_config.json", "{");
    make_folder("other");
    put("other/model-b.gguf", "");
    put("other/model-a.gguf", "");
}

static void set_up(void) {
    static const char *const texts[] = { "The man [MASK] the door.", "It opened when she left." };
    qkv_error error;
    load(&config, DEFAULT "/config.json");
    load(&vocab, DEFAULT "/vocab.txt");
    load(&weights, DEFAULT "/model.safetensors");
    make_cache();
    make_odd();
    oom_must(qkv_model_open(SMALL, NULL, &model, &error), &error);
    for (int i = 0; i < 2; i++)
        oom_must(qkv_tokenizer_encode(qkv_model_tokenizer(model, QKV_SOURCE), texts[i],
                                      strlen(texts[i]), NULL, 0, &inputs[i], &error),
                 &error);
    logits = malloc((size_t)qkv_model_get_info(model)->vocab_size * sizeof *logits);
    attention = malloc(n_weights() * sizeof *attention);
    oom_claim(logits && attention, "there is memory for a test");
    new_ctx();
    oom_must(qkv_model_run(ctx, model, 2, (const qkv_encoding *const *)inputs, QKV_RUN_CAPTURE,
                           NULL, &captured, &error),
             &error);
    oom_must(qkv_model_open(STEPS, NULL, &sentences, &error), &error);
    oom_must(qkv_model_open(JUDGE, NULL, &electra, &error), &error);
    oom_must(qkv_model_run(ctx, electra, 1, (const qkv_encoding *const *)inputs, 0, NULL, &judged,
                           &error),
             &error);
    drop_ctx();
}

static void tear_down(void) {
    qkv_run_free(captured);
    qkv_run_free(judged);
    qkv_model_free(model);
    qkv_model_free(electra);
    qkv_model_free(sentences);
    for (int i = 0; i < 2; i++) qkv_encoding_free(inputs[i]);
    free(logits);
    free(attention);
    free(config.at);
    free(vocab.at);
    free(weights.at);
}

static void drop_opened(void) {
    drop_model();
    drop_ctx();
}

static const oom_call calls[] = {
    { "qkv_model_open", "the embedded model's folder", new_ctx, open_default, take_model,
      drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "a small model", new_ctx, open_small, take_model, drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "one that makes vectors of sentences", new_ctx, open_pooled, take_model,
      drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "all modules and prompts", NULL, open_steps, take_prompts, drop_model,
      OOM_IO, 0 },
    { "qkv_model_open", "texts in lower case", NULL, open_lower, take_prompts, drop_model, OOM_IO,
      0 },
    { "qkv_model_open", "one that judges", new_ctx, open_judge, take_model, drop_opened, OOM_IO,
      0 },
    { "qkv_model_open", "one that writes", new_ctx, open_writer, take_model, drop_opened, OOM_IO,
      0 },
    { "qkv_model_open", "a Gemma, with two kinds of turns", new_ctx, open_gemma, take_model,
      drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "an encoder and a decoder", new_ctx, open_pair, take_model, drop_opened,
      OOM_IO, 0 },
    { "qkv_model_open", "one that is odd", new_ctx, open_odd, take_model, drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "a folder without safetensors", new_ctx, open_other, take_model,
      drop_opened, 0, 0 },
    { "qkv_model_open", "a file", new_ctx, open_file, take_model, drop_opened, OOM_IO, 0 },
    { "qkv_model_open", "shards", NULL, open_shards, take_files, drop_model, OOM_IO, 0 },
    { "qkv_model_open", "a GGUF file", NULL, open_gguf, take_files, drop_model, OOM_IO, 0 },
    { "qkv_model_open", "a name of the cache", new_ctx, open_cached, take_model, drop_opened,
      OOM_IO, 0 },
    { "qkv_model_open", "a name that is nowhere", new_ctx, open_nothing, take_model, drop_opened, 0,
      0 },
    { "qkv_model_open", "weights in bf16", new_ctx, open_half, take_model, drop_opened, OOM_IO, 0 },
    { "qkv_model_open_memory", "the embedded model", new_ctx, open_memory, take_model, drop_opened,
      0, 0 },
    { "qkv_model_run", "two texts", new_ctx, run_plain, take_run, drop_run, 0, 0 },
    { "qkv_model_run", "all kept", new_ctx, run_all, take_run, drop_run, 0, 0 },
    { "qkv_sinusoids", "a table", NULL, sinusoids, take_sinusoids, NULL, 0, 0 },
    { "qkv_model_word_vector", "a tied word", NULL, word_vector, take_word, NULL, 0, 0 },
    { "qkv_model_run", "changed", new_ctx, run_changed, take_run, drop_run, 0, 0 },
    { "qkv_model_run", "edges", new_ctx, run_cut, take_run, drop_run, 0, 0 },
    { "qkv_run_capture", "a layer", NULL, capture, take_capture, NULL, 0, 0 },
    { "qkv_run_weights", "a head", NULL, find_weights, take_weights, NULL, 0, 0 },
    { "qkv_model_logits", "a position", new_ctx, mlm, take_mlm, drop_ctx, 0, 0 },
    { "qkv_model_nsp", "a text", new_ctx, nsp, take_nsp, drop_ctx, 0, 0 },
    { "qkv_model_discriminate", "a text", new_ctx, judge, take_judge, drop_ctx, 0, 0 },
    { "qkv_model_embed", "two texts", new_ctx, embed, take_vectors, drop_ctx, 0, 0 },
    { "qkv_model_embed", "through all modules", new_ctx, embed_sentence, take_sentence_vector,
      drop_ctx, 0, 0 },
    { "qkv_model_encode_sentence", "behind a prompt", NULL, encode_sentence, take_sentence,
      drop_sentence, 0, 0 },
    { "qkv_model_candidates", "five words", new_ctx, fill, take_fill, drop_ctx, 0, 0 },
};

const oom_group oom_model = { "model", calls, sizeof calls / sizeof *calls, set_up, tear_down };
