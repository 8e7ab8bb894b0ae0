/*
 * os.h by POSIX. What Linux has beside it, others do without: files without a name, the affinity
 * mask, advice about pages. WASI, the system of WebAssembly, has of POSIX the files only: no
 * processes, signals, users, or permissions.
 */
#include "core/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#if !defined(__wasi__)
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#endif
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#endif

/* ---- Memory ---------------------------------------------------------------------------------- */

void *qkvi_os_aligned(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }
void qkvi_os_aligned_free(void *pointer) { free(pointer); }

void qkvi_os_prefer_large_pages(void *memory, size_t bytes) {
#if defined(MADV_HUGEPAGE)
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

/* ---- Processors, threads, time --------------------------------------------------------------- */

int qkvi_os_processors(void) {
#if defined(__linux__)
    for (int n_cpus = 1024; n_cpus <= 1 << 20; n_cpus *= 4) {
        cpu_set_t *set = CPU_ALLOC((size_t)n_cpus);
        if (!set) return 1;
        const size_t bytes = CPU_ALLOC_SIZE((size_t)n_cpus);
        const bool ok = sched_getaffinity(0, bytes, set) == 0;
        const bool too_small = !ok && errno == EINVAL;
        const int count = ok ? CPU_COUNT_S(bytes, set) : 1;
        CPU_FREE(set);
        if (!too_small) return count > 0 ? count : 1;
    }
    return 1;
#elif defined(__wasi__)
    return 1;
#else
    const long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
#endif
}

bool qkvi_os_grants_amx(void) {
#if defined(__linux__) && defined(__x86_64__)
    /* Documentation/arch/x86/xstate.rst of the kernel */
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

bool qkvi_os_has_neon(void) {
#if defined(__linux__) && defined(__aarch64__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMD;
#elif defined(__aarch64__)
    return true; /* the other systems for AArch64 presume it */
#else
    return false;
#endif
}

bool qkvi_os_has_dotprod(void) {
#if defined(__linux__) && defined(__aarch64__)
    return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#elif defined(__APPLE__) && defined(__aarch64__)
    return true; /* in all of Apple's since the A11 */
#else
    return false;
#endif
}

void qkvi_os_yield(void) { sched_yield(); }

#if defined(__wasi__)
void qkvi_os_watch_forks(void (*in_child)(void)) { (void)in_child; }
void qkvi_os_hold_signals(qkvi_os_signals *signals) { *signals = (qkvi_os_signals){ { 0 } }; }
void qkvi_os_let_signals(const qkvi_os_signals *signals) { (void)signals; }
long qkvi_os_process_id(void) { return 1; }
#else
void qkvi_os_watch_forks(void (*in_child)(void)) { pthread_atfork(NULL, NULL, in_child); }

_Static_assert(sizeof(sigset_t) <= sizeof(qkvi_os_signals), "room for a set of signals");

void qkvi_os_hold_signals(qkvi_os_signals *signals) {
    sigset_t all, before;
    sigfillset(&all);
    sigemptyset(&before);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    memcpy(signals->before, &before, sizeof before);
}
void qkvi_os_let_signals(const qkvi_os_signals *signals) {
    sigset_t before;
    memcpy(&before, signals->before, sizeof before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

long qkvi_os_process_id(void) { return (long)getpid(); }
#endif

double qkvi_os_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- Files ----------------------------------------------------------------------------------- */

static int tell(const struct stat *status, qkvi_os_about *about) {
#if defined(__APPLE__)
    const struct timespec changed = status->st_mtimespec;
#else
    const struct timespec changed = status->st_mtim;
#endif
    *about = (qkvi_os_about){
        .kind = S_ISREG(status->st_mode)    ? QKVI_OS_FILE
                : S_ISDIR(status->st_mode)  ? QKVI_OS_FOLDER
                : S_ISFIFO(status->st_mode) ? QKVI_OS_PIPE
                                            : QKVI_OS_OTHER,
        .permissions = (unsigned)status->st_mode & 0777,
        .n_bytes = (uint64_t)status->st_size,
        .volume = (uint64_t)status->st_dev,
        .id = (uint64_t)status->st_ino,
        .changed_s = (int64_t)changed.tv_sec,
        .changed_ns = changed.tv_nsec,
    };
    return 0;
}

int qkvi_os_examine(const char *path, qkvi_os_about *about) {
    struct stat status;
    return stat(path, &status) == 0 ? tell(&status, about) : -1;
}
int qkvi_os_examine_open(int fd, qkvi_os_about *about) {
    struct stat status;
    return fstat(fd, &status) == 0 ? tell(&status, about) : -1;
}

int qkvi_os_open_to_read(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}
int qkvi_os_create(const char *path) {
    return open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}
int qkvi_os_open_to_write(const char *path) { return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY); }
int qkvi_os_open_to_change(const char *path) {
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
}
void qkvi_os_close(int fd) { close(fd); }

int64_t qkvi_os_read_at(int fd, void *bytes, size_t n, uint64_t offset) {
    const size_t most = n < (size_t)1 << 30 ? n : (size_t)1 << 30;
    ssize_t got;
    do got = pread(fd, bytes, most, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got;
}

/*
 * Opened with O_NONBLOCK, a pipe without a writer is at its end at once, and one whose writer has
 * not said anything yet answers EAGAIN: only a writer is waited for.
 */
int64_t qkvi_os_read_pipe(int fd, void *bytes, size_t n) {
    for (;;) {
        struct pollfd written = { .fd = fd, .events = POLLIN };
        const ssize_t got = read(fd, bytes, n);
        if (got >= 0 || (errno != EAGAIN && errno != EINTR)) return got;
        if (errno == EAGAIN) poll(&written, 1, -1);
    }
}

#if defined(__linux__)
enum { LINK_BYTES = 40 };

static const char *link_of(int fd, char link[LINK_BYTES]) {
    snprintf(link, LINK_BYTES, "/proc/self/fd/%d", fd);
    return link;
}

/* Without /proc it could not get a name later. */
int qkvi_os_create_unnamed(const char *folder) {
    char link[LINK_BYTES];
    const int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (fd < 0 || access(link_of(fd, link), F_OK) == 0) return fd;
    close(fd);
    return -1;
}
int qkvi_os_name(int fd, const char *path) {
    char link[LINK_BYTES];
    return linkat(AT_FDCWD, link_of(fd, link), AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}
#else
int qkvi_os_create_unnamed(const char *folder) { return (void)folder, -1; }
int qkvi_os_name(int fd, const char *path) {
    (void)fd, (void)path;
    errno = ENOSYS;
    return -1;
}
#endif

int qkvi_os_set_permissions(int fd, unsigned permissions) {
#if defined(__wasi__)
    return (void)fd, (void)permissions, 0;
#else
    return fchmod(fd, (mode_t)permissions);
#endif
}

int qkvi_os_flush(int fd) { return fsync(fd) == 0 ? 0 : errno; }
int qkvi_os_flush_folder(const char *folder) {
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return 0; /* a folder that may be written but not read */
    const int cause = qkvi_os_flush(fd);
    close(fd);
    return cause == EINVAL ? 0 : cause;
}

int qkvi_os_replace(const char *from, const char *to) { return rename(from, to); }
int qkvi_os_remove(const char *path) { return unlink(path); }
int qkvi_os_make_folder(const char *path) {
    return mkdir(path, 0777) == 0 || errno == EEXIST ? 0 : -1;
}

int qkvi_os_read_link(const char *path, char *target, size_t n) {
    const ssize_t length = readlink(path, target, n - 1);
    if (length < 0) return -1;
    target[length] = '\0';
    return 0;
}

size_t qkvi_os_split(const char *path, size_t *n_folder) {
    const char *const last = strrchr(path, '/');
    const size_t at = last ? (size_t)(last - path) : 0;
    *n_folder = last && at == 0 ? 1 : at; /* of /file the root */
    return last ? at + 1 : 0;
}
bool qkvi_os_is_absolute(const char *path) { return path[0] == '/'; }

FILE *qkvi_os_open_procfs(const char *path) { return fopen(path, "re"); }

/* A DIR under another name. */
qkvi_os_list *qkvi_os_list_open(const char *folder) { return (qkvi_os_list *)opendir(folder); }
const char *qkvi_os_list_next(qkvi_os_list *list) {
    const struct dirent *const entry = readdir((DIR *)list);
    return entry ? entry->d_name : NULL;
}
void qkvi_os_list_close(qkvi_os_list *list) { closedir((DIR *)list); }

/* ---- Words ----------------------------------------------------------------------------------- */

const char *qkvi_os_reason(int cause, char *room, size_t n) {
#if defined(__GLIBC__) /* where it returns a text, elsewhere a number */
    return strerror_r(cause, room, n);
#else
    return strerror_r(cause, room, n) == 0 ? room : "unknown error";
#endif
}

const char *qkvi_os_home(void) { return getenv("HOME"); }

const char *qkvi_os_trusted_variable(const char *name) {
#if defined(__linux__)
    return secure_getenv(name);
#elif defined(__wasi__)
    return getenv(name);
#else
    return issetugid() ? NULL : getenv(name);
#endif
}
