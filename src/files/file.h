/**
 * Whole files and places in them, from untrusted folders; and files that appear complete or not at
 * all.
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
    const uint8_t *bytes; /* if it is not a file */
    uint64_t n_bytes;     /* when it was opened */
} qkvi_source;

qkv_status qkvi_source_open(const char *path, qkvi_source *source, qkv_error *error);
qkv_status qkvi_source_memory(const char *name, const void *bytes, size_t n_bytes,
                              qkvi_source *source, qkv_error *error);
/** Zeros and closed sources are allowed. */
void qkvi_source_close(qkvi_source *source);

/** Exactly n bytes at offset; fewer (the file shrank) is an IO error. */
qkv_status qkvi_source_read(const qkvi_source *source, uint64_t offset, void *destination, size_t n,
                            qkv_error *error);

/** IO if the file is shorter now than when it was opened. */
qkv_status qkvi_source_check(const qkvi_source *source, qkv_error *error);

/**
 * A whole file of at most limit bytes (LIMIT), followed by a NUL that n_bytes does not count; to be
 * freed by free().
 */
qkv_status qkvi_file_load(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                          qkv_error *error);

/**
 * The same of a text that the caller names and that is read once: it may also be a pipe with a
 * writer, such as a shell's <(…), which is read to its end. One without a writer is an error at
 * once.
 */
qkv_status qkvi_file_load_text(const char *path, size_t limit, char **bytes, size_t *n_bytes,
                               qkv_error *error);

/** 1 if path is a regular file (links followed). */
int qkvi_file_exists(const char *path);

/** folder/name as a new string to be freed by free(); NULL without memory. */
char *qkvi_path_join(const char *folder, const char *name);

/** "NAME, escaped: WHAT: the reason of errno". */
qkv_status qkvi_io_failed(const char *name, const char *what, int cause, qkv_error *error);

/**
 * A file being written beside its place (writer.c). It has no name until publish, so whatever ends
 * the process leaves nothing behind; where the file system cannot do that it has the temporary name
 * PATH.PID-COUNT.tmp. Publishing puts it in its place in one step: others see the old file or the
 * new one, and who has the old one open keeps it. It gets the old one's permissions. Links are
 * followed and stay. A pipe or a device is written to as it is.
 */
typedef struct qkvi_writer {
    FILE *stream;
    char *path, *target; /* as given; where its links lead */
    char *folder;        /* of the target */
    char *temporary;     /* room for a temporary name … */
    int has_temporary;   /* … which the file has */
    int direct;          /* a pipe or a device */
} qkvi_writer;

qkv_status qkvi_writer_begin(const char *path, qkvi_writer *writer, qkv_error *error);
qkv_status qkvi_writer_put(qkvi_writer *writer, const void *bytes, size_t n, qkv_error *error);
/** Flushes to the disk: what can fail for want of space fails here, and path is as it was. */
qkv_status qkvi_writer_finish(qkvi_writer *writer, qkv_error *error);
/** After finish: the file is at its place. */
qkv_status qkvi_writer_publish(qkvi_writer *writer, qkv_error *error);
/** Ends the writer in any case; a file that was not published is gone. */
void qkvi_writer_end(qkvi_writer *writer);
/** Finish, publish and end. */
qkv_status qkvi_writer_commit(qkvi_writer *writer, qkv_error *error);

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */
/** A whole small file by a writer. */
qkv_status qkvi_file_save(const char *path, const void *bytes, size_t n, qkv_error *error);

/**
 * Files that appear together (writer.c): each is written beside its place, then all are finished,
 * and only then published; two names of one file are an ARGUMENT error. Set folder, or NULL for
 * names that are paths; end it after a failed call, and instead of commit.
 */
typedef struct qkvi_files {
    const char *folder;
    qkvi_writer *writers;
    int n;
} qkvi_files;

/** A new file; the writer is valid until the next one is begun, and ends with the files. */
qkv_status qkvi_files_begin(qkvi_files *files, const char *name, qkvi_writer **writer,
                            qkv_error *error);
qkv_status qkvi_files_add(qkvi_files *files, const char *name, const void *bytes, size_t n,
                          qkv_error *error);
/** Ends the files, whether it succeeds or not. */
qkv_status qkvi_files_commit(qkvi_files *files, qkv_error *error);
void qkvi_files_end(qkvi_files *files);
#pragma GCC visibility pop

#endif
