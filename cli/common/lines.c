/* Lines: see lines.h. */
#include "common/lines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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

qkv_status lines_open(struct lines *lines, const char *path, qkv_error *error) {
    const bool is_stdin = strcmp(path, "-") == 0;
    lines->name = is_stdin ? "standard input" : path;
    lines->in = is_stdin ? stdin : open_text(path, error);
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

/* Room for one more byte. */
static qkv_status grow(struct lines *lines, qkv_error *error) {
    if (lines->line.n < lines->room) return QKV_OK;
    if (lines->line.n >= TEXT_LIMIT)
        return text_error(error, QKV_ERR_LIMIT, "longer than %d bytes", TEXT_LIMIT);
    const size_t room = lines->room ? 2 * lines->room : 4096;
    char *larger = realloc(lines->line.bytes, room);
    if (!larger) return text_no_memory(error);
    lines->line.bytes = larger;
    lines->room = room;
    return QKV_OK;
}

bool lines_next(struct lines *lines, qkv_status *status, qkv_error *error) {
    int c = getc_unlocked(lines->in);
    if (c == EOF) return false;
    *status = QKV_OK;
    lines->line.n = 0;
    lines->number++;
    lines->n_bytes++;
    for (; c != EOF && c != '\n'; c = getc_unlocked(lines->in)) {
        lines->n_bytes++;
        if (*status == QKV_OK) *status = grow(lines, error);
        if (*status == QKV_OK) lines->line.bytes[lines->line.n++] = (char)c;
    }
    return true;
}

qkv_status lines_each(const char *path, struct progress *progress, const char *told,
                      qkv_status (*take)(void *user, const struct text *line, qkv_error *error),
                      void *user, qkv_error *error) {
    struct lines lines = { .in = NULL };
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
