/* Hostile .safetensors files: see safetensors_cases.h. */
#include "hostile/safetensors_cases.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Makers ---------------------------------------------------------------------------------- */

static void put_length(FILE *out, uint64_t length) {
    for (int b = 0; b < 8; b++) fputc((int)(length >> 8 * b & 255), out);
}

/* `number` zeros. */
static void make_zeros(FILE *out, const hostile_file *file) {
    for (int64_t i = 0; i < file->number; i++) fputc(0, out);
}

/* Length, text, data. */
static void make_header(FILE *out, const hostile_file *file) {
    put_length(out, file->n_text);
    fwrite(file->text, 1, file->n_text, out);
    for (int64_t i = 0; i < file->data_bytes; i++)
        fputc(hostile_byte(8 + file->n_text + (uint64_t)i), out);
}

/* The claim `number` as length, '{', and a file of data_bytes that takes no room on the disk. */
static void make_claim(FILE *out, const hostile_file *file) {
    put_length(out, (uint64_t)file->number);
    fputc('{', out);
    fflush(out);
    if (ftruncate(fileno(out), file->data_bytes) != 0) abort();
}

/* A header that is a repeat, and no data. */
static void make_repeated_header(FILE *out, const hostile_file *file) {
    char *header = NULL;
    size_t n = 0;
    FILE *const memory = open_memstream(&header, &n);
    hostile_make_repeat(memory, file);
    fclose(memory);
    put_length(out, n);
    fwrite(header, 1, n, out);
    free(header);
}

/* Length, text, and per 4 bytes of data a NaN or an infinity in turn. */
static void make_not_finite(FILE *out, const hostile_file *file) {
    const float values[2] = { NAN, -INFINITY };
    put_length(out, file->n_text);
    fwrite(file->text, 1, file->n_text, out);
    for (int64_t i = 0; i < file->data_bytes / 4; i++) fwrite(&values[i % 2], 4, 1, out);
}

/* An entry, of the same length whatever the numbers. */
static int put_entry(char text[160], int64_t number) {
    return snprintf(text, 160,
                    "%c\"layer.%08d.weight\":{\"dtype\":\"F32\",\"shape\":[1,1],"
                    "\"data_offsets\":[%9d,%9d]}",
                    number ? ',' : '{', (int)number, (int)(4 * number), (int)(4 * number + 4));
}

/*
 * The length is that of a header of all tensors, and the file as long as they ask; but no reader
 * comes to what lies beyond MOST of them, so it is left to be zeros that take no room on the disk.
 */
void make_many_tensors(FILE *out, const hostile_file *file) {
    enum { MOST = 200000 };
    char text[160];
    const uint64_t n = (uint64_t)file->number;
    const uint64_t length = n * (uint64_t)put_entry(text, 0) + 1;
    put_length(out, length);
    for (int64_t t = 0; t < file->number && t < MOST; t++)
        fwrite(text, 1, (size_t)put_entry(text, t), out);
    if (file->number <= MOST) fputc('}', out);
    fflush(out);
    if (ftruncate(fileno(out), (off_t)(8 + length + 4 * n)) != 0) abort();
}

/* {"0000000":{},"0000001":{}, …}: what takes the most memory for its values. */
static void make_many_objects(FILE *out, const hostile_file *file) {
    put_length(out, (uint64_t)file->number * 13 + 1);
    for (int64_t t = 0; t < file->number; t++) fprintf(out, "%c\"%07d\":{}", t ? ',' : '{', (int)t);
    fputc('}', out);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

#define HEADER(words)       .make = make_header, HOSTILE_TEXT(words)
#define DATA(n)             .data_bytes = (n)
#define T(inner)            "{\"t\":{" inner "}}"
#define F32(shape, offsets) T("\"dtype\":\"F32\",\"shape\":" shape ",\"data_offsets\":" offsets)
#define NAMED(name, inner)  "\"" name "\":{" inner "}"
#define ONE(name, begin, end)                                                                      \
    NAMED(name, "\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[" begin "," end "]")
#define TWO(name, begin, end)                                                                      \
    NAMED(name, "\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[" begin "," end "]")
#define NONE(name, at)                                                                             \
    NAMED(name, "\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[" at "," at "]")
#define DTYPE(name)                                                                                \
    HEADER(T("\"dtype\":\"" name "\",\"shape\":[8],\"data_offsets\":[0,8]")), DATA(8)
#define REPEATED(...)                                                                              \
    .make = make_repeated_header, .repeat = &(const hostile_repeat) { __VA_ARGS__ }
#define CLAIM(length, bytes) .make = make_claim, .number = (int64_t)(length), DATA(bytes)

const hostile_file safetensors_cases[] = {
    { "ST01", "no bytes", QKV_ERR_FORMAT, "0 bytes are too few", make_zeros, .number = 0,
      .rules = "header-length" },
    { "ST01", "1 byte", QKV_ERR_FORMAT, "1 bytes are too few", make_zeros, .number = 1,
      .rules = "header-length" },
    { "ST01", "2 bytes", QKV_ERR_FORMAT, "2 bytes are too few", make_zeros, .number = 2,
      .rules = "header-length" },
    { "ST01", "3 bytes", QKV_ERR_FORMAT, "3 bytes are too few", make_zeros, .number = 3,
      .rules = "header-length" },
    { "ST01", "4 bytes", QKV_ERR_FORMAT, "4 bytes are too few", make_zeros, .number = 4,
      .rules = "header-length" },
    { "ST01", "5 bytes", QKV_ERR_FORMAT, "5 bytes are too few", make_zeros, .number = 5,
      .rules = "header-length" },
    { "ST01", "6 bytes", QKV_ERR_FORMAT, "6 bytes are too few", make_zeros, .number = 6,
      .rules = "header-length" },
    { "ST01", "7 bytes", QKV_ERR_FORMAT, "7 bytes are too few", make_zeros, .number = 7,
      .rules = "header-length" },

    { "ST02", "a header longer than the file", QKV_ERR_FORMAT, "length 100 is more than 56",
      CLAIM(100, 64), .rules = "header-length" },
    { "ST02", "a header one byte longer than the file", QKV_ERR_FORMAT, "57 is more than 56",
      CLAIM(57, 64), .rules = "header-length" },
    { "ST02", "a zip of PyTorch", QKV_ERR_FORMAT, "a pickle of PyTorch?", CLAIM(0x04034b50, 64),
      .rules = "header-length" },
    { "ST02", "a pickle of PyTorch", QKV_ERR_FORMAT, "a pickle of PyTorch?",
      CLAIM(0x5f71287d0280, 64), .rules = "header-length" },
    { "ST03", "length 2^64 - 1", QKV_ERR_FORMAT, "18446744073709551615 is more than 56",
      CLAIM(UINT64_MAX, 64), .rules = "header-length" },
    { "ST03", "length 2^64 - 8: with the 8 before it, 0", QKV_ERR_FORMAT,
      "18446744073709551608 is more than 56", CLAIM(UINT64_MAX - 7, 64), .rules = "header-length" },
    { "ST03", "length 2^63", QKV_ERR_FORMAT, "9223372036854775808 is more than 56",
      CLAIM((uint64_t)1 << 63, 64), .rules = "header-length" },
    { "ST04", "a header above 100,000,000 bytes", QKV_ERR_FORMAT,
      "length 100000001 is more than 100000000", CLAIM(100000001, 100000100),
      .rules = "header-length" },
    { "ST04", "a header above 16 MiB", QKV_ERR_LIMIT, "length 16777217, the limit is 16777216",
      CLAIM((16 << 20) + 1, 17 << 20) },
    { "ST04", "7 MB of empty objects in the metadata", QKV_ERR_LIMIT, "more than 300000 values",
      REPEATED("{\"__metadata__\":{", "\"a\":{},", "\"b\":{}}}", 1 << 20) },
    { "ST04", "4 MB of empty objects in an array", QKV_ERR_LIMIT, "more than 8 entries",
      REPEATED("{\"t\":[", "{},", "{}]}", 1 << 20), .rules = "!more than 300000 values" },

    { "ST04", "as many empty objects as may be", QKV_ERR_FORMAT, "dtype is missing",
      make_many_objects, .number = 149990, .rules = "missing-field" },
    { "ST04", "a string of 16 MB in the metadata", QKV_OK, "",
      REPEATED("{\"__metadata__\":{\"a\":\"", "0123456789", "\"}}", 1600000), .rules = "" },
    { "ST04", "as many strings as may be in the metadata", QKV_ERR_FORMAT, "duplicate",
      REPEATED("{\"__metadata__\":{\"a\":\"\"",
               ",\"b\":\"0123456789012345678901234567890123456789\"", "}}", 299000),
      .rules = "duplicate-key" },
    { "ST05", "a header of no bytes", QKV_ERR_FORMAT, "does not start with '{'", HEADER(""),
      .rules = "not-json" },
    { "ST05", "no tensors", QKV_OK, "", HEADER("{}"), .rules = "" },
    { "ST06", "a space before the header", QKV_ERR_FORMAT, "does not start with '{'", HEADER(" {}"),
      .rules = "leading-blanks" },
    { "ST06", "a newline before the header", QKV_ERR_FORMAT, "does not start with '{'",
      HEADER("\n{}"), .rules = "leading-blanks" },
    { "ST07", "invalid UTF-8", QKV_ERR_FORMAT, "line 1", HEADER("{\"\xff\":{}}"),
      .rules = "invalid-string,missing-field" },
    { "ST07", "an overlong form", QKV_ERR_FORMAT, "line 1", HEADER("{\"\xc0\x80\":{}}"),
      .rules = "invalid-string,missing-field" },
    { "ST07", "an encoded surrogate", QKV_ERR_FORMAT, "line 1", HEADER("{\"\xed\xa0\x80\":{}}"),
      .rules = "invalid-string,missing-field" },
    { "ST07", "half a pair of surrogates", QKV_ERR_FORMAT, "line 1", HEADER("{\"\\ud800\":{}}"),
      .rules = "invalid-string,missing-field" },
    { "ST08", "a byte order mark", QKV_ERR_FORMAT, "does not start with '{'",
      HEADER("\xef\xbb\xbf{}"), .rules = "byte-order-mark" },
    { "ST09", "a zero byte in a name", QKV_ERR_FORMAT, "line 1", HEADER("{\"a\0b\":{}}"),
      .rules = "invalid-string,missing-field,nul-in-name" },
    { "ST09", "\\u0000 in a name", QKV_ERR_FORMAT, "line 1", HEADER("{\"a\\u0000b\":{}}"),
      .rules = "missing-field,nul-in-name" },
    { "ST10", "JSON cut short", QKV_ERR_FORMAT, "does not end with '}'",
      HEADER("{\"t\":{\"dtype\":\"F32\""), .rules = "not-json" },
    { "ST10", "JSON cut short after a '}'", QKV_ERR_FORMAT, "line 1", HEADER("{\"t\":{}"),
      .rules = "missing-field,not-json" },
    { "ST10", "a comma too many", QKV_ERR_FORMAT, "line 1", HEADER("{\"t\":{\"dtype\":\"F32\",}}"),
      .rules = "not-json" },
    { "ST11", "a million '['", QKV_ERR_FORMAT, "deeper than 4 levels",
      REPEATED("{\"t\":", "[", "}", 1000000), .rules = "too-deep" },
    { "ST11", "five levels", QKV_ERR_FORMAT, "deeper than 4 levels", HEADER("{\"a\":[[[[1]]]]}"),
      .rules = "too-deep" },
    { "ST12", "spaces after the header", QKV_OK, "", HEADER("{}   "), .rules = "" },
    { "ST12", "a newline after the header", QKV_ERR_FORMAT, "does not end with '}' and spaces",
      HEADER("{}\n"), .rules = "after-header" },
    { "ST12", "a tab after the header", QKV_ERR_FORMAT, "does not end with '}' and spaces",
      HEADER("{}\t"), .rules = "after-header" },
    { "ST12", "a zero byte after the header", QKV_ERR_FORMAT, "does not end with '}' and spaces",
      HEADER("{}\0"), .rules = "after-header" },
    { "ST12", "words after the header", QKV_ERR_FORMAT, "line 1", HEADER("{} x}"),
      .rules = "after-header" },
    { "ST12", "a second header", QKV_ERR_FORMAT, "line 1", HEADER("{}{}"),
      .rules = "after-header" },

    { "ST13", "a name twice", QKV_ERR_FORMAT, "duplicate",
      HEADER("{" ONE("t", "0", "4") "," ONE("t", "0", "4") "}"), DATA(4),
      .rules = "duplicate-key" },
    { "ST13", "a name twice, once as \\u0074", QKV_ERR_FORMAT, "duplicate",
      HEADER("{" ONE("t", "0", "4") "," ONE("\\u0074", "0", "4") "}"), DATA(4),
      .rules = "duplicate-key" },
    { "ST14", "two shapes", QKV_ERR_FORMAT, "duplicate",
      HEADER(T("\"dtype\":\"F32\",\"shape\":[],\"shape\":[],\"data_offsets\":[0,4]")), DATA(4),
      .rules = "duplicate-key" },
    { "ST15", "two __metadata__", QKV_ERR_FORMAT, "duplicate",
      HEADER("{\"__metadata__\":{},\"__metadata__\":{}}"), .rules = "duplicate-key" },
    { "ST15", "a key of the metadata twice", QKV_ERR_FORMAT, "duplicate",
      HEADER("{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}"), .rules = "duplicate-key" },
    { "ST16", "a number in the metadata", QKV_ERR_FORMAT, "__metadata__ is not a string",
      HEADER("{\"__metadata__\":{\"a\":1}}"), .rules = "metadata" },
    { "ST16", "metadata that is a list", QKV_ERR_FORMAT, "__metadata__ is not an object",
      HEADER("{\"__metadata__\":[]}"), .rules = "metadata" },
    { "ST16", "metadata that is null", QKV_ERR_FORMAT, "__metadata__ is not an object",
      HEADER("{\"__metadata__\":null}"), .rules = "metadata" },
    { "ST17", "no dtype", QKV_ERR_FORMAT, "tensor 't': dtype is missing",
      HEADER(T("\"shape\":[],\"data_offsets\":[0,4]")), DATA(4), .rules = "missing-field" },
    { "ST17", "no shape", QKV_ERR_FORMAT, "tensor 't': shape is missing",
      HEADER(T("\"dtype\":\"F32\",\"data_offsets\":[0,4]")), DATA(4), .rules = "missing-field" },
    { "ST17", "no data_offsets", QKV_ERR_FORMAT, "tensor 't': data_offsets is missing",
      HEADER(T("\"dtype\":\"F32\",\"shape\":[]")), DATA(4), .rules = "missing-field" },
    { "ST17", "a tensor that is a number", QKV_ERR_FORMAT, "tensor 't': is not an object",
      HEADER("{\"t\":3}"), .rules = "not-a-tensor" },
    { "ST18", "an unknown field", QKV_ERR_FORMAT, "tensor 't': unknown field 'x'",
      HEADER(T("\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"x\":1")), DATA(4),
      .rules = "unknown-field" },

    { "ST19", "dtype F31", QKV_ERR_FORMAT, "unknown dtype 'F31'", DTYPE("F31"), .rules = "dtype" },
    { "ST19", "dtype f32", QKV_ERR_FORMAT, "unknown dtype 'f32'", DTYPE("f32"), .rules = "dtype" },
    { "ST19", "a dtype that is a number", QKV_ERR_FORMAT, "dtype is not a string",
      HEADER(T("\"dtype\":32,\"shape\":[],\"data_offsets\":[0,4]")), DATA(4), .rules = "dtype" },
    { "ST19", "dtype C64", QKV_ERR_UNSUPPORTED, "unsupported dtype C64", DTYPE("C64"),
      .rules = "dtype" },
    { "ST19", "dtype F4", QKV_ERR_UNSUPPORTED, "unsupported dtype F4", DTYPE("F4"),
      .rules = "dtype" },
    { "ST19", "dtype F6_E2M3", QKV_ERR_UNSUPPORTED, "unsupported dtype F6_E2M3", DTYPE("F6_E2M3"),
      .rules = "dtype" },
    { "ST19", "dtype F6_E3M2", QKV_ERR_UNSUPPORTED, "unsupported dtype F6_E3M2", DTYPE("F6_E3M2"),
      .rules = "dtype" },
    { "ST19", "dtype F8_E4M3", QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E4M3", DTYPE("F8_E4M3"),
      .rules = "dtype" },
    { "ST19", "dtype F8_E5M2", QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E5M2", DTYPE("F8_E5M2"),
      .rules = "dtype" },
    { "ST19", "dtype F8_E8M0", QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E8M0", DTYPE("F8_E8M0"),
      .rules = "dtype" },
    { "ST19", "dtype F8_E4M3FNUZ", QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E4M3FNUZ",
      DTYPE("F8_E4M3FNUZ"), .rules = "dtype" },
    { "ST19", "dtype F8_E5M2FNUZ", QKV_ERR_UNSUPPORTED, "unsupported dtype F8_E5M2FNUZ",
      DTYPE("F8_E5M2FNUZ"), .rules = "dtype" },

    { "ST20", "a dimension -1", QKV_ERR_FORMAT, "shape[0] is not an integer",
      HEADER(F32("[-1]", "[0,4]")), DATA(4), .rules = "shape" },
    { "ST20", "a dimension 2.0", QKV_ERR_FORMAT, "shape[0] is not an integer",
      HEADER(F32("[2.0]", "[0,8]")), DATA(8), .rules = "shape" },
    { "ST20", "a dimension 1e3", QKV_ERR_FORMAT, "shape[0] is not an integer",
      HEADER(F32("[1e3]", "[0,4000]")), DATA(4000), .rules = "shape" },
    { "ST20", "a dimension \"1\"", QKV_ERR_FORMAT, "shape[0] is not an integer",
      HEADER(F32("[\"1\"]", "[0,4]")), DATA(4), .rules = "shape" },
    { "ST20", "a dimension true", QKV_ERR_FORMAT, "shape[0] is not an integer",
      HEADER(F32("[true]", "[0,4]")), DATA(4), .rules = "shape" },
    { "ST20", "a dimension null", QKV_ERR_FORMAT, "shape[1] is not an integer",
      HEADER(F32("[1,null]", "[0,4]")), DATA(4), .rules = "shape" },
    { "ST20", "a shape null", QKV_ERR_FORMAT, "shape is not an array", HEADER(F32("null", "[0,4]")),
      DATA(4), .rules = "shape" },
    { "ST20", "a dimension -0", QKV_OK, "", HEADER(F32("[-0]", "[0,0]")), .rules = "" },
    { "ST21", "a product that wraps to 4", QKV_ERR_FORMAT, "product of its shape overflows",
      HEADER(F32("[4194305,4194305,211106198978564]", "[0,16]")), DATA(16), .rules = "shape" },
    { "ST21", "a product that wraps to 0", QKV_ERR_FORMAT, "product of its shape overflows",
      HEADER(F32("[4294967296,4294967296]", "[0,0]")), .rules = "shape" },
    { "ST21", "a product that overflows by its type's width", QKV_ERR_FORMAT,
      "product of its shape overflows", HEADER(F32("[4294967296,1073741824]", "[0,0]")),
      .rules = "shape" },
    { "ST22", "2^63 - 1 after a 0", QKV_ERR_LIMIT, "limit 2^48",
      HEADER(F32("[0,9223372036854775807]", "[0,0]")), .rules = "shape" },
    { "ST22", "2^63 - 1 before a 0", QKV_ERR_LIMIT, "limit 2^48",
      HEADER(F32("[9223372036854775807,0]", "[0,0]")), .rules = "shape" },
    { "ST22", "2^63 before a 0", QKV_ERR_FORMAT, "too big integer",
      HEADER(F32("[9223372036854775808,0]", "[0,0]")), .rules = "not-json" },
    { "ST22", "2^48 before a 0", QKV_OK, "", HEADER(F32("[281474976710656,0]", "[0,0]")),
      .rules = "" },
    { "ST23", "rank 0", QKV_OK, "", HEADER(F32("[]", "[0,4]")), DATA(4), .rules = "" },
    { "ST23", "rank 8", QKV_OK, "", HEADER(F32("[1,1,1,1,1,1,1,1]", "[0,4]")), DATA(4),
      .rules = "" },
    { "ST23", "rank 9", QKV_ERR_LIMIT, "more than 8 entries",
      HEADER(F32("[1,1,1,1,1,1,1,1,1]", "[0,4]")), DATA(4), .rules = "shape" },
    { "ST24", "offsets reversed", QKV_ERR_FORMAT, "end before they begin",
      HEADER(F32("[0]", "[4,0]")), DATA(4), .rules = "offsets" },
    { "ST24", "an offset -4", QKV_ERR_FORMAT, "data_offsets[0] is not an integer",
      HEADER(F32("[1]", "[-4,0]")), DATA(4), .rules = "offsets" },
    { "ST24", "an offset 2^63", QKV_ERR_FORMAT, "too big integer",
      HEADER(F32("[1]", "[0,9223372036854775808]")), DATA(4), .rules = "not-json" },
    { "ST24", "an offset 2^64", QKV_ERR_FORMAT, "too big integer",
      HEADER(F32("[1]", "[18446744073709551616,4]")), DATA(4), .rules = "not-json" },
    { "ST24", "offsets up to 2^63 - 1", QKV_ERR_FORMAT, "do not fit its shape and dtype",
      HEADER(F32("[1]", "[0,9223372036854775807]")), DATA(4), .rules = "size,missing-bytes" },
    { "ST24", "one offset", QKV_ERR_FORMAT, "does not have two entries", HEADER(F32("[1]", "[4]")),
      DATA(4), .rules = "offsets" },
    { "ST24", "three offsets", QKV_ERR_FORMAT, "does not have two entries",
      HEADER(F32("[1]", "[0,4,4]")), DATA(4), .rules = "offsets" },
    { "ST24", "an offset 4.0", QKV_ERR_FORMAT, "data_offsets[1] is not an integer",
      HEADER(F32("[1]", "[0,4.0]")), DATA(4), .rules = "offsets" },
    { "ST25", "two tensors that overlap", QKV_ERR_FORMAT, "tensor 'b': overlaps",
      HEADER("{" TWO("a", "0", "8") "," TWO("b", "4", "12") "}"), DATA(12), .rules = "overlap" },
    { "ST26", "a hole", QKV_ERR_FORMAT, "tensor 'b': leaves a hole",
      HEADER("{" ONE("a", "0", "4") "," ONE("b", "8", "12") "}"), DATA(12), .rules = "hole" },
    { "ST27", "bytes before the first tensor", QKV_ERR_FORMAT, "does not begin at 0",
      HEADER(F32("[1]", "[4,8]")), DATA(8), .rules = "not-at-0" },
    { "ST28", "a byte after the last tensor", QKV_ERR_FORMAT,
      "5 bytes of data, but its tensors need 4", HEADER(F32("[1]", "[0,4]")), DATA(5),
      .rules = "trailing-bytes" },
    { "ST28", "a file after the last tensor", QKV_ERR_FORMAT,
      "204 bytes of data, but its tensors need 4", HEADER(F32("[1]", "[0,4]")), DATA(204),
      .rules = "trailing-bytes" },
    { "ST28", "bytes and no tensor", QKV_ERR_FORMAT, "8 bytes of data, but its tensors need 0",
      HEADER("{}"), DATA(8), .rules = "trailing-bytes" },
    { "ST29", "a byte missing", QKV_ERR_FORMAT, "3 bytes of data, but its tensors need 4",
      HEADER(F32("[1]", "[0,4]")), DATA(3), .rules = "missing-bytes" },
    { "ST29", "all bytes missing", QKV_ERR_FORMAT, "0 bytes of data, but its tensors need 4",
      HEADER(F32("[1]", "[0,4]")), .rules = "missing-bytes" },
    { "ST30", "fewer bytes than the shape", QKV_ERR_FORMAT, "do not fit its shape and dtype",
      HEADER(F32("[2]", "[0,4]")), DATA(4), .rules = "size" },
    { "ST30", "more bytes than the shape", QKV_ERR_FORMAT, "do not fit its shape and dtype",
      HEADER(F32("[1]", "[0,8]")), DATA(8), .rules = "size" },
    { "ST30", "the bytes of another type", QKV_ERR_FORMAT, "do not fit its shape and dtype",
      HEADER(T("\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,4]")), DATA(4),
      .rules = "size" },

    { "ST31", "30,000 tensors", QKV_OK, "", make_many_tensors, .number = 30000, .rules = "" },
    { "ST31", "100,000 tensors", QKV_ERR_LIMIT, "the limit", make_many_tensors, .number = 100000 },
    { "ST31", "1,000,000 tensors", QKV_ERR_LIMIT, "the limit is 16777216", make_many_tensors,
      .number = 1000000 },
    { "ST31", "10,000,000 tensors", QKV_ERR_FORMAT, "is more than 100000000", make_many_tensors,
      .number = 10000000, .rules = "header-length" },
    { "ST32", "names that are empty, paths, invisible, or equal once normalised", QKV_OK, "",
      HEADER("{" ONE("", "0", "4") "," ONE("../../x", "4", "8") "," ONE(
          "/etc/passwd", "8",
          "12") "," ONE("\\u202e\\u0007", "12",
                        "16") "," ONE("\\u00e9", "16", "20") "," ONE("e\\u0301", "20", "24") "}"),
      DATA(24), .rules = "empty-name,invisible-character,control-character,equal-names" },
    { "ST32", "control characters in the name of a tensor that is refused", QKV_ERR_FORMAT,
      "tensor '\\x1b[2J': dtype is missing", HEADER("{\"\\u001b[2J\":{}}"),
      .rules = "missing-field,control-character" },
    { "ST32", "a name of 64 KiB", QKV_OK, "",
      REPEATED("{\"", "n", "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}", 1 << 16),
      .rules = "" },
    { "ST32", "a name of 1 MiB", QKV_ERR_LIMIT, "the limit is 65536",
      REPEATED("{\"", "n", "\":{}}", 1 << 20), .rules = "missing-field,long-name" },
    { "ST33", "empty tensors where others begin and end", QKV_OK, "",
      HEADER(
          "{" ONE("a", "0", "4") "," NONE("b", "0") "," NONE("c", "4") "," ONE("d", "4", "8") "}"),
      DATA(8), .rules = "" },
    { "ST33", "an empty tensor inside another", QKV_ERR_FORMAT, "tensor 'b': overlaps",
      HEADER("{" ONE("a", "0", "4") "," NONE("b", "2") "}"), DATA(4),
      .rules = "overlap,unaligned-tensor" },
    { "ST33", "two tensors on the same bytes", QKV_ERR_FORMAT, "tensor 'b': overlaps",
      HEADER("{" ONE("a", "0", "4") "," ONE("b", "0", "4") "}"), DATA(4), .rules = "overlap" },
    { "ST34", "data that is not aligned", QKV_OK, "", HEADER(F32("[1]", "[0,4]") " "), DATA(4),
      .rules = "" },
    { "ST35", "a NaN and an infinity", QKV_OK, "", .make = make_not_finite,
      HOSTILE_TEXT("{" ONE("t", "0", "4") "," ONE("u", "4", "8") "}"), DATA(8),
      .rules = "not-finite" },
};

const size_t n_safetensors_cases = sizeof safetensors_cases / sizeof *safetensors_cases;
