/*
 * What `qkv look` knows about one text: runs the model once with capture, and once more as it is if
 * something is asked of it.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/term.h"
#include "look/look.h"

static int64_t top_of(const struct look *look) {
    return look->options->top.set ? look->options->top.value : 5;
}

/* A model without a head for it still looks. */
static qkv_status make_predictions(const struct look *look, const qkv_run *run,
                                   struct predictions *predictions, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    if (info->kind == QKV_MODEL_DECODER && info->has_lm && look->input->n > 0)
        return predictions_next(look->session, run, look->input->n - 1, top_of(look), predictions,
                                error);
    if (!info->has_mlm) return QKV_OK;
    return predictions_make(look->session, run, look->input, top_of(look), predictions, error);
}

/* How a decoder expected the text, or the target of a pair. */
static qkv_status make_expected(struct look *look, const qkv_run *run, qkv_error *error) {
    const struct session *session = look->session;
    const bool is_pair = look->pair.next != NULL;
    const int64_t n = look->n_rows;
    if (!session->info->has_lm || !(is_pair || session->info->kind == QKV_MODEL_DECODER))
        return QKV_OK;
    int32_t *next = malloc((size_t)n * sizeof *next + 1);
    look->log_p = malloc((size_t)n * sizeof *look->log_p + 1);
    for (int64_t i = 0; next && i < n; i++)
        next[i] = is_pair ? look->pair.next->ids[i] : i + 1 < n ? look->input->ids[i + 1] : -1;
    const qkv_status status =
        next && look->log_p
            ? qkv_inspect_expected(session->ctx, session->model, run, 0, next, look->log_p, error)
            : text_error(error, QKV_ERR_MEMORY, "out of memory");
    free(next);
    return status;
}

double look_perplexity(const struct look *look, int64_t *n) {
    double sum = 0;
    *n = 0;
    for (int64_t i = 0; look->log_p && i < look->n_rows; i++) {
        if (!look->pair.next && i + 1 == look->n_rows) break; /* nobody knows what comes */
        sum -= look->log_p[i];
        ++*n;
    }
    return *n ? exp(sum / (double)*n) : 0;
}

static qkv_status run_once(const struct look *look, uint32_t flags, const qkv_run_options *what_if,
                           qkv_run **run, qkv_error *error) {
    return pair_model_run(look->session, 1, &look->input, &look->pair, flags, what_if, run, error);
}

/* The model as it is, to hold what follows from a question against. */
static qkv_status run_before(struct look *look, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    qkv_run *run = NULL;
    if (!look->what_if.any || !(info->has_mlm || info->kind == QKV_MODEL_DECODER)) return QKV_OK;
    qkv_status status = run_once(look, 0, NULL, &run, error);
    if (status == QKV_OK) status = make_predictions(look, run, &look->before, error);
    qkv_run_free(run);
    return status;
}

static qkv_status run_model(struct look *look, const struct what_if *parsed, qkv_error *error) {
    qkv_status status =
        what_if_of_text(parsed, look->labels, look->input->n, &look->what_if, error);
    if (status == QKV_OK) status = pair_check_causal(&look->what_if, &look->view, error);
    if (status == QKV_OK) status = run_before(look, error);
    if (status != QKV_OK) return status;
    look->what_if.asked.dropped = look->what_if.dropped ? look->what_if.inputs : NULL;
    return run_once(look, QKV_RUN_CAPTURE, &look->what_if.asked, &look->run, error);
}

/* Of a text alone its tokens look at each other; of a pair its decoder's, at themselves or at the text. */
static qkv_status take_view(struct look *look, qkv_error *error) {
    const char *target = look->options->which.target;
    const struct text given = { (char *)(uintptr_t)target, target ? strlen(target) : 0 };
    qkv_status status = session_labels(look->session, look->input, &look->labels, error);
    if (status == QKV_OK && look_pair_option(look->options))
        status = pair_make(look->session, look->input, given, &look->pair, error);
    look->view = pair_view(look->session, look->input, &look->pair, look_which(look->options));
    look->n_rows = look->view.queries.tokens->n;
    look->n_cols = look->view.keys.tokens->n;
    look->rows = look->pair.next ? look->pair.names : look->labels;
    look->cols = look->view.which == QKV_DECODER ? look->pair.input_names : look->labels;
    return status;
}

qkv_status look_make(struct look *look, const struct what_if *parsed, qkv_error *error) {
    const struct session *session = look->session;
    qkv_status status = take_view(look, error);
    if (status == QKV_OK) status = run_model(look, parsed, error);
    if (status == QKV_OK) status = make_predictions(look, look->run, &look->predictions, error);
    if (status == QKV_OK) status = make_expected(look, look->run, error);
    if (status == QKV_OK)
        status = replaced_make(session, look->run, look->input, &look->replaced, error);
    if (status == QKV_OK)
        status = pair_heads(session, &look->view, look->run, 0, &look->heads, error);
    look->choice.struct_size = sizeof look->choice; /* a head that was given stays */
    if (status == QKV_OK)
        status = qkv_heads_choose(look->heads, look->given ? look_chosen(look) : -1, &look->choice,
                                  error);
    if (status == QKV_OK && look->options->align) status = look_align(look, error);
    return status;
}

void look_free(struct look *look) {
    free(look->replaced);
    free(look->log_p);
    session_labels_free(look->labels, look->labels ? look->input->n : 0);
    look_align_free(look->alignment);
    pair_free(&look->pair);
    qkv_heads_free(look->heads);
    predictions_free(&look->predictions);
    predictions_free(&look->before);
    what_if_free(&look->what_if);
    qkv_run_free(look->run);
    windows_free(look->windows);
}

int64_t look_files_heads(const struct look *look, int64_t *first) {
    *first = look->given && !look->arrays ? look_chosen(look) : 0;
    return look->given && !look->arrays ? 1 : look_n_heads(look);
}

struct look_tiles look_tiles_of(const struct look *look, int64_t most) {
    const int64_t n = look->n_rows > look->n_cols ? look->n_rows : look->n_cols,
                  tile = look->arrays ? 1 + (n - 1) / most : 1;
    return (struct look_tiles){ tile, (look->n_rows + tile - 1) / tile,
                                (look->n_cols + tile - 1) / tile };
}

static void show_progress(void *user, int64_t done, int64_t total) {
    progress_bar(user, "pooled map", done, total);
}

qkv_status look_cells(const struct look *look, int64_t index, const struct look_tiles *tiles,
                      float *cells, qkv_error *error) {
    const struct arg_int *pool = &look->options->pool;
    struct progress progress;
    qkv_call_options call = qkv_call_options_init();
    call.cancel = look->arrays ? &cli_cancelled : NULL;
    if (tiles->tile > 1) call.progress = show_progress;
    call.progress_user = &progress;
    progress_begin(&progress, look->options->common.quiet);
    const qkv_status status = qkv_heads_cells(
        look->heads, index, tiles->tile, pool->set ? (qkv_tile_kind)pool->value : QKV_TILE_PEAK,
        cells, &call, error);
    progress_end(&progress);
    return status == QKV_ERR_CANCELLED ? text_error(error, status, "nothing was written") : status;
}
