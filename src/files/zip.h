/**
 * zip, the format of .npz files: entries one after the other, then a directory of them.
 *
 *     local header | name | extra | data | [descriptor]      for each entry
 *     central header | name | extra                          for each entry
 *     [zip64 end record | zip64 locator] end record          counts, sizes and offsets
 *
 * A file that opens has been checked whole: the end record is at its end, the directory lies just
 * before it, every local header says what the directory says, and entries cover all that is before
 * the directory, without hole or overlap. So two readers, one that begins at the front and one that
 * begins at the back, cannot see two files. Entries are stored or deflated, and not encrypted.
 * Reference: APPNOTE.TXT 6.3.10.
 */
#ifndef QKVI_FILES_ZIP_H
#define QKVI_FILES_ZIP_H

#include <zlib.h>

#include "files/file.h"

enum { QKVI_ZIP_STORED = 0, QKVI_ZIP_DEFLATED = 8, QKVI_ZIP_MAX_NAME = 1024 };

typedef struct qkvi_zip_entry {
    const char *name; /* raw bytes: escape before printing, never use as a path */
    uint32_t flags, method, crc;
    uint64_t n_stored, n_bytes; /* bytes in the file; bytes of the content */
    uint64_t header, begin;     /* offsets in the file of the local header and of the data */
} qkvi_zip_entry;

typedef struct qkvi_zip {
    qkvi_source source;
    qkvi_zip_entry *entries; /* in byte order of their names, all of which differ */
    int64_t n_entries;
    char *names;
} qkvi_zip;

/** FORMAT, LIMIT, UNSUPPORTED, IO, MEMORY. To be closed by qkvi_zip_close after success. */
qkv_status qkvi_zip_open(const char *path, qkvi_zip *zip, qkv_error *error);
void qkvi_zip_close(qkvi_zip *zip);

/** NULL if there is none of that name. */
const qkvi_zip_entry *qkvi_zip_find(const qkvi_zip *zip, const char *name);

/**
 * Reads the content of an entry in order (zip_data.c). Memory: 64 KiB and zlib's 40 KiB, whatever
 * the entry claims. After qkvi_zip_begin, qkvi_zip_end is called even if it failed.
 */
typedef struct qkvi_zip_reader {
    const qkvi_zip *zip;
    const qkvi_zip_entry *entry;
    uint64_t n_read, n_taken; /* stored bytes, and bytes of the content, so far */
    uint32_t crc;
    uint8_t *buffer;
    z_stream stream;
    int has_stream, has_ended; /* the entry is deflated; zlib has met the end */
} qkvi_zip_reader;

qkv_status qkvi_zip_begin(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkvi_zip_reader *reader,
                          qkv_error *error);
/** Reads the next n bytes of the content; FORMAT if there are fewer. */
qkv_status qkvi_zip_take(qkvi_zip_reader *reader, void *destination, size_t n, qkv_error *error);
/** To be called when all is taken: FORMAT if bytes are left, or the checksum is wrong. */
qkv_status qkvi_zip_finish(qkvi_zip_reader *reader, qkv_error *error);
void qkvi_zip_end(qkvi_zip_reader *reader);

/**
 * Writes a zip of stored entries in order, with the same bytes as numpy.savez (zip_write.c). The
 * checksum of an entry is needed before its content.
 */
typedef struct qkvi_zip_writer {
    qkvi_writer *out;
    uint64_t at; /* bytes written */
    char *central;
    size_t n_central, central_room;
    int64_t n_entries;
} qkvi_zip_writer;

/** Begins an entry, whose n_bytes the caller then puts into out. ARGUMENT for a long name. */
qkv_status qkvi_zip_put_header(qkvi_zip_writer *zip, const char *name, uint64_t n_bytes,
                               uint32_t crc, qkv_error *error);
/** Writes the directory, which completes out. */
qkv_status qkvi_zip_put_directory(qkvi_zip_writer *zip, qkv_error *error);
void qkvi_zip_writer_end(qkvi_zip_writer *zip);

/* Little-endian numbers, unaligned. */
static inline uint32_t qkvi_u16_at(const uint8_t *at) { return at[0] | (uint32_t)at[1] << 8; }
static inline uint32_t qkvi_u32_at(const uint8_t *at) {
    return qkvi_u16_at(at) | qkvi_u16_at(at + 2) << 16;
}
static inline uint64_t qkvi_u64_at(const uint8_t *at) {
    return qkvi_u32_at(at) | (uint64_t)qkvi_u32_at(at + 4) << 32;
}

/**
 * The headers of a zip: sizes of their fixed parts, and their fields. A size of 2^32 - 1 means that
 * it is in the zip64 extra field.
 */

enum {
    QKVI_ZIP_END = 22,
    QKVI_ZIP_END64 = 56,
    QKVI_ZIP_LOCATOR = 20,
    QKVI_ZIP_CENTRAL = 46,
    QKVI_ZIP_LOCAL = 30,
    QKVI_ZIP_DESCRIBED = 1 << 3 /* a flag: sizes and checksum follow the data */
};

/** The fields of a header; name and extra follow its fixed part. */
typedef struct qkvi_zip_fields {
    uint32_t flags, method, crc, disk;
    uint64_t n_stored, n_bytes, header;
    size_t name_bytes, extra_bytes, comment_bytes;
} qkvi_zip_fields;

/** Reads the fixed part of a central header, QKVI_ZIP_CENTRAL bytes. */
void qkvi_zip_central(const uint8_t *bytes, qkvi_zip_fields *fields);

/** Sets sizes, offset and disk from a zip64 field. Returns NULL, or what is wrong with it. */
const char *qkvi_zip_extra(const uint8_t *extra, qkvi_zip_fields *fields);

qkv_status qkvi_zip_failed(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkv_status status,
                           const char *what, qkv_error *error);

/**
 * Compares the local header of each entry with the directory, finds where the data begins, and
 * checks that the entries, which it sorts by offset, cover the file up to the directory.
 */
qkv_status qkvi_zip_check_layout(qkvi_zip *zip, uint64_t directory, qkv_error *error);

#endif
