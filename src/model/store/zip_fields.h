/**
 * The fields of zip's headers. A central header is a local one with a few more, so one reader does
 * both; sizes of 2^32 - 1 stand in the zip64 extra field.
 */
#ifndef QKVI_STORE_ZIP_FIELDS_H
#define QKVI_STORE_ZIP_FIELDS_H

#include "model/store/zip.h"

enum {
    QKVI_ZIP_END = 22,
    QKVI_ZIP_END64 = 56,
    QKVI_ZIP_LOCATOR = 20,
    QKVI_ZIP_CENTRAL = 46,
    QKVI_ZIP_LOCAL = 30,
    QKVI_ZIP_DESCRIBED = 1 << 3 /* a flag: sizes and checksum follow the data */
};

/** What a header says of an entry; name and extra lie behind its fixed part. */
typedef struct qkvi_zip_fields {
    uint32_t flags, method, crc, disk;
    uint64_t n_stored, n_bytes, header;
    size_t name_bytes, extra_bytes, comment_bytes;
} qkvi_zip_fields;

/** The fixed part of a central (QKVI_ZIP_CENTRAL bytes) or a local header (QKVI_ZIP_LOCAL). */
void qkvi_zip_central(const uint8_t *bytes, qkvi_zip_fields *fields);
void qkvi_zip_local(const uint8_t *bytes, qkvi_zip_fields *fields);

/** Fills sizes, offset and disk from a zip64 field. NULL, or what is wrong with the extra bytes. */
const char *qkvi_zip_extra(const uint8_t *extra, qkvi_zip_fields *fields);

qkv_status qkvi_zip_failed(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkv_status status,
                           const char *what, qkv_error *error);

/**
 * Compares the local header of each entry with the directory, finds where data begins, and checks
 * that the entries, which it sorts by their place, cover the file up to the directory.
 */
qkv_status qkvi_zip_check_layout(qkvi_zip *zip, uint64_t directory, qkv_error *error);

#endif
