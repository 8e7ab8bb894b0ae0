/*
 * The directory of a zip: see zip.h. It is found from the end of the file: the end record (with
 * that of zip64, if there is one) has the offset of the directory and the number of its entries,
 * which must match exactly. No allocation is larger than what is in the file.
 */
#include "files/zip.h"

enum { MAX_ENTRIES = 1 << 16, MAX_DIRECTORY = 16 << 20, ENCRYPTED = 1 | 1 << 6 | 1 << 13 };

typedef struct directory {
    uint64_t begin, n_bytes, n_entries;
} directory;

static qkv_status broken(const qkvi_zip *zip, const char *what, qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_FORMAT, "%s: %s", zip->source.name, what);
}

/* ---- The end --------------------------------------------------------------------------------- */

/* zip64's end record and the locator that points at it, just before the end record at `end`. */
static qkv_status read_end64(const qkvi_zip *zip, uint64_t end, directory *found,
                             uint64_t *directory_end, qkv_error *error) {
    uint8_t bytes[QKVI_ZIP_END64 + QKVI_ZIP_LOCATOR];
    const uint8_t *const locator = bytes + QKVI_ZIP_END64;
    if (end < sizeof bytes) return QKV_OK;
    QKV_TRY(qkvi_source_read(&zip->source, end - sizeof bytes, bytes, sizeof bytes, error));
    if (memcmp(locator, "PK\6\7", 4) != 0) return QKV_OK;
    if (memcmp(bytes, "PK\6\6", 4) != 0 || qkvi_u64_at(bytes + 4) != QKVI_ZIP_END64 - 12 ||
        qkvi_u64_at(locator + 8) != end - sizeof bytes)
        return broken(zip, "zip64's end record is not where its locator says", error);
    if (qkvi_u32_at(locator + 4) != 0 || qkvi_u32_at(locator + 16) > 1 ||
        qkvi_u32_at(bytes + 16) != 0 || qkvi_u32_at(bytes + 20) != 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a zip in several parts",
                              zip->source.name);
    const directory wide = { qkvi_u64_at(bytes + 48), qkvi_u64_at(bytes + 40),
                             qkvi_u64_at(bytes + 32) };
    if (wide.n_entries != qkvi_u64_at(bytes + 24) ||
        (found->begin != UINT32_MAX && found->begin != wide.begin) ||
        (found->n_bytes != UINT32_MAX && found->n_bytes != wide.n_bytes) ||
        (found->n_entries != UINT16_MAX && found->n_entries != wide.n_entries))
        return broken(zip, "its two end records disagree", error);
    *found = wide;
    *directory_end = end - sizeof bytes;
    return QKV_OK;
}

static qkv_status find_directory(const qkvi_zip *zip, directory *found, qkv_error *error) {
    uint8_t bytes[QKVI_ZIP_END];
    if (zip->source.n_bytes < sizeof bytes) return broken(zip, "is not a zip file", error);
    const uint64_t end = zip->source.n_bytes - sizeof bytes;
    QKV_TRY(qkvi_source_read(&zip->source, end, bytes, sizeof bytes, error));
    if (memcmp(bytes, "PK\5\6", 4) != 0 || qkvi_u16_at(bytes + 20) != 0)
        return broken(zip, "does not end with the end record of a zip file", error);
    if (qkvi_u16_at(bytes + 4) != 0 || qkvi_u16_at(bytes + 6) != 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a zip in several parts",
                              zip->source.name);
    *found =
        (directory){ qkvi_u32_at(bytes + 16), qkvi_u32_at(bytes + 12), qkvi_u16_at(bytes + 10) };
    if (qkvi_u16_at(bytes + 8) != found->n_entries)
        return broken(zip, "its end record counts entries in two ways", error);
    uint64_t directory_end = end;
    QKV_TRY(read_end64(zip, end, found, &directory_end, error));
    if (found->begin > directory_end || found->n_bytes != directory_end - found->begin)
        return broken(zip, "its directory is not where its end record says", error);
    if (found->n_entries > found->n_bytes / QKVI_ZIP_CENTRAL)
        return broken(zip, "its directory is too short for its entries", error);
    if (found->n_entries > MAX_ENTRIES || found->n_bytes > MAX_DIRECTORY)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "%s: %llu entries, directory of %llu bytes; the limits are %d and %d",
                              zip->source.name, (unsigned long long)found->n_entries,
                              (unsigned long long)found->n_bytes, MAX_ENTRIES, MAX_DIRECTORY);
    return QKV_OK;
}

/* ---- The directory --------------------------------------------------------------------------- */

static qkv_status check_entry(const qkvi_zip *zip, const qkvi_zip_entry *entry, uint32_t disk,
                              qkv_error *error) {
    if (entry->flags & ENCRYPTED)
        return qkvi_zip_failed(zip, entry, QKV_ERR_UNSUPPORTED, "it is encrypted", error);
    if (disk != 0)
        return qkvi_zip_failed(zip, entry, QKV_ERR_UNSUPPORTED, "it is in another part", error);
    if (entry->method != QKVI_ZIP_STORED && entry->method != QKVI_ZIP_DEFLATED) {
        char what[64];
        snprintf(what, sizeof what, "compression method %u is none of 0, 8", entry->method);
        return qkvi_zip_failed(zip, entry, QKV_ERR_UNSUPPORTED, what, error);
    }
    if (entry->method == QKVI_ZIP_STORED && entry->n_stored != entry->n_bytes)
        return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, "it is stored in another size", error);
    return QKV_OK;
}

/* One central header at *at, which moves past it. The name is copied to name. */
static qkv_status read_central(const qkvi_zip *zip, const uint8_t **at, const uint8_t *end,
                               char *name, qkvi_zip_entry *entry, qkv_error *error) {
    qkvi_zip_fields fields;
    if (end - *at < QKVI_ZIP_CENTRAL || memcmp(*at, "PK\1\2", 4) != 0)
        return broken(zip, "an entry of its directory is cut short or none", error);
    qkvi_zip_central(*at, &fields);
    *at += QKVI_ZIP_CENTRAL;
    if (fields.name_bytes + fields.extra_bytes + fields.comment_bytes > (size_t)(end - *at))
        return broken(zip, "an entry of its directory is cut short or none", error);
    if (fields.name_bytes == 0 || memchr(*at, '\0', fields.name_bytes))
        return broken(zip, "the name of an entry is empty or holds a zero byte", error);
    if (fields.name_bytes > QKVI_ZIP_MAX_NAME)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "%s: a name of %zu bytes, the limit is %d",
                              zip->source.name, fields.name_bytes, QKVI_ZIP_MAX_NAME);
    memcpy(name, *at, fields.name_bytes);
    name[fields.name_bytes] = '\0';
    entry->name = name;
    const char *const wrong = qkvi_zip_extra(*at + fields.name_bytes, &fields);
    if (wrong) return qkvi_zip_failed(zip, entry, QKV_ERR_FORMAT, wrong, error);
    *at += fields.name_bytes + fields.extra_bytes + fields.comment_bytes;
    entry->flags = fields.flags;
    entry->method = fields.method;
    entry->crc = fields.crc;
    entry->n_stored = fields.n_stored;
    entry->n_bytes = fields.n_bytes;
    entry->header = fields.header;
    return check_entry(zip, entry, fields.disk, error);
}

static int by_name(const void *left, const void *right) {
    return strcmp(((const qkvi_zip_entry *)left)->name, ((const qkvi_zip_entry *)right)->name);
}

static qkv_status read_entries(qkvi_zip *zip, const directory *found, const uint8_t *bytes,
                               qkv_error *error) {
    const uint8_t *at = bytes, *const end = bytes + found->n_bytes;
    char *name = zip->names;
    for (uint64_t e = 0; e < found->n_entries; e++) {
        qkvi_zip_entry *const entry = &zip->entries[zip->n_entries];
        QKV_TRY(read_central(zip, &at, end, name, entry, error));
        name += strlen(name) + 1;
        zip->n_entries++;
    }
    if (at != end) return broken(zip, "its directory is longer than its entries", error);
    QKV_TRY(qkvi_zip_check_layout(zip, found->begin, error));
    qsort(zip->entries, (size_t)zip->n_entries, sizeof *zip->entries, by_name);
    for (int64_t e = 1; e < zip->n_entries; e++)
        if (by_name(&zip->entries[e - 1], &zip->entries[e]) == 0)
            return qkvi_zip_failed(zip, &zip->entries[e], QKV_ERR_FORMAT, "it is there twice",
                                   error);
    return qkvi_source_check(&zip->source, error);
}

static qkv_status read_directory(qkvi_zip *zip, qkv_error *error) {
    directory found = { 0 };
    QKV_TRY(find_directory(zip, &found, error));
    uint8_t *const bytes = malloc((size_t)found.n_bytes + 1);
    zip->entries = calloc((size_t)found.n_entries + 1, sizeof *zip->entries);
    zip->names = malloc((size_t)found.n_bytes + 1); /* names are shorter than their headers */
    qkv_status status =
        bytes && zip->entries && zip->names
            ? qkvi_source_read(&zip->source, found.begin, bytes, (size_t)found.n_bytes, error)
            : qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory for its directory",
                             zip->source.name);
    if (status == QKV_OK) status = read_entries(zip, &found, bytes, error);
    free(bytes);
    return status;
}

qkv_status qkvi_zip_open(const char *path, qkvi_zip *zip, qkv_error *error) {
    memset(zip, 0, sizeof *zip);
    QKV_TRY(qkvi_source_open(path, &zip->source, error));
    const qkv_status status = read_directory(zip, error);
    if (status != QKV_OK) qkvi_zip_close(zip);
    return status;
}

void qkvi_zip_close(qkvi_zip *zip) {
    qkvi_source_close(&zip->source);
    free(zip->entries);
    free(zip->names);
    memset(zip, 0, sizeof *zip);
}

const qkvi_zip_entry *qkvi_zip_find(const qkvi_zip *zip, const char *name) {
    const qkvi_zip_entry key = { .name = name };
    return bsearch(&key, zip->entries, (size_t)zip->n_entries, sizeof key, by_name);
}
