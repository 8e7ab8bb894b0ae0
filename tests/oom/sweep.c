/* See sweep.h. */
#include "oom/sweep.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "oom/begun.h"
#include "oom/fail_alloc.h"
#include "oom/fail_io.h"

/* ---- What is made to fail -------------------------------------------------------------------- */

typedef struct failure {
    const char *sites, *plural;
    qkv_status status;
    void (*arm)(int64_t n, bool from_on);
    int64_t (*disarm)(int64_t *n_seen);
} failure;

static const failure memory = { "allocation", "allocations", QKV_ERR_MEMORY, fail_alloc_arm,
                                fail_alloc_disarm };
static const failure io = { "file operation", "file operations", QKV_ERR_IO, fail_io_arm,
                            fail_io_disarm };

/* One attempt, for messages. */
typedef struct attempt {
    const oom_call *call;
    const failure *cause;
    int64_t n;
    bool from_on;
    uint64_t expected; /* hash of the results of an undisturbed call */
    oom_files files;   /* that it leaves */
} attempt;

static void wrong(const attempt *a, const char *format, ...) {
    char text[700];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fail_alloc_say_where();
    fail_msg("%s, %s: %s %lld%s: %s", a->call->function, a->call->what, a->cause->sites,
             (long long)a->n, a->from_on ? " and all after it" : "", text);
}

/* ---- What may not be lost -------------------------------------------------------------------- */

static int64_t open_descriptors(void) {
    int64_t n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

typedef struct owned {
    int64_t blocks, descriptors;
} owned;

static owned count_owned(void) {
    oom_await_threads();
    return (owned){ fail_alloc_live(), open_descriptors() };
}

/* ---- One attempt ----------------------------------------------------------------------------- */

/* Undisturbed. */
static uint64_t make_once(const attempt *a, const char *when) {
    qkv_error error = { QKV_OK, "" };
    if (a->call->before) a->call->before();
    if (a->call->make(&error) != QKV_OK) wrong(a, "%s: %s", when, error.message);
    const uint64_t hash = a->call->take();
    if (a->call->drop) a->call->drop();
    return hash;
}

static bool are_files_right(const attempt *a, const oom_files *before) {
    const oom_files now = oom_list_files();
    if (oom_same_files(&now, before)) return true;
    if (a->cause != &io) return false;
    if (oom_same_files(&now, &a->files)) return true; /* only the last flush failed */
    bool whole = a->call->flags & OOM_SEVERAL && now.n >= before->n;
    for (int i = 0; i < now.n; i++)
        whole &= oom_has_file(before, now.hashes[i]) || oom_has_file(&a->files, now.hashes[i]);
    return whole;
}

static void check_failure(const attempt *a, qkv_status status, const qkv_error *error,
                          const oom_files *before) {
    if (status != a->cause->status)
        wrong(a, "%s \"%s\"", qkv_status_name(status), error ? error->message : "");
    if (error && (error->status != status || strlen(error->message) < 10))
        wrong(a, "error holds %s \"%s\"", qkv_status_name(error->status), error->message);
    if (!are_files_right(a, before)) wrong(a, "other files than before");
}

/* Returns whether anything failed. */
static bool disturb(const attempt *a) {
    const oom_call *const call = a->call;
    const bool wants_error = !a->from_on || a->n % 2 == 0; /* error is nullable */
    qkv_error error = { QKV_OK, "" };
    const owned before = count_owned();
    if (call->before) call->before();
    const oom_files files = oom_list_files();
    a->cause->arm(a->n, a->from_on);
    const qkv_status status = call->make(wants_error ? &error : NULL);
    const int64_t n_failed = a->cause->disarm(NULL);
    if (status != QKV_OK)
        check_failure(a, status, wants_error ? &error : NULL, &files);
    else if (call->take() != a->expected)
        wrong(a, "success, but with other results");
    if (status != QKV_OK && n_failed == 0) wrong(a, "nothing failed but the call");
    if (call->drop) call->drop();
    const owned after = count_owned();
    if (after.descriptors != before.descriptors)
        wrong(a, "%lld descriptors stay open", (long long)(after.descriptors - before.descriptors));
    if (after.blocks != before.blocks && !(call->flags & (OOM_CACHES | OOM_LEAKY)))
        wrong(a, "%lld blocks are lost", (long long)(after.blocks - before.blocks));
    return n_failed > 0;
}

/*
 * Caches grow, and pango's threads end when they like: they get ever more time. A leak is there
 * each time.
 */
static bool disturb_with_caches(const attempt *a) {
    int64_t lost = 0;
    bool failed = false;
    for (int i = 0; i < 16; i++) {
        const int64_t before = count_owned().blocks;
        failed = disturb(a);
        usleep(i > 0 ? 1000U << (i < 9 ? i : 9) : 0);
        lost = fail_alloc_live() - before;
        if (lost <= 0) return failed;
    }
    wrong(a, "%lld blocks are lost, and some each time", (long long)lost);
    return failed;
}

enum { SLOW_RETRY = 7 };

static bool attempt_and_retry(const attempt *a) {
    const bool failed = a->call->flags & OOM_CACHES ? disturb_with_caches(a) : disturb(a);
    const bool is_slow = a->call->flags & OOM_SLOW;
    if ((!is_slow || a->n % SLOW_RETRY == 0) && make_once(a, "made again") != a->expected)
        wrong(a, "made again: other results");
    return failed;
}

/* ---- A sweep --------------------------------------------------------------------------------- */

/* Uniform in 0 … n - 1, nearly: number `index` of the sweep. */
static int64_t draw(uint64_t seed, int64_t index, int64_t n) {
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t words[4] = { (uint32_t)index, 0, 0, 0x6f6f6d };
    qkvi_philox(key, words, words);
    return (int64_t)(((uint64_t)words[1] << 32 | words[0]) % (uint64_t)n);
}

static int64_t sweep_mode(attempt a, int64_t n_sites, uint64_t seed) {
    const int64_t asked = a.call->dense, dense = n_sites <= 2 * asked || !asked ? INT64_MAX : asked;
    int64_t swept = 0;
    for (a.n = 0; a.n < dense; a.n++, swept++)
        if (!attempt_and_retry(&a)) return swept;
    for (int64_t i = 0; i < dense && n_sites > dense; i++, swept++) {
        a.n = dense + draw(seed, i, n_sites - dense);
        attempt_and_retry(&a);
    }
    a.n = 2 * n_sites + 1000; /* and an end: beyond every site it succeeds */
    if (attempt_and_retry(&a)) wrong(&a, "more allocations than an undisturbed call has");
    return swept;
}

static void sweep(const oom_call *call, const failure *cause, uint64_t seed) {
    attempt a = { .call = call, .cause = cause, .n = -1 };
    int64_t n_sites;
    make_once(&a, "undisturbed"); /* fills what is filled once */
    a.expected = make_once(&a, "undisturbed");
    if (call->before) call->before();
    cause->arm(INT64_MAX, false);
    const qkv_status status = call->make(NULL);
    cause->disarm(&n_sites);
    a.files = oom_list_files();
    if (status != QKV_OK || call->take() != a.expected) wrong(&a, "undisturbed calls differ");
    if (call->drop) call->drop();
    const int64_t once = sweep_mode(a, n_sites, seed);
    a.from_on = true;
    const int64_t from_on = sweep_mode(a, n_sites, seed);
    print_message("swept %s, %s: %lld of %lld %s failed alone, %lld with all after them\n",
                  call->function, call->what, (long long)once, (long long)n_sites, cause->plural,
                  (long long)from_on);
}

void oom_sweep(const oom_call *call, uint64_t seed) {
    if (fail_alloc_works) sweep(call, &memory, seed);
    if (call->flags & OOM_IO) sweep(call, &io, seed);
}
