/*
 * Hostile tables of keys and values (ids of docs/hostile-inputs.md), each read in a cage. Of a
 * refusal line and column are checked, too.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qkv/files.h"

#define CSV      HOSTILE_WHOLE
#define REPEATED HOSTILE_REPEATED

static const hostile_file cases[] = {
    { "TB01", "a table", QKV_OK, "", CSV("apple,1\nplum,2\n") },
    { "TB01", "no newline at the end", QKV_OK, "", CSV("apple,1\nplum,2") },
    { "TB01", "CRLF and a byte order mark", QKV_OK, "",
      CSV("\xef\xbb\xbf"
          "apple,1\r\nplum,2\r\n") },
    { "TB01", "two byte order marks", QKV_OK, "",
      CSV("\xef\xbb\xbf\xef\xbb\xbf"
          "a,1\n") },
    { "TB02", "no bytes", QKV_ERR_FORMAT, "no line has a key and a value", CSV("") },
    { "TB02", "nothing but blanks", QKV_ERR_FORMAT, "no line has", CSV("\n \t\n\r\n") },
    { "TB02", "names alone", QKV_ERR_FORMAT, "no line has", CSV("word,price\n") },
    { "TB03", "a NUL byte", QKV_ERR_FORMAT, "line 2, column 3: a NUL byte", CSV("a,1\nb,\0002\n") },
    { "TB03", "invalid UTF-8", QKV_ERR_FORMAT, "line 2, column 1: not valid UTF-8",
      CSV("a,1\n\xff,2\n") },
    { "TB03", "a surrogate", QKV_ERR_FORMAT, "line 1, column 1: not valid UTF-8",
      CSV("\xed\xa0\x80,2\n") },
    { "TB03", "UTF-16", QKV_ERR_FORMAT, "line 1, column 1: not valid UTF-8",
      CSV("\xff\xfe"
          "a\0,\0001\0") },
    { "TB03", "lines that end in CR alone", QKV_ERR_FORMAT, "line 1, column 3: '1\\x0db' is not",
      CSV("a,1\rb,2\r") },
    { "TB04", "a quote that is never closed", QKV_ERR_FORMAT,
      "line 2, column 1: a quote that is never closed", CSV("a,1\n\"b,2\nc,3\n") },
    { "TB04", "text after a quote", QKV_ERR_FORMAT, "line 1, column 4: text after a closing quote",
      CSV("\"a\"b,1\n") },
    { "TB04", "a quote inside", QKV_ERR_FORMAT, "line 1, column 2: a quote inside",
      CSV("a\"b,1\n") },
    { "TB04", "breaks in quotes count as lines", QKV_ERR_FORMAT, "line 4, column 3: 'x' is not",
      CSV("\"a\n\nb\",1\nc,x\n") },
    { "TB04", "2,000,000 quotes", QKV_ERR_LIMIT, "a field of more than 65536 bytes",
      REPEATED("\"", "\"\"", "\",1\n", 1000000) },
    { "TB05", "an empty key", QKV_ERR_FORMAT, "line 2, column 1: the key is empty",
      CSV("a,1\n,2\n") },
    { "TB05", "a key of blanks", QKV_ERR_FORMAT, "line 1, column 1: the key is empty",
      CSV("\"  \",2\n") },
    { "TB05", "no value", QKV_ERR_FORMAT, "line 1, column 1: a key without a value", CSV("a\n") },
    { "TB05", "an empty value", QKV_ERR_FORMAT, "line 1, column 3: a number is missing",
      CSV("a,\n") },
    { "TB06", "a word", QKV_ERR_FORMAT, "line 2, column 3: 'x' is not a finite number",
      CSV("a,1\nb,x\n") },
    { "TB06", "a word beside a number", QKV_ERR_FORMAT, "line 1, column 5: 'x' is not",
      CSV("a,1,x\n") },
    { "TB06", "NaN", QKV_ERR_FORMAT, "'nan' is not a finite number", CSV("a,nan\n") },
    { "TB06", "infinity", QKV_ERR_FORMAT, "'-inf' is not a finite number", CSV("a,-inf\n") },
    { "TB06", "hexadecimal", QKV_ERR_FORMAT, "'0x1p3' is not a finite number", CSV("a,0x1p3\n") },
    { "TB06", "above a float", QKV_ERR_FORMAT, "'1e39' is not a finite number", CSV("a,1e39\n") },
    { "TB06", "two points", QKV_ERR_FORMAT, "'1.2.3' is not a finite number", CSV("a,1.2.3\n") },
    { "TB06", "a control character", QKV_ERR_FORMAT, "'1\\x1b[2J' is not", CSV("a,1\x1b[2J\n") },
    { "TB06", "63 digits", QKV_OK, "", REPEATED("a,", "0", "1\n", 62) },
    { "TB06", "64 digits", QKV_ERR_FORMAT, "is not a finite number",
      REPEATED("a,", "0", "1\n", 63) },
    { "TB07", "more values", QKV_ERR_FORMAT, "line 2, column 1: 2 values, the lines before have 1",
      CSV("a,1\nb,2,3\n") },
    { "TB07", "fewer values", QKV_ERR_FORMAT, "line 2, column 1: 1 values, the lines before have 2",
      CSV("a,1,2\nb,2\n") },
    { "TB07", "fewer names", QKV_ERR_FORMAT, "line 1 names 1 values, the lines below have 2",
      CSV("k,x\na,1,2\n") },
    { "TB07", "a hole in a list", QKV_ERR_FORMAT, "line 1, column 3: a number is missing",
      CSV("a,\"1,,2\"\n") },
    { "TB08", "4,096 values", QKV_OK, "", REPEATED("a", ",1", "\n", 4096) },
    { "TB08", "4,097 values", QKV_ERR_LIMIT, "more than 4096 values, the limit",
      REPEATED("a", ",1", "\n", 4097) },
    { "TB08", "a list of 4,097", QKV_ERR_LIMIT, "more than 4096 values, the limit",
      REPEATED("a,\"", "1 ", "\"\n", 4097) },
    { "TB08", "ten million separators", QKV_ERR_LIMIT, "more than 4096 values, the limit",
      REPEATED("a", ",", "\n", 10000000) },
    { "TB08", "a key of 64 KiB", QKV_OK, "", REPEATED("", "a", ",1\n", 65536) },
    { "TB08", "a key above 64 KiB", QKV_ERR_LIMIT, "line 1, column 1: a field of more than 65536",
      REPEATED("", "a", ",1\n", 65537) },
    { "TB08", "a line of 60 MB", QKV_ERR_LIMIT, "a field of more than 65536 bytes",
      REPEATED("", "0123456789", ",1\n", 6000000) },
    { "TB08", "70 MB", QKV_ERR_LIMIT, "the limit is 67108864",
      REPEATED("", "0123456789", ",1\n", 7000000) },
    { "TB08", "100,000 lines", QKV_OK, "", REPEATED("", "a,1\n", "", 100000) },
    { "TB08", "a million and one lines", QKV_ERR_LIMIT, "more than 1000000 lines, the limit",
      REPEATED("", "a,1\n", "", 1000001) },
    { "TB08", "10,000,000 empty lines", QKV_ERR_FORMAT, "line 10000001, column 5: 'x' is not",
      REPEATED("", "\n", "a,1,x\n", 10000000) },
};

static qkv_status read_table(const char *path, qkv_error *error) {
    qkv_table *table = (qkv_table *)1;
    const qkv_status status = qkv_table_read(path, &table, error);
    if (status != QKV_OK) return table ? HOSTILE_BROKEN : status;
    qkv_table_free(table);
    return QKV_OK;
}

/* A folder, a pipe and a file that is not there are no tables, and are not waited for. */
static void test_no_files(void **state) {
    (void)state;
    qkv_table *table;
    qkv_error error;
    assert_int_equal(qkv_table_read("/", &table, &error), QKV_ERR_IO);
    assert_int_equal(qkv_table_read("/dev/stdin/x", &table, &error), QKV_ERR_IO);
    assert_int_equal(qkv_table_read("/nowhere/a.csv", &table, &error), QKV_ERR_IO);
    assert_non_null(strstr(error.message, "/nowhere/a.csv"));
    assert_null(table);
}

int main(void) {
    const hostile_family family = {
        "hostile_tables", "hostile.csv", read_table, cases, sizeof cases / sizeof *cases, NULL, NULL
    };
    const struct CMUnitTest others[] = { { "TB01 no files", test_no_files, NULL, NULL, NULL } };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
