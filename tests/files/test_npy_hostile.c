/*
 * Hostile .npy files (ids of docs/hostile-inputs.md), each read in a cage. Files that numpy wrote
 * are in test_store_npy.c.
 */
#include "hostile/cage.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qkv/files.h"

/* ---- Makers ---------------------------------------------------------------------------------- */

static void put_start(FILE *out, int version, uint64_t n) {
    fwrite("\x93NUMPY", 1, 6, out);
    fputc(version, out);
    fputc(0, out);
    for (int b = 0; b < (version == 1 ? 2 : 4); b++) fputc((int)(n >> 8 * b & 255), out);
}

static void put_version(FILE *out, const hostile_file *file, int version) {
    put_start(out, version, file->number ? (uint64_t)file->number : file->n_text);
    fwrite(file->text, 1, file->n_text, out);
    for (int64_t i = 0; i < file->data_bytes; i++) fputc((int)(i + 1), out);
}

/* Magic, version, length (number, if it is not the header's own), header, bytes 1, 2, 3 … */
static void make_1(FILE *out, const hostile_file *file) { put_version(out, file, 1); }
static void make_2(FILE *out, const hostile_file *file) { put_version(out, file, 2); }
static void make_3(FILE *out, const hostile_file *file) { put_version(out, file, 3); }
static void make_9(FILE *out, const hostile_file *file) { put_version(out, file, 9); }

/* A header of `number` bytes, most of them blanks, and data. */
static void make_long_header(FILE *out, const hostile_file *file) {
    put_start(out, 2, (uint64_t)file->number);
    fwrite(file->text, 1, file->n_text, out);
    for (int64_t i = (int64_t)file->n_text; i < file->number; i++) fputc(' ', out);
    for (int64_t i = 0; i < file->data_bytes; i++) fputc((int)(i + 1), out);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define F4(shape)   "{'descr': '<f4', 'fortran_order': False, 'shape': " shape ", }"
#define TYPE(descr) "{'descr': " descr ", 'fortran_order': False, 'shape': (2,), }"
#define V1(header)  .make = make_1, HOSTILE_TEXT(header)
#define V2(header)  .make = make_2, HOSTILE_TEXT(header)
#define V3(header)  .make = make_3, HOSTILE_TEXT(header)
#define DATA(n)     .data_bytes = (n)

static const hostile_file cases[] = {
    { "NP01", "version 1", QKV_OK, "", V1(F4("(2,)")), DATA(8) },
    { "NP01", "version 2", QKV_OK, "", V2(F4("(2,)")), DATA(8) },
    { "NP01", "version 3", QKV_OK, "", V3(F4("(2,)")), DATA(8) },
    { "NP01", "version 9", QKV_ERR_UNSUPPORTED, "npy version 9.0 is not supported", make_9,
      HOSTILE_TEXT(F4("(2,)")), DATA(8) },
    { "NP01", "no bytes", QKV_ERR_FORMAT, "is not a .npy file", hostile_make_text,
      HOSTILE_TEXT("") },
    { "NP01", "wrong magic", QKV_ERR_FORMAT, "is not a .npy file", hostile_make_text,
      HOSTILE_TEXT("\x93NUMPI\1\0\0\0") },
    { "NP01", "a zip", QKV_ERR_FORMAT, "is not a .npy file", hostile_make_text,
      HOSTILE_TEXT("PK\3\4                ") },
    { "NP01", "magic and nothing else", QKV_ERR_FORMAT, "is not a .npy file", hostile_make_text,
      HOSTILE_TEXT("\x93NUMPY\1\0") },
    { "NP02", "a header longer than the file", QKV_ERR_FORMAT, "npy header of 60000 bytes in",
      V1(F4("(2,)")), .number = 60000, DATA(8) },
    { "NP02", "a header of 2^32 - 1 bytes", QKV_ERR_FORMAT, "npy header of 4294967295 bytes in",
      V2(F4("(2,)")), .number = 0xffffffff, DATA(8) },
    { "NP02", "a header of 64 KiB", QKV_OK, "", make_long_header, HOSTILE_TEXT(F4("(2,)")),
      .number = 65536, DATA(8) },
    { "NP02", "a header above 64 KiB", QKV_ERR_LIMIT, "the limit is 65536", make_long_header,
      HOSTILE_TEXT(F4("(2,)")), .number = 65537, DATA(8) },

    { "NP03", "double quotes, keys in another order", QKV_OK, "",
      V1("{\"shape\":(2,),\"descr\":\"<f4\",\"fortran_order\":False}"), DATA(8) },
    { "NP03", "blanks and trailing commas", QKV_OK, "",
      V1("{ 'shape' : ( 2 , ) , 'fortran_order':False ,'descr':'<f4' , } \n"), DATA(8) },
    { "NP03", "rank 0", QKV_OK, "", V1(F4("()")), DATA(4) },
    { "NP03", "(3,)", QKV_OK, "", V1(F4("(3,)")), DATA(12) },
    { "NP03", "rank 2", QKV_OK, "", V1(F4("(1, 2)")), DATA(8) },
    { "NP03", "rank 2 with a trailing comma", QKV_OK, "", V1(F4("(1, 2,)")), DATA(8) },
    { "NP03b", "a key too many", QKV_ERR_FORMAT, "a key is unknown or there twice",
      V1(F4("(2,), 'x': 1")), DATA(8) },
    { "NP03b", "a key twice", QKV_ERR_FORMAT, "a key is unknown or there twice",
      V1(F4("(2,), 'shape': (2,)")), DATA(8) },
    { "NP03b", "a key missing", QKV_ERR_FORMAT, "a key is missing",
      V1("{'descr': '<f4', 'shape': (2,), }"), DATA(8) },
    { "NP03b", "a shape that is no tuple", QKV_ERR_FORMAT, "shape is a number, not a tuple",
      V1(F4("(2)")), DATA(8) },
    { "NP03b", "a tuple in a tuple", QKV_ERR_FORMAT, "a dimension is not an integer",
      V1(F4("((2,),)")), DATA(8) },
    { "NP03b", "a comma missing", QKV_ERR_FORMAT, "a comma is missing in shape", V1(F4("(2 2)")),
      DATA(16) },
    { "NP03b", "a comma alone", QKV_ERR_FORMAT, "a dimension is not an integer", V1(F4("(,)")),
      DATA(4) },
    { "NP03b", "2L in version 1", QKV_OK, "", V1(F4("(2L,)")), DATA(8) },
    { "NP03b", "2L in version 2", QKV_ERR_FORMAT, "a comma is missing in shape", V2(F4("(2L,)")),
      DATA(8) },
    { "NP03b", "a comment", QKV_ERR_FORMAT, "something follows the dict", V1(F4("(2,)") " # x"),
      DATA(8) },
    { "NP03b", "an escape", QKV_ERR_FORMAT, "has a backslash", V1(TYPE("'<f\\x34'")), DATA(8) },
    { "NP03b", "a prefix of a string", QKV_ERR_FORMAT, "no string", V1(TYPE("u'<f4'")), DATA(8) },
    { "NP03b", "an unfinished string", QKV_ERR_FORMAT, "a string is unfinished",
      V1("{'descr': '<f4"), DATA(8) },
    { "NP03b", "a header of no bytes", QKV_ERR_FORMAT, "it is not a dict", V1(""), DATA(8) },
    { "NP03b", "calls instead of values", QKV_ERR_FORMAT, "a dimension is not an integer",
      V1(F4("(__import__('os').abort(),)")), DATA(8) },

    { "NP04", "Fortran order", QKV_OK, "",
      V1("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }"), DATA(24) },
    { "NP04", "an order that is a number", QKV_ERR_FORMAT, "fortran_order is not True or False",
      V1("{'descr': '<f4', 'fortran_order': 0, 'shape': (2,), }"), DATA(8) },
    { "NP05", "big-endian floats", QKV_OK, "", V1(TYPE("'>f4'")), DATA(8) },
    { "NP05", "halves", QKV_OK, "", V1(TYPE("'<f2'")), DATA(4) },
    { "NP05b", "objects: a pickle", QKV_ERR_UNSUPPORTED, "npy type |O is not supported",
      V1(TYPE("'|O'")), DATA(8) },
    { "NP05b", "structures", QKV_ERR_UNSUPPORTED, "'structured'", V1(TYPE("[('a', '<f4')]")),
      DATA(8) },
    { "NP05b", "void: bf16 of ml_dtypes", QKV_ERR_UNSUPPORTED, "npy type <V2 is not supported",
      V1(TYPE("'<V2'")), DATA(4) },
    { "NP05b", "complex numbers", QKV_ERR_UNSUPPORTED, "npy type <c8 is not supported",
      V1(TYPE("'<c8'")), DATA(16) },
    { "NP05b", "a type that would move the cursor", QKV_ERR_UNSUPPORTED, "npy type <\\x1b[2J",
      V1(TYPE("'<\x1b[2J'")), DATA(8) },
    { "NP05b", "no byte order", QKV_ERR_FORMAT, "descr has no byte order", V1(TYPE("'f4'")),
      DATA(8) },

    { "NP06", "a product above 2^64", QKV_ERR_FORMAT, "claims more than 2^64",
      V1(F4("(4294967296, 4294967296, 4)")) },
    { "NP06", "a product that wraps to 4", QKV_ERR_FORMAT, "claims more than 2^64",
      V1(F4("(4194305, 4194305, 211106198978564)")), DATA(16) },
    { "NP06", "2^63", QKV_ERR_FORMAT, "above 2^63", V1(F4("(9223372036854775808,)")) },
    { "NP06", "above 2^64", QKV_ERR_FORMAT, "above 2^63", V1(F4("(99999999999999999999999999,)")) },
    { "NP06", "a dimension -2", QKV_ERR_FORMAT, "a dimension is not an integer of at least 0",
      V1(F4("(-2,)")), DATA(8) },
    { "NP06", "data short", QKV_ERR_FORMAT, "claims 8 bytes of data, 7 are there", V1(F4("(2,)")),
      DATA(7) },
    { "NP06", "data long", QKV_ERR_FORMAT, "claims 8 bytes of data, 9 are there", V1(F4("(2,)")),
      DATA(9) },
    { "NP06", "2^63 - 1 beside a 0", QKV_ERR_LIMIT, "limit 2^48",
      V1(F4("(0, 9223372036854775807)")) },
    { "NP06", "rank 8", QKV_OK, "", V1(F4("(1,1,1,1,1,1,1,1)")), DATA(4) },
    { "NP06", "rank 9", QKV_ERR_LIMIT, "more than 8 dimensions", V1(F4("(1,1,1,1,1,1,1,1,1)")),
      DATA(4) },
    { "NP07", "34 GB claimed, 80 bytes there", QKV_ERR_FORMAT, "80 are there",
      V1("{'descr': '<f8', 'fortran_order': False, 'shape': (65536, 65536), }"), DATA(80) },
    { "NP08", "two rows", QKV_OK, "", V1(F4("(2, 3)")), DATA(24) },
    { "NP08", "no rows", QKV_OK, "", V1(F4("(0, 3)")) },
    { "NP08", "rows of nothing", QKV_OK, "", V1(F4("(2, 0)")) },
    { "NP08", "a byte of the last row is not there", QKV_ERR_FORMAT,
      "claims 24 bytes of data, 23 are there", V1(F4("(2, 3)")), DATA(23) },
    { "NP08", "rows of 2^62 bytes", QKV_ERR_FORMAT, "8 are there",
      V1(F4("(1, 2, 576460752303423488)")), DATA(8) },
};

/* ---- Reading --------------------------------------------------------------------------------- */

/* Of a third of the rows: what is refused whole is refused, and no array is left. */
static bool part_agrees(const char *path, int64_t part, qkv_status whole) {
    qkv_array *array = (qkv_array *)1;
    int64_t rows[2];
    qkv_error error = { QKV_OK, "" };
    const qkv_status status =
        qkv_array_read_part(path, QKV_ARRAY_F32, part, 3, &array, rows, &error);
    if (status == QKV_OK) {
        qkv_array_free(array);
        return whole == QKV_OK;
    }
    if (array || !*error.message) return false;
    return status == whole || status == QKV_ERR_SHAPE || status == QKV_ERR_UNSUPPORTED;
}

static qkv_status read_npy(const char *path, qkv_error *error) {
    qkv_array *array = (qkv_array *)1;
    const qkv_status status = qkv_array_read(path, QKV_ARRAY_F32, &array, error);
    if (status != QKV_OK && array) return HOSTILE_BROKEN;
    qkv_array_free(array);
    for (int64_t part = 0; part < 3; part++)
        if (!part_agrees(path, part, status)) return HOSTILE_BROKEN;
    return status;
}

/* What is accepted is read right: bytes 1, 2, 3 … as each type, order and byte order. */
static void test_values(void **state) {
    (void)state;
    static const struct {
        const char *what;
        size_t at[6]; /* the first byte of each element */
        int n, is_swapped, width;
    } rows[] = {
        { "version 1", { 0, 4 }, 2, 0, 4 },
        { "2L in version 1", { 0, 4 }, 2, 0, 4 },
        { "Fortran order", { 0, 8, 16, 4, 12, 20 }, 6, 0, 4 },
        { "big-endian floats", { 0, 4 }, 2, 1, 4 },
        { "halves", { 0, 2 }, 2, 0, 2 },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        const hostile_file *file = cases;
        char path[512];
        qkv_array *array;
        qkv_error error;
        while (strcmp(file->what, rows[r].what) != 0) file++;
        FILE *const out = fopen(hostile_path(path, "values.npy"), "wb");
        assert_non_null(out);
        file->make(out, file);
        fclose(out);
        if (qkv_array_read(path, QKV_ARRAY_F32, &array, &error)) fail_msg("%s", error.message);
        assert_int_equal(array->n_elems, rows[r].n);
        for (int i = 0; i < rows[r].n; i++) {
            uint32_t bits = 0;
            float expected;
            for (int b = 0; b < rows[r].width; b++) {
                const int place = rows[r].is_swapped ? rows[r].width - 1 - b : b;
                bits |= (uint32_t)(rows[r].at[i] + (size_t)b + 1) << 8 * place;
            }
            if (rows[r].width == 2) /* both halves are subnormal or small: 2^(e-25) (1024 + m) */
                expected =
                    (float)(1024 + (bits & 1023)) / 1024 * (float)(1 << (bits >> 10)) / 32768;
            else
                memcpy(&expected, &bits, 4);
            if (rows[r].width == 2 && bits >> 10 == 0) expected = (float)bits / 16777216;
            assert_true(((const float *)array->data)[i] == expected);
        }
        qkv_array_free(array);
        unlink(path);
    }
}

/* NP01, NP02, NP06: every beginning of a valid file is refused. */
static void test_every_length(void **state) {
    (void)state;
    char path[512];
    const hostile_file *const file = &cases[0];
    hostile_path(path, "cut.npy");
    for (int64_t cut = 0;; cut++) {
        FILE *const out = fopen(path, "wb");
        file->make(out, file);
        const int64_t whole = ftell(out);
        fclose(out);
        assert_int_equal(truncate(path, cut), 0);
        qkv_error error = { QKV_OK, "" };
        const qkv_status status = read_npy(path, &error);
        unlink(path);
        if (cut == whole) {
            assert_int_equal(status, QKV_OK);
            return;
        }
        assert_int_equal(status, QKV_ERR_FORMAT);
        assert_non_null(strstr(error.message, "cut.npy: "));
    }
}

int main(void) {
    const hostile_family family = {
        "hostile_npy", "hostile.npy", read_npy, cases, sizeof cases / sizeof *cases, NULL, NULL
    };
    const struct CMUnitTest others[] = {
        { "NP03 NP04 NP05 values", test_values, NULL, NULL, NULL },
        { "NP06 every length", test_every_length, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
