/*
 * safetensors: files of the reference writer are read right and written byte for byte; hostile
 * files are refused with the class and the words that name what is wrong. ids are those of
 * docs/hostile-inputs.md.
 */
#include <math.h>
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

#include "model/store/safetensors.h"

#define DATA QKV_TEST_DATA "/unit/store_data/"

/* ---- Hostile headers ------------------------------------------------------------------------- */

typedef struct hostile {
    const char *id, *header;
    int data_bytes;
    qkv_status status;
    const char *says;
} hostile;

#define T(inner)            "{\"t\":{" inner "}}"
#define F32(shape, offsets) T("\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets)

static const hostile cases[] = {
    { "ST05", "{}", 0, QKV_OK, "" },
    { "ST05", "", 0, QKV_ERR_FORMAT, "does not start with '{'" },
    { "ST06", " {}", 0, QKV_ERR_FORMAT, "does not start with '{'" },
    { "ST06", "\n{}", 0, QKV_ERR_FORMAT, "does not start with '{'" },
    { "ST07", "{\"\xff\":{}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST07", "{\"\xc0\x80\":{}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST07", "{\"\xed\xa0\x80\":{}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST07", "{\"\\ud800\":{}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST08", "\xef\xbb\xbf{}", 0, QKV_ERR_FORMAT, "does not start with '{'" },
    { "ST09", "{\"\\u0000\":{}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST10", "{\"t\":{\"dtype\":\"F32\"", 0, QKV_ERR_FORMAT, "does not end with '}'" },
    { "ST10", "{\"t\":{\"dtype\":\"F32\",}}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST11", "{\"a\":[[[[1]]]]}", 0, QKV_ERR_FORMAT, "deeper than 4 levels" },
    { "ST12", "{}   ", 0, QKV_OK, "" },
    { "ST12", "{}\n", 0, QKV_ERR_FORMAT, "does not end with '}' and spaces" },
    { "ST12", "{}\t", 0, QKV_ERR_FORMAT, "does not end with '}' and spaces" },
    { "ST12", "{} x}", 0, QKV_ERR_FORMAT, "line 1" },
    { "ST13",
      "{\"t\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
      "\"\\u0074\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}",
      4, QKV_ERR_FORMAT, "duplicate" },
    { "ST14", T("\"dtype\":\"F32\",\"shape\":[],\"shape\":[],\"data_offsets\":[0,4]"), 4,
      QKV_ERR_FORMAT, "duplicate" },
    { "ST15", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, QKV_ERR_FORMAT, "duplicate" },
    { "ST15", "{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, QKV_ERR_FORMAT, "duplicate" },
    { "ST16", "{\"__metadata__\":{\"a\":1}}", 0, QKV_ERR_FORMAT, "__metadata__ is not a string" },
    { "ST16", "{\"__metadata__\":[]}", 0, QKV_ERR_FORMAT, "__metadata__ is not an object" },
    { "ST16", "{\"__metadata__\":null}", 0, QKV_ERR_FORMAT, "__metadata__ is not an object" },
    { "ST17", T("\"shape\":[],\"data_offsets\":[0,4]"), 4, QKV_ERR_FORMAT, "dtype is missing" },
    { "ST17", T("\"dtype\":\"F32\",\"data_offsets\":[0,4]"), 4, QKV_ERR_FORMAT,
      "shape is missing" },
    { "ST17", T("\"dtype\":\"F32\",\"shape\":[]"), 4, QKV_ERR_FORMAT, "data_offsets is missing" },
    { "ST17", "{\"t\":3}", 0, QKV_ERR_FORMAT, "tensor 't': is not an object" },
    { "ST18", T("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":1"), 4, QKV_ERR_FORMAT,
      "unknown field 'x'" },
    { "ST19", T("\"dtype\":\"F31\",\"shape\":[],\"data_offsets\":[0,4]"), 4, QKV_ERR_FORMAT,
      "unknown dtype 'F31'" },
    { "ST19", T("\"dtype\":\"f32\",\"shape\":[],\"data_offsets\":[0,4]"), 4, QKV_ERR_FORMAT,
      "unknown dtype 'f32'" },
    { "ST19", T("\"dtype\":\"F8_E4M3\",\"shape\":[4],\"data_offsets\":[0,4]"), 4,
      QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E4M3" },
    { "ST19", T("\"dtype\":\"F4\",\"shape\":[2],\"data_offsets\":[0,1]"), 1, QKV_ERR_UNSUPPORTED,
      "unsupported dtype F4" },
    { "ST19", T("\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]"), 8, QKV_ERR_UNSUPPORTED,
      "unsupported dtype C64" },
    { "ST20", F32("[-1]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("[1.0]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("[1e0]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("[\"1\"]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("[true]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("[null]", "[0,4]"), 4, QKV_ERR_FORMAT, "shape[0] is not an integer" },
    { "ST20", F32("null", "[0,4]"), 4, QKV_ERR_FORMAT, "shape is not an array" },
    { "ST20", F32("[-0]", "[0,0]"), 0, QKV_OK, "" },
    { "ST21", F32("[4194305,4194305,211106198978564]", "[0,16]"), 16, QKV_ERR_FORMAT,
      "product of its shape overflows" },
    { "ST21", F32("[4294967296,4294967296]", "[0,0]"), 0, QKV_ERR_FORMAT,
      "product of its shape overflows" },
    { "ST22", F32("[0,9223372036854775807]", "[0,0]"), 0, QKV_ERR_LIMIT, "limit 2^48" },
    { "ST22", F32("[9223372036854775808,0]", "[0,0]"), 0, QKV_ERR_FORMAT, "too big integer" },
    { "ST23", F32("[]", "[0,4]"), 4, QKV_OK, "" },
    { "ST23", F32("[1,1,1,1,1,1,1,1]", "[0,4]"), 4, QKV_OK, "" },
    { "ST23", F32("[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4, QKV_ERR_LIMIT, "more than 8 entries" },
    { "ST24", F32("[0]", "[4,0]"), 4, QKV_ERR_FORMAT, "end before they begin" },
    { "ST24", F32("[1]", "[-4,0]"), 4, QKV_ERR_FORMAT, "data_offsets[0] is not an integer" },
    { "ST24", F32("[1]", "[0,9223372036854775808]"), 4, QKV_ERR_FORMAT, "too big integer" },
    { "ST24", F32("[1]", "[4]"), 4, QKV_ERR_FORMAT, "does not have two entries" },
    { "ST24", F32("[1]", "[0,4,4]"), 4, QKV_ERR_FORMAT, "does not have two entries" },
    { "ST24", F32("[1]", "[0,4.0]"), 4, QKV_ERR_FORMAT, "data_offsets[1] is not an integer" },
    { "ST25",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
      12, QKV_ERR_FORMAT, "tensor 'b': overlaps" },
    { "ST26",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
      12, QKV_ERR_FORMAT, "tensor 'b': leaves a hole" },
    { "ST27", F32("[1]", "[4,8]"), 8, QKV_ERR_FORMAT, "does not begin at 0" },
    { "ST28", F32("[1]", "[0,4]"), 5, QKV_ERR_FORMAT, "5 bytes of data, but its tensors need 4" },
    { "ST29", F32("[1]", "[0,4]"), 3, QKV_ERR_FORMAT, "3 bytes of data, but its tensors need 4" },
    { "ST30", F32("[2]", "[0,4]"), 4, QKV_ERR_FORMAT, "do not fit its shape and dtype" },
    { "ST32",
      "{\"\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"../../x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]},"
      "\"\\u202e\\u0007\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]},"
      "\"\\u00e9\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[12,16]},"
      "\"e\\u0301\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]}}",
      20, QKV_OK, "" },
    { "ST32", "{\"\\u001b[2J\":{}}", 0, QKV_ERR_FORMAT, "tensor '\\x1b[2J': dtype is missing" },
    { "ST33",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[0,0]},"
      "\"c\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,4]}}",
      4, QKV_OK, "" },
    { "ST33",
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
      4, QKV_ERR_FORMAT, "tensor 'b': overlaps" },
};

/* A file in memory: length, header, zeros. */
static uint8_t *make_file(const char *header, size_t header_bytes, size_t data_bytes, size_t *n) {
    *n = 8 + header_bytes + data_bytes;
    uint8_t *const file = calloc(1, *n);
    assert_non_null(file);
    for (int b = 0; b < 8; b++) file[b] = (uint8_t)((uint64_t)header_bytes >> 8 * b);
    memcpy(file + 8, header, header_bytes);
    return file;
}

static void expect(const char *id, const void *bytes, size_t n, qkv_status status,
                   const char *says) {
    qkvi_safetensors *file;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = qkvi_safetensors_open_memory("a file", bytes, n, &file, &error);
    if (got != status || !strstr(error.message, says))
        fail_msg("%s: %s \"%s\", expected %s \"%s\"", id, qkv_status_name(got), error.message,
                 qkv_status_name(status), says);
    assert_true((got == QKV_OK) == (file != NULL));
    if (got != QKV_OK) assert_non_null(strstr(error.message, "a file: "));
    qkvi_safetensors_close(file);
}

static void test_hostile_headers(void **state) {
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        size_t n;
        uint8_t *const file =
            make_file(cases[c].header, strlen(cases[c].header), (size_t)cases[c].data_bytes, &n);
        expect(cases[c].id, file, n, cases[c].status, cases[c].says);
        free(file);
    }
}

/*
 * Every prefix of a valid file is refused, and so is every file with one more byte (ST01, ST10,
 * ST28, ST29).
 */
static void test_every_length(void **state) {
    (void)state;
    static const char header[] = F32("[2,3]", "[0,24]");
    size_t n;
    uint8_t *const file = make_file(header, sizeof header - 1, 24 + 1, &n);
    for (size_t cut = 0; cut < n - 1; cut++) expect("ST01", file, cut, QKV_ERR_FORMAT, "");
    expect("whole", file, n - 1, QKV_OK, "");
    expect("ST28", file, n, QKV_ERR_FORMAT, "25 bytes of data");
    free(file);
}

static void test_header_lengths(void **state) {
    (void)state;
    static const struct {
        const char *id;
        uint64_t length;
        size_t file_bytes;
        qkv_status status;
        const char *says;
    } lengths[] = {
        { "ST02", 100, 64, QKV_ERR_FORMAT, "header length 100 is more than 56" },
        { "ST03", UINT64_MAX, 64, QKV_ERR_FORMAT, "18446744073709551615 is more than 56" },
        { "ST03", UINT64_MAX - 7, 64, QKV_ERR_FORMAT, "is more than 56" },
        { "PyTorch", 0x04034b50, 64, QKV_ERR_FORMAT, "a pickle of PyTorch?" },
        { "PyTorch", 0x5f71287d0280, 64, QKV_ERR_FORMAT, "a pickle of PyTorch?" },
        { "ST04", 100000001, 100000100, QKV_ERR_FORMAT, "is more than 100000000" },
        { "ST04", (16 << 20) + 1, 17 << 20, QKV_ERR_LIMIT, "the limit is 16777216" },
    };
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        uint8_t *const file = calloc(1, lengths[l].file_bytes);
        assert_non_null(file);
        for (int b = 0; b < 8; b++) file[b] = (uint8_t)(lengths[l].length >> 8 * b);
        file[8] = '{';
        expect(lengths[l].id, file, lengths[l].file_bytes, lengths[l].status, lengths[l].says);
        free(file);
    }
}

/* prefix, then piece repeated n times, then suffix: refused by the scan. */
static void expect_repeated(const char *id, const char *prefix, const char *piece, int repeats,
                            const char *suffix, qkv_status status, const char *says) {
    char *header = NULL;
    size_t bytes = 0, n;
    FILE *const out = open_memstream(&header, &bytes);
    fputs(prefix, out);
    for (int r = 0; r < repeats; r++) fputs(piece, out);
    fputs(suffix, out);
    fclose(out);
    uint8_t *const file = make_file(header, bytes, 0, &n);
    expect(id, file, n, status, says);
    free(file);
    free(header);
}

static void test_large_headers(void **state) {
    (void)state;
    expect_repeated("ST04", "{\"__metadata__\":{\"a\":", "{},", 1 << 20, "{}}}", QKV_ERR_LIMIT,
                    "more than 300000 values");
    expect_repeated("ST04", "{\"t\":[", "{},", 1 << 20, "{}]}", QKV_ERR_LIMIT,
                    "more than 8 entries");
    expect_repeated("ST11", "{\"t\":", "[", 1000000, "}", QKV_ERR_FORMAT, "deeper than 4 levels");
    expect_repeated("ST32", "{\"", "n", 1 << 20, "\":{}}", QKV_ERR_LIMIT, "the limit is 65536");
}

static void test_many_tensors(void **state) {
    (void)state;
    static const struct {
        int n;
        qkv_status status;
        const char *says;
    } counts[] = { { 30000, QKV_OK, "" }, { 100000, QKV_ERR_LIMIT, "more than 300000 values" } };
    for (size_t c = 0; c < 2; c++) {
        char *header = NULL;
        size_t bytes = 0, n;
        FILE *const out = open_memstream(&header, &bytes);
        for (int t = 0; t < counts[c].n; t++)
            fprintf(out,
                    "%s\"layer.%d.weight\":{\"dtype\":\"F32\",\"shape\":[1,1],\"data_offsets\":[%d,"
                    "%d]}",
                    t ? "," : "{", t, 4 * t, 4 * t + 4);
        fputc('}', out);
        fclose(out);
        uint8_t *const file = make_file(header, bytes, 4 * (size_t)counts[c].n, &n);
        expect("ST31", file, n, counts[c].status, counts[c].says);
        free(file);
        free(header);
    }
}

/* ---- Files that are none --------------------------------------------------------------------- */

static void expect_path(const char *id, const char *path, const char *says) {
    qkvi_safetensors *file;
    qkv_error error = { QKV_OK, "" };
    const qkv_status got = qkvi_safetensors_open(path, &file, &error);
    if (got != QKV_ERR_IO || !strstr(error.message, says))
        fail_msg("%s %s: %s \"%s\", expected QKV_ERR_IO \"%s\"", id, path, qkv_status_name(got),
                 error.message, says);
    assert_null(file);
}

static void in_folder(char path[256], const char *folder, const char *name) {
    snprintf(path, 256, "%s/%s", folder, name);
}

static void test_no_regular_files(void **state) {
    const char *const folder = *state;
    char path[256];
    expect_path("ST39", folder, "Is a directory");
    expect_path("ST39", "/dev/zero", "is not a regular file");
    in_folder(path, folder, "absent");
    expect_path("ST39", path, "No such file");
    in_folder(path, folder, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_path("ST39", path, "is not a regular file");
    unlink(path);
    in_folder(path, folder, "loop");
    assert_int_equal(symlink("loop", path), 0);
    expect_path("ST39", path, "Too many levels");
    unlink(path);
}

static void test_file_that_shrinks(void **state) {
    char path[256];
    qkvi_safetensors *file;
    qkv_error error;
    float values[6];
    int64_t data[6] = { 0 };
    qkvi_stored_out tensor = { "t", QKVI_F32, 2, { 2, 3 }, data };
    in_folder(path, *state, "shrinks.safetensors");
    assert_int_equal(qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_open(path, &file, &error), QKV_OK);
    assert_int_equal(truncate(path, 70), 0);
    assert_int_equal(
        qkvi_safetensors_read_f32(file, qkvi_safetensors_find(file, "t"), values, &error),
        QKV_ERR_IO);
    assert_non_null(strstr(error.message, "became shorter"));
    qkvi_safetensors_close(file);
    unlink(path);
}

/* ---- Valid files ----------------------------------------------------------------------------- */

static int64_t pattern(qkvi_elem type, int64_t i) {
    return type == QKVI_BOOL ? i % 3 == 0 : type >= QKVI_U64 ? i % 7 : i % 7 - 3;
}

static void test_reads_reference_files(void **state) {
    (void)state;
    qkvi_safetensors *file;
    qkv_error error;
    assert_int_equal(qkvi_safetensors_open(DATA "mixed.safetensors", &file, &error), QKV_OK);
    assert_int_equal(file->n_tensors, 16);
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const qkvi_stored *const tensor = &file->tensors[t];
        int64_t integers[16] = { 0 };
        float floats[16];
        char raw[128];
        assert_ptr_equal(qkvi_safetensors_find(file, tensor->name), tensor);
        if (qkvi_elem_is_float(tensor->type)) {
            assert_int_equal(qkvi_safetensors_read_f32(file, tensor, floats, &error), QKV_OK);
        } else {
            assert_int_equal(qkvi_safetensors_read_f32(file, tensor, floats, &error),
                             QKV_ERR_UNSUPPORTED);
            assert_int_equal(qkvi_safetensors_read_raw(file, tensor, raw, &error), QKV_OK);
            assert_int_equal(qkvi_elems_to_i64(tensor->type, raw, tensor->n_elems, integers),
                             tensor->n_elems);
        }
        for (size_t i = 0; i < tensor->n_elems; i++) {
            const int64_t got = qkvi_elem_is_float(tensor->type) ? (int64_t)floats[i] : integers[i];
            assert_int_equal(got, pattern(tensor->type, (int64_t)i));
        }
    }
    assert_null(qkvi_safetensors_find(file, "weight"));
    assert_non_null(qkvi_safetensors_find(file, "T\xc3\xbcre \xe9\x96\x80"));
    qkvi_safetensors_close(file);
}

static char *slurp(const char *path, size_t *n) {
    char *bytes;
    qkv_error error;
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, n, &error), QKV_OK);
    return bytes;
}

/* Reads a file of the reference writer, writes its tensors in another order: the same bytes. */
static void rewrite(const char *folder, const char *reference, const char *key, const char *value) {
    char path[256], *raw[32];
    qkvi_stored_out tensors[32];
    qkvi_safetensors *file;
    qkv_error error;
    size_t n_ours, n_theirs;
    assert_int_equal(qkvi_safetensors_open(reference, &file, &error), QKV_OK);
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const qkvi_stored *const from = &file->tensors[file->n_tensors - 1 - t];
        raw[t] = malloc((size_t)(from->end - from->begin) + 1);
        assert_int_equal(qkvi_safetensors_read_raw(file, from, raw[t], &error), QKV_OK);
        tensors[t] = (qkvi_stored_out){ from->name, from->type, from->rank, { 0 }, raw[t] };
        memcpy(tensors[t].shape, from->shape, sizeof from->shape);
    }
    in_folder(path, folder, "ours.safetensors");
    assert_int_equal(qkvi_safetensors_write(path, tensors, file->n_tensors, key, value, &error),
                     QKV_OK);
    char *const ours = slurp(path, &n_ours), *const theirs = slurp(reference, &n_theirs);
    assert_int_equal(n_ours, n_theirs);
    assert_memory_equal(ours, theirs, n_ours);
    for (int64_t t = 0; t < file->n_tensors; t++) free(raw[t]);
    free(ours);
    free(theirs);
    qkvi_safetensors_close(file);
    unlink(path);
}

static void test_writes_reference_bytes(void **state) {
    rewrite(*state, DATA "mixed.safetensors", NULL, NULL);
    rewrite(*state, DATA "metadata.safetensors", "format", "pt");
    rewrite(*state, DATA "empty.safetensors", NULL, NULL);
}

/*
 * f16 and bf16 by their bits, with subnormals, infinities and NaN; unaligned data (ST34); NaN
 * accepted (ST35).
 */
static void test_half_types(void **state) {
    (void)state;
    static const uint16_t half[] = { 0x0000, 0x8000, 0x0001, 0x03ff, 0x0400, 0x3c00,
                                     0xc000, 0x7bff, 0x7c00, 0xfc00, 0x7e01 };
    static const float as_f16[] = { 0.0f, -0.0f, 0x1p-24f, 0x1.ff8p-15f, 0x1p-14f,
                                    1.0f, -2.0f, 65504.0f, INFINITY,     -INFINITY };
    float values[11];
    qkvi_elems_to_f32(QKVI_F16, half, 11, values);
    assert_memory_equal(values, as_f16, sizeof as_f16);
    assert_true(values[10] != values[10]);
    static const uint16_t brain[] = { 0x3f80, 0xc040, 0x0001, 0x7f80 };
    static const float as_bf16[] = { 1.0f, -3.0f, 0x1p-133f, INFINITY };
    qkvi_elems_to_f32(QKVI_BF16, brain, 4, values);
    assert_memory_equal(values, as_bf16, sizeof as_bf16);
    static const double doubles[] = { 1.0 + 0x1p-24, 1.0 + 3 * 0x1p-24, 1e300 };
    static const float rounded[] = { 1.0f, 1.0f + 0x1p-22f, INFINITY };
    qkvi_elems_to_f32(QKVI_F64, doubles, 3, values);
    assert_memory_equal(values, rounded, sizeof rounded);
}

static void test_unaligned_data(void **state) {
    (void)state;
    static const char header[] = F32("[2]", "[0,8]") " ";
    size_t n;
    qkvi_safetensors *file;
    qkv_error error;
    float values[2];
    const float stored[2] = { 1.5f, NAN };
    uint8_t *const bytes = make_file(header, sizeof header - 1, 8, &n);
    assert_true((n - 8) % 4 != 0);
    memcpy(bytes + n - 8, stored, 8);
    assert_int_equal(qkvi_safetensors_open_memory("m", bytes, n, &file, &error), QKV_OK);
    assert_int_equal(
        qkvi_safetensors_read_f32(file, qkvi_safetensors_find(file, "t"), values, &error), QKV_OK);
    assert_memory_equal(values, stored, 8);
    qkvi_safetensors_close(file);
    free(bytes);
}

/* ST41: who has the old file open keeps it. A failed write leaves nothing behind. */
static void test_atomic_write(void **state) {
    char path[256];
    float values[1] = { 1 };
    qkvi_stored_out tensor = { "t", QKVI_F32, 1, { 1 }, values };
    qkvi_safetensors *old;
    qkv_error error;
    float got;
    in_folder(path, *state, "atomic.safetensors");
    assert_int_equal(qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_open(path, &old, &error), QKV_OK);
    values[0] = 2;
    assert_int_equal(qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error), QKV_OK);
    assert_int_equal(qkvi_safetensors_read_f32(old, &old->tensors[0], &got, &error), QKV_OK);
    assert_true(got == 1.0f);
    qkvi_safetensors_close(old);
    unlink(path);
    assert_int_equal(rmdir(*state), 0); /* nothing else is in it */
    assert_int_equal(mkdir(*state, 0700), 0);
    in_folder(path, *state, "absent/x.safetensors");
    assert_int_equal(qkvi_safetensors_write(path, &tensor, 1, NULL, NULL, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, "absent/x.safetensors: cannot create"));
}

static char folder[] = "/tmp/qkv-store-XXXXXX";

static int make_folder(void **state) {
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state) { return rmdir(*state); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile_headers),        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_header_lengths),         cmocka_unit_test(test_large_headers),
        cmocka_unit_test(test_many_tensors),           cmocka_unit_test(test_no_regular_files),
        cmocka_unit_test(test_file_that_shrinks),      cmocka_unit_test(test_reads_reference_files),
        cmocka_unit_test(test_writes_reference_bytes), cmocka_unit_test(test_half_types),
        cmocka_unit_test(test_unaligned_data),         cmocka_unit_test(test_atomic_write),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
