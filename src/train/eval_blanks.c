/*
 * Blanks: each word of the held-out pairs is masked alone, and the model's prediction is judged by
 * the set of words that the grammar admits there. In a text, which has no grammar, each token is
 * masked alone, and is the only admissible one.
 */

#include "train/eval.h"

/* A sequence of the batch that waits to be judged. */
typedef struct blank {
    const char *slot;
    int32_t target;
    size_t first_id, n_ids; /* in blanks.ids */
} blank;

typedef struct blanks {
    qkvi_eval *eval;
    blank waiting[QKVI_EVAL_BATCH];
    int64_t tokens[QKVI_EVAL_BATCH];
    int32_t *ids; /* admissible words of all that wait */
    size_t n_ids, capacity;
} blanks;

/* ---- Rows of the report ---------------------------------------------------------------------- */

static qkv_status row_of(qkv_eval_report *report, const char *slot, int64_t *row,
                         qkv_error *error) {
    qkv_eval_row **rows = report->rows;
    for (*row = 0; *row < report->n_rows; (*row)++)
        if (strncmp(rows[*row]->slot, slot, sizeof rows[*row]->slot - 1) == 0) return QKV_OK;
    rows = qkvi_realloc_array(rows, (size_t)report->n_rows + 1, sizeof(qkv_eval_row *));
    if (rows) report->rows = rows;
    qkv_eval_row *const new = rows ? calloc(1, sizeof *new) : NULL;
    if (!new) return qkvi_no_memory(error, "the report");
    snprintf(new->slot, sizeof new->slot, "%s", slot);
    rows[report->n_rows++] = new;
    return QKV_OK;
}

static int by_slot(const void *left, const void *right) {
    return strcmp((*(qkv_eval_row *const *)left)->slot, (*(qkv_eval_row *const *)right)->slot);
}

static void count(qkv_eval_row *row, const qkvi_judged *judged) {
    row->n_blanks++;
    row->n_top1_admissible += judged->is_right;
    row->n_single += judged->is_single;
    row->n_top1_single += judged->is_single && judged->is_right;
    row->mass += judged->mass;
}

qkv_status qkvi_eval_count(qkv_eval_report *report, const qkvi_judged *judged, double *loss,
                           qkv_error *error) {
    int64_t row;
    QKV_TRY(row_of(report, judged->slot, &row, error));
    count(report->rows[row], judged);
    count(report->total, judged);
    *loss += judged->loss;
    return QKV_OK;
}

void qkvi_eval_means(qkv_eval_report *report, double loss) {
    qkv_eval_row *const total = report->total;
    snprintf(total->slot, sizeof total->slot, "all");
    if (report->n_rows) qsort(report->rows, (size_t)report->n_rows, sizeof *report->rows, by_slot);
    for (int64_t r = 0; r < report->n_rows; r++)
        report->rows[r]->mass /= (double)report->rows[r]->n_blanks;
    if (total->n_blanks == 0) return;
    total->mass /= (double)total->n_blanks;
    report->mlm_loss = loss / (double)total->n_blanks;
}

/* ---- Filling and judging --------------------------------------------------------------------- */

static qkv_status judge(qkvi_eval *eval, const qkvi_judged *judged, qkv_error *error) {
    if (qkvi_reserve(&eval->judged, &eval->judged_capacity, eval->n_judged + 1,
                     sizeof *eval->judged) != QKV_OK)
        return qkvi_no_memory(error, "blanks");
    eval->judged[eval->n_judged++] = *judged;
    return QKV_OK;
}

static qkv_status score_waiting(blanks *b, qkv_error *error) {
    qkvi_eval *const eval = b->eval;
    const int64_t n = eval->batch.view.n_sequences, vocab_size = eval->model->info.vocab_size;
    QKV_TRY(qkvi_eval_logits(eval, b->tokens, 0, error));
    for (int64_t s = 0; s < n; s++) {
        const blank *const w = &b->waiting[s];
        const qkvi_blank_score score =
            qkvi_score_blank(eval->logits + s * vocab_size, vocab_size, b->ids + w->first_id,
                             (int64_t)w->n_ids, w->target);
        QKV_TRY(judge(eval,
                      &(qkvi_judged){ .slot = w->slot,
                                      .mass = score.mass,
                                      .loss = score.loss,
                                      .is_single = w->n_ids == 1,
                                      .is_right = score.best_admissible },
                      error));
    }
    qkvi_feed_clear(&eval->batch);
    b->n_ids = 0;
    return QKV_OK;
}

static qkv_status reserve_ids(blanks *b, size_t n, qkv_error *error) {
    if (qkvi_reserve(&b->ids, &b->capacity, b->n_ids + n, sizeof *b->ids) == QKV_OK) return QKV_OK;
    return qkvi_no_memory(error, "admissible words");
}

/*
 * Puts the encoding with one token masked into the batch. Its admissible ids have just been
 * appended to b->ids.
 */
static qkv_status add_blank(blanks *b, const qkv_encoding *encoding, int64_t token,
                            const char *slot, size_t n_ids, qkv_error *error) {
    qkvi_eval *const eval = b->eval;
    const int64_t s = eval->batch.view.n_sequences;
    const int64_t first =
        qkvi_feed_add(&eval->batch, encoding->n, encoding->ids, encoding->types, -1);
    eval->batch.ids[first + token] = qkv_tokenizer_special(eval->model->tokenizer, QKV_TOKEN_MASK);
    b->tokens[s] = token;
    b->waiting[s] = (blank){ slot, encoding->ids[token], b->n_ids, n_ids };
    b->n_ids += n_ids;
    return s + 1 == QKVI_EVAL_BATCH ? score_waiting(b, error) : QKV_OK;
}

/* A word of several tokens cannot be filled into one blank: it counts, and counts as missed. */
static qkv_status count_missed(blanks *b, const qkvi_slot *slot, qkv_error *error) {
    return judge(b->eval, &(qkvi_judged){ .slot = slot->type, .is_single = slot->n_words == 1 },
                 error);
}

static qkv_status add_slots(blanks *b, const qkv_encoding *encoding, const qkvi_slot *slots,
                            int32_t n_slots, qkv_error *error) {
    for (int32_t i = 0; i < n_slots; i++) {
        const int64_t token = qkvi_token_of_span(encoding, slots[i].span);
        if (token < 0) {
            QKV_TRY(count_missed(b, &slots[i], error));
            continue;
        }
        QKV_TRY(reserve_ids(b, (size_t)slots[i].n_words, error));
        const int64_t n = qkvi_slot_ids(b->eval, &slots[i], b->ids + b->n_ids);
        QKV_TRY(add_blank(b, encoding, token, slots[i].type, (size_t)n, error));
    }
    return QKV_OK;
}

static qkv_status add_tokens(blanks *b, const qkv_encoding *encoding, qkv_error *error) {
    for (int64_t t = 0; t < encoding->n; t++) {
        if (encoding->special[t]) continue;
        QKV_TRY(reserve_ids(b, 1, error));
        b->ids[b->n_ids] = encoding->ids[t];
        QKV_TRY(add_blank(b, encoding, t, "token", 1, error));
    }
    return QKV_OK;
}

static qkv_status add_pair(blanks *b, int64_t index, qkv_error *error) {
    const qkvi_eval *const eval = b->eval;
    const bool is_text = eval->piece;
    qkvi_pair pair;
    qkvi_slot *slots = NULL;
    int32_t n_slots = 0;
    qkv_encoding *encoding = NULL;
    qkvi_eval_pair(eval, index, &pair);
    if (!pair.counts_for_mlm || (is_text && !pair.is_next)) return QKV_OK;
    qkv_status status = qkvi_eval_encode(eval, &pair, &encoding, error);
    if (status == QKV_OK && !is_text)
        status = qkvi_corpus_slots(eval->corpus, &pair, &slots, &n_slots, error);
    if (status == QKV_OK)
        status = is_text ? add_tokens(b, encoding, error)
                         : add_slots(b, encoding, slots, n_slots, error);
    qkvi_slots_free(slots);
    qkv_encoding_free(encoding);
    return status;
}

static qkv_status run(blanks *b, qkv_error *error) {
    qkvi_feed_clear(&b->eval->batch);
    for (int64_t p = 0; p < qkvi_eval_n_pairs(b->eval); p++) QKV_TRY(add_pair(b, p, error));
    return score_waiting(b, error);
}

qkv_status qkvi_eval_blanks(qkvi_eval *eval, qkv_error *error) {
    blanks *const b = calloc(1, sizeof *b);
    if (!b) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to evaluate");
    b->eval = eval;
    eval->n_judged = 0;
    const qkv_status status = run(b, error);
    free(b->ids);
    free(b);
    return status;
}
