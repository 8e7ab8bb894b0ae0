/**
 * Byte-level BPE: the pattern, merging against a quadratic one, files and what is refused in them,
 * decoding. Against the reference: tests/text/test_bpe_golden.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "limits/limits.h"
#include "text/bpe.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"
#include "text/unicode.h"
#include "text/words.h"

/* ---- The pattern ----------------------------------------------------------------------------- */

/* Words joined by '|'. */
static void assert_words(const char *text, const char *words) {
    char got[256] = "";
    const size_t n = strlen(text);
    for (size_t at = 0, length; at < n; at += length) {
        length = qkvi_gpt2_word(text + at, n - at);
        assert_true(length > 0 && length <= n - at);
        if (at > 0) strcat(got, "|");
        strncat(got, text + at, length);
    }
    assert_string_equal(got, words);
}

static void test_pattern(void **state) {
    (void)state;
    assert_words("", "");
    assert_words("a\n\n b", "a|\n\n| b");
    assert_words(" a  b", " a| | b");
    assert_words("hi   ", "hi|   ");
    assert_words("\t\tx", "\t|\t|x");
    assert_words("don't DON'T I'Ll", "don|'t| DON|'|T| I|'|Ll");
    assert_words("1'll 's", "1|'ll| '|s");
    assert_words("'re've'm'd'l'", "'re|'ve|'m|'d|'|l|'");
    assert_words("a\xC2\xA0"
                 "b",
                 "a|\xC2\xA0|b");
    assert_words("x\xE2\x80\xA8\xE2\x80\xA8y", "x|\xE2\x80\xA8|\xE2\x80\xA8|y");
    assert_words("ab12,. c3", "ab|12|,.| c|3");
    assert_words(" \n", " \n");
}

/* The words of Llama 3 (3 digits) or Qwen (1) joined by '|'. */
static void assert_modern(const char *text, int max_digits, const char *words) {
    char got[256] = "";
    const size_t n = strlen(text);
    for (size_t at = 0, length; at < n; at += length) {
        length = qkvi_modern_word(text + at, n - at, max_digits);
        assert_true(length > 0 && length <= n - at);
        if (at > 0) strcat(got, "|");
        strncat(got, text + at, length);
    }
    assert_string_equal(got, words);
}

static void test_modern_pattern(void **state) {
    (void)state;
    assert_modern("", 3, "");
    assert_modern("don't DON'T I'Ll we'RE", 3, "don|'t| DON|'T| I|'Ll| we|'RE");
    assert_modern("'\xC5\xBFx 'S's'", 3, "'\xC5\xBF|x| '|S|'s|'");
    assert_modern("'a 'x", 3, "'a| '|x");
    assert_modern("12345 6", 3, "123|45| |6");
    assert_modern("12345 6", 1, "1|2|3|4|5| |6");
    assert_modern("\tx  y\n z", 3, "\tx| | y|\n| z");
    assert_modern(".a !!\r\n\nx", 3, ".a| !!\r\n\n|x");
    assert_modern(" \n \n  x", 3, " \n \n| | x");
    assert_modern("a \n", 3, "a| \n");
    assert_modern("a   ", 3, "a|   ");
    assert_modern("a  1", 3, "a| | |1");
    assert_modern("\xC2\xA0x\xE3\x80\x80\xE3\x80\x80.", 3, "\xC2\xA0x|\xE3\x80\x80|\xE3\x80\x80|.");
}

/* The words of BLOOM joined by '/'. */
static void assert_bloom(const char *text, const char *words) {
    char got[256] = "";
    const size_t n = strlen(text);
    for (size_t at = 0, length; at < n; at += length) {
        length = qkvi_bloom_word(text + at, n - at);
        assert_true(length > 0 && length <= n - at);
        if (at > 0) strcat(got, "/");
        strncat(got, text + at, length);
    }
    assert_string_equal(got, words);
}

/* As PyPI tokenizers splits them: the nested class has the characters ( | ) as well. */
static void test_bloom_pattern(void **state) {
    (void)state;
    assert_bloom("", "");
    assert_bloom("Hello, world!", "Hello/,/ world/!");
    assert_bloom("a  b   ", "a/ / b/   ");
    assert_bloom("a . b", "a/ ./ b");
    assert_bloom(" (x|y) ", " (/x/|/y/) ");
    assert_bloom("don't-12:\t\n z", "don't-12:/\t\n/ z");
    assert_bloom(
        "?.\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94\xD8\x8C \xE4\xBD\xA0",
        "?.\xE2\x80\xA6\xE3\x80\x82\xEF\xBC\x8C\xE3\x80\x81\xE0\xA5\xA4\xDB\x94\xD8\x8C/ \xE4\xBD\xA0");
    assert_bloom("a\xC2\xA0"
                 "b\xE3\x80\x80 c",
                 "a/\xC2\xA0/b/\xE3\x80\x80/ c");
}

static void test_digits(void **state) {
    (void)state;
    const char text[] = "12\xD9\xA3x\xC2\xB2";
    assert_int_equal(qkvi_digits_word(text, 7, 1), 1);
    assert_int_equal(qkvi_digits_word(text, 7, 0), 4);
    assert_int_equal(qkvi_digits_word(text + 4, 3, 0), 1);
    assert_int_equal(qkvi_digits_word(text + 5, 2, 1), 2);
    assert_int_equal(qkvi_digits_word("\xF0\x91\xB7\xA0.", 5, 1), 4); /* U+11DE0 */
}

/* ---- Bytes as characters --------------------------------------------------------------------- */

static void test_byte_chars(void **state) {
    (void)state;
    int32_t next = 256;
    for (int byte = 0; byte < 256; byte++) { /* bytes_to_unicode of GPT-2's encoder.py */
        const int stays = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
                          (byte >= 0xAE && byte <= 0xFF);
        const int32_t code = stays ? byte : next++;
        assert_int_equal(qkvi_byte_char(byte), code);
        assert_int_equal(qkvi_char_byte(code), byte);
    }
    assert_int_equal(next, 256 + 68);
    assert_int_equal(qkvi_char_byte(next), -1);
    assert_int_equal(qkvi_char_byte(' '), -1);
    assert_int_equal(qkvi_char_byte(0xAD), -1);
    assert_int_equal(qkvi_char_byte(-1), -1);
    assert_int_equal(qkvi_char_byte(0x10FFFF), -1);
}

static void assert_text(const char *bytes, size_t n, const char *wanted) {
    qkvi_growing text = { 0 };
    assert_int_equal(qkvi_byte_level_text(bytes, n, &text), QKV_OK);
    assert_int_equal(text.n, strlen(wanted));
    assert_memory_equal(text.bytes, wanted, text.n);
    free(text.bytes);
}

#define R "\xEF\xBF\xBD"

/* Unicode 15, tables 3-8 to 3-11. */
static void test_lossy(void **state) {
    (void)state;
    assert_text("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", 9, R R R R R R R R "A");
    assert_text("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", 9, R R R R R R R R "A");
    assert_text("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", 9, R R R R R "A" R R "B");
    assert_text("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", 9, R R R R "A");
    assert_text("\xE6\x97", 2, R);
    assert_text("\xE6\x97\xA5\xE6", 4, "\xE6\x97\xA5" R);
}

/* ---- Merging --------------------------------------------------------------------------------- */

enum { N_LETTERS = 4 };

/* Random merges over a, b, c, d: any two tokens of at most six letters may become one. */
static qkv_tokenizer *random_merges(unsigned *seed, int n) {
    qkv_tokenizer *tokenizer = qkvi_bpe_new();
    qkv_error error;
    char tokens[64][8] = { "a", "b", "c", "d" };
    int pairs[60][2], n_tokens = N_LETTERS;
    assert_non_null(tokenizer);
    for (int i = 0; i < n; i++) {
        int a, b, known = 0;
        do {
            a = rand_r(seed) % n_tokens;
            b = rand_r(seed) % n_tokens;
        } while (strlen(tokens[a]) + strlen(tokens[b]) > 6);
        const size_t n_a = strlen(tokens[a]);
        memcpy(tokens[n_tokens], tokens[a], n_a);
        memcpy(tokens[n_tokens] + n_a, tokens[b], strlen(tokens[b]) + 1);
        for (int t = 0; t < n_tokens; t++) known |= strcmp(tokens[t], tokens[n_tokens]) == 0;
        pairs[i][0] = a;
        pairs[i][1] = b;
        n_tokens += !known;
    }
    for (int t = 0; t < n_tokens; t++)
        assert_int_equal(qkvi_pieces_add(&tokenizer->pieces, t, tokens[t], strlen(tokens[t])),
                         QKV_OK);
    assert_int_equal(qkvi_tokenizer_seal_model(tokenizer, &error), QKV_OK);
    for (int i = 0; i < n; i++) {
        const char *const parts[2] = { tokens[pairs[i][0]], tokens[pairs[i][1]] };
        const size_t lengths[2] = { strlen(parts[0]), strlen(parts[1]) };
        assert_int_equal(qkvi_bpe_add_merge(tokenizer, "x", "y", parts, lengths, &error), QKV_OK);
    }
    assert_int_equal(qkvi_bpe_end_merges(tokenizer, "x", &error), QKV_OK);
    return tokenizer;
}

/* Again and again the lowest rank, the leftmost: no heap, no list. */
static int merge_slowly(const qkvi_bpe *model, int32_t *ids, int n) {
    for (;;) {
        const qkvi_rank *best = NULL;
        int place = 0;
        for (int i = 0; i + 1 < n; i++) {
            const qkvi_rank *rank = qkvi_ranks_find(&model->ranks, ids[i], ids[i + 1]);
            if (rank && (!best || rank->rank < best->rank)) {
                best = rank;
                place = i;
            }
        }
        if (!best) return n;
        ids[place] = best->id;
        memmove(ids + place + 1, ids + place + 2, (size_t)(n - place - 2) * sizeof *ids);
        n--;
    }
}

static void test_merging(void **state) {
    (void)state;
    unsigned seed = (unsigned)time(NULL);
    print_message("seed %u\n", seed);
    for (int round = 0; round < 200; round++) {
        qkv_tokenizer *tokenizer = random_merges(&seed, 1 + rand_r(&seed) % 40);
        qkvi_bpe_work work = { 0 };
        for (int w = 0; w < 50; w++) {
            char word[300];
            int32_t ids[300];
            const int n = rand_r(&seed) % (w == 0 ? 300 : 20);
            for (int i = 0; i < n; i++) {
                word[i] = (char)('a' + rand_r(&seed) % N_LETTERS);
                ids[i] = word[i] - 'a';
            }
            const int wanted = merge_slowly(tokenizer->model, ids, n);
            assert_int_equal(qkvi_bpe_merge(tokenizer->model, word, (size_t)n, &work), QKV_OK);
            assert_int_equal(work.n_symbols, wanted);
            for (int i = 0; i < wanted; i++) assert_int_equal(work.symbols[i].id, ids[i]);
        }
        qkvi_bpe_work_free(&work);
        qkv_tokenizer_free(tokenizer);
    }
}

/* ---- Files ----------------------------------------------------------------------------------- */

#define VOCAB  "{\"a\":0,\"b\":1,\"ab\":2,\"\xC4\xA0\":3,\"<s>\":4,\"</s>\":5,\"\xC3\xA6\":6}"
#define MERGES "#version: 0.2\na b\n"
#define GPT2   "{\"tokenizer_class\":\"GPT2Tokenizer\"}"
#define BART   "{\"tokenizer_class\":\"BartTokenizerFast\"}"

static qkvi_text_file file(const char *name, const char *bytes) {
    return (qkvi_text_file){ name, bytes, bytes ? strlen(bytes) : 0 };
}

static qkv_status read_bpe(const char *vocab, const char *merges, const char *config,
                           const char *special, const char *added, qkv_tokenizer **tokenizer,
                           qkv_error *error) {
    const qkvi_text_files files = { .vocab = file("vocab.json", vocab),
                                    .merges = file("merges.txt", merges),
                                    .tokenizer_config = file("tokenizer_config.json", config),
                                    .special_tokens_map = file("special_tokens_map.json", special),
                                    .added_tokens = file("added_tokens.json", added),
                                    .config = file("config.json", "{\"model_type\":\"t5\"}") };
    return qkvi_tokenizer_read_bpe(&files, tokenizer, error);
}

static void assert_ids(const char *vocab, const char *merges, const char *config,
                       const char *special, const char *added, const char *text, int n,
                       const int32_t *ids) {
    qkv_tokenizer *tokenizer;
    qkv_encoding *encoding;
    qkv_error error;
    if (read_bpe(vocab, merges, config, special, added, &tokenizer, &error))
        fail_msg("%s", error.message);
    assert_int_equal(
        qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &encoding, &error), QKV_OK);
    assert_int_equal(encoding->n, n);
    for (int i = 0; i < n; i++) assert_int_equal(encoding->ids[i], ids[i]);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

static void test_files(void **state) {
    (void)state;
    assert_ids(VOCAB, MERGES, GPT2, NULL, NULL, "ab ba", 4, (const int32_t[]){ 2, 3, 1, 0 });
    assert_ids(VOCAB, "a b", GPT2, NULL, NULL, "abab", 2, (const int32_t[]){ 2, 2 });
    assert_ids(VOCAB, "#version: 0.2\r\na b\r\n", GPT2, NULL, NULL, "ab", 1,
               (const int32_t[]){ 2 });
    assert_ids(VOCAB, "", GPT2, NULL, NULL, "ab", 2, (const int32_t[]){ 0, 1 });
    assert_ids(VOCAB, MERGES, BART, NULL, NULL, "ab", 3, (const int32_t[]){ 4, 2, 5 });
    assert_ids(VOCAB, MERGES,
               "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true,"
               "\"bos_token\":\"<s>\",\"add_prefix_space\":true}",
               NULL, NULL, "ab", 3, (const int32_t[]){ 4, 3, 2 });
    assert_ids("{\"a\":0,\"\xC3\x83\":1,\"\xC2\xA9\":2,\"\xC3\x83\xC2\xA9\":3,\"<s>\":4}",
               "\xC3\x83 \xC2\xA9\n",
               "{\"tokenizer_class\":\"GPTNeoXTokenizerFast\",\"add_bos_token\":true,"
               "\"bos_token\":\"<s>\"}",
               NULL, NULL, "ae\xCC\x81", 3, (const int32_t[]){ 4, 0, 3 }); /* NFC */
    /* CLIP: lower case behind NFC, no white space, numbers one by one, the last byte's own token */
    assert_ids(
        "{\"a\":0,\"b\":1,\"a</w>\":2,\"b</w>\":3,\"ab</w>\":4,\"1</w>\":5,\"'\":6,\"s</w>\":7,"
        "\"<|startoftext|>\":8,\"<|endoftext|>\":9,\"!\":10,\"!</w>\":11,\"h\":12,\"\xC3\x8C\":13,"
        "\"\xC2\xB1</w>\":14}",
        "a b</w>\n", "{\"tokenizer_class\":\"CLIPTokenizer\"}", NULL, NULL,
        " A  aB11b's!! q H\xCC\xB1", 15,
        (const int32_t[]){ 8, 2, 4, 5, 5, 3, 6, 7, 10, 11, 9, 9, 13, 14, 9 });
    /* an object's switches, an id of added_tokens.json; the decoder replaces both */
    assert_ids(VOCAB, MERGES, BART, "{\"mask_token\":{\"content\":\"b\",\"lstrip\":true}}", NULL,
               "a b", 4, (const int32_t[]){ 4, 0, 1, 5 });
    assert_ids(VOCAB, MERGES, BART, NULL, "{\"<mask>\":7}", "a <mask>", 5,
               (const int32_t[]){ 4, 0, 3, 7, 5 });
    assert_ids(
        VOCAB, MERGES,
        "{\"tokenizer_class\":\"BartTokenizer\",\"added_tokens_decoder\":{\"7\":{\"content\":"
        "\"<mask>\",\"lstrip\":true,\"special\":true}}}",
        "{\"mask_token\":\"b\"}", "{\"q\":9}", "a <mask>", 4, (const int32_t[]){ 4, 0, 7, 5 });
    /* without a file's word no token takes the space, as in transformers 5 */
    assert_ids("{\"a\":0,\"\xC4\xA0\":3,\"<s>\":4,\"</s>\":5,\"<mask>\":1}", "", BART, NULL, NULL,
               "a <mask>", 5, (const int32_t[]){ 4, 0, 3, 1, 5 });
    /* a token that no list has gets the next id: after <unk> and <pad>, which the class has */
    assert_ids(VOCAB, MERGES, "{\"tokenizer_class\":\"BartTokenizer\",\"cls_token\":\"q\"}", NULL,
               NULL, "abq", 4, (const int32_t[]){ 9, 2, 9, 5 });
    /* RoBERTa's class puts its own around a text, whatever add_bos_token says */
    assert_ids(VOCAB, MERGES, "{\"tokenizer_class\":\"BartTokenizer\",\"add_bos_token\":true}",
               NULL, NULL, "ab", 3, (const int32_t[]){ 4, 2, 5 });
}

static void assert_refused(const char *vocab, const char *merges, const char *config,
                           const char *special, const char *added, qkv_status status,
                           const char *words) {
    qkv_tokenizer *tokenizer = (qkv_tokenizer *)1;
    qkv_error error = { 0 };
    const qkv_status got = read_bpe(vocab, merges, config, special, added, &tokenizer, &error);
    if (got != status) fail_msg("%s: \"%s\"", qkv_status_name(got), error.message);
    assert_null(tokenizer);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
}

static void test_refused(void **state) {
    (void)state;
    const struct {
        const char *vocab, *merges, *config, *special, *added;
        qkv_status status;
        const char *words;
    } rows[] = {
        { "{\"a\":0,\"a\":1}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "vocab.json" },
        { "{\"a\":0,\"b\":0}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "two tokens have id 0" },
        { "{\"a\":-1}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "id -1" },
        { "{\"a\":4194304}", "", GPT2, 0, 0, QKV_ERR_LIMIT, "id 4194304" },
        { "{\"a\":\"1\"}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "no integer" },
        { "{\"a\":1.0}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "no integer" },
        { "{\"a\":[]}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "no integer" },
        { "[]", "", GPT2, 0, 0, QKV_ERR_FORMAT, "vocab.json" },
        { "{\"\xFF\":0}", "", GPT2, 0, 0, QKV_ERR_FORMAT, "vocab.json" },
        { VOCAB, "a b\n\na b\n", GPT2, 0, 0, QKV_ERR_FORMAT, "merges.txt: line 2 is not two" },
        { VOCAB, "a b c\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 1 is not two tokens" },
        { VOCAB, "#version: 0.2\nab\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 2 is not two tokens" },
        { VOCAB, "a b\nq b\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 2: \"q\" is not in" },
        { VOCAB, "a b\nb q\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 2: \"q\" is not in" },
        { VOCAB, "b a\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 1: \"ba\" is not in" },
        { VOCAB, "a b\r\nb \xFF\r\n", GPT2, 0, 0, QKV_ERR_FORMAT, "line 2 is not valid UTF-8" },
        { VOCAB,
          "\xEF\xBB\xBF"
          "a b\n",
          GPT2, 0, 0, QKV_ERR_FORMAT, "byte order mark" },
        { VOCAB, "", NULL, 0, 0, QKV_ERR_UNSUPPORTED, "model_type \"t5\"" },
        { VOCAB, "", "{\"tokenizer_class\":\"T5Tokenizer\"}", 0, 0, QKV_ERR_UNSUPPORTED,
          "T5Tokenizer" },
        { VOCAB, "", "{\"tokenizer_class\":\"BartTokenizer\",\"cls_token\":null}", 0, 0,
          QKV_ERR_UNSUPPORTED, "cls_token is null" },
        { "{\"a\":0}", "", BART, 0, 0, QKV_ERR_FORMAT, "\"</s>\" is not in it" },
        { VOCAB, "", GPT2, "{\"pad_token\":3}", 0, QKV_ERR_FORMAT, "pad_token" },
        { VOCAB, "", GPT2, "{\"pad_token\":{\"lstrip\":true}}", 0, QKV_ERR_FORMAT, "content" },
        { VOCAB, "", GPT2, 0, "{\"new\":0}", QKV_ERR_FORMAT, "the vocabulary disagrees" },
        { VOCAB, "", GPT2, 0, "{\"a\":1}", QKV_ERR_FORMAT, "the vocabulary disagrees" },
        { VOCAB, "", GPT2, 0, "{\"x\":9,\"y\":9}", QKV_ERR_FORMAT, "two tokens have id 9" },
        { VOCAB, "", GPT2, 0, "{\"x\":9}", QKV_ERR_FORMAT,
          "id 9, the vocabulary disagrees: the next" },
        { VOCAB, "", "{\"tokenizer_class\":\"GPT2Tokenizer\",\"added_tokens_decoder\":{\"x\":{}}}",
          0, 0, QKV_ERR_FORMAT, "added_tokens_decoder" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_refused(rows[i].vocab, rows[i].merges, rows[i].config, rows[i].special,
                       rows[i].added, rows[i].status, rows[i].words);
}

/* ---- Tokens as text -------------------------------------------------------------------------- */

static void assert_shown(const qkv_tokenizer *tokenizer, int32_t id, const char *wanted) {
    qkv_text *text = NULL;
    qkv_error error;
    assert_int_equal(qkv_tokenizer_show(tokenizer, id, &text, &error), QKV_OK);
    assert_string_equal(text->bytes, wanted);
    qkv_text_free(text);
}

static void test_shown(void **state) {
    (void)state;
    qkv_tokenizer *tokenizer;
    qkv_text *text = (qkv_text *)1;
    qkv_error error;
    const char *vocab =
        "{\"\xC4\xA0"
        "door\":0,\"\xC3\xA6\xC4\xB9\xC2\xA5\":1,\"\xC3\xA6\":2,"
        "\"\xC4\xB9\":3,\"\xC2\xA5\":4,\"\xC4\x8A\":5,\"<s>\":6,\"\xE6\x97\xA5\":7}";
    assert_int_equal(read_bpe(vocab, "", GPT2, NULL, "{\"<s>\":6,\" x\":8}", &tokenizer, &error),
                     QKV_OK);
    assert_shown(tokenizer, 0, "\u2423door");
    assert_shown(tokenizer, 1, "\xE6\x97\xA5"); /* 日, whole */
    assert_shown(tokenizer, 2, "\\xe6");
    assert_shown(tokenizer, 5, "\u21b5");
    assert_shown(tokenizer, 6, "<s>");
    assert_shown(tokenizer, 7, "\xE6\x97\xA5"); /* stands for no bytes: itself */
    assert_shown(tokenizer, 8, " x");
    const int32_t ids[] = { 0, 2, 3, 4, 2, 0 };
    assert_int_equal(qkv_tokenizer_decode(tokenizer, ids, 6, 0, &text, &error), QKV_OK);
    assert_string_equal(text->bytes, " door\xE6\x97\xA5" R " door");
    qkv_text_free(text);
    const int32_t none[] = { 0, 10 }; /* 9 is <|endoftext|>, which the class has */
    assert_int_equal(qkv_tokenizer_decode(tokenizer, none, 2, 0, &text, &error), QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "ids[1] = 10: no token has this id");
    assert_null(text);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, ids, 6, 2, &text, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, ids, -1, 0, &text, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, NULL, 1, 0, &text, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, ids, 6, 0, NULL, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tokenizer_show(tokenizer, -1, &text, &error), QKV_ERR_ARGUMENT);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, NULL, 0, 0, &text, &error), QKV_OK);
    assert_int_equal(text->n, 0);
    qkv_text_free(text);
    qkv_text_free(NULL);
    qkv_tokenizer_free(tokenizer);
}

/* A word of 512 KiB: O(n log n), a fraction of a second, and not some 10^11 steps. */
static void test_long_word(void **state) {
    (void)state;
    enum { N = 1 << 19 };
    qkv_tokenizer *tokenizer = NULL;
    qkv_encoding *encoding = NULL;
    qkv_error error;
    char *text = malloc(N);
    assert_non_null(text);
    assert_int_equal(
        qkv_tokenizer_open(QKV_TEST_DATA "/golden/bpe/gpt2", QKV_SOURCE, &tokenizer, &error),
        QKV_OK);
    for (size_t i = 0; i < N; i++) text[i] = "theating"[i * i % 8];
    const clock_t start = clock();
    assert_int_equal(qkv_tokenizer_encode(tokenizer, text, N, NULL, 0, &encoding, &error), QKV_OK);
    assert_true((double)(clock() - start) / CLOCKS_PER_SEC < limit_seconds(10));
    assert_int_equal(encoding->end[encoding->n - 1], N);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern),       cmocka_unit_test(test_modern_pattern),
        cmocka_unit_test(test_bloom_pattern), cmocka_unit_test(test_digits),
        cmocka_unit_test(test_byte_chars),    cmocka_unit_test(test_lossy),
        cmocka_unit_test(test_merging),       cmocka_unit_test(test_files),
        cmocka_unit_test(test_refused),       cmocka_unit_test(test_shown),
        cmocka_unit_test(test_long_word),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
