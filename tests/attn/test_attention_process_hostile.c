/*
 * Calls around fork and exit (AT22), and how many threads a process gets by default (AT25). A plain
 * fork between two calls is in tests/attn/test_attention.c, the pool alone in
 * test_core_pool.c, the files of control groups in test_core_cpu.c.
 */
#include "attn/attention_answer.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limits/temporary.h"
#include "sanitizers.h"

static bool exits_with_0(pid_t child) {
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
           WEXITSTATUS(status) == 0;
}

/* ---- Fork ------------------------------------------------------------------------------------ */

/* Another thread that is inside a call for as long as it is told. */
typedef struct holder {
    qkv_ctx *ctx;
    atomic_bool inside, leave;
    bool right;
} holder;

static void hold(void *user, int64_t done, int64_t total) {
    holder *x = user;
    (void)done, (void)total;
    atomic_store(&x->inside, true);
    while (!atomic_load(&x->leave)) usleep(100);
}

static void *call_and_hold(void *argument) {
    holder *x = argument;
    job j = job_new();
    qkv_call_options call = qkv_call_options_init();
    call.progress = hold;
    call.progress_user = x;
    x->right =
        qkv_attention_forward(x->ctx, &j.p.d, j.p.q, j.p.k, j.p.v, j.p.o, j.p.lse, &call) == QKV_OK;
    atomic_store(&x->inside, true);
    job_free(&j);
    return NULL;
}

/*
 * In the child of a fork while `busy` was inside a call: that context says so for ever, others that
 * share its pool work, with threads of the child's own, and all can be destroyed.
 */
_Noreturn static void check_in_child(qkv_ctx *busy, qkv_ctx *sharer) {
    size_t bytes;
    bool right = qkv_attention_workspace(busy, &answer.p.d, &bytes) == QKV_ERR_BUSY;
    right = right && job_right(sharer, &answer) && job_right(sharer, &answer);
    const pid_t grandchild = fork();
    if (grandchild == 0) _exit(job_right(sharer, &answer) ? 0 : 1);
    right = right && exits_with_0(grandchild) && job_right(sharer, &answer);
    qkv_ctx_free(busy);
    qkv_ctx_free(sharer);
    _exit(right ? 0 : 1);
}

static void AT22_fork_while_another_thread_is_inside(void **state) {
    (void)state;
    if (UNDER_TSAN) skip(); /* it dies of threads in such a child: "dup thread with used id" */
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 3; threads++) {
            holder x = { .ctx = context_on(qkv_isa_name(n), threads) };
            qkv_ctx *sharer = context_sharing(NULL, x.ctx);
            pthread_t thread;
            /* A beginning thread holds locks of AddressSanitizer, which a child would inherit. */
            if (UNDER_SANITIZER) assert_true(job_right(x.ctx, &answer));
            assert_int_equal(pthread_create(&thread, NULL, call_and_hold, &x), 0);
            while (!atomic_load(&x.inside)) usleep(100);
            size_t bytes;
            const bool held = qkv_attention_workspace(x.ctx, &answer.p.d, &bytes) == QKV_ERR_BUSY;
            const pid_t child = held ? fork() : -1;
            if (child == 0) check_in_child(x.ctx, sharer);
            atomic_store(&x.leave, true);
            pthread_join(thread, NULL);
            /* with several threads the caller's may get no piece, and so no report to wait in */
            if (held) assert_true(exits_with_0(child));
            assert_true(x.right && (held || threads > 1));
            assert_true(job_right(sharer, &answer) && job_right(x.ctx, &answer));
            qkv_ctx_free(sharer);
            qkv_ctx_free(x.ctx);
        }
}

/* A fork from inside a report of the call itself. */
typedef struct forker {
    qkv_ctx *own, *sharer;
    int n_calls, n_right;
} forker;

static void fork_in_report(void *user, int64_t done, int64_t total) {
    forker *x = user;
    (void)done, (void)total;
    if (x->n_calls++ > 0) return;
    const pid_t child = fork();
    if (child == 0) check_in_child(x->own, x->sharer);
    x->n_right += exits_with_0(child);
}

static void AT22_fork_from_a_progress_report(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        forker x = { .own = context_on(qkv_isa_name(n), 1) };
        qkv_call_options call = qkv_call_options_init();
        job j = job_new();
        const problem *p = &j.p;
        x.sharer = context_sharing(NULL, x.own);
        call.progress = fork_in_report;
        call.progress_user = &x;
        assert_int_equal(qkv_attention_forward(x.own, &p->d, p->q, p->k, p->v, p->o, p->lse, &call),
                         QKV_OK);
        assert_memory_equal(p->o, answer.p.o, (size_t)n_o(p) * sizeof(float));
        assert_int_equal(x.n_right, 1);
        qkv_ctx_free(x.sharer);
        qkv_ctx_free(x.own);
        job_free(&j);
    }
}

static void AT22_children_of_children(void **state) {
    (void)state;
    enum { DEPTH = 4 };
    qkv_ctx *ctx = context_on(NULL, 3);
    assert_true(job_right(ctx, &answer));
    const pid_t first = fork();
    if (first == 0) {
        for (int depth = 1;; depth++) {
            const bool right = job_right(ctx, &answer);
            const pid_t next = right && depth < DEPTH ? fork() : -1;
            if (next != 0) _exit(right && (depth == DEPTH || exits_with_0(next)) ? 0 : 1);
        }
    }
    assert_true(exits_with_0(first));
    qkv_ctx_free(ctx);
}

/* ---- Exit handlers --------------------------------------------------------------------------- */

static qkv_ctx *kept; /* what the handlers use */
static const char *isa;

static void call_at_exit(void) {
    qkv_ctx *made = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = 3;
    bool right = job_right(kept, &answer); /* with the threads that it has, or starts now */
    right = right && qkv_ctx_create(&options, &made, NULL) == QKV_OK && job_right(made, &answer);
    qkv_ctx_free(made);
    qkv_ctx_free(kept);
    _exit(right ? 0 : 1); /* exit would go on, and say 0 */
}

static void *exit_from_here(void *unused) {
    (void)unused;
    exit(2);
}

/* how: 0 exit with the pool not started, 1 with its threads, 2 from another thread */
static void AT22_calls_in_exit_handlers(void **state) {
    (void)state;
    if (UNDER_TSAN) skip(); /* the handlers run in a child, and it dies of threads in one */
    for (int n = 0; (isa = qkv_isa_name(n)); n++)
        for (int how = 0; how < 3; how++) {
            fflush(NULL);
            const pid_t child = fork();
            if (child == 0) {
                pthread_t thread;
                kept = context_on(isa, 3);
                if (how > 0 && !job_right(kept, &answer)) _exit(3);
                atexit(call_at_exit);
                if (how < 2) exit(2);
                pthread_create(&thread, NULL, exit_from_here, NULL);
                pthread_join(thread, NULL);
            }
            assert_true(exits_with_0(child));
        }
}

/* The process ends while another thread is inside a call, and while the pool's threads wait. */
static void AT22_exit_while_another_thread_is_inside(void **state) {
    (void)state;
    for (int n = 0; (isa = qkv_isa_name(n)); n++) {
        fflush(NULL);
        const pid_t child = fork();
        if (child == 0) {
            static holder x;
            pthread_t thread;
            x.ctx = context_on(isa, 1);
            qkv_ctx *other = context_on(isa, 3);
            if (!job_right(other, &answer)) _exit(3);
            if (pthread_create(&thread, NULL, call_and_hold, &x) != 0) _exit(4);
            while (!atomic_load(&x.inside)) usleep(100);
            _exit(0);
        }
        assert_true(exits_with_0(child));
    }
}

/* ---- AT25: how many threads by default ------------------------------------------------------- */

/* Files below /proc and /sys are those of a folder, where it has them. */
static char folder[TEMPORARY_PATH];

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *how) {
    FILE *(*real)(const char *, const char *);
    char instead[4096];
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    const bool system_file = strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0;
    if (!folder[0] || !system_file) return real(path, how);
    snprintf(instead, sizeof instead, "%s%s", folder, path);
    return real(instead, how);
}

static void put(const char *path, const char *text) {
    char full[2048];
    snprintf(full, sizeof full, "%s%s", folder, path);
    for (char *slash = full + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int default_threads(void) {
    qkv_ctx *ctx = context_on(NULL, 0);
    const int n_threads = qkv_ctx_threads(ctx);
    assert_true(job_right(ctx, &answer));
    qkv_ctx_free(ctx);
    return n_threads;
}

static void AT25_one_processor_by_affinity(void **state) {
    (void)state;
    cpu_set_t before, one;
    unsetenv("QKV_NUM_THREADS");
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &before)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(default_threads(), 1);
        qkv_ctx *ctx = context_on(NULL, 4); /* who asks for more gets it, and the same bits */
        assert_int_equal(qkv_ctx_threads(ctx), 4);
        assert_true(job_right(ctx, &answer));
        qkv_ctx_free(ctx);
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(temporary("qkv-cgroup", folder)) ? 0 : -1;
}

static int remove_folder(void **state) {
    char command[TEMPORARY_PATH + 20];
    (void)state;
    snprintf(command, sizeof command, "rm -r '%s'", folder);
    folder[0] = 0;
    return system(command);
}

/* A quota that is smaller than the affinity mask decides; a larger one, or rubbish, does not. */
static void AT25_quotas_of_control_groups(void **state) {
    (void)state;
    unsetenv("QKV_NUM_THREADS");
    const int without = default_threads(); /* the folder is empty */
    assert_true(without >= 1);
    put("/proc/self/cgroup", "0::/job\n");
    put("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    assert_int_equal(default_threads(), 1);
    put("/sys/fs/cgroup/job/cpu.max", "12345600000 100000\n");
    assert_int_equal(default_threads(), without);
    static const char *const rubbish[] = {
        "",    "\n",      "max", "max 100000\n", "-5 100", "100000 0",
        "a b", "1e9 1e9", "0 0", "100000 -1",    "\xff",   "99999999999999999999 1"
    };
    for (size_t n = 0; n < sizeof rubbish / sizeof *rubbish; n++) {
        put("/sys/fs/cgroup/job/cpu.max", rubbish[n]);
        assert_int_equal(default_threads(), without);
    }
    put("/proc/self/cgroup", "4:cpu,cpuacct:/job\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(default_threads(), 1);
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
    assert_int_equal(default_threads(), without);
}

static void AT25_the_environment_comes_first(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    setenv("QKV_NUM_THREADS", "3", 1);
    assert_int_equal(default_threads(), 3);
    unsetenv("QKV_NUM_THREADS");
    assert_int_equal(default_threads(), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT22_fork_while_another_thread_is_inside),
        cmocka_unit_test(AT22_fork_from_a_progress_report),
        cmocka_unit_test(AT22_children_of_children),
        cmocka_unit_test(AT22_calls_in_exit_handlers),
        cmocka_unit_test(AT22_exit_while_another_thread_is_inside),
        cmocka_unit_test(AT25_one_processor_by_affinity),
        cmocka_unit_test_setup_teardown(AT25_quotas_of_control_groups, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(AT25_the_environment_comes_first, make_folder,
                                        remove_folder),
    };
    return cmocka_run_group_tests(tests, make_answer, free_answer);
}
