/*
 * Element types: see elems.h. memcpy reads unaligned bytes; the compiler makes plain loads of it.
 */
#include "files/elems.h"

#include "core/half.h"

const char *qkvi_elem_name(qkvi_elem_type type) {
    static const char *const names[] = { "F64", "F32", "F16", "BF16", "I64", "I32", "I16",
                                         "I8",  "U64", "U32", "U16",  "U8",  "BOOL" };
    return names[type];
}

size_t qkvi_elem_bytes(qkvi_elem_type type) {
    static const uint8_t bytes[] = { 8, 4, 2, 2, 8, 4, 2, 1, 8, 4, 2, 1, 1 };
    return bytes[type];
}

int qkvi_elem_is_float(qkvi_elem_type type) { return type <= QKVI_BF16; }

/* For each element: value is the stored element, of the C type, at index i. */
#define FOR_EACH(c_type, statement)                                                                \
    for (size_t i = 0; i < n; i++) {                                                               \
        c_type value;                                                                              \
        memcpy(&value, (const char *)source + i * sizeof value, sizeof value);                     \
        statement;                                                                                 \
    }                                                                                              \
    break

void qkvi_elems_to_f32(qkvi_elem_type type, const void *source, size_t n, float *destination) {
    switch (type) {
    case QKVI_F64: FOR_EACH(double, destination[i] = (float)value);
    case QKVI_F16: FOR_EACH(uint16_t, destination[i] = qkvi_f32_of_f16(value));
    case QKVI_BF16: FOR_EACH(uint16_t, destination[i] = qkvi_f32_of_bf16(value));
    case QKVI_F32:
        if (n) memcpy(destination, source, n * sizeof *destination);
        break;
    default: break;
    }
}

/*
 * The float next to value towards 0 with its last bit set, unless value is one: what the last bit
 * stands for survives, so that rounding once more, to far fewer bits, is as if it were the first
 * time (Boldo and Melquiond 2008).
 */
static float odd_f32(double value) {
    const float nearest = (float)value;
    uint32_t bits = qkvi_bits_of_float(nearest);
    if ((double)nearest == value || value != value) return nearest;
    const bool away = value < 0 ? (double)nearest < value : (double)nearest > value;
    return qkvi_float_of_bits((bits - away) | 1);
}

void qkvi_elems_to_half(qkvi_elem_type type, const void *source, size_t n, qkvi_elem_type half,
                        uint16_t *destination) {
    const size_t width = qkvi_elem_bytes(type);
    for (size_t i = 0; i < n; i++) {
        float value;
        double wide;
        const char *const at = (const char *)source + i * width;
        if (type == QKVI_F64) {
            memcpy(&wide, at, sizeof wide);
            value = odd_f32(wide);
        } else {
            qkvi_elems_to_f32(type, at, 1, &value);
        }
        destination[i] = half == QKVI_F16 ? qkvi_f16_of_f32(value) : qkvi_bf16_of_f32(value);
    }
}

size_t qkvi_elems_to_i64(qkvi_elem_type type, const void *source, size_t n, int64_t *destination) {
    switch (type) {
    case QKVI_I64: FOR_EACH(int64_t, destination[i] = value);
    case QKVI_I32: FOR_EACH(int32_t, destination[i] = value);
    case QKVI_I16: FOR_EACH(int16_t, destination[i] = value);
    case QKVI_I8: FOR_EACH(int8_t, destination[i] = value);
    case QKVI_U64:
        FOR_EACH(uint64_t, {
            if (value > INT64_MAX) return i;
            destination[i] = (int64_t)value;
        });
    case QKVI_U32: FOR_EACH(uint32_t, destination[i] = value);
    case QKVI_U16: FOR_EACH(uint16_t, destination[i] = value);
    case QKVI_U8: FOR_EACH(uint8_t, destination[i] = value);
    case QKVI_BOOL: FOR_EACH(uint8_t, destination[i] = value != 0);
    default: break;
    }
    return n;
}

void qkvi_elems_swap(qkvi_elem_type type, void *elems, size_t n) {
    const size_t width = qkvi_elem_bytes(type);
    for (unsigned char *at = elems, *const end = at + n * width; at < end; at += width)
        for (size_t low = 0, high = width - 1; low < high; low++, high--) {
            const unsigned char byte = at[low];
            at[low] = at[high];
            at[high] = byte;
        }
}
