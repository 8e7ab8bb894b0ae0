/* `qkv next`: does sentence B follow sentence A? */
#include <math.h>

#include "common/job.h"
#include "common/term.h"

struct next_options {
    struct cli_common common;
};

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct session *session = &job->session;
    qkv_run *run = NULL;
    float logits[2];
    qkv_status status =
        qkv_model_run(session->ctx, session->model, 1, &input, 0, NULL, &run, error);
    if (status == QKV_OK)
        status = qkv_model_nsp(session->ctx, session->model, run, 0, logits, error);
    qkv_run_free(run);
    if (status != QKV_OK) return status;
    /* softmax over two logits */
    const double is_next = 1 / (1 + exp((double)logits[1] - (double)logits[0]));
    if (json) {
        *json = json_set(NULL, "is_next:n", is_next);
        return QKV_OK;
    }
    struct term term;
    term_init(&term, stdout, session->common);
    printf("%.4f  %s", is_next, is_next >= 0.5 ? "B follows A     " : "B does not follow A ");
    if (term.tty) term_bar(&term, is_next, 20);
    putchar('\n');
    return QKV_OK;
}

static int next(const struct cli_command *command, const void *options, int n_words, char **words) {
    struct text_job job = { .options = options, .needs_pair = true, .answer = answer };
    if (n_words == 1 && !((const struct next_options *)options)->common.jsonl)
        return cli_usage(command, "B is missing");
    const int code = session_open(&job.session, command, options);
    return code ? code : text_job_run(&job, n_words, words);
}

const struct cli_command cmd_next = {
    .name = "next",
    .summary = "does sentence B follow sentence A?",
    .words = "A B",
    .min_words = 1,
    .max_words = 2,
    .takes = TAKES_ANSWER | TAKES_TRUNCATE | TAKES_JSONL,
    .options_bytes = sizeof(struct next_options),
    .run = next,
};
