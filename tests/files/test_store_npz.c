/*
 * .npz: files of numpy are read correctly, the files that we write have the bytes of numpy.savez,
 * and all arrays of one file are written together. Refusals are in
 * test_npz_hostile.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/zip.h"
#include "limits/temporary.h"
#include "qkv/files.h"

#define DATA QKV_TEST_DATA "/files/store_data/"

static char folder[TEMPORARY_PATH];

static const char *in_folder(const char *name) {
    static char paths[4][TEMPORARY_PATH + 32];
    static int next;
    char *const path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

/* ---- Files of numpy -------------------------------------------------------------------------- */

typedef struct stored {
    const char *path;
    qkv_array_type type;
    int rank;
    int64_t shape[3];
} stored;

static const stored arrays[] = {
    { "savez.npz:q", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "savez.npz:q.npy", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "savez.npz:ids", QKV_ARRAY_I64, 1, { 4 } },
    { "savez.npz:half", QKV_ARRAY_F32, 3, { 2, 1, 2 } },
    { "savez.npz:none", QKV_ARRAY_F32, 2, { 0, 3 } },
    { "savez.npz:scalar", QKV_ARRAY_F32, 0, { 0 } },
    { "deflated.npz:q", QKV_ARRAY_F32, 2, { 20, 30 } },
    { "deflated.npz:f", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "deflated.npz:big", QKV_ARRAY_I64, 1, { 7 } },
    { "deflated.npz:none", QKV_ARRAY_F32, 1, { 0 } },
    { "described.npz:q", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "described.npz:k", QKV_ARRAY_I64, 1, { 5 } },
    { "described_deflated.npz:q", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "described_deflated.npz:k", QKV_ARRAY_I64, 1, { 5 } },
    { "others.npz:sub/q", QKV_ARRAY_F32, 2, { 2, 3 } },
    { "others.npz:../up", QKV_ARRAY_F32, 1, { 1 } },
    { "others.npz:gr\xc3\xb6\xc3\x9f\x65", QKV_ARRAY_F32, 1, { 2 } },
};

static void test_reads_numpy(void **state) {
    (void)state;
    for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++) {
        char path[512];
        qkv_array *array;
        qkv_error error = { QKV_OK, "" };
        snprintf(path, sizeof path, DATA "%s", arrays[a].path);
        if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error) != QKV_OK)
            fail_msg("%s", error.message);
        assert_int_equal(array->type, arrays[a].type);
        assert_int_equal(array->rank, arrays[a].rank);
        for (int d = 0; d < array->rank; d++) assert_int_equal(array->shape[d], arrays[a].shape[d]);
        for (int64_t i = 0; i < array->n_elems; i++)
            assert_true(array->type == QKV_ARRAY_F32 ? ((const float *)array->data)[i] == (float)i
                                                     : ((const int64_t *)array->data)[i] == i);
        qkv_array_free(array);
    }
}

static void test_not_there(void **state) {
    (void)state;
    static const struct {
        const char *path;
        qkv_status status;
        const char *says;
    } rows[] = {
        { "savez.npz", QKV_ERR_ARGUMENT, "a .npz file holds many arrays: name one as FILE:NAME" },
        { "savez.npz:", QKV_ERR_ARGUMENT, "savez.npz: there is no array ''" },
        { "savez.npz:Q", QKV_ERR_ARGUMENT, "savez.npz: there is no array 'Q'" },
        { "savez.npz:a\nb", QKV_ERR_ARGUMENT, "there is no array 'a\\x0ab'" },
        { "others.npz:README.txt", QKV_ERR_ARGUMENT, "there is no array 'README.txt'" },
        { "others.npz:sub/", QKV_ERR_ARGUMENT, "there is no array 'sub/'" },
        { "others.npz:empty", QKV_ERR_FORMAT, "others.npz:empty: is not a .npy file" },
        { "none.npz:q", QKV_ERR_IO, "none.npz: cannot open" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char path[512];
        qkv_array *array = (qkv_array *)1;
        qkv_error error = { QKV_OK, "" };
        snprintf(path, sizeof path, DATA "%s", rows[r].path);
        assert_int_equal(qkv_array_read(path, QKV_ARRAY_F32, &array, &error), rows[r].status);
        assert_null(array);
        if (!strstr(error.message, rows[r].says)) fail_msg("%s", error.message);
    }
}

static void note(void *user, const qkv_tensor_entry *entry) {
    char *const text = user;
    const size_t n = strlen(text);
    snprintf(text + n, 400 - n, "%s %s %d;", entry->name, entry->type, entry->rank);
}

static void test_lists(void **state) {
    (void)state;
    char text[400] = "";
    qkv_error error;
    assert_int_equal(qkv_tensor_list(DATA "savez.npz", note, text, &error), QKV_OK);
    assert_string_equal(text, "half F16 3;ids I64 1;none F32 2;q F32 2;scalar F32 0;seen BOOL 1;");
    text[0] = '\0';
    assert_int_equal(qkv_tensor_list(DATA "no_entries.npz", note, text, &error), QKV_OK);
    assert_int_equal(qkv_tensor_list(DATA "others.npz", note, text, &error), QKV_ERR_FORMAT);
    assert_string_equal(text, ""); /* nothing is told of a file that is refused */
}

/* ---- Files of ours --------------------------------------------------------------------------- */

static void expect_file(const char *path, const char *reference) {
    char *bytes, *expected;
    size_t n, n_expected;
    qkv_error error;
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, &n, &error), QKV_OK);
    assert_int_equal(qkvi_file_load(reference, 1 << 20, &expected, &n_expected, &error), QKV_OK);
    assert_int_equal(n, n_expected);
    assert_memory_equal(bytes, expected, n);
    free(bytes);
    free(expected);
}

/* The arrays of tools/npz_cases.py, among them others that go elsewhere. */
static void test_bytes_of_numpy(void **state) {
    (void)state;
    float q[] = { 0, 1, 2, 3, 4, 5 };
    int64_t ids[] = { 0, 1, 2, 3 };
    uint8_t seen[] = { 0, 1, 1 };
    uint16_t half[] = { 0, 0x3c00, 0x4000, 0x4200 };
    const qkv_array given[] = {
        { QKV_ARRAY_F32, 2, { 2, 3 }, 6, q, NULL },
        { QKV_ARRAY_I64, 1, { 4 }, 4, ids, NULL },
        { QKV_ARRAY_I64, 1, { 1 }, 1, ids, NULL },
        { QKV_ARRAY_BOOL, 1, { 3 }, 3, seen, NULL },
        { QKV_ARRAY_F16, 3, { 2, 1, 2 }, 4, half, NULL },
        { QKV_ARRAY_F32, 2, { 0, 3 }, 0, NULL, NULL },
        { QKV_ARRAY_F32, 1, { 2 }, 2, q, NULL },
        { QKV_ARRAY_F32, 0, { 0 }, 1, q, NULL },
    };
    static const char *const names[] = {
        "a.npz:q",        "a.npz:ids",  "alone.npy", "a.npz:seen",
        "a.npz:half.npy", "a.npz:none", "b.npz:q",   "a.npz:scalar"
    };
    enum { N = sizeof given / sizeof *given };
    const qkv_array *pointers[N];
    static char paths[N][TEMPORARY_PATH + 32];
    const char *path_pointers[N];
    qkv_array *read;
    qkv_error error = { QKV_OK, "" };
    for (int i = 0; i < N; i++) {
        pointers[i] = &given[i];
        snprintf(paths[i], sizeof paths[i], "%s/%s", folder, names[i]);
        path_pointers[i] = paths[i];
    }
    if (qkv_arrays_write(N, path_pointers, pointers, &error)) fail_msg("%s", error.message);
    expect_file(in_folder("a.npz"), DATA "savez.npz");
    if (qkv_array_read(in_folder("b.npz:q"), QKV_ARRAY_F32, &read, &error))
        fail_msg("%s", error.message);
    assert_memory_equal(read->data, q, 8);
    qkv_array_free(read);
    unlink(in_folder("a.npz"));
    unlink(in_folder("b.npz"));
    unlink(in_folder("alone.npy"));
}

/* bf16 becomes f32; a new file takes the place of the old one; a long name. */
static void test_writes(void **state) {
    (void)state;
    uint16_t half[] = { 0x3f80, 0xc000 };
    const qkv_array one = { QKV_ARRAY_BF16, 1, { 2 }, 2, half, NULL };
    qkv_array *read;
    qkv_error error = { QKV_OK, "" };
    char long_name[1100];
    assert_int_equal(qkv_array_write(in_folder("c.npz:old"), &one, &error), QKV_OK);
    snprintf(long_name, sizeof long_name, "%s", in_folder("c.npz:"));
    memset(long_name + strlen(long_name), 'n', 1020);
    long_name[strlen(in_folder("c.npz:")) + 1020] = '\0';
    if (qkv_array_write(long_name, &one, &error)) fail_msg("%s", error.message);
    if (qkv_array_read(long_name, QKV_ARRAY_F32, &read, &error)) fail_msg("%s", error.message);
    assert_int_equal(read->type, QKV_ARRAY_F32);
    assert_true(((const float *)read->data)[0] == 1 && ((const float *)read->data)[1] == -2);
    qkv_array_free(read);
    assert_int_equal(qkv_array_read(in_folder("c.npz:old"), QKV_ARRAY_F32, &read, &error),
                     QKV_ERR_ARGUMENT);
    unlink(in_folder("c.npz"));
}

/* Numbers that need zip64: of entries, of bytes, of an offset. The large entry is a hole. */
static void test_zip64(void **state) {
    (void)state;
    enum { N = 65536 };
    const uint64_t large = (uint64_t)5 << 30;
    qkvi_writer out;
    qkvi_zip_writer zip = { .out = &out };
    qkvi_zip read;
    qkv_error error = { QKV_OK, "" };
    char name[20];
    assert_int_equal(qkvi_writer_begin(in_folder("large.npz"), &out, &error), QKV_OK);
    assert_int_equal(qkvi_zip_put_header(&zip, "large", large, 0, &error), QKV_OK);
    assert_int_equal(fseeko(out.stream, (off_t)large, SEEK_CUR), 0);
    for (int i = 1; i < N; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(qkvi_zip_put_header(&zip, name, 0, 0, &error), QKV_OK);
    }
    assert_int_equal(qkvi_zip_put_directory(&zip, &error), QKV_OK);
    qkvi_zip_writer_end(&zip);
    assert_int_equal(qkvi_writer_commit(&out, &error), QKV_OK);
    if (qkvi_zip_open(in_folder("large.npz"), &read, &error)) fail_msg("%s", error.message);
    assert_int_equal(read.n_entries, N);
    assert_true(qkvi_zip_find(&read, "large")->n_bytes == large);
    assert_true(qkvi_zip_find(&read, "65535")->header > large);
    qkvi_zip_close(&read);
    unlink(in_folder("large.npz"));
}

static void test_refuses(void **state) {
    (void)state;
    float data[] = { 1 };
    const qkv_array one = { QKV_ARRAY_F32, 1, { 1 }, 1, data, NULL };
    const qkv_array text = { QKV_ARRAY_BYTES, 1, { 1 }, 1, data, NULL };
    const qkv_array *const two[] = { &one, &one };
    const char *const same[] = { in_folder("d.npz:a"), in_folder("d.npz:a.npy") };
    qkv_error error;
    assert_int_equal(qkv_arrays_write(2, same, two, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "d.npz:a.npy is named twice"));
    assert_int_equal(qkv_array_write(in_folder("d.npz:"), &one, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "the name of an array has 1 to 1020 bytes, not 0"));
    assert_int_equal(qkv_array_write(in_folder("d.npz:t"), &text, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "QKV_ARRAY_BYTES is no array of a .npz"));
    assert_int_equal(access(in_folder("d.npz"), F_OK), -1);
}

static int make_folder(void **state) {
    (void)state;
    return mkdtemp(temporary("qkv-npz", folder)) ? 0 : -1;
}

static int remove_folder(void **state) {
    (void)state;
    return rmdir(folder);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_numpy), cmocka_unit_test(test_not_there),
        cmocka_unit_test(test_lists),       cmocka_unit_test(test_bytes_of_numpy),
        cmocka_unit_test(test_writes),      cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_zip64),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
