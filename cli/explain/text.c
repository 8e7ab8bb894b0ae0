/* `qkv explain TEXT`: chooses head and query of a text, or with --shuffle only a head. */
#include "common/number.h"
#include "explain/explain.h"

#include <inttypes.h>
#include <string.h>

/* The token that --query names: its position, or its text if that stands once. */
static qkv_status find_query(struct text_job *job, const struct explain *t, const char *name,
                             int64_t *query, qkv_error *error) {
    const char *const what = t->input->image ? "image" : "text";
    if (number_int(name, 0, INT64_MAX, query)) {
        if (*query < t->input->n) return QKV_OK;
        job->usage = true;
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--query: there is no token %s: the %s has tokens 0 to %" PRId64, name,
                          what, t->input->n - 1);
    }
    job->usage = true;
    const qkv_status status = label_find(t->labels, t->input->n, "--query", name, query, error);
    if (status == QKV_OK && *query >= 0) job->usage = false;
    if (status != QKV_OK || *query >= 0) return status;
    return text_error(error, QKV_ERR_ARGUMENT, "--query: the %s has no token '%.60s'", what, name);
}

/* Head and query, as `look` would choose them. */
static qkv_status choose(struct text_job *job, const struct attended *of, struct explain *t,
                         qkv_heads_choice *choice, qkv_error *error) {
    const qkv_status status = attended_choose(of, job->given, job->layer, job->head, choice, error);
    if (status != QKV_OK) return status;
    if (choice->query < 0) choice->query = 0;
    if (t->options->query) return find_query(job, t, t->options->query, &choice->query, error);
    t->rule = job->given ? NULL : choice->rule;
    return QKV_OK;
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct session *session = &job->session;
    struct attended of = { .session = session, .input = input };
    struct explain t = { .session = session, .options = job->options, .input = input };
    qkv_steps *steps = NULL;
    qkv_heads_choice choice = qkv_heads_choice_init();
    qkv_status status = attended_open(&of, QKV_SELF, NULL, NULL, error);
    if (status == QKV_OK) status = attended_run(&of, QKV_RUN_HIDDEN, error);
    t.labels = of.labels;
    if (status == QKV_OK) status = choose(job, &of, &t, &choice, error);
    if (status == QKV_OK)
        status = qkv_inspect_steps(session->model, of.run, 0, input, choice.layer, choice.head,
                                   choice.query, &steps, error);
    t.steps = steps;
    if (status == QKV_OK)
        status =
            json ? explain_model_json(&t, json, error) : explain_report(&t, explain_model, error);
    qkv_steps_free(steps);
    attended_free(&of);
    return status;
}

/* The order of its words, in the named head of layer 0, else in head 0. */
static qkv_status answer_shuffled(struct text_job *job, const qkv_encoding *input, json_t **json,
                                  qkv_error *error) {
    const struct session *session = &job->session;
    struct explain t = {
        .session = session, .options = job->options, .input = input, .head = job->head
    };
    (void)json;
    if (job->given && job->layer != 0) {
        job->usage = true;
        return text_error(error, QKV_ERR_ARGUMENT,
                          "--shuffle looks at a head of layer 0, not of layer %" PRId64,
                          job->layer);
    }
    if (session->info->kind == QKV_MODEL_DECODER)
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "--shuffle needs a model whose tokens see each other: in %s each sees "
                          "those before it only, and so an order",
                          session->info->source);
    qkv_status status = session_labels(session, input, &t.labels, error);
    if (status == QKV_OK) status = explain_report(&t, explain_shuffle, error);
    session_labels_free(t.labels, input->n);
    return status;
}

int explain_texts(const struct cli_command *command, const struct explain_options *options,
                  int n_words, char **words) {
    struct text_job job = { .options = options,
                            .pair = options->pair,
                            .image = options->image,
                            .answer = options->shuffle ? answer_shuffled : answer };
    const int code = text_job_open(&job, command, &options->common);
    return code ? code : text_job_run(&job, n_words, words);
}
