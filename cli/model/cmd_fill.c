/* `qkv fill`: words for each [MASK]. */
#include "common/lens.h"
#include "common/predict.h"

#include <stdlib.h>

struct fill_options {
    struct cli_common common;
    struct arg_int top;
    const char *pair;
    bool lens;
};

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct fill_options *options = job->options;
    const struct session *session = &job->session;
    if (count_masks(session, input) == 0) {
        job->usage = true;
        char *mask = mask_name(session);
        const qkv_status status = text_error(error, QKV_ERR_ARGUMENT, "there is no %s in the text",
                                             mask ? mask : "[MASK]");
        free(mask);
        return status;
    }
    qkv_run *run = NULL;
    struct predictions predictions = { 0 };
    qkv_status status =
        qkv_model_run(session->ctx, session->model, 1, &input, 0, NULL, &run, error);
    if (status == QKV_OK)
        status = predictions_make(session, run, input, options->top.set ? options->top.value : 5,
                                  &predictions, error);
    if (status == QKV_OK && json) {
        *json = json_set(NULL, "predictions:o", predictions_json(session, &predictions));
    } else if (status == QKV_OK) {
        struct term term;
        term_init(&term, stdout, session->common);
        predictions_print(session, &predictions, &term);
    }
    predictions_free(&predictions);
    qkv_run_free(run);
    return status;
}

static int fill(const struct cli_command *command, const void *options, int n_words, char **words) {
    const struct fill_options *const o = options;
    struct text_job job = { .options = options,
                            .pair = o->pair,
                            .answer = o->lens ? lens_answer : answer };
    if (o->lens && o->top.set) return cli_usage(command, "--lens together with --top");
    const int code = session_open(&job.session, command, options);
    return code ? code : text_job_run(&job, n_words, words);
}

#define OPTIONS struct fill_options

static const struct cli_option fill_table[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    OPTION_INT("--top", "N", top, 1, 1000),
    OPTION_FLAG("--lens", lens),
};

const struct cli_command cmd_fill = {
    .name = "fill",
    .summary = "words for each [MASK], with probabilities",
    .words = "TEXT",
    .min_words = 1,
    .max_words = 1,
    .takes = TAKES_ANSWER | TAKES_TRUNCATE | TAKES_JSONL,
    COMMAND_OPTIONS(fill_table),
    .run = fill,
};
