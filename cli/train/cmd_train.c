/*
 * `qkv train`: a small model from text or from a grammar, or a model made better at one, with
 * progress and a picture of the loss.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/input.h"
#include "common/term.h"
#include "train/curve.h"
#include "train/eval_report.h"

struct train_options {
    struct cli_common common;
    const char *text, *grammar, *out, *eval, *from;
    bool resume, sinusoidal;
    struct arg_int arch, compute, layers, decoder_layers, heads, hidden, intermediate, vocab, len;
    struct arg_int steps, batch, accumulate, warmup, seed, report_every, checkpoint_every;
    struct arg_real rate, dropout, smoothing, beta1, beta2, eps, decay, clip;
};

struct reporter {
    const struct cli_common *common;
    struct progress progress;
    bool told; /* of a step, so some were made */
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
    if (report->kind == QKV_MODEL_ENCODER) json_object_update(object, bert);
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
    self->told = true;
    if (report->kind == QKV_MODEL_ENCODER)
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
    const struct {
        const struct arg_real *given;
        double *field;
    } reals[] = {
        { &options->rate, &train->learning_rate },
        { &options->dropout, &train->dropout },
        { &options->smoothing, &train->label_smoothing },
        { &options->beta1, &train->beta1 },
        { &options->beta2, &train->beta2 },
        { &options->eps, &train->eps },
        { &options->decay, &train->weight_decay },
        { &options->clip, &train->clip },
    };
    *train = qkv_train_options_init();
    for (int i = 0; i < CLI_COUNT(numbers); i++)
        if (numbers[i].given->set) *numbers[i].field = numbers[i].given->value;
    for (int i = 0; i < CLI_COUNT(reals); i++)
        if (reals[i].given->set) *reals[i].field = reals[i].given->value;
    if (options->hidden.set && !options->intermediate.set) train->intermediate = 4 * train->hidden;
    if (options->steps.set && !options->warmup.set && train->warmup > train->n_steps / 10)
        train->warmup = train->n_steps / 10;
    if (options->arch.set) train->kind = (qkv_model_kind)options->arch.value;
    if (options->compute.set) train->compute = (qkv_model_weights)options->compute.value;
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
                        const qkv_train_options *train) {
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
    if (status == QKV_ERR_CANCELLED)
        return cli_fail("%s: the same command with --resume goes on", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    char time[32];
    if (reporter.told)
        cli_note(common->quiet, "qkv: trained %" PRId64 " steps in %s: %s", own.n_steps,
                 duration(cli_seconds() - start, time), own.out);
    else
        cli_note(common->quiet, "qkv: all %" PRId64 " steps were made before: %s", own.n_steps,
                 own.out);
    return EXIT_OK;
}

static int evaluate(qkv_ctx *ctx, const struct train_options *options,
                    const qkv_train_options *train) {
    qkv_model *model = NULL;
    qkv_error error;
    if (qkv_model_open(train->out, NULL, &model, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    const int code = eval_and_print(ctx, model, options->eval, NULL, train->seed, &options->common);
    qkv_model_free(model);
    return code;
}

/* A text to measure on that is not there is told before the model is trained. Opening a pipe would take what it holds. */
static int check_eval(const char *path) {
    struct stat status;
    if (!path) return EXIT_OK;
    if (stat(path, &status) != 0 || access(path, R_OK) != 0)
        return cli_fail("%s: cannot open: %s", path, strerror(errno));
    return S_ISDIR(status.st_mode) ? cli_fail("%s: cannot read: %s", path, strerror(EISDIR))
                                   : EXIT_OK;
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
    if (options->eps.set && options->eps.value == 0) /* which means the default to the library */
        return cli_usage(command, "--eps must be above 0");
    if (options->from && given_size(options))
        return cli_usage(command, "--from and %s together: the model has its own",
                         given_size(options));
    cli_catch_interrupts();
    qkv_train_options train_options;
    fill(options, &train_options);
    qkv_ctx *ctx = NULL;
    int code = check_eval(options->eval);
    if (!code) code = session_context(command, &options->common, &ctx);
    if (!code) code = run_training(ctx, options, &train_options);
    if (!code) code = train_curve_write(&train_options, &options->common);
    if (!code && options->eval && !cli_cancelled) code = evaluate(ctx, options, &train_options);
    /* An interruption that came too late to stop anything is none. */
    if (!code && !options->eval) __atomic_store_n(&cli_cancelled, 0, __ATOMIC_RELAXED);
    qkv_ctx_destroy(ctx);
    return code;
}

#define TEXT_OPTION(option_name, argument_name, field_name, is_required, what)                     \
    {                                                                                              \
        .name = option_name, .argument = argument_name, .kind = ARG_TEXT,                          \
        .offset = offsetof(struct train_options, field_name), .required = is_required,             \
        .suggest = what                                                                            \
    }
#define NUMBER_OPTION(option_name, field_name, least, most)                                        \
    {                                                                                              \
        .name = option_name, .argument = "N", .kind = ARG_INT,                                     \
        .offset = offsetof(struct train_options, field_name), .min = least, .max = most            \
    }

#define REAL_OPTION(option_name, field_name)                                                       \
    {                                                                                              \
        .name = option_name, .argument = "X", .kind = ARG_REAL,                                    \
        .offset = offsetof(struct train_options, field_name)                                       \
    }

static const struct cli_option train_table[] = {
    TEXT_OPTION("--text", "F", text, false, "*"),
    TEXT_OPTION("--grammar", "F", grammar, false, ".txt"),
    TEXT_OPTION("--out", "DIR", out, true, "/"),
    { .name = "--resume", .kind = ARG_FLAG, .offset = offsetof(struct train_options, resume) },
    { .name = "--arch",
      .argument = "bert|gpt2|encdec",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct train_options, arch) },
    TEXT_OPTION("--from", "DIR", from, false, "/"),
    { .name = "--compute",
      .argument = "f32|bf16|bf16-dp|bf16-amx",
      .kind = ARG_CHOICE,
      .offset = offsetof(struct train_options, compute) },
    NUMBER_OPTION("--layers", layers, 1, 1000),
    NUMBER_OPTION("--decoder-layers", decoder_layers, 1, 1000),
    NUMBER_OPTION("--heads", heads, 1, 1000),
    NUMBER_OPTION("--hidden", hidden, 1, 65536),
    NUMBER_OPTION("--intermediate", intermediate, 1, 1 << 20),
    NUMBER_OPTION("--vocab", vocab, 1, 1 << 20),
    NUMBER_OPTION("--len", len, 4, 65536),
    NUMBER_OPTION("--steps", steps, 1, 1 << 30),
    NUMBER_OPTION("--batch", batch, 1, 1 << 20),
    REAL_OPTION("--lr", rate),
    NUMBER_OPTION("--accumulate", accumulate, 1, 65536),
    REAL_OPTION("--dropout", dropout),
    REAL_OPTION("--label-smoothing", smoothing),
    REAL_OPTION("--beta1", beta1),
    REAL_OPTION("--beta2", beta2),
    REAL_OPTION("--eps", eps),
    REAL_OPTION("--weight-decay", decay),
    REAL_OPTION("--clip", clip),
    NUMBER_OPTION("--warmup", warmup, 0, 1 << 30),
    NUMBER_OPTION("--seed", seed, 0, INT64_MAX),
    NUMBER_OPTION("--report-every", report_every, 1, 1 << 30),
    NUMBER_OPTION("--checkpoint-every", checkpoint_every, 1, 1 << 30),
    { .name = "--sinusoidal",
      .kind = ARG_FLAG,
      .offset = offsetof(struct train_options, sinusoidal) },
    TEXT_OPTION("--eval", "F", eval, false, "*"),
};

const struct cli_command cmd_train = {
    .name = "train",
    .summary = "train a small model on your text",
    .words = "",
    .max_words = 0,
    .takes = TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET,
    .options = train_table,
    .n_options = CLI_COUNT(train_table),
    .options_bytes = sizeof(struct train_options),
    .run = train,
};
