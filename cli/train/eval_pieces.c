/*
 * `qkv eval --text` of a model with an MLM head: ranks share pieces of the text. The first rank
 * reads the text, and adds up in the order of pieces.
 */
#include "common/ranks.h"
#include "common/share.h"
#include "train/train.h"

#include <stdlib.h>
#include <string.h>

struct measured {
    qkv_eval_work *work;
    struct progress_clock clock;
    int64_t n_given;
};

static bool next(void *user, struct text *piece, qkv_status *status, qkv_error *error) {
    struct measured *const measured = user;
    *status = qkv_eval_piece(measured->work, measured->n_given++, &piece->bytes, &piece->n, error);
    return *status == QKV_OK && piece->bytes;
}

static qkv_status make(void *user, const struct text *piece, struct text *answer,
                       qkv_error *error) {
    const struct measured *const measured = user;
    char *bytes;
    size_t n;
    const qkv_status status =
        qkv_eval_measure(measured->work, piece->bytes, piece->n, &bytes, &n, error);
    if (status != QKV_OK) return status;
    answer->bytes = malloc(n);
    if (!answer->bytes) return text_no_memory(error);
    memcpy(answer->bytes, bytes, n);
    answer->n = n;
    return QKV_OK;
}

static qkv_status take(void *user, const struct text *answer, qkv_error *error) {
    const struct measured *const measured = user;
    return qkv_eval_take(measured->work, answer->bytes, answer->n, error);
}

static qkv_status measure(const struct session *session, struct measured *measured,
                          const char *journal, qkv_error *error) {
    const struct share share = { .user = measured,
                                 .next = next,
                                 .make = make,
                                 .take = take,
                                 .journal = journal,
                                 .model = session->common->model,
                                 .quiet = session->common->quiet };
    progress_clock_begin(&measured->clock, "measuring", session->common->quiet);
    const qkv_status status = share_run(&share, error);
    progress_clock_end(&measured->clock);
    return status;
}

int eval_pieces(const struct session *session, const char *text, const char *journal) {
    struct measured measured = { .work = NULL };
    qkv_eval_report *report = NULL;
    qkv_error error;
    const bool is_first = ranks_rank() == 0;
    if (is_first) text_say_mark(text, session->common->quiet);
    qkv_status status =
        qkv_eval_open(session->ctx, session->model, is_first ? text : NULL, &measured.work, &error);
    int code = ranks_agree(cli_status(status, &error));
    if (!code) {
        status = measure(session, &measured, journal, &error);
        if (status == QKV_OK && is_first) status = qkv_eval_finish(measured.work, &report, &error);
        code = cli_status(status, &error);
    }
    if (!code && is_first) eval_print(report, session->common);
    qkv_eval_report_free(report);
    qkv_eval_work_free(measured.work);
    return code;
}
