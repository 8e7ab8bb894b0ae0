/*
 * The calls of attention at their edges: empty shapes, the caller's workspace, cancelling, memory
 * that runs out, forks, small stacks. What they compute is tested by qkv-check, prop_attention and
 * golden_attention; more hostile arguments are in the tests hostile_attention_*.
 */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <qkv/columns.h>

#include "check/check.h"
#include "core/half.h"
#include "counting_allocator.h"

enum { B = 2, H = 4, G = 2, LQ = 33, LK = 300, D = 16, DV = 24 };

/* One problem of fixed size, large enough for two threads and two blocks of keys. */
typedef struct world {
    qkv_attention_desc d;
    qkv_attention_grads grads;
    float q[B * H * LQ * D], k[B * G * LK * D], v[B * G * LK * DV], d_o[B * H * LQ * DV];
    float o[B * H * LQ * DV], lse[B * H * LQ];
    float d_q[B * H * LQ * D], d_k[B * G * LK * D], d_v[B * G * LK * DV];
} world;

static qkv_ctx *context_with(const qkv_allocator *allocator, int n_threads) {
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.n_threads = n_threads;
    if (allocator) options.allocator = *allocator;
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    return ctx;
}
static qkv_ctx *context(int n_threads) { return context_with(NULL, n_threads); }

static void fill(rng *r, float *x, size_t bytes) {
    for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = rng_normal(r);
}

static void point_grads(world *w) {
    qkv_attention_grads_contiguous(&w->grads, &w->d);
    w->grads.d_o = w->d_o;
    w->grads.d_q = w->d_q;
    w->grads.d_k = w->d_k;
    w->grads.d_v = w->d_v;
}

static world *world_new(void) {
    world *w = calloc(1, sizeof *w);
    rng r = { 5 };
    assert_non_null(w);
    qkv_attention_desc_contiguous(&w->d, B, H, G, LQ, LK, D, DV);
    fill(&r, w->q, sizeof w->q);
    fill(&r, w->k, sizeof w->k);
    fill(&r, w->v, sizeof w->v);
    fill(&r, w->d_o, sizeof w->d_o);
    point_grads(w);
    return w;
}

static qkv_status forward(qkv_ctx *ctx, world *w, const qkv_call_options *call) {
    return qkv_attention_forward(ctx, &w->d, w->q, w->k, w->v, w->o, w->lse, call);
}
static qkv_status backward(qkv_ctx *ctx, world *w, const qkv_call_options *call) {
    return qkv_attention_backward(ctx, &w->d, w->q, w->k, w->v, w->o, w->lse, &w->grads, call);
}

/* The world as it is after both calls, from one thread. */
static world *answer_of(const world *w) {
    world *a = malloc(sizeof *a);
    qkv_ctx *ctx = context(1);
    assert_non_null(a);
    memcpy(a, w, sizeof *a);
    point_grads(a);
    assert_int_equal(forward(ctx, a, NULL), QKV_OK);
    assert_int_equal(backward(ctx, a, NULL), QKV_OK);
    qkv_ctx_free(ctx);
    return a;
}

static bool same_outputs(const world *x, const world *y) {
    return memcmp(x->o, y->o, sizeof *x - offsetof(world, o)) == 0;
}

/* ---- Shapes without elements ----------------------------------------------------------------- */

static void AT02_no_keys(void **state) {
    (void)state;
    world *w = world_new();
    qkv_ctx *ctx = context(2);
    w->d.len_k = 0;
    memset(w->o, 0xFF, sizeof w->o);
    memset(w->d_q, 0xFF, sizeof w->d_q);
    assert_int_equal(qkv_attention_forward(ctx, &w->d, w->q, NULL, NULL, w->o, w->lse, NULL),
                     QKV_OK);
    w->grads.d_k = w->grads.d_v = NULL;
    assert_int_equal(
        qkv_attention_backward(ctx, &w->d, w->q, NULL, NULL, w->o, w->lse, &w->grads, NULL),
        QKV_OK);
    for (int i = 0; i < B * H * LQ * DV; i++) assert_true(w->o[i] == 0);
    for (int i = 0; i < B * H * LQ; i++) assert_true(w->lse[i] == -INFINITY);
    for (int i = 0; i < B * H * LQ * D; i++) assert_true(w->d_q[i] == 0);
    qkv_ctx_free(ctx);
    free(w);
}

static void AT02_no_channels_means_equal_scores(void **state) {
    (void)state;
    world *w = world_new();
    qkv_ctx *ctx = context(2);
    w->d.head_dim = 0;
    w->grads.d_q = w->grads.d_k = NULL;
    assert_int_equal(qkv_attention_forward(ctx, &w->d, NULL, NULL, w->v, w->o, w->lse, NULL),
                     QKV_OK);
    assert_int_equal(
        qkv_attention_backward(ctx, &w->d, NULL, NULL, w->v, w->o, w->lse, &w->grads, NULL),
        QKV_OK);
    for (int i = 0; i < B * H * LQ; i++) assert_true(fabs((double)w->lse[i] - log(LK)) < 1e-6);
    qkv_ctx_free(ctx);
    free(w);
}

static void AT02_nothing_to_do(void **state) {
    (void)state;
    for (int which = 0; which < 4; which++) {
        world *w = world_new();
        qkv_ctx *ctx = context(2);
        if (which == 0) w->d.n_batch = 0;
        if (which == 1) w->d.n_heads = w->d.n_kv_heads = 0;
        if (which == 2) w->d.len_q = 0;
        if (which == 3) w->d.n_heads = 0; /* keys that no head asks for */
        memset(w->o, 0xA5, sizeof w->o);
        memset(w->d_k, 0xA5, sizeof w->d_k);
        assert_int_equal(forward(ctx, w, NULL), QKV_OK);
        assert_int_equal(backward(ctx, w, NULL), QKV_OK);
        assert_int_equal(((unsigned char *)w->o)[0], 0xA5);
        if (which >= 2)
            for (int i = 0; i < B * G * LK * D; i++) assert_true(w->d_k[i] == 0);
        size_t bytes;
        assert_int_equal(qkv_attention_workspace(ctx, &w->d, &bytes), QKV_OK);
        assert_int_equal(qkv_attention_backward_workspace(ctx, &w->d, &bytes), QKV_OK);
        qkv_ctx_free(ctx);
        free(w);
    }
}

/* ---- Masks at their edges -------------------------------------------------------------------- */

static void AT12a_any_byte_but_zero_sees(void **state) {
    (void)state;
    unsigned char ones[LK], others[LK];
    world *w = world_new(), *a;
    for (int j = 0; j < LK; j++) {
        ones[j] = j % 3 != 0;
        others[j] = (unsigned char)(j % 3 ? 1 + j % 255 : 0);
    }
    w->d.flags = QKV_SET_MASK;
    w->d.mask_type = QKV_MASK_BOOL;
    w->d.mask_stride[3] = 1;
    w->d.mask = ones;
    a = answer_of(w);
    w->d.mask = others;
    world *b = answer_of(w);
    assert_true(same_outputs(a, b));
    free(a);
    free(b);
    free(w);
}

/*
 * Finite values, also -FLT_MAX, are numbers; +inf and NaN make the row NaN; -inf everywhere empties
 * it.
 */
static void AT12b_extreme_masks(void **state) {
    (void)state;
    static float mask[LQ * LK];
    world *w = world_new();
    for (int j = 0; j < LQ * LK; j++) mask[j] = 0;
    for (int j = 0; j < LK; j++) {
        mask[0 * LK + j] = -FLT_MAX;
        mask[1 * LK + j] = j == 7 ? INFINITY : 0;
        mask[2 * LK + j] = j == 7 ? NAN : 0;
        mask[3 * LK + j] = -INFINITY;
        mask[4 * LK + j] = j % 2 ? -FLT_MAX : 0;
    }
    w->d.flags = QKV_SET_MASK;
    w->d.mask_type = QKV_MASK_F32;
    w->d.mask = mask;
    w->d.mask_stride[2] = LK;
    w->d.mask_stride[3] = 1;
    world *a = answer_of(w);
    for (int c = 0; c < DV; c++) {
        assert_true(isfinite(a->o[c]));
        assert_true(isnan(a->o[DV + c]) && isnan(a->o[2 * DV + c]));
        assert_true(a->o[3 * DV + c] == 0);
        assert_true(isfinite(a->o[4 * DV + c]) && isfinite(a->o[5 * DV + c]));
    }
    assert_true(isfinite(a->lse[0]) && a->lse[0] < -3e38f);
    assert_true(isnan(a->lse[1]) && isnan(a->lse[2]));
    assert_true(a->lse[3] == -INFINITY && isfinite(a->lse[4]));
    for (int c = 0; c < D; c++) assert_true(isfinite(a->d_q[c]) && a->d_q[3 * D + c] == 0);
    free(a);
    free(w);
}

/*
 * A visible key is not hidden because its score overflows: -inf beside numbers has weight 0, alone
 * it is NaN; +inf is NaN.
 */
static void AT14_overflowing_scores(void **state) {
    (void)state;
    world *w = world_new();
    w->d.flags = QKV_SET_SCALE | QKV_SET_CAUSAL;
    w->d.scale = 1;
    for (int c = 0; c < D; c++) {
        w->k[c] = -3e20f;              /* key 0, seen by all rows of heads 0 and 1 */
        w->q[c] = w->q[D + c] = 3e20f; /* row 0 sees only it, row 1 also key 1 */
        w->q[LQ * D + c] = -3e20f;     /* row 0 of head 1 */
        w->k[D + c] = 0;
    }
    world *a = answer_of(w);
    assert_true(isnan(a->lse[0]) && isnan(a->o[0]) && isnan(a->d_q[0]));
    assert_true(a->lse[1] == 0);
    assert_memory_equal(a->o + DV, w->v + DV, DV * sizeof(float)); /* the value of key 1 */
    assert_true(isnan(a->lse[LQ]) && isnan(a->o[LQ * DV]));
    assert_true(isfinite(a->lse[2 * LQ]) && isfinite(a->o[2 * LQ * DV]));
    free(a);
    free(w);
}

static void AT16_windows_wider_than_the_keys(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w), *b;
    w->d.flags = QKV_SET_WINDOW;
    w->d.window_left = LQ;
    w->d.window_right = INT64_MAX;
    b = answer_of(w);
    assert_true(same_outputs(a, b));
    free(a);
    free(b);
    free(w);
}

/* ---- The workspace --------------------------------------------------------------------------- */

static void AT18_workspace_of_the_caller(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w);
    qkv_ctx *ctx = context(3);
    size_t bytes[2];
    assert_int_equal(qkv_attention_workspace(ctx, &w->d, &bytes[0]), QKV_OK);
    assert_int_equal(qkv_attention_backward_workspace(ctx, &w->d, &bytes[1]), QKV_OK);
    for (int n = 0; n < 2; n++) {
        qkv_status (*const call)(qkv_ctx *, world *, const qkv_call_options *) =
            n ? backward : forward;
        guarded g = guarded_new((bytes[n] + 4095) / 4096 * 4096, true);
        qkv_call_options options = qkv_call_options_init();
        options.workspace = g.data;
        options.workspace_bytes = bytes[n] - 1;
        assert_int_equal(call(ctx, w, &options), QKV_ERR_ARGUMENT);
        options.workspace_bytes = g.bytes;
        options.workspace = (char *)g.data + 32;
        assert_int_equal(call(ctx, w, &options), QKV_ERR_ARGUMENT);
        assert_true(w->o[0] == (n ? a->o[0] : 0)); /* untouched */
        options.workspace = g.data;
        options.workspace_bytes = bytes[n];
        assert_int_equal(call(ctx, w, &options), QKV_OK);
        assert_true(guarded_intact(&g));
        guarded_free(&g);
    }
    assert_true(same_outputs(w, a));
    w->d.n_kv_heads = 3; /* a query says what the call would */
    assert_int_equal(qkv_attention_workspace(ctx, &w->d, &bytes[0]), QKV_ERR_SHAPE);
    assert_int_equal(qkv_attention_backward_workspace(ctx, &w->d, &bytes[0]), QKV_ERR_SHAPE);
    qkv_ctx_free(ctx);
    free(a);
    free(w);
}

/* Sizes beside a 0 that no loop would get through: what has nothing to write ends at once. */
static void nothing_to_write_takes_no_time(void **state) {
    (void)state;
    static const int64_t sizes[][7] = { { 1, 0, (int64_t)1 << 40, 7, 19, 0, 0 },
                                        { 1, 0, (int64_t)1 << 40, 7, 0, 8, 8 },
                                        { 1, (int64_t)1 << 40, 4, 1, 1, 0, 0 },
                                        { 4, 4, 4, (int64_t)1 << 40, 1, 0, 0 } };
    qkv_ctx *ctx = context(2);
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        const int64_t *const size = sizes[n];
        const float lse = 0;
        const void *const o_parts[] = { NULL };
        const float *const lse_parts[] = { &lse };
        qkv_attention_desc d;
        qkv_attention_grads grads;
        qkv_attention_desc_contiguous(&d, size[0], size[1], size[2], size[3], size[4], size[5],
                                      size[6]);
        memset(d.lse_stride, 0, sizeof d.lse_stride);
        qkv_attention_grads_contiguous(&grads, &d);
        assert_int_equal(qkv_attention_forward(ctx, &d, NULL, NULL, NULL, NULL, NULL, NULL),
                         QKV_OK);
        assert_int_equal(
            qkv_attention_backward(ctx, &d, NULL, NULL, NULL, NULL, &lse, &grads, NULL), QKV_OK);
        assert_int_equal(qkv_attention_merge(ctx, &d, 1, o_parts, lse_parts, NULL, NULL), QKV_OK);
    }
    qkv_ctx_free(ctx);
}

/* The same for the gradient of sinks: a sum over 2^40 batches without a query is 0 at once. */
static void sinks_without_queries_take_no_time(void **state) {
    (void)state;
    const float sink = 1;
    float d_sink = 7;
    qkv_ctx *ctx = context(1);
    qkv_attention_desc d;
    qkv_attention_grads grads;
    qkv_attention_desc_contiguous(&d, (int64_t)1 << 40, 1, 1, 0, 0, 8, 8);
    qkv_attention_grads_contiguous(&grads, &d);
    d.flags = QKV_SET_SINKS;
    d.sinks = &sink;
    grads.d_sinks = &d_sink;
    assert_int_equal(qkv_attention_backward(ctx, &d, NULL, NULL, NULL, NULL, NULL, &grads, NULL),
                     QKV_OK);
    assert_true(d_sink == 0);
    qkv_ctx_free(ctx);
}

static void nothing_is_allocated_once_warm(void **state) {
    (void)state;
    counting_allocator count = { 0 };
    const qkv_allocator allocator = counting_allocator_of(&count);
    world *w = world_new();
    qkv_ctx *ctx = context_with(&allocator, 2);
    for (int n = 0; n < 2; n++) {
        assert_int_equal(forward(ctx, w, NULL), QKV_OK);
        assert_int_equal(backward(ctx, w, NULL), QKV_OK);
    }
    const int64_t before = count.n_calls;
    assert_int_equal(forward(ctx, w, NULL), QKV_OK);
    assert_int_equal(backward(ctx, w, NULL), QKV_OK);
    assert_int_equal(count.n_calls, before);
    qkv_ctx_free(ctx);
    assert_int_equal(count.n_alive, 0);
    free(w);
}

/* Every allocation fails once; the context stays usable, and nothing leaks. */
static void AT24_the_nth_allocation_fails(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w);
    bool failed = true;
    for (long n = 1; failed; n++) {
        counting_allocator count = { .fail_at = n };
        qkv_ctx_options options = qkv_ctx_options_init();
        qkv_ctx *ctx = NULL;
        options.n_threads = 2;
        options.allocator = counting_allocator_of(&count);
        qkv_status status = qkv_ctx_create(&options, &ctx, NULL);
        if (status == QKV_OK) status = forward(ctx, w, NULL);
        if (status == QKV_OK) status = backward(ctx, w, NULL);
        failed = count.n_calls >= n;
        /* a thread that cannot be made is one thread less, not an error */
        assert_true(status == QKV_OK || (failed && status == QKV_ERR_MEMORY));
        if (ctx && status != QKV_OK) {
            assert_int_equal(forward(ctx, w, NULL), QKV_OK);
            assert_int_equal(backward(ctx, w, NULL), QKV_OK);
        }
        if (ctx) assert_true(same_outputs(w, a));
        qkv_ctx_free(ctx);
        assert_int_equal(count.n_alive, 0);
        assert_true(n < 100);
    }
    free(a);
    free(w);
}

/* ---- Cancelling and progress ----------------------------------------------------------------- */

typedef struct watch {
    qkv_ctx *ctx;
    world *w;
    pthread_t caller;
    int64_t last, total, n_calls;
    qkv_status nested;
    int stop;
} watch;

static void note_progress(void *user, int64_t done, int64_t total) {
    watch *x = user;
    assert_true(pthread_equal(pthread_self(), x->caller));
    assert_true(done > x->last && done <= total);
    x->last = done;
    x->total = total;
    x->n_calls++;
    x->nested = forward(x->ctx, x->w, NULL); /* the context is taken */
    x->stop = 1;
}

static void AT22_progress_and_cancel(void **state) {
    (void)state;
    world *w = world_new();
    for (int n = 0; n < 2; n++) {
        qkv_status (*const call)(qkv_ctx *, world *, const qkv_call_options *) =
            n ? backward : forward;
        qkv_ctx *ctx = context(1);
        qkv_call_options options = qkv_call_options_init();
        watch x = { .ctx = ctx, .w = w, .caller = pthread_self() };
        options.progress = note_progress;
        options.progress_user = &x;
        assert_int_equal(call(ctx, w, &options), QKV_OK);
        assert_true(x.n_calls > 1 && x.last == x.total);
        assert_int_equal(x.nested, QKV_ERR_BUSY);
        x = (watch){ .ctx = ctx, .w = w, .caller = pthread_self() };
        options.cancel = &x.stop; /* raised by the first report */
        assert_int_equal(call(ctx, w, &options), QKV_ERR_CANCELLED);
        assert_int_equal(x.n_calls, 1);
        assert_string_equal(qkv_ctx_message(ctx), "cancelled by the caller's flag");
        assert_int_equal(call(ctx, w, NULL), QKV_OK);
        options.struct_size = 8;
        assert_int_equal(call(ctx, w, &options), QKV_ERR_ARGUMENT);
        qkv_ctx_free(ctx);
    }
    free(w);
}

static void *raise_soon(void *argument) {
    usleep(2000);
    __atomic_store_n((int *)argument, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* ThreadSanitizer sees whether the flag is read as it is written. */
static void AT22_cancelled_from_another_thread(void **state) {
    (void)state;
    world *w = world_new();
    qkv_ctx *ctx = context(2);
    qkv_call_options options = qkv_call_options_init();
    qkv_status status;
    pthread_t other;
    int raised = 0;
    options.cancel = &raised;
    assert_int_equal(pthread_create(&other, NULL, raise_soon, &raised), 0);
    while ((status = forward(ctx, w, &options)) == QKV_OK) {
    }
    assert_int_equal(status, QKV_ERR_CANCELLED);
    pthread_join(other, NULL);
    qkv_ctx_free(ctx);
    free(w);
}

static void AT01_lse_may_be_null(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w);
    qkv_ctx *ctx = context(2);
    assert_int_equal(qkv_attention_forward(ctx, &w->d, w->q, w->k, w->v, w->o, NULL, NULL), QKV_OK);
    assert_memory_equal(w->o, a->o, sizeof w->o);
    assert_int_equal(
        qkv_attention_backward(ctx, &w->d, w->q, w->k, w->v, w->o, NULL, &w->grads, NULL),
        QKV_ERR_ARGUMENT);
    assert_string_equal(qkv_ctx_message(ctx), "lse is NULL, but has the shape [2][4][33][1]");
    qkv_ctx_free(ctx);
    free(a);
    free(w);
}

/* ---- Processes, threads and stacks ----------------------------------------------------------- */

/* The child of a fork uses the parent's context, whose threads it does not have. */
static void AT22_after_a_fork(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w);
    qkv_ctx *ctx = context(3);
    assert_int_equal(forward(ctx, w, NULL), QKV_OK);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const bool ok = forward(ctx, w, NULL) == QKV_OK && backward(ctx, w, NULL) == QKV_OK;
        _exit(ok && same_outputs(w, a) ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(backward(ctx, w, NULL), QKV_OK);
    assert_true(same_outputs(w, a));
    qkv_ctx_free(ctx);
    free(a);
    free(w);
}

static void *run_both(void *argument) {
    world *w = argument;
    qkv_ctx *ctx = context(2);
    const bool ok = forward(ctx, w, NULL) == QKV_OK && backward(ctx, w, NULL) == QKV_OK;
    qkv_ctx_free(ctx);
    return ok ? w : NULL;
}

static void AT22_many_callers_with_small_stacks(void **state) {
    (void)state;
    enum { CALLERS = 4 };
    pthread_t threads[CALLERS];
    world *w[CALLERS];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 64 * 1024), 0);
    for (int n = 0; n < CALLERS; n++) w[n] = world_new();
    world *const a = answer_of(w[0]); /* copied before any call writes */
    for (int n = 0; n < CALLERS; n++)
        assert_int_equal(pthread_create(&threads[n], &attributes, run_both, w[n]), 0);
    for (int n = 0; n < CALLERS; n++) {
        void *result;
        assert_int_equal(pthread_join(threads[n], &result), 0);
        assert_ptr_equal(result, w[n]);
        assert_true(same_outputs(w[n], a));
        free(w[n]);
    }
    pthread_attr_destroy(&attributes);
    free(a);
}

/* A host whose tasks run one after the other, on the caller. */
static void one_by_one(void *user, int n_tasks, void (*task)(void *, int), void *argument) {
    (void)user;
    for (int n = n_tasks - 1; n >= 0; n--) task(argument, n);
}

static void AT22_a_host_without_threads(void **state) {
    (void)state;
    world *w = world_new(), *a = answer_of(w);
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.executor = (qkv_executor){ one_by_one, 5, NULL };
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    assert_int_equal(forward(ctx, w, NULL), QKV_OK);
    assert_int_equal(backward(ctx, w, NULL), QKV_OK);
    assert_true(same_outputs(w, a));
    qkv_ctx_free(ctx);
    free(a);
    free(w);
}

/* ---- Where queries lie ----------------------------------------------------------------------- */

enum { FAR = 2048 }; /* elements: 8 or 4 KiB from a token to the next */

/* The bits of rows side by side, for each class, also of weights by column. */
static void far_queries_have_the_same_bits(void **state) {
    (void)state;
    static uint16_t half_q[B * H * LQ * D], half_k[B * G * LK * D], half_v[B * G * LK * DV];
    static float far_q[B * LQ * FAR], o[2][B * H * LQ * DV], lse[2][B * H * LQ];
    static float received[2][B * H * LK];
    static uint16_t far_half[B * LQ * FAR];
    static const qkv_class classes[] = { QKV_CLASS_F32, QKV_CLASS_F32, QKV_CLASS_DP,
                                         QKV_CLASS_AMX };
    world *const w = world_new();
    qkv_ctx *const ctx = context(2);
    for (int i = 0; i < B * H * LQ * D; i++) half_q[i] = qkvi_bf16_of_f32(w->q[i]);
    for (int i = 0; i < B * G * LK * D; i++) half_k[i] = qkvi_bf16_of_f32(w->k[i]);
    for (int i = 0; i < B * G * LK * DV; i++) half_v[i] = qkvi_bf16_of_f32(w->v[i]);
    for (int b = 0; b < B; b++)
        for (int h = 0; h < H; h++)
            for (int i = 0; i < LQ; i++) {
                const int near = ((b * H + h) * LQ + i) * D, far = (b * LQ + i) * FAR + h * D;
                memcpy(far_q + far, w->q + near, D * sizeof *far_q);
                memcpy(far_half + far, half_q + near, D * sizeof *far_half);
            }
    for (int c = 0; c < 4; c++) {
        const bool half = c > 0;
        const void *const q[] = { half ? (void *)half_q : w->q, half ? (void *)far_half : far_q };
        const void *const k = half ? (void *)half_k : w->k, *const v = half ? (void *)half_v : w->v;
        for (int far = 0; far < 2; far++) {
            qkv_attention_desc d = w->d;
            d.dtype = half ? QKV_BF16 : QKV_F32;
            d.o_dtype = QKV_F32;
            d.flags |= QKV_SET_O_DTYPE;
            d.arithmetic = classes[c];
            if (far) d.q_stride[0] = LQ * FAR, d.q_stride[1] = D, d.q_stride[2] = FAR;
            assert_int_equal(qkv_attention_forward(ctx, &d, q[far], k, v, o[far], lse[far], NULL),
                             QKV_OK);
            qkv_attention_columns want;
            qkv_attention_columns_contiguous(&want, &d);
            want.received = received[far];
            assert_int_equal(qkv_attention_columns_pass(ctx, &d, q[far], k, lse[far], &want, NULL),
                             QKV_OK);
        }
        assert_memory_equal(o[0], o[1], sizeof o[0]);
        assert_memory_equal(lse[0], lse[1], sizeof lse[0]);
        assert_memory_equal(received[0], received[1], sizeof received[0]);
    }
    qkv_ctx_free(ctx);
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT02_no_keys),
        cmocka_unit_test(AT02_no_channels_means_equal_scores),
        cmocka_unit_test(AT02_nothing_to_do),
        cmocka_unit_test(AT12a_any_byte_but_zero_sees),
        cmocka_unit_test(AT12b_extreme_masks),
        cmocka_unit_test(AT14_overflowing_scores),
        cmocka_unit_test(AT16_windows_wider_than_the_keys),
        cmocka_unit_test(AT18_workspace_of_the_caller),
        cmocka_unit_test(nothing_to_write_takes_no_time),
        cmocka_unit_test(sinks_without_queries_take_no_time),
        cmocka_unit_test(nothing_is_allocated_once_warm),
        cmocka_unit_test(AT24_the_nth_allocation_fails),
        cmocka_unit_test(AT22_progress_and_cancel),
        cmocka_unit_test(AT22_cancelled_from_another_thread),
        cmocka_unit_test(AT01_lse_may_be_null),
        cmocka_unit_test(AT22_after_a_fork),
        cmocka_unit_test(AT22_many_callers_with_small_stacks),
        cmocka_unit_test(AT22_a_host_without_threads),
        cmocka_unit_test(far_queries_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
