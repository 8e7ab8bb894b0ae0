/*
 * Writing safetensors: see safetensors.h. The header is compact JSON padded with spaces to a
 * multiple of 8; keys in the order dtype, shape, data_offsets; names as raw UTF-8 with only '"',
 * '\' and control characters escaped.
 */
#include <stdarg.h>

#include "files/base.h"
#include "files/encode.h"
#include "files/safetensors.h"

/* The reference writer's order of types: U64 I64 F64 F32 U32 I32 BF16 F16 U16 I16 I8 U8 BOOL. */
static const uint8_t type_rank[QKVI_N_ELEMS] = {
    [QKVI_U64] = 0, [QKVI_I64] = 1,  [QKVI_F64] = 2,   [QKVI_F32] = 3, [QKVI_U32] = 4,
    [QKVI_I32] = 5, [QKVI_BF16] = 6, [QKVI_F16] = 7,   [QKVI_U16] = 8, [QKVI_I16] = 9,
    [QKVI_I8] = 10, [QKVI_U8] = 11,  [QKVI_BOOL] = 12,
};

static int in_file_order(const void *left, const void *right) {
    const qkvi_stored_out *const a = left, *const b = right;
    const int difference = type_rank[a->type] - type_rank[b->type];
    return difference ? difference : strcmp(a->name, b->name);
}

/*
 * The header grows in bytes whose failure stays until the end. (A memory stream of the C library
 * would forget it: glibc's drops what it has no room for and says so only to the call that
 * put it.)
 */
static void put_char(qkvi_bytes *out, char c) { qkvi_bytes_add(out, &c, 1); }

/* Of at most 79 characters: numbers and names of types. */
QKVI_PRINTF(2, 3) static void put(qkvi_bytes *out, const char *format, ...) {
    char small[80];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(small, sizeof small, format, arguments);
    va_end(arguments);
    qkvi_bytes_text(out, small);
}

static void put_string(qkvi_bytes *out, const char *string) {
    qkvi_json_string(out, string, strlen(string));
}

static size_t data_bytes(const qkvi_stored_out *tensor) {
    size_t bytes = qkvi_elem_bytes(tensor->type);
    for (int d = 0; d < tensor->rank; d++) bytes *= (size_t)tensor->shape[d];
    return bytes;
}

static void put_entry(qkvi_bytes *out, const qkvi_stored_out *tensor, size_t begin) {
    put_string(out, tensor->name);
    put(out, ":{\"dtype\":\"%s\",\"shape\":[", qkvi_elem_name(tensor->type));
    for (int d = 0; d < tensor->rank; d++)
        put(out, "%s%lld", d ? "," : "", (long long)tensor->shape[d]);
    put(out, "],\"data_offsets\":[%zu,%zu]}", begin, begin + data_bytes(tensor));
}

static void put_header(qkvi_bytes *out, const qkvi_stored_out *tensors, int64_t n_tensors,
                       const char *metadata_key, const char *metadata_value) {
    size_t offset = 0;
    put_char(out, '{');
    if (metadata_key) {
        qkvi_bytes_text(out, "\"__metadata__\":{");
        put_string(out, metadata_key);
        put_char(out, ':');
        put_string(out, metadata_value);
        put_char(out, '}');
    }
    for (int64_t t = 0; t < n_tensors; t++) {
        if (t || metadata_key) put_char(out, ',');
        put_entry(out, &tensors[t], offset);
        offset += data_bytes(&tensors[t]);
    }
    put_char(out, '}');
    while (out->n % 8 && !out->failed) put_char(out, ' ');
}

static qkv_status put_file(qkvi_writer *writer, const void *header, size_t header_bytes,
                           const qkvi_stored_out *tensors, int64_t n_tensors, qkv_error *error) {
    uint8_t length[8];
    for (int b = 0; b < 8; b++) length[b] = (uint8_t)((uint64_t)header_bytes >> 8 * b);
    QKV_TRY(qkvi_writer_put(writer, length, sizeof length, error));
    QKV_TRY(qkvi_writer_put(writer, header, header_bytes, error));
    for (int64_t t = 0; t < n_tensors; t++)
        QKV_TRY(qkvi_writer_put(writer, tensors[t].data, data_bytes(&tensors[t]), error));
    return QKV_OK;
}

qkv_status qkvi_safetensors_put(qkvi_writer *writer, qkvi_stored_out *tensors, int64_t n_tensors,
                                const char *metadata_key, const char *metadata_value,
                                qkv_error *error) {
    qkvi_bytes header = { 0 };
    if (n_tensors) qsort(tensors, (size_t)n_tensors, sizeof *tensors, in_file_order);
    put_header(&header, tensors, n_tensors, metadata_key, metadata_value);
    const qkv_status status =
        header.failed ? qkvi_no_memory(error, "a header")
                      : put_file(writer, header.data, header.n, tensors, n_tensors, error);
    qkvi_bytes_free(&header);
    return status;
}

qkv_status qkvi_safetensors_write(const char *path, qkvi_stored_out *tensors, int64_t n_tensors,
                                  const char *metadata_key, const char *metadata_value,
                                  qkv_error *error) {
    qkvi_writer writer;
    QKV_TRY(qkvi_writer_begin(path, &writer, error));
    const qkv_status status =
        qkvi_safetensors_put(&writer, tensors, n_tensors, metadata_key, metadata_value, error);
    if (status == QKV_OK) return qkvi_writer_commit(&writer, error);
    qkvi_writer_end(&writer);
    return status;
}
