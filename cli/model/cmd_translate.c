/* `qkv translate`: a text in one language to a text in another, line by line. */
#include "common/lines.h"
#include "model/model.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    struct writing *const w = (struct writing *)job;
    qkv_generation *made = NULL;
    qkv_status status = writing_run(w, input, false, &made, error);
    if (status == QKV_OK && json)
        *json = writing_json(w, made);
    else if (status == QKV_OK)
        status = writing_print_all(w, made, error);
    if (status == QKV_OK && w->options->align)
        status = translate_align(w, input, made->sequences[0], json ? *json : NULL, error);
    qkv_generation_free(made);
    return status;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static qkv_status translate_line(void *user, const struct text *line, qkv_error *error) {
    struct writing *const w = user;
    struct session *const session = &w->job.session;
    qkv_encoding *input = NULL;
    json_t *json = NULL;
    qkv_status status =
        qkv_tokenizer_encode(session->tokenizer, line->bytes, line->n, NULL, 0, &input, error);
    if (status == QKV_OK) status = text_fit(session, NULL, input, error);
    if (status == QKV_OK)
        status = answer(&w->job, input, session->common->json ? &json : NULL, error);
    if (status == QKV_OK && json && !json_print(stdout, json))
        status = text_error(error, QKV_ERR_IO, "it cannot be written");
    qkv_encoding_free(input);
    return status;
}

/* A line for each line; the first that fails ends it. */
static int run_file(struct writing *w) {
    struct progress progress;
    qkv_error error;
    progress_begin(&progress, w->options->common.quiet || w->term.tty);
    const qkv_status status =
        lines_each(w->options->file, &progress, " translated", translate_line, w, &error);
    session_close(&w->job.session);
    return cli_status(status, &error);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int check(const struct cli_command *command, const struct writing_options *o, int n_words) {
    if (o->file && n_words > 0) return cli_usage(command, "--file together with a text");
    if (o->file && o->common.jsonl) return cli_usage(command, "--file together with --jsonl");
    if (!o->file && !o->common.jsonl && n_words == 0)
        return cli_usage(command, "TEXT or --file is missing");
    return EXIT_OK;
}

static int translate(const struct cli_command *command, const void *data, int n_words,
                     char **words) {
    struct writing w = { .job = { .options = data, .answer = answer } };
    int code = check(command, data, n_words);
    if (code == EXIT_OK) code = writing_open(&w, command, data, true);
    if (code) return code;
    return w.options->file ? run_file(&w) : text_job_run(&w.job, n_words, words);
}

#define OPTIONS struct writing_options
#define INTO    qkv_generate_options

static const struct cli_option translate_table[] = {
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_FLAG("--align", align),
    WRITING_TABLE,
};

const struct cli_command cmd_translate = {
    .name = "translate",
    .summary = "a text in another language, by an encoder-decoder",
    .words = "[TEXT]",
    .max_words = 1,
    .takes = TAKES_ANSWER | TAKES_TRUNCATE | TAKES_JSONL,
    COMMAND_OPTIONS(translate_table),
    .run = translate,
};
