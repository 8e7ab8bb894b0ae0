/*
 * The content of a zip's entries: see zip.h. Stored bytes are read directly, deflated ones through
 * a buffer. An entry gives at most the bytes that it claims, and before reading its claim is
 * compared with the most that deflate can give: 1032 bytes for one (258 bytes for the 2 bits of the
 * shortest codes of a length and a distance). A ratio above 100 is refused from 64 MiB on; such an
 * array can be stored without compression.
 */

#include "files/zip.h"

enum { BUFFER_BYTES = 1 << 16, MOST_DEFLATED = 1032, MAX_RATIO = 100, RATIO_FROM = 64 << 20 };

static qkv_status failed(const qkvi_zip_reader *reader, const char *what, qkv_error *error) {
    return qkvi_zip_failed(reader->zip, reader->entry, QKV_ERR_FORMAT, what, error);
}

static qkv_status check_ratio(const qkvi_zip_reader *reader, qkv_error *error) {
    const qkvi_zip_entry *const entry = reader->entry;
    const uint64_t whole = entry->n_bytes / MOST_DEFLATED + (entry->n_bytes % MOST_DEFLATED != 0);
    if (whole > entry->n_stored)
        return failed(reader, "it claims more bytes than deflate can hold", error);
    if (entry->n_bytes <= RATIO_FROM || entry->n_bytes / MAX_RATIO <= entry->n_stored)
        return QKV_OK;
    char what[128];
    snprintf(what, sizeof what, "%llu bytes in %llu are above the limit of %d to 1; store it",
             (unsigned long long)entry->n_bytes, (unsigned long long)entry->n_stored, MAX_RATIO);
    return qkvi_zip_failed(reader->zip, entry, QKV_ERR_LIMIT, what, error);
}

qkv_status qkvi_zip_begin(const qkvi_zip *zip, const qkvi_zip_entry *entry, qkvi_zip_reader *reader,
                          qkv_error *error) {
    memset(reader, 0, sizeof *reader);
    reader->zip = zip;
    reader->entry = entry;
    if (entry->method == QKVI_ZIP_STORED) return QKV_OK;
    QKV_TRY(check_ratio(reader, error));
    reader->buffer = malloc(BUFFER_BYTES);
    if (reader->buffer && inflateInit2(&reader->stream, -MAX_WBITS) == Z_OK) {
        reader->has_stream = 1;
        return QKV_OK;
    }
    return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to inflate", zip->source.name);
}

/* The next stored bytes into the buffer, if it is empty. */
static qkv_status refill(qkvi_zip_reader *reader, qkv_error *error) {
    const qkvi_zip_entry *const entry = reader->entry;
    const uint64_t left = entry->n_stored - reader->n_read;
    if (reader->stream.avail_in > 0 || left == 0) return QKV_OK;
    const size_t n = left < BUFFER_BYTES ? (size_t)left : BUFFER_BYTES;
    QKV_TRY(qkvi_source_read(&reader->zip->source, entry->begin + reader->n_read, reader->buffer, n,
                             error));
    reader->n_read += n;
    reader->stream.next_in = reader->buffer;
    reader->stream.avail_in = (uInt)n;
    return QKV_OK;
}

/* Inflates up to n bytes; *got of them came, *ended: there are no more. */
static qkv_status inflate_some(qkvi_zip_reader *reader, uint8_t *to, size_t n, size_t *got,
                               int *ended, qkv_error *error) {
    z_stream *const stream = &reader->stream;
    const uInt room = n < 1u << 30 ? (uInt)n : 1u << 30;
    QKV_TRY(refill(reader, error));
    stream->next_out = to;
    stream->avail_out = room;
    const int result = inflate(stream, Z_NO_FLUSH);
    *got = room - stream->avail_out;
    *ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return qkvi_error_set(error, QKV_ERR_MEMORY, "%s: no memory to inflate",
                              reader->zip->source.name);
    if (result == Z_BUF_ERROR) return failed(reader, "its deflated data is cut short", error);
    return result == Z_OK || *ended ? QKV_OK : failed(reader, "its deflated data is broken", error);
}

static qkv_status take_deflated(qkvi_zip_reader *reader, uint8_t *to, size_t n, qkv_error *error) {
    int ended = 0;
    while (n > 0) {
        size_t got;
        if (ended) return failed(reader, "it holds fewer bytes than it claims", error);
        QKV_TRY(inflate_some(reader, to, n, &got, &ended, error));
        to += got;
        n -= got;
    }
    if (ended) reader->has_ended = 1;
    return QKV_OK;
}

qkv_status qkvi_zip_take(qkvi_zip_reader *reader, void *destination, size_t n, qkv_error *error) {
    const qkvi_zip_entry *const entry = reader->entry;
    if (n > entry->n_bytes - reader->n_taken)
        return failed(reader, "it holds fewer bytes than its content needs", error);
    if (entry->method == QKVI_ZIP_STORED)
        QKV_TRY(qkvi_source_read(&reader->zip->source, entry->begin + reader->n_taken, destination,
                                 n, error));
    else if (n > 0 && reader->has_ended)
        return failed(reader, "it holds fewer bytes than it claims", error);
    else
        QKV_TRY(take_deflated(reader, destination, n, error));
    reader->n_taken += n;
    if (n) reader->crc = (uint32_t)crc32_z(reader->crc, destination, n);
    return QKV_OK;
}

qkv_status qkvi_zip_finish(qkvi_zip_reader *reader, qkv_error *error) {
    const qkvi_zip_entry *const entry = reader->entry;
    if (reader->n_taken != entry->n_bytes)
        return failed(reader, "it holds more bytes than its content needs", error);
    for (int ended = !reader->has_stream || reader->has_ended; !ended;) {
        uint8_t byte;
        size_t got;
        QKV_TRY(inflate_some(reader, &byte, 1, &got, &ended, error));
        if (got) return failed(reader, "it holds more bytes than it claims", error);
    }
    if (reader->has_stream && (reader->stream.avail_in > 0 || reader->n_read != entry->n_stored))
        return failed(reader, "bytes follow its deflated data", error);
    return reader->crc == entry->crc ? QKV_OK : failed(reader, "its checksum is wrong", error);
}

void qkvi_zip_end(qkvi_zip_reader *reader) {
    if (reader->has_stream) inflateEnd(&reader->stream);
    free(reader->buffer);
    reader->buffer = NULL;
    reader->has_stream = 0;
}
