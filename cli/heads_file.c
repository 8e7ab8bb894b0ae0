/*
 * `qkv heads --file`: a text, or two separated by a tab, a line. Lines are run some at a time; what
 * comes of a line does not depend on the others.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "heads.h"
#include "lines.h"

enum { BATCH = 256, BATCH_TOKENS = 4096 };

struct reading {
    struct heads *heads;
    struct heads_sum *sum;
    struct lines lines;
    int64_t file_bytes;    /* 0: unknown */
    qkv_head_stats *stats; /* [heads of the model] */
    qkv_encoding *waiting[BATCH];
    int64_t n_waiting, n_waiting_tokens;
    struct progress progress;
};

/* ---- Running --------------------------------------------------------------------------------- */

static void tell(struct reading *reading) {
    char text[80];
    if (reading->file_bytes > 0) {
        progress_bar(&reading->progress, "reading", reading->lines.n_bytes, reading->file_bytes);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64 " texts ...", reading->heads->n_texts);
    progress_text(&reading->progress, text);
}

static qkv_status run_waiting(struct reading *reading, qkv_error *error) {
    const struct session *session = reading->heads->session;
    qkv_run *run = NULL;
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (reading->n_waiting == 0) return QKV_OK;
    qkv_status status =
        qkv_model_run_what_if(session->ctx, session->model, reading->n_waiting,
                              (const qkv_encoding *const *)reading->waiting, QKV_RUN_CAPTURE,
                              &reading->heads->what_if->asked, &run, error);
    for (int64_t b = 0; b < reading->n_waiting; b++) {
        if (status == QKV_OK)
            status = qkv_inspect_heads(session->ctx, session->model, run, b, reading->waiting[b],
                                       reading->stats, error);
        if (status == QKV_OK) heads_sum_add(reading->sum, reading->stats);
        if (status == QKV_OK && session->info->n_layers * session->info->n_heads > 0)
            reading->heads->n_queries += reading->stats[0].n_queries;
        reading->heads->n_tokens += reading->waiting[b]->n;
        qkv_encoding_free(reading->waiting[b]);
    }
    reading->heads->n_texts += reading->n_waiting;
    reading->n_waiting = reading->n_waiting_tokens = 0;
    qkv_run_free(run);
    tell(reading);
    return status;
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static bool is_blank(const char *bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != ' ' && bytes[i] != '\t') return false;
    return true;
}

/* Into texts; how many there are: none on a blank line. */
static qkv_status split(struct text line, struct text texts[2], int *n_texts, qkv_error *error) {
    *n_texts = 0;
    if (line.n > 0 && line.bytes[line.n - 1] == '\r') line.n--;
    if (is_blank(line.bytes, line.n)) return QKV_OK;
    char *const tab = memchr(line.bytes, '\t', line.n);
    const size_t first = tab ? (size_t)(tab - line.bytes) : line.n;
    texts[0] = (struct text){ line.bytes, first };
    *n_texts = 1;
    if (!tab) return QKV_OK;
    texts[1] = (struct text){ tab + 1, line.n - first - 1 };
    *n_texts = 2;
    if (memchr(texts[1].bytes, '\t', texts[1].n))
        return text_error(error, QKV_ERR_FORMAT, "more than one tab: a line is a text, or two");
    for (int i = 0; i < 2; i++)
        if (is_blank(texts[i].bytes, texts[i].n))
            return text_error(error, QKV_ERR_FORMAT, "no text %s the tab", i ? "after" : "before");
    return QKV_OK;
}

static qkv_status add_line(struct reading *reading, qkv_error *error) {
    struct text texts[2] = { { NULL, 0 }, { NULL, 0 } };
    int n_texts = 0;
    qkv_encoding *encoding = NULL;
    qkv_status status = split(reading->lines.line, texts, &n_texts, error);
    if (status != QKV_OK || n_texts == 0) return status;
    const struct session *session = reading->heads->session;
    status = qkv_tokenizer_encode(session->tokenizer, texts[0].bytes, texts[0].n, texts[1].bytes,
                                  texts[1].n, &encoding, error);
    const int64_t n = status == QKV_OK ? encoding->n : 0;
    if (status == QKV_OK) status = text_fit(session, NULL, encoding, error);
    if (status != QKV_OK) {
        qkv_encoding_free(encoding);
        return status;
    }
    reading->heads->n_cut += encoding->n < n;
    reading->waiting[reading->n_waiting++] = encoding;
    reading->n_waiting_tokens += encoding->n;
    return QKV_OK;
}

static qkv_status read_lines(struct reading *reading, qkv_error *error) {
    qkv_status status = QKV_OK;
    while (status == QKV_OK && lines_next(&reading->lines, &status, error)) {
        if (status == QKV_OK) status = add_line(reading, error);
        if (status != QKV_OK) return lines_error(&reading->lines, error);
        if (reading->n_waiting == BATCH || reading->n_waiting_tokens >= BATCH_TOKENS)
            status = run_waiting(reading, error);
    }
    if (status == QKV_OK) status = lines_end(&reading->lines, error);
    if (status == QKV_OK) status = run_waiting(reading, error);
    if (status == QKV_OK && reading->heads->n_texts == 0)
        return text_error(error, QKV_ERR_FORMAT, "%s: no line has any text", reading->lines.name);
    return status;
}

static qkv_status open_file(struct reading *reading, const char *path, qkv_error *error) {
    struct stat about;
    const qkv_status status = lines_open(&reading->lines, path, error);
    FILE *const in = reading->lines.in;
    if (in && in != stdin && fstat(fileno(in), &about) == 0 && S_ISREG(about.st_mode))
        reading->file_bytes = about.st_size;
    return status;
}

qkv_status heads_read(struct heads *heads, struct heads_sum *sum, qkv_error *error) {
    const struct session *session = heads->session;
    struct reading reading = { .heads = heads, .sum = sum };
    reading.stats = calloc((size_t)(session->info->n_layers * session->info->n_heads) + 1,
                           sizeof *reading.stats);
    if (!reading.stats) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    qkv_status status = open_file(&reading, heads->options->file, error);
    progress_begin(&reading.progress, session->common->quiet);
    if (status == QKV_OK) status = read_lines(&reading, error);
    progress_end(&reading.progress);
    for (int64_t b = 0; b < reading.n_waiting; b++) qkv_encoding_free(reading.waiting[b]);
    lines_close(&reading.lines);
    free(reading.stats);
    return status;
}
