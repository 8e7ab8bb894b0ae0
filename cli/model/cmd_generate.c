/* `qkv generate`: the continuation of a text by a model. */
#include "common/ranks.h"
#include "model/model.h"

#include <string.h>

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
    if (status == QKV_OK) status = writing_run(w, input, !json && !w->options->file, &made, error);
    if (status == QKV_OK && json)
        *json = writing_json(w, made);
    else if (status == QKV_OK && w->options->file)
        status = writing_print_all(w, made, error);
    if (status == QKV_OK && !json && job->session.common->verbose)
        cli_note(false, "qkv: %lld tokens in %.2f s, %.1f a second", (long long)made->n_steps + 1,
                 w->seconds, (double)(made->n_steps + 1) / w->seconds);
    qkv_generation_free(made);
    return status;
}

/* Templates of turns that the library knows: as words of an option, and in their order. */
#define CHAT_WORDS                                                                                 \
    "chatml|gemma|llama2|llama3|mistral|mistral-v1|mistral-v3|mistral-tekken|phi3|zephyr"
#define CHAT_NAMES                                                                                 \
    "chatml", "gemma", "llama2", "llama3", "mistral", "mistral-v1", "mistral-v3",                  \
        "mistral-tekken", "phi3", "zephyr"

/* ---- Turns ----------------------------------------------------------------------------------- */

enum { MAX_EOS = 64 };

/* What ends a turn ends a text, too, beside what does so anyway. */
static void add_end(struct writing *w, int32_t end, int32_t eos[MAX_EOS]) {
    const qkv_model_info *const info = w->job.session.info;
    int64_t n = 0;
    eos[n++] = end;
    for (int64_t i = 0; i < w->generate.n_eos && n < MAX_EOS; i++) eos[n++] = w->generate.eos[i];
    if (!w->generate.eos && info->eos_id >= 0) eos[n++] = (int32_t)info->eos_id;
    w->generate.eos = eos;
    w->generate.n_eos = n;
}

/* Texts are turns from here on, unless there is no template for them. */
static int take_turns(struct writing *w, int32_t eos[MAX_EOS]) {
    static const char *const names[] = { CHAT_NAMES };
    const struct writing_options *const o = w->options;
    struct session *const session = &w->job.session;
    const char *const option = o->template.set ? "--chat-template" : "--chat";
    qkv_encoding *nothing = NULL;
    qkv_error error;
    int32_t end;
    if (session->info->kind == QKV_MODEL_PAIR)
        return cli_fail("%s: %s has a source and no turns", option, session->info->architecture);
    w->job.turns = true;
    w->job.chat = o->template.set ? names[o->template.value] : NULL;
    if (qkv_tokenizer_encode_turn(session->tokenizer, w->job.chat, "", 0, &nothing, &end, &error) !=
        QKV_OK)
        return cli_fail("%s: %s", option, error.message);
    qkv_encoding_free(nothing);
    if (end >= 0) add_end(w, end, eos);
    return EXIT_OK;
}

static int run(const struct cli_command *command, struct writing *w, int n_words, char **words) {
    static char nothing[] = "";
    char *empty[] = { nothing };
    int32_t eos[MAX_EOS];
    int code = writing_open(w, command, w->options, false);
    if (code) return code;
    if (w->options->chat || w->options->template.set) code = take_turns(w, eos);
    if (code) {
        session_close(&w->job.session);
        return code;
    }
    if (w->options->file) return writing_run_file(w, " written");
    const bool none = n_words == 0 && !w->options->common.jsonl;
    return none ? text_job_run(&w->job, 1, empty) : text_job_run(&w->job, n_words, words);
}

static int generate(const struct cli_command *command, const void *data, int n_words,
                    char **words) {
    struct writing w = { .job = { .options = data, .answer = answer }, .options = data };
    const struct cli_common *const common = &w.options->common;
    if (w.options->show_prompt && (common->json || common->jsonl))
        return cli_usage(command, "--show-prompt together with %s",
                         common->jsonl ? "--jsonl" : "--json");
    int code = writing_begin_file(command, data, n_words);
    if (!code) code = run(command, &w, n_words, words);
    code = ranks_agree(code);
    ranks_end();
    return code;
}

#define OPTIONS struct writing_options
#define INTO    qkv_generate_options

static const struct cli_option generate_table[] = {
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_FILE("--journal", "F", journal, "*"),
    WRITING_TABLE,
    OPTION_FLAG("--chat", chat),
    OPTION_CHOICE("--chat-template", CHAT_WORDS, template),
    OPTION_FLAG("--show-prompt", show_prompt),
};

const struct cli_command cmd_generate = {
    .name = "generate",
    .summary = "what a model writes after a text",
    .words = "[PROMPT]",
    .max_words = 1,
    .takes = TAKES_ANSWER | TAKES_JSONL,
    COMMAND_OPTIONS(generate_table),
    .over_ranks = true,
    .may_be_empty = true,
    .run = generate,
};
