/* See texts.h. */
#include "heads/texts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/lines.h"

enum { BATCH = 256, BATCH_TOKENS = 4096 };

struct reading {
    struct texts *texts;
    struct lines lines;
    int64_t file_bytes; /* 0: unknown */
    qkv_encoding *waiting[BATCH];
    int64_t numbers[BATCH]; /* of their lines */
    struct pair *pairs;     /* [BATCH] of --cross and --decoder */
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
    snprintf(text, sizeof text, "%" PRId64 " texts ...", reading->texts->n_texts);
    progress_text(&reading->progress, text);
}

static qkv_status add_one(struct reading *reading, const qkv_run *run, int64_t b,
                          qkv_error *error) {
    struct texts *const texts = reading->texts;
    const struct texts_one one = { run, b, reading->numbers[b], reading->waiting[b],
                                   &reading->pairs[b] };
    texts->n_tokens += one.input->n;
    texts->n_targets += one.pair->inputs.n;
    return texts->take(texts->user, &one, error);
}

static void drop_one(struct reading *reading, int64_t b) {
    qkv_encoding_free(reading->waiting[b]);
    pair_free(&reading->pairs[b]);
    reading->pairs[b] = (struct pair){ .target = NULL };
}

static qkv_status run_waiting(struct reading *reading, qkv_error *error) {
    const struct session *session = reading->texts->session;
    qkv_run *run = NULL;
    if (cli_cancelled) return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (reading->n_waiting == 0) return QKV_OK;
    qkv_status status =
        pair_model_run(session, reading->n_waiting, (const qkv_encoding *const *)reading->waiting,
                       reading->pairs, reading->texts->flags, reading->texts->asked, &run, error);
    for (int64_t b = 0; b < reading->n_waiting; b++) {
        if (status == QKV_OK) status = add_one(reading, run, b, error);
        drop_one(reading, b);
    }
    reading->texts->n_texts += reading->n_waiting;
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
    const struct session *session = reading->texts->session;
    const bool pairs = reading->texts->which != QKV_SELF; /* the second text is a target */
    struct pair *const pair = &reading->pairs[reading->n_waiting];
    const struct text other = pairs ? (struct text){ NULL, 0 } : texts[1];
    status = qkv_tokenizer_encode(session->tokenizer, texts[0].bytes, texts[0].n, other.bytes,
                                  other.n, &encoding, error);
    const int64_t n = status == QKV_OK ? encoding->n : 0;
    if (status == QKV_OK) status = text_fit(session, NULL, encoding, error);
    if (status == QKV_OK && pairs) status = pair_make(session, encoding, texts[1], pair, error);
    reading->waiting[reading->n_waiting] = encoding;
    if (status != QKV_OK) {
        drop_one(reading, reading->n_waiting);
        return status;
    }
    reading->texts->n_cut += encoding->n < n;
    reading->numbers[reading->n_waiting++] = reading->lines.number;
    reading->n_waiting_tokens += encoding->n + pair->inputs.n;
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
    if (status == QKV_OK && reading->texts->n_texts == 0)
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

qkv_status texts_read(struct texts *texts, qkv_error *error) {
    struct reading reading = { .texts = texts };
    reading.pairs = calloc(BATCH, sizeof *reading.pairs);
    if (!reading.pairs) return text_no_memory(error);
    qkv_status status = open_file(&reading, texts->path, error);
    progress_begin(&reading.progress, texts->session->common->quiet);
    if (status == QKV_OK) status = read_lines(&reading, error);
    progress_end(&reading.progress);
    for (int64_t b = 0; b < reading.n_waiting; b++) drop_one(&reading, b);
    lines_close(&reading.lines);
    free(reading.pairs);
    return status;
}
