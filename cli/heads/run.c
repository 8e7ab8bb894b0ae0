/*
 * What `qkv heads` computes: probes, the heads of one text, and those of many; and where it goes.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "heads/heads.h"

/* What -o can write, by the file's ending. */
int heads_ending(const char *path) {
    static const char *const endings[] = { ".csv", ".tsv", ".json" };
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < CLI_COUNT(endings); i++)
        if (strcmp(dot, endings[i]) == 0) return i;
    return -1;
}

/* ---- Probes ---------------------------------------------------------------------------------- */

static void tell_probes(void *user, int64_t done, int64_t total) {
    progress_bar(user, "probing", done, total);
}

qkv_status heads_probe(struct heads_job *job, qkv_error *error) {
    const struct heads_options *options = job->texts.options;
    const struct session *session = &job->texts.session;
    qkv_probe_options asked = qkv_probe_options_init();
    qkv_call_options call = qkv_call_options_init();
    struct progress progress;
    if (!options->probes && !options->grammar) return QKV_OK;
    job->probe_note = "";
    asked.seed = options->seed.set ? (uint64_t)options->seed.value : 1;
    asked.grammar = options->grammar;
    if (!options->grammar && session->is_embedded)
        asked.grammar_bytes = embedded_grammar(&asked.n_grammar_bytes);
    else if (!options->grammar)
        job->probe_note = "coreference-like does not apply: the model comes without a grammar; "
                          "--grammar names one.";
    job->probes =
        calloc((size_t)(session->info->n_layers * session->info->n_heads) + 1, sizeof *job->probes);
    if (!job->probes) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    job->report = qkv_probe_report_init();
    progress_begin(&progress, session->common->quiet);
    call.cancel = &cli_cancelled;
    call.progress = tell_probes;
    call.progress_user = &progress;
    const qkv_status status = qkv_inspect_probes(session->ctx, session->model, &asked, job->probes,
                                                 sizeof *job->probes, &job->report, &call, error);
    progress_end(&progress);
    if (status == QKV_OK && (options->grammar || asked.grammar_bytes) && !job->report.n_probes)
        job->probe_note = "coreference-like does not apply: the grammar has no pronoun probes.";
    return status;
}

/* ---- One table ------------------------------------------------------------------------------- */

static qkv_status heads_make(const struct heads_job *job, const qkv_encoding *input,
                             struct heads *heads, qkv_error *error) {
    const struct heads_options *options = job->texts.options;
    int64_t n_layers, n_heads;
    *heads = (struct heads){ .session = &job->texts.session,
                             .options = job->texts.options,
                             .input = input,
                             .what_if = &job->what_if,
                             .which = pair_which(&options->which),
                             .probes = job->probes ? &job->report : NULL,
                             .probe_note = job->probe_note };
    session_sizes(heads->session, heads->which, &n_layers, &n_heads);
    heads->n_all = n_layers * n_heads;
    heads->rows = calloc((size_t)heads->n_all + 1, sizeof *heads->rows);
    if (!heads->rows) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    return QKV_OK;
}

static qkv_status write_file(const struct heads *heads, const char *path, qkv_error *error) {
    json_t *json = NULL;
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    const int ending = heads_ending(path);
    qkv_status status = QKV_OK;
    if (ending < 2)
        status = heads_table(heads, path, ending == 0 ? ',' : '\t', error);
    else
        status = heads_object(heads, &json, error);
    if (ending == 2 && status == QKV_OK) status = json_write_file(path, json, error);
    if (status == QKV_OK) cli_note(heads->options->common.quiet, "qkv: wrote %s", path);
    return status;
}

/* Puts rows into order and shows them. */
static qkv_status show(const struct heads_job *job, struct heads *heads, json_t **json,
                       qkv_error *error) {
    qkv_status status = heads_arrange(heads, job->like, error);
    if (status != QKV_OK) return status;
    if (json) return heads_object(heads, json, error);
    if (heads->options->out) return write_file(heads, heads->options->out, error);
    heads_print(heads);
    return QKV_OK;
}

/* What is asked of a text: its tokens, and what its decoder reads. */
static qkv_status read_text(struct heads *heads, struct what_if *what_if, qkv_error *error) {
    const struct session *session = heads->session;
    const char *target = heads->options->which.target;
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    char **labels = NULL;
    qkv_status status = session_labels(session, heads->input, &labels, error);
    if (status == QKV_OK)
        status = what_if_of_text(heads->what_if, labels, heads->input->n, what_if, error);
    session_labels_free(labels, heads->input->n);
    if (status != QKV_OK) return status;
    what_if->asked.dropped = what_if->dropped ? what_if->inputs : NULL;
    heads->what_if = what_if;
    if (heads->which != QKV_SELF)
        status = pair_make(session, heads->input, given, &heads->pair, error);
    heads->n_targets = heads->pair.inputs.n;
    return status;
}

/* A row for each head, in their order. */
static void take_rows(struct heads *heads) {
    const qkv_heads_info *info = qkv_heads_get_info(heads->heads);
    for (int64_t i = 0; i < heads->n_all; i++) {
        struct head_row *row = &heads->rows[i];
        *row = (struct head_row){ .layer = i / info->n_heads,
                                  .head = i % info->n_heads,
                                  .numbers = qkv_heads_numbers(heads->heads, i),
                                  .spread = qkv_heads_spread(heads->heads, i),
                                  .distance = NAN };
        row->label = qkv_heads_label(row->numbers);
        row->label_share = qkv_heads_label_share(heads->heads, i, row->label);
    }
    if (heads->n_all > 0)
        heads->n_queries = (int64_t)qkv_heads_value(heads->rows[0].numbers, "n_queries");
}

static qkv_status run_text(struct heads *heads, struct what_if *what_if, qkv_run **run,
                           qkv_error *error) {
    const struct session *session = heads->session;
    qkv_status status = read_text(heads, what_if, error);
    const struct attention_view view = pair_view(session, heads->input, &heads->pair, heads->which);
    if (status == QKV_OK) status = pair_check_causal(what_if, &view, error);
    if (status == QKV_OK)
        status = pair_model_run(session, 1, &heads->input, &heads->pair, QKV_RUN_CAPTURE,
                                &what_if->asked, run, error);
    if (status == QKV_OK) status = pair_heads(session, &view, *run, 0, &heads->heads, error);
    return status;
}

qkv_status heads_answer(struct text_job *text_job, const qkv_encoding *input, json_t **json,
                        qkv_error *error) {
    const struct heads_job *job = (const struct heads_job *)text_job;
    struct heads heads;
    struct what_if what_if = { .dropped = NULL };
    qkv_run *run = NULL;
    qkv_status status = heads_make(job, input, &heads, error);
    if (status == QKV_OK) status = run_text(&heads, &what_if, &run, error);
    heads.n_texts = 1;
    heads.n_tokens = input->n;
    if (status == QKV_OK) {
        qkv_heads_set_probes(heads.heads, job->probes, sizeof *job->probes);
        take_rows(&heads);
        status = show(job, &heads, json, error);
    }
    what_if_free(&what_if);
    pair_free(&heads.pair);
    qkv_heads_free(heads.heads);
    qkv_run_free(run);
    free(heads.rows);
    return status;
}

/* ---- Many texts ------------------------------------------------------------------------------ */

static qkv_status answer_file(const struct heads_job *job, json_t **json, qkv_error *error) {
    struct heads heads;
    int64_t n_layers, n_heads;
    qkv_status status = heads_make(job, NULL, &heads, error);
    session_sizes(heads.session, heads.which, &n_layers, &n_heads);
    if (status == QKV_OK)
        status = qkv_heads_open_mean(n_layers, n_heads, heads.session->info->max_len, 0, NULL,
                                     &heads.heads, error);
    if (status == QKV_OK) status = heads_read(&heads, job->probes, error);
    if (status == QKV_OK) {
        take_rows(&heads);
        if (heads.n_cut)
            cli_note(heads.options->common.quiet, "qkv: %" PRId64 " of %" PRId64 " texts cut",
                     heads.n_cut, heads.n_texts);
        status = show(job, &heads, json, error);
    }
    qkv_heads_free(heads.heads);
    free(heads.rows);
    return status;
}

int heads_answer_file(const struct heads_job *job) {
    json_t *json = NULL;
    qkv_error error;
    const bool as_json = job->texts.session.common->json;
    const qkv_status status = answer_file(job, as_json ? &json : NULL, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return as_json && !json_print(stdout, json) ? EXIT_FAILED : EXIT_OK;
}
