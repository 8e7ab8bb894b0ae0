/**
 * Reading files of untrusted folders, whole or at offsets; writing files that appear complete or
 * not at all.
 *
 * Reading is by pread on regular files opened with O_NONBLOCK: a pipe, a device or a folder is an
 * error at once, never a hang, and a file that shrinks while it is read is an error, never a
 * SIGBUS. The same interface reads bytes in memory.
 */
#ifndef QKVI_FILES_FILE_H
#define QKVI_FILES_FILE_H

#include "files/base.h"

/** Bytes that can be read at any offset: an open file, or memory of the caller. */
typedef struct qkvi_source {
    char *name; /* for messages, escaped */
    int fd, is_file;
    const uint8_t *bytes; /* in memory, if it is no file */
    uint64_t n_bytes;     /* of a file: its size when it was opened */
} qkvi_source;

qkv_status qkvi_source_open(const char *path, qkvi_source *source, qkv_error *error);
qkv_status qkvi_source_memory(const char *name, const void *bytes, size_t n_bytes,
                              qkvi_source *source, qkv_error *error);
/** A source that is all 0, or closed, is allowed. */
void qkvi_source_close(qkvi_source *source);

/** Reads exactly n bytes at offset; IO if there are fewer, because the file shrank. */
qkv_status qkvi_source_read(const qkvi_source *source, uint64_t offset, void *destination, size_t n,
                            qkv_error *error);

/** IO if the file is shorter now than when it was opened. */
qkv_status qkvi_source_check(const qkvi_source *source, qkv_error *error);

/**
 * Reads a whole file of at most limit bytes (LIMIT), and adds a NUL that n_bytes does not count; to
 * be freed by free().
 */
qkv_status qkvi_file_load(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                          qkv_error *error);

/**
 * The same for a text that a user names and that is read once: it may also be a pipe with a writer,
 * such as <(…) of a shell. A pipe without a writer is an error at once.
 */
qkv_status qkvi_file_load_text(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                               qkv_error *error);

/** 1 if path is a regular file (links followed). */
int qkvi_file_exists(const char *path);

/** folder/name as a new string to be freed by free(); NULL without memory. */
char *qkvi_path_join(const char *folder, const char *name);
/** The folder of a path, "." if it names none; to be freed, NULL without memory. */
char *qkvi_path_folder(const char *path);
/** A path without its folder: the end of the same string. */
const char *qkvi_path_name(const char *path);

/** Sets "NAME: WHAT: REASON", with the name escaped; returns MEMORY if cause is ENOMEM, else IO. */
qkv_status qkvi_io_failed(const char *name, const char *what, int cause, qkv_error *error);

/**
 * A new file that is being written in the folder of its target (writer.c). It has no name until it
 * is published, so that a process that is killed leaves nothing behind; where the file system does
 * not support that, it has the temporary name PATH.PID-COUNT.tmp. Publishing replaces the target in
 * one step: others see the old file or the new one. The new one gets the permissions of the old
 * one. Symbolic links are followed, and stay. Pipes and devices are written to directly.
 */
typedef struct qkvi_writer {
    FILE *stream;
    char *path, *target; /* as given; with links followed */
    char *folder;        /* of the target */
    char *temporary;     /* a buffer for a temporary name */
    int has_temporary;   /* the file has that name */
    int direct;          /* a pipe or a device */
} qkvi_writer;

qkv_status qkvi_writer_begin(const char *path, qkvi_writer *writer, qkv_error *error);
qkv_status qkvi_writer_put(qkvi_writer *writer, const void *bytes, size_t n, qkv_error *error);
/** Flushes to the disk: if there is no space it fails here, and path is as it was. */
qkv_status qkvi_writer_finish(qkvi_writer *writer, qkv_error *error);
/** After finish: puts the file at its path. */
qkv_status qkvi_writer_publish(qkvi_writer *writer, qkv_error *error);
/** Ends the writer in any case; a file that was not published is removed. */
void qkvi_writer_end(qkvi_writer *writer);
/** Finish, publish and end. */
qkv_status qkvi_writer_commit(qkvi_writer *writer, qkv_error *error);

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */
/** Writes a small file with a writer. */
qkv_status qkvi_file_save(const char *path, const void *bytes, size_t n, qkv_error *error);

/**
 * Files that appear together (writer.c): all are finished before the first one is published. Two
 * names of one file are an ARGUMENT error. The caller sets folder (NULL: names are paths), and
 * calls qkvi_files_end after a failed call, or instead of qkvi_files_commit.
 */
typedef struct qkvi_files {
    const char *folder;
    qkvi_writer *writers;
    int n;
} qkvi_files;

/** Begins a file; *writer is valid until the next one is begun, and is ended with the files. */
qkv_status qkvi_files_begin(qkvi_files *files, const char *name, qkvi_writer **writer,
                            qkv_error *error);
qkv_status qkvi_files_add(qkvi_files *files, const char *name, const void *bytes, size_t n,
                          qkv_error *error);
/** Ends the files, whether it succeeds or not. */
qkv_status qkvi_files_commit(qkvi_files *files, qkv_error *error);
void qkvi_files_end(qkvi_files *files);
#pragma GCC visibility pop

#endif
