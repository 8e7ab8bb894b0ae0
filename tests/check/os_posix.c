/* system.h by POSIX. WASI has of it neither processes nor protected pages. */
#include "check/system.h"

#include <stdio.h>
#include <stdlib.h>

#if defined(__wasi__)

size_t system_page_bytes(void) { return 4096; }
void *system_pages(size_t bytes) { return aligned_alloc(system_page_bytes(), bytes); }
void system_pages_free(void *pages, size_t bytes) { (void)bytes, free(pages); }
bool system_pages_read_only(void *pages, size_t bytes) { return (void)pages, (void)bytes, true; }

void *system_shared(size_t bytes) { return calloc(1, bytes); }
void system_shared_free(void *shared, size_t bytes) { (void)bytes, free(shared); }

const char *system_in_child(void (*run)(void *argument), void *argument) {
    run(argument);
    return NULL;
}

#else

#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* 16 KiB on Apple's processors; also on others 4 KiB are not a law. */
size_t system_page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

void *system_pages(size_t bytes) {
    const size_t page = system_page_bytes(), n = bytes + 2 * page;
    char *const map = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) return NULL;
    if (mprotect(map + page, bytes, PROT_READ | PROT_WRITE) == 0) return map + page;
    munmap(map, n);
    return NULL;
}
void system_pages_free(void *pages, size_t bytes) {
    const size_t page = system_page_bytes();
    munmap((char *)pages - page, bytes + 2 * page);
}
bool system_pages_read_only(void *pages, size_t bytes) {
    return mprotect(pages, bytes, PROT_READ) == 0;
}

void *system_shared(size_t bytes) {
    void *const shared =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? NULL : shared;
}
void system_shared_free(void *shared, size_t bytes) { munmap(shared, bytes); }

/*
 * Limits of a case, which takes milliseconds, and on a slow emulator some seconds: of CPU for what
 * does not end, and by the clock for what waits for ever.
 */
enum { CASE_CPU_SECONDS = 600, CASE_WAIT_SECONDS = 3600 };

/* Of this process, which then ends by SIGXCPU or SIGALRM. Lower limits of the host stay. */
static void set_limits(void) {
    struct rlimit cpu;
    if (getrlimit(RLIMIT_CPU, &cpu) == 0 && cpu.rlim_cur > CASE_CPU_SECONDS) {
        cpu.rlim_cur = CASE_CPU_SECONDS;
        setrlimit(RLIMIT_CPU, &cpu);
    }
    alarm(CASE_WAIT_SECONDS);
}

const char *system_in_child(void (*run)(void *argument), void *argument) {
    fflush(NULL);
    const pid_t child = fork();
    if (child < 0) return "fork failed";
    if (child == 0) {
        set_limits();
        run(argument);
        _exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return NULL;
    return WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "it exited";
}

#endif
