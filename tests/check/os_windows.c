/*
 * system.h by the API of Windows, which has no fork: a case is a thread of its own. What ends a
 * process elsewhere, such as an access to a page without access, stops the thread that does it, and
 * is the answer; that thread and the memory of its case are left as they are.
 */
#include <windows.h>

#include <errno.h>
#include <stdlib.h>

#include "check/system.h"

/* ---- Pages ----------------------------------------------------------------------------------- */

size_t system_page_bytes(void) {
    SYSTEM_INFO about;
    GetSystemInfo(&about);
    return about.dwPageSize;
}

void *system_pages(size_t bytes) {
    const size_t page = system_page_bytes();
    char *const map = VirtualAlloc(NULL, bytes + 2 * page, MEM_RESERVE | MEM_COMMIT, PAGE_NOACCESS);
    DWORD before;
    errno = ENOMEM;
    if (!map) return NULL;
    if (VirtualProtect(map + page, bytes, PAGE_READWRITE, &before)) return map + page;
    VirtualFree(map, 0, MEM_RELEASE);
    return NULL;
}
void system_pages_free(void *pages, size_t bytes) {
    (void)bytes;
    VirtualFree((char *)pages - system_page_bytes(), 0, MEM_RELEASE);
}
bool system_pages_read_only(void *pages, size_t bytes) {
    DWORD before;
    errno = EACCES;
    return VirtualProtect(pages, bytes, PAGE_READONLY, &before);
}

void *system_shared(size_t bytes) { return calloc(1, bytes); }
void system_shared_free(void *shared, size_t bytes) { (void)bytes, free(shared); }

/* ---- Cases ----------------------------------------------------------------------------------- */

enum { CASE_WAIT_MS = 3600 * 1000 }; /* a case takes milliseconds */

struct child {
    void (*run)(void *argument);
    void *argument;
};
static HANDLE crash; /* an event: a thread has stopped */
static const char *volatile crash_name;

static const char *name_of(DWORD code) {
    switch (code) {
    case EXCEPTION_ACCESS_VIOLATION: return "Access violation";
    case EXCEPTION_STACK_OVERFLOW: return "Stack overflow";
    case EXCEPTION_ILLEGAL_INSTRUCTION: return "Illegal instruction";
    case EXCEPTION_PRIV_INSTRUCTION: return "Privileged instruction";
    case EXCEPTION_DATATYPE_MISALIGNMENT: return "Misaligned access";
    case EXCEPTION_INT_DIVIDE_BY_ZERO: return "Division by zero";
    default: return NULL;
    }
}

/* Exceptions of other kinds are the system's own, which goes on after them. */
static LONG CALLBACK on_exception(EXCEPTION_POINTERS *what) {
    const char *const name = name_of(what->ExceptionRecord->ExceptionCode);
    if (!name) return EXCEPTION_CONTINUE_SEARCH;
    crash_name = name;
    SetEvent(crash);
    Sleep(INFINITE);
    return EXCEPTION_CONTINUE_SEARCH;
}

static DWORD WINAPI begin(void *argument) {
    const struct child *const child = argument;
    child->run(child->argument);
    return 0;
}

const char *system_in_child(void (*run)(void *argument), void *argument) {
    struct child child = { run, argument };
    if (!crash) {
        crash = CreateEventW(NULL, FALSE, FALSE, NULL);
        if (!crash || !AddVectoredExceptionHandler(TRUE, on_exception)) return "no handler";
    }
    const HANDLE thread = CreateThread(NULL, 0, begin, &child, 0, NULL);
    if (!thread) return "no thread";
    const HANDLE ends[] = { thread, crash };
    const DWORD end = WaitForMultipleObjects(2, ends, FALSE, CASE_WAIT_MS);
    CloseHandle(thread);
    return end == WAIT_OBJECT_0 ? NULL : end == WAIT_OBJECT_0 + 1 ? crash_name : "it does not end";
}
