/* qkv_eval calls the three parts of an evaluation; helpers that these share. See eval.h. */
#include "train/eval.h"

#include <math.h>

#include "core/fpstate.h"
#include "text/tokens.h"
#include "train/examples.h"

/* ---- Shared ---------------------------------------------------------------------------------- */

qkvi_blank_score qkvi_score_blank(const float *logits, int64_t vocab_size, const int32_t *ids,
                                  int64_t n_ids, int32_t target) {
    qkvi_blank_score score = { 0 };
    double sum = 0;
    for (int64_t w = 1; w < vocab_size; w++)
        if (logits[w] > logits[score.best]) score.best = (int32_t)w;
    const double max = (double)logits[score.best];
    for (int64_t w = 0; w < vocab_size; w++) sum += exp((double)logits[w] - max);
    for (int64_t i = 0; i < n_ids; i++) {
        score.mass += exp((double)logits[ids[i]] - max) / sum;
        score.best_admissible |= ids[i] == score.best;
    }
    score.loss = log(sum) + max - (double)logits[target];
    return score;
}

int64_t qkvi_token_of_span(const qkv_encoding *encoding, qkvi_span span) {
    const int64_t second = qkvi_encoding_second(encoding);
    int64_t found = -1;
    for (int64_t t = 0; t < encoding->n; t++) {
        if (encoding->special[t] || (t >= second) != span.half) continue;
        if (encoding->end[t] <= span.begin || encoding->begin[t] >= span.end) continue;
        if (found >= 0) return -1;
        found = t;
    }
    return found;
}

/* A tokenizer may have tokens that the model has no row and no logit for. */
static qkv_status check_rows(const qkvi_eval *eval, qkv_encoding **encoding, qkv_error *error) {
    const int64_t rows = eval->model->info.vocab_size;
    for (int64_t i = 0; i < (*encoding)->n; i++) {
        const int32_t id = (*encoding)->ids[i];
        if (id < rows) continue;
        qkv_encoding_free(*encoding);
        *encoding = NULL;
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "a text has the token %d, and the model has rows 0 to %lld", id,
                              (long long)rows - 1);
    }
    return QKV_OK;
}

qkv_status qkvi_eval_encode(const qkvi_eval *eval, const qkvi_pair *pair, qkv_encoding **encoding,
                            qkv_error *error) {
    QKV_TRY(qkv_tokenizer_encode(eval->model->tokenizer, pair->a, (size_t)pair->a_bytes,
                                 pair->b_bytes ? pair->b : NULL, (size_t)pair->b_bytes, encoding,
                                 error));
    qkv_tokenizer_cut(eval->model->tokenizer, *encoding, eval->model->info.max_len);
    return check_rows(eval, encoding, error);
}

qkv_status qkvi_eval_logits(qkvi_eval *eval, const int64_t *tokens, uint32_t flags,
                            qkv_error *error) {
    const qkv_model_info *const info = &eval->model->info;
    const int64_t n = eval->batch.view.n_sequences;
    if (n == 0) return QKV_OK;
    QKV_TRY(
        qkvi_net_forward(eval->ctx, eval->model->net, &eval->batch.view, flags, eval->pass, error));
    const qkvi_stack_pass *const pass = qkvi_net_stack(eval->pass, 0);
    const float *const last = qkvi_stack_hidden(pass, info->n_layers);
    for (int64_t s = 0; s < n; s++)
        memcpy(eval->hidden + s * info->hidden,
               last + (qkvi_stack_row(pass, s) + tokens[s]) * info->hidden,
               (size_t)info->hidden * sizeof(float));
    return qkvi_net_mlm(eval->ctx, eval->model->net, n, eval->hidden, eval->logits, error);
}

int64_t qkvi_slot_ids(const qkvi_eval *eval, const qkvi_slot *slot, int32_t *ids) {
    const qkv_tokenizer *const tokenizer = eval->model->tokenizer;
    int64_t n = 0;
    for (int32_t w = 0; w < slot->n_words; w++) {
        const int32_t id = qkv_tokenizer_id(tokenizer, slot->words[w], strlen(slot->words[w]));
        if (id >= 0 && id < eval->model->info.vocab_size) ids[n++] = id;
    }
    return n;
}

int64_t qkvi_eval_n_pairs(const qkvi_eval *eval) {
    return eval->piece ? eval->piece->n : qkvi_corpus_held_out_pairs(eval->corpus);
}

void qkvi_eval_pair(const qkvi_eval *eval, int64_t index, qkvi_pair *pair) {
    if (!eval->piece) {
        qkvi_corpus_pair(eval->corpus, QKVI_SPLIT_HELD_OUT, index, eval->seed, pair);
        return;
    }
    pair->a = eval->piece->pairs[index].a;
    pair->a_bytes = eval->piece->pairs[index].a_bytes;
    pair->b = eval->piece->pairs[index].b;
    pair->b_bytes = eval->piece->pairs[index].b_bytes;
    pair->is_next = eval->piece->pairs[index].is_next;
    pair->counts_for_mlm = 1;
    pair->has_probe = 0;
    pair->n_content = 0;
}

/* ---- Calls ------------------------------------------------------------------------- */

static qkv_status check_model(const qkv_model *model, qkv_error *error) {
    if (model->no_head) return qkvi_model_check_head(model, 0, "MLM", error);
    if (!model->info.has_mlm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s has no MLM head to evaluate",
                              model->source);
    if (qkv_tokenizer_special(model->tokenizer, QKV_TOKEN_MASK) < 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s has no [MASK] token", model->source);
    return QKV_OK;
}

qkv_status qkvi_eval_check(const qkv_ctx *ctx, const qkv_model *model, qkv_error *error) {
    if (!ctx || !model)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", ctx ? "model" : "ctx");
    return check_model(model, error);
}

qkv_status qkvi_eval_make_room(qkvi_eval *eval, qkv_error *error) {
    const qkv_model_info *const info = &eval->model->info;
    eval->report = calloc(1, sizeof *eval->report);
    if (eval->report) eval->report->total = calloc(1, sizeof *eval->report->total);
    eval->hidden = qkvi_malloc_array((size_t)(QKVI_EVAL_BATCH * info->hidden), sizeof(float));
    eval->logits = qkvi_malloc_array((size_t)(QKVI_EVAL_BATCH * info->vocab_size), sizeof(float));
    if (!eval->report || !eval->report->total || !eval->hidden || !eval->logits)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to evaluate");
    QKV_TRY(qkvi_feed_make(&eval->batch, QKVI_EVAL_BATCH, info->max_len, error));
    return qkvi_net_pass_create(&eval->pass, error);
}

void qkvi_eval_free_room(qkvi_eval *eval) {
    qkvi_feed_free(&eval->batch);
    qkvi_net_pass_free(eval->pass);
    free(eval->hidden);
    free(eval->logits);
    free(eval->judged);
}

static qkv_status run_parts(qkvi_eval *eval, qkv_error *error) {
    double loss = 0;
    QKV_TRY(qkvi_eval_make_room(eval, error));
    QKV_TRY(qkvi_eval_blanks(eval, error));
    for (size_t i = 0; i < eval->n_judged; i++)
        QKV_TRY(qkvi_eval_count(eval->report, &eval->judged[i], &loss, error));
    qkvi_eval_means(eval->report, loss);
    if (eval->model->info.has_nsp) QKV_TRY(qkvi_eval_next(eval, error));
    eval->report->n_pairs = eval->n_next;
    eval->report->n_pairs_right = eval->n_next_right;
    return qkvi_eval_probes(eval, NULL, NULL, error);
}

static qkv_status eval_grammar(qkv_ctx *ctx, const qkv_model *model, const char *grammar,
                               uint64_t seed, qkv_eval_report **report, qkv_error *error) {
    qkvi_corpus *corpus;
    QKV_TRY(qkvi_corpus_open_grammar(grammar, &corpus, error));
    qkvi_eval eval = { .ctx = ctx, .model = model, .corpus = corpus, .seed = seed };
    const qkv_status status = run_parts(&eval, error);
    qkvi_eval_free_room(&eval);
    qkvi_corpus_free(corpus);
    if (status == QKV_OK)
        *report = eval.report;
    else
        qkv_eval_report_free(eval.report);
    return status;
}

qkv_status qkvi_eval_heads(qkv_ctx *ctx, const qkv_model *model, const qkvi_corpus *corpus,
                           uint64_t seed, int64_t *hits, int64_t *n_probes, double *chance,
                           qkv_error *error) {
    QKV_TRY(check_model(model, error));
    qkvi_eval eval = { .ctx = ctx, .model = model, .corpus = corpus, .seed = seed };
    qkv_status status = qkvi_eval_make_room(&eval, error);
    if (status == QKV_OK) status = qkvi_eval_probes(&eval, hits, chance, error);
    if (status == QKV_OK) *n_probes = eval.report->n_probes;
    qkvi_eval_free_room(&eval);
    qkv_eval_report_free(eval.report);
    return status;
}

qkv_status qkv_eval(qkv_ctx *ctx, const qkv_model *model, const char *text, const char *grammar,
                    uint64_t seed, qkv_eval_report **report, qkv_error *error) {
    if (!report) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "report is NULL");
    *report = NULL;
    if (!text == !grammar)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                              "exactly one of text and grammar must be given");
    QKV_TRY(qkvi_eval_check(ctx, model, error));
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = text ? qkvi_eval_text(ctx, model, text, report, error)
                                   : eval_grammar(ctx, model, grammar, seed, report, error);
    qkvi_fpstate_leave(saved);
    return status;
}

void qkv_eval_report_free(qkv_eval_report *report) {
    if (!report) return;
    for (int64_t r = 0; r < report->n_rows; r++) free(report->rows[r]);
    free(report->rows);
    free(report->total);
    free(report);
}
