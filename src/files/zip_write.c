/*
 * Writing a zip: see zip.h. As in numpy every local header has the zip64 field, so that entries of
 * 4 GiB need no other form; the directory has it where a number needs it. Times are 1980-01-01 and
 * permissions 0600, so that the bytes depend only on the arrays.
 */

#include "files/zip.h"

enum { VERSION = 45, UNIX = 3, DAY_ONE = 0x21, UTF8 = 1 << 11, ZIP64_BYTES = 28 };

static char *put16(char *at, uint32_t value) {
    *at++ = (char)(value & 255);
    *at++ = (char)(value >> 8 & 255);
    return at;
}
static char *put32(char *at, uint32_t value) { return put16(put16(at, value), value >> 16); }
static char *put64(char *at, uint64_t value) {
    return put32(put32(at, (uint32_t)value), (uint32_t)(value >> 32));
}
static uint32_t saturated(uint64_t value) {
    return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

static qkv_status put(qkvi_zip_writer *zip, const char *bytes, size_t n, qkv_error *error) {
    zip->at += n;
    return qkvi_writer_put(zip->out, bytes, n, error);
}

static uint32_t flags_of(const char *name) {
    for (; *name; name++)
        if (*name & 0x80) return UTF8;
    return 0;
}

/* What both headers have: from the version that is needed to the two sizes. */
static char *put_common(char *at, const char *name, uint32_t crc, uint64_t n_bytes) {
    at = put16(at, VERSION);
    at = put16(at, flags_of(name));
    at = put16(at, QKVI_ZIP_STORED);
    at = put32(at, (uint32_t)DAY_ONE << 16);
    at = put32(at, crc);
    at = put32(at, saturated(n_bytes));
    return put32(at, saturated(n_bytes));
}

/* Appends the entry's central header. */
static qkv_status note_central(qkvi_zip_writer *zip, const char *name, uint64_t n_bytes,
                               uint32_t crc, qkv_error *error) {
    const size_t n_name = strlen(name), most = QKVI_ZIP_CENTRAL + n_name + ZIP64_BYTES;
    const uint32_t is_large = n_bytes >= UINT32_MAX, is_far = zip->at >= UINT32_MAX;
    const uint32_t extra = is_large || is_far ? 4 + 16 * is_large + 8 * is_far : 0;
    if (qkvi_reserve(&zip->central, &zip->central_room, zip->n_central + most, 1) != QKV_OK)
        return qkvi_no_memory(error, "a directory");
    char *at = zip->central + zip->n_central;
    memcpy(at, "PK\1\2", 4);
    at = put16(at + 4, UNIX << 8 | VERSION);
    at = put_common(at, name, crc, n_bytes);
    at = put16(at, (uint32_t)n_name);
    at = put16(at, extra);
    at = put16(put16(put16(at, 0), 0), 0); /* no comment, one disk, no text */
    at = put32(at, 0600u << 16);
    at = put32(at, saturated(zip->at));
    memcpy(at, name, n_name);
    at += n_name;
    if (extra) at = put16(put16(at, 1), extra - 4);
    if (is_large) at = put64(put64(at, n_bytes), n_bytes);
    if (is_far) at = put64(at, zip->at);
    zip->n_central = (size_t)(at - zip->central);
    zip->n_entries++;
    return QKV_OK;
}

qkv_status qkvi_zip_put_header(qkvi_zip_writer *zip, const char *name, uint64_t n_bytes,
                               uint32_t crc, qkv_error *error) {
    char bytes[QKVI_ZIP_LOCAL + 20];
    const size_t n_name = strlen(name);
    if (n_name > QKVI_ZIP_MAX_NAME)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "a name of %zu bytes, the limit is %d",
                              n_name, QKVI_ZIP_MAX_NAME);
    QKV_TRY(note_central(zip, name, n_bytes, crc, error));
    memcpy(bytes, "PK\3\4", 4);
    char *at = put_common(bytes + 4, name, crc, UINT32_MAX);
    at = put16(at, (uint32_t)n_name);
    at = put16(at, 20);
    QKV_TRY(put(zip, bytes, (size_t)(at - bytes), error));
    QKV_TRY(put(zip, name, n_name, error));
    at = put16(put16(bytes, 1), 16);
    at = put64(put64(at, n_bytes), n_bytes);
    QKV_TRY(put(zip, bytes, (size_t)(at - bytes), error));
    zip->at += n_bytes; /* which the caller puts */
    return QKV_OK;
}

/* zip64's end record and its locator. */
static char *put_end64(const qkvi_zip_writer *zip, uint64_t directory, char *at) {
    memcpy(at, "PK\6\6", 4);
    at = put64(at + 4, QKVI_ZIP_END64 - 12);
    at = put16(put16(at, VERSION), VERSION);
    at = put32(put32(at, 0), 0);
    at = put64(put64(at, (uint64_t)zip->n_entries), (uint64_t)zip->n_entries);
    at = put64(put64(at, zip->n_central), directory);
    memcpy(at, "PK\6\7", 4);
    at = put32(at + 4, 0);
    return put32(put64(at, directory + zip->n_central), 1);
}

qkv_status qkvi_zip_put_directory(qkvi_zip_writer *zip, qkv_error *error) {
    char bytes[QKVI_ZIP_END64 + QKVI_ZIP_LOCATOR + QKVI_ZIP_END], *at = bytes;
    const uint64_t directory = zip->at;
    const uint32_t n = zip->n_entries < UINT16_MAX ? (uint32_t)zip->n_entries : UINT16_MAX;
    QKV_TRY(put(zip, zip->central, zip->n_central, error));
    if (n == UINT16_MAX || directory >= UINT32_MAX || zip->n_central >= UINT32_MAX)
        at = put_end64(zip, directory, at);
    memcpy(at, "PK\5\6", 4);
    at = put32(at + 4, 0);
    at = put16(put16(at, n), n);
    at = put32(put32(at, saturated(zip->n_central)), saturated(directory));
    at = put16(at, 0);
    return put(zip, bytes, (size_t)(at - bytes), error);
}

void qkvi_zip_writer_end(qkvi_zip_writer *zip) {
    free(zip->central);
    zip->central = NULL;
}
