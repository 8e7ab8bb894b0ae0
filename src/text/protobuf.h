/**
 * The wire format of protocol buffers, read from untrusted bytes one field at a time.
 *
 *     message = { tag value }     tag = number << 3 | wire, a varint
 *     wire 0: varint    1: 8 bytes    2: length, a varint, and so many bytes    5: 4 bytes
 *
 * A message inside a message is a value of wire 2, read by a reader of its own, so that nothing
 * here recurses. Groups (wires 3 and 4), numbers outside [1, 2^29) and varints of more than 64
 * bits are refused; every length is compared with the bytes that are left before it is used.
 * Reference: protobuf.dev, "Encoding".
 */
#ifndef QKVI_TEXT_PROTOBUF_H
#define QKVI_TEXT_PROTOBUF_H

#include "files/base.h"

typedef enum qkvi_protobuf_wire {
    QKVI_PROTOBUF_VARINT = 0,
    QKVI_PROTOBUF_FIXED64 = 1,
    QKVI_PROTOBUF_BYTES = 2,
    QKVI_PROTOBUF_FIXED32 = 5
} qkvi_protobuf_wire;

/** A reader of one message. Offsets in error messages count from the first byte of the file. */
typedef struct qkvi_protobuf {
    const char *file; /* escaped, for messages */
    const char *bytes;
    size_t n_bytes, at;
    size_t origin; /* where in the file bytes[0] is */
    qkv_error *error;
} qkvi_protobuf;

typedef struct qkvi_protobuf_field {
    uint32_t number;
    qkvi_protobuf_wire wire;
    size_t place;      /* offset of its tag in the file */
    uint64_t value;    /* of wires 0, 1 and 5 */
    const char *bytes; /* of wire 2, inside the message */
    size_t n_bytes;
} qkvi_protobuf_field;

/** Reads the next field; *is_there = 0 at the end of the message. FORMAT, with the offset. */
qkv_status qkvi_protobuf_next(qkvi_protobuf *reader, qkvi_protobuf_field *field, int *is_there);

/** A reader of the message that a field of wire 2 holds. */
qkvi_protobuf qkvi_protobuf_inner(const qkvi_protobuf *reader, const qkvi_protobuf_field *field);

/*
 * The value of a field; name is for messages. FORMAT if the field has another wire. An int32 is the
 * low 32 bits of its varint (a negative one has ten bytes); a bool is true unless it is 0.
 */
qkv_status qkvi_protobuf_int(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                             const char *name, int32_t *value);
qkv_status qkvi_protobuf_bool(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                              const char *name, int *value);
qkv_status qkvi_protobuf_float(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                               const char *name, float *value);
qkv_status qkvi_protobuf_need_bytes(const qkvi_protobuf *reader, const qkvi_protobuf_field *field,
                                    const char *name);

#endif
