/*
 * `qkv eval --text` of a model that predicts the next token: its perplexity on the lines of a file, or
 * on the pairs of them.
 */
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <qkv/generate.h>

/* Sums over lines. */
struct measured {
    const struct session *session;
    int64_t stride, n_lines, n_tokens;
    double sum;
};

static void add_report(struct measured *sums, const qkv_perplexity_report *report) {
    sums->sum += report->loss * (double)report->n_tokens;
    sums->n_tokens += report->n_tokens;
    sums->n_lines++;
}

static qkv_status add_line(void *user, const struct text *line, qkv_error *error) {
    struct measured *const sums = user;
    const struct session *const session = sums->session;
    qkv_encoding *text = NULL;
    qkv_perplexity_report report = qkv_perplexity_report_init();
    qkv_status status =
        qkv_tokenizer_encode(session->tokenizer, line->bytes, line->n, NULL, 0, &text, error);
    const qkv_encoding *const texts[] = { text };
    if (status == QKV_OK)
        status =
            qkv_perplexity(session->ctx, session->model, 1, texts, sums->stride, &report, error);
    qkv_encoding_free(text);
    if (status == QKV_OK) add_report(sums, &report);
    return status;
}

/* As a corpus of translations has them: the first tab parts the two, and neither is empty. */
static qkv_status add_pair(void *user, const struct text *line, qkv_error *error) {
    struct measured *const sums = user;
    const struct session *const session = sums->session;
    const char *const tab = line->n > 0 ? memchr(line->bytes, '\t', line->n) : NULL;
    const size_t n = tab ? (size_t)(tab - line->bytes) : 0;
    qkv_encoding *source = NULL, *target = NULL;
    qkv_perplexity_report report = qkv_perplexity_report_init();
    if (n == 0 || n + 1 == line->n)
        return text_error(error, QKV_ERR_FORMAT, "the line is not source TAB target");
    qkv_status status =
        qkv_tokenizer_encode(session->tokenizer, line->bytes, n, NULL, 0, &source, error);
    if (status == QKV_OK)
        status = qkv_tokenizer_encode(session->target, tab + 1, line->n - n - 1, NULL, 0, &target,
                                      error);
    const qkv_encoding *const sources[] = { source }, *const targets[] = { target };
    if (status == QKV_OK)
        status =
            qkv_perplexity_pairs(session->ctx, session->model, 1, sources, targets, &report, error);
    qkv_encoding_free(source);
    qkv_encoding_free(target);
    if (status == QKV_OK) add_report(sums, &report);
    return status;
}

int eval_perplexity(const struct session *session, const char *path, int64_t stride) {
    struct measured sums = { .session = session, .stride = stride };
    const bool pairs = session->info->kind == QKV_MODEL_PAIR;
    struct progress progress;
    qkv_error error;
    progress_begin(&progress, session->common->quiet);
    if (lines_each(path, &progress, "", pairs ? add_pair : add_line, &sums, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    if (sums.n_tokens == 0)
        return cli_fail(pairs ? "%s: no line" : "%s: no line has two tokens", path);
    const double loss = sums.sum / (double)sums.n_tokens;
    if (session->common->json)
        return json_emit(json_pack("{s:I, s:I, s:o, s:o}", "lines", (json_int_t)sums.n_lines,
                                   "tokens", (json_int_t)sums.n_tokens, "loss", json_number(loss),
                                   "perplexity", json_number(exp(loss))));
    printf("lines        %" PRId64 "\n", sums.n_lines);
    printf("tokens       %" PRId64 " predicted\n", sums.n_tokens);
    printf("loss         %.4f (mean of -ln p)\n", loss);
    printf("perplexity   %.2f\n", exp(loss));
    return EXIT_OK;
}
