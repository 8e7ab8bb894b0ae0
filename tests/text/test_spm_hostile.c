/*
 * Hostile SentencePiece models (ids SP… of docs/hostile-inputs.md): each is the source.spm of a
 * Marian folder, which is opened as by users. Protobuf messages, pieces and maps are written here
 * byte by byte, since no trainer writes such files.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qkv/tokenizer.h"

/* A piece {1: text, 2: score -1, 3: type}, by its length as a character. */
#define UNK  "\x0a\x09\x0a\x05<unk>\x18\x02"
#define A    "\x0a\x08\x0a\x01\x61\x15\x00\x00\x80\xbf"
#define B    "\x0a\x08\x0a\x01\x62\x15\x00\x00\x80\xbf"
#define BASE UNK A B

#define FILE_OF(text) hostile_make_text, HOSTILE_TEXT(text)
#define REPEATED(...)                                                                              \
    .make = hostile_make_repeat, .repeat = &(const hostile_repeat) { __VA_ARGS__ }

/* ---- Longer files ---------------------------------------------------------------------------- */

static void put_varint(FILE *out, uint64_t value) {
    for (; value >= 128; value >>= 7) fputc((int)(value & 127) | 128, out);
    fputc((int)value, out);
}

/* A piece of n bytes that begins with the digits of which. */
static void put_piece(FILE *out, int which, int n) {
    char bytes[2048];
    memset(bytes, 'x', sizeof bytes);
    snprintf(bytes, sizeof bytes, "%08d", which);
    bytes[8] = 'x';
    fputc(0x0a, out);
    put_varint(out, (uint64_t)(n < 128 ? n + 2 : n + 3));
    fputc(0x0a, out);
    put_varint(out, (uint64_t)n);
    fwrite(bytes, 1, (size_t)n, out);
}

/* BASE and `number` pieces of data_bytes bytes. */
static void make_pieces(FILE *out, const hostile_file *file) {
    fwrite(BASE, 1, sizeof BASE - 1, out);
    for (int i = 0; i < file->number; i++) put_piece(out, i, (int)file->data_bytes);
}

/* BASE and an unknown field, of `number` bytes. */
static void make_long(FILE *out, const hostile_file *file) {
    static const char zeros[4096];
    fwrite(BASE, 1, sizeof BASE - 1, out);
    fputc(0x7a, out);
    put_varint(out, (uint64_t)file->number);
    for (int64_t left = file->number; left > 0; left -= (int64_t)sizeof zeros)
        fwrite(zeros, 1, left < (int64_t)sizeof zeros ? (size_t)left : sizeof zeros, out);
}

/* BASE and a normalizer_spec with a map of characters. */
static void put_map(FILE *out, uint32_t trie_bytes, const void *units, size_t n_units,
                    const char *strings, size_t n_strings) {
    const uint64_t n = 4 + 4 * n_units + n_strings;
    uint64_t header = 1; /* the tag, and the length as a varint */
    for (uint64_t rest = n; header == 1 || rest > 0; rest >>= 7) header++;
    fwrite(BASE, 1, sizeof BASE - 1, out);
    fputc(0x1a, out);
    put_varint(out, n + header);
    fputc(0x12, out);
    put_varint(out, n);
    fwrite(&trie_bytes, 4, 1, out);
    fwrite(units, 4, n_units, out);
    fwrite(strings, 1, n_strings, out);
}

enum { N_UNITS = 768 };

#define OFFSET(n)  ((uint32_t)(n) << 10)
#define HAS_LEAF   (1u << 8)
#define LEAF(n)    (1u << 31 | (uint32_t)(n))
#define PLACE_OF_A (256 ^ 'a') /* of the node 'a', under a root whose children begin at 256 */

/* A trie with the rule 'a' → the string at 0, then spoiled as `number` says. */
static void make_map(FILE *out, const hostile_file *file) {
    static uint32_t units[N_UNITS];
    const char *strings = "b";
    size_t n_strings = 2;
    uint32_t trie_bytes = sizeof units;
    char longest[300];
    memset(longest, 'y', sizeof longest);
    memset(units, 0, sizeof units);
    units[0] = OFFSET(256);
    units[PLACE_OF_A] = 'a' | HAS_LEAF | OFFSET(PLACE_OF_A ^ 512);
    units[512] = LEAF(0);
    switch (file->number) {
    case 1: units[PLACE_OF_A] = 'a' | OFFSET('a'); break;         /* children begin at 256 */
    case 2: units[512] = 0; break;                                /* not a leaf */
    case 3: units[512] = LEAF(2); break;                          /* behind the strings */
    case 4: n_strings = 1; break;                                 /* no NUL */
    case 5: strings = "\xff"; break;                              /* no UTF-8 */
    case 6: strings = longest, n_strings = sizeof longest; break; /* no NUL in reach … */
    case 7: longest[299] = 0, strings = longest, n_strings = 300; break;
    case 8: trie_bytes = sizeof units + 400; break;
    case 9: trie_bytes = 5; break;
    case 10: units[PLACE_OF_A] = 'a' | HAS_LEAF | OFFSET(0x1FFFFF); break; /* leaf far outside */
    case 11: units[0] = OFFSET(0x1FFFFF) | 1u << 9; break;                 /* root leads outside */
    default: break;
    }
    put_map(out, trie_bytes, units, N_UNITS, strings, n_strings);
}

/* A chain of `number` nodes 'a' under one another: a rule so long. */
static void make_chain(FILE *out, const hostile_file *file) {
    const size_t n = (size_t)file->number, n_units = 256 * (n + 2);
    uint32_t *units = calloc(n_units, sizeof *units), node = 0;
    assert_non_null(units);
    for (uint32_t i = 0; i <= n; i++) {
        const uint32_t base = 256 * (i + 1);
        units[node] |= OFFSET(node ^ base);
        if (i == n) {
            units[node] |= HAS_LEAF;
            units[base] = LEAF(0);
            break;
        }
        node = base ^ 'a';
        units[node] = 'a';
    }
    put_map(out, (uint32_t)(4 * n_units), units, n_units, "b", 2);
    free(units);
}

/* The largest map: every unit a node that leads on. */
static void make_dense(FILE *out, const hostile_file *file) {
    const size_t n_units = (size_t)file->number;
    uint32_t *units = malloc(n_units * sizeof *units);
    assert_non_null(units);
    for (size_t i = 0; i < n_units; i++)
        units[i] = (uint32_t)(i & 255) | OFFSET(i ^ ((i / 256 + 1) * 256 % n_units));
    put_map(out, (uint32_t)(4 * n_units), units, n_units, "b", 2);
    free(units);
}

/* ---- The table ------------------------------------------------------------------------------- */

static const hostile_file cases[] = {
    { "SP01", "the smallest model", QKV_OK, "", FILE_OF(BASE) },
    { "SP01", "no bytes", QKV_ERR_FORMAT, "no piece is of type UNKNOWN", FILE_OF("") },
    { "SP01", "text", QKV_ERR_FORMAT, "byte 0: ", FILE_OF("not a model at all") },
    { "SP01", "a tag cut off", QKV_ERR_FORMAT, "byte 31: a number is cut off",
      FILE_OF(BASE "\x8a") },
    { "SP01", "a number of 65 bits", QKV_ERR_FORMAT, "byte 32: a number has more than 64 bits",
      FILE_OF(BASE "\x30\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02") },
    { "SP01", "a number of eleven bytes", QKV_ERR_FORMAT, "more than 64 bits",
      FILE_OF(BASE "\x30\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01") },
    { "SP01", "a length of 2^64 - 1", QKV_ERR_FORMAT, "18446744073709551615 bytes, only 0 are left",
      FILE_OF(BASE "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") },
    { "SP01", "an inner length beyond its message", QKV_ERR_FORMAT, "has 5 bytes, only 1 are left",
      FILE_OF(BASE "\x0a\x03\x0a\x05x" BASE) },
    { "SP01", "a group", QKV_ERR_FORMAT, "a group or of no known type", FILE_OF(BASE "\x0b\x0c") },
    { "SP01", "wire type 7", QKV_ERR_FORMAT, "of no known type", FILE_OF(BASE "\x0f") },
    { "SP01", "field 0", QKV_ERR_FORMAT, "not in [1, 2^29)", FILE_OF(BASE "\x02\x00") },
    { "SP01", "unknown fields of each type", QKV_OK, "",
      FILE_OF(BASE "\x78\x01\x79"
                   "12345678\x7a\x01x\x7d"
                   "1234") },
    { "SP01", "a million groups", QKV_ERR_FORMAT, "byte 0: ", REPEATED("", "\x0b", "", 1000000) },
    { "SP02", "a piece twice", QKV_ERR_FORMAT, "piece 1 \"a\" is there more than once",
      FILE_OF(BASE A) },
    { "SP02", "an empty piece", QKV_ERR_FORMAT, "piece 3 \"\" is empty", FILE_OF(BASE "\x0a\x00") },
    { "SP02", "a NUL in a piece", QKV_ERR_FORMAT, "contains a NUL",
      FILE_OF(BASE "\x0a\x05\x0a\x03x\0y") },
    { "SP02", "a piece that is not UTF-8", QKV_ERR_FORMAT, "piece 3 \"\\xff\" is not valid UTF-8",
      FILE_OF(BASE "\x0a\x03\x0a\x01\xff") },
    { "SP02", "a piece of 1 KiB", QKV_OK, "", make_pieces, .number = 1, .data_bytes = 1024 },
    { "SP02", "a piece above 1 KiB", QKV_ERR_LIMIT, "piece 3 has 1025 bytes, the limit is 1024",
      make_pieces, .number = 1, .data_bytes = 1025 },
    { "SP02", "a score that is NaN", QKV_ERR_FORMAT, "no finite number",
      FILE_OF(BASE "\x0a\x08\x0a\x01x\x15\x00\x00\xc0\x7f") },
    { "SP02", "a score that is infinite", QKV_ERR_FORMAT, "no finite number",
      FILE_OF(BASE "\x0a\x08\x0a\x01x\x15\x00\x00\x80\xff") },
    { "SP02", "a score of another wire type", QKV_ERR_FORMAT,
      "the score of a piece has wire type 0, must be 5",
      FILE_OF(BASE "\x0a\x05\x0a\x01x\x10\x01") },
    { "SP02", "type 7", QKV_ERR_FORMAT, "piece 3 has type 7, must be 1 to 6",
      FILE_OF(BASE "\x0a\x05\x0a\x01x\x18\x07") },
    { "SP02", "type -1", QKV_ERR_FORMAT, "piece 3 has type -1",
      FILE_OF(BASE "\x0a\x0e\x0a\x01x\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01") },
    { "SP02", "two pieces of type UNKNOWN", QKV_ERR_FORMAT, "is a second one of type UNKNOWN",
      FILE_OF(BASE "\x0a\x05\x0a\x01x\x18\x02") },
    { "SP02", "no piece of type UNKNOWN", QKV_ERR_FORMAT, "no piece is of type UNKNOWN",
      FILE_OF(A B) },
    { "SP02", "nothing to segment into", QKV_ERR_FORMAT, "no piece is of type NORMAL",
      FILE_OF(UNK) },
    { "SP03", "BPE", QKV_ERR_UNSUPPORTED, "trainer_spec.model_type = 2 BPE is not supported",
      FILE_OF(BASE "\x12\x02\x18\x02") },
    { "SP03", "WORD", QKV_ERR_UNSUPPORTED, "3 WORD", FILE_OF(BASE "\x12\x02\x18\x03") },
    { "SP03", "CHAR", QKV_ERR_UNSUPPORTED, "4 CHAR", FILE_OF(BASE "\x12\x02\x18\x04") },
    { "SP03", "kind 9", QKV_ERR_UNSUPPORTED, "9 (unknown)", FILE_OF(BASE "\x12\x02\x18\x09") },
    { "SP04", "a byte piece without byte_fallback", QKV_ERR_FORMAT, "byte_fallback is false",
      FILE_OF(BASE "\x0a\x0a\x0a\x06<0x41>\x18\x06") },
    { "SP04", "byte_fallback without byte pieces", QKV_ERR_FORMAT, "there is no piece <0x00>",
      FILE_OF(BASE "\x12\x03\x98\x02\x01") },
    { "SP04", "a byte piece of another name", QKV_ERR_FORMAT, "is not <0x00> to <0xFF>",
      FILE_OF(BASE "\x0a\x0a\x0a\x06<0x4g>\x18\x06") },
    { "SP05", "600,001 pieces", QKV_ERR_LIMIT, "more than 600000 pieces", make_pieces,
      .number = 600001, .data_bytes = 8 },
    { "SP05", "200,000 pieces", QKV_OK, "", make_pieces, .number = 200000, .data_bytes = 9 },
    { "SP05", "pieces that share nothing", QKV_ERR_LIMIT, "begin in more than 2097152 ways",
      make_pieces, .number = 3000, .data_bytes = 1024 },
    { "SP05", "a file above 16 MiB", QKV_ERR_LIMIT, "the limit is 16777216", make_long,
      .number = 17000000 },
    { "SP05", "an unknown field of 10 MB", QKV_OK, "", make_long, .number = 10000000 },
    { "SP06", "a map with one rule", QKV_OK, "", make_map, .number = 0 },
    { "SP06", "a trie that leads back to itself", QKV_ERR_FORMAT, "leads back to itself", make_map,
      .number = 1 },
    { "SP06", "a leaf that is none", QKV_ERR_FORMAT, "should be a leaf", make_map, .number = 2 },
    { "SP06", "a string behind the strings", QKV_ERR_FORMAT, "leads behind the strings", make_map,
      .number = 3 },
    { "SP06", "a string without end", QKV_ERR_FORMAT, "a string without end", make_map,
      .number = 4 },
    { "SP06", "a string that is not UTF-8", QKV_ERR_FORMAT, "bytes that are not UTF-8", make_map,
      .number = 5 },
    { "SP06", "a long string without end", QKV_ERR_FORMAT, "a string without end", make_map,
      .number = 6 },
    { "SP06", "a string of 299 bytes", QKV_ERR_LIMIT, "leads to 299 bytes, the limit is 256",
      make_map, .number = 7 },
    { "SP06", "a trie longer than the map", QKV_ERR_FORMAT, "must be a multiple of 4 in [4, ",
      make_map, .number = 8 },
    { "SP06", "a trie of 5 bytes", QKV_ERR_FORMAT, "the trie has 5 bytes", make_map, .number = 9 },
    { "SP06", "a leaf outside of the trie", QKV_ERR_FORMAT, "should be a leaf", make_map,
      .number = 10 },
    { "SP06", "a root that leads outside", QKV_OK, "", make_map, .number = 11 },
    { "SP06", "a map of 3 bytes", QKV_ERR_FORMAT, "has 3 bytes, fewer than 4",
      FILE_OF(BASE "\x1a\x05\x12\x03xyz") },
    { "SP06", "a rule of 256 bytes", QKV_OK, "", make_chain, .number = 256 },
    { "SP06", "a rule of 257 bytes", QKV_ERR_LIMIT, "more than 256 bytes", make_chain,
      .number = 257 },
    { "SP06", "the largest trie, full", QKV_ERR_LIMIT, "more than 256 bytes", make_dense,
      .number = 1 << 19 },
    { "SP06", "a map above 4 MiB", QKV_ERR_LIMIT, "the limit is 4194304", make_dense,
      .number = 1 << 21 },
};

/* ---- Reading --------------------------------------------------------------------------------- */

static void write_file(const char *name, const char *text) {
    char path[512];
    FILE *out = fopen(hostile_path(path, name), "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void begin(void) {
    write_file("vocab.json", "{\"</s>\":0,\"<unk>\":1,\"a\":2,\"<pad>\":3}");
}

static void end(void) {
    char path[512];
    unlink(hostile_path(path, "vocab.json"));
}

static qkv_status encode(const qkv_tokenizer *tokenizer, const char *text, size_t n,
                         qkv_error *error) {
    qkv_encoding *encoding = NULL;
    const qkv_status status = qkv_tokenizer_encode(tokenizer, text, n, NULL, 0, &encoding, error);
    qkv_encoding_free(encoding);
    return status;
}

static qkv_status read_folder(const char *path, qkv_error *error) {
    qkv_tokenizer *tokenizer = (qkv_tokenizer *)1;
    char folder[512];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    qkv_status status = qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, error);
    if (status != QKV_OK) return tokenizer ? HOSTILE_BROKEN : status;
    status = encode(tokenizer, "aab \xC3\xA9 <unk>", 12, error);
    qkv_tokenizer_free(tokenizer);
    return status;
}

/* ---- What lies beside it, and texts ---------------------------------------------------------- */

struct beside {
    const char *what, *vocab, *config;
    qkv_status status;
    const char *says;
};

static const struct beside besides[] = {
    { "no </s>", "{\"<unk>\":1}", NULL, QKV_ERR_FORMAT, "eos_token \"</s>\" is not there" },
    { "no <unk>", "{\"</s>\":0}", NULL, QKV_ERR_FORMAT, "unk_token \"<unk>\" is not there" },
    { "no <pad>", "{\"</s>\":0,\"<unk>\":1}", NULL, QKV_OK, "" },
    { "an id twice", "{\"</s>\":0,\"<unk>\":0}", NULL, QKV_ERR_FORMAT, "two tokens have id 0" },
    { "an id that is no integer", "{\"</s>\":0.5}", NULL, QKV_ERR_FORMAT, "is no integer" },
    { "an id of 2^40", "{\"</s>\":1099511627776}", NULL, QKV_ERR_LIMIT, "the limit is" },
    { "no object", "[1]", NULL, QKV_ERR_FORMAT, "vocab.json" },
    { "another unk", "{\"</s>\":0,\"?\":1}", "{\"unk_token\":{\"content\":\"?\"}}", QKV_OK, "" },
    { "unk_token a number", "{\"</s>\":0,\"<unk>\":1}", "{\"unk_token\":1}", QKV_ERR_FORMAT,
      "unk_token" },
    { "an empty eos_token", "{\"\":0,\"<unk>\":1}", "{\"eos_token\":\"\"}", QKV_ERR_FORMAT,
      "eos_token is the empty token" },
    { "sampling", "{\"</s>\":0,\"<unk>\":1}", "{\"sp_model_kwargs\":{\"enable_sampling\":true}}",
      QKV_ERR_UNSUPPORTED, "sp_model_kwargs is not empty" },
    { "separate_vocabs a string", "{\"</s>\":0,\"<unk>\":1}", "{\"separate_vocabs\":\"x\"}",
      QKV_ERR_FORMAT, "separate_vocabs" },
};

static qkv_status read_beside(const void *input, qkv_error *error) {
    char path[512];
    (void)input;
    return read_folder(hostile_path(path, "source.spm"), error);
}

static void test_beside(void **state) {
    (void)state;
    char path[512], label[200];
    FILE *out = fopen(hostile_path(path, "source.spm"), "wb");
    assert_non_null(out);
    fwrite(BASE, 1, sizeof BASE - 1, out);
    fclose(out);
    for (size_t i = 0; i < sizeof besides / sizeof *besides; i++) {
        const struct beside *beside = &besides[i];
        write_file("vocab.json", beside->vocab);
        if (beside->config) write_file("tokenizer_config.json", beside->config);
        snprintf(label, sizeof label, "SP07 %s", beside->what);
        hostile_expect(label, read_beside, NULL, beside->status, beside->says);
        unlink(hostile_path(path, "tokenizer_config.json"));
    }
    unlink(hostile_path(path, "vocab.json"));
    hostile_expect("SP07 no vocab.json", read_beside, NULL, QKV_ERR_IO,
                   "vocab.json is not there, but source.spm is");
    unlink(hostile_path(path, "source.spm"));
}

static qkv_status read_target(const void *input, qkv_error *error) {
    qkv_tokenizer *tokenizer = NULL;
    const qkv_status status = qkv_tokenizer_open(input, QKV_TARGET, &tokenizer, error);
    qkv_tokenizer_free(tokenizer);
    return status;
}

static void test_target(void **state) {
    (void)state;
    char path[512], folder[512];
    FILE *out = fopen(hostile_path(path, "source.spm"), "wb");
    assert_non_null(out);
    fwrite(BASE, 1, sizeof BASE - 1, out);
    fclose(out);
    begin();
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    hostile_expect("SP07 no target.spm", read_target, folder, QKV_ERR_IO,
                   "target.spm is not there, but source.spm is");
    end();
    unlink(path);
}

/*
 * 1 MB in every piece that there can be of 'a's, and in none: linear, or the cage's limit ends it.
 */
static qkv_status encode_long(const void *input, qkv_error *error) {
    enum { N_BYTES = 1000000 };
    qkv_tokenizer *tokenizer = NULL;
    char *text = malloc(N_BYTES);
    assert_non_null(text);
    memset(text, *(const char *)input, N_BYTES);
    qkv_status status =
        qkv_tokenizer_open(QKV_TEST_DATA "/golden/marian", QKV_SOURCE, &tokenizer, error);
    if (status == QKV_OK) status = encode(tokenizer, text, N_BYTES, error);
    qkv_tokenizer_free(tokenizer);
    free(text);
    return status;
}

static void test_long(void **state) {
    (void)state;
    hostile_expect("SP08 1 MB of one letter", encode_long, "a", QKV_OK, "");
    hostile_expect("SP08 1 MB of spaces", encode_long, " ", QKV_OK, "");
    hostile_expect("SP08 1 MB of an unknown character", encode_long, "\x01", QKV_OK, "");
    hostile_expect("SP08 1 MB of >", encode_long, ">", QKV_OK, "");
}

int main(void) {
    const hostile_family family = {
        "hostile_spm", "source.spm", read_folder, cases, sizeof cases / sizeof *cases, begin, end
    };
    const struct CMUnitTest others[] = {
        { "SP07 what lies beside it", test_beside, NULL, NULL, NULL },
        { "SP07 the target", test_target, NULL, NULL, NULL },
        { "SP08 long texts", test_long, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
