/*
 * What the libraries ask of the operating system, beyond the C library and pthreads: of src/ only
 * os_*.c, which implement this, know systems (tools/check_system.py). The tool has cli/common/os.h.
 *
 * Names of files are UTF-8. Where a call returns an int without further words, it is 0, or -1 with
 * errno. None of them is a point at which a thread can be cancelled safely.
 */
#ifndef QKVI_CORE_OS_H
#define QKVI_CORE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#pragma GCC visibility push(default) /* for the other libraries: QKV_PRIVATE in src/qkv.map */

/* ---- Memory ---------------------------------------------------------------------------------- */

/* bytes is a multiple of alignment, a power of 2. NULL when there is no memory. */
void *qkvi_os_aligned(size_t alignment, size_t bytes);
void qkvi_os_aligned_free(void *pointer);
/* Advice: asks for pages of 2 MiB. */
void qkvi_os_prefer_large_pages(void *memory, size_t bytes);

/* ---- Processors, threads, time --------------------------------------------------------------- */

/* Processors on which this process may run, at least 1. */
int qkvi_os_processors(void);
/* Asks that this process may use the tiles of AMX, which the processor has; whether it may. */
bool qkvi_os_grants_amx(void);
/* AArch64: whether there is Advanced SIMD, and its SDOT. */
bool qkvi_os_has_neon(void);
bool qkvi_os_has_dotprod(void);

void qkvi_os_yield(void);
/* Calls in_child in each process that this one forks, from then on. */
void qkvi_os_watch_forks(void (*in_child)(void));

/* While they are held, signals go to other threads; threads that start meanwhile take none. */
typedef struct qkvi_os_signals {
    uint64_t before[16];
} qkvi_os_signals;
void qkvi_os_hold_signals(qkvi_os_signals *signals);
void qkvi_os_let_signals(const qkvi_os_signals *signals);

/* Seconds of a clock that nobody sets. */
double qkvi_os_seconds(void);
long qkvi_os_process_id(void);

/* ---- Files ----------------------------------------------------------------------------------- */

typedef enum qkvi_os_kind {
    QKVI_OS_FILE,
    QKVI_OS_FOLDER,
    QKVI_OS_PIPE,
    QKVI_OS_OTHER /* a device, a socket */
} qkvi_os_kind;

typedef struct qkvi_os_about {
    qkvi_os_kind kind;
    unsigned permissions; /* as chmod takes them */
    uint64_t n_bytes;
    uint64_t volume, id; /* the same for two names of one file */
    int64_t changed_s;   /* when its bytes were written: since 1970 */
    long changed_ns;
} qkvi_os_about;

/* Links are followed. */
int qkvi_os_examine(const char *path, qkvi_os_about *about);
int qkvi_os_examine_open(int fd, qkvi_os_about *about);

/* Does not wait for the writer of a pipe. -1 with errno. */
int qkvi_os_open_to_read(const char *path);
/* A new file to write; EEXIST where there is something of that name. */
int qkvi_os_create(const char *path);
/* A pipe or a device. */
int qkvi_os_open_to_write(const char *path);
/* A file to read and to write, made if it is not there. */
int qkvi_os_open_to_change(const char *path);
void qkvi_os_close(int fd);

/* Up to n bytes at an offset, 0 at the end; -1 with errno. */
int64_t qkvi_os_read_at(int fd, void *bytes, size_t n, uint64_t offset);
/* Up to n bytes of a pipe; waits while it has a writer. 0 at the end, -1 with errno. */
int64_t qkvi_os_read_pipe(int fd, void *bytes, size_t n);

/*
 * A file without a name in a folder, which is gone when it is closed, until it gets a name; -1
 * where the system or the file system has none.
 */
int qkvi_os_create_unnamed(const char *folder);
int qkvi_os_name(int fd, const char *path);

int qkvi_os_set_permissions(int fd, unsigned permissions);
/* To the disk; of a folder, the names in it. 0 or an errno. */
int qkvi_os_flush(int fd);
int qkvi_os_flush_folder(const char *folder);

/* In one step: others see the old file or the new one. */
int qkvi_os_replace(const char *from, const char *to);
int qkvi_os_remove(const char *path);
/* 0 also if something of that name is there. */
int qkvi_os_make_folder(const char *path);
/* What a symbolic link holds, n - 1 bytes at most, and a NUL; -1 for what is none. */
int qkvi_os_read_link(const char *path, char *target, size_t n);

/*
 * Where a path names its file: an offset. *n_folder is how many characters before it name the
 * folder, 0 for that of relative paths.
 */
size_t qkvi_os_split(const char *path, size_t *n_folder);
bool qkvi_os_is_absolute(const char *path);

/* A text that Linux makes, as those of /proc; NULL: there is none. */
FILE *qkvi_os_open_procfs(const char *path);

typedef struct qkvi_os_list qkvi_os_list;
/* The names in a folder, in any order; NULL with errno. next is NULL at the end. */
qkvi_os_list *qkvi_os_list_open(const char *folder);
const char *qkvi_os_list_next(qkvi_os_list *list);
void qkvi_os_list_close(qkvi_os_list *list);

/* ---- Words ----------------------------------------------------------------------------------- */

/* What errno means; at room, or a constant. */
const char *qkvi_os_reason(int cause, char *room, size_t n);
/* The folder of this user, or NULL. */
const char *qkvi_os_home(void);
/* A variable of the environment, or NULL; also for a program that runs with more rights than its
 * caller. */
const char *qkvi_os_trusted_variable(const char *name);

#pragma GCC visibility pop

#endif
