/* Lines: see lines.h. */
#include "common/lines.h"

#include "common/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Why a descriptor, opened with O_NONBLOCK, is no text; NULL if it is one. A pipe without a writer is at
 * its end; one whose writer has said something gives its first byte, which is else EOF.
 */
static const char *refuse(int fd, int *first) {
    struct stat status;
    unsigned char byte;
    *first = EOF;
    if (fstat(fd, &status) != 0) return strerror(errno);
    if (S_ISREG(status.st_mode)) return NULL;
    if (S_ISDIR(status.st_mode)) return strerror(EISDIR);
    if (!S_ISFIFO(status.st_mode)) return "is neither a file nor a pipe";
    const ssize_t n = read(fd, &byte, 1);
    if (n == 0) return "is a pipe without a writer";
    if (n == 1) *first = byte;
    return n == 1 || errno == EAGAIN ? NULL : strerror(errno);
}

FILE *open_text(const char *path, qkv_error *error) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int first = EOF;
    const char *reason = fd < 0 ? strerror(errno) : refuse(fd, &first);
    /* from here on a writer is waited for, who is there */
    if (!reason && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0)
        reason = strerror(errno);
    FILE *const file = reason ? NULL : fdopen(fd, "rb");
    if (file) {
        if (first != EOF) ungetc(first, file);
        return file;
    }
    text_error(error, QKV_ERR_IO, "%s: %s", path, reason ? reason : strerror(errno));
    if (fd >= 0) close(fd);
    return NULL;
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
