/* Lines: see lines.h. */
#include "common/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "common/shared.h"
#include "core/os.h"

FILE *open_text(const char *path, qkv_error *error) {
    const char *reason;
    FILE *const file = os_open_text(path, &reason);
    if (!file) text_error(error, QKV_ERR_IO, "%s: %s", path, reason);
    return file;
}

bool text_read(FILE *in, size_t limit, struct text *text) {
    size_t room = 4096;
    *text = (struct text){ malloc(room), 0 };
    while (text->bytes) {
        text->n += fread(text->bytes + text->n, 1, room - text->n, in);
        if (text->n < room || text->n > limit) break;
        char *larger = realloc(text->bytes, room *= 2);
        if (!larger) free(text->bytes);
        text->bytes = larger;
    }
    return text->bytes;
}

static bool is_stdin(const char *path) { return strcmp(path, "-") == 0; }

const char *text_path(const char *path) { return path && is_stdin(path) ? "/dev/stdin" : path; }

const char *lines_name(const char *path) { return is_stdin(path) ? "standard input" : path; }

qkv_status lines_open(struct lines *lines, const char *path, qkv_error *error) {
    char room[SHARED_ROOM];
    lines->name = lines_name(path);
    lines->in = is_stdin(path) ? stdin : open_text(shared_path(path, room), error);
    return lines->in ? QKV_OK : error->status;
}

void lines_close(struct lines *lines) {
    if (lines->in && lines->in != stdin) fclose(lines->in);
    free(lines->line.bytes);
}

qkv_status lines_error(const struct lines *lines, qkv_error *error) {
    const qkv_error reason = *error;
    return text_error(error, reason.status, "%s:%" PRId64 ": %s", lines->name, lines->number,
                      reason.message);
}

qkv_status lines_end(const struct lines *lines, qkv_error *error) {
    if (!ferror(lines->in)) return QKV_OK;
    return text_error(error, QKV_ERR_IO, "%s: %s", lines->name, strerror(errno));
}

/* ---- Byte order marks ------------------------------------------------------------------------ */

enum { MARK = 3 }; /* bytes */

static bool begins_with_mark(const char *bytes, size_t n) {
    return n >= MARK && memcmp(bytes, "\xEF\xBB\xBF", MARK) == 0;
}

static void say_mark(const char *name, bool quiet) {
    cli_note(quiet, "qkv: %s: begins with a byte order mark, which is left out", name);
}

void text_say_mark(const char *path, bool quiet) {
    char begin[MARK];
    if (path && begins_with_mark(begin, os_peek(path, begin, MARK)))
        say_mark(strcmp(path, text_path("-")) == 0 ? lines_name("-") : path, quiet);
}

void text_say_stdin_mark(const struct text *text, bool quiet) {
    if (begins_with_mark(text->bytes, text->n)) say_mark(lines_name("-"), quiet);
}

/* ---- Lines ----------------------------------------------------------------------------------- */

/* Room for one more byte. */
static qkv_status grow(struct lines *lines, qkv_error *error) {
    const size_t most = lines->most ? lines->most : TEXT_LIMIT;
    if (lines->line.n >= most)
        return text_error(error, QKV_ERR_LIMIT, "longer than %zu bytes", most);
    if (lines->line.n < lines->room) return QKV_OK;
    const size_t room = lines->room ? 2 * lines->room : 4096;
    char *larger = realloc(lines->line.bytes, room);
    if (!larger) return text_no_memory(error);
    lines->line.bytes = larger;
    lines->room = room;
    return QKV_OK;
}

static int next_byte(struct lines *lines) {
    const int c = os_getc(lines->in);
    lines->n_bytes += c != EOF;
    return c;
}

/* The rest of a line that could not be read. */
static void skip_rest(struct lines *lines) {
    for (int c = 0; lines->is_broken && c != EOF && c != '\n';) c = next_byte(lines);
    lines->is_broken = false;
}

bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error) {
    struct text *const line = &lines->line;
    *status = QKV_OK;
    line->n = 0;
    skip_rest(lines);
    int c = next_byte(lines);
    if (c == EOF) return false;
    lines->number++;
    for (; c != EOF && c != '\n'; c = next_byte(lines)) {
        *status = grow(lines, error);
        lines->is_broken = *status != QKV_OK;
        if (lines->is_broken) return true;
        line->bytes[line->n++] = (char)c;
    }
    if (lines->number == 1 && begins_with_mark(line->bytes, line->n)) {
        memmove(line->bytes, line->bytes + MARK, line->n -= MARK);
        say_mark(lines->name, lines->quiet);
        if (c == EOF && line->n == 0) { /* nothing but the mark: no line */
            lines->number = 0;
            return false;
        }
    }
    if (line->n > 0 && line->bytes[line->n - 1] == '\r') line->n--;
    return true;
}

/* Room for n more bytes. */
static bool reserve(struct text *text, size_t n, size_t *room) {
    while (text->n + n > *room) {
        char *const larger = realloc(text->bytes, *room = *room ? 2 * *room : 4096);
        if (!larger) return false;
        text->bytes = larger;
    }
    return true;
}

qkv_status lines_whole(struct lines *lines, struct text *text, qkv_error *error) {
    const struct text *const line = &lines->line;
    qkv_status status = QKV_OK;
    size_t room = 0;
    if (!reserve(text, 1, &room)) return text_no_memory(error);
    while (lines_next(lines, &status, error)) {
        const bool is_first = lines->number == 1;
        if (status == QKV_OK && text->n + !is_first + line->n > TEXT_LIMIT)
            status = text_error(error, QKV_ERR_LIMIT, "longer than %d bytes", TEXT_LIMIT);
        if (status == QKV_OK && !reserve(text, line->n + 1, &room)) status = text_no_memory(error);
        if (status != QKV_OK) {
            const qkv_error reason = *error;
            return text_error(error, status, "%s: %s", lines->name, reason.message);
        }
        if (!is_first) text->bytes[text->n++] = '\n';
        if (line->n > 0) memcpy(text->bytes + text->n, line->bytes, line->n);
        text->n += line->n;
    }
    return lines_end(lines, error);
}

qkv_status lines_each(const char *path, bool quiet, struct progress *progress, const char *told,
                      qkv_status (*take)(void *user, const struct text *line, qkv_error *error),
                      void *user, qkv_error *error) {
    struct lines lines = { .quiet = quiet };
    qkv_status status = lines_open(&lines, path, error);
    if (status != QKV_OK) return status;
    while (status == QKV_OK && !cli_cancelled && lines_next(&lines, &status, error)) {
        char text[64];
        if (status == QKV_OK) status = take(user, &lines.line, error);
        if (status != QKV_OK) status = lines_error(&lines, error);
        snprintf(text, sizeof text, "%" PRId64 " lines%s", lines.number, told);
        if (progress) progress_text(progress, text);
    }
    if (status == QKV_OK) status = lines_end(&lines, error);
    if (progress) progress_end(progress);
    lines_close(&lines);
    return status;
}
