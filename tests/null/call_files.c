/* Tables, arrays and files: see nulls.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "null/models.h"
#include "null/nulls.h"
#include "qkv/files.h"
#include "qkv/image.h"

#define ARRAY QKV_TEST_DATA "/cli/data/q.npy"
#define MODEL QKV_TEST_ROOT "/models/default/model.safetensors"
#define IMAGE QKV_TEST_DATA "/golden/image/files/one.png"
#define GGUF  QKV_TEST_DATA "/golden/gguf/tiny.gguf"

char *null_load(const char *path, size_t *n_bytes) {
    FILE *const file = fopen(path, "rb");
    char *const bytes = malloc(1 << 24);
    if (!file || !bytes) exit(1);
    *n_bytes = fread(bytes, 1, 1 << 24, file);
    fclose(file);
    return bytes;
}

static const char table_text[] = "a,1\nb,2\n";
static float values[] = { 1, 2 };
static const qkv_array array = { QKV_ARRAY_F32, 1, { 2 }, 2, values, NULL };
static const qkv_array *const arrays[] = { &array };
static const char *const paths[] = { NULL_FOLDER "/several.npy" };

static qkv_status table_read(void) {
    qkv_table *table;
    null_must(qkv_file_write(NULL_FOLDER "/table", table_text, strlen(table_text), &null_error));
    return qkv_table_read(P(0, NULL_FOLDER "/table"), P(1, &table), P(2, &null_error));
}
static qkv_status table_parse(void) {
    qkv_table *table;
    return qkv_table_parse(P(0, "name"), P(1, table_text), strlen(table_text), P(2, &table),
                           P(3, &null_error));
}
static qkv_status table_free(void) {
    qkv_table *table;
    null_must(qkv_table_parse("name", table_text, strlen(table_text), &table, &null_error));
    qkv_table_free(P(0, table));
    return QKV_OK;
}
static qkv_status array_read(void) {
    qkv_array *made;
    return qkv_array_read(P(0, ARRAY), QKV_ARRAY_F32, P(1, &made), P(2, &null_error));
}
static qkv_status array_read_as(void) {
    qkv_array *made;
    return qkv_array_read(P(0, ARRAY), QKV_ARRAY_F32, P(1, &made), P(2, &null_error));
}
static qkv_status array_parse(void) {
    qkv_array *made;
    return qkv_array_parse(P(0, "name"), P(1, "1,2\n"), 4, QKV_ARRAY_F32, P(2, &made),
                           P(3, &null_error));
}
static qkv_status array_read_part(void) {
    qkv_array *made;
    int64_t rows[2];
    return qkv_array_read_part(P(0, ARRAY), QKV_ARRAY_F32, 0, 2, P(1, &made), P(2, rows),
                               P(3, &null_error));
}
static qkv_status array_write(void) {
    return qkv_array_write(P(0, NULL_FOLDER "/one.npy"), P(1, &array), P(2, &null_error));
}
static qkv_status arrays_write(void) {
    return qkv_arrays_write(1, P(0, paths), P(1, arrays), P(2, &null_error));
}
static qkv_status array_free(void) {
    qkv_array *made;
    null_must(qkv_array_read(ARRAY, QKV_ARRAY_F32, &made, &null_error));
    qkv_array_free(P(0, made));
    return QKV_OK;
}
static qkv_status file_write(void) {
    return qkv_file_write(P(0, NULL_FOLDER "/file"), P(1, "x"), 1, P(2, &null_error));
}
static qkv_status file_writable(void) {
    return qkv_file_writable(P(0, NULL_FOLDER "/file"), P(1, &null_error));
}
static void visit_tensor(void *user, const qkv_tensor_entry *entry) { (void)user, (void)entry; }
static void visit_finding(void *user, const qkv_finding *finding) { (void)user, (void)finding; }
static void visit_key(void *user, const qkv_key_entry *entry) { (void)user, (void)entry; }
static int user;
static qkv_status tensor_list(void) {
    return qkv_tensor_list(P(0, MODEL), P(1, visit_tensor), P(2, &user), P(3, &null_error));
}
static qkv_status key_list(void) {
    return qkv_key_list(P(0, GGUF), P(1, visit_key), P(2, &user), P(3, &null_error));
}
static qkv_status tensor_audit(void) {
    qkv_audit audit = qkv_audit_init();
    return qkv_tensor_audit(P(0, MODEL), P(1, visit_finding), P(2, &user), P(3, &audit),
                            P(4, &null_error));
}
static const uint8_t rgb[] = { 1, 2, 3 };
static qkv_status image_read(void) {
    qkv_image *image;
    return qkv_image_read(P(0, IMAGE), P(1, &image), P(2, &null_error));
}
static qkv_status image_parse(void) {
    qkv_image *image;
    size_t n_bytes;
    char *const bytes = null_load(IMAGE, &n_bytes);
    return qkv_image_parse(P(0, "name"), P(1, bytes), n_bytes, P(2, &image), P(3, &null_error));
}
static qkv_status image_from_rgb(void) {
    qkv_image *image;
    return qkv_image_from_rgb(P(0, rgb), 1, 1, P(1, &image), P(2, &null_error));
}
static qkv_status image_free(void) {
    qkv_image *image;
    null_must(qkv_image_from_rgb(rgb, 1, 1, &image, &null_error));
    qkv_image_free(P(0, image));
    return QKV_OK;
}

const null_call null_files[] = {
    { "qkv_table_read", table_read, "rrn" },
    { "qkv_table_parse", table_parse, "rrrn" },
    { "qkv_table_free", table_free, "n" },
    { "qkv_array_read", array_read, "rrn" },
    { "qkv_array_read: bf16", array_read_as, "rrn" },
    { "qkv_array_parse", array_parse, "rrrn" },
    { "qkv_array_read_part", array_read_part, "rrrn" },
    { "qkv_array_write", array_write, "rrn" },
    { "qkv_arrays_write", arrays_write, "rrn" },
    { "qkv_array_free", array_free, "n" },
    { "qkv_file_write", file_write, "rrn" },
    { "qkv_file_writable", file_writable, "rn" },
    { "qkv_tensor_list", tensor_list, "rrnn" },
    { "qkv_key_list", key_list, "rrnn" },
    { "qkv_image_read", image_read, "rrn" },
    { "qkv_image_parse", image_parse, "rrrn" },
    { "qkv_image_from_rgb", image_from_rgb, "rrn" },
    { "qkv_image_free", image_free, "n" },
    { "qkv_tensor_audit", tensor_audit, "rrnrn" },
    { 0 },
};
