/*
 * safetensors, written: see safetensors.h. The header is compact JSON padded with spaces to a
 * multiple of 8; keys in the order dtype, shape, data_offsets; names as raw UTF-8 with only '"',
 * '\' and control characters escaped.
 */
#include <stdlib.h>
#include <string.h>

#include "core/status.h"
#include "model/store/safetensors.h"

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

static void put_string(FILE *out, const char *text) {
    static const char short_names[] = "btn.fr"; /* 8 … 13; 11 has none */
    fputc('"', out);
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c >= 8 && c <= 13 && c != 11)
            fprintf(out, "\\%c", short_names[c - 8]);
        else if (c < 32)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static size_t data_bytes(const qkvi_stored_out *tensor) {
    size_t bytes = qkvi_elem_bytes(tensor->type);
    for (int d = 0; d < tensor->rank; d++) bytes *= (size_t)tensor->shape[d];
    return bytes;
}

static void put_entry(FILE *out, const qkvi_stored_out *tensor, size_t begin) {
    put_string(out, tensor->name);
    fprintf(out, ":{\"dtype\":\"%s\",\"shape\":[", qkvi_elem_name(tensor->type));
    for (int d = 0; d < tensor->rank; d++)
        fprintf(out, "%s%lld", d ? "," : "", (long long)tensor->shape[d]);
    fprintf(out, "],\"data_offsets\":[%zu,%zu]}", begin, begin + data_bytes(tensor));
}

static void put_header(FILE *out, const qkvi_stored_out *tensors, int64_t n_tensors,
                       const char *metadata_key, const char *metadata_value) {
    size_t offset = 0;
    fputc('{', out);
    if (metadata_key) {
        fputs("\"__metadata__\":{", out);
        put_string(out, metadata_key);
        fputc(':', out);
        put_string(out, metadata_value);
        fputc('}', out);
    }
    for (int64_t t = 0; t < n_tensors; t++) {
        if (t || metadata_key) fputc(',', out);
        put_entry(out, &tensors[t], offset);
        offset += data_bytes(&tensors[t]);
    }
    fputc('}', out);
    for (long bytes = ftell(out); bytes > 0 && bytes % 8; bytes++) fputc(' ', out);
}

static qkv_status put_file(qkvi_writer *writer, const char *header, size_t header_bytes,
                           const qkvi_stored_out *tensors, int64_t n_tensors, qkv_error *error) {
    uint8_t length[8];
    for (int b = 0; b < 8; b++) length[b] = (uint8_t)((uint64_t)header_bytes >> 8 * b);
    QKV_TRY(qkvi_writer_put(writer, length, sizeof length, error));
    QKV_TRY(qkvi_writer_put(writer, header, header_bytes, error));
    for (int64_t t = 0; t < n_tensors; t++)
        QKV_TRY(qkvi_writer_put(writer, tensors[t].data, data_bytes(&tensors[t]), error));
    return QKV_OK;
}

/* The header as a new string; its bytes are a multiple of 8. */
static qkv_status make_header(const qkvi_stored_out *tensors, int64_t n_tensors,
                              const char *metadata_key, const char *metadata_value, char **header,
                              size_t *header_bytes, qkv_error *error) {
    *header = NULL;
    FILE *const out = open_memstream(header, header_bytes);
    int failed = !out;
    if (out) {
        put_header(out, tensors, n_tensors, metadata_key, metadata_value);
        failed = ferror(out);
        failed |= fclose(out) != 0;
    }
    if (!failed && *header) return QKV_OK;
    free(*header);
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a header");
}

qkv_status qkvi_safetensors_write(const char *path, qkvi_stored_out *tensors, int64_t n_tensors,
                                  const char *metadata_key, const char *metadata_value,
                                  qkv_error *error) {
    qkvi_writer writer;
    char *header;
    size_t header_bytes = 0;
    if (n_tensors) qsort(tensors, (size_t)n_tensors, sizeof *tensors, in_file_order);
    QKV_TRY(make_header(tensors, n_tensors, metadata_key, metadata_value, &header, &header_bytes,
                        error));
    qkv_status status = qkvi_writer_begin(path, &writer, error);
    if (status == QKV_OK) {
        status = put_file(&writer, header, header_bytes, tensors, n_tensors, error);
        if (status == QKV_OK)
            status = qkvi_writer_commit(&writer, error);
        else
            qkvi_writer_end(&writer);
    }
    free(header);
    return status;
}
