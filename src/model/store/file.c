/* Files: see file.h. Messages name the path, escaped, and the reason of the operating system. */
#include "model/store/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/status.h"

/* ---- Reading --------------------------------------------------------------------------------- */

static qkv_status io_failed(const char *name, const char *what, int cause, qkv_error *error) {
    char printable[256], reason[128];
    qkvi_escape(printable, sizeof printable, name, strlen(name));
    return qkvi_error_set(error, cause == ENOMEM ? QKV_ERR_MEMORY : QKV_ERR_IO, "%s: %s: %s",
                          printable, what, strerror_r(cause, reason, sizeof reason));
}

static char *escaped_copy(const char *name) {
    char printable[1024];
    qkvi_escape(printable, sizeof printable, name, strlen(name));
    return strdup(printable);
}

/*
 * procfs and its like call their files regular and say 0 bytes, whatever they give when read. Their
 * bytes are made on the spot, so no size can be relied on.
 */
static int is_made_on_the_spot(const qkvi_source *source) {
    char byte;
    return source->n_bytes == 0 && pread(source->fd, &byte, 1, 0) != 0;
}

static qkv_status examine(const char *path, qkvi_source *source, qkv_error *error) {
    struct stat status;
    if (fstat(source->fd, &status) != 0) return io_failed(path, "cannot examine", errno, error);
    if (S_ISDIR(status.st_mode)) return io_failed(path, "cannot read", EISDIR, error);
    if (!S_ISREG(status.st_mode)) return io_failed(path, "is not a regular file", EINVAL, error);
    source->n_bytes = (uint64_t)status.st_size;
    if (is_made_on_the_spot(source)) return io_failed(path, "is not a regular file", EINVAL, error);
    source->name = escaped_copy(path);
    return source->name ? QKV_OK
                        : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a file name");
}

qkv_status qkvi_source_open(const char *path, qkvi_source *source, qkv_error *error) {
    memset(source, 0, sizeof *source);
    source->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (source->fd < 0) return io_failed(path, "cannot open", errno, error);
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
    return source->name ? QKV_OK
                        : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a file name");
}

void qkvi_source_close(qkvi_source *source) {
    if (source->is_file) close(source->fd);
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
        const size_t piece = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
        const ssize_t got = pread(source->fd, at, piece, (off_t)offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_failed(source->name, "cannot read", errno, error);
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
    struct stat now;
    if (!source->is_file) return QKV_OK;
    if (fstat(source->fd, &now) != 0)
        return io_failed(source->name, "cannot examine", errno, error);
    if ((uint64_t)now.st_size >= source->n_bytes) return QKV_OK;
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
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode);
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

/* ---- Writing --------------------------------------------------------------------------------- */

static _Atomic unsigned temporary_count;

/* Opens path.PID-COUNT.tmp, which must be new. */
static qkv_status open_temporary(qkvi_writer *writer, qkv_error *error) {
    const size_t bytes = strlen(writer->path) + 48;
    writer->temporary = malloc(bytes);
    if (!writer->temporary) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    for (int attempt = 0; attempt < 100; attempt++) {
        snprintf(writer->temporary, bytes, "%s.%ld-%u.tmp", writer->path, (long)getpid(),
                 atomic_fetch_add(&temporary_count, 1));
        const int fd = open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd < 0 && errno == EEXIST) continue;
        if (fd < 0) break;
        writer->stream = fdopen(fd, "wb");
        if (writer->stream) return QKV_OK;
        close(fd);
        unlink(writer->temporary);
        break;
    }
    const int cause = errno;
    free(writer->temporary);
    writer->temporary = NULL;
    return io_failed(writer->path, "cannot create a file beside it", cause, error);
}

qkv_status qkvi_writer_begin(const char *path, qkvi_writer *writer, qkv_error *error) {
    memset(writer, 0, sizeof *writer);
    writer->path = strdup(path);
    if (!writer->path) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a path");
    const qkv_status status = open_temporary(writer, error);
    if (status != QKV_OK) qkvi_writer_abort(writer);
    return status;
}

qkv_status qkvi_writer_put(qkvi_writer *writer, const void *bytes, size_t n, qkv_error *error) {
    if (n == 0 || fwrite(bytes, 1, n, writer->stream) == n) return QKV_OK;
    return io_failed(writer->path, "cannot write", errno, error);
}

/* Flushes the folder of path, so that the rename survives a power cut. */
static int sync_folder(const char *path) {
    const char *const slash = strrchr(path, '/');
    char *const folder = slash == path ? strdup("/")
                         : slash       ? strndup(path, (size_t)(slash - path))
                                       : strdup(".");
    if (!folder) return ENOMEM;
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(folder);
    if (fd < 0) return errno;
    const int cause = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return cause;
}

qkv_status qkvi_writer_commit(qkvi_writer *writer, qkv_error *error) {
    int cause = fflush(writer->stream) != 0 || fsync(fileno(writer->stream)) != 0 ? errno : 0;
    if (fclose(writer->stream) != 0 && !cause) cause = errno;
    writer->stream = NULL;
    if (!cause && rename(writer->temporary, writer->path) != 0) cause = errno;
    if (!cause) {
        free(writer->temporary);
        writer->temporary = NULL;
        cause = sync_folder(writer->path);
    }
    const qkv_status status =
        cause ? io_failed(writer->path, "cannot write", cause, error) : QKV_OK;
    qkvi_writer_abort(writer);
    return status;
}

void qkvi_writer_abort(qkvi_writer *writer) {
    if (writer->stream) fclose(writer->stream);
    if (writer->temporary) unlink(writer->temporary);
    free(writer->temporary);
    free(writer->path);
    memset(writer, 0, sizeof *writer);
}

qkv_status qkvi_file_save(const char *path, const void *bytes, size_t n, qkv_error *error) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    const qkv_status status = qkvi_writer_put(&writer, bytes, n, error);
    if (status == QKV_OK) return qkvi_writer_commit(&writer, error);
    qkvi_writer_abort(&writer);
    return status;
}
