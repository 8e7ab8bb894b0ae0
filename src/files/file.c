/*
 * Reading files: see file.h. Messages name the path, escaped, and the reason of the operating
 * system.
 */
#include "files/file.h"

#include <errno.h>

#include "core/os.h"

qkv_status qkvi_io_failed(const char *name, const char *what, int cause, qkv_error *error) {
    char reason[128];
    return qkvi_error_set(error, cause == ENOMEM ? QKV_ERR_MEMORY : QKV_ERR_IO, "%s: %s: %s",
                          QKVI_PRINTABLE(QKVI_NAME_BYTES, name), what,
                          qkvi_os_reason(cause, reason, sizeof reason));
}

static char *escaped_copy(const char *name) { return strdup(QKVI_PRINTABLE(1024, name)); }

/*
 * procfs and its like call their files regular and say 0 bytes, whatever they give when read. Their
 * bytes are made on the spot, so no size can be relied on.
 */
static int is_made_on_the_spot(const qkvi_source *source) {
    char byte;
    return source->n_bytes == 0 && qkvi_os_read_at(source->fd, &byte, 1, 0) != 0;
}

static qkv_status examine(const char *path, qkvi_source *source, qkv_error *error) {
    qkvi_os_about about;
    if (qkvi_os_examine_open(source->fd, &about) != 0)
        return qkvi_io_failed(path, "cannot examine", errno, error);
    if (about.kind == QKVI_OS_FOLDER) return qkvi_io_failed(path, "cannot read", EISDIR, error);
    if (about.kind != QKVI_OS_FILE)
        return qkvi_io_failed(path, "is not a regular file", EINVAL, error);
    source->n_bytes = about.n_bytes;
    if (is_made_on_the_spot(source))
        return qkvi_io_failed(path, "is not a regular file", EINVAL, error);
    source->name = escaped_copy(path);
    return source->name ? QKV_OK : qkvi_no_memory(error, "a file name");
}

qkv_status qkvi_source_open(const char *path, qkvi_source *source, qkv_error *error) {
    memset(source, 0, sizeof *source);
    source->fd = qkvi_os_open_to_read(path);
    if (source->fd < 0) return qkvi_io_failed(path, "cannot open", errno, error);
    source->is_file = 1;
    const qkv_status status = examine(path, source, error);
    if (status != QKV_OK) qkvi_source_close(source);
    return status;
}

qkv_status qkvi_source_memory(const char *name, const void *bytes, size_t n_bytes,
                              qkvi_source *source, qkv_error *error) {
    memset(source, 0, sizeof *source);
    source->bytes = bytes;
    source->n_bytes = n_bytes;
    source->name = escaped_copy(name);
    return source->name ? QKV_OK : qkvi_no_memory(error, "a file name");
}

void qkvi_source_close(qkvi_source *source) {
    if (source->is_file) qkvi_os_close(source->fd);
    free(source->name);
    memset(source, 0, sizeof *source);
}

qkv_status qkvi_source_read(const qkvi_source *source, uint64_t offset, void *destination, size_t n,
                            qkv_error *error) {
    char *at = destination;
    if (offset > source->n_bytes || n > source->n_bytes - offset)
        return qkvi_error_set(error, QKV_ERR_IO, "%s: read of %zu bytes at %llu is past its end",
                              source->name, n, (unsigned long long)offset);
    if (!source->is_file) {
        if (n) memcpy(destination, source->bytes + offset, n);
        return QKV_OK;
    }
    while (n > 0) {
        const int64_t got = qkvi_os_read_at(source->fd, at, n, offset);
        if (got < 0) return qkvi_io_failed(source->name, "cannot read", errno, error);
        if (got == 0)
            return qkvi_error_set(error, QKV_ERR_IO, "%s: became shorter while it was read",
                                  source->name);
        at += got;
        offset += (uint64_t)got;
        n -= (size_t)got;
    }
    return QKV_OK;
}

qkv_status qkvi_source_check(const qkvi_source *source, qkv_error *error) {
    qkvi_os_about now;
    if (!source->is_file) return QKV_OK;
    if (qkvi_os_examine_open(source->fd, &now) != 0)
        return qkvi_io_failed(source->name, "cannot examine", errno, error);
    if (now.n_bytes >= source->n_bytes) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_IO, "%s: became shorter while it was read", source->name);
}

static qkv_status load_source(const qkvi_source *source, size_t limit, char **bytes,
                              size_t *n_bytes, qkv_error *error) {
    if (source->n_bytes > limit)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: %llu bytes, the limit is %zu",
                              source->name, (unsigned long long)source->n_bytes, limit);
    *n_bytes = (size_t)source->n_bytes;
    *bytes = malloc(*n_bytes + 1);
    if (!*bytes)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for %zu bytes", source->name,
                              *n_bytes);
    (*bytes)[*n_bytes] = '\0';
    return qkvi_source_read(source, 0, *bytes, *n_bytes, error);
}

qkv_status qkvi_file_load(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                          qkv_error *error) {
    qkvi_source source;
    *bytes = NULL;
    *n_bytes = 0;
    QKV_TRY(qkvi_source_open(path, &source, error));
    const qkv_status status = load_source(&source, limit, bytes, n_bytes, error);
    qkvi_source_close(&source);
    if (status != QKV_OK) {
        free(*bytes);
        *bytes = NULL;
        *n_bytes = 0;
    }
    return status;
}

int qkvi_file_exists(const char *path) {
    qkvi_os_about about;
    return qkvi_os_examine(path, &about) == 0 && about.kind == QKVI_OS_FILE;
}

char *qkvi_path_folder(const char *path) {
    size_t n;
    qkvi_os_split(path, &n);
    return n > 0 ? strndup(path, n) : strdup(".");
}

const char *qkvi_path_name(const char *path) {
    size_t n_folder;
    return path + qkvi_os_split(path, &n_folder);
}

char *qkvi_path_join(const char *folder, const char *name) {
    const size_t n_folder = strlen(folder), n_name = strlen(name);
    char *path = malloc(n_folder + n_name + 2);
    if (!path) return NULL;
    memcpy(path, folder, n_folder);
    path[n_folder] = '/';
    memcpy(path + n_folder + 1, name, n_name + 1);
    return path;
}

/* ---- Texts that are read once ---------------------------------------------------------------- */

/* From their beginning to their end, so that a pipe will do: see file.h. */

/* Room for n + 1 bytes at least, and for more than before; NULL without memory. */
static char *grow(char *bytes, size_t n, size_t *room) {
    if (n < *room) return bytes;
    *room = *room ? 2 * *room : 1 << 16;
    char *const larger = realloc(bytes, *room + 1);
    if (!larger) free(bytes);
    return larger;
}

static qkv_status too_long(const char *path, size_t limit, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: more than %zu bytes",
                          QKVI_PRINTABLE(QKVI_NAME_BYTES, path), limit);
}

static qkv_status nobody_writes(const char *path, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_IO, "%s: is a pipe without a writer",
                          QKVI_PRINTABLE(QKVI_NAME_BYTES, path));
}

static qkv_status load_pipe(const char *path, int fd, size_t limit, char **bytes, size_t *n_bytes,
                            qkv_error *error) {
    size_t room = 0;
    int64_t got;
    do {
        *bytes = grow(*bytes, *n_bytes, &room);
        if (!*bytes) return qkvi_io_failed(path, "cannot read", ENOMEM, error);
        got = qkvi_os_read_pipe(fd, *bytes + *n_bytes, room - *n_bytes);
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
    qkvi_os_about about;
    if (qkvi_os_examine(path, &about) != 0 || about.kind != QKVI_OS_PIPE)
        return qkvi_file_load(path, limit, bytes, n_bytes, error);
    *bytes = NULL;
    *n_bytes = 0;
    const int fd = qkvi_os_open_to_read(path);
    if (fd < 0) return qkvi_io_failed(path, "cannot open", errno, error);
    const qkv_status result = load_pipe(path, fd, limit, bytes, n_bytes, error);
    qkvi_os_close(fd);
    if (result == QKV_OK) return QKV_OK;
    free(*bytes);
    *bytes = NULL;
    *n_bytes = 0;
    return result;
}
