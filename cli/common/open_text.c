/* Texts that may come from a pipe: see lines.h. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/lines.h"

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
    if (n == 0) return "is a pipe that nobody writes to";
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
