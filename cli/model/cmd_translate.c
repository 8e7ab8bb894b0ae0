/* `qkv translate`: a text in one language to a text in another, line by line. */
#include "common/ranks.h"
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

/* ---- The command ----------------------------------------------------------------------------- */

static int run(const struct cli_command *command, struct writing *w, int n_words, char **words) {
    const int code = writing_open(w, command, w->options, true);
    if (code) return code;
    return w->options->file ? writing_run_file(w, " translated")
                            : text_job_run(&w->job, n_words, words);
}

static int translate(const struct cli_command *command, const void *data, int n_words,
                     char **words) {
    const struct writing_options *const o = data;
    struct writing w = { .job = { .options = data, .answer = answer }, .options = o };
    if (!o->file && !o->common.jsonl && n_words == 0)
        return cli_usage(command, "TEXT or --file is missing");
    int code = writing_begin_file(command, o, n_words);
    if (!code) code = run(command, &w, n_words, words);
    code = ranks_agree(code);
    ranks_end();
    return code;
}

#define OPTIONS struct writing_options
#define INTO    qkv_generate_options

static const struct cli_option translate_table[] = {
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_FILE("--journal", "F", journal, "*"),
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
    .over_ranks = true,
    .run = translate,
};
