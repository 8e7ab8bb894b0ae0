/*
 * Local headers of a zip, and the layout of its entries: see zip.h. In the order of their offsets
 * the first entry begins at 0, each further one where the one before ends, and the directory
 * follows the last. An entry that was written to a stream has a descriptor with its sizes after its
 * data, in one of four forms: with or without a signature, of 32 or of 64 bits.
 */
#include "files/zip.h"

/* ---- Fields ---------------------------------------------------------------------------------- */

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

static void zip_local(const uint8_t *bytes, qkvi_zip_fields *fields) {
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
    return qkvi_error_set(error, status, "%s: entry '%s': %s", zip->source.name,
                          QKVI_PRINTABLE(200, entry->name), what);
}

static qkv_status disagrees(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkv_error *error) {
    return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT,
                           "its local header is not what the directory says", error);
}

/* Sizes and checksum, which a described entry may leave at 0. */
static int agree(const qkvi_zip_fields *local, const qkvi_zip_entry *entry) {
    if (local->flags != entry->flags || local->method != entry->method) return 0;
    if ((local->flags & QKVI_ZIP_DESCRIBED) && local->crc == 0 && local->n_stored == 0 &&
        local->n_bytes == 0)
        return 1;
    return local->crc == entry->crc && local->n_stored == entry->n_stored &&
           local->n_bytes == entry->n_bytes;
}

/* Name and extra fields of a local header, in variable[]. */
static qkv_status compare(const qkvi_zip *zip, const uint8_t *variable, qkvi_zip_fields *local,
                          const qkvi_zip_entry *entry, qkv_error *error) {
    if (memcmp(variable, entry->name, local->name_bytes) != 0) return disagrees(zip, entry, error);
    const char *const wrong = qkvi_zip_extra(variable + local->name_bytes, local);
    if (wrong) return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, wrong, error);
    return agree(local, entry) ? QKV_OK : disagrees(zip, entry, error);
}

static qkv_status read_local(const qkvi_zip *zip, qkvi_zip_entry *entry, uint64_t directory,
                             qkv_error *error) {
    uint8_t bytes[QKVI_ZIP_LOCAL];
    qkvi_zip_fields local;
    if (entry->header > directory || directory - entry->header < sizeof bytes)
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "it is not before the directory", error);
    QKV_TRY(qkvi_source_read(&zip->source, entry->header, bytes, sizeof bytes, error));
    if (memcmp(bytes, "PK\3\4", 4) != 0) return disagrees(zip, entry, error);
    zip_local(bytes, &local);
    const uint64_t after = entry->header + sizeof bytes;
    const size_t n = local.name_bytes + local.extra_bytes;
    if (n > directory - after || local.name_bytes != strlen(entry->name))
        return disagrees(zip, entry, error);
    entry->begin = after + n;
    if (entry->n_stored > directory - entry->begin)
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "it is longer than the file", error);
    uint8_t *const variable = malloc(n + 1);
    if (!variable)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for its names",
                              zip->source.name);
    qkv_status status = qkvi_source_read(&zip->source, after, variable, n, error);
    if (status == QKV_OK) status = compare(zip, variable, &local, entry, error);
    free(variable);
    return status;
}

/* Whether the n bytes between an entry and what follows are a descriptor of it. */
static int is_descriptor(const qkvi_zip_entry *entry, const uint8_t *bytes, size_t n) {
    const int is_signed = n == 16 || n == 24;
    if (is_signed && memcmp(bytes, "PK\7\10", 4) != 0) return 0;
    const uint8_t *const at = bytes + (is_signed ? 4 : 0);
    if (qkvi_u32_at(at) != entry->crc) return 0;
    if (n < 20)
        return qkvi_u32_at(at + 4) == entry->n_stored && qkvi_u32_at(at + 8) == entry->n_bytes;
    return qkvi_u64_at(at + 4) == entry->n_stored && qkvi_u64_at(at + 12) == entry->n_bytes;
}

/* next: where the next entry or the directory begins. */
static qkv_status check_end(const qkvi_zip *zip, const qkvi_zip_entry *entry, uint64_t next,
                            qkv_error *error) {
    uint8_t bytes[24];
    const uint64_t end = entry->begin + entry->n_stored;
    if (next < end)
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "another one lies upon it", error);
    const uint64_t n = next - end;
    if (!(entry->flags & QKVI_ZIP_DESCRIBED)) {
        if (n == 0) return QKV_OK;
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "bytes follow it that no entry has",
                               error);
    }
    if (n != 12 && n != 16 && n != 20 && n != 24)
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "no descriptor follows it", error);
    QKV_TRY(qkvi_source_read(&zip->source, end, bytes, (size_t)n, error));
    if (is_descriptor(entry, bytes, (size_t)n)) return QKV_OK;
    return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT,
                           "its descriptor is not what the directory says", error);
}

/*
 * Those at one place in the order of the directory, in which their names stand in one room: by
 * every C library the same one is refused.
 */
static int by_place(const void *left, const void *right) {
    const qkvi_zip_entry *const a = left, *const b = right;
    if (a->header != b->header) return a->header < b->header ? -1 : 1;
    return (a->name > b->name) - (a->name < b->name);
}

qkv_status qkvi_zip_check_layout(qkvi_zip *zip, uint64_t directory, qkv_error *error) {
    qkvi_zip_entry *const entries = zip->entries;
    qsort(entries, (size_t)zip->n_entries, sizeof *entries, by_place);
    const uint64_t first = zip->n_entries ? entries[0].header : directory;
    if (first != 0)
        return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: bytes before its first entry",
                              zip->source.name);
    for (int64_t e = 0; e < zip->n_entries; e++) {
        const uint64_t next = e + 1 < zip->n_entries ? entries[e + 1].header : directory;
        QKV_TRY(read_local(zip, &entries[e], directory, error));
        QKV_TRY(check_end(zip, &entries[e], next, error));
    }
    return QKV_OK;
}
