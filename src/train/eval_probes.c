/*
 * Next sentences, and pronoun probes: "I was watching the door when [MASK] opened." The model is
 * right if its prediction is admissible; a head is right if, among the content words, its largest
 * weight from [MASK] is on the antecedent. The head with the best score on the even probes is
 * reported, with its score on the odd ones.
 */

#include "text/tokens.h"
#include "train/eval.h"

enum { N_PROBES = 512 };

/* ---- Next sentence --------------------------------------------------------------------------- */

static qkv_status judge_pairs(qkvi_eval *eval, qkv_error *error) {
    const qkv_model_info *const info = &eval->model->info;
    const int64_t n = eval->batch.view.n_sequences;
    float logits[2 * QKVI_EVAL_BATCH];
    if (n == 0) return QKV_OK;
    QKV_TRY(qkvi_net_forward(eval->ctx, eval->model->net, &eval->batch.view, 0, eval->pass, error));
    const qkvi_stack_pass *const pass = qkvi_net_stack(eval->pass, 0);
    const float *const last = qkvi_stack_hidden(pass, info->n_layers);
    for (int64_t s = 0; s < n; s++)
        memcpy(eval->hidden + s * info->hidden, last + qkvi_stack_row(pass, s) * info->hidden,
               (size_t)info->hidden * sizeof(float));
    QKV_TRY(qkvi_net_nsp(eval->ctx, eval->model->net, n, eval->hidden, logits, error));
    for (int64_t s = 0; s < n; s++)
        eval->n_next_right += (logits[2 * s + 1] > logits[2 * s]) == eval->batch.labels[s];
    eval->n_next += n;
    qkvi_feed_clear(&eval->batch);
    return QKV_OK;
}

qkv_status qkvi_eval_next(qkvi_eval *eval, qkv_error *error) {
    eval->n_next = eval->n_next_right = 0;
    qkvi_feed_clear(&eval->batch);
    for (int64_t p = 0; p < qkvi_eval_n_pairs(eval); p++) {
        qkvi_pair pair;
        qkv_encoding *encoding;
        qkvi_eval_pair(eval, p, &pair);
        if (pair.b_bytes == 0) continue;
        QKV_TRY(qkvi_eval_encode(eval, &pair, &encoding, error));
        qkvi_feed_add(&eval->batch, encoding->n, encoding->ids, encoding->types, !pair.is_next);
        qkv_encoding_free(encoding);
        if (eval->batch.view.n_sequences == QKVI_EVAL_BATCH) QKV_TRY(judge_pairs(eval, error));
    }
    return judge_pairs(eval, error);
}

/* ---- Probes ---------------------------------------------------------------------------------- */

/*
 * One probe in the batch: its blank, and what each token is: 0 nothing, 1 content, 2 the
 * antecedent.
 */
typedef struct probe {
    int64_t token, n;
    uint8_t *marks; /* [max_len] */
    int is_even, is_right;
    int32_t *ids; /* admissible */
    int64_t n_ids;
} probe;

typedef struct probes {
    qkvi_eval *eval;
    probe waiting[QKVI_EVAL_BATCH];
    int64_t tokens[QKVI_EVAL_BATCH];
    int64_t *hits[2]; /* [even][n_layers * n_heads] */
    int64_t n_even, n_odd;
    double chance; /* sum over probes of the antecedent's share of the content tokens */
} probes;

static void mark_span(const qkv_encoding *encoding, qkvi_span span, uint8_t mark, uint8_t *marks) {
    const int64_t second = qkvi_encoding_second(encoding);
    for (int64_t t = 0; t < encoding->n; t++)
        if (!encoding->special[t] && (t >= second) == span.half && encoding->end[t] > span.begin &&
            encoding->begin[t] < span.end)
            marks[t] = mark;
}

/* The admissible ids of the pronoun's slot; the pronoun itself if the grammar has no slot there. */
static qkv_status find_admissible(const qkvi_eval *eval, const qkvi_pair *pair, int32_t pronoun,
                                  probe *p, qkv_error *error) {
    qkvi_slot *slots;
    int32_t n_slots;
    QKV_TRY(qkvi_corpus_slots(eval->corpus, pair, &slots, &n_slots, error));
    const qkvi_slot *slot = NULL;
    for (int32_t i = 0; i < n_slots; i++)
        if (memcmp(&slots[i].span, &pair->pronoun, sizeof pair->pronoun) == 0) slot = &slots[i];
    p->ids = qkvi_malloc_array(slot ? (size_t)slot->n_words : 1, sizeof *p->ids);
    if (p->ids && slot) p->n_ids = qkvi_slot_ids(eval, slot, p->ids);
    if (p->ids && !slot) p->ids[p->n_ids++] = pronoun;
    qkvi_slots_free(slots);
    return p->ids ? QKV_OK : qkvi_no_memory(error, "a probe");
}

static qkv_status prepare(const qkvi_eval *eval, const qkvi_pair *pair, qkv_encoding *encoding,
                          probe *p, qkv_error *error) {
    p->token = qkvi_token_of_span(encoding, pair->pronoun);
    p->n = encoding->n;
    p->n_ids = 0;
    p->marks = calloc((size_t)encoding->n + 1, 1);
    if (!p->marks) return qkvi_no_memory(error, "a probe");
    if (p->token < 0)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "the pronoun of a probe is not one token");
    for (int32_t c = 0; c < pair->n_content; c++)
        mark_span(encoding, pair->content[c], 1, p->marks);
    mark_span(encoding, pair->antecedent, 2, p->marks);
    QKV_TRY(find_admissible(eval, pair, encoding->ids[p->token], p, error));
    encoding->ids[p->token] = qkv_tokenizer_special(eval->model->tokenizer, QKV_TOKEN_MASK);
    return QKV_OK;
}

static qkv_status add_probe(probes *all, int64_t index, const qkvi_pair *pair, qkv_error *error) {
    qkvi_eval *const eval = all->eval;
    const int64_t s = eval->batch.view.n_sequences;
    probe *const p = &all->waiting[s];
    qkv_encoding *encoding;
    QKV_TRY(qkvi_eval_encode(eval, pair, &encoding, error));
    const qkv_status status = prepare(eval, pair, encoding, p, error);
    if (status == QKV_OK) {
        qkvi_feed_add(&eval->batch, encoding->n, encoding->ids, encoding->types, -1);
        all->tokens[s] = p->token;
        p->is_even = index % 2 == 0;
    }
    qkv_encoding_free(encoding);
    return status;
}

/*
 * The content token to which the query has the largest score; weights rise with scores, so no
 * softmax is needed.
 */
static int64_t sharpest_token(const qkvi_eval *eval, int64_t sequence, const probe *p,
                              int64_t layer, int64_t head) {
    const qkv_model_info *const info = &eval->model->info;
    const qkvi_stack_pass *const pass = qkvi_net_stack(eval->pass, 0);
    const qkvi_mha_acts *const kept = qkvi_stack_captured(pass, layer, false);
    const int64_t row = qkvi_stack_row(pass, sequence), column = head * info->head_dim;
    const float *const q = kept->q + (row + p->token) * info->hidden + column;
    const float *const k = kept->k + row * info->hidden + column;
    int64_t best = -1;
    double best_score = 0;
    for (int64_t t = 0; t < p->n; t++) {
        double score = 0;
        if (!p->marks[t]) continue;
        for (int64_t c = 0; c < info->head_dim; c++)
            score += (double)q[c] * (double)k[t * info->hidden + c];
        if (best >= 0 && !(score > best_score)) continue;
        best = t;
        best_score = score;
    }
    return best;
}

static double share_of_antecedent(const probe *p) {
    int64_t n_content = 0, n_antecedent = 0;
    for (int64_t t = 0; t < p->n; t++) {
        n_content += p->marks[t] != 0;
        n_antecedent += p->marks[t] == 2;
    }
    return n_content ? (double)n_antecedent / (double)n_content : 0;
}

static void judge_heads(probes *all, int64_t sequence) {
    const qkv_model_info *const info = &all->eval->model->info;
    const probe *const p = &all->waiting[sequence];
    all->chance += share_of_antecedent(p);
    for (int64_t l = 0; l < info->n_layers; l++)
        for (int64_t h = 0; h < info->n_heads; h++) {
            const int64_t token = sharpest_token(all->eval, sequence, p, l, h);
            all->hits[p->is_even][l * info->n_heads + h] += token >= 0 && p->marks[token] == 2;
        }
}

static void forget_waiting(probes *all) {
    for (int64_t s = 0; s < QKVI_EVAL_BATCH; s++) {
        free(all->waiting[s].marks);
        free(all->waiting[s].ids);
    }
    memset(all->waiting, 0, sizeof all->waiting);
    qkvi_feed_clear(&all->eval->batch);
}

static qkv_status score_waiting(probes *all, qkv_error *error) {
    qkvi_eval *const eval = all->eval;
    const int64_t n = eval->batch.view.n_sequences, vocab_size = eval->model->info.vocab_size;
    QKV_TRY(qkvi_eval_logits(eval, all->tokens, QKV_RUN_CAPTURE, error));
    for (int64_t s = 0; s < n; s++) {
        const probe *const p = &all->waiting[s];
        const qkvi_blank_score score =
            qkvi_score_blank(eval->logits + s * vocab_size, vocab_size, p->ids, p->n_ids, 0);
        eval->report->n_probes_right += score.best_admissible;
        eval->report->n_probes++;
        *(p->is_even ? &all->n_even : &all->n_odd) += 1;
        judge_heads(all, s);
    }
    forget_waiting(all);
    return QKV_OK;
}

static void choose_head(const probes *all) {
    const int64_t n_heads = all->eval->model->info.n_heads;
    qkv_eval_report *const report = all->eval->report;
    int64_t best = 0;
    for (int64_t i = 1; i < all->eval->model->info.n_layers * n_heads; i++)
        if (all->hits[1][i] > all->hits[1][best]) best = i;
    report->head_layer = best / n_heads;
    report->head_index = best % n_heads;
    report->n_head_probes = all->n_odd;
    report->n_head_probes_right = all->hits[0][best];
}

static qkv_status run(probes *all, qkv_error *error) {
    qkvi_feed_clear(&all->eval->batch);
    for (int64_t i = 0; i < N_PROBES; i++) {
        qkvi_pair pair;
        if (!qkvi_corpus_probe(all->eval->corpus, i, all->eval->seed, &pair)) break;
        QKV_TRY(add_probe(all, i, &pair, error));
        if (all->eval->batch.view.n_sequences == QKVI_EVAL_BATCH)
            QKV_TRY(score_waiting(all, error));
    }
    return score_waiting(all, error);
}

qkv_status qkvi_eval_probes(qkvi_eval *eval, int64_t *hits, double *chance, qkv_error *error) {
    const size_t heads = (size_t)(eval->model->info.n_layers * eval->model->info.n_heads);
    probes *const all = calloc(1, sizeof *all);
    qkv_status status;
    if (!all) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to evaluate");
    all->eval = eval;
    all->hits[0] = qkvi_calloc_array(heads, sizeof *all->hits[0]);
    all->hits[1] = qkvi_calloc_array(heads, sizeof *all->hits[1]);
    if (all->hits[0] && all->hits[1])
        status = run(all, error);
    else
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to evaluate");
    if (status == QKV_OK) choose_head(all);
    for (size_t i = 0; i < heads && hits && status == QKV_OK; i++)
        hits[i] = all->hits[0][i] + all->hits[1][i];
    if (chance) *chance = eval->report->n_probes ? all->chance / (double)eval->report->n_probes : 0;
    forget_waiting(all);
    free(all->hits[0]);
    free(all->hits[1]);
    free(all);
    return status;
}
