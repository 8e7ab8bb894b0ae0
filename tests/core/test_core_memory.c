/* Checked sizes, the allocator, the arena and its cutter, option structs of other versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/options.h"
#include "counting_allocator.h"

static void products_do_not_wrap(void **state) {
    (void)state;
    int64_t r;
    size_t s;
    assert_true(qkvi_mul_i64(INT64_C(3037000499), INT64_C(3037000499), &r));
    assert_int_equal(r, INT64_C(9223372030926249001));
    assert_false(qkvi_mul_i64(INT64_C(3037000500), INT64_C(3037000500), &r));
    assert_false(qkvi_mul_i64(INT64_MIN, -1, &r));
    assert_true(qkvi_add_i64(INT64_MAX, 0, &r));
    assert_false(qkvi_add_i64(INT64_MAX, 1, &r));
    assert_false(qkvi_mul_size(SIZE_MAX / 2, 3, &s));
    assert_false(qkvi_add_size(SIZE_MAX, 1, &s));
    assert_false(qkvi_bytes_of(-1, 4, &s));
    assert_false(qkvi_bytes_of(INT64_MAX, 4, &s));
    assert_true(qkvi_bytes_of(5, 4, &s));
    assert_int_equal(s, 20);
    assert_true(qkvi_align_size(65, &s));
    assert_int_equal(s, 128);
    assert_true(qkvi_align_size(0, &s));
    assert_int_equal(s, 0);
    assert_false(qkvi_align_size(SIZE_MAX - 10, &s));
}

static void arrays_have_checked_sizes(void **state) {
    (void)state;
    assert_null(qkvi_malloc_array(SIZE_MAX / 4, 8));
    assert_null(qkvi_calloc_array(SIZE_MAX / 4, 8));
    assert_null(qkvi_aligned_array(SIZE_MAX / 4, 8));
    assert_null(qkvi_aligned_array(SIZE_MAX, 1));
    void *empty = qkvi_malloc_array(0, 8), *zeros = qkvi_calloc_array(3, 4);
    assert_non_null(empty);
    assert_memory_equal(zeros, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    assert_null(qkvi_realloc_array(zeros, SIZE_MAX / 4, 8)); /* zeros is still ours */
    zeros = qkvi_realloc_array(zeros, 100, 4);
    assert_memory_equal(zeros, "\0\0\0\0\0\0\0\0\0\0\0\0", 12);
    float *aligned = qkvi_aligned_array(7, sizeof *aligned);
    assert_int_equal((uintptr_t)aligned % QKVI_ALIGNMENT, 0);
    free(aligned);
    free(zeros);
    free(empty);
}

static void arena_grows_and_stays(void **state) {
    (void)state;
    counting_allocator counter = { 0 };
    const qkv_allocator allocator = counting_allocator_of(&counter);
    qkvi_arena arena = { 0 };
    void *block = qkvi_arena_reserve(&arena, &allocator, 1000);
    assert_non_null(block);
    memset(block, 1, 1000);
    for (size_t bytes = 0; bytes <= 1000; bytes += 100)
        assert_ptr_equal(qkvi_arena_reserve(&arena, &allocator, bytes), block);
    assert_int_equal(counter.n_calls, 1);
    assert_non_null(qkvi_arena_reserve(&arena, &allocator, 5000));
    assert_int_equal(counter.n_alive, 1);
    counter.fail_at = 3;
    assert_null(qkvi_arena_reserve(&arena, &allocator, 6000));
    assert_int_equal(counter.n_alive, 0); /* the old block went first: never two at once */
    assert_non_null(qkvi_arena_reserve(&arena, &allocator, 10));
    qkvi_arena_release(&arena, &allocator);
    qkvi_arena_release(&arena, &allocator);
    assert_int_equal(counter.n_alive, 0);
    assert_int_equal(counter.bytes_alive, 0);
}

static void default_allocator_aligns(void **state) {
    (void)state;
    const qkv_allocator allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    for (size_t bytes = 1; bytes < 300; bytes += 37) {
        void *pointer = qkvi_alloc(&allocator, bytes);
        assert_int_equal((uintptr_t)pointer % QKVI_ALIGNMENT, 0);
        memset(pointer, 1, bytes);
        qkvi_release(&allocator, pointer, bytes);
    }
    assert_null(qkvi_alloc(&allocator, SIZE_MAX - 5));
    qkvi_release(&allocator, NULL, 5);
}

static void measured_and_cut_sizes_agree(void **state) {
    (void)state;
    _Alignas(64) char block[512];
    qkvi_cutter measure = { 0 }, cut = qkvi_cutter_on(block);
    qkvi_cutter *const both[] = { &measure, &cut };
    for (int i = 0; i < 2; i++) {
        char *a = qkvi_cut(both[i], 3, sizeof(float));
        char *b = qkvi_cut(both[i], 0, sizeof(float));
        char *c = qkvi_cut(both[i], 65, 1);
        assert_ptr_equal(a, i ? block : NULL);
        assert_ptr_equal(b, i ? block + 64 : NULL);
        assert_ptr_equal(c, i ? block + 64 : NULL);
        assert_int_equal(both[i]->used_bytes, 192);
        assert_false(both[i]->overflow);
    }
    assert_null(qkvi_cut(&measure, INT64_MAX, 4));
    assert_true(measure.overflow);
    measure = (qkvi_cutter){ 0 };
    assert_null(qkvi_cut(&measure, -1, 4));
    assert_true(measure.overflow);
    measure = (qkvi_cutter){ 0 };
    for (int i = 0; i < 3; i++) qkvi_cut(&measure, INT64_MAX / 2, 2);
    assert_true(measure.overflow);
}

typedef struct options {
    size_t struct_size;
    int a, b;
} options;

static void option_structs_of_other_versions(void **state) {
    (void)state;
    struct {
        options known;
        char more[5000];
    } theirs = { { sizeof(options), 1, 2 }, { 0 } };
    options ours = { 0 };
    qkv_error error = { 0 };
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error), QKV_OK);
    assert_int_equal(ours.a, 1);
    assert_int_equal(ours.b, 2);

    theirs.known.struct_size = sizeof(options) + 100; /* newer, and sets nothing new */
    theirs.known.b = 3;
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error), QKV_OK);
    assert_int_equal(ours.b, 3);
    assert_int_equal(ours.struct_size, sizeof ours);

    theirs.more[99] = 1; /* newer, and sets its last byte */
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error),
                     QKV_ERR_VERSION);
    assert_non_null(strstr(error.message, "options.struct_size = 116"));
    theirs.known.struct_size--; /* now that byte is no part of it */
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error), QKV_OK);

    theirs.known.struct_size = sizeof(options) - sizeof(int); /* older: b was not there yet */
    ours.b = 7;                                               /* its default */
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error), QKV_OK);
    assert_int_equal(ours.a, 1);
    assert_int_equal(ours.b, 7);
    assert_int_equal(ours.struct_size, sizeof ours);

    const size_t unset[] = { 0, 1, sizeof(size_t) };
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++) {
        theirs.known.struct_size = unset[i];
        assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", &error),
                         QKV_ERR_ARGUMENT);
    }
    theirs.known.struct_size = SIZE_MAX; /* not set at all: must not be scanned */
    assert_int_equal(qkvi_options_read(&ours, sizeof ours, &theirs, "options", NULL),
                     QKV_ERR_VERSION);
    assert_int_equal(ours.b, 7);
}

/* Bytes past struct_size are the caller's own. */
static void filling_a_struct_of_another_version(void **state) {
    (void)state;
    const options ours = { sizeof ours, 1, 2 };
    struct {
        options known;
        int more[4];
    } theirs = { { sizeof(options) - sizeof(int), 8, 9 }, { 10, 11, 12, 13 } };
    qkvi_options_write(&theirs, &ours, sizeof ours); /* older */
    assert_int_equal(theirs.known.struct_size, sizeof(options) - sizeof(int));
    assert_int_equal(theirs.known.a, 1);
    assert_int_equal(theirs.known.b, 9);

    theirs.known.struct_size = sizeof(options) + 2 * sizeof(int); /* newer */
    qkvi_options_write(&theirs, &ours, sizeof ours);
    assert_int_equal(theirs.known.b, 2);
    assert_int_equal(theirs.more[1], 0);
    assert_int_equal(theirs.more[2], 12);
}

/* Elements of another size, at any alignment. */
static void elements_of_other_versions(void **state) {
    (void)state;
    typedef struct element {
        int64_t a;
        int32_t b;
    } element; /* 16 bytes */
    char array[3 * 21], kept[21];
    const element written = { 5, 6 };
    element read;
    qkv_error error = { 0 };
    memset(array, 0x5a, sizeof array);
    memset(kept, 0x5a, sizeof kept);
    qkvi_element_write(array, 1, 21, &written, sizeof written); /* newer: the rest becomes 0 */
    assert_memory_equal(array, kept, 21);
    assert_memory_equal(array + 42, kept, 21);
    assert_int_equal(qkvi_element_read(&read, sizeof read, array, 1, 21, "list", &error), QKV_OK);
    assert_true(read.a == 5 && read.b == 6);
    array[21 + 20] = 1;
    assert_int_equal(qkvi_element_read(&read, sizeof read, array, 1, 21, "list", &error),
                     QKV_ERR_VERSION);
    assert_non_null(strstr(error.message, "list[1]: byte 20 is not 0"));

    memset(array, 0x5a, sizeof array);
    qkvi_element_write(array, 2, 8, &written, sizeof written); /* older: b was not there yet */
    assert_memory_equal(array + 24, kept, 21);
    read = (element){ 0, 7 };
    assert_int_equal(qkvi_element_read(&read, sizeof read, array, 2, 8, "list", &error), QKV_OK);
    assert_true(read.a == 5 && read.b == 7);

    assert_int_equal(qkvi_element_check(4, 16, "list_bytes", &error), QKV_OK);
    assert_int_equal(qkvi_element_check(16 + 4096, 16, "list_bytes", &error), QKV_OK);
    assert_int_equal(qkvi_element_check(3, 16, "list_bytes", &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "list_bytes = 3 is less than 4"));
    assert_int_equal(qkvi_element_check(SIZE_MAX, 16, "list_bytes", &error), QKV_ERR_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_do_not_wrap),
        cmocka_unit_test(arrays_have_checked_sizes),
        cmocka_unit_test(arena_grows_and_stays),
        cmocka_unit_test(default_allocator_aligns),
        cmocka_unit_test(measured_and_cut_sizes_agree),
        cmocka_unit_test(option_structs_of_other_versions),
        cmocka_unit_test(filling_a_struct_of_another_version),
        cmocka_unit_test(elements_of_other_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
