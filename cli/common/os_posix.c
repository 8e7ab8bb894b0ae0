/* os.h by POSIX. WASI has no processes, signals and terminals. */
#include "common/os.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if !defined(__wasi__)
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#endif
#if defined(__APPLE__)
#include <mach-o/dyld.h>
#include <sys/random.h>
#elif defined(__linux__)
#include <sys/syscall.h>
#endif

#include "core/os.h"

/* ---- This process ---------------------------------------------------------------------------- */

#if !defined(__wasi__)
extern char **environ;

void os_begin(int *argc, char ***argv) {
    (void)argc, (void)argv;
    for (int fd = 0; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

/* A SIGHUP comes when a terminal is closed; nohup has it ignored. */
void os_catch_interrupts(void (*met)(int number)) {
    struct sigaction action = { .sa_handler = met, .sa_flags = (int)SA_RESETHAND }, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

void os_end_by(int number) {
    signal(number, SIG_DFL);
    raise(number);
}

bool os_reader_gone(void) {
    struct pollfd pipe = { .fd = STDOUT_FILENO };
    return poll(&pipe, 1, 0) == 1 && (pipe.revents & POLLERR);
}

size_t os_self(char *path, size_t room) {
#if defined(__APPLE__)
    uint32_t n = (uint32_t)room;
    return _NSGetExecutablePath(path, &n) == 0 ? strlen(path) : 0;
#else
    const ssize_t n = readlink("/proc/self/exe", path, room - 1);
    if (n <= 0) return 0;
    path[n] = '\0';
    return (size_t)n;
#endif
}

void os_become(const char *path, char *const words[]) { execv(path, words); }

int os_run_self(char *const words[], int *code, int *signal) {
    enum { ROOM = 4096 };
    char self[ROOM];
    pid_t process;
    int status;
    *code = *signal = 0;
#if defined(__linux__) /* also a program that was replaced meanwhile */
    const char *const program = strcpy(self, "/proc/self/exe");
#else
    const char *const program = os_self(self, sizeof self) ? self : words[0];
#endif
    errno = posix_spawn(&process, program, NULL, NULL, words, environ);
    if (errno) return -1;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return -1;
    if (WIFEXITED(status))
        *code = WEXITSTATUS(status);
    else
        *signal = WTERMSIG(status);
    return 0;
}

int os_random(void *bytes, size_t n) {
#if defined(__linux__) /* not by getrandom, which glibc has since 2.25 */
    long got;
    do got = syscall(SYS_getrandom, bytes, n, 0);
    while (got < 0 && errno == EINTR);
    return got == (long)n ? 0 : -1; /* whole up to 256 bytes */
#else
    return getentropy(bytes, n);
#endif
}
#else /* WASI has no other programs, and ours has no path */
size_t os_self(char *path, size_t room) { return (void)path, (void)room, 0; }
void os_become(const char *path, char *const words[]) { (void)path, (void)words; }
#endif

/* ---- Streams --------------------------------------------------------------------------------- */

bool os_is_terminal(FILE *stream) { return isatty(fileno(stream)); }

int os_columns(FILE *stream) {
#if defined(TIOCGWINSZ)
    struct winsize size;
    return isatty(fileno(stream)) && ioctl(fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col
                                                                                   : 0;
#else
    return (void)stream, 0;
#endif
}

/*
 * Why a descriptor, opened with O_NONBLOCK, is no text; NULL if it is one. A pipe without a writer
 * is at its end; one whose writer has said something gives its first byte, which is else EOF.
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
    if (n == 0) return "is a pipe without a writer";
    if (n == 1) *first = byte;
    return n == 1 || errno == EAGAIN ? NULL : strerror(errno);
}

FILE *os_open_text(const char *path, const char **reason) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int first = EOF;
    *reason = fd < 0 ? strerror(errno) : refuse(fd, &first);
    /* from here on a writer is waited for, who is there */
    if (!*reason && fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) != 0)
        *reason = strerror(errno);
    FILE *const file = *reason ? NULL : fdopen(fd, "rb");
    if (file) {
        if (first != EOF) ungetc(first, file);
        return file;
    }
    if (!*reason) *reason = strerror(errno);
    if (fd >= 0) close(fd);
    return NULL;
}

/* tee copies bytes of a pipe, and leaves them in it. */
static size_t peek_pipe(int fd, char *bytes, size_t n) {
    ssize_t there = 0;
#if defined(__linux__)
    struct pollfd pipe = { .fd = fd, .events = POLLIN };
    bool is_over = false;
    int copy[2];
    if (pipe2(copy, O_CLOEXEC) != 0) return 0;
    for (;;) {
        there = tee(fd, copy[1], n, SPLICE_F_NONBLOCK);
        if (there == 0 || (there < 0 && errno != EAGAIN)) break;
        if (there > 0 && read(copy[0], bytes, (size_t)there) != there) break;
        if ((size_t)there == n || is_over) break;
        if (poll(&pipe, 1, there > 0 ? 0 : -1) < 0) break; /* Ctrl-C */
        is_over = pipe.revents & POLLHUP;                  /* then what was written is there */
        if (there > 0 && !is_over) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    close(copy[0]);
    close(copy[1]);
#else
    (void)fd, (void)bytes, (void)n;
#endif
    return there > 0 ? (size_t)there : 0;
}

/* What was written into a pipe that has a name is lost with its last descriptor: it stays open. */
size_t os_peek(const char *path, char *bytes, size_t n) {
    struct stat status;
    if (stat(path, &status) != 0) return 0;
    const bool is_pipe = S_ISFIFO(status.st_mode);
    if (!is_pipe && !S_ISREG(status.st_mode)) return 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return 0;
    if (is_pipe) return peek_pipe(fd, bytes, n);
    const ssize_t there = read(fd, bytes, n);
    close(fd);
    return there > 0 ? (size_t)there : 0;
}

int os_getc(FILE *in) { return getc_unlocked(in); }

FILE *os_open_memory(char **bytes, size_t *n) { return open_memstream(bytes, n); }
int os_close_memory(FILE *out) { return fclose(out); }

FILE *os_open_to_change(const char *path) {
    const int fd = qkvi_os_open_to_change(path);
    FILE *const file = fd >= 0 ? fdopen(fd, "r+b") : NULL;
    if (fd >= 0 && !file) close(fd);
    return file;
}
int os_lock(FILE *file) {
#if defined(__wasi__)
    return (void)file, 0;
#else
    return flock(fileno(file), LOCK_EX | LOCK_NB);
#endif
}
int os_truncate(FILE *file, int64_t n) { return ftruncate(fileno(file), (off_t)n); }

/* ---- Processors ------------------------------------------------------------------------------ */

#if defined(__linux__)
void os_cpus_get(os_cpus *cpus) {
    memset(cpus, 0, sizeof *cpus);
    sched_getaffinity(0, sizeof *cpus, (cpu_set_t *)(void *)cpus);
}
void os_cpus_set(const os_cpus *cpus) {
    sched_setaffinity(0, sizeof *cpus, (const cpu_set_t *)(const void *)cpus);
}
#else
void os_cpus_get(os_cpus *cpus) { memset(cpus, 0, sizeof *cpus); }
void os_cpus_set(const os_cpus *cpus) { (void)cpus; }
#endif
