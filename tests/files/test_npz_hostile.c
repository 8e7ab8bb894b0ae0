/*
 * Hostile .npz files (NZ ids of docs/hostile-inputs.md). A row changes bytes of a valid file with
 * two arrays, q.npy and kk.npy; the offset of a change counts from the n-th signature of a kind.
 * zlib makes bombs. Files of numpy are in test_store_npz.c.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/alloc.h"
#include "qkv/files.h"

#define LOCAL      "PK\3\4"
#define CENTRAL    "PK\1\2"
#define END        "PK\5\6"
#define DESCRIPTOR "PK\7\10"
#define END64      "PK\6\6"
#define LOCATOR    "PK\6\7"

/* ---- The file -------------------------------------------------------------------------------- */

enum { DEFLATED = 1, DESCRIBED = 2, ZIP64 = 4, ROOM = 1 << 20 };

typedef struct building {
    uint8_t bytes[ROOM];
    size_t n;
} building;

static void put(building *b, const void *bytes, size_t n) {
    memcpy(b->bytes + b->n, bytes, n);
    b->n += n;
}

static void put_number(building *b, int width, uint64_t value) {
    for (int i = 0; i < width; i++) b->bytes[b->n++] = (uint8_t)(value >> 8 * i);
}

typedef struct item {
    const char *name;
    const uint8_t *content;
    size_t n, n_stored, at;
    uint32_t crc;
} item;

static size_t deflate_to(uint8_t *to, size_t room, const uint8_t *content, size_t n) {
    z_stream stream = { .next_in = (uint8_t *)(uintptr_t)content,
                        .avail_in = (uInt)n,
                        .next_out = to,
                        .avail_out = (uInt)room };
    assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    deflateEnd(&stream);
    return room - stream.avail_out;
}

/* The fields from flags to the lengths of name and extra. */
static void put_fields(building *b, const item *e, int kind, int is_local) {
    const int hides = is_local && (kind & DESCRIBED);
    put_number(b, 2, kind & DESCRIBED ? 8 : 0);
    put_number(b, 2, kind & DEFLATED ? 8 : 0);
    put_number(b, 4, 0x210000);
    put_number(b, 4, hides ? 0 : e->crc);
    put_number(b, 4, hides ? 0 : kind & ZIP64 ? UINT32_MAX : e->n_stored);
    put_number(b, 4, hides ? 0 : kind & ZIP64 ? UINT32_MAX : e->n);
    put_number(b, 2, strlen(e->name));
    put_number(b, 2, kind & ZIP64 ? (is_local ? 20 : 28) : 0);
}

static void put_name(building *b, const item *e, int kind, int is_local) {
    put(b, e->name, strlen(e->name));
    if (!(kind & ZIP64)) return;
    put_number(b, 2, 1);
    put_number(b, 2, is_local ? 16 : 24);
    put_number(b, 8, e->n);
    put_number(b, 8, e->n_stored);
    if (!is_local) put_number(b, 8, e->at);
}

static void put_local(building *b, item *e, int kind) {
    static uint8_t packed[ROOM / 2];
    const uint8_t *const stored = kind & DEFLATED ? packed : e->content;
    e->n_stored = kind & DEFLATED ? deflate_to(packed, sizeof packed, e->content, e->n) : e->n;
    e->crc = (uint32_t)crc32_z(0, e->content, e->n);
    e->at = b->n;
    put(b, LOCAL "\x2d\0", 6);
    put_fields(b, e, kind, 1);
    put_name(b, e, kind, 1);
    put(b, stored, e->n_stored);
    if (!(kind & DESCRIBED)) return;
    put(b, DESCRIPTOR, 4);
    put_number(b, 4, e->crc);
    put_number(b, 4, e->n_stored);
    put_number(b, 4, e->n);
}

static void put_zip(building *b, item *entries, int n, int kind) {
    for (int i = 0; i < n; i++) put_local(b, &entries[i], kind);
    const size_t at = b->n;
    for (int i = 0; i < n; i++) {
        put(b, CENTRAL "\x2d\3\x2d\0", 8);
        put_fields(b, &entries[i], kind, 0);
        put_number(b, 8, 0); /* comment, disk, attributes */
        put_number(b, 2, 0);
        put_number(b, 4, kind & ZIP64 ? UINT32_MAX : entries[i].at);
        put_name(b, &entries[i], kind, 0);
    }
    const size_t central = b->n - at;
    if (kind & ZIP64) {
        put(b, END64, 4);
        put_number(b, 8, 44);
        put_number(b, 4, 0x2d002d);
        put_number(b, 8, 0);
        put_number(b, 8, (uint64_t)n);
        put_number(b, 8, (uint64_t)n);
        put_number(b, 8, central);
        put_number(b, 8, at);
        put(b, LOCATOR, 4);
        put_number(b, 4, 0);
        put_number(b, 8, at + central);
        put_number(b, 4, 1);
    }
    put(b, END "\0\0\0\0", 8);
    put_number(b, 2, kind & ZIP64 ? UINT16_MAX : (uint64_t)n);
    put_number(b, 2, kind & ZIP64 ? UINT16_MAX : (uint64_t)n);
    put_number(b, 4, kind & ZIP64 ? UINT32_MAX : central);
    put_number(b, 4, kind & ZIP64 ? UINT32_MAX : at);
    put_number(b, 2, 0);
}

/* A .npy of version 1 with that header and n bytes of data. */
static size_t make_npy(uint8_t *to, const char *shape, size_t n) {
    const int length = snprintf((char *)to + 10, 118,
                                "{'descr': '<f4', 'fortran_order': False, 'shape': %s, }", shape);
    memcpy(to, "\x93NUMPY\1\0\x76", 9);
    to[9] = 0;
    memset(to + 10 + length, ' ', (size_t)(118 - length));
    to[127] = '\n';
    for (size_t i = 0; i < n; i++) to[128 + i] = hostile_byte(i);
    return 128 + n;
}

/* Two arrays of 2 and 5 floats. */
static void put_two(building *b, int kind) {
    static uint8_t q[256], kk[256];
    item entries[] = { { .name = "q.npy", .content = q, .n = make_npy(q, "(2,)", 8) },
                       { .name = "kk.npy", .content = kk, .n = make_npy(kk, "(5,)", 20) } };
    put_zip(b, entries, 2, kind);
}

/* ---- Changes --------------------------------------------------------------------------------- */

typedef struct change {
    const char *signature; /* the n-th of these; NULL: no change */
    int n, offset, width;
    uint64_t value;
} change;

typedef struct attack {
    int kind;
    change changes[4];
    int cut, append; /* bytes at the end */
    int prepend;
} attack;

static uint8_t *find(building *b, const char *signature, int n) {
    for (size_t i = 0; i + 4 <= b->n; i++)
        if (memcmp(b->bytes + i, signature, 4) == 0 && n-- == 0) return b->bytes + i;
    fail_msg("no such signature");
    return NULL;
}

static void make(FILE *out, const hostile_file *file);

#define MADE(...)                                                                                  \
    make, .text = (const char *)&(const attack) { __VA_ARGS__ }
#define PLAIN(how)       MADE(.kind = (how))
#define ENDS(how, ...)   MADE(.kind = (how), __VA_ARGS__)
#define ATTACK(how, ...) MADE(.kind = (how), .changes = __VA_ARGS__)

#define BOTH(n, central, width, value)                                                             \
    { LOCAL, n, (central)-2, width, value }, { CENTRAL, n, central, width, value }
#define NO_DIRECTORY  "its directory is not where its end record says"
#define LOCAL_DIFFERS "its local header is not what the directory says"

static const hostile_file cases[] = {
    { "NZ", "two stored arrays", QKV_OK, "", PLAIN(0) },
    { "NZ", "two deflated arrays", QKV_OK, "", PLAIN(DEFLATED) },
    { "NZ01a", "descriptors", QKV_OK, "", PLAIN(DESCRIBED) },
    { "NZ01a", "descriptors, deflated", QKV_OK, "", PLAIN(DESCRIBED | DEFLATED) },
    { "NZ01a", "zip64", QKV_OK, "", PLAIN(ZIP64) },
    { "NZ01a", "zip64, deflated", QKV_OK, "", PLAIN(ZIP64 | DEFLATED) },
    { "NZ01a", "a descriptor with another checksum", QKV_ERR_FORMAT,
      "entry 'q.npy': its descriptor is not what the directory says",
      ATTACK(DESCRIBED, { { DESCRIPTOR, 0, 4, 1, 0xee } }) },
    { "NZ01a", "a descriptor with another size", QKV_ERR_FORMAT, "its descriptor is not",
      ATTACK(DESCRIBED, { { DESCRIPTOR, 1, 12, 1, 0xee } }) },
    { "NZ01a", "a descriptor without its signature", QKV_ERR_FORMAT, "its descriptor is not",
      ATTACK(DESCRIBED, { { DESCRIPTOR, 1, 0, 1, 'x' } }) },
    { "NZ01a", "a descriptor that is not announced", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(DESCRIBED, { BOTH(0, 8, 1, 0) }) },
    { "NZ01a", "an announced descriptor that is not there", QKV_ERR_FORMAT,
      "no descriptor follows it", ATTACK(0, { BOTH(0, 8, 1, 8) }) },
    { "NZ01a", "zip64: another number of entries", QKV_ERR_FORMAT,
      "zip64's end record is not where", ATTACK(ZIP64, { { END64, 0, 0, 1, 'x' } }) },
    { "NZ01a", "zip64: entries counted in two ways", QKV_ERR_FORMAT, "its two end records disagree",
      ATTACK(ZIP64, { { END64, 0, 24, 1, 3 } }) },
    { "NZ01a", "zip64: 2^60 entries", QKV_ERR_FORMAT, "its directory is too short for its entries",
      ATTACK(ZIP64, { { END64, 0, 24, 8, 1ull << 60 }, { END64, 0, 32, 8, 1ull << 60 } }) },
    { "NZ01a", "zip64: a directory of 2^63 bytes", QKV_ERR_FORMAT, NO_DIRECTORY,
      ATTACK(ZIP64, { { END64, 0, 40, 8, 1ull << 63 } }) },
    { "NZ01a", "zip64: a directory whose end wraps", QKV_ERR_FORMAT, NO_DIRECTORY,
      ATTACK(ZIP64, { { END64, 0, 48, 8, ~0ull - 100 } }) },
    { "NZ01a", "zip64: the end record says something else", QKV_ERR_FORMAT,
      "its two end records disagree", ATTACK(ZIP64, { { END, 0, 16, 4, 77 } }) },
    { "NZ01a", "zip64: the locator points elsewhere", QKV_ERR_FORMAT,
      "zip64's end record is not where", ATTACK(ZIP64, { { LOCATOR, 0, 8, 8, 0 } }) },
    { "NZ01a", "zip64: a record of another length", QKV_ERR_FORMAT,
      "zip64's end record is not where", ATTACK(ZIP64, { { END64, 0, 4, 8, 45 } }) },
    { "NZ01a", "zip64: a size of 2^64 - 1", QKV_ERR_FORMAT, "it is stored in another size",
      ATTACK(ZIP64, { { CENTRAL, 0, 46 + 5 + 4, 8, ~0ull } }) },
    { "NZ01a", "zip64: both sizes 2^64 - 1", QKV_ERR_FORMAT, "it is longer than the file",
      ATTACK(ZIP64,
             { { CENTRAL, 0, 46 + 5 + 4, 8, ~0ull }, { CENTRAL, 0, 46 + 5 + 12, 8, ~0ull } }) },
    { "NZ01a", "zip64: an offset of 2^64 - 1", QKV_ERR_FORMAT, "bytes follow it that no entry has",
      ATTACK(ZIP64, { { CENTRAL, 1, 46 + 6 + 20, 8, ~0ull } }) },
    { "NZ01a", "zip64: a first entry at 2^64 - 1", QKV_ERR_FORMAT, "bytes before its first entry",
      ATTACK(ZIP64, { { CENTRAL, 0, 46 + 5 + 20, 8, ~0ull } }) },
    { "NZ01a", "zip64: a field that is cut short", QKV_ERR_FORMAT, "its extra fields are cut short",
      ATTACK(ZIP64, { { CENTRAL, 0, 46 + 5 + 2, 2, 25 } }) },
    { "NZ01a", "zip64: a field with fewer numbers", QKV_ERR_FORMAT, "its zip64 field is cut short",
      ATTACK(ZIP64, { { CENTRAL, 0, 46 + 5 + 2, 2, 22 } }) },
    { "NZ01a", "zip64: a field of another kind", QKV_ERR_FORMAT, "it is longer than the file",
      ATTACK(ZIP64, { { CENTRAL, 0, 46 + 5, 2, 7 }, { CENTRAL, 0, 42, 4, 0 } }) },
    { "NZ01a", "zip64: a number too many", QKV_ERR_FORMAT, "its zip64 field has a number too many",
      ATTACK(ZIP64, { { CENTRAL, 0, 42, 4, 0 } }) },

    { "NZ01b", "an encrypted entry", QKV_ERR_UNSUPPORTED, "entry 'q.npy': it is encrypted",
      ATTACK(0, { BOTH(0, 8, 1, 1) }) },
    { "NZ01b", "strong encryption", QKV_ERR_UNSUPPORTED, "entry 'kk.npy': it is encrypted",
      ATTACK(0, { BOTH(1, 8, 1, 64) }) },
    { "NZ01b", "an encrypted directory", QKV_ERR_UNSUPPORTED, "it is encrypted",
      ATTACK(0, { BOTH(0, 8, 2, 1 << 13) }) },
    { "NZ", "bzip2", QKV_ERR_UNSUPPORTED, "compression method 12 is none of 0, 8",
      ATTACK(0, { BOTH(0, 10, 1, 12) }) },
    { "NZ", "lzma", QKV_ERR_UNSUPPORTED, "compression method 14",
      ATTACK(0, { BOTH(0, 10, 1, 14) }) },
    { "NZ", "zstd", QKV_ERR_UNSUPPORTED, "compression method 93",
      ATTACK(0, { BOTH(0, 10, 1, 93) }) },
    { "NZ", "several disks", QKV_ERR_UNSUPPORTED, "a zip in several parts",
      ATTACK(0, { { END, 0, 4, 1, 1 } }) },
    { "NZ", "an entry on another disk", QKV_ERR_UNSUPPORTED, "it is in another part",
      ATTACK(0, { { CENTRAL, 0, 34, 1, 1 } }) },

    { "NZ01c", "a name with a zero byte", QKV_ERR_FORMAT, "is empty or holds a zero byte",
      ATTACK(0, { BOTH(0, 46, 1, 0) }) },
    { "NZ01c", "no name", QKV_ERR_FORMAT, "is empty or holds a zero byte",
      ATTACK(0, { { CENTRAL, 0, 28, 1, 0 } }) },
    { "NZ01c", "a name longer than the directory", QKV_ERR_FORMAT, "is cut short or none",
      ATTACK(0, { { CENTRAL, 0, 28, 2, 60000 } }) },
    { "NZ01c", "a name that would move the cursor", QKV_ERR_UNSUPPORTED,
      "entry '\\x1b[2J\\x07': compression",
      ATTACK(0, { { CENTRAL, 0, 46, 5, 0x074a325b1bull }, { CENTRAL, 0, 10, 1, 99 } }) },

    { "NZ01d", "another name in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 30, 1, 'x' } }) },
    { "NZ01d", "a longer name in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 26, 1, 6 } }) },
    { "NZ01d", "another method in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 8, 1, 8 } }) },
    { "NZ01d", "other flags in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 6, 1, 8 } }) },
    { "NZ01d", "another checksum in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 14, 1, 0xee } }) },
    { "NZ01d", "another size in the local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 0, 22, 1, 1 } }) },
    { "NZ01d", "no local header", QKV_ERR_FORMAT, LOCAL_DIFFERS,
      ATTACK(0, { { LOCAL, 1, 0, 1, 'x' } }) },
    { "NZ01d", "a wrong checksum", QKV_ERR_FORMAT, "entry 'q.npy': its checksum is wrong",
      ATTACK(0, { { LOCAL, 0, 30 + 5 + 130, 1, 0xee } }) },
    { "NZ01d", "a wrong checksum, deflated", QKV_ERR_FORMAT, "its checksum is wrong",
      ATTACK(DEFLATED, { BOTH(0, 16, 1, 0) }) },
    { "NZ01d", "two entries in one place", QKV_ERR_FORMAT, "another one lies upon it",
      ATTACK(0, { { CENTRAL, 1, 42, 4, 0 } }) },
    { "NZ01d", "an entry that reaches into the next", QKV_ERR_FORMAT, "another one lies upon it",
      ATTACK(0, { BOTH(0, 20, 1, 200), BOTH(0, 24, 1, 200) }) },
    { "NZ01d", "an entry that reaches into the directory", QKV_ERR_FORMAT,
      "entry 'kk.npy': it is longer than the file",
      ATTACK(0, { BOTH(1, 20, 1, 200), BOTH(1, 24, 1, 200) }) },
    { "NZ01d", "bytes between entries", QKV_ERR_FORMAT, "bytes follow it that no entry has",
      ATTACK(0, { BOTH(0, 20, 1, 100), BOTH(0, 24, 1, 100) }) },
    { "NZ01d", "a stored entry of another size", QKV_ERR_FORMAT, "it is stored in another size",
      ATTACK(0, { { CENTRAL, 0, 24, 1, 100 } }) },

    { "NZ", "an entry behind the directory", QKV_ERR_FORMAT, "bytes follow it that no entry has",
      ATTACK(0, { { CENTRAL, 1, 42, 4, 100000 } }) },
    { "NZ", "fewer entries than the directory has", QKV_ERR_FORMAT,
      "its directory is longer than its entries",
      ATTACK(0, { { END, 0, 8, 1, 1 }, { END, 0, 10, 1, 1 } }) },
    { "NZ", "more entries than the directory has", QKV_ERR_FORMAT,
      "its directory is too short for its entries",
      ATTACK(0, { { END, 0, 8, 1, 3 }, { END, 0, 10, 1, 3 } }) },
    { "NZ", "65,534 entries", QKV_ERR_FORMAT, "its directory is too short for its entries",
      ATTACK(0, { { END, 0, 8, 2, 65534 }, { END, 0, 10, 2, 65534 } }) },
    { "NZ", "entries counted in two ways", QKV_ERR_FORMAT, "counts entries in two ways",
      ATTACK(0, { { END, 0, 8, 1, 1 } }) },
    { "NZ", "a directory elsewhere", QKV_ERR_FORMAT, NO_DIRECTORY,
      ATTACK(0, { { END, 0, 16, 4, 0 } }) },
    { "NZ", "a directory of 4 GiB", QKV_ERR_FORMAT, NO_DIRECTORY,
      ATTACK(0, { { END, 0, 12, 4, UINT32_MAX } }) },
    { "NZ", "an entry of the directory that is none", QKV_ERR_FORMAT, "is cut short or none",
      ATTACK(0, { { CENTRAL, 1, 0, 1, 'x' } }) },
    { "NZ", "bytes before the zip", QKV_ERR_FORMAT, NO_DIRECTORY, ENDS(0, .prepend = 10) },
    { "NZ", "bytes after the zip", QKV_ERR_FORMAT, "does not end with the end record",
      ENDS(0, .append = 1) },
    { "NZ", "a comment", QKV_ERR_FORMAT, "does not end with the end record",
      ATTACK(0, { { END, 0, 20, 1, 3 } }, .append = 3) },
    { "NZ", "cut short", QKV_ERR_FORMAT, "does not end with the end record", ENDS(0, .cut = 1) },
    { "NZ", "no bytes", QKV_ERR_FORMAT, "is not a zip file", hostile_make_text, HOSTILE_TEXT("") },
    { "NZ", "a .npy", QKV_ERR_FORMAT, "does not end with the end record", hostile_make_text,
      HOSTILE_TEXT("\x93NUMPY\1\0\x76\0                                   ") },
    { "NZ", "deflated data that is broken", QKV_ERR_FORMAT, "its deflated data is broken",
      ATTACK(DEFLATED, { { LOCAL, 0, 35, 1, 0xff } }) },

    { "NZ01e", "a claim of 3 GiB, deflated", QKV_ERR_FORMAT,
      "it claims more bytes than deflate can hold",
      ATTACK(DEFLATED, { BOTH(0, 24, 4, 3u << 30) }) },
    { "NZ01e", "more bytes than there are, deflated", QKV_ERR_FORMAT,
      "the npy header claims 8 bytes of data, 9 are there",
      ATTACK(DEFLATED, { BOTH(0, 24, 1, 137) }) },
    { "NZ01e", "fewer bytes than there are, deflated", QKV_ERR_FORMAT,
      "the npy header claims 8 bytes of data, 7 are there",
      ATTACK(DEFLATED, { BOTH(0, 24, 1, 135) }) },
    { "NZ01e", "a stored size too short, deflated", QKV_ERR_FORMAT,
      "bytes follow it that no entry has", ATTACK(DEFLATED, { BOTH(0, 20, 1, 60) }) },
};

static void make(FILE *out, const hostile_file *file) {
    const attack *const a = (const attack *)(const void *)file->text;
    building *const b = calloc(1, sizeof *b);
    put_two(b, a->kind);
    for (int c = 0; c < 4 && a->changes[c].signature; c++) {
        const change *const how = &a->changes[c];
        uint8_t *const at = find(b, how->signature, how->n) + how->offset;
        for (int i = 0; i < how->width; i++) at[i] = (uint8_t)(how->value >> 8 * i);
    }
    for (int i = 0; i < a->prepend; i++) fputc('x', out);
    fwrite(b->bytes, 1, b->n - (size_t)a->cut, out);
    for (int i = 0; i < a->append; i++) fputc('x', out);
    free(b);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static void count(void *user, const qkv_tensor_entry *entry) { *(int *)user += entry->rank >= 0; }

/* Lists the file, then reads q. */
static qkv_status read_npz(const char *path, qkv_error *error) {
    char name[600];
    int n = 0;
    qkv_array *array = (qkv_array *)1;
    qkv_status status = qkv_tensor_list(path, count, &n, error);
    if (status != QKV_OK) return n ? HOSTILE_BROKEN : status;
    snprintf(name, sizeof name, "%s:q", path);
    status = qkv_array_read(name, QKV_ARRAY_F32, &array, error);
    if (status != QKV_OK) return array ? HOSTILE_BROKEN : status;
    const int is_right = n >= 1 && array->rank == 1 && array->n_elems == array->shape[0] &&
                         ((const uint8_t *)array->data)[1] == hostile_byte(1);
    qkv_array_free(array);
    return is_right ? QKV_OK : HOSTILE_BROKEN;
}

static qkv_status read_path(const void *path, qkv_error *error) { return read_npz(path, error); }

/* A bomb: n floats of zeros, deflated. More than a row's file has room for. */
static void put_bomb(const char *path, size_t n, const char *shape) {
    const size_t n_bytes = 128 + 4 * n;
    uint8_t *const content = qkvi_calloc_array(n_bytes, 1);
    building *const b = calloc(1, sizeof *b);
    make_npy(content, shape, 0);
    content[129] = hostile_byte(1);
    item bomb = { .name = "q.npy", .content = content, .n = n_bytes };
    put_zip(b, &bomb, 1, DEFLATED);
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    fwrite(b->bytes, 1, b->n, out);
    fclose(out);
    free(b);
    free(content);
}

static void test_bombs(void **state) {
    (void)state;
    char path[512];
    hostile_path(path, "bomb.npz");
    put_bomb(path, 2000000, "(2000000,)");
    hostile_expect("NZ01e 8 MB in 8 kB", read_path, path, QKV_OK, "");
    put_bomb(path, 17000000, "(17000000,)");
    hostile_expect("NZ01e 68 MB in 66 kB", read_path, path, QKV_ERR_LIMIT,
                   "above the limit of 100 to 1");
    put_bomb(path, 2000000, "(2,)");
    hostile_expect("NZ01e 8 MB for 2 floats", read_path, path, QKV_ERR_FORMAT,
                   "the npy header claims 8 bytes of data, 8000000 are there");
    put_bomb(path, 2, "(2000000000000,)");
    hostile_expect("NZ01e 8 TB claimed", read_path, path, QKV_ERR_FORMAT, "8 are there");
    unlink(path);
}

/* Every beginning of a file is refused, whatever its kind. */
static void test_every_length(void **state) {
    (void)state;
    static const int kinds[] = { 0, DEFLATED, DESCRIBED, ZIP64 };
    char path[512];
    hostile_path(path, "cut.npz");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        building *const b = calloc(1, sizeof *b);
        put_two(b, kinds[k]);
        for (size_t cut = 0; cut < b->n; cut++) {
            FILE *const out = fopen(path, "wb");
            fwrite(b->bytes, 1, cut, out);
            fclose(out);
            qkv_error error = { QKV_OK, "" };
            assert_int_equal(read_npz(path, &error), QKV_ERR_FORMAT);
            assert_non_null(strstr(error.message, "cut.npz: "));
        }
        free(b);
    }
    unlink(path);
}

/* Two entries of one name. */
static void test_duplicates(void **state) {
    (void)state;
    static uint8_t npy[256];
    char path[512];
    building *const b = calloc(1, sizeof *b);
    const size_t n = make_npy(npy, "(2,)", 8);
    item entries[] = { { .name = "q.npy", .content = npy, .n = n },
                       { .name = "q.npy", .content = npy, .n = n } };
    put_zip(b, entries, 2, 0);
    FILE *const out = fopen(hostile_path(path, "twice.npz"), "wb");
    fwrite(b->bytes, 1, b->n, out);
    fclose(out);
    hostile_expect("NZ01d a name twice", read_path, path, QKV_ERR_FORMAT,
                   "entry 'q.npy': it is there twice");
    unlink(path);
    free(b);
}

int main(void) {
    const hostile_family family = {
        "hostile_npz", "hostile.npz", read_npz, cases, sizeof cases / sizeof *cases, NULL, NULL
    };
    const struct CMUnitTest others[] = {
        { "NZ01e bombs", test_bombs, NULL, NULL, NULL },
        { "NZ every length", test_every_length, NULL, NULL, NULL },
        { "NZ01d duplicates", test_duplicates, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
