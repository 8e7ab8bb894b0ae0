/*
 * Evaluation of a text in pieces, which processes may share: see qkv/train.h. Their messages:
 *
 *     a piece    for each pair a line: + or - (does the second half follow the first?), then the
 *                halves with a tab between
 *     an answer  a struct head, then a struct of_blank for each blank in order
 *
 * Answers are added up in the order of pieces, blank by blank. So sums have the same bits wherever
 * a piece ends.
 */
#include "core/fpstate.h"
#include "train/eval.h"

struct head {
    int64_t n_next, n_next_right, n_blanks;
};

struct of_blank {
    double mass, loss;
    int64_t is_right;
};

struct qkv_eval_work {
    qkvi_eval eval;
    qkvi_corpus *corpus; /* NULL: it has no text, and only measures */
    qkvi_growing piece, answer;
    double loss;
};

/* ---- Pieces ---------------------------------------------------------------------------------- */

static qkv_status put_pair(qkvi_growing *piece, const qkvi_pair *pair) {
    QKV_TRY(qkvi_growing_put(piece, pair->is_next ? "+" : "-", 1));
    QKV_TRY(qkvi_growing_put(piece, pair->a, (size_t)pair->a_bytes));
    if (pair->b_bytes > 0) {
        QKV_TRY(qkvi_growing_put(piece, "\t", 1));
        QKV_TRY(qkvi_growing_put(piece, pair->b, (size_t)pair->b_bytes));
    }
    return qkvi_growing_put(piece, "\n", 1);
}

static qkv_status read_pair(qkvi_eval_piece *piece, const char *line, int64_t n, qkv_error *error) {
    if (piece->n == QKVI_PIECE_PAIRS)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "a piece has more than %d lines",
                              QKVI_PIECE_PAIRS);
    if (n == 0 || (*line != '+' && *line != '-'))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "line %lld of a piece begins without + or -",
                              (long long)piece->n + 1);
    const char *const a = line + 1, *const end = line + n;
    const char *const tab = memchr(a, '\t', (size_t)(end - a));
    piece->pairs[piece->n].a = a;
    piece->pairs[piece->n].a_bytes = (tab ? tab : end) - a;
    piece->pairs[piece->n].b = tab ? tab + 1 : end;
    piece->pairs[piece->n].b_bytes = tab ? end - tab - 1 : 0;
    piece->pairs[piece->n].is_next = *line == '+';
    piece->n++;
    return QKV_OK;
}

static qkv_status read_piece(qkvi_eval_piece *piece, const char *bytes, size_t n,
                             qkv_error *error) {
    piece->n = 0;
    for (size_t at = 0; at < n;) {
        const char *const newline = memchr(bytes + at, '\n', n - at);
        const size_t end = newline ? (size_t)(newline - bytes) : n;
        QKV_TRY(read_pair(piece, bytes + at, (int64_t)(end - at), error));
        at = end + 1;
    }
    return QKV_OK;
}

qkv_status qkv_eval_piece(qkv_eval_work *work, int64_t index, char **piece, size_t *n_bytes,
                          qkv_error *error) {
    if (!work || !piece || !n_bytes)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !work    ? "work"
                              : !piece ? "piece"
                                       : "n_bytes");
    if (index < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "index = %lld is negative",
                              (long long)index);
    const int64_t n_pairs = work->corpus ? qkvi_corpus_held_out_pairs(work->corpus) : 0;
    if (index >= (n_pairs + QKVI_PIECE_PAIRS - 1) / QKVI_PIECE_PAIRS) {
        *piece = NULL;
        *n_bytes = 0;
        return QKV_OK;
    }
    work->piece.n = 0;
    for (int64_t i = 0, p = index * QKVI_PIECE_PAIRS; i < QKVI_PIECE_PAIRS && p < n_pairs;
         i++, p++) {
        qkvi_pair pair;
        qkvi_corpus_pair(work->corpus, QKVI_SPLIT_HELD_OUT, p, 0, &pair);
        if (put_pair(&work->piece, &pair) != QKV_OK) return qkvi_no_memory(error, "a piece");
    }
    *piece = work->piece.bytes;
    *n_bytes = work->piece.n;
    return QKV_OK;
}

/* ---- Answers --------------------------------------------------------------------------------- */

static qkv_status put_answer(const qkvi_eval *eval, qkvi_growing *answer) {
    const struct head head = { .n_next = eval->n_next,
                               .n_next_right = eval->n_next_right,
                               .n_blanks = (int64_t)eval->n_judged };
    answer->n = 0;
    QKV_TRY(qkvi_growing_put(answer, &head, sizeof head));
    for (size_t i = 0; i < eval->n_judged; i++) {
        const qkvi_judged *const judged = &eval->judged[i];
        const struct of_blank blank = { .mass = judged->mass,
                                        .loss = judged->loss,
                                        .is_right = judged->is_right };
        QKV_TRY(qkvi_growing_put(answer, &blank, sizeof blank));
    }
    return QKV_OK;
}

static qkv_status measure(qkv_eval_work *work, const char *bytes, size_t n_bytes,
                          qkv_error *error) {
    qkvi_eval *const eval = &work->eval;
    qkvi_eval_piece piece;
    QKV_TRY(read_piece(&piece, bytes, n_bytes, error));
    eval->piece = &piece;
    qkv_status status = qkvi_eval_blanks(eval, error);
    if (status == QKV_OK && eval->model->info.has_nsp) status = qkvi_eval_next(eval, error);
    eval->piece = NULL;
    if (status == QKV_OK && put_answer(eval, &work->answer) != QKV_OK)
        status = qkvi_no_memory(error, "an answer");
    return status;
}

qkv_status qkv_eval_measure(qkv_eval_work *work, const char *piece, size_t n_bytes, char **answer,
                            size_t *n_answer, qkv_error *error) {
    if (!work || !piece || !answer || !n_answer)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL",
                              !work     ? "work"
                              : !piece  ? "piece"
                              : !answer ? "answer"
                                        : "n_answer");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = measure(work, piece, n_bytes, error);
    qkvi_fpstate_leave(saved);
    if (status != QKV_OK) return status;
    *answer = work->answer.bytes;
    *n_answer = work->answer.n;
    return QKV_OK;
}

static bool is_answer(const char *answer, size_t n_bytes, struct head *head) {
    struct of_blank blank;
    if (n_bytes < sizeof *head) return false;
    memcpy(head, answer, sizeof *head);
    const size_t n = (n_bytes - sizeof *head) / sizeof blank;
    if (head->n_blanks < 0 || (uint64_t)head->n_blanks != n ||
        n_bytes != sizeof *head + n * sizeof blank)
        return false;
    if (head->n_next < 0 || head->n_next > QKVI_PIECE_PAIRS || head->n_next_right < 0 ||
        head->n_next_right > head->n_next)
        return false;
    for (size_t i = 0; i < n; i++) {
        memcpy(&blank, answer + sizeof *head + i * sizeof blank, sizeof blank);
        if (blank.is_right != 0 && blank.is_right != 1) return false;
    }
    return true;
}

static qkv_status take(qkv_eval_work *work, const char *answer, size_t n_bytes, qkv_error *error) {
    qkv_eval_report *const report = work->eval.report;
    struct head head;
    if (!report) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the report was given before");
    if (!is_answer(answer, n_bytes, &head))
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%zu bytes are no answer to a piece of a text",
                              n_bytes);
    for (int64_t i = 0; i < head.n_blanks; i++) {
        struct of_blank blank;
        memcpy(&blank, answer + sizeof head + (size_t)i * sizeof blank, sizeof blank);
        const qkvi_judged judged = { .slot = "token",
                                     .mass = blank.mass,
                                     .loss = blank.loss,
                                     .is_single = true,
                                     .is_right = blank.is_right == 1 };
        QKV_TRY(qkvi_eval_count(report, &judged, &work->loss, error));
    }
    report->n_pairs += head.n_next;
    report->n_pairs_right += head.n_next_right;
    return QKV_OK;
}

qkv_status qkv_eval_take(qkv_eval_work *work, const char *answer, size_t n_bytes,
                         qkv_error *error) {
    if (!work || !answer)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", work ? "answer" : "work");
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = take(work, answer, n_bytes, error);
    qkvi_fpstate_leave(saved);
    return status;
}

/* ---- From the beginning to the end ----------------------------------------------------------- */

qkv_status qkv_eval_open(qkv_ctx *ctx, const qkv_model *model, const char *text,
                         qkv_eval_work **work, qkv_error *error) {
    if (!work) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "work is NULL");
    *work = NULL;
    QKV_TRY(qkvi_eval_check(ctx, model, error));
    qkv_eval_work *const new = calloc(1, sizeof *new);
    if (!new) return qkvi_no_memory(error, "an evaluation");
    new->eval.ctx = ctx;
    new->eval.model = model;
    qkv_status status = text ? qkvi_corpus_open_text(text, &new->corpus, error) : QKV_OK;
    if (status == QKV_OK) status = qkvi_eval_make_room(&new->eval, error);
    if (status == QKV_OK)
        *work = new;
    else
        qkv_eval_work_free(new);
    return status;
}

qkv_status qkv_eval_finish(qkv_eval_work *work, qkv_eval_report **report, qkv_error *error) {
    if (!work || !report)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", work ? "report" : "work");
    if (!work->eval.report)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the report was given before");
    *report = work->eval.report;
    work->eval.report = NULL;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    qkvi_eval_means(*report, work->loss);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

void qkv_eval_work_free(qkv_eval_work *work) {
    if (!work) return;
    qkvi_eval_free_room(&work->eval);
    qkv_eval_report_free(work->eval.report);
    qkvi_corpus_free(work->corpus);
    free(work->piece.bytes);
    free(work->answer.bytes);
    free(work);
}

/* The same by one process. */
static qkv_status run(qkv_eval_work *work, qkv_eval_report **report, qkv_error *error) {
    for (int64_t index = 0;; index++) {
        char *piece, *answer;
        size_t n_piece, n_answer;
        QKV_TRY(qkv_eval_piece(work, index, &piece, &n_piece, error));
        if (!piece) return qkv_eval_finish(work, report, error);
        QKV_TRY(qkv_eval_measure(work, piece, n_piece, &answer, &n_answer, error));
        QKV_TRY(qkv_eval_take(work, answer, n_answer, error));
    }
}

qkv_status qkvi_eval_text(qkv_ctx *ctx, const qkv_model *model, const char *text,
                          qkv_eval_report **report, qkv_error *error) {
    qkv_eval_work *work;
    QKV_TRY(qkv_eval_open(ctx, model, text, &work, error));
    const qkv_status status = run(work, report, error);
    qkv_eval_work_free(work);
    return status;
}
