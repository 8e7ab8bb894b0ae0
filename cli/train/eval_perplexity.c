/* `qkv eval --text` of a model that predicts the next token: its perplexity on the lines of a file. */
#include "train/train.h"

#include <inttypes.h>
#include <math.h>

#include <qkv/generate.h>

/* Sums over lines. */
struct measured {
    const struct session *session;
    int64_t stride, n_lines, n_tokens;
    double sum;
};

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
    if (status != QKV_OK) return status;
    sums->sum += report.loss * (double)report.n_tokens;
    sums->n_tokens += report.n_tokens;
    sums->n_lines++;
    return QKV_OK;
}

int eval_perplexity(const struct session *session, const char *path, int64_t stride) {
    struct measured sums = { .session = session, .stride = stride };
    struct progress progress;
    qkv_error error;
    progress_begin(&progress, session->common->quiet);
    if (lines_each(path, &progress, "", add_line, &sums, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    if (sums.n_tokens == 0) return cli_fail("%s: no line has two tokens", path);
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
