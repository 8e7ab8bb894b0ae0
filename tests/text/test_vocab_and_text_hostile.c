/*
 * Hostile vocabularies and texts (ids of docs/hostile-inputs.md). Each vocab.txt is opened as that
 * of a folder; each text is encoded with a small vocabulary, and both must take time that is linear
 * in their bytes, which the cage's limit enforces.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/status.h"
#include "qkv/tokenizer.h"

/* ---- Vocabularies ---------------------------------------------------------------------------- */

#define BASE        "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n"
#define VOCAB(text) hostile_make_text, HOSTILE_TEXT(text)
#define REPEATED    HOSTILE_REPEATED

/* text, then `number` bytes 'a' */
static void make_long_line(FILE *out, const hostile_file *file) {
    char piece[4096];
    memset(piece, 'a', sizeof piece);
    hostile_make_text(out, file);
    for (int64_t left = file->number; left > 0; left -= (int64_t)sizeof piece)
        fwrite(piece, 1, left < (int64_t)sizeof piece ? (size_t)left : sizeof piece, out);
}

static const hostile_file cases[] = {
    { "VO01a", "CRLF", QKV_OK, "", VOCAB("[PAD]\r\n[UNK]\r\n[CLS]\r\n[SEP]\r\n[MASK]\r\na\r\n") },
    { "VO01a", "no newline at the end", QKV_OK, "", VOCAB(BASE "a") },
    { "VO01a", "an empty line", QKV_OK, "", VOCAB(BASE "\na\n") },
    { "VO01a", "nothing but newlines after it", QKV_OK, "", VOCAB(BASE "\n\n\n\n") },
    { "VO01b", "a token twice", QKV_OK, "", VOCAB(BASE "a\nb\na\n") },
    { "VO01b", "a token 500,000 times", QKV_OK, "", REPEATED(BASE, "a\n", "", 500000) },
    { "VO01b", "a special token twice", QKV_OK, "", VOCAB(BASE "[CLS]\n") },
    { "VO01c", "no [UNK]", QKV_ERR_FORMAT, "no line is [UNK]", VOCAB("[CLS]\n[SEP]\na\n") },
    { "VO01c", "no [CLS]", QKV_ERR_FORMAT, "no line is [CLS]", VOCAB("[UNK]\n[SEP]\na\n") },
    { "VO01c", "no [SEP]", QKV_ERR_FORMAT, "no line is [SEP]", VOCAB("[UNK]\n[CLS]\na\n") },
    { "VO01c", "no bytes", QKV_ERR_FORMAT, "no line is [UNK]", VOCAB("") },
    { "VO01d", "invalid UTF-8", QKV_ERR_FORMAT, "line 7 is not valid UTF-8",
      VOCAB(BASE "a\n\xff\nb\n") },
    { "VO01d", "an overlong form", QKV_ERR_FORMAT, "line 6 is not valid UTF-8",
      VOCAB(BASE "\xc0\x80\n") },
    { "VO01d", "an encoded surrogate", QKV_ERR_FORMAT, "line 6 is not valid UTF-8",
      VOCAB(BASE "\xed\xa0\x80\n") },
    { "VO01d", "a line that ends inside a character", QKV_ERR_FORMAT, "line 6 is not valid UTF-8",
      VOCAB(BASE "\xe2\x82") },
    { "VO01d", "a byte order mark", QKV_ERR_FORMAT, "line 1 starts with a byte order mark",
      VOCAB("\xef\xbb\xbf" BASE) },
    { "VO01e", "a line of 1 KiB", QKV_OK, "", make_long_line, HOSTILE_TEXT(BASE), .number = 1024 },
    { "VO01e", "a line above 1 KiB", QKV_ERR_LIMIT, "line 6 has 1025 bytes, the limit is 1024",
      make_long_line, HOSTILE_TEXT(BASE), .number = 1025 },
    { "VO01e", "a line of 60 MB", QKV_ERR_LIMIT, "line 6 has 60000000 bytes, the limit is 1024",
      make_long_line, HOSTILE_TEXT(BASE), .number = 60000000 },
    { "VO01e", "a line of 100 MB", QKV_ERR_LIMIT, "the limit is 67108864", make_long_line,
      HOSTILE_TEXT(BASE), .number = 100000000 },
};

static qkv_status read_vocab(const char *path, qkv_error *error) {
    qkv_tokenizer *tokenizer = (qkv_tokenizer *)1;
    char folder[512];
    snprintf(folder, sizeof folder, "%.*s", (int)(strrchr(path, '/') - path), path);
    const qkv_status status = qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, error);
    if (status != QKV_OK) return tokenizer ? HOSTILE_BROKEN : status;
    qkv_tokenizer_free(tokenizer);
    return QKV_OK;
}

static qkv_status read_json(const void *path, qkv_error *error) { return read_vocab(path, error); }

static qkv_tokenizer *open_vocab(const char *vocab) {
    qkv_tokenizer *tokenizer;
    qkv_error error;
    if (qkv_tokenizer_open_memory(vocab, strlen(vocab), NULL, 0, &tokenizer, &error))
        fail_msg("%s", error.message);
    return tokenizer;
}

/* What is accepted is read right. */
static void test_vocabularies(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer =
        open_vocab("[UNK]\r\n[CLS]\r\n[SEP]\r\n\r\na\na\r\r\n##b\n\nb\na\nlast");
    size_t n = 9;
    assert_int_equal(qkv_tokenizer_size(tokenizer), 11);
    assert_int_equal(qkv_tokenizer_id(tokenizer, "[SEP]", 5), 2);
    assert_non_null(qkv_tokenizer_token(tokenizer, 3, &n)); /* an empty line, an empty token */
    assert_int_equal(n, 0);
    assert_int_equal(qkv_tokenizer_id(tokenizer, "", 0), 7);     /* of two the last */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "a\r", 2), -1); /* lines end before white space */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "a", 1), 9);    /* VO01b: the last wins */
    assert_int_equal(qkv_tokenizer_id(tokenizer, "last", 4), 10);
    qkv_tokenizer_free(tokenizer);
}

/* ---- tokenizer.json -------------------------------------------------------------------------- */

/* What jansson would need the most memory for: the scan refuses it before. */
static void test_tokenizer_json(void **state) {
    (void)state;
    static const struct {
        const char *what, *prefix, *piece, *suffix;
        int n;
        qkv_status status;
        const char *says;
    } rows[] = {
        { "a million objects", "{\"a\":{\"b\":0", ",\"k\":{}", "}}", 1000000, QKV_ERR_LIMIT,
          "more than 700000 objects and arrays, the limit" },
        { "a million arrays", "{\"a\":[0", ",[]", "]}", 1000000, QKV_ERR_LIMIT,
          "more than 700000 objects and arrays, the limit" },
        { "3,000,000 numbers", "{\"a\":[0", ",0", "]}", 3000000, QKV_ERR_LIMIT,
          "more than 2500000 values, the limit" },
        { "objects that are no list of tokens", "{\"a\":[0", ",{}", "]}", 500000, QKV_ERR_LIMIT,
          "more than 120000 objects and arrays, the limit" },
        { "a million numbers", "{\"a\":[0", ",0", "]}", 1000000, QKV_ERR_LIMIT,
          "more than 600000 values, the limit" },
        { "as many numbers as may be", "{\"a\":[0", ",0", "]}", 599990, QKV_ERR_UNSUPPORTED,
          "model" },
        { "as many objects as may be", "{\"a\":[0", ",{}", "]}", 119990, QKV_ERR_UNSUPPORTED,
          "model" },
        { "a million '['", "{\"a\":", "[", "}", 1000000, QKV_ERR_FORMAT, "deeper than 64 levels" },
        { "a string of 16 MB", "{\"a\":\"", "0123456789", "\"}", 1600000, QKV_ERR_UNSUPPORTED,
          "model" },
        { "a string of 60 MB", "{\"a\":\"", "0123456789", "\"}", 6000000, QKV_ERR_LIMIT,
          "the limit is 16777216" },
        { "a string of 70 MB", "{\"a\":\"", "0123456789", "\"}", 7000000, QKV_ERR_LIMIT,
          "the limit is 67108864" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char path[512], label[100];
        FILE *const out = fopen(hostile_path(path, "tokenizer.json"), "wb");
        assert_non_null(out);
        fputs(rows[r].prefix, out);
        for (int i = 0; i < rows[r].n; i++) fputs(rows[r].piece, out);
        fputs(rows[r].suffix, out);
        fclose(out);
        snprintf(label, sizeof label, "tokenizer.json: %s", rows[r].what);
        hostile_expect(label, read_json, path, rows[r].status, rows[r].says);
        unlink(path);
    }
}

/* ---- Byte-level BPE ------------------------------------------------------------------------- */

#define BPE_VOCAB "{\"a\":0,\"b\":1,\"ab\":2}"

/* vocab.json and merges.txt of a folder, one of which is a prefix, a piece n times, a suffix. */
static void test_bpe(void **state) {
    (void)state;
    static const struct {
        const char *what, *file, *prefix, *piece, *suffix;
        int n;
        qkv_status status;
        const char *says;
    } rows[] = {
        { "a merge two million times", "merges.txt", "", "a b\n", "", 2000000, QKV_OK, "" },
        { "a merge three million times", "merges.txt", "", "a b\n", "", 3000000, QKV_ERR_LIMIT,
          "more than 2097152 merges, the limit" },
        { "a line of 60 MB", "merges.txt", "a b\n", "0123456789", "\n", 6000000, QKV_ERR_LIMIT,
          "line 2 is longer than two tokens may be" },
        { "a file of 70 MB", "merges.txt", "", "0123456789", "\n", 7000000, QKV_ERR_LIMIT,
          "the limit is 67108864" },
        { "ten million blank lines", "merges.txt", "", "\n", "", 10000000, QKV_ERR_FORMAT,
          "line 1 is not two tokens" },
        { "ten million versions", "merges.txt", "", "#version\n", "", 5000000, QKV_OK, "" },
        { "a control character", "merges.txt", "a b\n", "a\x01 b\n", "", 1, QKV_ERR_FORMAT,
          "line 2: \"a\\x01\" is not in the vocabulary" },
        { "a million tokens with one id", "vocab.json", "{\"a\":0", ",\"b\":0", "}", 1000000,
          QKV_ERR_LIMIT, "more than 600000 values, the limit" },
        { "a key twice", "vocab.json", "{\"a\":0", ",\"a\":1", "}", 1, QKV_ERR_FORMAT,
          "vocab.json" },
        { "an object within", "vocab.json", "{\"a\":0", ",\"b\":{}", "}", 3, QKV_ERR_LIMIT,
          "objects and arrays, the limit" },
        { "a million '['", "vocab.json", "{\"a\":", "[", "}", 1000000, QKV_ERR_LIMIT,
          "more than 2 objects and arrays, the limit" },
        { "an id with a hole before it", "vocab.json", "{\"a\":4194303,\"b\":1,\"ab\":2", "", "}",
          0, QKV_OK, "" },
        { "an id above the limit", "vocab.json", "{\"a\":4194304", "", "}", 0, QKV_ERR_LIMIT,
          "\"a\" has id 4194304, the limit is 4194303" },
        { "a token of 1 MB", "vocab.json", "{\"", "0123456789", "\":0}", 100000, QKV_ERR_LIMIT,
          "has 1000000 bytes, the limit is 1024" },
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char path[3][512], label[100];
        static const char *const names[3] = { "vocab.json", "merges.txt", "config.json" };
        static const char *const texts[3] = { BPE_VOCAB, "a b\n", "{\"model_type\":\"gpt2\"}" };
        for (int f = 0; f < 3; f++) {
            FILE *const out = fopen(hostile_path(path[f], names[f]), "wb");
            const int is_it = strcmp(names[f], rows[r].file) == 0;
            assert_non_null(out);
            fputs(is_it ? rows[r].prefix : texts[f], out);
            for (int i = 0; is_it && i < rows[r].n; i++) fputs(rows[r].piece, out);
            if (is_it) fputs(rows[r].suffix, out);
            fclose(out);
        }
        snprintf(label, sizeof label, "%s: %s", rows[r].file, rows[r].what);
        hostile_expect(label, read_json, path[0], rows[r].status, rows[r].says);
        for (int f = 0; f < 3; f++) unlink(path[f]);
    }
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* Ids from 5: a ##b ##c, a lone mark, a noncharacter, an unassigned code point, NUL's neighbour. */
#define WORDS BASE "a\n##b\n##c\n\xcc\x81\n\xef\xbf\xbe\n\xcd\xb8\nb\n"

typedef struct text_case {
    const char *id, *what;
    qkv_status status;
    const char *says;
    const char *prefix;
    size_t n_prefix;
    const char *unit; /* after the prefix, n_units times */
    int n_units;
    int n_ids; /* without [CLS] and [SEP] */
    int32_t ids[6];
} text_case;

#define TEXT(words) words, sizeof(words) - 1, "", 0
#define UNIT(u, n)  "", 0, u, n
#define NO_IDS                                                                                     \
    0, { 0 }

static const text_case texts[] = {
    { "TK01a", "a byte 0xff", QKV_ERR_FORMAT, "at byte 2", TEXT("ab\xffz"), NO_IDS },
    { "TK01a", "half a character", QKV_ERR_FORMAT, "at byte 0", TEXT("\xc3"), NO_IDS },
    { "TK01a", "two thirds of a character", QKV_ERR_FORMAT, "at byte 1", TEXT("a\xe4\xb8"),
      NO_IDS },
    { "TK01a", "an encoded surrogate", QKV_ERR_FORMAT, "at byte 0", TEXT("\xed\xa0\x80"), NO_IDS },
    { "TK01a", "an overlong form", QKV_ERR_FORMAT, "at byte 1", TEXT("x\xc0\x80"), NO_IDS },
    { "TK01a", "above U+10FFFF", QKV_ERR_FORMAT, "at byte 0", TEXT("\xf4\x90\x80\x80"), NO_IDS },
    { "TK01a", "a byte that continues nothing", QKV_ERR_FORMAT, "at byte 2", TEXT("ok\x80"),
      NO_IDS },
    { "TK01b", "NUL", QKV_OK, "", TEXT("a\0b"), 2, { 5, 6 } },
    { "TK01b",
      "U+FFFD",
      QKV_OK,
      "",
      TEXT("a\xef\xbf\xbd"
           "b"),
      2,
      { 5, 6 } },
    { "TK01b",
      "private use",
      QKV_OK,
      "",
      TEXT("a\xee\x80\x80"
           "c"),
      2,
      { 5, 7 } },
    { "TK01b",
      "private use of plane 16",
      QKV_OK,
      "",
      TEXT("a\xf4\x8f\xbf\xbd"
           "c"),
      2,
      { 5, 7 } },
    { "TK01b", "nothing but NUL", QKV_OK, "", TEXT("\0\0\0"), NO_IDS },
    { "TK01c", "a noncharacter", QKV_OK, "", TEXT("\xef\xbf\xbe"), 1, { 9 } },
    { "TK01c", "an unassigned code point", QKV_OK, "", TEXT("\xcd\xb8"), 1, { 10 } },
    { "TK01d", "a word of 100 characters", QKV_OK, "", UNIT("z", 100), 1, { 1 } },
    { "TK01d", "a word of 2 MB", QKV_OK, "", UNIT("a", 2000000), 1, { 1 } },
    { "TK01d",
      "a word of 2 MB, two bytes a letter",
      QKV_OK,
      "",
      UNIT("\xc3\xa9", 1000000),
      1,
      { 1 } },
    { "TK01d",
      "1 MB that is nearly a special token again and again",
      QKV_OK,
      "",
      UNIT("[MASK", 200000),
      -1,
      { 0 } },
    { "TK01e", "a lone mark", QKV_OK, "", TEXT("\xcc\x81"), NO_IDS },
    { "TK01e", "lone marks and spaces", QKV_OK, "", TEXT("\xcc\x81 \xcc\x81\xcc\x82"), NO_IDS },
    { "TK01e", "2 MB of marks to be sorted", QKV_OK, "", UNIT("\xcc\x81\xcc\x96", 500000), NO_IDS },
    { "TK01e",
      "a mark after a letter",
      QKV_OK,
      "",
      TEXT("a\xcc\x81"
           "b"),
      2,
      { 5, 6 } },
};

static qkv_status check_ids(const text_case *text, const qkv_encoding *encoding, qkv_error *error) {
    if (text->n_ids < 0) return QKV_OK;
    int same = encoding->n == text->n_ids + 2;
    for (int i = 0; same && i < text->n_ids; i++) same = encoding->ids[i + 1] == text->ids[i];
    if (same) return QKV_OK;
    return qkvi_error_set(error, HOSTILE_BROKEN, "%d tokens, the second is %d", (int)encoding->n,
                          encoding->n > 1 ? (int)encoding->ids[1] : -1);
}

static const qkv_tokenizer *words;
static char *bytes;
static size_t n_bytes;

static qkv_status encode(const void *data, qkv_error *error) {
    const text_case *const text = data;
    qkv_encoding *encoding = NULL;
    qkv_status status = qkv_tokenizer_encode(words, bytes, n_bytes, NULL, 0, &encoding, error);
    if (status != QKV_OK) return encoding ? HOSTILE_BROKEN : status;
    status = check_ids(text, encoding, error);
    qkv_encoding_free(encoding);
    return status;
}

static qkv_status encode_as_pair(const void *data, qkv_error *error) {
    qkv_encoding *encoding = NULL;
    (void)data;
    const qkv_status status = qkv_tokenizer_encode(words, "a", 1, bytes, n_bytes, &encoding, error);
    if (status == QKV_OK) qkv_encoding_free(encoding);
    return status != QKV_OK && encoding ? HOSTILE_BROKEN : status;
}

static void test_text(void **state) {
    const text_case *const text = *state;
    const size_t n_unit = strlen(text->unit);
    char label[200];
    n_bytes = text->n_prefix + n_unit * (size_t)text->n_units;
    bytes = malloc(n_bytes + 1); /* all of it from here: a sanitizer sees the byte beyond */
    assert_non_null(bytes);
    memcpy(bytes, text->prefix, text->n_prefix);
    for (int i = 0; i < text->n_units; i++)
        memcpy(bytes + text->n_prefix + (size_t)i * n_unit, text->unit, n_unit);
    snprintf(label, sizeof label, "%s %s", text->id, text->what);
    hostile_expect(label, encode, text, text->status, text->says);
    snprintf(label, sizeof label, "%s %s, as the second text", text->id, text->what);
    hostile_expect(label, encode_as_pair, text, text->status, text->says);
    free(bytes);
}

int main(void) {
    enum { N_OTHERS = 3, N_TEXTS = sizeof texts / sizeof *texts };
    const hostile_family family = { "hostile_vocab_and_text",     "vocab.txt", read_vocab, cases,
                                    sizeof cases / sizeof *cases, NULL,        NULL };
    static struct CMUnitTest others[N_OTHERS + N_TEXTS] = {
        { "tokenizer.json", test_tokenizer_json, NULL, NULL, NULL },
        { "vocab.json and merges.txt", test_bpe, NULL, NULL, NULL },
        { "VO01a VO01b what is accepted", test_vocabularies, NULL, NULL, NULL },
    };
    static char labels[N_TEXTS][200];
    for (int t = 0; t < N_TEXTS; t++) {
        snprintf(labels[t], sizeof labels[t], "%s %s", texts[t].id, texts[t].what);
        others[N_OTHERS + t] =
            (struct CMUnitTest){ labels[t], test_text, NULL, NULL, (void *)(uintptr_t)&texts[t] };
    }
    qkv_tokenizer *const tokenizer = open_vocab(WORDS);
    words = tokenizer;
    const int failed = hostile_main(&family, others, N_OTHERS + N_TEXTS);
    qkv_tokenizer_free(tokenizer);
    return failed;
}
