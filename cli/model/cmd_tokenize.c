/* `qkv tokenize`: the tokens that a model sees. */
#include <inttypes.h>
#include <stdlib.h>

#include "common/job.h"

struct tokenize_options {
    struct cli_common common;
    const char *pair;
    bool target;
};

static json_t *to_json(const struct session *session, const qkv_encoding *input) {
    return json_set(NULL, "ids:o tokens:o", json_ids(input->n, input->ids),
                    tokens_json(session->tokenizer, input));
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct session *session = &job->session;
    if (json) {
        *json = to_json(session, input);
        return QKV_OK;
    }
    for (int64_t i = 0; i < input->n; i++) {
        char *token = session_token(session, input->ids[i]);
        if (!token) return text_no_memory(error);
        printf("%" PRId32 "\t%s\n", input->ids[i], token);
        free(token);
    }
    return QKV_OK;
}

static int tokenize(const struct cli_command *command, const void *options, int n_words,
                    char **words) {
    const struct tokenize_options *own = options;
    struct text_job job = { .options = options, .pair = own->pair, .answer = answer };
    const int code = own->target ? session_open_target(&job.session, command, &own->common)
                                 : session_open(&job.session, command, options);
    return code ? code : text_job_run(&job, n_words, words);
}

#define OPTIONS struct tokenize_options

static const struct cli_option tokenize_table[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    OPTION_FLAG("--target", target),
};

const struct cli_command cmd_tokenize = {
    .name = "tokenize",
    .summary = "the tokens that the model sees",
    .words = "TEXT",
    .min_words = 1,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_TOKENIZER | TAKES_JSON | TAKES_JSONL | TAKES_VERBOSE,
    COMMAND_OPTIONS(tokenize_table),
    .run = tokenize,
};
