/*
 * Memory that runs out: every allocation of a call fails once, the first, the second, and so on
 * until the call succeeds. Each time it must say so, give back what it took and leave no file.
 * malloc is replaced in this program only, which also reaches the C library. jansson's own
 * allocations are left alone: version 2.14 loses characters when its token buffer cannot grow, and
 * then reads and writes past it (lex_scan_string), which no caller can prevent.
 */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "model/store/safetensors.h"
#include "qkv/model.h"
#include "sanitizers.h"

#if defined(__GLIBC__) && !UNDER_ASAN && !UNDER_TSAN

#define STORE  QKV_TEST_DATA "/unit/store_data/"
#define GOLDEN QKV_TEST_DATA "/golden/bert_old"

/* ---- malloc that fails on demand ------------------------------------------------------------- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *pointer, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *pointer);

static volatile int64_t left = -1; /* allocations until one fails; -1: none fails */
static volatile int64_t n_live;    /* blocks that are not freed */

static int is_jansson(const void *caller) {
    Dl_info info;
    return dladdr(caller, &info) && info.dli_fname && strstr(info.dli_fname, "jansson");
}

static int fails(const void *caller) {
    if (left < 0 || is_jansson(caller)) return 0;
    if (left-- > 0) return 0;
    errno = ENOMEM;
    return 1;
}

static void *counted(void *pointer) {
    n_live += pointer != NULL;
    return pointer;
}

#pragma GCC visibility push(default) /* the C library must see them */
void *malloc(size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_malloc(bytes));
}

void *calloc(size_t n, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_calloc(n, bytes));
}

void *realloc(void *pointer, size_t bytes) {
    if (fails(__builtin_return_address(0))) return NULL;
    void *const moved = __libc_realloc(pointer, bytes);
    return pointer ? moved : counted(moved);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return fails(__builtin_return_address(0)) ? NULL : counted(__libc_memalign(alignment, bytes));
}

void free(void *pointer) {
    n_live -= pointer != NULL;
    __libc_free(pointer);
}
#pragma GCC visibility pop

/* ---- The sweep ------------------------------------------------------------------------------- */

/* A call that allocates, and frees what it got when it succeeds. */
typedef qkv_status call(qkv_error *error);

/* How often it failed before it succeeded. */
static int64_t sweep(const char *name, call *function) {
    int64_t n_failed = 0;
    for (int64_t n = 0; n < 100000; n++) {
        qkv_error error = { QKV_OK, "" };
        const int64_t before = n_live;
        left = n;
        const qkv_status status = function(&error);
        const int untouched = left >= 0;
        left = -1;
        if (n_live != before)
            fail_msg("%s: allocation %d leaks %d blocks", name, (int)n, (int)(n_live - before));
        if (status == QKV_OK && untouched) return n_failed;
        if (status == QKV_OK) continue; /* something that could be done without */
        n_failed++;
        if (status != QKV_ERR_MEMORY || strlen(error.message) < 10)
            fail_msg("%s: allocation %d: %s \"%s\"", name, (int)n, qkv_status_name(status),
                     error.message);
    }
    fail_msg("%s never succeeds", name);
    return 0;
}

static char out_path[64];

static qkv_status open_model(qkv_error *error) {
    qkv_model *model;
    const qkv_status status = qkv_model_open(GOLDEN, &model, error);
    qkv_model_free(model);
    return status;
}

static qkv_status read_npy(qkv_error *error) {
    qkv_array *array;
    const qkv_status status = qkv_array_read(STORE "f4_fortran.npy", &array, error);
    qkv_array_free(array);
    return status;
}

static qkv_status read_tensor(qkv_error *error) {
    qkv_array *array;
    const qkv_status status = qkv_array_read(STORE "mixed.safetensors:half", &array, error);
    qkv_array_free(array);
    return status;
}

static qkv_status write_npy(qkv_error *error) {
    float data[2] = { 1, 2 };
    const qkv_array array = { QKV_ARRAY_F32, 1, { 2 }, 2, data };
    const qkv_status status = qkv_array_write(out_path, &array, error);
    if (status == QKV_OK) unlink(out_path);
    return status;
}

static qkv_status write_safetensors(qkv_error *error) {
    float data[2] = { 1, 2 };
    qkvi_stored_out tensors[] = { { "a", QKVI_F32, 1, { 2 }, data },
                                  { "b", QKVI_F32, 1, { 1 }, data } };
    const qkv_status status = qkvi_safetensors_write(out_path, tensors, 2, "k", "v", error);
    if (status == QKV_OK) unlink(out_path);
    return status;
}

static qkv_status find_nothing(qkv_error *error) {
    qkv_model *model;
    const qkv_status status = qkv_model_open("no/such-model", &model, error);
    return status == QKV_ERR_IO ? QKV_OK : status;
}

static void test_sweep(void **state) {
    (void)state;
    assert_true(sweep("model", open_model) > 30);
    assert_true(sweep("npy", read_npy) > 2);
    assert_true(sweep("tensor", read_tensor) > 5);
    assert_true(sweep("write", write_npy) > 2);
    assert_true(sweep("safetensors", write_safetensors) > 2);
    assert_true(sweep("no model", find_nothing) > 1);
}

static char folder[] = "/tmp/qkv-memory-XXXXXX";

static int make_folder(void **state) {
    *state = mkdtemp(folder);
    snprintf(out_path, sizeof out_path, "%s/out.npy", folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); } /* fails if a file was left */

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_sweep) };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#else
int main(void) { return 0; } /* a sanitizer brings its own malloc */
#endif
