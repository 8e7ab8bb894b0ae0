/*
 * Training and evaluation, of the smallest kind: two steps on a text and on a grammar, a checkpoint
 * after each, the model saved over another one; other architectures, one of them from a model; and
 * a run that goes on from a checkpoint, or finds that all is done. The checkpoint may stay behind a
 * run that failed; all other files are those of before.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "oom/calls.h"
#include "qkv/inspect.h"
#include "qkv/model.h"
#include "qkv/train.h"

static const char text[] = "the red door opened at noon\tit was a very old one\n"
                           "two dogs barked in my garden\tthey saw some cat run by\n";
static const char grammar[] = "person it : it it its was is has does\n"
                              "person he : he him his was is has does\n"
                              "person she : she her her was is has does\n"
                              "person they : they them their were are have do\n"
                              "function : . , ? the a an when until did not\n"
                              "noun door = thing opens : door box/boxes hatch/hatches\n"
                              "noun woman = person actor she : girl woman/women\n"
                              "word name = actor bare she : Anna\n"
                              "word name = actor bare he : Tom\n"
                              "verb event = by=opens : open close/closes/closed/closing\n"
                              "family watching hold X Y\n"
                              "  V = event\n"
                              "  Y = V.by\n"
                              "  X = actor\n"
                              "  pair <X> opened the Y . | X.subj closed Y.obj .\n"
                              "  say <X> X.was opening the Y when Y.subj* V.past .\n"
                              "  held say <X> X.was opening the Y until Y.subj* V.past .\n";
static const char *const model_files[] = { "config.json",
                                           "vocab.txt",
                                           "tokenizer.json",
                                           "tokenizer_config.json",
                                           "model.safetensors",
                                           "vocab.json",
                                           "merges.txt",
                                           "generation_config.json",
                                           "train_log.tsv",
                                           "train_run.txt",
                                           "preprocessor_config.json" };

static qkv_ctx *ctx;
static qkv_model *text_model, *grammar_model;
static qkv_eval_report *report;
static char text_path[256], grammar_path[256], out_path[256], pair_path[256];

/* ---- Training -------------------------------------------------------------------------------- */

static void out_file(char path[512], const char *name) {
    snprintf(path, 512, "%s/%s", out_path, name);
}

static void put_empty_folder(void) {
    oom_put(out_path, NULL, 0);
    oom_claim(mkdir(out_path, 0777) == 0, "a folder can be made");
}

static void put_old_model(void) {
    char path[512];
    put_empty_folder();
    for (size_t f = 0; f < sizeof model_files / sizeof *model_files; f++) {
        out_file(path, model_files[f]);
        oom_put(path, "old", 3);
    }
}

static void drop_out(void) { oom_put(out_path, NULL, 0); }

static int stop(void *user, const qkv_train_report *progress) {
    (void)user;
    return progress->step == 1;
}

static qkv_train_options small_run(void) {
    qkv_train_options options = qkv_train_options_init();
    options.out = out_path;
    options.n_layers = 1;
    options.n_heads = 2;
    options.hidden = 8;
    options.intermediate = 12;
    options.vocab_size = 250;
    options.max_len = 20;
    options.n_steps = 2;
    options.batch = 2;
    options.warmup = 1;
    options.report_every = 1;
    options.checkpoint_every = 1;
    return options;
}

static qkv_status train_on_text(qkv_error *error) {
    qkv_train_options options = small_run();
    options.text = text_path;
    return qkv_train(ctx, &options, error);
}

static qkv_status train_on_grammar(qkv_error *error) {
    qkv_train_options options = small_run();
    options.grammar = grammar_path;
    options.sinusoidal_positions = 1;
    return qkv_train(ctx, &options, error);
}

/* A language model, in two parts a step, with the sentences of a grammar for documents. */
static qkv_status train_gpt2(qkv_error *error) {
    qkv_train_options options = small_run();
    options.kind = QKV_MODEL_DECODER;
    options.grammar = grammar_path;
    options.vocab_size = 262;
    options.accumulate = 2;
    return qkv_train(ctx, &options, error);
}

static qkv_status train_encdec(qkv_error *error) {
    qkv_train_options options = small_run();
    options.kind = QKV_MODEL_PAIR;
    options.text = text_path;
    options.vocab_size = 265;
    options.dropout = 0.1;
    options.n_slices = 2;
    return qkv_train(ctx, &options, error);
}

/* In bf16, by the class that every processor computes alike. */
static qkv_status train_in_half(qkv_error *error) {
    qkv_train_options options = small_run();
    options.text = text_path;
    options.compute = QKV_WEIGHTS_BF16_DP;
    return qkv_train(ctx, &options, error);
}

/* A model of images, in two slices. */
static qkv_status train_shapes(qkv_error *error) {
    qkv_train_options options = small_run();
    options.shapes = 1;
    options.image_size = 8;
    options.patch_size = 4;
    options.n_slices = 2;
    return qkv_train(ctx, &options, error);
}

/* From the model of a run before, whose vocabulary comes along. */
static qkv_status fine_tune(qkv_error *error) {
    qkv_train_options options = small_run();
    options.from = pair_path;
    options.text = text_path;
    return qkv_train(ctx, &options, error);
}

/* RMSNorm, turns, gates and shared keys. */
static qkv_status train_llama(qkv_error *error) {
    qkv_train_options options = small_run();
    options.kind = QKV_MODEL_DECODER;
    options.architecture = "llama";
    options.n_kv_heads = 1;
    options.text = text_path;
    options.vocab_size = 262;
    return qkv_train(ctx, &options, error);
}

/* From tiny models of the families; they have a vocab.txt. */
static qkv_status tune(const char *from, qkv_error *error) {
    qkv_train_options options = small_run();
    options.from = from;
    options.text = text_path;
    return qkv_train(ctx, &options, error);
}
static qkv_status tune_gemma2(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/gemma2_1", error);
}
static qkv_status tune_phi3(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/phi3_1", error);
}
static qkv_status tune_gpt_neox(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/gpt_neox_1", error);
}
static qkv_status tune_gptj(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/gptj_3", error);
}
static qkv_status tune_opt(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/opt_2", error);
}
static qkv_status tune_olmo2(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/olmo2_1", error);
}
static qkv_status tune_modernbert(qkv_error *error) {
    return tune(QKV_TEST_DATA "/golden/llama/modernbert_1", error);
}

/* A run that was stopped after its first step. */
static void put_stopped(void) {
    qkv_train_options options = small_run();
    qkv_error error;
    options.text = text_path;
    options.report = stop;
    put_empty_folder();
    const qkv_status status = qkv_train(ctx, &options, &error);
    oom_must(status == QKV_ERR_CANCELLED ? QKV_OK : status, &error);
}

static qkv_status resume(qkv_error *error) {
    qkv_train_options options = small_run();
    options.text = text_path;
    options.resume = out_path;
    return qkv_train(ctx, &options, error);
}

static void put_finished(void) {
    qkv_error error;
    put_empty_folder();
    oom_must(train_on_text(&error), &error);
}

static qkv_status train_until_stopped(qkv_error *error) {
    qkv_train_options options = small_run();
    options.text = text_path;
    options.report = stop;
    const qkv_status status = qkv_train(ctx, &options, error);
    return status == QKV_ERR_CANCELLED ? QKV_OK : status;
}

/* The files, and that no checkpoint is left of a run that was finished. */
static uint64_t take_out(void) {
    char path[512];
    uint64_t sum = 0;
    for (size_t f = 0; f < sizeof model_files / sizeof *model_files; f++) {
        out_file(path, model_files[f]);
        sum += oom_hash_file(path);
    }
    out_file(path, "checkpoint.safetensors");
    return sum + oom_hash_file(path);
}

/* ---- Evaluation ------------------------------------------------------------------------------ */

static qkv_status evaluate(const qkv_model *model, const char *on_text, const char *on_grammar,
                           qkv_error *error) {
    static qkv_eval_report none;
    report = &none; /* must become NULL or a report */
    const qkv_status status = qkv_eval(ctx, model, on_text, on_grammar, 1, &report, error);
    oom_claim(status == QKV_OK || !report, "report is NULL after a failure");
    return status;
}

static qkv_status eval_text(qkv_error *error) {
    return evaluate(text_model, text_path, NULL, error);
}
static qkv_status eval_grammar(qkv_error *error) {
    return evaluate(grammar_model, NULL, grammar_path, error);
}

static uint64_t hash_row(uint64_t hash, const qkv_eval_row *row) {
    hash = oom_hash_text(hash, row->slot);
    hash = oom_hash(hash, &row->n_blanks, sizeof row->n_blanks);
    hash = oom_hash(hash, &row->n_top1_admissible, sizeof row->n_top1_admissible);
    return oom_hash(hash, &row->mass, sizeof row->mass);
}

static uint64_t take_report(void) {
    uint64_t hash = hash_row(0, report->total);
    for (int64_t r = 0; r < report->n_rows; r++) hash = hash_row(hash, report->rows[r]);
    const int64_t counts[] = { report->n_pairs,       report->n_pairs_right,
                               report->n_probes,      report->n_probes_right,
                               report->n_head_probes, report->n_head_probes_right,
                               report->head_layer,    report->head_index };
    hash = oom_hash(hash, counts, sizeof counts);
    return oom_hash(hash, &report->mlm_loss, sizeof report->mlm_loss);
}

static void drop_report(void) {
    qkv_eval_report_free(report);
    report = NULL;
}

/* ---- Sentences judged by a grammar ----------------------------------------------------------- */

static qkv_sentence_score score = { .struct_size = sizeof score };

static qkv_status judge(qkv_error *error) {
    return qkv_eval_sentences(grammar_path, text_path, NULL, NULL, &score, error);
}
static uint64_t take_score(void) { return oom_hash(0, &score, sizeof score); }

/* ---- Setup ----------------------------------------------------------------------------------- */

/* The probes of a grammar are an evaluation, too. */
static qkv_head_probes probes[16];

static qkv_status probe(qkv_error *error) {
    const qkv_model_info *const info = qkv_model_get_info(grammar_model);
    oom_claim(info->n_layers * info->n_heads <= 16, "there is room for all heads");
    qkv_probe_options options = qkv_probe_options_init();
    options.n_texts = 1;
    options.grammar = grammar_path;
    memset(probes, 0, sizeof probes);
    return qkv_inspect_probes(ctx, grammar_model, &options, probes, sizeof *probes, NULL, NULL,
                              error);
}
static uint64_t take_probes(void) { return oom_hash(0, probes, sizeof probes); }

static void set_up(void) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    options.n_threads =
        1; /* texts are encoded on all of them: here, where the sweep sees them all */
    oom_path(text_path, "text");
    oom_path(grammar_path, "grammar");
    oom_path(out_path, "out");
    oom_put(text_path, text, strlen(text));
    oom_put(grammar_path, grammar, strlen(grammar));
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
    oom_must(train_on_text(&error), &error);
    oom_must(qkv_model_open(out_path, NULL, &text_model, &error), &error);
    drop_out();
    oom_must(train_on_grammar(&error), &error);
    oom_must(qkv_model_open(out_path, NULL, &grammar_model, &error), &error);
    drop_out();
    oom_path(pair_path, "pair");
    oom_must(train_encdec(&error), &error);
    oom_claim(rename(out_path, pair_path) == 0, "a folder can be renamed");
    oom_unwatched = "checkpoint.safetensors";
}

static void tear_down(void) {
    qkv_model_free(text_model);
    qkv_model_free(grammar_model);
    qkv_ctx_free(ctx);
    oom_put(pair_path, NULL, 0);
}

enum { FLAGS = OOM_IO | OOM_SEVERAL | OOM_SLOW };

static const oom_call calls[] = {
    { "qkv_train", "on a text", put_old_model, train_on_text, take_out, drop_out, FLAGS, 0 },
    { "qkv_train", "on a grammar", put_empty_folder, train_on_grammar, take_out, drop_out, FLAGS,
      100 },
    { "qkv_train", "a GPT-2", put_old_model, train_gpt2, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "an encoder-decoder", put_old_model, train_encdec, take_out, drop_out, FLAGS,
      100 },
    { "qkv_train", "on pictures", put_empty_folder, train_shapes, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "in bf16", put_empty_folder, train_in_half, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from a model", put_empty_folder, fine_tune, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "a Llama", put_old_model, train_llama, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from a Gemma 2", put_empty_folder, tune_gemma2, take_out, drop_out, FLAGS,
      100 },
    { "qkv_train", "from a Phi 3", put_empty_folder, tune_phi3, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from a GPT-NeoX", put_empty_folder, tune_gpt_neox, take_out, drop_out, FLAGS,
      100 },
    { "qkv_train", "from a GPT-J", put_empty_folder, tune_gptj, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from an OPT", put_empty_folder, tune_opt, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from an OLMo 2", put_empty_folder, tune_olmo2, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "from a ModernBERT", put_empty_folder, tune_modernbert, take_out, drop_out,
      FLAGS, 100 },
    { "qkv_train", "resumed", put_stopped, resume, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "finished before", put_finished, resume, take_out, drop_out, FLAGS, 100 },
    { "qkv_train", "stopped", put_empty_folder, train_until_stopped, take_out, drop_out, FLAGS,
      100 },
    { "qkv_eval", "on a text", NULL, eval_text, take_report, drop_report, OOM_IO | OOM_SLOW, 0 },
    { "qkv_eval", "on a grammar", NULL, eval_grammar, take_report, drop_report, OOM_IO | OOM_SLOW,
      100 },
    { "qkv_eval_sentences", "by a grammar", NULL, judge, take_score, NULL, OOM_IO, 0 },
    { "qkv_inspect_probes", "of a grammar", NULL, probe, take_probes, NULL, OOM_IO | OOM_SLOW,
      100 },
};

const oom_group oom_train = { "train", calls, sizeof calls / sizeof *calls, set_up, tear_down };
