/* Two models on one text, head by head: see against.h. */
#include "look/against.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/given.h"
#include <qkv/patterns.h>

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status check_shapes(const struct against *a, qkv_which which, qkv_error *error) {
    const qkv_model_info *const x = a->of[0]->text.session->info, *const y =
                                                                      a->of[1]->text.session->info;
    int64_t n_layers, n_heads;
    session_sizes(a->of[1]->text.session, which, &n_layers, &n_heads);
    if (x->kind != y->kind)
        return text_error(error, QKV_ERR_SHAPE, "--against: %s is a %s, and %s a %s", y->source,
                          y->architecture, x->source, x->architecture);
    if (n_layers == a->n_layers && n_heads == a->n_heads) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: %s has %" PRId64 " layers of %" PRId64 " heads, and %s %" PRId64
                      " of %" PRId64 ": heads are compared in their places",
                      y->source, n_layers, n_heads, x->source, a->n_layers, a->n_heads);
}

/*
 * One token: the bytes that the vocabularies have, and what they stand for there. Labels alone would not
 * tell a space from its sign; bytes alone mean another text to another kind of tokenizer.
 */
static bool same_token(const qkv_token_list *x, const qkv_token_list *y, int64_t i) {
    const int32_t ids[2] = { x->tokens->ids[i], y->tokens->ids[i] };
    size_t n[2];
    const char *const bytes[2] = { qkv_tokenizer_token(x->tokenizer, ids[0], &n[0]),
                                   qkv_tokenizer_token(y->tokenizer, ids[1], &n[1]) };
    if (!bytes[0] || !bytes[1] || n[0] != n[1] || memcmp(bytes[0], bytes[1], n[0]) != 0)
        return false;
    char *const shown[2] = { token_shown(x->tokenizer, ids[0]), token_shown(y->tokenizer, ids[1]) };
    const bool same = shown[0] && shown[1] && strcmp(shown[0], shown[1]) == 0;
    free(shown[0]);
    free(shown[1]);
    return same;
}

/* Both read the same ids, which must mean the same tokens; of targets, the same tokens, too. */
static qkv_status check_tokens(const struct against *a, const qkv_token_list *x,
                               const qkv_token_list *y, qkv_error *error) {
    bool same = x->tokens->n == y->tokens->n;
    for (int64_t i = 0; same && i < x->tokens->n; i++) same = same_token(x, y, i);
    if (same) return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: %s has other tokens for the text: weights are compared token by "
                      "token",
                      against_source(a, 1));
}

static qkv_status run_both(struct against *a, const struct what_if *what_if, qkv_error *error) {
    const char *target = a->options->which.target;
    qkv_status status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++) {
        status = text_open(a->of[m], target, what_if, error);
        if (!target) target = a->of[m]->text.pair.target; /* B reads what A wrote */
    }
    const struct attention_view *const x = &a->of[0]->text.view, *const y = &a->of[1]->text.view;
    if (status == QKV_OK) status = check_tokens(a, &x->queries, &y->queries, error);
    if (status == QKV_OK) status = check_tokens(a, &x->keys, &y->keys, error);
    for (int m = 0; m < 2 && status == QKV_OK; m++) status = text_run(a->of[m], 0, error);
    return status;
}

/* ---- Comparing ------------------------------------------------------------------------------- */

static qkv_status compare_head(struct against *a, int64_t index, double *rows, qkv_error *error) {
    qkv_ctx *const ctx = a->of[0]->seen.ctx;
    struct distance *const d = &a->list[index];
    qkv_head_view views[2] = { qkv_head_view_init(), qkv_head_view_init() };
    qkv_divergence divergence = qkv_divergence_init();
    qkv_status status = QKV_OK;
    for (int m = 0; m < 2 && status == QKV_OK; m++)
        status = qkv_heads_view(a->of[m]->seen.heads, index, &views[m], error);
    if (status == QKV_OK)
        status =
            qkv_inspect_divergence(ctx, &views[0], &views[1], 0, rows, &divergence, NULL, error);
    if (status != QKV_OK) return status;
    *d = (struct distance){ .mean = divergence.n_rows ? divergence.mean : NAN,
                            .n_rows = divergence.n_rows,
                            .query = -1 };
    for (int64_t i = 0; i < a->of[0]->seen.queries.n; i++)
        if (rows[i] >= 0 && (d->query < 0 || rows[i] > d->largest)) {
            d->query = i;
            d->largest = rows[i];
        }
    for (int m = 0; m < 2 && status == QKV_OK && d->query >= 0; m++)
        status = qkv_heads_look(a->of[m]->seen.heads, index, d->query, &d->keys[m], &d->weights[m],
                                error);
    return status;
}

static qkv_status compare(struct against *a, qkv_error *error) {
    double *const rows = calloc((size_t)a->of[0]->seen.queries.n + 1, sizeof *rows);
    a->list = calloc((size_t)a->n_all + 1, sizeof *a->list);
    a->order = calloc((size_t)a->n_all + 1, sizeof *a->order);
    qkv_status status = rows && a->list && a->order ? QKV_OK : text_no_memory(error);
    for (int64_t i = 0; i < a->n_all && status == QKV_OK; i++) {
        status = compare_head(a, i, rows, error);
        a->order[i] = (struct ranked){ -a->list[i].mean, i };
    }
    free(rows);
    if (status != QKV_OK) return status;
    ranked_sort(a->order, a->n_all);
    a->n_shown = a->n_all;
    if (a->options->top.set && a->options->top.value < a->n_all) a->n_shown = a->options->top.value;
    return QKV_OK;
}

/* ---- One text -------------------------------------------------------------------------------- */

static qkv_status show(const struct against *a, json_t **json, qkv_error *error) {
    const char *const out = a->options->out;
    if (json) {
        *json = against_json(a);
        return QKV_OK;
    }
    if (!out) {
        against_print(a);
        return QKV_OK;
    }
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    const qkv_status status =
        given_ending(out, ".json") == 0
            ? json_write_file(out, against_json(a), error)
            : (given_ending(out, ".html") == 0 ? against_page : against_picture)(a, out, error);
    if (status == QKV_OK) cli_note(a->options->common.quiet, "qkv: wrote %s", out);
    return status;
}

qkv_status look_against(struct text_job *job, const struct session *other,
                        const qkv_encoding *input, const struct what_if *what_if, json_t **json,
                        qkv_error *error) {
    struct text_seen *const both = calloc(2, sizeof *both);
    if (!both) return text_no_memory(error);
    struct against a = { .options = job->options, .of = { &both[0], &both[1] } };
    for (int m = 0; m < 2; m++) text_begin(a.of[m], job, input, NULL, 0);
    a.of[1]->text.session = other;
    session_sizes(&job->session, job->which, &a.n_layers, &a.n_heads);
    a.n_all = a.n_layers * a.n_heads;
    qkv_status status = check_shapes(&a, job->which, error);
    if (status == QKV_OK) status = run_both(&a, what_if, error);
    if (status == QKV_OK) status = compare(&a, error);
    if (status == QKV_OK) status = show(&a, json, error);
    for (int m = 0; m < 2; m++) text_free(a.of[m]);
    free(both);
    free(a.list);
    free(a.order);
    return status;
}
