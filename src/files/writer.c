/*
 * Writing files: see file.h.
 *
 * A file without a name in the target's folder gets its name at the end. That does not replace an
 * old file, renaming does: so where there is one, the new file gets a temporary name first.
 */
#include <errno.h>
#include <stdatomic.h>

#include "core/os.h"
#include "files/file.h"
#include "qkv/files.h"

enum { MAX_LINKS = 40, ATTEMPTS = 100 };

static const size_t name_bytes = 48; /* of ".PID-COUNT.tmp" */
static _Atomic unsigned temporary_count;

/* One link resolved: *next is NULL if path is no link. 0 without memory. */
static int follow_link(const char *path, char **next) {
    char buffer[4096];
    *next = NULL;
    if (qkvi_os_read_link(path, buffer, sizeof buffer) != 0) return 1;
    const bool absolute = qkvi_os_is_absolute(buffer);
    char *const folder = absolute ? NULL : qkvi_path_folder(path);
    if (absolute)
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
    writer->folder = qkvi_path_folder(writer->target);
    writer->temporary = malloc(strlen(writer->target) + name_bytes);
    return writer->folder && writer->temporary ? QKV_OK : qkvi_no_memory(error, "a path");
}

static int stream_from(qkvi_writer *writer, int fd) {
    writer->stream = fd < 0 ? NULL : fdopen(fd, "wb");
    if (fd >= 0 && !writer->stream) qkvi_os_close(fd);
    return writer->stream != NULL;
}

/* Calls make with temporary names until one is new. Returns what it does, -1 with errno. */
static int with_temporary(qkvi_writer *writer, int (*make)(const qkvi_writer *writer)) {
    int result = -1;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        snprintf(writer->temporary, strlen(writer->target) + name_bytes, "%s.%ld-%u.tmp",
                 writer->target, qkvi_os_process_id(), atomic_fetch_add(&temporary_count, 1));
        result = make(writer);
        if (result >= 0 || errno != EEXIST) break;
    }
    writer->has_temporary = result >= 0;
    return result;
}

static int create_temporary(const qkvi_writer *writer) { return qkvi_os_create(writer->temporary); }

static int link_to(const qkvi_writer *writer, const char *path) {
    return qkvi_os_name(fileno(writer->stream), path);
}

static int link_temporary(const qkvi_writer *writer) { return link_to(writer, writer->temporary); }

static qkv_status open_stream(qkvi_writer *writer, qkv_error *error) {
    qkvi_os_about old;
    const int exists = qkvi_os_examine(writer->target, &old) == 0;
    if (exists && old.kind == QKVI_OS_FOLDER)
        return qkvi_io_failed(writer->path, "cannot write", EISDIR, error);
    if (exists && old.kind != QKVI_OS_FILE) {
        writer->direct = 1;
        const int fd = qkvi_os_open_to_write(writer->target);
        return stream_from(writer, fd) ? QKV_OK
                                       : qkvi_io_failed(writer->path, "cannot open", errno, error);
    }
    if (!stream_from(writer, qkvi_os_create_unnamed(writer->folder)) &&
        !stream_from(writer, with_temporary(writer, create_temporary)))
        return qkvi_io_failed(writer->path, "cannot create a file beside it", errno, error);
    if (exists && qkvi_os_set_permissions(fileno(writer->stream), old.permissions) != 0)
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
    int cause = fflush(writer->stream) == 0 ? 0 : errno;
    if (!cause && !writer->direct) cause = qkvi_os_flush(fileno(writer->stream));
    return cause ? qkvi_io_failed(writer->path, "cannot write", cause, error) : QKV_OK;
}

/* Gives the file its place; 0, or -1 with errno. */
static int put_in_place(qkvi_writer *writer) {
    if (!writer->has_temporary) {
        if (link_to(writer, writer->target) == 0) return 0;
        if (errno != EEXIST || with_temporary(writer, link_temporary) < 0) return -1;
    }
    if (qkvi_os_replace(writer->temporary, writer->target) != 0) return -1;
    writer->has_temporary = 0;
    return 0;
}

qkv_status qkvi_writer_publish(qkvi_writer *writer, qkv_error *error) {
    int cause = 0;
    if (!writer->direct)
        cause = put_in_place(writer) == 0 ? qkvi_os_flush_folder(writer->folder) : errno;
    return cause ? qkvi_io_failed(writer->path, "cannot write", cause, error) : QKV_OK;
}

/* 1 if both would publish the same file. */
static int writer_same(const qkvi_writer *a, const qkvi_writer *b) {
    qkvi_os_about about[2] = { 0 };
    if (a->direct || b->direct) return 0;
    if (strcmp(qkvi_path_name(a->target), qkvi_path_name(b->target)) != 0) return 0;
    for (int i = 0; i < 2; i++) {
        char *const folder = qkvi_path_folder(i ? b->target : a->target);
        const int found = folder && qkvi_os_examine(folder, &about[i]) == 0;
        free(folder);
        if (!found) return 0;
    }
    return about[0].volume == about[1].volume && about[0].id == about[1].id;
}

void qkvi_writer_end(qkvi_writer *writer) {
    if (writer->stream) fclose(writer->stream);
    if (writer->has_temporary) qkvi_os_remove(writer->temporary);
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
    qkvi_os_about old;
    qkvi_writer writer;
    if (!path) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "path is NULL");
    if (qkvi_os_examine(path, &old) == 0 && old.kind != QKVI_OS_FILE && old.kind != QKVI_OS_FOLDER)
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
