/*
 * The steady state allocates nothing: after the first time, 100 calls of forward, backward and
 * merge never call the context's allocator, nor malloc, calloc and so on, which this program
 * replaces, on any thread. With a workspace of the caller and no threads to start, not even the
 * first call does. Under AddressSanitizer, which has its own malloc, only the allocator is counted.
 */
#include "attn/attention_job.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/half.h"
#include "counting_allocator.h"

static atomic_long n_mallocs; /* calls of malloc and its sisters, on all threads */

#if defined(__GLIBC__) && !UNDER_SANITIZER
enum { MALLOC_IS_OURS = 1 };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static void *counted(void *pointer) {
    atomic_fetch_add(&n_mallocs, 1);
    return pointer;
}

#pragma GCC visibility push(default) /* the C library must see them */
void *malloc(size_t bytes) { return counted(__libc_malloc(bytes)); }
void *calloc(size_t n, size_t bytes) { return counted(__libc_calloc(n, bytes)); }
void *realloc(void *pointer, size_t bytes) { return counted(__libc_realloc(pointer, bytes)); }
void *aligned_alloc(size_t alignment, size_t bytes) {
    return counted(__libc_memalign(alignment, bytes));
}
void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes) {
    return counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void **pointer, size_t alignment, size_t bytes) {
    *pointer = counted(__libc_memalign(alignment, bytes));
    return *pointer ? 0 : ENOMEM;
}
#pragma GCC visibility pop
#else
enum { MALLOC_IS_OURS = 0 };
#endif

enum { REPEATS = UNDER_SANITIZER ? 10 : 100 };

static void malloc_is_counted(void **state) {
    (void)state;
    if (!MALLOC_IS_OURS) skip();
    const long before = atomic_load(&n_mallocs);
    void *volatile a = malloc(10), *volatile b = aligned_alloc(64, 64);
    FILE *file = fopen("/dev/null", "r"); /* the C library's own */
    assert_true(a && b && file);
    assert_true(atomic_load(&n_mallocs) >= before + 3);
    fclose(file);
    free(a), free(b);
}

/* A quarter of it keeps three threads busy. */
static job quarter_new(void) {
    job j = job_new();
    j.p.d.n_batch = 1;
    j.p.d.n_heads = 2;
    j.p.d.n_kv_heads = 1;
    return j;
}

static void steady(const char *isa, int n_threads) {
    counting_allocator counter = { 0 };
    job j = quarter_new(), answer = quarter_new();
    qkv_ctx *ctx = NULL;
    qkv_ctx_options options = qkv_ctx_options_init();
    options.isa = isa;
    options.n_threads = n_threads;
    options.allocator = counting_allocator_of(&counter);
    assert_int_equal(qkv_ctx_create(&options, &ctx, NULL), QKV_OK);
    assert_int_equal(job_do(ctx, &answer), QKV_OK);
    const int64_t calls = counter.n_calls;
    const long mallocs = atomic_load(&n_mallocs);
    qkv_status status = QKV_OK;
    for (int n = 0; n < REPEATS && status == QKV_OK; n++) status = job_do(ctx, &j);
    const long more = atomic_load(&n_mallocs) - mallocs;
    assert_int_equal(status, QKV_OK);
    assert_int_equal(counter.n_calls, calls);
    assert_int_equal(more, 0);
    assert_true(job_same(&j, &answer));
    qkv_ctx_free(ctx);
    assert_int_equal(counter.n_alive, 0);
    job_free(&j);
    job_free(&answer);
}

static void nothing_after_the_first_call(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++)
        for (int threads = 1; threads <= 3; threads += 2) steady(qkv_isa_name(n), threads);
}

/* Nor do dropout and the gradient of a mask, on their own context. */
static void nothing_for_dropout_and_masks(void **state) {
    (void)state;
    job j = quarter_new();
    problem *const p = &j.p;
    const int64_t len_k = p->d.len_k, stride[4] = { 0, p->d.len_q * len_k, len_k, 1 };
    rng r = { 18 };
    float *const mask = normals(&r, p->d.n_heads * p->d.len_q * len_k);
    float *const d_mask = floats(p->d.n_heads * p->d.len_q * len_k);
    p->d.flags |= QKV_SET_MASK | QKV_SET_DROPOUT | QKV_SET_SOFTCAP;
    p->d.mask = mask;
    p->d.mask_type = QKV_MASK_F32;
    memcpy(p->d.mask_stride, stride, sizeof stride);
    p->d.softcap = 5;
    p->d.dropout = 0.25f;
    qkv_attention_grads g = grads_of(p);
    g.d_mask = d_mask;
    memcpy(g.d_mask_stride, stride, sizeof stride);
    qkv_ctx *ctx = context_on(NULL, 3);
    qkv_status status = problem_call(ctx, p);
    const long mallocs = atomic_load(&n_mallocs);
    for (int n = 0; n < REPEATS && status == QKV_OK; n++) {
        status = problem_call(ctx, p);
        if (status == QKV_OK)
            status = qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, NULL);
    }
    const long more = atomic_load(&n_mallocs) - mallocs;
    assert_int_equal(status, QKV_OK);
    assert_int_equal(more, 0);
    qkv_ctx_free(ctx);
    free(mask);
    free(d_mask);
    job_free(&j);
}

/* Floats become bf16, in place. */
static void halve(float *x, int64_t n) {
    for (int64_t i = 0; i < n; i++) ((uint16_t *)(void *)x)[i] = qkvi_bf16_of_f32(x[i]);
}

/* Nor do conversions of 16-bit types, and sums of their gradients. */
static void nothing_for_types_of_16_bits(void **state) {
    (void)state;
    job j = quarter_new();
    problem *const p = &j.p;
    halve(p->q, n_q(p));
    halve(p->k, n_k(p));
    halve(p->v, n_v(p));
    halve(p->d_o, n_o(p));
    p->d.dtype = QKV_BF16;
    p->d.arithmetic = QKV_CLASS_F32;
    p->d.flags |= QKV_SET_CAUSAL;
    qkv_ctx *ctx = context_on(NULL, 3);
    qkv_status status = problem_call(ctx, p);
    const long mallocs = atomic_load(&n_mallocs);
    for (int n = 0; n < REPEATS && status == QKV_OK; n++) status = problem_call(ctx, p);
    const long more = atomic_load(&n_mallocs) - mallocs;
    assert_int_equal(status, QKV_OK);
    assert_int_equal(more, 0);
    qkv_ctx_free(ctx);
    job_free(&j);
}

/* Smaller problems afterwards need nothing either, nor do refused calls. */
static void nothing_for_smaller_problems(void **state) {
    (void)state;
    job j = job_new(), small = job_new();
    qkv_ctx *ctx = context_on(NULL, 3);
    assert_int_equal(job_do(ctx, &j), QKV_OK);
    const long mallocs = atomic_load(&n_mallocs);
    qkv_status status = QKV_OK, refused = QKV_ERR_SHAPE;
    for (int64_t len = 1; len < 64 && status == QKV_OK && refused == QKV_ERR_SHAPE; len += 7) {
        small.p.d.len_q = len;
        small.p.d.len_k = 8 * len;
        status = job_do(ctx, &small);
        small.p.d.len_k = -1;
        refused = problem_call(ctx, &small.p);
    }
    const long more = atomic_load(&n_mallocs) - mallocs;
    assert_int_equal(status, QKV_OK);
    assert_int_equal(refused, QKV_ERR_SHAPE);
    assert_int_equal(more, 0);
    qkv_ctx_free(ctx);
    small.p.d = j.p.d;
    job_free(&small);
    job_free(&j);
}

static void nothing_at_all_with_a_workspace(void **state) {
    (void)state;
    for (int n = 0; qkv_isa_name(n); n++) {
        job answer = job_answer(), j = job_new();
        const problem *p = &j.p;
        const qkv_attention_grads g = grads_of(p);
        qkv_ctx *ctx = context_on(qkv_isa_name(n), 1);
        size_t bytes[2];
        qkv_call_options call = qkv_call_options_init();
        assert_int_equal(qkv_attention_workspace(ctx, &p->d, &bytes[0]), QKV_OK);
        assert_int_equal(qkv_attention_backward_workspace(ctx, &p->d, &bytes[1]), QKV_OK);
        call.workspace_bytes = bytes[0] > bytes[1] ? bytes[0] : bytes[1];
        call.workspace = aligned_alloc(64, call.workspace_bytes);
        assert_non_null(call.workspace);
        const long mallocs = atomic_load(&n_mallocs);
        const qkv_status forward =
            qkv_attention_forward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &call);
        const qkv_status backward =
            qkv_attention_backward(ctx, &p->d, p->q, p->k, p->v, p->o, p->lse, &g, &call);
        const long more = atomic_load(&n_mallocs) - mallocs;
        assert_int_equal(forward, QKV_OK);
        assert_int_equal(backward, QKV_OK);
        assert_int_equal(more, 0);
        assert_memory_equal(p->d_k, answer.p.d_k, (size_t)n_k(p) * sizeof(float));
        free(call.workspace);
        qkv_ctx_free(ctx);
        job_free(&j);
        job_free(&answer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malloc_is_counted),
        cmocka_unit_test(nothing_after_the_first_call),
        cmocka_unit_test(nothing_for_dropout_and_masks),
        cmocka_unit_test(nothing_for_types_of_16_bits),
        cmocka_unit_test(nothing_for_smaller_problems),
        cmocka_unit_test(nothing_at_all_with_a_workspace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
