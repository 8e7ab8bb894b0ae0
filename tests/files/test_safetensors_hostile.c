/*
 * Hostile .safetensors files (ids of docs/hostile-inputs.md): the table of safetensors_cases.c in
 * a cage, then what takes more than one file or is none: names, files that change while they are
 * read, paths that lead to no regular file, small stacks, and saving over a file in use.
 */
#include "hostile/safetensors_cases.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/status.h"
#include "files/safetensors.h"
#include "qkv/files.h"

/* ---- pread of this program, which calls a hook --------------------------------------------------
 *
 * The reader asks for a file's size when it opens it and reads later. Whatever happens between two
 * of its calls, a hook makes happen at exactly that place. */

static struct {
    int calls_left; /* the hook runs before the call that finds 0 */
    const char *path;
    off_t new_size;
} change = { .calls_left = -1 };

#pragma GCC visibility push(default)
ssize_t pread(int fd, void *bytes, size_t n, off_t offset);
ssize_t pread(int fd, void *bytes, size_t n, off_t offset) {
    if (change.calls_left >= 0 && change.calls_left-- == 0)
        if (truncate(change.path, change.new_size) != 0) abort();
    return (ssize_t)syscall(SYS_pread64, fd, bytes, n, offset);
}
#pragma GCC visibility pop

/* ---- Reading a file whole -------------------------------------------------------------------- */

/* The bytes that are there, or UNSUPPORTED for integers as floats: never anything else. */
static qkv_status read_tensor(const qkvi_safetensors *file, const qkvi_stored *tensor,
                              int is_pattern, qkv_error *error) {
    const size_t n = (size_t)(tensor->end - tensor->begin);
    uint8_t *const raw = malloc(n + 1);
    float *const floats = malloc(tensor->n_elems * sizeof *floats + 1);
    qkv_status status = raw && floats ? QKV_OK : QKV_ERR_MEMORY;
    if (status == QKV_OK) status = qkvi_safetensors_read_raw(file, tensor, raw, error);
    for (size_t b = 0; status == QKV_OK && is_pattern && b < n; b++)
        if (raw[b] != hostile_byte(tensor->begin + b))
            status = qkvi_error_set(error, HOSTILE_BROKEN, "wrong byte %zu of a tensor", b);
    if (status == QKV_OK) status = qkvi_safetensors_read_f32(file, tensor, floats, error);
    free(raw);
    free(floats);
    return status;
}

static qkv_status read_file(const char *path, qkv_error *error) {
    qkvi_safetensors *file = (qkvi_safetensors *)1;
    const qkv_status status = qkvi_safetensors_open(path, &file, error);
    if (status != QKV_OK)
        return file ? qkvi_error_set(error, HOSTILE_BROKEN, "an object is left") : status;
    qkv_status read = QKV_OK;
    /* Files of the table hold the pattern, but for zeros (many) and no numbers ('u'). */
    const int is_pattern = strstr(path, "hostile.safetensors") && file->n_tensors < 1000 &&
                           !qkvi_safetensors_find(file, "u");
    for (int64_t t = 0; t < file->n_tensors && read == QKV_OK; t++)
        read = read_tensor(file, &file->tensors[t], is_pattern, error);
    qkvi_safetensors_close(file);
    return read;
}

static qkv_status read_path(const void *path, qkv_error *error) { return read_file(path, error); }

/* One tensor 't' of two floats. */
static void write_small(const char *path) {
    float data[2] = { 1.5f, -2 };
    qkvi_stored_out tensor = { "t", QKVI_F32, 1, { 2 }, data };
    qkv_error error;
    if (qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error)) fail_msg("%s", error.message);
}

/* A row of the table by its words, as a file. */
static void write_case(const char *path, const char *what) {
    for (size_t c = 0; c < n_safetensors_cases; c++) {
        if (strcmp(safetensors_cases[c].what, what) != 0) continue;
        FILE *const out = fopen(path, "wb");
        assert_non_null(out);
        safetensors_cases[c].make(out, &safetensors_cases[c]);
        assert_int_equal(fclose(out), 0);
        return;
    }
    fail_msg("no case '%s'", what);
}

/* ---- ST01, ST32, ST35 ------------------------------------------------------------------------ */

/* Every prefix of a valid file is refused, and so is the file with one more byte. */
static void test_every_length(void **state) {
    (void)state;
    char path[512], *bytes;
    size_t n;
    qkv_error error;
    qkvi_safetensors *file;
    write_small(hostile_path(path, "whole.safetensors"));
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, &n, &error), QKV_OK);
    for (size_t cut = 0; cut < n; cut++) {
        char *const exact = malloc(cut + !cut); /* a sanitizer sees the first byte beyond */
        memcpy(exact, bytes, cut);
        assert_int_equal(qkvi_safetensors_open_memory("m", exact, cut, &file, &error),
                         QKV_ERR_FORMAT);
        assert_null(file);
        free(exact);
    }
    assert_int_equal(qkvi_safetensors_open_memory("m", bytes, n, &file, &error), QKV_OK);
    qkvi_safetensors_close(file);
    assert_int_equal(qkvi_safetensors_open_memory("m", bytes, n + 1, &file, &error),
                     QKV_ERR_FORMAT); /* the NUL that follows what is loaded */
    free(bytes);
    unlink(path);
}

/* Names are bytes: six tensors with six names, found by them, and '../../x' is no path. */
static void test_names(void **state) {
    (void)state;
    static const char *const names[] = { "",         "../../x",  "/etc/passwd", "\xe2\x80\xae\x07",
                                         "\xc3\xa9", "e\xcc\x81" };
    char path[512], element[600];
    qkvi_safetensors *file;
    qkv_array *array;
    qkv_error error;
    write_case(hostile_path(path, "names.safetensors"),
               "names that are empty, paths, invisible, or equal once normalised");
    assert_int_equal(qkvi_safetensors_open(path, &file, &error), QKV_OK);
    assert_int_equal(file->n_tensors, 6);
    for (int i = 0; i < 6; i++) {
        const qkvi_stored *const tensor = qkvi_safetensors_find(file, names[i]);
        uint8_t expected[4];
        assert_non_null(tensor);
        for (int b = 0; b < 4; b++) expected[b] = hostile_byte(tensor->begin + (uint64_t)b);
        snprintf(element, sizeof element, "%s:%s", path, names[i]);
        if (*names[i]) { /* FILE: alone names no tensor */
            assert_int_equal(qkv_array_read(element, QKV_ARRAY_F32, &array, &error), QKV_OK);
            assert_memory_equal(array->data, expected, 4);
            qkv_array_free(array);
        }
        for (int j = 0; j < i; j++) assert_true(tensor != qkvi_safetensors_find(file, names[j]));
    }
    qkvi_safetensors_close(file);
    unlink(path);
}

static void test_not_finite(void **state) {
    (void)state;
    char path[512];
    qkvi_safetensors *file;
    qkv_error error;
    float t, u;
    write_case(hostile_path(path, "nan.safetensors"), "a NaN and an infinity");
    assert_int_equal(qkvi_safetensors_open(path, &file, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_read_f32(file, qkvi_safetensors_find(file, "t"), &t, &error),
                     QKV_OK);
    assert_int_equal(qkvi_safetensors_read_f32(file, qkvi_safetensors_find(file, "u"), &u, &error),
                     QKV_OK);
    assert_true(t != t && u < 0 && u == 2 * u);
    qkvi_safetensors_close(file);
    unlink(path);
}

/* ---- ST31: the limit raised ------------------------------------------------------------------ */

static qkv_status read_with(const void *limit, qkv_error *error) {
    char path[512];
    setenv("QKV_MAX_TENSORS", limit, 1);
    const qkv_status status = read_file(hostile_path(path, "many.safetensors"), error);
    unsetenv("QKV_MAX_TENSORS");
    return status;
}

/*
 * 100,000 tensors where so many are asked for. What the limit keeps out of memory is then let in.
 */
static void test_raised_limit(void **state) {
    (void)state;
    char path[512];
    qkvi_safetensors *file;
    qkv_error error;
    write_case(hostile_path(path, "many.safetensors"), "100,000 tensors");
    hostile_expect("ST31 100,000 tensors, the limit raised too little", read_with, "20000",
                   QKV_ERR_LIMIT, "more than 320000 values, the limit (QKV_MAX_TENSORS raises it)");
    hostile_expect("ST31 a limit below the default", read_with, "1", QKV_ERR_LIMIT,
                   "more than 300000 values");
    hostile_expect("ST31 no limit given", read_with, "", QKV_ERR_LIMIT, "more than 300000 values");
    static const char *const wrong[] = { "0",        "-1", "1e6",      " 5",
                                         "10000001", "1 ", "x\x1b[2J", "99999999999999999999" };
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++)
        hostile_expect("ST31 a limit that is no number", read_with, wrong[w], QKV_ERR_ARGUMENT,
                       "is not a whole number from 1 to 10000000");
    /* Last, because the memory stays with this process, and a cage counts it. */
    setenv("QKV_MAX_TENSORS", "100000", 1);
    if (qkvi_safetensors_open(path, &file, &error)) fail_msg("%s", error.message);
    assert_int_equal(file->n_tensors, 100000);
    assert_non_null(qkvi_safetensors_find(file, "layer.00099999.weight"));
    qkvi_safetensors_close(file);
    unsetenv("QKV_MAX_TENSORS");
    unlink(path);
}

/* ---- ST37, ST38: files that change ----------------------------------------------------------- */

static off_t size_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_size;
}

/*
 * The file gets another size before the n-th read: 0 is the header's length, 1 the header, 2 the
 * data of the only tensor. There is no map of the file, so what is gone is an error and no signal.
 */
static void test_shrinks(void **state) {
    (void)state;
    char path[512], label[100];
    hostile_path(path, "changes.safetensors");
    for (int call = 0; call < 3; call++)
        for (int size = 0; size < 3; size++) {
            write_small(path);
            const off_t sizes[] = { 0, 20, size_of(path) - 1 };
            change.path = path;
            change.new_size = sizes[size];
            change.calls_left = call;
            snprintf(label, sizeof label, "ST37, ST38 cut to %d before read %d", (int)sizes[size],
                     call);
            hostile_expect(label, read_path, path, QKV_ERR_IO, "became shorter while it was read");
            change.calls_left = -1;
            unlink(path);
        }
}

static void test_grows(void **state) {
    (void)state;
    char path[512], label[100];
    hostile_path(path, "changes.safetensors");
    for (int call = 0; call < 3; call++) {
        write_small(path);
        change.path = path;
        change.new_size = 100000;
        change.calls_left = call;
        snprintf(label, sizeof label, "ST37 grown before read %d", call);
        hostile_expect(label, read_path, path, QKV_OK, "");
        change.calls_left = -1;
        unlink(path);
    }
}

/* ---- ST39: paths that lead to no file -------------------------------------------------------- */

static void expect_no_file(const char *what, const char *path, const char *says) {
    char label[600];
    snprintf(label, sizeof label, "ST39 %s", what);
    hostile_expect(label, read_path, path, QKV_ERR_IO, says);
}

static void test_no_regular_files(void **state) {
    char path[512];
    expect_no_file("folder", *state, "Is a directory");
    expect_no_file("/dev/zero", "/dev/zero", "is not a regular file");
    expect_no_file("/dev/null", "/dev/null", "is not a regular file");
    expect_no_file("procfs", "/proc/self/status", "is not a regular file");
    expect_no_file("procfs", "/proc/self/mem", "/proc/self/mem: ");
    expect_no_file("absent", hostile_path(path, "absent"), "No such file");
    hostile_path(path, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_no_file("FIFO", path, "is not a regular file");
    unlink(path);
    hostile_path(path, "loop");
    assert_int_equal(symlink("loop", path), 0);
    expect_no_file("loop of links", path, "Too many levels");
    unlink(path);
}

/* Root may read everything, so the attempt is made as another user where that is possible. */
static qkv_status read_as_nobody(const void *path, qkv_error *error) {
    if (geteuid() == 0 && setuid(65534) != 0)
        return qkvi_error_set(error, HOSTILE_BROKEN, "cannot become another user");
    return read_file(path, error);
}

static void test_no_permission(void **state) {
    char path[512];
    assert_int_equal(chmod(*state, 0755), 0);
    write_small(hostile_path(path, "secret.safetensors"));
    assert_int_equal(chmod(path, 0), 0);
    if (geteuid() != 0 || hostile_is_forked)
        hostile_expect("ST39 no permission", read_as_nobody, path, QKV_ERR_IO, "Permission denied");
    unlink(path);
}

/* ---- ST11: small stacks ---------------------------------------------------------------------- */

typedef struct small_stack {
    const char *path;
    qkv_error *error;
    qkv_status status;
} small_stack;

static void *read_on_stack(void *data) {
    small_stack *const job = data;
    job->status = read_file(job->path, job->error);
    return NULL;
}

/*
 * The heap that glibc reserves for a new thread is most of what a cage allows, so the thread shares
 * the first.
 */
static qkv_status read_on_small_stack(const void *path, qkv_error *error) {
    small_stack job = { .path = path, .error = error, .status = HOSTILE_BROKEN };
    pthread_attr_t attributes;
    pthread_t thread;
    mallopt(M_ARENA_MAX, 1);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    if (pthread_create(&thread, &attributes, read_on_stack, &job) == 0) pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    return job.status;
}

static void test_small_stack(void **state) {
    (void)state;
    char path[512];
    hostile_path(path, "deep.safetensors");
    write_case(path, "a million '['");
    hostile_expect("ST11 a million '[' on a stack of 64 KiB", read_on_small_stack, path,
                   QKV_ERR_FORMAT, "deeper than 4 levels");
    write_case(path, "five levels");
    hostile_expect("ST11 five levels on a stack of 64 KiB", read_on_small_stack, path,
                   QKV_ERR_FORMAT, "deeper than 4 levels");
    write_case(path, "30,000 tensors"); /* sorting must not recurse deeply either */
    hostile_expect("ST11 a valid file on a stack of 64 KiB", read_on_small_stack, path, QKV_OK, "");
    unlink(path);
}

/* ---- ST41: saving over a file in use --------------------------------------------------------- */

static qkv_status write_absent(const void *path, qkv_error *error) {
    float value = 1;
    qkvi_stored_out tensor = { "t", QKVI_F32, 1, { 1 }, &value };
    return qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, error);
}

static void test_atomic_write(void **state) {
    char path[512];
    float got[2], values[2] = { 3, 4 };
    qkvi_stored_out tensor = { "t", QKVI_F32, 1, { 2 }, values };
    qkvi_safetensors *old;
    qkv_error error;
    write_small(hostile_path(path, "atomic.safetensors"));
    assert_int_equal(qkvi_safetensors_open(path, &old, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_read_f32(old, &old->tensors[0], got, &error), QKV_OK);
    assert_true(got[0] == 1.5f); /* who has the old file open keeps it */
    qkvi_safetensors_close(old);
    assert_int_equal(qkvi_safetensors_open(path, &old, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_read_f32(old, &old->tensors[0], got, &error), QKV_OK);
    assert_true(got[0] == 3);
    qkvi_safetensors_close(old);
    unlink(path);
    assert_int_equal(rmdir(*state), 0); /* nothing else is in it */
    assert_int_equal(mkdir(*state, 0755), 0);
    hostile_expect("ST41 a folder that is not there", write_absent,
                   hostile_path(path, "absent/x.safetensors"), QKV_ERR_IO, "cannot create");
    hostile_path(path, "folder");
    assert_int_equal(mkdir(path, 0755), 0);
    hostile_expect("ST41 over a folder", write_absent, path, QKV_ERR_IO, "cannot write");
    assert_int_equal(rmdir(path), 0); /* the temporary file is gone: the folder's own end shows */
}

int main(void) {
    const hostile_family family = { "hostile_safetensors",
                                    "hostile.safetensors",
                                    read_file,
                                    safetensors_cases,
                                    n_safetensors_cases,
                                    NULL,
                                    NULL };
    const struct CMUnitTest others[] = {
        { "ST01 ST28 every length", test_every_length, NULL, NULL, NULL },
        { "ST32 names are bytes", test_names, NULL, NULL, NULL },
        { "ST35 NaN and infinity are read", test_not_finite, NULL, NULL, NULL },
        { "ST37 ST38 files that shrink", test_shrinks, NULL, NULL, NULL },
        { "ST37 files that grow", test_grows, NULL, NULL, NULL },
        { "ST39 no regular files", test_no_regular_files, NULL, NULL, NULL },
        { "ST39 no permission", test_no_permission, NULL, NULL, NULL },
        { "ST11 small stacks", test_small_stack, NULL, NULL, NULL },
        { "ST41 saving over a file in use", test_atomic_write, NULL, NULL, NULL },
        { "ST31 the limit raised", test_raised_limit, NULL, NULL, NULL }, /* last: it takes much */
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
