/* Arrays and lists of tensors: qkv/files.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/safetensors.h"
#include "oom/calls.h"
#include "qkv/files.h"

#define DATA QKV_TEST_DATA "/files/store_data/"

static qkv_array *array;
static char path[256];
static uint64_t listed;

static qkv_status read_as(const char *from, qkv_array_type floats, qkv_error *error) {
    static qkv_array none;
    array = &none; /* must become NULL or an array */
    const qkv_status status = floats == QKV_ARRAY_F32
                                  ? qkv_array_read(from, QKV_ARRAY_F32, &array, error)
                                  : qkv_array_read(from, floats, &array, error);
    oom_claim(status == QKV_OK || !array, "array is NULL after a failure");
    return status;
}

static qkv_status read(const char *from, qkv_error *error) {
    return read_as(from, QKV_ARRAY_F32, error);
}
static qkv_status read_bf16(qkv_error *error) {
    return read_as(DATA "f4_fortran.npy", QKV_ARRAY_BF16, error);
}
static qkv_status read_npy(qkv_error *error) { return read(DATA "f4_fortran.npy", error); }
static qkv_status read_integers(qkv_error *error) { return read(DATA "i4_big.npy", error); }
static qkv_status read_tensor(qkv_error *error) {
    return read(DATA "mixed.safetensors:half", error);
}

static qkv_status read_part(qkv_error *error) {
    static qkv_array none;
    int64_t rows[2];
    array = &none;
    const qkv_status status =
        qkv_array_read_part(DATA "f4_big.npy", QKV_ARRAY_F32, 1, 2, &array, rows, error);
    oom_claim(status == QKV_OK || !array, "array is NULL after a failure");
    return status;
}

static qkv_status read_entry(qkv_error *error) { return read(DATA "deflated.npz:f", error); }

static void put_csv(void) {
    static const char text[] = "a,b\n1.5,-inf\n0,1\n";
    oom_path(path, "array.csv");
    oom_put(path, text, sizeof text - 1);
}
static qkv_status read_csv(qkv_error *error) { return read(path, error); }

static qkv_status parse_bytes(const char *bytes, size_t n_bytes, qkv_error *error) {
    static qkv_array none;
    array = &none;
    const qkv_status status = qkv_array_parse("x", bytes, n_bytes, QKV_ARRAY_F32, &array, error);
    oom_claim(status == QKV_OK || !array, "array is NULL after a failure");
    return status;
}
static qkv_status parse_text(qkv_error *error) { return parse_bytes("1.5,2\n3,4\n", 10, error); }
static qkv_status parse_npy(qkv_error *error) {
    static const char npy[] =
        "\x93NUMPY\1\0\x39\0{'descr': '|u1', 'fortran_order': True, 'shape': (2, 2)}\n"
        "\1\2\3\4";
    return parse_bytes(npy, sizeof npy - 1, error);
}

static uint64_t take_array(void) {
    static const size_t width[] = { 4, 1, 8, 2, 2 }; /* by qkv_array_type */
    const size_t bytes = width[array->type];
    const uint64_t hash = oom_hash(0, array->shape, (size_t)array->rank * sizeof *array->shape);
    return oom_hash(hash, array->data, (size_t)array->n_elems * bytes);
}

static void drop_array(void) {
    qkv_array_free(array);
    array = NULL;
}

/* A file is there already: it must be whole, the old or the new one. */
static void put_old(void) {
    oom_path(path, "out.npy");
    oom_put(path, "old", 3);
}

static void put_none(void) {
    oom_path(path, "out.npy");
    oom_put(path, NULL, 0);
}

static qkv_status write(qkv_error *error) {
    float data[6] = { 1, 2, 3, 4, 5, 6 };
    const qkv_array given = { QKV_ARRAY_F32, 2, { 2, 3 }, 6, data, NULL };
    return qkv_array_write(path, &given, error);
}

/* Two files at once, of which the second is there already. */
static char second[256];

static void put_second(void) {
    put_none();
    oom_path(second, "second.npy");
    oom_put(second, "old", 3);
}

static qkv_status write_two(qkv_error *error) {
    int64_t data[2] = { 1, 2 };
    const qkv_array given = { QKV_ARRAY_I64, 1, { 2 }, 2, data, NULL };
    const char *const paths[] = { path, second };
    const qkv_array *const arrays[] = { &given, &given };
    return qkv_arrays_write(2, paths, arrays, error);
}

/* The same into one file. */
static void put_zip(void) {
    oom_path(path, "out.npz");
    oom_put(path, "old", 3);
}

static qkv_status write_zip(qkv_error *error) {
    uint16_t data[2] = { 0x3f80, 0x4000 };
    const qkv_array given = { QKV_ARRAY_BF16, 1, { 2 }, 2, data, NULL };
    char paths[2][300];
    snprintf(paths[0], sizeof paths[0], "%s:a", path);
    snprintf(paths[1], sizeof paths[1], "%s:b", path);
    const char *const both[] = { paths[0], paths[1] };
    const qkv_array *const arrays[] = { &given, &given };
    return qkv_arrays_write(2, both, arrays, error);
}

static uint64_t take_two(void) { return oom_hash_file(path) + oom_hash_file(second); }

static void drop_two(void) {
    oom_put(path, NULL, 0);
    oom_put(second, NULL, 0);
}

static qkv_status write_bytes(qkv_error *error) { return qkv_file_write(path, "new", 3, error); }

static qkv_status ask_writable(qkv_error *error) { return qkv_file_writable(path, error); }

/* The trainer's weights; a header that no first buffer holds. */
enum { N_TENSORS = 300 };

static qkv_status write_tensors(qkv_error *error) {
    static float data[2] = { 1, 2 };
    static char names[N_TENSORS][48];
    static qkvi_stored_out tensors[N_TENSORS];
    for (int t = 0; t < N_TENSORS; t++) {
        snprintf(names[t], sizeof names[t], "tensor %03d of many with a long \"name\"", t);
        tensors[t] = (qkvi_stored_out){ names[t], QKVI_F32, 1, { t % 3 }, data };
    }
    return qkvi_safetensors_write(path, tensors, N_TENSORS, "key", "value", error);
}

static uint64_t take_file(void) { return oom_hash_file(path); }
static void drop_file(void) { oom_put(path, NULL, 0); }

static void visit(void *user, const qkv_tensor_entry *entry) {
    uint64_t *const hash = user;
    *hash = oom_hash_text(*hash, entry->name);
    *hash = oom_hash_text(*hash, entry->type);
    *hash = oom_hash(*hash, entry->shape, (size_t)entry->rank * sizeof *entry->shape);
}

static qkv_status list(qkv_error *error) {
    listed = 0;
    return qkv_tensor_list(DATA "mixed.safetensors", visit, &listed, error);
}

static qkv_status list_npz(qkv_error *error) {
    listed = 0;
    return qkv_tensor_list(DATA "savez.npz", visit, &listed, error);
}

static qkv_status list_shards(qkv_error *error) {
    listed = 0;
    return qkv_tensor_list(QKV_TEST_DATA "/golden/stored/sharded/model.safetensors.index.json",
                           visit, &listed, error);
}

#define GGUF QKV_TEST_DATA "/golden/gguf/tiny.gguf"

static qkv_status list_gguf(qkv_error *error) {
    listed = 0;
    return qkv_tensor_list(GGUF, visit, &listed, error);
}

static void visit_key(void *user, const qkv_key_entry *entry) {
    uint64_t *const hash = user;
    *hash = oom_hash_text(*hash, entry->name);
    *hash = oom_hash_text(*hash, entry->type);
    *hash = oom_hash_text(*hash, entry->text);
}

static qkv_status list_keys(qkv_error *error) {
    listed = 0;
    return qkv_key_list(GGUF, visit_key, &listed, error);
}

static uint64_t take_list(void) { return listed; }

/* Names that are compared in normal form, a key that is there twice, values that are read. */
static void put_odd(void) {
    static const char header[] =
        "{\"\xc3\xa9\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
        "\"e\\u0301\":{\"dtype\":\"F32\",\"shape\":[1],\"x\":0,\"data_offsets\":[4,8]},"
        "\"e\\u0301\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}";
    enum { HEADER = sizeof header - 1 };
    _Static_assert(HEADER < 256, "the length is one byte");
    char bytes[8 + HEADER + 8] = { (char)HEADER };
    memcpy(bytes + 8, header, HEADER);
    oom_put(path, bytes, sizeof bytes);
}

static void visit_finding(void *user, const qkv_finding *finding) {
    uint64_t *const hash = user;
    *hash = oom_hash_text(*hash, finding->rule);
    *hash = oom_hash_text(*hash, finding->text);
}

static qkv_status audit_clean(qkv_error *error) {
    qkv_audit result = qkv_audit_init();
    listed = 0;
    return qkv_tensor_audit(DATA "mixed.safetensors", visit_finding, &listed, &result, error);
}

static qkv_status audit_odd(qkv_error *error) {
    qkv_audit result = qkv_audit_init();
    listed = 0;
    return qkv_tensor_audit(path, visit_finding, &listed, &result, error);
}

/* ---- Tables ---------------------------------------------------------------------------------- */

static qkv_table *table;
static char table_path[600];
static const char table_text[] = "word,x,y\napple,1,2\n\"a, b\",3,4\n";

static void put_table(void) {
    qkv_error error;
    snprintf(table_path, sizeof table_path, "%s/table.csv", oom_folder);
    oom_must(qkv_file_write(table_path, table_text, sizeof table_text - 1, &error), &error);
}

static qkv_status read_table(qkv_error *error) {
    table = (qkv_table *)1;
    const qkv_status status = qkv_table_read(table_path, &table, error);
    oom_claim(status == QKV_OK || !table, "table is NULL after a failure");
    return status;
}

static qkv_status parse_table(qkv_error *error) {
    table = (qkv_table *)1;
    const qkv_status status =
        qkv_table_parse("x", table_text, sizeof table_text - 1, &table, error);
    oom_claim(status == QKV_OK || !table, "table is NULL after a failure");
    return status;
}

static uint64_t take_table(void) {
    uint64_t hash = oom_hash(0, table->values, 4 * sizeof *table->values);
    for (int i = 0; i < 2; i++) {
        hash = oom_hash_text(hash, table->keys[i]);
        hash = oom_hash_text(hash, table->names[i]);
    }
    return hash;
}

static void drop_table(void) { qkv_table_free(table); }

static const oom_call calls[] = {
    { "qkv_table_read", "a table", put_table, read_table, take_table, drop_table, OOM_IO, 0 },
    { "qkv_table_parse", "a table", NULL, parse_table, take_table, drop_table, 0, 0 },
    { "qkv_array_read", "npy, transposed", NULL, read_npy, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_read", "npy, integers", NULL, read_integers, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_read", "safetensors", NULL, read_tensor, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_read", "npz, deflated", NULL, read_entry, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_read", "csv", put_csv, read_csv, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_read", "npy, transposed, as bf16", NULL, read_bf16, take_array, drop_array, OOM_IO,
      0 },
    { "qkv_array_parse", "npy, transposed", NULL, parse_npy, take_array, drop_array, 0, 0 },
    { "qkv_array_parse", "text", NULL, parse_text, take_array, drop_array, 0, 0 },
    { "qkv_array_read_part", "half of an npy", NULL, read_part, take_array, drop_array, OOM_IO, 0 },
    { "qkv_array_write", "a new file", put_none, write, take_file, drop_file, OOM_IO, 0 },
    { "qkv_array_write", "over a file", put_old, write, take_file, drop_file, OOM_IO, 0 },
    { "qkv_arrays_write", "two files", put_second, write_two, take_two, drop_two,
      OOM_IO | OOM_SEVERAL, 0 },
    { "qkv_arrays_write", "one npz", put_zip, write_zip, take_file, drop_file, OOM_IO, 0 },
    { "qkv_file_write", "over a file", put_old, write_bytes, take_file, drop_file, OOM_IO, 0 },
    { "qkv_file_writable", "a new file", put_none, ask_writable, take_file, drop_file, OOM_IO, 0 },
    { "qkvi_safetensors_write", "many tensors", put_old, write_tensors, take_file, drop_file,
      OOM_IO, 0 },
    { "qkv_tensor_list", "mixed", NULL, list, take_list, NULL, OOM_IO, 0 },
    { "qkv_tensor_list", "npz", NULL, list_npz, take_list, NULL, OOM_IO, 0 },
    { "qkv_tensor_list", "shards", NULL, list_shards, take_list, NULL, OOM_IO, 0 },
    { "qkv_tensor_list", "GGUF", NULL, list_gguf, take_list, NULL, OOM_IO, 0 },
    { "qkv_key_list", "GGUF", NULL, list_keys, take_list, NULL, OOM_IO, 0 },
    { "qkv_tensor_audit", "mixed", NULL, audit_clean, take_list, NULL, OOM_IO, 0 },
    { "qkv_tensor_audit", "odd names", put_odd, audit_odd, take_list, drop_file, OOM_IO, 0 },
};

const oom_group oom_store = { "store", calls, sizeof calls / sizeof *calls, NULL, NULL };
