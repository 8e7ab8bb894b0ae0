/*
 * `qkv train`: a small model from text or from a grammar, or a model made better at one, with
 * progress and a picture of the loss.
 */
#include <errno.h>
#include <inttypes.h>

#include "common/conflicts.h"
#include "common/ranks.h"
#include "common/shared.h"
#include "core/os.h"
#include "train/train.h"

struct train_options {
    struct cli_common common;
    const char *text, *grammar, *images, *out, *eval, *from;
    struct arg_int image_size, patch_size;
    bool shapes, resume, sinusoidal, share_moments;
    struct arg_int arch, compute, layers, decoder_layers, heads, kv_heads, hidden, intermediate,
        vocab, len;
    struct arg_int steps, batch, accumulate, slices, warmup, seed, report_every, checkpoint_every;
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
    const bool of_bert = report->kind == QKV_MODEL_ENCODER && !report->of_images;
    json_t *const object =
        json_set(NULL, "step:i n_steps:i loss:n", report->step, report->n_steps, report->loss);
    if (of_bert) json_set(object, "mlm_loss:n nsp_loss:n", report->mlm_loss, report->nsp_loss);
    if (report->of_images)
        json_set(object, "label_loss:n held_out_right:n", report->label_loss,
                 report->held_out_right);
    json_set(object, "held_out_loss:n learning_rate:n tokens_per_second:n seconds:n seconds_left:n",
             report->held_out_loss, report->learning_rate, report->tokens_per_second,
             report->seconds, report->seconds_left);
    json_print(stdout, object);
    cli_flush();
}

/* On a terminal one line that is rewritten; elsewhere a line for each report. */
static int on_report(void *user, const qkv_train_report *report) {
    struct reporter *self = user;
    char line[240], parts[80] = "", left[32];
    self->told = true;
    if (report->of_images)
        snprintf(parts, sizeof parts, " (%.1f %% right)", 100 * report->held_out_right);
    else if (report->kind == QKV_MODEL_ENCODER)
        snprintf(parts, sizeof parts, " (mlm %.3f, nsp %.3f)", report->mlm_loss, report->nsp_loss);
    snprintf(line, sizeof line,
             "step %" PRId64 "/%" PRId64 "  loss %.3f%s  held out %.3f%s  %.0f tokens/s  %s left",
             report->step, report->n_steps, report->loss, report->of_images ? "" : parts,
             report->held_out_loss, report->of_images ? parts : "", report->tokens_per_second,
             duration(report->seconds_left, left));
    if (self->common->json)
        print_json(report);
    else if (!self->progress.on)
        cli_note(self->common->quiet, "%s", line);
    progress_text(&self->progress, line);
    return 0;
}

/* After those that are kinds of models. */
enum { ARCH_LLAMA = QKV_MODEL_PAIR + 1 };

static void fill(const struct cli_command *command, const struct train_options *options,
                 qkv_train_options *train) {
    *train = qkv_train_options_init();
    args_apply(command, options, train);
    if (options->hidden.set && !options->intermediate.set) train->intermediate = 4 * train->hidden;
    if (options->steps.set && !options->warmup.set && train->warmup > train->n_steps / 10)
        train->warmup = train->n_steps / 10;
    if (options->arch.set && options->arch.value == ARCH_LLAMA) {
        train->kind = QKV_MODEL_DECODER;
        train->architecture = "llama";
    } else if (options->arch.set) {
        train->kind = (qkv_model_kind)options->arch.value;
    }
    if (options->compute.set) train->compute = (qkv_model_weights)options->compute.value;
    train->from = options->from;
    train->text = text_path(shared_copy(options->text));
    train->grammar = shared_copy(options->grammar);
    train->shapes = options->shapes;
    train->images = options->images;
    train->out = options->out;
    train->resume = options->resume ? options->out : NULL;
    train->sinusoidal_positions = options->sinusoidal;
    train->share_moments = options->share_moments;
}

/* --------------------------------------------------------------------------------------------- */

/* Of several ranks, the first speaks for all. */
static bool tells(const qkv_train_options *train) {
    return !train->ranks || train->ranks->rank == 0;
}

static int run_training(qkv_ctx *ctx, const struct train_options *options,
                        const qkv_train_options *train) {
    const struct cli_common *common = &options->common;
    struct reporter reporter = { .common = common };
    qkv_train_options own = *train;
    own.report = tells(train) ? on_report : NULL;
    own.report_user = &reporter;
    own.cancel = &cli_cancelled;
    progress_begin(&reporter.progress, common->quiet || common->json || !tells(train));
    const double start = cli_seconds();
    qkv_error error;
    const qkv_status status = qkv_train(ctx, &own, &error);
    progress_end(&reporter.progress);
    if (status != QKV_OK && !tells(train)) return EXIT_FAILED;
    if (status == QKV_ERR_CANCELLED)
        return cli_fail("%s: the same command with --resume goes on", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    char time[32];
    if (!tells(train)) return EXIT_OK;
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

/*
 * A text to measure on that is not there is told before the model is trained. Opening a pipe would
 * take what it holds.
 */
static int check_eval(const char *path) {
    qkvi_os_about about;
    if (!path) return EXIT_OK;
    if (qkvi_os_examine(path, &about) != 0)
        return cli_fail("%s: cannot open: %s", path, strerror(errno));
    if (about.kind == QKVI_OS_FOLDER)
        return cli_fail("%s: cannot read: %s", path, strerror(EISDIR));
    if (about.kind != QKVI_OS_FILE) return EXIT_OK;
    const int fd = qkvi_os_open_to_read(path);
    if (fd < 0) return cli_fail("%s: cannot open: %s", path, strerror(errno));
    qkvi_os_close(fd);
    return EXIT_OK;
}

/* Files that the library reads. */
static void say_marks(const struct train_options *options, const qkv_train_options *train) {
    char labels[SHARED_ROOM];
    const int n =
        snprintf(labels, sizeof labels, "%s/labels.tsv", train->images ? train->images : "");
    if (train->images && n < (int)sizeof labels) text_say_mark(labels, options->common.quiet);
    text_say_mark(train->text, options->common.quiet);
    text_say_mark(train->grammar, options->common.quiet);
    text_say_mark(options->eval, options->common.quiet);
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
                  { "--kv-heads", options->kv_heads.set },
                  { "--hidden", options->hidden.set },
                  { "--intermediate", options->intermediate.set },
                  { "--vocab", options->vocab.set },
                  { "--sinusoidal", options->sinusoidal } };
    for (int i = 0; i < CLI_COUNT(sizes); i++)
        if (sizes[i].given) return sizes[i].name;
    return NULL;
}

int check_source(const struct cli_command *command, const char *text, const char *grammar) {
    if (!text != !grammar) return EXIT_OK;
    return cli_usage(command, text ? "--text and --grammar together: give one of them"
                                   : "--text or --grammar is missing");
}

/* Pictures, or a text or a grammar. */
static int check_pictures(const struct cli_command *command, const struct train_options *options) {
    const char *const name = options->shapes ? "--shapes" : "--images";
    const char *const other =
        option_first(command, options, 0, "--text|--grammar|--from|--eval|--arch|--vocab|--len");
    const char *const size = option_first(command, options, 0, "--image-size|--patch-size");
    const bool pictures = options->shapes || options->images;
    if (!pictures && size) return cli_usage(command, "%s goes with --shapes or --images", size);
    if (!pictures) return check_source(command, options->text, options->grammar);
    if (options->shapes && options->images)
        return cli_usage(command, "--shapes and --images together: give one of them");
    return other ? cli_usage(command, "%s and %s together: the one is of images", name, other)
                 : EXIT_OK;
}

static int begin_ranks(const struct cli_command *command, const struct train_options *options,
                       qkv_train_options *train) {
    const int code = ranks_begin(false);
    train->ranks = ranks_of_training();
    if (code || !train->ranks || options->slices.set) return code;
    return cli_usage(command, "mpirun started %d ranks, but --slices is missing: they share slices",
                     train->ranks->n_ranks);
}

static int train(const struct cli_command *command, const void *data, int n_words, char **words) {
    (void)n_words, (void)words;
    const struct train_options *options = data;
    if (check_pictures(command, options)) return EXIT_USAGE;
    if (options->eps.set && options->eps.value == 0) /* which means the default to the library */
        return cli_usage(command, "--eps must be above 0");
    if (options->from && given_size(options))
        return cli_usage(command, "--from and %s together: the model has its own",
                         given_size(options));
    cli_catch_interrupts();
    qkv_train_options train_options;
    fill(command, options, &train_options);
    qkv_ctx *ctx = NULL;
    int code = check_eval(options->eval);
    if (!code) code = session_context(command, &options->common, &ctx);
    if (!code) code = begin_ranks(command, options, &train_options);
    if (!code) say_marks(options, &train_options);
    if (!code) code = run_training(ctx, options, &train_options);
    ranks_end();
    const bool goes_on = !code && tells(&train_options);
    if (goes_on) code = train_curve_write(&train_options, &options->common);
    if (goes_on && !code && options->eval && !cli_cancelled)
        code = evaluate(ctx, options, &train_options);
    /* An interruption that came too late to stop anything is none. */
    if (!code && !options->eval) __atomic_store_n(&cli_cancelled, 0, __ATOMIC_RELAXED);
    qkv_ctx_free(ctx);
    return code;
}

#define OPTIONS struct train_options
#define INTO    qkv_train_options

static const struct cli_option train_table[] = {
    OPTION_FILE("--text", "F", text, "*"),
    OPTION_FILE("--grammar", "F", grammar, ".txt"),
    OPTION_FLAG("--shapes", shapes),
    OPTION_FILE("--images", "DIR", images, "/"),
    OPTION_INT_INTO("--image-size", image_size, 1, 1024, image_size),
    OPTION_INT_INTO("--patch-size", patch_size, 1, 1024, patch_size),
    OPTION_NEEDED("--out", "DIR", out, "/"),
    OPTION_FLAG("--resume", resume),
    OPTION_CHOICE("--arch", "bert|gpt2|encdec|llama", arch),
    OPTION_FILE("--from", "MODEL", from, "/ .gguf"),
    OPTION_CHOICE("--compute", "f32|bf16|bf16-dp|bf16-amx", compute),
    OPTION_INT_INTO("--layers", layers, 1, 1000, n_layers),
    OPTION_INT_INTO("--decoder-layers", decoder_layers, 1, 1000, n_decoder_layers),
    OPTION_INT_INTO("--heads", heads, 1, 1000, n_heads),
    OPTION_INT_INTO("--kv-heads", kv_heads, 1, 1000, n_kv_heads),
    OPTION_INT_INTO("--hidden", hidden, 1, 65536, hidden),
    OPTION_INT_INTO("--intermediate", intermediate, 1, 1 << 20, intermediate),
    OPTION_INT_INTO("--vocab", vocab, 1, 1 << 20, vocab_size),
    OPTION_INT_INTO("--len", len, 4, 65536, max_len),
    OPTION_INT_INTO("--steps", steps, 1, 1 << 30, n_steps),
    OPTION_INT_INTO("--batch", batch, 1, 1 << 20, batch),
    OPTION_REAL_INTO("--lr", rate, learning_rate),
    OPTION_INT_INTO("--accumulate", accumulate, 1, 65536, accumulate),
    OPTION_INT_INTO("--slices", slices, 1, 65536, n_slices),
    OPTION_REAL_INTO("--dropout", dropout, dropout),
    OPTION_REAL_INTO("--label-smoothing", smoothing, label_smoothing),
    OPTION_REAL_INTO("--beta1", beta1, beta1),
    OPTION_REAL_INTO("--beta2", beta2, beta2),
    OPTION_REAL_INTO("--eps", eps, eps),
    OPTION_REAL_INTO("--weight-decay", decay, weight_decay),
    OPTION_REAL_INTO("--clip", clip, clip),
    OPTION_INT_INTO("--warmup", warmup, 0, 1 << 30, warmup),
    OPTION_INT_INTO("--seed", seed, 0, INT64_MAX, seed),
    OPTION_INT_INTO("--report-every", report_every, 1, 1 << 30, report_every),
    OPTION_INT_INTO("--checkpoint-every", checkpoint_every, 1, 1 << 30, checkpoint_every),
    OPTION_FLAG("--sinusoidal", sinusoidal),
    OPTION_FLAG("--share-moments", share_moments),
    OPTION_FILE("--eval", "F", eval, "*"),
};

const struct cli_command cmd_train = {
    .name = "train",
    .summary = "train a small model on your text",
    .words = "",
    .takes = TAKES_COMPUTE | TAKES_JSON | TAKES_QUIET,
    COMMAND_OPTIONS(train_table),
    .over_ranks = true,
    .run = train,
};
