/*
 * Hostile containers of GGUF files (ids of docs/hostile-inputs.md), each listed in a cage. Then a
 * small model is cut at every place and opened.
 */
#include "hostile/gguf_words.h"

#include "files/file.h"
#include "gguf/gguf.h"
#include "qkv/files.h"

/* ---- Containers ------------------------------------------------------------------------------ */

/* A tensor of four floats, and where it lies. */
#define INFO(name, at) " T s:" name " 4:1 8:4 4:0 8:" at
#define DATA           " a:32 z:16"
#define N63            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static const hostile_file containers[] = {
    { "GG01", "nothing in it", QKV_OK, "", WORDS("G") },
    { "GG01", "one tensor", QKV_OK, "", WORDS("G" INFO("x", "0") DATA) },
    { "GG01", "bytes behind the last tensor", QKV_OK, "", WORDS("G" INFO("x", "0") DATA " z:9") },
    { "GG01", "a name of 63 bytes", QKV_OK, "", WORDS("G" INFO(N63, "0") DATA) },
    { "GG01", "alignment 1", QKV_OK, "",
      WORDS("G" KEY("general.alignment") U32("1") INFO("x", "0") " z:16") },
    { "GG01", "no bytes", QKV_ERR_FORMAT, "and the file ends after 0", WORDS("") },
    { "GG01", "another magic", QKV_ERR_FORMAT, "does not begin with GGUF",
      WORDS("x:47 x:47 x:4d x:4c 4:3 8:0 8:0") },
    { "GG01", "version 1", QKV_ERR_UNSUPPORTED, "version 1 is neither 2 nor 3",
      WORDS("x:47 x:47 x:55 x:46 4:1 8:0 8:0") },
    { "GG01", "version 4", QKV_ERR_UNSUPPORTED, "version 4 is neither 2 nor 3",
      WORDS("x:47 x:47 x:55 x:46 4:4 8:0 8:0") },
    { "GG01", "a big-endian file", QKV_ERR_UNSUPPORTED, "is a big-endian file",
      WORDS("x:47 x:47 x:55 x:46 4:0x3000000 8:0 8:0") },

    { "GG02", "2^63 tensors", QKV_ERR_FORMAT, "9223372036854775808 tensors are more than the file",
      WORDS("x:47 x:47 x:55 x:46 4:3 8:0x8000000000000000 8:0") },
    { "GG02", "2^64 - 1 keys", QKV_ERR_FORMAT, "18446744073709551615 keys are more than the file",
      WORDS("x:47 x:47 x:55 x:46 4:3 8:0 8:0xffffffffffffffff") },
    { "GG02", "a name of 2^63 bytes", QKV_ERR_FORMAT,
      "the name of a key at byte 32 has 9223372036854775808",
      WORDS("x:47 x:47 x:55 x:46 4:3 8:0 8:1 8:0x8000000000000000 z:40") },
    { "GG02", "an array of 2^61 numbers", QKV_ERR_FORMAT,
      "key 'k' has 2305843009213693952 elements, more than the file",
      WORDS("G" KEY("k") " 4:9 4:10 8:0x2000000000000000 z:40") },
    { "GG02", "an array of 2^62 strings", QKV_ERR_FORMAT, "more than the file has bytes for",
      WORDS("G" KEY("k") " 4:9 4:8 8:0x4000000000000000 z:40") },
    { "GG02", "a string of 2^64 - 1 bytes in an array", QKV_ERR_FORMAT, "a string at byte",
      WORDS("G" KEY("k") " 4:9 4:8 8:1 8:0xffffffffffffffff z:40") },
    { "GG02", "dimensions whose product wraps", QKV_ERR_FORMAT,
      "more elements than 63 bits can count",
      WORDS("G T s:x 4:2 8:0x100000000 8:0x100000000 4:0 8:0" DATA) },
    { "GG02", "a dimension of 2^63", QKV_ERR_FORMAT, "more elements than 63 bits can count",
      WORDS("G T s:x 4:1 8:0x8000000000000000 4:0 8:0" DATA) },
    { "GG02", "2^62 elements", QKV_ERR_FORMAT, "has more bytes than the file",
      WORDS("G T s:x 4:1 8:0x4000000000000000 4:0 8:0" DATA) },

    { "GG03", "an empty name of a key", QKV_ERR_FORMAT, "has 0 bytes, not 1 to 65535",
      WORDS("G K s:" U32("1")) },
    { "GG03", "a key twice", QKV_ERR_FORMAT, "key 'k' is there twice",
      WORDS("G" KEY("k") U32("1") KEY("k") U32("2")) },
    { "GG03", "a NUL in the name of a key", QKV_ERR_FORMAT, "'a\\x00b' holds a NUL",
      WORDS("G K 8:3 x:61 x:00 x:62" U32("1")) },
    { "GG03", "a type of a key that is none", QKV_ERR_FORMAT,
      "key 'k' has the type 13, which is none", WORDS("G" KEY("k") " 4:13 z:40") },
    { "GG03", "an array of arrays", QKV_ERR_UNSUPPORTED, "key 'k' is an array of arrays",
      WORDS("G" KEY("k") " 4:9 4:9 8:1 4:4 8:1 4:1") },
    { "GG03", "an escape sequence in a name", QKV_ERR_FORMAT, "key '\\x1b[2J' has the type",
      WORDS("G K 8:4 x:1b x:5b x:32 x:4a 4:99 z:40") },

    { "GG04", "an empty name of a tensor", QKV_ERR_FORMAT, "has 0 bytes, not 1 to 63",
      WORDS("G" INFO("", "0") DATA) },
    { "GG04", "a name of 64 bytes", QKV_ERR_FORMAT, "has 64 bytes, not 1 to 63",
      WORDS("G" INFO(N63 "f", "0") DATA) },
    { "GG04", "a tensor twice", QKV_ERR_FORMAT, "tensor 'x' is there twice",
      WORDS("G" INFO("x", "0") INFO("x", "32") DATA DATA) },
    { "GG04", "no dimensions", QKV_ERR_FORMAT, "tensor 'x' has 0 dimensions, not 1 to 4",
      WORDS("G T s:x 4:0 4:0 8:0 z:40") },
    { "GG04", "five dimensions", QKV_ERR_FORMAT, "tensor 'x' has 5 dimensions, not 1 to 4",
      WORDS("G T s:x 4:5 8:1 8:1 8:1 8:1 8:4 4:0 8:0" DATA) },
    { "GG04", "a dimension of 0", QKV_ERR_FORMAT, "tensor 'x' has a dimension of 0",
      WORDS("G T s:x 4:2 8:4 8:0 4:0 8:0" DATA) },
    { "GG04", "a type that was removed", QKV_ERR_UNSUPPORTED, "is of type 4, which is not known",
      WORDS("G T s:x 4:1 8:32 4:4 8:0 a:32 z:64") },
    { "GG04", "rows that are no whole blocks", QKV_ERR_FORMAT,
      "is of type Q8_0, and its rows of 16 are no multiple of 32",
      WORDS("G T s:x 4:2 8:16 8:2 4:8 8:0 a:32 z:64") },

    { "GG05", "a tensor behind the end", QKV_ERR_FORMAT,
      "tensor 'x' ends behind the end of the file", WORDS("G" INFO("x", "0") " a:32 z:15") },
    { "GG05", "no data at all", QKV_ERR_FORMAT, "ends behind the end", WORDS("G" INFO("x", "0")) },
    { "GG05", "a place near 2^64", QKV_ERR_FORMAT,
      "begins at byte 18446744073709551584 of the data, not at 0",
      WORDS("G" INFO("x", "0xffffffffffffffe0") DATA) },
    { "GG05", "a gap", QKV_ERR_FORMAT, "begins at byte 64 of the data, not at 32",
      WORDS("G" INFO("x", "0") INFO("y", "64") DATA DATA DATA) },
    { "GG05", "an overlap", QKV_ERR_FORMAT, "begins at byte 0 of the data, not at 32",
      WORDS("G" INFO("x", "0") INFO("y", "0") DATA DATA) },
    { "GG05", "alignment 0", QKV_ERR_FORMAT, "key 'general.alignment' is 0, not a power of 2",
      WORDS("G" KEY("general.alignment") U32("0") INFO("x", "0") DATA) },
    { "GG05", "alignment 24", QKV_ERR_FORMAT, "key 'general.alignment' is 24, not a power of 2",
      WORDS("G" KEY("general.alignment") U32("24") INFO("x", "0") DATA) },
    { "GG05", "alignment 2^31", QKV_ERR_FORMAT, "is 2147483648, not a power of 2",
      WORDS("G" KEY("general.alignment") U32("0x80000000") INFO("x", "0") DATA) },
    { "GG05", "alignment as u64", QKV_ERR_FORMAT, "key 'general.alignment' is of type u64, not u32",
      WORDS("G" KEY("general.alignment") " 4:10 8:32" INFO("x", "0") DATA) },
    { "GG05", "alignment as an array", QKV_ERR_FORMAT, "is of type array, not u32",
      WORDS("G" KEY("general.alignment") " 4:9 4:4 8:1 4:32" INFO("x", "0") DATA) },
};

static void count_tensor(void *user, const qkv_tensor_entry *entry) {
    int64_t *const n = user;
    *n += entry->rank;
}

static void count_key(void *user, const qkv_key_entry *entry) {
    int64_t *const n = user;
    *n += entry->n;
}

static qkv_status list(const char *path, qkv_error *error) {
    int64_t n = 0;
    const qkv_status status = qkv_tensor_list(path, count_tensor, &n, error);
    return status == QKV_OK ? qkv_key_list(path, count_key, &n, error) : status;
}

/* ---- A model that is cut --------------------------------------------------------------------- */

/*
 * At every place of its keys and names, and at many of its data: each is refused, and nothing is
 * left.
 */
static void every_cut_is_refused(void **state) {
    (void)state;
    char *bytes;
    size_t n_bytes, n_refused = 0;
    qkvi_gguf *gguf;
    qkv_error error;
    assert_int_equal(
        qkvi_file_load(QKV_TEST_DATA "/golden/gguf/tiny.gguf", 1 << 20, &bytes, &n_bytes, &error),
        QKV_OK);
    for (size_t n = 0; n + 32 < n_bytes; n += n < 7000 ? 1 : 97, n_refused++) {
        char *const cut = malloc(n + 1); /* of its own size, for ASan to watch */
        memcpy(cut, bytes, n);
        if (qkvi_gguf_open_memory("cut", cut, n, &gguf, &error) == QKV_OK)
            fail_msg("opened with %zu of its %zu bytes", n, n_bytes);
        assert_null(gguf);
        free(cut);
    }
    assert_true(n_refused > 7000);
    assert_int_equal(qkvi_gguf_open_memory("whole", bytes, n_bytes, &gguf, &error), QKV_OK);
    qkvi_gguf_close(gguf);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest others[] = { cmocka_unit_test(every_cut_is_refused) };
    const hostile_family family = {
        "gguf", "x.gguf", list, containers, sizeof containers / sizeof *containers, NULL, NULL
    };
    return hostile_main(&family, others, 1);
}
