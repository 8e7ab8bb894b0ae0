/*
 * `qkv explain`: attention step by step with the real numbers. Which head and query, and where the lesson
 * goes; explain_*.c make the lessons.
 */
#include "explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "choose.h"

enum { KEYS_ON_TERMINAL = 24, KEYS_ON_PAGE = 200, PAGE_COMPONENTS = 8 };

/* A job over texts, and the head that was named. */
struct explain_job {
    struct text_job texts;
    bool given;
    int64_t layer, head;
};

/* ---- Where a lesson goes --------------------------------------------------------------------- */

static void begin(struct lesson *lesson, struct term *term, const struct explain_options *options) {
    term_init(term, stdout, &options->common);
    lesson_begin(lesson, options->out ? PAGE_COMPONENTS : lesson_components(term), options->shapes);
}

/* Shows it, frees it. */
static qkv_status deliver(struct lesson *lesson, struct term *term,
                          const struct explain_options *options, qkv_error *error) {
    qkv_status status = QKV_OK;
    if (lesson->failed)
        status = text_error(error, QKV_ERR_MEMORY, "out of memory");
    else if (options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (options->out)
        status = lesson_page(lesson, options->out, error);
    else
        lesson_print(lesson, term);
    lesson_free(lesson);
    if (status == QKV_OK && options->out)
        cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}

/* ---- A text ---------------------------------------------------------------------------------- */

/* The token that --query names: its position, or its text if that stands once. */
static qkv_status find_query(struct text_job *job, const struct explain_text *t, const char *name,
                             int64_t *query, qkv_error *error) {
    int64_t first = -1, second = -1;
    if (args_int(name, 0, INT64_MAX, query)) {
        if (*query < t->input->n) return QKV_OK;
        job->usage = true;
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--query: there is no token %s: the text has tokens 0 to %" PRId64, name,
                          t->input->n - 1);
    }
    for (int64_t i = t->input->n - 1; i >= 0; i--)
        if (strcmp(t->labels[i], name) == 0) second = first, first = i;
    *query = first;
    if (first >= 0 && second < 0) return QKV_OK;
    job->usage = true;
    if (first >= 0)
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--query: '%.60s' is token %" PRId64 " and token %" PRId64
                          ": name one by its number",
                          name, first, second);
    return text_error(error, QKV_ERR_ARGUMENT, "--query: the text has no token '%.60s'", name);
}

/* Head and query, as `look` would choose them. */
static qkv_status choose(struct text_job *job, const qkv_run *run, struct explain_text *t,
                         struct choice *choice, qkv_error *error) {
    const struct explain_job *self = (const struct explain_job *)job;
    const qkv_model_info *info = job->session.info;
    qkv_head_stats *stats = calloc((size_t)(info->n_layers * info->n_heads) + 1, sizeof(*stats));
    if (!stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    *choice = (struct choice){ .layer = self->layer, .head = self->head };
    qkv_status status =
        qkv_inspect_heads(job->session.ctx, job->session.model, run, 0, t->input, stats, error);
    if (status == QKV_OK)
        status = choose_head(&job->session, run, t->input, stats, self->given, choice, error);
    free(stats);
    if (status != QKV_OK) return status;
    if (choice->query < 0) choice->query = 0;
    if (t->options->query) return find_query(job, t, t->options->query, &choice->query, error);
    t->rule = self->given ? NULL : choice->rule;
    return QKV_OK;
}

static qkv_status show(struct explain_text *t, json_t **json, qkv_error *error) {
    if (json) return explain_model_json(t, json, error);
    struct lesson lesson;
    struct term term;
    begin(&lesson, &term, t->options);
    explain_model(&lesson, t, t->options->out ? KEYS_ON_PAGE : KEYS_ON_TERMINAL);
    return deliver(&lesson, &term, t->options, error);
}

/* The order of its words, in the named head of layer 0, else in head 0. */
static qkv_status show_shuffled(struct text_job *job, struct explain_text *t, qkv_error *error) {
    const struct explain_job *self = (const struct explain_job *)job;
    struct lesson lesson;
    struct term term;
    if (self->given && self->layer != 0) {
        job->usage = true;
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--shuffle looks at a head of layer 0, not of layer %" PRId64,
                          self->layer);
    }
    begin(&lesson, &term, t->options);
    const qkv_status status = explain_shuffle(&lesson, t, self->head, error);
    if (status == QKV_OK) return deliver(&lesson, &term, t->options, error);
    lesson_free(&lesson);
    return status;
}

static qkv_status answer_shuffled(struct text_job *job, const qkv_encoding *input, json_t **json,
                                  qkv_error *error) {
    (void)json;
    struct explain_text t = { .session = &job->session, .options = job->options, .input = input };
    qkv_status status = session_labels(&job->session, input, &t.labels, error);
    if (status == QKV_OK) status = show_shuffled(job, &t, error);
    session_labels_free(t.labels, input->n);
    return status;
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct session *session = &job->session;
    struct explain_text t = { .session = session, .options = job->options, .input = input };
    qkv_run *run = NULL;
    qkv_steps *steps = NULL;
    struct choice choice;
    qkv_status status = qkv_model_run(session->ctx, session->model, 1, &input,
                                      QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, &run, error);
    if (status == QKV_OK) status = session_labels(session, input, &t.labels, error);
    if (status == QKV_OK) status = choose(job, run, &t, &choice, error);
    if (status == QKV_OK)
        status = qkv_inspect_steps(session->model, run, 0, input, choice.layer, choice.head,
                                   choice.query, &steps, error);
    t.steps = steps;
    if (status == QKV_OK) status = show(&t, json, error);
    qkv_steps_free(steps);
    session_labels_free(t.labels, input->n);
    qkv_run_free(run);
    return status;
}

static int explain_a_text(const struct cli_command *command, const struct explain_options *options,
                          int n_words, char **words) {
    struct explain_job job = { .texts = { .options = options,
                                          .pair = options->pair,
                                          .answer = options->shuffle ? answer_shuffled : answer } };
    struct session *session = &job.texts.session;
    int code = session_open(session, command, &options->common);
    if (code) return code;
    code = session_head(session, &job.given, &job.layer, &job.head);
    if (code == EXIT_OK) return text_job_run(&job.texts, n_words, words);
    session_close(session);
    return code;
}

/* ---- Without a text -------------------------------------------------------------------------- */

static qkv_status make(const struct explain_options *options, qkv_ctx *ctx, struct lesson *lesson,
                       const struct term *term, qkv_error *error) {
    if (options->no_scale) return explain_scale(ctx, lesson, (uint64_t)options->seed.value, error);
    if (options->positions) {
        struct sinusoids sinusoids;
        const qkv_status status = explain_sinusoids(options, &sinusoids, error);
        if (status == QKV_OK)
            explain_positions(lesson, &sinusoids, options->out ? 100 : term->width);
        free(sinusoids.table);
        return status;
    }
    if (options->q)
        return explain_arrays(ctx, lesson, options, options->out ? KEYS_ON_PAGE : KEYS_ON_TERMINAL,
                              error);
    return explain_example(ctx, lesson, options, error);
}

static bool ends_in(const char *path, const char *ending) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ending) == 0;
}

static qkv_status draw_picture(const struct explain_options *options, qkv_ctx *ctx,
                               qkv_error *error) {
    const qkv_status status = options->no_scale ? explain_scale_picture(ctx, options, error)
                                                : explain_positions_picture(options, error);
    if (status == QKV_OK) cli_note(options->common.quiet, "qkv: wrote %s", options->out);
    return status;
}

/* A picture, which only --no-scale and --positions have; JSON, which only --no-scale has; a lesson. */
static qkv_status answer_without(const struct explain_options *options, qkv_ctx *ctx, json_t **json,
                                 qkv_error *error) {
    if (options->out && !ends_in(options->out, ".html")) return draw_picture(options, ctx, error);
    if (options->common.json)
        return explain_scale_json(ctx, (uint64_t)options->seed.value, json, error);
    struct lesson lesson;
    struct term term;
    begin(&lesson, &term, options);
    const qkv_status status = make(options, ctx, &lesson, &term, error);
    if (status == QKV_OK) return deliver(&lesson, &term, options, error);
    lesson_free(&lesson);
    return status;
}

static int explain_without(const struct cli_command *command,
                           const struct explain_options *options) {
    qkv_ctx *ctx;
    qkv_error error;
    json_t *json = NULL;
    const int code = session_context(command, &options->common, &ctx);
    if (code) return code;
    const qkv_status status = answer_without(options, ctx, &json, &error);
    qkv_ctx_destroy(ctx);
    if (status != QKV_OK && strncmp(error.message, "--query: ", 9) == 0)
        return cli_usage(command, "%s", error.message);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return !json || json_print(stdout, json) ? EXIT_OK : EXIT_FAILED;
}

/* ---- The command ----------------------------------------------------------------------------- */

static int check_out(const struct cli_command *command, const struct explain_options *o) {
    if (!o->out) return EXIT_OK;
    const bool picture =
        ends_in(o->out, ".png") || ends_in(o->out, ".svg") || ends_in(o->out, ".pdf");
    if (!ends_in(o->out, ".html") && !(picture && (o->no_scale || o->positions)))
        return cli_usage(command, "-o: '%s' ends in %s", o->out,
                         o->no_scale || o->positions ? "none of .html .png .svg .pdf"
                         : picture ? "a picture's ending: only --no-scale and --positions draw one"
                                   : "something else than .html");
    if (o->common.json || o->common.jsonl)
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    qkv_error error;
    return qkv_file_writable(o->out, &error) == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
}

/* What is about another kind of lesson than the one that is asked for, or NULL. */
static const char *stray(const struct explain_options *o, bool has_text) {
    const bool alone = o->no_scale || o->positions;
    const bool needs_text = o->common.head || o->common.layer.set || o->common.model || o->pair;
    if (has_text && alone) return "a text";
    if (o->q && has_text) return "a text";
    if ((alone || o->shuffle) && (o->query || o->q || o->causal))
        return o->query ? "--query" : o->q ? "--q" : "--causal";
    if (has_text && o->causal) return "--causal";
    if (o->shapes && (alone || o->shuffle)) return "--shapes";
    if (!has_text && !o->shuffle && needs_text)
        return o->pair ? "--pair" : o->common.model ? "--model" : "--head";
    if (o->shuffle && (o->common.json || o->common.jsonl)) return "--json";
    if (!has_text && o->common.json && !o->no_scale) return "--json";
    if (!o->positions && (o->length.set || o->dim.set)) return o->length.set ? "--length" : "--dim";
    if (!o->no_scale && !o->shuffle && o->seed.set) return "--seed";
    return NULL;
}

static int check_kind(const struct cli_command *command, const struct explain_options *o,
                      bool has_text) {
    if (o->no_scale + o->positions + o->shuffle > 1)
        return cli_usage(command, "%s together with %s", o->no_scale ? "--no-scale" : "--positions",
                         o->no_scale && o->positions ? "--positions" : "--shuffle");
    if (!o->q != !o->k || !o->q != !o->v)
        return cli_usage(command, "%s is missing: arrays are --q, --k and --v",
                         !o->q   ? "--q"
                         : !o->k ? "--k"
                                 : "--v");
    const char *word = stray(o, has_text);
    if (!word) return EXIT_OK;
    if (o->no_scale || o->positions || o->shuffle)
        return cli_usage(command, "%s together with %s", word,
                         o->no_scale    ? "--no-scale"
                         : o->positions ? "--positions"
                                        : "--shuffle");
    if (has_text && (o->q || o->causal))
        return cli_usage(command, "%s together with %s", word, o->q ? "--q" : "a text");
    const char *with = strcmp(word, "--seed") == 0 ? "--no-scale or --shuffle"
                       : strcmp(word, "--length") == 0 || strcmp(word, "--dim") == 0 ? "--positions"
                                                                                     : "a TEXT";
    return cli_usage(command, "%s without %s", word, with);
}

static int explain(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct explain_options *options = data;
    int code = check_kind(command, options, n_words > 0 || options->common.jsonl);
    if (code == EXIT_OK) code = check_out(command, options);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    char *sentence = (char *)(uintptr_t) "The dog saw the cat.";
    if (options->shuffle && n_words == 0) return explain_a_text(command, options, 1, &sentence);
    if (n_words > 0 || options->common.jsonl)
        return explain_a_text(command, options, n_words, words);
    return explain_without(command, options);
}

#define OPTION(field) offsetof(struct explain_options, field)

static const struct cli_option explain_table[] = {
    { .name = "--query",
      .argument = "N|TOKEN",
      .help = "the query: its position from 0, or its token (default: the one that `look` names)",
      .kind = ARG_TEXT,
      .offset = OPTION(query) },
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = OPTION(pair) },
    { .name = "--q",
      .argument = "F",
      .help = "queries, [n, head_dim] (F.npy or F.safetensors:NAME), in place of a text",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .safetensors" },
    { .name = "--k",
      .argument = "F",
      .help = "keys, [m, head_dim], with --q",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .safetensors" },
    { .name = "--v",
      .argument = "F",
      .help = "values, [m, head_dim_v], with --q",
      .kind = ARG_TEXT,
      .offset = OPTION(v),
      .suggest = ".npy .safetensors" },
    { .name = "--causal",
      .help = "without a text: keys after the query are hidden",
      .kind = ARG_FLAG,
      .offset = OPTION(causal) },
    { .name = "--shapes",
      .help = "also the shape of what each step makes",
      .kind = ARG_FLAG,
      .offset = OPTION(shapes) },
    { .name = "--no-scale",
      .help = "why scores are divided by sqrt(d): softmax without it and with it, as d grows",
      .kind = ARG_FLAG,
      .offset = OPTION(no_scale) },
    { .name = "--positions",
      .help = "draw sinusoidal positions",
      .kind = ARG_FLAG,
      .offset = OPTION(positions) },
    { .name = "--length",
      .argument = "N",
      .help = "with --positions: how many (default: 48)",
      .kind = ARG_INT,
      .offset = OPTION(length),
      .min = 1,
      .max = 4096 },
    { .name = "--dim",
      .argument = "N",
      .help = "with --positions: how many channels (default: 64)",
      .kind = ARG_INT,
      .offset = OPTION(dim),
      .min = 2,
      .max = 4096 },
    { .name = "--shuffle",
      .help = "shuffle the words: without positions attention does not notice",
      .kind = ARG_FLAG,
      .offset = OPTION(shuffle) },
    { .name = "--seed",
      .argument = "N",
      .help = "of --no-scale and --shuffle (default: 0)",
      .kind = ARG_INT,
      .offset = OPTION(seed),
      .min = 0,
      .max = INT64_MAX },
    { .name = "-o",
      .argument = "FILE",
      .help = "write a page for a browser (.html) instead; with --no-scale and --positions also a "
              "picture (.png, .svg, .pdf)",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".html .png .svg .pdf" },
};

const struct cli_command cmd_explain = {
    .name = "explain",
    .summary = "the computation step by step, with the real numbers",
    .words = "[TEXT]",
    .details =
        "Follows one query through one head of a model, from token ids to the output of the layer: "
        "embedding, projections, q.k with every key, / sqrt(d), mask, softmax, the mix of values, "
        "all heads, output projection, add & norm, feed-forward, each with its numbers. The steps "
        "are "
        "computed again in double precision; the last one says how far the library is from them. "
        "Head and query are those that `look` shows, unless they are named.\n\n"
        "    qkv explain\n"
        "    qkv explain \"I was watching the [MASK] when it opened.\" --shapes\n"
        "    qkv explain \"I was watching the [MASK] when it opened.\" -o steps.html\n"
        "    qkv explain --no-scale\n"
        "    qkv explain --positions\n"
        "    qkv explain --shuffle \"The dog saw the cat.\"\n\n"
        "Without a TEXT it is an example of five words, whose numbers can be checked by hand, or, "
        "with "
        "--q, --k and --v, arrays of yours. "
        "--no-scale shows what softmax does to dot products of longer and longer random vectors, "
        "--positions draws sinusoids, --shuffle shows that attention alone does not know the order "
        "of "
        "words.\n\n"
        "--json: {\"layer\", \"head\", \"query\", \"tokens\", \"scale\", \"q\", \"products\", "
        "\"scores\", \"weights\", \"o\", ..., \"y\", \"differences\"}, with --no-scale {\"seed\", "
        "\"n_keys\", \"rows\": [{\"d\", \"scale\", \"variance\", \"entropy\", \"largest\", "
        "\"gradient\"}]}.",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE | TAKES_JSON |
             TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = explain_table,
    .n_options = CLI_COUNT(explain_table),
    .options_bytes = sizeof(struct explain_options),
    .run = explain,
};
