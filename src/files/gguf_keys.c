/* Values of keys: see gguf_keys.h. */
#include "files/gguf_keys.h"

#include <inttypes.h>
#include <math.h>

#include "files/encode.h"
#include "files/utf8.h"

enum { SHOWN_ELEMENTS = 6, SHOWN_BYTES = 80 };

const qkvi_gguf_key *qkvi_gguf_ask(const qkvi_gguf_keys *keys, const char *name) {
    const qkvi_gguf_key *const key = qkvi_gguf_key_of(keys->file, name);
    if (key && keys->asked) keys->asked[key - keys->file->keys] = true;
    return key;
}

static bool is_int(qkvi_gguf_kind kind) {
    return kind != QKVI_GGUF_F32_VALUE && kind != QKVI_GGUF_BOOL_VALUE &&
           kind != QKVI_GGUF_TEXT_VALUE && kind != QKVI_GGUF_ARRAY_VALUE &&
           kind != QKVI_GGUF_F64_VALUE;
}

static bool is_real(qkvi_gguf_kind kind) {
    return is_int(kind) || kind == QKVI_GGUF_F32_VALUE || kind == QKVI_GGUF_F64_VALUE;
}

static qkv_status wrong_type(const qkvi_gguf_keys *keys, const qkvi_gguf_key *key,
                             const char *wanted) {
    return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' is of type %s%s, not %s",
                          QKVI_PRINTABLE(160, key->name), key->is_array ? "array of " : "",
                          qkvi_gguf_kind_name(key->kind), wanted);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Element i as its bits; signed ones with all their 64. */
static int64_t integer_at(const qkvi_gguf_file *file, const qkvi_gguf_key *key, uint64_t i) {
    const uint8_t *const at = file->header + key->at;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    switch (key->kind) {
    case QKVI_GGUF_I8_VALUE: return (int8_t)at[i];
    case QKVI_GGUF_U16_VALUE:
    case QKVI_GGUF_I16_VALUE:
        memcpy(&i16, at + 2 * i, sizeof i16);
        return key->kind == QKVI_GGUF_U16_VALUE ? (uint16_t)i16 : i16;
    case QKVI_GGUF_U32_VALUE:
    case QKVI_GGUF_I32_VALUE:
        memcpy(&i32, at + 4 * i, sizeof i32);
        return key->kind == QKVI_GGUF_U32_VALUE ? (int64_t)(uint32_t)i32 : i32;
    case QKVI_GGUF_U64_VALUE:
    case QKVI_GGUF_I64_VALUE: memcpy(&i64, at + 8 * i, sizeof i64); return i64;
    default: return at[i];
    }
}

qkv_status qkvi_gguf_int_of(const qkvi_gguf_keys *keys, const qkvi_gguf_key *key, uint64_t i,
                            int64_t *value) {
    if (!is_int(key->kind) && key->kind != QKVI_GGUF_BOOL_VALUE)
        return wrong_type(keys, key, "of integers");
    *value = integer_at(keys->file, key, i);
    if (key->kind != QKVI_GGUF_U64_VALUE || *value >= 0) return QKV_OK;
    return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' holds %" PRIu64 ", above 2^63 - 1",
                          QKVI_PRINTABLE(160, key->name), (uint64_t)*value);
}

qkv_status qkvi_gguf_take_int(const qkvi_gguf_keys *keys, const char *name, int64_t *value) {
    const qkvi_gguf_key *const key = qkvi_gguf_ask(keys, name);
    if (!key) return QKV_OK;
    if (key->is_array || !is_int(key->kind)) return wrong_type(keys, key, "an integer");
    return qkvi_gguf_int_of(keys, key, 0, value);
}

double qkvi_gguf_shortest(float value) {
    char text[40];
    for (int digits = 1; digits < 9; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
        if (strtof(text, NULL) == value) return strtod(text, NULL);
    }
    snprintf(text, sizeof text, "%.8e", (double)value);
    return strtod(text, NULL);
}

double qkvi_gguf_real_of(const qkvi_gguf_file *file, const qkvi_gguf_key *key, uint64_t i) {
    const uint8_t *const at = file->header + key->at;
    float f32;
    double f64;
    if (key->kind == QKVI_GGUF_F32_VALUE) {
        memcpy(&f32, at + 4 * i, sizeof f32);
        return (double)f32;
    }
    if (key->kind == QKVI_GGUF_F64_VALUE) {
        memcpy(&f64, at + 8 * i, sizeof f64);
        return f64;
    }
    const int64_t value = integer_at(file, key, i);
    return key->kind == QKVI_GGUF_U64_VALUE ? (double)(uint64_t)value : (double)value;
}

qkv_status qkvi_gguf_take_real(const qkvi_gguf_keys *keys, const char *name, double *value) {
    const qkvi_gguf_key *const key = qkvi_gguf_ask(keys, name);
    if (!key) return QKV_OK;
    if (key->is_array || !is_real(key->kind)) return wrong_type(keys, key, "a number");
    const double found = qkvi_gguf_real_of(keys->file, key, 0);
    if (!isfinite(found))
        return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' is not finite",
                              QKVI_PRINTABLE(160, name));
    *value = key->kind == QKVI_GGUF_F32_VALUE ? qkvi_gguf_shortest((float)found) : found;
    return QKV_OK;
}

qkv_status qkvi_gguf_take_bool(const qkvi_gguf_keys *keys, const char *name, bool *value) {
    const qkvi_gguf_key *const key = qkvi_gguf_ask(keys, name);
    if (!key) return QKV_OK;
    if (key->is_array || key->kind != QKVI_GGUF_BOOL_VALUE) return wrong_type(keys, key, "a bool");
    const uint8_t found = keys->file->header[key->at];
    if (found > 1)
        return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' is a bool of %d, neither 0 nor 1",
                              QKVI_PRINTABLE(160, name), found);
    *value = found;
    return QKV_OK;
}

/* ---- Texts and arrays ------------------------------------------------------------------------ */

qkv_status qkvi_gguf_take_text(const qkvi_gguf_keys *keys, const char *name, char **value) {
    const qkvi_gguf_key *const key = qkvi_gguf_ask(keys, name);
    *value = NULL;
    if (!key) return QKV_OK;
    if (key->is_array || key->kind != QKVI_GGUF_TEXT_VALUE)
        return wrong_type(keys, key, "a string");
    uint64_t at = key->at;
    const qkvi_gguf_text text = qkvi_gguf_text_at(keys->file, &at);
    if (memchr(text.bytes, '\0', text.n) || qkvi_utf8_valid(text.bytes, text.n) < text.n)
        return QKVI_GGUF_FAIL(keys, QKV_ERR_FORMAT, "key '%s' is no UTF-8, or holds a NUL",
                              QKVI_PRINTABLE(160, name));
    *value = strndup(text.bytes, text.n);
    return *value ? QKV_OK : QKVI_GGUF_FAIL(keys, QKV_ERR_MEMORY, "no memory for a key");
}

qkv_status qkvi_gguf_take_array(const qkvi_gguf_keys *keys, const char *name, qkvi_gguf_kind kind,
                                const qkvi_gguf_key **array) {
    char wanted[40];
    const qkvi_gguf_key *const key = *array = qkvi_gguf_ask(keys, name);
    if (!key || (key->is_array && key->kind == kind)) return QKV_OK;
    snprintf(wanted, sizeof wanted, "array of %s", qkvi_gguf_kind_name(kind));
    return wrong_type(keys, key, wanted);
}

/* ---- For people ------------------------------------------------------------------------------ */

static void show_one(const qkvi_gguf_file *file, const qkvi_gguf_key *key, uint64_t i, uint64_t *at,
                     char *text, size_t text_bytes) {
    switch (key->kind) {
    case QKVI_GGUF_TEXT_VALUE: {
        const qkvi_gguf_text found = qkvi_gguf_text_at(file, at);
        const bool is_long = found.n > SHOWN_BYTES;
        const size_t n = is_long ? SHOWN_BYTES : found.n;
        snprintf(text, text_bytes, "'%s'%s",
                 QKVI_PRINTABLE_BYTES(4 * SHOWN_BYTES + 8, found.bytes, n), is_long ? "…" : "");
        break;
    }
    case QKVI_GGUF_BOOL_VALUE:
        snprintf(text, text_bytes, "%s", file->header[key->at + i] ? "true" : "false");
        break;
    case QKVI_GGUF_F32_VALUE:
    case QKVI_GGUF_F64_VALUE: {
        const bool single = key->kind == QKVI_GGUF_F32_VALUE;
        const double x = qkvi_gguf_real_of(file, key, i);
        char number[32];
        qkvi_digits(number, single ? qkvi_gguf_shortest((float)x) : x, single ? 9 : 17);
        snprintf(text, text_bytes, "%s", number);
        break;
    }
    case QKVI_GGUF_U64_VALUE:
        snprintf(text, text_bytes, "%" PRIu64, (uint64_t)integer_at(file, key, i));
        break;
    default: snprintf(text, text_bytes, "%" PRId64, integer_at(file, key, i));
    }
}

void qkvi_gguf_show(const qkvi_gguf_file *file, const qkvi_gguf_key *key, char *text,
                    size_t text_bytes) {
    uint64_t at = key->at;
    size_t n = 0;
    *text = '\0';
    for (uint64_t i = 0; i < key->count && i < SHOWN_ELEMENTS && n < text_bytes; i++) {
        char one[4 * SHOWN_BYTES + 16];
        show_one(file, key, i, &at, one, sizeof one);
        n += (size_t)snprintf(text + n, text_bytes - n, "%s%s", i ? ", " : "", one);
    }
    if (key->count > SHOWN_ELEMENTS && n < text_bytes) snprintf(text + n, text_bytes - n, ", …");
}
