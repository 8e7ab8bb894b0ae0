/* Runs the model on the texts of a file: see texts.h. */
#include "heads/texts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "common/ranks.h"
#include "common/share.h"
#include "core/os.h"

/*
 * Lines of a piece, texts and tokens of a run. A piece has about as many bytes as a run has tokens'
 * bytes; and fewer lines, if their records are large.
 */
enum { BATCH = 256, BATCH_TOKENS = 4096, PIECE_BYTES = 1 << 14, RECORD_BYTES = 8 << 20 };

struct reading {
    struct texts *texts;
    struct lines lines;  /* on the first rank; the name and the number of a line on all */
    int64_t file_bytes;  /* 0: unknown */
    int64_t piece_lines; /* at most */
    struct text piece;   /* the last one: of each line its number, its length, and it */
    bool is_read;        /* up to its end, or to … */
    qkv_status input;    /* … what could not be read, behind the last piece */
    qkv_error input_error;
    struct progress progress;
    /* Of a piece. */
    qkv_encoding *waiting[BATCH];
    int64_t numbers[BATCH]; /* of their lines */
    struct pair *pairs;     /* [BATCH] of --cross and --decoder */
    int64_t n_waiting, n_waiting_tokens;
    struct counts {
        int64_t n_texts, n_cut, n_tokens, n_targets;
    } counts;
    FILE *out; /* of each text the length of its record, and it, up to a multiple of 8 bytes */
};

/* ---- Running --------------------------------------------------------------------------------- */

static qkv_status keep_record(struct reading *reading, const struct text *record,
                              qkv_error *error) {
    static const char zeros[8];
    const int64_t n = (int64_t)record->n;
    fwrite(&n, sizeof n, 1, reading->out);
    if (record->n > 0) fwrite(record->bytes, 1, record->n, reading->out);
    fwrite(zeros, 1, -record->n % sizeof zeros, reading->out);
    return ferror(reading->out) ? text_no_memory(error) : QKV_OK;
}

static qkv_status make_one(struct reading *reading, const qkv_run *run, int64_t b,
                           qkv_error *error) {
    struct texts *const texts = reading->texts;
    const struct texts_one one = { run, b, reading->numbers[b], reading->waiting[b],
                                   &reading->pairs[b] };
    struct text record = { NULL, 0 };
    reading->counts.n_tokens += one.input->n;
    reading->counts.n_targets += one.pair->inputs.n;
    qkv_status status = texts->make(texts->user, &one, &record, error);
    if (status == QKV_OK) status = keep_record(reading, &record, error);
    free(record.bytes);
    return status;
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
    qkv_status status = pair_model_run(
        session, reading->n_waiting, (const qkv_encoding *const *)reading->waiting, reading->pairs,
        reading->texts->flags, reading->texts->run_options, &run, error);
    for (int64_t b = 0; b < reading->n_waiting; b++) {
        if (status == QKV_OK) status = make_one(reading, run, b, error);
        drop_one(reading, b);
    }
    reading->counts.n_texts += reading->n_waiting;
    reading->n_waiting = reading->n_waiting_tokens = 0;
    qkv_run_free(run);
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

static qkv_status add_line(struct reading *reading, struct text line, qkv_error *error) {
    struct text texts[2] = { { NULL, 0 }, { NULL, 0 } };
    int n_texts = 0;
    qkv_encoding *encoding = NULL;
    qkv_status status = split(line, texts, &n_texts, error);
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
    reading->counts.n_cut += encoding->n < n;
    reading->numbers[reading->n_waiting++] = reading->lines.number;
    reading->n_waiting_tokens += encoding->n + pair->inputs.n;
    return QKV_OK;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

static bool piece_add(struct text *piece, size_t *room, const void *bytes, size_t n) {
    if (piece->n + n > *room) {
        const size_t twice = 2 * *room, larger = piece->n + n > twice ? piece->n + n : twice;
        char *const moved = realloc(piece->bytes, larger);
        if (!moved) return false;
        piece->bytes = moved;
        *room = larger;
    }
    if (n > 0) memcpy(piece->bytes + piece->n, bytes, n);
    piece->n += n;
    return true;
}

/* The next line to the piece; false: there is none, or a failure, which reading->input has. */
static bool read_line(struct reading *reading, size_t *room) {
    struct lines *const lines = &reading->lines;
    qkv_error *const error = &reading->input_error;
    if (!lines_next(lines, &reading->input, error)) {
        if (reading->input == QKV_OK) reading->input = lines_end(lines, error);
        return false;
    }
    if (reading->input == QKV_OK) {
        const int64_t head[2] = { lines->number, (int64_t)lines->line.n };
        if (piece_add(&reading->piece, room, head, sizeof head) &&
            piece_add(&reading->piece, room, lines->line.bytes, lines->line.n))
            return true;
        reading->input = text_no_memory(error);
    }
    lines_error(lines, error);
    return false;
}

static bool next(void *user, struct text *piece, qkv_status *status, qkv_error *error) {
    struct reading *const reading = user;
    size_t room = 0;
    free(reading->piece.bytes);
    reading->piece = (struct text){ NULL, 0 };
    if (cli_cancelled && reading->input == QKV_OK)
        reading->input =
            text_error(&reading->input_error, QKV_ERR_CANCELLED, "nothing was written");
    bool more = reading->input == QKV_OK && !reading->is_read;
    for (int64_t n = 0; more && n < reading->piece_lines && reading->piece.n < PIECE_BYTES; n++)
        more = read_line(reading, &room);
    reading->is_read |= !more;
    *piece = reading->piece;
    if (piece->n > 0) return true;
    *status = reading->input;
    *error = reading->input_error;
    return false;
}

static qkv_status run_piece(struct reading *reading, const struct text *piece, qkv_error *error) {
    qkv_status status = QKV_OK;
    for (size_t at = 0; status == QKV_OK && at < piece->n;) {
        int64_t head[2];
        memcpy(head, piece->bytes + at, sizeof head);
        at += sizeof head;
        reading->lines.number = head[0];
        status = add_line(reading, (struct text){ piece->bytes + at, (size_t)head[1] }, error);
        if (status != QKV_OK) return lines_error(&reading->lines, error);
        at += (size_t)head[1];
        if (reading->n_waiting == BATCH || reading->n_waiting_tokens >= BATCH_TOKENS)
            status = run_waiting(reading, error);
    }
    return status == QKV_OK ? run_waiting(reading, error) : status;
}

/* An answer: counts, and the records of texts. The number of the line that was read last stays. */
static qkv_status make_answer(void *user, const struct text *piece, struct text *answer,
                              qkv_error *error) {
    struct reading *const reading = user;
    const int64_t number = reading->lines.number;
    reading->counts = (struct counts){ 0 };
    reading->out = os_open_memory(&answer->bytes, &answer->n);
    if (!reading->out) return text_no_memory(error);
    fwrite(&reading->counts, sizeof reading->counts, 1, reading->out);
    qkv_status status = run_piece(reading, piece, error);
    for (int64_t b = 0; b < reading->n_waiting; b++) drop_one(reading, b);
    reading->n_waiting = reading->n_waiting_tokens = 0;
    reading->lines.number = number;
    if (os_close_memory(reading->out) != 0 && status == QKV_OK) status = text_no_memory(error);
    if (status == QKV_OK)
        memcpy(answer->bytes, &reading->counts, sizeof reading->counts);
    else
        free(answer->bytes);
    return status;
}

static void tell_progress(struct reading *reading) {
    char text[80];
    if (reading->file_bytes > 0) {
        progress_bar(&reading->progress, "reading", reading->lines.n_bytes, reading->file_bytes);
        return;
    }
    snprintf(text, sizeof text, "%" PRId64 " texts ...", reading->texts->n_texts);
    progress_text(&reading->progress, text);
}

/* The record of the next text, which begins at *at; false: there is none that is whole. */
static bool next_record(const struct text *answer, size_t *at, struct text *record) {
    int64_t n;
    if (answer->n - *at < sizeof n) return false;
    memcpy(&n, answer->bytes + *at, sizeof n);
    *at += sizeof n;
    if (n < 0 || (size_t)n > answer->n - *at) return false;
    *record = (struct text){ answer->bytes + *at, (size_t)n };
    *at += (record->n + 7) / 8 * 8;
    return *at <= answer->n;
}

/* A journal has answers of all kinds (journal.h). */
static bool is_count(int64_t n, int64_t most) { return n >= 0 && n <= most; }
static bool are_counts(const struct counts *made) {
    const int64_t most = (int64_t)RANKS_MOST_BYTES;
    return is_count(made->n_texts, BATCH) && is_count(made->n_cut, made->n_texts) &&
           is_count(made->n_tokens, most) && is_count(made->n_targets, most);
}

static qkv_status take_answer(void *user, const struct text *answer, qkv_error *error) {
    struct reading *const reading = user;
    struct texts *const texts = reading->texts;
    struct counts made = { .n_texts = -1 };
    struct text record;
    qkv_status status = QKV_OK;
    size_t at = sizeof made;
    int64_t n = 0;
    if (answer->n >= at) memcpy(&made, answer->bytes, sizeof made);
    const bool counts = are_counts(&made);
    for (; status == QKV_OK && counts && n < made.n_texts && next_record(answer, &at, &record); n++)
        if (texts->take) status = texts->take(texts->user, &record, error);
    if (status == QKV_OK && (!counts || n < made.n_texts || at != answer->n))
        status =
            text_error(error, QKV_ERR_FORMAT, "an answer in the journal has %zu bytes", answer->n);
    if (status != QKV_OK) return status;
    texts->n_texts += made.n_texts;
    texts->n_cut += made.n_cut;
    texts->n_tokens += made.n_tokens;
    texts->n_targets += made.n_targets;
    tell_progress(reading);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* A file that cannot be opened is one that cannot be read. */
static void open_file(struct reading *reading, const char *path) {
    qkvi_os_about about;
    if (ranks_rank() == 0)
        reading->input = lines_open(&reading->lines, path, &reading->input_error);
    FILE *const in = reading->lines.in;
    if (in && in != stdin && qkvi_os_examine_open(fileno(in), &about) == 0 &&
        about.kind == QKVI_OS_FILE)
        reading->file_bytes = (int64_t)about.n_bytes;
}

qkv_status texts_read(struct texts *texts, qkv_error *error) {
    struct reading reading = { .texts = texts,
                               .lines = { .quiet = texts->session->common->quiet,
                                          .name = lines_name(texts->path) } };
    const struct share share = { .user = &reading,
                                 .next = next,
                                 .make = make_answer,
                                 .take = take_answer,
                                 .journal = texts->journal,
                                 .model = texts->session->common->model,
                                 .also = texts->also,
                                 .quiet = texts->session->common->quiet };
    const int64_t most = RECORD_BYTES / (int64_t)(texts->record_bytes + 1);
    reading.piece_lines = most < 1 ? 1 : most < BATCH ? most : BATCH;
    reading.pairs = calloc(BATCH, sizeof *reading.pairs);
    if (!reading.pairs) abort(); /* which ends the job */
    open_file(&reading, texts->path);
    progress_begin(&reading.progress, texts->session->common->quiet);
    qkv_status status = share_run(&share, error);
    progress_end(&reading.progress);
    if (status == QKV_OK && ranks_rank() == 0 && texts->n_texts == 0)
        status = text_error(error, QKV_ERR_FORMAT, "%s: no line has any text", reading.lines.name);
    free(reading.piece.bytes);
    lines_close(&reading.lines);
    free(reading.pairs);
    return status;
}
