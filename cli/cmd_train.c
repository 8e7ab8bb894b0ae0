/*
 * `qkv train`: a small model from text or from a grammar, or a model made better at one, with
 * progress and a picture of the loss.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval_report.h"
#include "input.h"
#include "term.h"
#include "train_curve.h"

struct train_options {
    struct cli_common common;
    const char *text, *grammar, *out, *eval, *from;
    bool resume, sinusoidal;
    struct arg_int arch, compute, layers, decoder_layers, heads, hidden, intermediate, vocab, len;
    struct arg_int steps, batch, accumulate, warmup, seed, report_every, checkpoint_every;
    struct arg_real rate, dropout, smoothing;
};

struct reporter {
    const struct cli_common *common;
    struct progress progress;
    qkv_arch arch; /* what is trained: --from knows it only then */
};

/* "1 h 05 min", "3 min 20 s", "12 s", "0.3 s" */
static const char *duration(double seconds, char text[32]) {
    const long s = seconds > 0 && seconds < 1e9 ? (long)(seconds + 0.5) : 0;
    if (s >= 3600)
        snprintf(text, 32, "%ld h %02ld min", s / 3600, s / 60 % 60);
    else if (s >= 60)
        snprintf(text, 32, "%ld min %02ld s", s / 60, s % 60);
    else if (s >= 10)
        snprintf(text, 32, "%ld s", s);
    else
        snprintf(text, 32, "%.1f s", seconds > 0 ? seconds : 0.0);
    return text;
}

static void print_json(const qkv_train_report *report) {
    json_t *object = json_pack("{s:I,s:I,s:f}", "step", (json_int_t)report->step, "n_steps",
                               (json_int_t)report->n_steps, "loss", report->loss);
    json_t *bert =
        json_pack("{s:f,s:f}", "mlm_loss", report->mlm_loss, "nsp_loss", report->nsp_loss);
    json_t *rest =
        json_pack("{s:f,s:f,s:f,s:f,s:f}", "held_out_loss", report->held_out_loss, "learning_rate",
                  report->learning_rate, "tokens_per_second", report->tokens_per_second, "seconds",
                  report->seconds, "seconds_left", report->seconds_left);
    if (report->arch == QKV_ARCH_BERT) json_object_update(object, bert);
    json_object_update(object, rest);
    json_decref(bert);
    json_decref(rest);
    json_print(stdout, object);
    cli_flush();
}

/* On a terminal one line that is rewritten; elsewhere a line for each report. */
static int on_report(void *user, const qkv_train_report *report) {
    struct reporter *self = user;
    char line[240], parts[80] = "", left[32];
    self->arch = report->arch;
    if (report->arch == QKV_ARCH_BERT)
        snprintf(parts, sizeof parts, " (mlm %.3f, nsp %.3f)", report->mlm_loss, report->nsp_loss);
    snprintf(line, sizeof line,
             "step %" PRId64 "/%" PRId64 "  loss %.3f%s  held out %.3f  %.0f tokens/s  %s left",
             report->step, report->n_steps, report->loss, parts, report->held_out_loss,
             report->tokens_per_second, duration(report->seconds_left, left));
    if (self->common->json)
        print_json(report);
    else if (!self->progress.on)
        cli_note(self->common->quiet, "%s", line);
    progress_text(&self->progress, line);
    return 0;
}

static void fill(const struct train_options *options, qkv_train_options *train) {
    const struct {
        const struct arg_int *given;
        int64_t *field;
    } numbers[] = {
        { &options->layers, &train->n_layers },
        { &options->decoder_layers, &train->n_decoder_layers },
        { &options->heads, &train->n_heads },
        { &options->hidden, &train->hidden },
        { &options->intermediate, &train->intermediate },
        { &options->vocab, &train->vocab_size },
        { &options->len, &train->max_len },
        { &options->steps, &train->n_steps },
        { &options->batch, &train->batch },
        { &options->accumulate, &train->accumulate },
        { &options->warmup, &train->warmup },
        { &options->report_every, &train->report_every },
        { &options->checkpoint_every, &train->checkpoint_every },
    };
    qkv_train_options_default(train);
    for (int i = 0; i < CLI_COUNT(numbers); i++)
        if (numbers[i].given->set) *numbers[i].field = numbers[i].given->value;
    if (options->hidden.set && !options->intermediate.set) train->intermediate = 4 * train->hidden;
    if (options->steps.set && !options->warmup.set && train->warmup > train->n_steps / 10)
        train->warmup = train->n_steps / 10;
    if (options->rate.set) train->learning_rate = options->rate.value;
    if (options->dropout.set) train->dropout = options->dropout.value;
    if (options->smoothing.set) train->label_smoothing = options->smoothing.value;
    if (options->arch.set) train->arch = (int)options->arch.value;
    if (options->compute.set) train->compute = (int)options->compute.value; /* qkv_model_weights */
    train->from = options->from;
    if (options->seed.set) train->seed = (uint64_t)options->seed.value;
    train->text = options->text;
    train->grammar = options->grammar;
    train->out = options->out;
    train->resume = options->resume ? options->out : NULL;
    train->sinusoidal_positions = options->sinusoidal;
}

/* --------------------------------------------------------------------------------------------- */

static int run_training(qkv_ctx *ctx, const struct train_options *options,
                        const qkv_train_options *train, qkv_arch *arch) {
    const struct cli_common *common = &options->common;
    struct reporter reporter = { .common = common };
    qkv_train_options own = *train;
    own.report = on_report;
    own.report_user = &reporter;
    own.cancel = &cli_cancelled;
    progress_begin(&reporter.progress, common->quiet || common->json);
    const double start = cli_seconds();
    qkv_error error;
    const qkv_status status = qkv_train(ctx, &own, &error);
    progress_end(&reporter.progress);
    *arch = reporter.arch;
    if (status == QKV_ERR_CANCELLED)
        return cli_fail("%s: the same command with --resume goes on", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    char time[32];
    cli_note(common->quiet, "qkv: trained %" PRId64 " steps in %s: %s", own.n_steps,
             duration(cli_seconds() - start, time), own.out);
    return EXIT_OK;
}

static int evaluate(qkv_ctx *ctx, const struct train_options *options,
                    const qkv_train_options *train) {
    qkv_model *model = NULL;
    qkv_error error;
    if (qkv_model_open(train->out, &model, &error) != QKV_OK) return cli_fail("%s", error.message);
    const int code = eval_and_print(ctx, model, options->eval, NULL, train->seed, &options->common);
    qkv_model_free(model);
    return code;
}

/* What --from decides; NULL if nothing of it was given. */
static const char *given_size(const struct train_options *options) {
    const struct {
        const char *name;
        bool given;
    } sizes[] = { { "--arch", options->arch.set },
                  { "--layers", options->layers.set },
                  { "--decoder-layers", options->decoder_layers.set },
                  { "--heads", options->heads.set },
                  { "--hidden", options->hidden.set },
                  { "--intermediate", options->intermediate.set },
                  { "--vocab", options->vocab.set },
                  { "--sinusoidal", options->sinusoidal } };
    for (int i = 0; i < CLI_COUNT(sizes); i++)
        if (sizes[i].given) return sizes[i].name;
    return NULL;
}

static int train(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    const struct train_options *options = data;
    if (!options->text == !options->grammar)
        return cli_usage(command, options->text ? "--text and --grammar together: give one of them"
                                                : "--text or --grammar is missing");
    if (options->from && given_size(options))
        return cli_usage(command, "--from and %s together: the model has its own",
                         given_size(options));
    cli_catch_interrupts();
    qkv_train_options train_options;
    qkv_arch arch = QKV_ARCH_BERT;
    fill(options, &train_options);
    qkv_ctx *ctx = NULL;
    int code = session_context(command, &options->common, &ctx);
    if (!code) code = run_training(ctx, options, &train_options, &arch);
    if (!code)
        code = train_curve_write(
            &train_options, arch == QKV_ARCH_BERT ? "loss (MLM + NSP)" : "loss", &options->common);
    if (!code && options->eval && !cli_cancelled) code = evaluate(ctx, options, &train_options);
    /* An interruption that came too late to stop anything is none. */
    if (!code && !options->eval) __atomic_store_n(&cli_cancelled, 0, __ATOMIC_RELAXED);
    qkv_ctx_destroy(ctx);
    return code;
}

#define TEXT_OPTION(option_name, argument_name, field_name, is_required, what, text)               \
    {                                                                                              \
        .name = option_name, .argument = argument_name, .help = text, .kind = ARG_TEXT,            \
        .offset = offsetof(struct train_options, field_name), .required = is_required,             \
        .suggest = what                                                                            \
    }
#define NUMBER_OPTION(option_name, field_name, least, most, text)                                  \
    {                                                                                              \
        .name = option_name, .argument = "N", .help = text, .kind = ARG_INT,                       \
        .offset = offsetof(struct train_options, field_name), .min = least, .max = most            \
    }

#define REAL_OPTION(option_name, field_name, text)                                                 \
    {                                                                                              \
        .name = option_name, .argument = "X", .help = text, .kind = ARG_REAL,                      \
        .offset = offsetof(struct train_options, field_name)                                       \
    }

static const struct cli_option train_table[] = {
    TEXT_OPTION(
        "--text", "F", text, false, "*",
        "a text, in lines: a sentence, or two separated by a tab; gpt2: a document; encdec: "
        "a source, a tab, its target"),
    TEXT_OPTION("--grammar", "F", grammar, false, ".txt", "or a grammar that makes sentences"),
    TEXT_OPTION("--out", "DIR", out, true, "/", "the folder for the model"),
    { .name = "--resume",
      .help = "go on where a stopped run left the folder",
      .kind = ARG_FLAG,
      .offset = offsetof(struct train_options, resume) },
    { .name = "--arch",
      .argument = "bert|gpt2|encdec",
      .help = "what to train: an encoder that fills blanks, a decoder that goes on writing, or one "
              "over an encoder that translates (bert)",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct train_options, arch) },
    TEXT_OPTION("--from", "DIR", from, false, "/",
                "start from this model, which keeps its sizes and its vocabulary"),
    { .name = "--compute",
      .argument = "f32|bf16|bf16-dp|bf16-amx",
      .help =
          "what linear layers compute in; weights stay f32. bf16: the faster of the two classes "
          "here, amx where there is AMX, else dp; named, a class has the same bits everywhere, "
          "slowly where its instruction is missing (f32)",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct train_options, compute) },
    NUMBER_OPTION("--layers", layers, 1, 1000, "layers (4)"),
    NUMBER_OPTION("--decoder-layers", decoder_layers, 1, 1000,
                  "layers of the decoder of an encdec (as --layers)"),
    NUMBER_OPTION("--heads", heads, 1, 1000, "heads in each (4)"),
    NUMBER_OPTION("--hidden", hidden, 1, 65536, "hidden size (128)"),
    NUMBER_OPTION("--intermediate", intermediate, 1, 1 << 20,
                  "size of the feed-forward layer (4 x hidden)"),
    NUMBER_OPTION("--vocab", vocab, 1, 1 << 20, "pieces in the vocabulary (2000)"),
    NUMBER_OPTION("--len", len, 4, 65536, "tokens in a sequence, at most (32)"),
    NUMBER_OPTION("--steps", steps, 1, 1 << 30, "steps (3000)"),
    NUMBER_OPTION("--batch", batch, 1, 1 << 20, "sequences in a step (128)"),
    REAL_OPTION("--lr", rate, "highest learning rate (0.0015)"),
    NUMBER_OPTION("--accumulate", accumulate, 1, 65536,
                  "parts of a step, each of --batch sequences (1)"),
    REAL_OPTION("--dropout", dropout, "share of values that are dropped in training (0)"),
    REAL_OPTION("--label-smoothing", smoothing,
                "share of a target that all words get; gpt2, encdec (0)"),
    NUMBER_OPTION("--warmup", warmup, 0, 1 << 30, "steps of warm-up (200, at most steps / 10)"),
    NUMBER_OPTION("--seed", seed, 0, INT64_MAX, "seed of everything random (1)"),
    NUMBER_OPTION("--report-every", report_every, 1, 1 << 30, "steps between reports (20)"),
    NUMBER_OPTION("--checkpoint-every", checkpoint_every, 1, 1 << 30,
                  "steps between checkpoints (100)"),
    { .name = "--sinusoidal",
      .help = "fixed positions from sines, instead of learned ones",
      .kind = ARG_FLAG,
      .offset = offsetof(struct train_options, sinusoidal) },
    TEXT_OPTION("--eval", "F", eval, false, "*", "a text to measure the trained model on"),
};

const struct cli_command cmd_train = {
    .name = "train",
    .summary = "train a small model on your text",
    .words = "",
    .details =
        "Makes a vocabulary from the text, then trains a model with AdamW: a BERT on masked words "
        "and next sentences, a GPT-2 on the next token, or a BART on translations. With --from, a "
        "model that is there is trained further. The folder gets the model, as transformers reads "
        "it, its tokenizer, train_log.tsv and loss.png. The "
        "same options give the same bits for any number of threads and any instruction set; with "
        "--compute bf16, on processors of the same kind. "
        "Ctrl-C stops after the current step and keeps a checkpoint; the same command with "
        "--resume goes on from it, also after a crash, and ends with the same bits.\n\n"
        "    qkv train --text sentences.txt --out my-model --steps 1000\n"
        "    qkv train --arch encdec --text pairs.tsv --out my-translator\n\n"
        "--json: an object on standard output for each report.",
    .max_words = 0,
    .takes = TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET,
    .options = train_table,
    .n_options = CLI_COUNT(train_table),
    .options_bytes = sizeof(struct train_options),
    .run = train,
};
