/*
 * Runs `qkv heads`: probes, the heads of one text or of many texts, and their output.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/lines.h"
#include "common/ranks.h"
#include "heads/heads.h"
#include "heads/texts.h"

/* ---- Probes ---------------------------------------------------------------------------------- */

qkv_status heads_probe(struct heads_job *job, qkv_error *error) {
    const struct heads_options *options = job->texts.options;
    const struct session *session = &job->texts.session;
    qkv_probe_options probes = qkv_probe_options_init();
    struct progress progress;
    if (!options->probes && !options->grammar) return QKV_OK;
    text_say_mark(options->grammar, session->common->quiet);
    job->probe_note = "";
    probes.seed = heads_seed(options);
    probes.grammar = options->grammar;
    if (!options->grammar && session->is_embedded)
        probes.grammar_bytes = embedded_grammar(&probes.n_grammar_bytes);
    else if (!options->grammar)
        job->probe_note = "coreference-like does not apply: the model comes without a grammar; "
                          "--grammar names one.";
    job->probes =
        calloc((size_t)(session->info->n_layers * session->info->n_heads) + 1, sizeof *job->probes);
    if (!job->probes) return text_no_memory(error);
    job->report = qkv_probe_report_init();
    const qkv_call_options call =
        progress_call(&progress, "probing", session->common->quiet || ranks_rank() > 0);
    const qkv_status status = qkv_inspect_probes(session->ctx, session->model, &probes, job->probes,
                                                 sizeof *job->probes, &job->report, &call, error);
    progress_end(&progress);
    if (status == QKV_OK && (options->grammar || probes.grammar_bytes) && !job->report.n_probes)
        job->probe_note = "coreference-like does not apply: the grammar has no pronoun probes.";
    return status;
}

/* ---- One table ------------------------------------------------------------------------------- */

static qkv_status heads_make(const struct heads_job *job, const qkv_encoding *input,
                             struct heads *heads, qkv_error *error) {
    *heads = (struct heads){ .options = job->texts.options,
                             .text = { .session = &job->texts.session, .input = input },
                             .what_if = &job->what_if,
                             .which = job->texts.which,
                             .probes = job->probes ? &job->report : NULL,
                             .probe_note = job->probe_note };
    session_sizes(heads->text.session, heads->which, &heads->n_layers, &heads->n_heads);
    heads->n_all = heads->n_layers * heads->n_heads;
    heads->rows = calloc((size_t)heads->n_all + 1, sizeof *heads->rows);
    return heads->rows ? QKV_OK : text_no_memory(error);
}

static void heads_free(struct heads *heads) {
    attended_free(&heads->text);
    free(heads->rows);
}

static qkv_status write_file(const struct heads *heads, const char *path, qkv_error *error) {
    json_t *json = NULL;
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    const int ending = path_ending(path, HEADS_ENDINGS);
    qkv_status status = ending < 2 ? heads_table(heads, path, ending == 0 ? ',' : '\t', error)
                                   : heads_object(heads, &json, error);
    if (json) status = json_write_file(path, json, error);
    if (status == QKV_OK) cli_note(heads->options->common.quiet, "qkv: wrote %s", path);
    return status;
}

/* A row for each head, in their order. */
static void take_rows(struct heads *heads) {
    const qkv_heads *all = heads->text.heads;
    const qkv_heads_info *info = qkv_heads_get_info(all);
    for (int64_t i = 0; i < heads->n_all; i++) {
        struct head_row *row = &heads->rows[i];
        *row = (struct head_row){ .layer = i / info->n_heads,
                                  .head = i % info->n_heads,
                                  .numbers = qkv_heads_numbers(all, i),
                                  .spread = qkv_heads_spread(all, i),
                                  .distance = NAN };
        /* rules of labels are about texts */
        row->label = heads->options->image ? "" : qkv_heads_label(row->numbers);
        row->label_share = qkv_heads_label_share(all, i, row->label);
    }
    if (heads->n_all > 0)
        heads->n_queries = (int64_t)qkv_head_number_value(heads->rows[0].numbers, "n_queries");
}

/* Puts rows into order and shows them. */
static qkv_status show_table(const struct heads_job *job, struct heads *heads, json_t **json,
                             qkv_error *error) {
    const char *out = heads->options->out;
    take_rows(heads);
    if (heads->n_cut)
        cli_note(heads->options->common.quiet, "qkv: %" PRId64 " of %" PRId64 " texts cut",
                 heads->n_cut, heads->n_texts);
    const qkv_status status = heads_arrange(heads, job->like, error);
    if (status != QKV_OK) return status;
    if (json) return heads_object(heads, json, error);
    if (out) return write_file(heads, out, error);
    heads_print(heads);
    return QKV_OK;
}

qkv_status heads_answer(struct text_job *text_job, const qkv_encoding *input, json_t **json,
                        qkv_error *error) {
    const struct heads_job *job = (const struct heads_job *)text_job;
    struct heads heads;
    struct attended *text = &heads.text;
    qkv_status status = heads_make(job, input, &heads, error);
    if (status == QKV_OK)
        status =
            attended_open(text, heads.which, heads.options->which.target, &job->what_if, error);
    if (status == QKV_OK) status = attended_run(text, 0, error);
    heads.what_if = &text->what_if;
    heads.n_texts = 1;
    heads.n_tokens = input->n;
    heads.n_targets = text->pair.inputs.n;
    if (status == QKV_OK) {
        qkv_heads_set_probes(text->heads, job->probes, sizeof *job->probes);
        status = show_table(job, &heads, json, error);
    }
    heads_free(&heads);
    return status;
}

/* ---- Many texts ------------------------------------------------------------------------------ */

struct adding {
    struct heads *heads;
    const qkv_head_probes *probes;
};

static size_t numbers_bytes(const struct heads *heads) {
    return (size_t)heads->n_all * (size_t)qkv_head_number_count() * sizeof(double);
}

/* The numbers of all heads on a text of --file. */
static qkv_status make_numbers(void *user, const struct texts_one *text, struct text *record,
                               qkv_error *error) {
    const struct adding *adding = user;
    const struct session *session = adding->heads->text.session;
    const struct attention_view view =
        pair_view(session, text->input, text->pair, adding->heads->which);
    qkv_heads *one = NULL;
    qkv_status status = pair_heads(session, &view, text->run, text->b, &one, error);
    *record =
        (struct text){ malloc(numbers_bytes(adding->heads) + 1), numbers_bytes(adding->heads) };
    if (status == QKV_OK && !record->bytes) status = text_no_memory(error);
    if (status == QKV_OK) {
        qkv_heads_set_probes(one, adding->probes, sizeof *adding->probes);
        if (record->n > 0) memcpy(record->bytes, qkv_heads_numbers(one, 0), record->n);
    }
    qkv_heads_free(one);
    return status;
}

static qkv_status add_numbers(void *user, const struct text *record, qkv_error *error) {
    const struct adding *adding = user;
    if (record->n != numbers_bytes(adding->heads))
        return text_error(error, QKV_ERR_FORMAT, "numbers of heads in the journal have %zu bytes",
                          record->n);
    return qkv_heads_add_numbers(adding->heads->text.heads,
                                 (const double *)(const void *)record->bytes, error);
}

/* Adds up the texts of --file, and counts what there is to count. */
static qkv_status read_texts(struct heads *heads, const qkv_head_probes *probes, qkv_error *error) {
    struct adding adding = { heads, probes };
    struct texts texts = { .session = heads->text.session,
                           .path = heads->options->file,
                           .which = heads->which,
                           .flags = QKV_RUN_CAPTURE,
                           .run_options = &heads->what_if->run_options,
                           .journal = heads->options->journal,
                           .also = heads->options->grammar,
                           .make = make_numbers,
                           .record_bytes = numbers_bytes(heads),
                           .take = add_numbers,
                           .user = &adding };
    const qkv_status status = texts_read(&texts, error);
    heads->n_texts = texts.n_texts;
    heads->n_cut = texts.n_cut;
    heads->n_tokens = texts.n_tokens;
    heads->n_targets = texts.n_targets;
    return status;
}

/* What all ranks have before they share texts. */
static qkv_status open_mean(const struct heads_job *job, struct heads *heads, qkv_error *error) {
    const struct pair none = { .target = NULL };
    qkv_status status = heads_make(job, NULL, heads, error);
    if (status != QKV_OK) return status;
    const struct attention_view view = pair_view(heads->text.session, NULL, &none, heads->which);
    status = qkv_heads_open_mean(heads->n_layers, heads->n_heads, job->texts.session.info->max_len,
                                 0, NULL, &heads->text.heads, error);
    return status == QKV_OK ? pair_check_causal(heads->what_if, &view, error) : status;
}

int heads_answer_file(const struct heads_job *job) {
    const bool as_json = job->texts.session.common->json;
    struct heads heads;
    json_t *json = NULL;
    qkv_error error;
    qkv_status status = open_mean(job, &heads, &error);
    int code = ranks_agree(cli_status(status, &error));
    if (code == EXIT_OK) {
        status = read_texts(&heads, job->probes, &error);
        if (status == QKV_OK && ranks_rank() == 0)
            status = show_table(job, &heads, as_json ? &json : NULL, &error);
        code = cli_status(status, &error);
    }
    heads_free(&heads);
    if (code || !json) return code;
    return json_print(stdout, json) ? EXIT_OK : EXIT_FAILED;
}
