/* The fields of zip's headers: see zip_fields.h. */
#include "model/store/zip_fields.h"

enum { ZIP64 = 1 };

void qkvi_zip_central(const uint8_t *bytes, qkvi_zip_fields *fields) {
    *fields = (qkvi_zip_fields){
        .flags = qkvi_u16_at(bytes + 8),
        .method = qkvi_u16_at(bytes + 10),
        .crc = qkvi_u32_at(bytes + 16),
        .n_stored = qkvi_u32_at(bytes + 20),
        .n_bytes = qkvi_u32_at(bytes + 24),
        .name_bytes = qkvi_u16_at(bytes + 28),
        .extra_bytes = qkvi_u16_at(bytes + 30),
        .comment_bytes = qkvi_u16_at(bytes + 32),
        .disk = qkvi_u16_at(bytes + 34),
        .header = qkvi_u32_at(bytes + 42),
    };
}

void qkvi_zip_local(const uint8_t *bytes, qkvi_zip_fields *fields) {
    *fields = (qkvi_zip_fields){
        .flags = qkvi_u16_at(bytes + 6),
        .method = qkvi_u16_at(bytes + 8),
        .crc = qkvi_u32_at(bytes + 14),
        .n_stored = qkvi_u32_at(bytes + 18),
        .n_bytes = qkvi_u32_at(bytes + 22),
        .name_bytes = qkvi_u16_at(bytes + 26),
        .extra_bytes = qkvi_u16_at(bytes + 28),
    };
}

/* The next 8 bytes of the zip64 field, if the header's own number is saturated. 0: it ended. */
static int widen(const uint8_t **at, const uint8_t *end, uint64_t *value) {
    if (*value != UINT32_MAX) return 1;
    if (end - *at < 8) return 0;
    *value = qkvi_u64_at(*at);
    *at += 8;
    return 1;
}

const char *qkvi_zip_extra(const uint8_t *extra, qkvi_zip_fields *fields) {
    const uint8_t *at = extra, *const end = extra + fields->extra_bytes;
    int seen = 0;
    while (at < end) {
        if (end - at < 4) return "its extra fields are cut short";
        const uint32_t id = qkvi_u16_at(at);
        const size_t n = qkvi_u16_at(at + 2);
        at += 4;
        if (n > (size_t)(end - at)) return "its extra fields are cut short";
        const uint8_t *value = at;
        at += n;
        if (id != ZIP64) continue;
        if (seen++) return "it has two zip64 fields";
        if (!widen(&value, at, &fields->n_bytes) || !widen(&value, at, &fields->n_stored) ||
            !widen(&value, at, &fields->header))
            return "its zip64 field is cut short";
        if (fields->disk == UINT16_MAX && at - value >= 4) {
            fields->disk = qkvi_u32_at(value);
            value += 4;
        }
        if (value != at) return "its zip64 field has a number too many";
    }
    return NULL;
}

qkv_status qkvi_zip_failed(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkv_status status,
                           const char *what, qkv_error *error) {
    char printable[200];
    return qkvi_error_set(
        error, status, "%s: entry '%s': %s", zip->source.name,
        qkvi_escape(printable, sizeof printable, entry->name, strlen(entry->name)), what);
}
