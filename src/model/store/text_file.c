/*
 * Texts that are read once, from their beginning to their end, so that a pipe will do: see file.h.
 *
 * Opened with O_NONBLOCK, a pipe that nobody writes to is at its end at once, and one whose writer has
 * not said anything yet answers EAGAIN: only a writer is waited for.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/store/file.h"

/* read, waiting for a writer that is there. */
static ssize_t read_pipe(int fd, char *bytes, size_t n) {
    for (;;) {
        struct pollfd written = { .fd = fd, .events = POLLIN };
        const ssize_t got = read(fd, bytes, n);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got;
        if (errno == EAGAIN) poll(&written, 1, -1);
    }
}

/* Room for n + 1 bytes at least, and for more than before; NULL without memory. */
static char *grow(char *bytes, size_t n, size_t *room) {
    if (n < *room) return bytes;
    *room = *room ? 2 * *room : 1 << 16;
    char *const larger = realloc(bytes, *room + 1);
    if (!larger) free(bytes);
    return larger;
}

static qkv_status too_long(const char *path, size_t limit, qkv_error *error) {
    char name[QKVI_NAME_BYTES];
    return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: more than %zu bytes",
                          qkvi_escape(name, sizeof name, path, strlen(path)), limit);
}

static qkv_status nobody_writes(const char *path, qkv_error *error) {
    char name[QKVI_NAME_BYTES];
    return qkvi_error_set(error, QKV_ERR_IO, "%s: is a pipe that nobody writes to",
                          qkvi_escape(name, sizeof name, path, strlen(path)));
}

static qkv_status load_pipe(const char *path, int fd, size_t limit, char **bytes, size_t *n_bytes,
                            qkv_error *error) {
    size_t room = 0;
    ssize_t got;
    do {
        *bytes = grow(*bytes, *n_bytes, &room);
        if (!*bytes) return qkvi_io_failed(path, "cannot read", ENOMEM, error);
        got = read_pipe(fd, *bytes + *n_bytes, room - *n_bytes);
        if (got < 0) return qkvi_io_failed(path, "cannot read", errno, error);
        *n_bytes += (size_t)got;
        if (*n_bytes > limit) return too_long(path, limit, error);
    } while (got > 0);
    if (*n_bytes == 0) return nobody_writes(path, error);
    (*bytes)[*n_bytes] = '\0';
    return QKV_OK;
}

qkv_status qkvi_file_load_text(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                               qkv_error *error) {
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISFIFO(status.st_mode))
        return qkvi_file_load(path, limit, bytes, n_bytes, error);
    *bytes = NULL;
    *n_bytes = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) return qkvi_io_failed(path, "cannot open", errno, error);
    const qkv_status result = load_pipe(path, fd, limit, bytes, n_bytes, error);
    close(fd);
    if (result == QKV_OK) return QKV_OK;
    free(*bytes);
    *bytes = NULL;
    *n_bytes = 0;
    return result;
}
