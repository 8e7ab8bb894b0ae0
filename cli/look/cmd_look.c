/* `qkv look`: where each token looks. Its options, and the jobs of texts. */
#include "common/term.h"
#include "look/look.h"
#include "qkv/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A job over texts, and what else was asked for. */
struct look_job {
    struct text_job texts;
    struct head_name *list; /* of --heads */
    int n_list;
    struct what_if what_if;
    struct windows_rule windows;
};

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct look_options *options = job->options;
    const struct look_job *self = (const struct look_job *)job;
    struct look look = { .session = &job->session,
                         .ctx = job->session.ctx,
                         .options = options,
                         .input = input,
                         .given = job->given,
                         .list = self->list,
                         .n_list = self->n_list,
                         .choice = { .layer = job->layer, .head = job->head } };
    qkv_status status = options->windows
                            ? windows_make(&look, &self->what_if, &self->windows, error)
                            : look_make(&look, &self->what_if, error);
    if (status == QKV_OK && options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (status == QKV_OK)
        status = look_show(&look, json, error);
    look_free(&look);
    return status;
}

static int look_texts(const struct cli_command *command, const struct look_options *options,
                      int n_words, char **words) {
    struct look_job job = { .texts = { .options = options,
                                       .pair = options->pair,
                                       .file = options->file,
                                       .any_length = options->windows != NULL,
                                       .longer = look_which(options) == QKV_SELF
                                                     ? "--slide N looks at windows of it, "
                                                     : NULL,
                                       .which = look_which(options),
                                       .answer = answer } };
    struct text_job *const texts = &job.texts;
    int code = what_if_parse(command, &options->what_if, &job.what_if);
    if (code == EXIT_OK) code = windows_parse(command, options, &job.windows);
    if (code == EXIT_OK) code = text_job_open(texts, command, &options->common);
    if (code) return code;
    code = look_list_heads(command, options, &texts->session, &job.list, &job.n_list);
    if (code == EXIT_OK && job.n_list > 0) {
        texts->given = true;
        texts->layer = job.list[0].layer;
        texts->head = job.list[0].head;
    }
    qkv_error error;
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK)
        code = text_job_run(texts, n_words, words);
    else
        session_close(&texts->session);
    free(job.list);
    return code;
}

static int look(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct look_options *options = data;
    int code = look_check_input(command, options, n_words);
    if (code == EXIT_OK) code = look_check_pair(command, options);
    if (code == EXIT_OK) code = look_check_plot(command, options);
    if (code == EXIT_OK)
        code = look_check_out(command, options, look_writes(options->out),
                              look_writes_page(options->out));
    if (code) return code;
    if (options->out || options->q || options->windows) cli_catch_interrupts();
    return options->q ? look_arrays(command, options)
                      : look_texts(command, options, n_words, words);
}

#define OPTION(field) offsetof(struct look_options, field)

static const struct cli_option look_table[] = {
    { .name = "--pair", .argument = "TEXT", .kind = ARG_TEXT, .offset = OPTION(pair) },
    PAIR_TABLE(struct look_options, which),
    { .name = "--align", .kind = ARG_FLAG, .offset = OPTION(align) },
    { .name = "--top",
      .argument = "N",
      .kind = ARG_INT,
      .offset = OPTION(top),
      .min = 1,
      .max = 1000 },
    { .name = "--file", .argument = "F", .kind = ARG_TEXT, .offset = OPTION(file), .suggest = "*" },
    { .name = "--slide", .argument = "N[,STRIDE]", .kind = ARG_TEXT, .offset = OPTION(windows) },
    { .name = "--what-if",
      .argument = "causal|no-scale|temperature=T|drop=TOKEN",
      .kind = ARG_TEXTS,
      .offset = OPTION(what_if),
      .suggest = "causal|no-scale|temperature=|drop=" },
    { .name = "--heads", .argument = "L.H,L.H...", .kind = ARG_TEXT, .offset = OPTION(heads) },
    { .name = "--q",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--k",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--tokens",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(tokens),
      .suggest = "*" },
    { .name = "--q-tokens",
      .argument = "F",
      .kind = ARG_TEXT,
      .offset = OPTION(q_tokens),
      .suggest = "*" },
    { .name = "--causal",
      .argument = "top-left|bottom-right|OFFSET",
      .kind = ARG_TEXT,
      .offset = OPTION(causal),
      .suggest = "top-left|bottom-right" },
    { .name = "--window", .argument = "LEFT,RIGHT", .kind = ARG_TEXT, .offset = OPTION(window) },
    { .name = "--scale", .argument = "X", .kind = ARG_REAL, .offset = OPTION(scale) },
    { .name = "--pool", .argument = "peak|mass", .kind = ARG_CHOICE, .offset = OPTION(pool) },
    { .name = "--plot",
      .argument = "queries|received|offsets",
      .kind = ARG_CHOICE,
      .offset = OPTION(plot) },
    { .name = "--map", .argument = "cosine|inner", .kind = ARG_CHOICE, .offset = OPTION(map) },
    { .name = "-o",
      .argument = "FILE",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".html .png .svg .pdf .npy .csv .json" },
};

const struct cli_command cmd_look = {
    .name = "look",
    .summary = "where each token looks: predictions, all heads, one heat map",
    .words = "TEXT",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = look_table,
    .n_options = CLI_COUNT(look_table),
    .options_bytes = sizeof(struct look_options),
    .run = look,
};
