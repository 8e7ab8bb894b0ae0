/** Fields of a protocol buffer; see protobuf.h. */
#include "text/protobuf.h"

enum { MAX_NUMBER = (1 << 29) - 1, VARINT_BYTES = 10 };

static qkv_status broken(const qkvi_protobuf *reader, size_t at, const char *what) {
    return qkvi_error_set(reader->error, QKV_ERR_FORMAT, "%s: byte %zu: %s", reader->file,
                          reader->origin + at, what);
}

/* Seven bits a byte, the lowest first; the last byte has no high bit. */
static qkv_status read_varint(qkvi_protobuf *reader, uint64_t *value) {
    const size_t start = reader->at;
    *value = 0;
    for (int i = 0; i < VARINT_BYTES; i++) {
        if (reader->at == reader->n_bytes) return broken(reader, start, "a number is cut off");
        const unsigned char byte = (unsigned char)reader->bytes[reader->at++];
        if (i == VARINT_BYTES - 1 && byte > 1) break; /* of 64 bits, one is left */
        *value |= (uint64_t)(byte & 0x7F) << 7 * i;
        if (byte < 0x80) return QKV_OK;
    }
    return broken(reader, start, "a number has more than 64 bits");
}

/* n bytes, little-endian. */
static qkv_status read_fixed(qkvi_protobuf *reader, size_t n, uint64_t *value) {
    if (reader->n_bytes - reader->at < n) return broken(reader, reader->at, "a number is cut off");
    *value = 0;
    for (size_t i = 0; i < n; i++)
        *value |= (uint64_t)(unsigned char)reader->bytes[reader->at + i] << 8 * i;
    reader->at += n;
    return QKV_OK;
}

static qkv_status read_bytes(qkvi_protobuf *reader, qkvi_protobuf_field *field) {
    const size_t start = reader->at;
    uint64_t length;
    QKV_TRY(read_varint(reader, &length));
    const size_t left = reader->n_bytes - reader->at;
    if (length > left)
        return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                              "%s: byte %zu: field %u has %llu bytes, only %zu are left",
                              reader->file, reader->origin + start, (unsigned)field->number,
                              (unsigned long long)length, left);
    field->bytes = reader->bytes + reader->at;
    field->n_bytes = (size_t)length;
    reader->at += (size_t)length;
    return QKV_OK;
}

qkv_status qkvi_protobuf_next(qkvi_protobuf *reader, qkvi_protobuf_field *field, int *is_there) {
    *is_there = reader->at < reader->n_bytes;
    if (!*is_there) return QKV_OK;
    const size_t start = reader->at;
    uint64_t tag;
    QKV_TRY(read_varint(reader, &tag));
    if (tag >> 3 == 0 || tag >> 3 > MAX_NUMBER)
        return broken(reader, start, "the number of a field is not in [1, 2^29)");
    *field = (qkvi_protobuf_field){ .number = (uint32_t)(tag >> 3),
                                    .wire = (qkvi_protobuf_wire)(tag & 7),
                                    .place = reader->origin + start };
    switch (tag & 7) {
    case QKVI_PROTOBUF_VARINT: return read_varint(reader, &field->value);
    case QKVI_PROTOBUF_FIXED64: return read_fixed(reader, 8, &field->value);
    case QKVI_PROTOBUF_FIXED32: return read_fixed(reader, 4, &field->value);
    case QKVI_PROTOBUF_BYTES: return read_bytes(reader, field);
    default: return broken(reader, start, "a field is a group or of no known type");
    }
}

qkvi_protobuf qkvi_protobuf_inner(const qkvi_protobuf *reader, const qkvi_protobuf_field *field) {
    return (qkvi_protobuf){ .file = reader->file,
                            .bytes = field->bytes,
                            .n_bytes = field->n_bytes,
                            .origin = reader->origin + (size_t)(field->bytes - reader->bytes),
                            .error = reader->error };
}

static qkv_status need(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                       qkvi_protobuf_wire wire, const char *name) {
    if (field->wire == wire) return QKV_OK;
    return qkvi_error_set(reader->error, QKV_ERR_FORMAT,
                          "%s: byte %zu: %s has wire type %d, must be %d", reader->file,
                          field->place, name, (int)field->wire, (int)wire);
}

qkv_status qkvi_protobuf_int(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                             const char *name, int32_t *value) {
    QKV_TRY(need(reader, field, QKVI_PROTOBUF_VARINT, name));
    *value = (int32_t)(uint32_t)field->value;
    return QKV_OK;
}

qkv_status qkvi_protobuf_bool(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                              const char *name, int *value) {
    QKV_TRY(need(reader, field, QKVI_PROTOBUF_VARINT, name));
    *value = field->value != 0;
    return QKV_OK;
}

qkv_status qkvi_protobuf_float(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                               const char *name, float *value) {
    QKV_TRY(need(reader, field, QKVI_PROTOBUF_FIXED32, name));
    const uint32_t bits = (uint32_t)field->value;
    memcpy(value, &bits, sizeof *value);
    return QKV_OK;
}

qkv_status qkvi_protobuf_need_bytes(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                                    const char *name) {
    return need(reader, field, QKVI_PROTOBUF_BYTES, name);
}
