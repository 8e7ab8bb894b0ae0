/*
 * Writing files: see file.h.
 *
 * An unnamed file (O_TMPFILE) in the target's folder gets its name by linkat. If there is an old
 * file, which linkat does not replace, the new one is linked to a temporary name and renamed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file.h"
#include "qkv/files.h"

enum { MAX_LINKS = 40, ATTEMPTS = 100 };

static const size_t name_bytes = 48; /* of ".PID-COUNT.tmp" */
static _Atomic unsigned temporary_count;

/* The folder of a path, to be freed; NULL without memory. */
static char *folder_of(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash == path ? strdup("/")
           : slash       ? strndup(path, (size_t)(slash - path))
                         : strdup(".");
}

/* One link resolved: *next is NULL if path is no link. 0 without memory. */
static int follow_link(const char *path, char **next) {
    char buffer[4096];
    const ssize_t n = readlink(path, buffer, sizeof buffer - 1);
    *next = NULL;
    if (n < 0) return 1;
    buffer[n] = '\0';
    char *const folder = buffer[0] == '/' ? NULL : folder_of(path);
    if (buffer[0] == '/')
        *next = strdup(buffer);
    else if (folder)
        *next = qkvi_path_join(folder, buffer);
    free(folder);
    return *next != NULL;
}

/* Where a path leads, through links, also to a file that does not exist yet. */
static qkv_status resolve(qkvi_writer *writer, qkv_error *error) {
    writer->target = strdup(writer->path);
    for (int n = 0; writer->target; n++) {
        char *next;
        if (!follow_link(writer->target, &next)) return qkvi_no_memory(error, "a path");
        if (!next) return QKV_OK;
        free(writer->target);
        writer->target = next;
        if (n == MAX_LINKS) return qkvi_io_failed(writer->path, "cannot write", ELOOP, error);
    }
    return qkvi_no_memory(error, "a path");
}

/* All the memory that a writer needs, so that nothing that comes later can lack it. */
static qkv_status name_paths(const char *path, qkvi_writer *writer, qkv_error *error) {
    writer->path = strdup(path);
    if (!writer->path) return qkvi_no_memory(error, "a path");
    QKV_TRY(resolve(writer, error));
    writer->folder = folder_of(writer->target);
    writer->temporary = malloc(strlen(writer->target) + name_bytes);
    return writer->folder && writer->temporary ? QKV_OK : qkvi_no_memory(error, "a path");
}

static int stream_from(qkvi_writer *writer, int fd) {
    writer->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !writer->stream) close(fd);
    return writer->stream != NULL;
}

static void name_of_stream(const qkvi_writer *writer, char name[40]) {
    snprintf(name, 40, "/proc/self/fd/%d", fileno(writer->stream));
}

/* 0 where the file system, or a missing /proc, does not let a file get its name later. */
static int open_unnamed(qkvi_writer *writer) {
    char name[40];
    const int fd = open(writer->folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (!stream_from(writer, fd)) return 0;
    name_of_stream(writer, name);
    if (access(name, F_OK) == 0) return 1;
    fclose(writer->stream);
    writer->stream = NULL;
    return 0;
}

/* Calls make with temporary names until one is new. Returns what it does, -1 with errno. */
static int with_temporary(qkvi_writer *writer, int (*make)(const qkvi_writer *writer)) {
    int result = -1;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(writer->temporary, strlen(writer->target) + name_bytes, "%s.%ld-%u.tmp",
                 writer->target, (long)getpid(), atomic_fetch_add(&temporary_count, 1));
        result = make(writer);
        if (result >= 0 || errno != EEXIST) break;
    }
    writer->has_temporary = result >= 0;
    return result;
}

static int create_temporary(const qkvi_writer *writer) {
    return open(writer->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int link_to(const qkvi_writer *writer, const char *path) {
    char name[40];
    name_of_stream(writer, name);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int link_temporary(const qkvi_writer *writer) { return link_to(writer, writer->temporary); }

static qkv_status open_stream(qkvi_writer *writer, qkv_error *error) {
    struct stat old;
    const int exists = stat(writer->target, &old) == 0;
    const mode_t permissions = exists ? old.st_mode & 0777 : 0;
    if (exists && S_ISDIR(old.st_mode))
        return qkvi_io_failed(writer->path, "cannot write", EISDIR, error);
    if (exists && !S_ISREG(old.st_mode)) {
        writer->direct = 1;
        const int fd = open(writer->target, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return stream_from(writer, fd) ? QKV_OK
                                       : qkvi_io_failed(writer->path, "cannot open", errno, error);
    }
    if (!open_unnamed(writer) && !stream_from(writer, with_temporary(writer, create_temporary)))
        return qkvi_io_failed(writer->path, "cannot create a file beside it", errno, error);
    if (exists && fchmod(fileno(writer->stream), permissions) != 0)
        return qkvi_io_failed(writer->path, "cannot create a file beside it", errno, error);
    return QKV_OK;
}

qkv_status qkvi_writer_begin(const char *path, qkvi_writer *writer, qkv_error *error) {
    memset(writer, 0, sizeof *writer);
    qkv_status status = name_paths(path, writer, error);
    if (status == QKV_OK) status = open_stream(writer, error);
    if (status != QKV_OK) qkvi_writer_end(writer);
    return status;
}

qkv_status qkvi_writer_put(qkvi_writer *writer, const void *bytes, size_t n, qkv_error *error) {
    if (n == 0 || fwrite(bytes, 1, n, writer->stream) == n) return QKV_OK;
    return qkvi_io_failed(writer->path, "cannot write", errno, error);
}

qkv_status qkvi_writer_finish(qkvi_writer *writer, qkv_error *error) {
    if (fflush(writer->stream) == 0 && (writer->direct || fsync(fileno(writer->stream)) == 0))
        return QKV_OK;
    return qkvi_io_failed(writer->path, "cannot write", errno, error);
}

/* Gives the file its place; 0, or -1 with errno. */
static int put_in_place(qkvi_writer *writer) {
    if (!writer->has_temporary) {
        if (link_to(writer, writer->target) == 0) return 0;
        if (errno != EEXIST || with_temporary(writer, link_temporary) < 0) return -1;
    }
    if (rename(writer->temporary, writer->target) != 0) return -1;
    writer->has_temporary = 0;
    return 0;
}

/* Flushes the folder, so that the new name survives a power cut; 0, or an errno. */
static int sync_folder(const char *folder) {
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return 0; /* a folder that may be written but not read */
    const int cause = fsync(fd) == 0 || errno == EINVAL ? 0 : errno;
    close(fd);
    return cause;
}

qkv_status qkvi_writer_publish(qkvi_writer *writer, qkv_error *error) {
    int cause = 0;
    if (!writer->direct) cause = put_in_place(writer) == 0 ? sync_folder(writer->folder) : errno;
    return cause ? qkvi_io_failed(writer->path, "cannot write", cause, error) : QKV_OK;
}

static const char *name_in_folder(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* 1 if both would publish the same file. */
static int writer_same(const qkvi_writer *a, const qkvi_writer *b) {
    struct stat status[2] = { 0 };
    if (a->direct || b->direct) return 0;
    if (strcmp(name_in_folder(a->target), name_in_folder(b->target)) != 0) return 0;
    for (int i = 0; i < 2; i++) {
        char *const folder = folder_of(i ? b->target : a->target);
        const int found = folder && stat(folder, &status[i]) == 0;
        free(folder);
        if (!found) return 0;
    }
    return status[0].st_dev == status[1].st_dev && status[0].st_ino == status[1].st_ino;
}

void qkvi_writer_end(qkvi_writer *writer) {
    if (writer->stream) fclose(writer->stream);
    if (writer->has_temporary) unlink(writer->temporary);
    free(writer->temporary);
    free(writer->folder);
    free(writer->target);
    free(writer->path);
    memset(writer, 0, sizeof *writer);
}

qkv_status qkvi_writer_commit(qkvi_writer *writer, qkv_error *error) {
    qkv_status status = qkvi_writer_finish(writer, error);
    if (status == QKV_OK) status = qkvi_writer_publish(writer, error);
    qkvi_writer_end(writer);
    return status;
}

qkv_status qkvi_file_save(const char *path, const void *bytes, size_t n, qkv_error *error) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    const qkv_status status = qkvi_writer_put(&writer, bytes, n, error);
    if (status == QKV_OK) return qkvi_writer_commit(&writer, error);
    qkvi_writer_end(&writer);
    return status;
}

/* ---- For all writers ------------------------------------------------------------------------- */

qkv_status qkv_file_write(const char *path, const void *bytes, size_t n_bytes, qkv_error *error) {
    if (!path || (!bytes && n_bytes))
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s is NULL", path ? "bytes" : "path");
    return qkvi_file_save(path, bytes, n_bytes, error);
}

qkv_status qkv_file_writable(const char *path, qkv_error *error) {
    struct stat old;
    qkvi_writer writer;
    if (!path) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    if (stat(path, &old) == 0 && !S_ISREG(old.st_mode) && !S_ISDIR(old.st_mode))
        return QKV_OK; /* opening a pipe would wait for its reader */
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    qkvi_writer_end(&writer);
    return QKV_OK;
}

/* ---- Files that appear together -------------------------------------------------------------- */

/*
 * Files that appear together: see file.h. Everything that can fail for want of space or permission
 * happens before the first one gets its place.
 */

static qkvi_writer *grow(qkvi_files *files) {
    qkvi_writer *const writers =
        qkvi_realloc_array(files->writers, (size_t)files->n + 1, sizeof *writers);
    if (!writers) return NULL;
    files->writers = writers;
    return &writers[files->n];
}

qkv_status qkvi_files_begin(qkvi_files *files, const char *name, qkvi_writer **writer,
                            qkv_error *error) {
    char *const path = files->folder ? qkvi_path_join(files->folder, name) : strdup(name);
    *writer = path ? grow(files) : NULL;
    const qkv_status status =
        *writer ? qkvi_writer_begin(path, *writer, error)
                : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to write another file");
    free(path);
    if (status == QKV_OK) files->n++;
    return status;
}

qkv_status qkvi_files_add(qkvi_files *files, const char *name, const void *bytes, size_t n,
                          qkv_error *error) {
    qkvi_writer *writer;
    QKV_TRY(qkvi_files_begin(files, name, &writer, error));
    return qkvi_writer_put(writer, bytes, n, error);
}

/* Two results in one file: one of them would be lost. */
static qkv_status check_distinct(const qkvi_files *files, qkv_error *error) {
    for (int i = 0; i < files->n; i++)
        for (int j = 0; j < i; j++)
            if (writer_same(&files->writers[i], &files->writers[j])) {
                const char *const paths[] = { files->writers[j].path, files->writers[i].path };
                return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%s and %s are the same file",
                                      QKVI_PRINTABLE(QKVI_NAME_BYTES, paths[0]),
                                      QKVI_PRINTABLE(QKVI_NAME_BYTES, paths[1]));
            }
    return QKV_OK;
}

qkv_status qkvi_files_commit(qkvi_files *files, qkv_error *error) {
    qkv_status status = check_distinct(files, error);
    for (int i = 0; i < files->n && status == QKV_OK; i++)
        status = qkvi_writer_finish(&files->writers[i], error);
    for (int i = 0; i < files->n && status == QKV_OK; i++)
        status = qkvi_writer_publish(&files->writers[i], error);
    qkvi_files_end(files);
    return status;
}

void qkvi_files_end(qkvi_files *files) {
    for (int i = 0; i < files->n; i++) qkvi_writer_end(&files->writers[i]);
    free(files->writers);
    *files = (qkvi_files){ .folder = files->folder };
}
