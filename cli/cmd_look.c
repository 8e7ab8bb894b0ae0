/*
 * `qkv look`: where each token looks. Runs the model once with capture; look_*.c show what came
 * of it.
 */
#include "look.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A job over texts, and the head that was named. */
struct look_job {
    struct text_job texts;
    bool given;
    int64_t layer, head;
};

static qkv_status write_json(const struct look *look, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = look_json(look, &object, error);
    if (status != QKV_OK) return status;
    return json_write_file(path, object, error);
}

/* What -o can write, by the file's ending. */
static const struct output {
    const char *ending;
    qkv_status (*write)(const struct look *look, const char *path, qkv_error *error);
} outputs[] = {
    { ".png", look_picture }, { ".svg", look_picture }, { ".pdf", look_picture },
    { ".html", look_page },   { ".json", write_json },  { ".csv", look_csv },
    { ".npy", look_npy },
};

static const struct output *output_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < CLI_COUNT(outputs); i++)
        if (strcmp(dot, outputs[i].ending) == 0) return &outputs[i];
    return NULL;
}

/* A model without an MLM head still looks. */
static qkv_status make_predictions(struct look *look, qkv_error *error) {
    if (!look->session->info->has_mlm) return QKV_OK;
    const int64_t top = look->options->top.set ? look->options->top.value : 5;
    return predictions_make(look->session, look->run, look->input, top, &look->predictions, error);
}

static qkv_status look_make(struct look *look, qkv_error *error) {
    const struct session *session = look->session;
    const qkv_model_info *info = session->info;
    look->stats = calloc((size_t)(info->n_layers * info->n_heads) + 1, sizeof(*look->stats));
    if (!look->stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = qkv_model_run(session->ctx, session->model, 1, &look->input,
                                      QKV_RUN_CAPTURE, &look->run, error);
    if (status == QKV_OK) status = session_labels(session, look->input, &look->labels, error);
    if (status == QKV_OK) status = make_predictions(look, error);
    if (status == QKV_OK)
        status = qkv_inspect_heads(session->model, look->run, 0, look->input, look->stats, error);
    if (status == QKV_OK)
        status = choose_head(session, look->run, look->input, look->stats, look->given,
                             &look->choice, error);
    return status;
}

static void look_free(struct look *look) {
    session_labels_free(look->labels, look->input->n);
    free(look->stats);
    predictions_free(&look->predictions);
    qkv_run_free(look->run);
}

/* One line about what was written, and how to see one head. */
static void tell_written(const struct look *look) {
    const struct choice *choice = &look->choice;
    const struct look_options *options = look->options;
    if (options->common.quiet) return;
    fprintf(stderr, "qkv: wrote %s", options->out);
    if (!look->given && output_of(options->out)->write == look_picture)
        fprintf(stderr, ", all heads; try --head %" PRId64 ".%" PRId64 ": %s", choice->layer,
                choice->head, choice->rule);
    fputc('\n', stderr);
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct look_options *options = job->options;
    const struct look_job *self = (const struct look_job *)job;
    struct look look = { .session = &job->session,
                         .options = options,
                         .input = input,
                         .given = self->given,
                         .choice = { .layer = self->layer, .head = self->head } };
    qkv_status status = look_make(&look, error);
    if (status == QKV_OK && json) {
        status = look_json(&look, json, error);
    } else if (status == QKV_OK && options->out && cli_cancelled) {
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    } else if (status == QKV_OK && options->out) {
        status = output_of(options->out)->write(&look, options->out, error);
        if (status == QKV_OK) tell_written(&look);
    } else if (status == QKV_OK) {
        status = look_print(&look, error);
    }
    look_free(&look);
    return status;
}

static int look(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct look_options *options = data;
    if (options->out && !output_of(options->out))
        return cli_usage(command, "-o: '%s' ends in none of .html .png .svg .pdf .json .csv .npy",
                         options->out);
    if (options->out && (options->common.json || options->common.jsonl))
        return cli_usage(command, "-o together with %s",
                         options->common.json ? "--json" : "--jsonl");
    if (options->out) cli_catch_interrupts();
    struct look_job job = { .texts = {
                                .options = options, .pair = options->pair, .answer = answer } };
    struct session *session = &job.texts.session;
    int code = session_open(session, command, data);
    if (code) return code;
    code = session_head(session, &job.given, &job.layer, &job.head);
    qkv_error error;
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK) return text_job_run(&job.texts, n_words, words);
    session_close(session);
    return code;
}

static const struct cli_option look_table[] = {
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = offsetof(struct look_options, pair) },
    { .name = "--top",
      .argument = "N",
      .help = "how many words for each [MASK] (default: 5)",
      .kind = ARG_INT,
      .offset = offsetof(struct look_options, top),
      .min = 1,
      .max = 1000 },
    { .name = "-o",
      .argument = "FILE",
      .help = "write a file instead, of all heads or of the one of --head: a page for a browser "
              "(.html), a picture (.png, .svg, .pdf), the weights (.npy, .csv) or what --json "
              "prints (.json)",
      .kind = ARG_TEXT,
      .offset = offsetof(struct look_options, out),
      .suggest = ".html .png .svg .pdf .npy .csv .json" },
};

const struct cli_command cmd_look = {
    .name = "look",
    .summary = "where each token looks: predictions, all heads, one heat map",
    .words = "TEXT",
    .details =
        "Runs the model on a text and shows what attention did: the likeliest words for each "
        "[MASK], a thumbnail of every head (rows: layers, columns: heads, both from 0) with a "
        "label where a rule gives one, and the heat map of one head: that of --head, else the one "
        "in which [MASK] looks most sharply at a content word. Rows of a map are the tokens that "
        "look (queries), columns those looked at (keys).\n\n"
        "    qkv look \"I was watching the [MASK] when it opened.\"\n"
        "    qkv look \"I was watching the [MASK] when it opened.\" --head 1.2 -o head.png\n"
        "    qkv look \"I was watching the [MASK] when it opened.\" -o page.html\n\n"
        "-o FILE.html is one file that any browser opens without a network: it holds the queries "
        "and keys of the heads and computes every weight from them, so that its size grows with "
        "the text and not with its square. It has the map of the head that it shows first, as of "
        "`qkv map`, and of all where that is quick; Ctrl-C ends a map, and the page has the best "
        "so far. Above 32 MB it keeps the heads with the sharpest queries, and says so; one head, "
        "named with --head, is always written.\n\n"
        "-o FILE.npy holds the weights, [layers, heads, n, n], with --head [n, n]. FILE.csv "
        "has a line for each weight, layer,head,query,key,weight; with --head a line for each "
        "query, and the tokens as first line and column. FILE.svg and FILE.pdf have text that can "
        "be searched.\n\n"
        "--json: {\"tokens\", \"predictions\", \"heads\": [{\"layer\", \"head\", \"label\", "
        "\"entropy\", ...}], \"sharpest\"}, with --head also \"weights\", a row for each query.",
    .min_words = 1,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM | TAKES_TRUNCATE | TAKES_JSON |
             TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = look_table,
    .n_options = CLI_COUNT(look_table),
    .options_bytes = sizeof(struct look_options),
    .run = look,
};
