/* The evaluation of a text in pieces: qkv/train.h. */
#include <string.h>

#include "oom/calls.h"
#include "qkv/train.h"

#define MODEL QKV_TEST_DATA "/golden/bert_new"

static const char text[] = "a b\tb\nb a\ta\n", piece[] = "+a b\tb\n-b a\tb\n";

static char text_path[256];
static qkv_ctx *ctx;
static qkv_model *model;
static qkv_eval_work *work;
static qkv_eval_report *report;
static char *bytes, *answer;
static size_t n_bytes, n_answer;

static void open_work(void) {
    qkv_error error;
    oom_must(qkv_eval_open(ctx, model, text_path, &work, &error), &error);
}

static void measure_work(void) {
    qkv_error error;
    open_work();
    oom_must(qkv_eval_measure(work, piece, strlen(piece), &answer, &n_answer, &error), &error);
}

static qkv_status open_text(qkv_error *error) {
    work = (qkv_eval_work *)&n_bytes; /* must become NULL or an evaluation */
    const qkv_status status = qkv_eval_open(ctx, model, text_path, &work, error);
    oom_claim(status == QKV_OK || !work, "work is NULL after a failure");
    return status;
}

static qkv_status cut(qkv_error *error) { return qkv_eval_piece(work, 0, &bytes, &n_bytes, error); }

static qkv_status measure(qkv_error *error) {
    return qkv_eval_measure(work, piece, strlen(piece), &bytes, &n_bytes, error);
}

static qkv_status take_answer(qkv_error *error) {
    return qkv_eval_take(work, answer, n_answer, error);
}

static qkv_status finish(qkv_error *error) { return qkv_eval_finish(work, &report, error); }

/* ---- Results --------------------------------------------------------------------------------- */

static uint64_t hash_bytes(void) { return oom_hash(0, bytes, n_bytes); }

static uint64_t hash_report(void) {
    const int64_t counts[] = { report->n_rows, report->total->n_blanks,
                               report->total->n_top1_admissible, report->n_pairs,
                               report->n_pairs_right };
    const uint64_t hash = oom_hash(0, counts, sizeof counts);
    return oom_hash(hash, &report->mlm_loss, sizeof report->mlm_loss);
}

static uint64_t hash_work(void) {
    qkv_error error;
    oom_must(qkv_eval_piece(work, 0, &bytes, &n_bytes, &error), &error);
    return hash_bytes();
}

static uint64_t hash_sums(void) {
    qkv_error error;
    oom_must(qkv_eval_finish(work, &report, &error), &error);
    return hash_report();
}

static void drop(void) {
    qkv_eval_report_free(report);
    qkv_eval_work_free(work);
    report = NULL;
    work = NULL;
}

/* ---- Setup ----------------------------------------------------------------------------------- */

static void set_up(void) {
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    options.n_threads = 1;
    oom_path(text_path, "text");
    oom_put(text_path, text, strlen(text));
    oom_must(qkv_model_open(MODEL, NULL, &model, &error), &error);
    oom_must(qkv_ctx_create(&options, &ctx, &error), &error);
}

static void tear_down(void) {
    qkv_model_free(model);
    qkv_ctx_free(ctx);
}

static const oom_call calls[] = {
    { "qkv_eval_open", "a text", NULL, open_text, hash_work, drop, OOM_IO, 0 },
    { "qkv_eval_piece", "of a text", open_work, cut, hash_bytes, drop, 0, 0 },
    { "qkv_eval_measure", "two pairs", open_work, measure, hash_bytes, drop, 0, 0 },
    { "qkv_eval_take", "two pairs", measure_work, take_answer, hash_sums, drop, 0, 0 },
    { "qkv_eval_finish", "two pairs", measure_work, finish, hash_report, drop, 0, 0 },
};

const oom_group oom_eval = { "eval", calls, sizeof calls / sizeof *calls, set_up, tear_down };
