/* See fail_io.h. CMakeLists.txt has the same list of names. */
#include "oom/fail_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int64_t n_seen, n_failed, first_failing = -1;
static bool failing_from_on;

void fail_io_arm(int64_t n, bool from_on) {
    first_failing = n;
    failing_from_on = from_on;
    n_seen = n_failed = 0;
}

int64_t fail_io_disarm(int64_t *n_calls) {
    first_failing = -1;
    if (n_calls) *n_calls = n_seen;
    return n_failed;
}

static bool refuses(int cause) {
    if (first_failing < 0) return false;
    const int64_t n = n_seen++;
    if (n != first_failing && !(failing_from_on && n > first_failing)) return false;
    n_failed++;
    errno = cause;
    return true;
}

/* Streams into memory have no descriptor, and no disk that could be full. */
static bool refuses_stream(FILE *stream) { return fileno(stream) >= 0 && refuses(ENOSPC); }

int __real_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const bool makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    const mode_t mode = makes ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return refuses(makes ? ENOSPC : EIO) ? -1 : __real_open(path, flags, mode);
}

ssize_t __real_pread(int fd, void *bytes, size_t n, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t n, off_t offset);
ssize_t __wrap_pread(int fd, void *bytes, size_t n, off_t offset) {
    return refuses(EIO) ? -1 : __real_pread(fd, bytes, n, offset);
}

int __real_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
int __wrap_fstat(int fd, struct stat *status) {
    return refuses(EIO) ? -1 : __real_fstat(fd, status);
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    return refuses(ENOSPC) ? NULL : __real_fopen(path, mode);
}

size_t __real_fwrite(const void *items, size_t size, size_t n, FILE *stream);
size_t __wrap_fwrite(const void *items, size_t size, size_t n, FILE *stream);
size_t __wrap_fwrite(const void *items, size_t size, size_t n, FILE *stream) {
    return refuses_stream(stream) ? 0 : __real_fwrite(items, size, n, stream);
}

int __real_fflush(FILE *stream);
int __wrap_fflush(FILE *stream);
int __wrap_fflush(FILE *stream) { return refuses_stream(stream) ? EOF : __real_fflush(stream); }

int __real_fclose(FILE *stream);
int __wrap_fclose(FILE *stream);
int __wrap_fclose(FILE *stream) {
    const bool refused = refuses_stream(stream);
    const int result = __real_fclose(stream);
    if (!refused) return result;
    errno = ENOSPC;
    return EOF;
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd) { return refuses(EIO) ? -1 : __real_fsync(fd); }

int __real_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to);
int __wrap_rename(const char *from, const char *to) {
    return refuses(EIO) ? -1 : __real_rename(from, to);
}

int __real_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags);
int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    return refuses(ENOSPC) ? -1 : __real_linkat(from_fd, from, to_fd, to, flags);
}

int __real_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode) {
    return refuses(ENOSPC) ? -1 : __real_mkdir(path, mode);
}
