/*
 * A preloaded library that kills the process before its file operation number QKV_KILL_AT, counted
 * from 0. Operations are those that create, name, flush or remove a file; reading is not counted.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

static void count(void) {
    static atomic_int n_done;
    const char *const last = getenv("QKV_KILL_AT");
    if (last && atomic_fetch_add(&n_done, 1) == atoi(last)) raise(SIGKILL);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

EXPORTED int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const int makes = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
    const mode_t mode = makes ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (makes) count();
    return REAL(open)(path, flags, mode);
}

EXPORTED int linkat(int from_fd, const char *from, int to_fd, const char *to, int flags) {
    count();
    return REAL(linkat)(from_fd, from, to_fd, to, flags);
}

EXPORTED int rename(const char *from, const char *to) {
    count();
    return REAL(rename)(from, to);
}

EXPORTED int unlink(const char *path) {
    count();
    return REAL(unlink)(path);
}

EXPORTED int unlinkat(int fd, const char *path, int flags) {
    count();
    return REAL(unlinkat)(fd, path, flags);
}

EXPORTED int fsync(int fd) {
    count();
    return REAL(fsync)(fd);
}

EXPORTED int mkdir(const char *path, mode_t mode) {
    count();
    return REAL(mkdir)(path, mode);
}
