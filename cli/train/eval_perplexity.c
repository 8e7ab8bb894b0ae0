/*
 * `qkv eval --text` of a causal language model, or of an encoder-decoder: its perplexity on the
 * lines of a file, or on pairs. Ranks share the lines. Sums are made in the order of lines.
 */
#include "common/ranks.h"
#include "common/share.h"
#include "train/train.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/generate.h>

/* Sums over lines. */
struct measured {
    struct lines lines; /* first: share_next_line */
    const struct session *session;
    struct progress progress;
    int64_t stride, n_lines, n_tokens;
    double sum, begun;
};

/* The answer to a line. */
struct of_line {
    double sum, begun;
    int64_t n_tokens;
};

static qkv_status put_report(const qkv_perplexity_report *report, struct text *answer,
                             qkv_error *error) {
    const double n = (double)report->n_tokens;
    const struct of_line made = { report->loss * n, report->begun_loss * n, report->n_tokens };
    answer->bytes = malloc(sizeof made);
    if (!answer->bytes) return text_no_memory(error);
    memcpy(answer->bytes, &made, sizeof made);
    answer->n = sizeof made;
    return QKV_OK;
}

static qkv_status make_of_line(void *user, const struct text *line, struct text *answer,
                               qkv_error *error) {
    const struct measured *const sums = user;
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
    return status == QKV_OK ? put_report(&report, answer, error) : status;
}

/* As a corpus of translations has them: the first tab parts the two, and neither is empty. */
static qkv_status make_of_pair(void *user, const struct text *line, struct text *answer,
                               qkv_error *error) {
    const struct measured *const sums = user;
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
    return status == QKV_OK ? put_report(&report, answer, error) : status;
}

static qkv_status take(void *user, const struct text *answer, qkv_error *error) {
    struct measured *const sums = user;
    struct of_line made;
    char text[64];
    if (answer->n != sizeof made)
        return text_error(error, QKV_ERR_FORMAT, "an answer in the journal has %zu bytes",
                          answer->n);
    memcpy(&made, answer->bytes, sizeof made);
    sums->sum += made.sum;
    sums->begun += made.begun;
    sums->n_tokens += made.n_tokens;
    snprintf(text, sizeof text, "%" PRId64 " lines", ++sums->n_lines);
    progress_text(&sums->progress, text);
    return QKV_OK;
}

static int measure(struct measured *sums, const char *path, const char *journal, bool pairs) {
    const struct share share = { .user = sums,
                                 .next = share_next_line,
                                 .make = pairs ? make_of_pair : make_of_line,
                                 .take = take,
                                 .failed = share_failed_line,
                                 .journal = journal,
                                 .model = sums->session->common->model,
                                 .quiet = sums->session->common->quiet };
    qkv_error error;
    qkv_status status = QKV_OK;
    if (ranks_rank() == 0) status = lines_open(&sums->lines, path, &error);
    const int code = ranks_agree(cli_status(status, &error));
    if (code) return code;
    progress_begin(&sums->progress, sums->session->common->quiet);
    status = share_run(&share, &error);
    progress_end(&sums->progress);
    lines_close(&sums->lines);
    return cli_status(status, &error);
}

/* Windows that begin as the text does are told where that matters. */
static bool has_windows(const struct measured *sums) { return sums->begun != sums->sum; }

static json_t *to_json(const struct measured *sums) {
    const double n = (double)sums->n_tokens, loss = sums->sum / n, begun = sums->begun / n;
    json_t *const object = json_set(NULL, "lines:i tokens:i loss:n perplexity:n", sums->n_lines,
                                    sums->n_tokens, loss, exp(loss));
    return has_windows(sums)
               ? json_set(object, "begun_loss:n begun_perplexity:n", begun, exp(begun))
               : object;
}

static int print(const struct measured *sums) {
    const double n = (double)sums->n_tokens, loss = sums->sum / n, begun = sums->begun / n;
    printf("lines        %" PRId64 "\n", sums->n_lines);
    printf("tokens       %" PRId64 " predicted\n", sums->n_tokens);
    printf("loss         %.4f (mean of -ln p)\n", loss);
    printf("perplexity   %.2f\n", exp(loss));
    if (has_windows(sums))
        printf("begun        loss %.4f, perplexity %.2f: each window begins as its text does\n",
               begun, exp(begun));
    return EXIT_OK;
}

int eval_perplexity(const struct session *session, const char *path, const char *journal,
                    int64_t stride) {
    struct measured sums = { .lines.quiet = session->common->quiet,
                             .session = session,
                             .stride = stride };
    const bool pairs = session->info->kind == QKV_MODEL_PAIR;
    const int code = measure(&sums, path, journal, pairs);
    if (code || ranks_rank() > 0) return code;
    if (sums.n_tokens == 0)
        return cli_fail(pairs ? "%s: no line" : "%s: no line has two tokens", path);
    return session->common->json ? json_emit(to_json(&sums)) : print(&sums);
}
