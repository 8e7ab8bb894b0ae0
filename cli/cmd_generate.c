/* `qkv generate`: what a model writes after a text. */
#include "writing.h"

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    struct writing *const w = (struct writing *)job;
    qkv_generation *made = NULL;
    qkv_status status = QKV_OK;
    if (!json && w->options->show_prompt) {
        qkv_text *text = NULL;
        status = qkv_tokenizer_decode(job->session.tokenizer, input->ids, input->n,
                                      QKV_DECODE_SKIP_SPECIAL, &text, error);
        if (status == QKV_OK) status = writing_print(w, text->bytes, (size_t)text->n, error);
        qkv_text_free(text);
    }
    if (status == QKV_OK) status = writing_run(w, input, !json, &made, error);
    if (status == QKV_OK && json) *json = writing_json(w, made);
    if (status == QKV_OK && !json && job->session.common->verbose)
        cli_note(false, "qkv: %lld tokens in %.2f s, %.1f a second", (long long)made->n_steps + 1,
                 w->seconds, (double)(made->n_steps + 1) / w->seconds);
    qkv_generation_free(made);
    return status;
}

static int generate(const struct cli_command *command, const void *data, int n_words,
                    char **words) {
    static char nothing[] = "";
    char *empty[] = { nothing };
    struct writing w = { .job = { .options = data, .answer = answer } };
    const int code = writing_open(&w, command, data, false);
    if (code) return code;
    const bool none = n_words == 0 && !w.options->common.jsonl;
    return none ? text_job_run(&w.job, 1, empty) : text_job_run(&w.job, n_words, words);
}

static const struct cli_option generate_table[] = {
    WRITING_TABLE,
    { .name = "--show-prompt",
      .help = "print the prompt, as the model reads it, before its text",
      .kind = ARG_FLAG,
      .offset = WRITING(show_prompt) },
};

const struct cli_command cmd_generate = {
    .name = "generate",
    .summary = "what a model writes after a text",
    .words = "[PROMPT]",
    .details =
        "Goes on with a text, token after token, by a model that predicts the next one (GPT-2; of "
        "an encoder-decoder such as BART, PROMPT is the source). The text is printed while it is "
        "made. Without PROMPT the model begins by itself.\n\n"
        "    qkv generate \"The man saw\" --model gpt2 --max-new 40\n"
        "    qkv generate \"The man saw\" --model gpt2 --temperature 0.8 --seed 1 --stop .\n\n"
        "Options that are not given are those of the model's generation_config.json; without them "
        "it is always the likeliest token that is taken. The same options give the same text on "
        "every machine.\n\n"
        "--json: {\"prompt_tokens\", \"sequences\": [{\"text\", \"ids\", \"score\", \"end\"}], "
        "\"steps\", \"seconds\"}",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_TERM | TAKES_JSON | TAKES_JSONL |
             TAKES_QUIET | TAKES_VERBOSE,
    .options = generate_table,
    .n_options = CLI_COUNT(generate_table),
    .options_bytes = sizeof(struct writing_options),
    .run = generate,
};
