/*
 * What the caller has set in MXCSR, or in FPCR and FPSR (AT21): every rounding mode, flush-to-zero
 * and denormals-are-zero, exceptions that trap, flags that are raised. Results have the same bits,
 * modes and flags come back as they were, and no upper half of a vector register is left in use; in
 * calls that succeed and in calls that are refused, on every instruction set, alone, with threads
 * and with a host's. qkv-check does the same for random problems.
 */
#include "attn/attention_job.h"

#include <math.h>
#include <pthread.h>

#include "check/check.h"
#include "check/host_state.h"
#include "fpmodes.h"

/* One of the calls. Between set and reset there is no arithmetic of the test's own. */
typedef qkv_status call(qkv_ctx *ctx, job *j);

static qkv_status do_job(qkv_ctx *ctx, job *j) { return job_do(ctx, j); }

static qkv_status ask_sizes(qkv_ctx *ctx, job *j) {
    size_t bytes;
    const qkv_status status = qkv_attention_workspace(ctx, &j->p.d, &bytes);
    return status == QKV_OK ? qkv_attention_backward_workspace(ctx, &j->p.d, &bytes) : status;
}

static qkv_status refused_call(qkv_ctx *ctx, job *j) {
    job bad = *j;
    bad.p.d.flags |= QKV_SET_SCALE;
    bad.p.d.scale = NAN;
    const qkv_status status = problem_call(ctx, &bad.p);
    return status == QKV_ERR_ARGUMENT ? QKV_OK : QKV_ERR_IO;
}

static qkv_status create_and_destroy(qkv_ctx *ctx, job *j) {
    qkv_ctx *other = NULL;
    (void)ctx, (void)j;
    const qkv_status status = qkv_ctx_create(NULL, &other, NULL);
    qkv_ctx_free(other);
    return status;
}

static void in_mode(qkv_ctx *ctx, job *j, call *function, int mode, const char *name) {
    const qkvi_fpstate before = qkvi_fpstate_get();
    __asm__ volatile("" ::: "memory");
    const qkvi_fpstate set = fpmode_set(mode);
    const qkv_status status = function(ctx, j);
    const qkvi_fpstate after = qkvi_fpstate_get();
    const bool dirty = upper_halves_in_use();
    qkvi_fpstate_set(before);
    __asm__ volatile("" ::: "memory");
    if (status != QKV_OK) fail_msg("%s on %s: %s", name, qkv_ctx_isa(ctx), qkv_ctx_message(ctx));
    if (after != set)
        fail_msg("%s on %s: the state was 0x%jx, is 0x%jx", name, qkv_ctx_isa(ctx), (uintmax_t)set,
                 (uintmax_t)after);
    if (dirty) fail_msg("%s on %s leaves upper halves in use", name, qkv_ctx_isa(ctx));
}

/* A host whose threads have modes of their own. */
typedef struct piece {
    void (*task)(void *, int);
    void *argument;
    int index;
    bool changed;
} piece;

static void *run_piece(void *argument) {
    piece *x = argument;
    const qkvi_fpstate set = fpmode_set(x->index);
    x->task(x->argument, x->index);
    x->changed = qkvi_fpstate_get() != set || upper_halves_in_use();
    return NULL;
}

static void host_with_modes(void *user, int n_tasks, void (*task)(void *, int), void *argument) {
    enum { MOST = 8 };
    pthread_t threads[MOST];
    piece pieces[MOST];
    for (int n = 0; n < n_tasks; n++) {
        pieces[n] = (piece){ task, argument, n, false };
        if (pthread_create(&threads[n], NULL, run_piece, &pieces[n]) != 0) abort();
    }
    for (int n = 0; n < n_tasks; n++) {
        pthread_join(threads[n], NULL);
        *(bool *)user |= pieces[n].changed;
    }
}

static void every_mode(qkv_ctx *ctx, const job *answer) {
    job j = job_new();
    for (int n = 0; n < FPMODES; n += UNDER_SANITIZER ? 5 : 1) {
        job_clear(&j);
        in_mode(ctx, &j, do_job, n, "a job");
        assert_true(job_same(&j, answer));
        in_mode(ctx, &j, ask_sizes, n, "workspace");
        in_mode(ctx, &j, refused_call, n, "a refused call");
        assert_true(job_same(&j, answer));
        in_mode(ctx, &j, create_and_destroy, n, "qkv_ctx_create");
    }
    job_free(&j);
}

static void AT21_any_mode_of_the_caller(void **state) {
    (void)state;
    job answer = job_answer();
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 4; threads += 3) {
            qkv_ctx *ctx = context_on(qkv_isa_name(n), threads);
            every_mode(ctx, &answer);
            qkv_ctx_free(ctx);
        }
    job_free(&answer);
}

static void AT21_any_mode_of_a_host(void **state) {
    (void)state;
    job answer = job_answer();
    for (int n = 0; qkv_isa_name(n); n++) {
        bool changed = false;
        qkv_ctx *ctx = NULL;
        qkv_ctx_options options = qkv_ctx_options_init();
        options.isa = qkv_isa_name(n);
        options.executor = (qkv_executor){ host_with_modes, 8, &changed };
        assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
        every_mode(ctx, &answer);
        assert_false(changed);
        qkv_ctx_free(ctx);
    }
    job_free(&answer);
}

/* Values that raise every exception, while all of them trap: no signal comes. */
static void AT21_exceptions_do_not_trap(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        job j = job_new();
        qkv_ctx *ctx = context_on(qkv_isa_name(n), 2);
        j.p.d.flags = QKV_SET_SOFTCAP; /* all keys visible */
        j.p.d.softcap = 1e-40f;
        j.p.q[0] = INFINITY, j.p.q[20] = NAN, j.p.k[5] = 3e38f, j.p.q[5] = 3e38f;
        j.p.v[7] = 1e-40f, j.p.d_o[3] = -INFINITY, j.p.k[40] = 1e-44f;
        in_mode(ctx, &j, do_job, 8, "a job");
        assert_true(isnan(j.p.o[16]) && !isnan(j.p.o[0])); /* row 1; a soft cap bounds row 0 */
        qkv_ctx_free(ctx);
        job_free(&j);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT21_any_mode_of_the_caller),
        cmocka_unit_test(AT21_any_mode_of_a_host),
        cmocka_unit_test(AT21_exceptions_do_not_trap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
