/*
 * See fail_alloc.h. This file is compiled without sanitizers: malloc is called before they are set
 * up. strdup and strndup are here because AddressSanitizer's own would not come by.
 */
#include "oom/fail_alloc.h"

#include <cairo.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lost_by_others.h"

/*
 * A request is granted if one of these libraries is among its callers:
 *   jansson     2.14 loses characters when its token buffer cannot grow, and then reads and writes
 *               past it (lex_scan_string); no caller can prevent that.
 *   glib, gobject, gio     end the process: "failed to allocate".
 *   pango, harfbuzz, fontconfig, freetype     draw nothing where a glyph should be, or another
 *               font, and report nothing; pango does not ask cairo whether it could, either.
 *   cairo_stroke     of 1.16 goes on with an outline that it had no memory for, past its end.
 *   cairo_fill       of 1.16, of a polygon, goes on with a mask of pixman that has no memory.
 *   cairo_surface_finish     leaves a part of a PDF out, and its status says nothing.
 * What else we ask of cairo ourselves fails, and what cairo asks of pixman, libpng and zlib for us.
 */
static const char *const exempt_names[] = { "/libjansson.",    "/libglib-",    "/libgobject-",
                                            "/libgio-",        "/libpango",    "/libharfbuzz.",
                                            "/libfontconfig.", "/libfreetype." };

enum { MAX_RANGES = 32, MAX_CALLERS = 40, FUNCTION_BYTES = 64 };
typedef struct range {
    uintptr_t begin, end;
} range;
static range ours, exempt[MAX_RANGES]; /* code of this program, of those libraries */
static int n_exempt;

static _Atomic int64_t n_live;
static _Thread_local bool armed;
static int64_t n_seen, n_failed, first_failing;
static bool failing_from_on;
static void *refused_at[24]; /* the calls that led to the first refusal */
static int n_refused_at;

static int note_library(struct dl_phdr_info *info, size_t bytes, void *unused) {
    (void)bytes;
    (void)unused;
    bool is_named = false;
    for (size_t e = 0; e < sizeof exempt_names / sizeof *exempt_names; e++)
        is_named |= strstr(info->dlpi_name, exempt_names[e]) != NULL;
    for (int p = 0; p < info->dlpi_phnum; p++) {
        const ElfW(Phdr) *const part = &info->dlpi_phdr[p];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_X)) continue;
        const uintptr_t begin = info->dlpi_addr + part->p_vaddr;
        if (!info->dlpi_name[0]) ours = (range){ begin, begin + part->p_memsz };
        if (is_named && n_exempt < MAX_RANGES - 2)
            exempt[n_exempt++] = (range){ begin, begin + part->p_memsz };
    }
    return 0;
}

static bool is_within(range r, const void *address) {
    return (uintptr_t)address >= r.begin && (uintptr_t)address < r.end;
}

static bool is_exempt(const void *address) {
    for (int e = 0; e < n_exempt; e++)
        if (is_within(exempt[e], address)) return true;
    return false;
}

/* Is an exempt library among the callers? Not if we ask ourselves, though it may have called us. */
static bool is_granted(const void *caller) {
    void *callers[MAX_CALLERS];
    if (is_within(ours, caller)) return false;
    if (is_exempt(caller)) return true;
    armed = false; /* for backtrace */
    const int n = backtrace(callers, MAX_CALLERS);
    armed = true;
    for (int c = 0; c < n; c++)
        if (is_exempt(callers[c])) return true;
    return false;
}

/* Of a function the beginning: it calls others from there. */
static void exempt_function(uintptr_t begin) {
    exempt[n_exempt++] = (range){ begin, begin + FUNCTION_BYTES };
}

void fail_alloc_start(void) {
    n_exempt = 0;
    backtrace(refused_at, 1); /* loads a library the first time */
    dl_iterate_phdr(note_library, NULL);
    exempt_function((uintptr_t)&cairo_stroke);
    exempt_function((uintptr_t)&cairo_fill);
    exempt_function((uintptr_t)&cairo_surface_finish);
}

void fail_alloc_arm(int64_t n, bool from_on) {
    first_failing = n;
    failing_from_on = from_on;
    n_seen = n_failed = n_refused_at = 0;
    armed = true;
}

int64_t fail_alloc_disarm(int64_t *n_requests) {
    armed = false;
    if (n_requests) *n_requests = n_seen;
    return n_failed;
}

void fail_alloc_say_where(void) { backtrace_symbols_fd(refused_at, n_refused_at, STDERR_FILENO); }

int64_t fail_alloc_live(void) { return n_live; }

#if defined(__GLIBC__)
const bool fail_alloc_works = true;

#if defined(OOM_SANITIZED)
#define REAL(name) __interceptor_##name

/*
 * Beside the others cairo when it fails (OOM_LEAKY), and the loader, which is named by its file:
 * its functions have names only where its debugging symbols are installed.
 */
const char *__lsan_default_suppressions(void) {
    return LOST_BY_OTHERS "leak:libcairo\nleak:ld-linux\n";
}
#else
#define REAL(name) __libc_##name
#endif

void *REAL(malloc)(size_t bytes);
void *REAL(calloc)(size_t n, size_t bytes);
void *REAL(realloc)(void *pointer, size_t bytes);
void *REAL(memalign)(size_t alignment, size_t bytes);
void REAL(free)(void *pointer);

static bool refuses(const void *caller) {
    if (!armed || is_granted(caller)) return false;
    const int64_t n = n_seen++;
    if (n != first_failing && !(failing_from_on && n > first_failing)) return false;
    if (n_failed++ == 0) {
        armed = false; /* for backtrace */
        n_refused_at = backtrace(refused_at, sizeof refused_at / sizeof *refused_at);
        armed = true;
    }
    errno = ENOMEM;
    return true;
}

static void *counted(void *pointer) {
    if (pointer) n_live++;
    return pointer;
}

static void *copy_text(const void *caller, const char *text, size_t n) {
    char *const copy = refuses(caller) ? NULL : counted(REAL(malloc)(n + 1));
    if (!copy) return NULL;
    memcpy(copy, text, n);
    copy[n] = '\0';
    return copy;
}

#pragma GCC visibility push(default) /* other libraries must see them */
#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes) { return refuses(CALLER) ? NULL : counted(REAL(malloc)(bytes)); }

void *calloc(size_t n, size_t bytes) {
    return refuses(CALLER) ? NULL : counted(REAL(calloc)(n, bytes));
}

void free(void *pointer) {
    if (pointer) n_live--;
    REAL(free)(pointer);
}

void *realloc(void *pointer, size_t bytes) {
    if (refuses(CALLER)) return NULL;
    void *const moved = REAL(realloc)(pointer, bytes);
    if (!pointer) return counted(moved);
    if (bytes == 0 && !moved) n_live--;
    return moved;
}

void *memalign(size_t alignment, size_t bytes) {
    return refuses(CALLER) ? NULL : counted(REAL(memalign)(alignment, bytes));
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return refuses(CALLER) ? NULL : counted(REAL(memalign)(alignment, bytes));
}

int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
    if (refuses(CALLER)) return ENOMEM;
    void *const made = counted(REAL(memalign)(alignment, bytes));
    if (!made) return ENOMEM;
    *pointer = made;
    return 0;
}

char *strdup(const char *text) { return copy_text(CALLER, text, strlen(text)); }

char *strndup(const char *text, size_t n) { return copy_text(CALLER, text, strnlen(text, n)); }
#pragma GCC visibility pop

#else
const bool fail_alloc_works = false;
#endif
