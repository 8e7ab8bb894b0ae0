/**
 * Files that appear complete or not at all, on a file system with unnamed files (O_TMPFILE) and on
 * one without (simulated by access(), which the writer calls, failing).
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "files/file.h"
#include "qkv/files.h"

#define FOLDER QKV_TEST_BUILD "/written"
#define FILE_A FOLDER "/a"
#define FILE_B FOLDER "/b"

static int named; /* files have a name from the start */

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode) {
    if (!named) return __real_access(path, mode);
    errno = ENOENT;
    return -1;
}

static int n_files(void) {
    DIR *directory = opendir(FOLDER);
    int n = 0;
    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return n;
}

static int empty_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    unlink(FILE_A);
    unlink(FILE_B);
    return n_files();
}

static void assert_file(const char *path, const char *text) {
    char *bytes;
    size_t n;
    assert_int_equal(qkvi_file_load(path, 1000, &bytes, &n, NULL), QKV_OK);
    assert_string_equal(bytes, text);
    free(bytes);
}

static void save(const char *path, const char *text) {
    qkv_error error;
    if (qkv_file_write(path, text, strlen(text), &error)) fail_msg("%s", error.message);
}

static void replace(void) {
    qkvi_writer writer;
    struct stat status;
    save(FILE_A, "old");
    assert_file(FILE_A, "old");
    assert_int_equal(chmod(FILE_A, 0600), 0);
    assert_int_equal(qkvi_writer_begin(FILE_A, &writer, NULL), QKV_OK);
    assert_int_equal(writer.has_temporary, named);
    assert_int_equal(n_files(), 1 + named);
    assert_int_equal(qkvi_writer_put(&writer, "new", 3, NULL), QKV_OK);
    assert_int_equal(qkvi_writer_finish(&writer, NULL), QKV_OK);
    assert_file(FILE_A, "old");
    assert_int_equal(qkvi_writer_publish(&writer, NULL), QKV_OK);
    qkvi_writer_end(&writer);
    assert_file(FILE_A, "new");
    assert_int_equal(stat(FILE_A, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(n_files(), 1);
}

static void give_up(void) {
    qkvi_writer writer;
    save(FILE_A, "old");
    assert_int_equal(qkvi_writer_begin(FILE_A, &writer, NULL), QKV_OK);
    assert_int_equal(qkvi_writer_put(&writer, "new", 3, NULL), QKV_OK);
    qkvi_writer_end(&writer);
    assert_int_equal(qkvi_writer_begin(FILE_B, &writer, NULL), QKV_OK);
    qkvi_writer_end(&writer);
    assert_int_equal(qkv_file_writable(FILE_B, NULL), QKV_OK);
    assert_file(FILE_A, "old");
    assert_int_equal(n_files(), 1);
}

/* The second file cannot be written, so the first one is not new. */
static void several(void) {
    float data[] = { 1, 2, 3 };
    const qkv_array array = { QKV_ARRAY_F32, 1, { 3 }, 3, data, NULL };
    const qkv_array *const arrays[] = { &array, &array };
    const struct {
        const char *second, *message;
        qkv_status status;
    } rows[] = {
        { "/dev/full", "/dev/full: cannot write: No space left", QKV_ERR_IO },
        { FOLDER "/none/b", "none/b: cannot create a file beside it: No such file", QKV_ERR_IO },
        { FOLDER "/../written/a", "/a are the same file", QKV_ERR_ARGUMENT },
        { FOLDER, "written: cannot write: Is a directory", QKV_ERR_IO },
        { NULL, "path is NULL", QKV_ERR_ARGUMENT },
    };
    save(FILE_A, "old");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const paths[] = { FILE_A, rows[i].second };
        qkv_error error = { 0 };
        assert_int_equal(qkv_arrays_write(2, paths, arrays, &error), rows[i].status);
        if (!strstr(error.message, rows[i].message)) fail_msg("\"%s\"", error.message);
        assert_file(FILE_A, "old");
        assert_int_equal(n_files(), 1);
    }
    const char *const paths[] = { FILE_A, FILE_B };
    qkv_array *read = NULL;
    assert_int_equal(qkv_arrays_write(2, paths, arrays, NULL), QKV_OK);
    assert_int_equal(qkv_array_read(FILE_B, QKV_ARRAY_F32, &read, NULL), QKV_OK);
    assert_memory_equal(read->data, data, sizeof data);
    qkv_array_free(read);
    assert_int_equal(n_files(), 2);
    assert_int_equal(qkv_arrays_write(0, NULL, NULL, NULL), QKV_OK);
    assert_int_equal(qkv_arrays_write(-1, paths, arrays, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_arrays_write(1, NULL, arrays, NULL), QKV_ERR_ARGUMENT);
}

static void links(void) {
    qkv_error error;
    assert_int_equal(symlink("b", FILE_A), 0);
    save(FILE_A, "through a link to nothing");
    assert_file(FILE_B, "through a link to nothing");
    save(FILE_A, "again");
    assert_file(FILE_B, "again");
    assert_int_equal(unlink(FILE_B), 0);
    assert_int_equal(symlink(FILE_A, FILE_B), 0);
    assert_int_equal(qkv_file_write(FILE_A, "", 0, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, "Too many levels of symbolic links"));
}

static void in_both_ways(void (*test)(void)) {
    for (named = 0; named < 2; named++) {
        assert_int_equal(empty_folder(NULL), 0);
        test();
    }
    named = 0;
}

static void test_replace(void **state) { (void)state, in_both_ways(replace); }
static void test_give_up(void **state) { (void)state, in_both_ways(give_up); }
static void test_several(void **state) { (void)state, in_both_ways(several); }
static void test_links(void **state) { (void)state, in_both_ways(links); }

static void test_arguments(void **state) {
    (void)state;
    assert_int_equal(qkv_file_write(NULL, "", 0, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_file_write(FILE_A, NULL, 1, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_file_writable(NULL, NULL), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_file_writable(FOLDER "/none/a", NULL), QKV_ERR_IO);
    assert_int_equal(qkv_file_writable(FOLDER, NULL), QKV_ERR_IO);
    assert_int_equal(qkv_file_write(FILE_A, NULL, 0, NULL), QKV_OK);
    assert_file(FILE_A, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_give_up),
        cmocka_unit_test(test_several),
        cmocka_unit_test(test_links),
        cmocka_unit_test_setup(test_arguments, empty_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
