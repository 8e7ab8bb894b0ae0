/**
 * Added tokens and the files that name them: who has the last word, ids and ranges of tokens that
 * are normalised, switches, what is refused. Against transformers on random folders:
 * tests/text/test_added_golden.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/tokenizer_json.h"

/*                    0      1      2      3      4       5  6  7  8  9 */
#define LINES   "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nb\ne\n.\nA\n"
#define N_LINES 10
#define VOCAB                                                                                      \
    "\"vocab\":{\"[PAD]\":0,\"[UNK]\":1,\"[CLS]\":2,\"[SEP]\":3,\"[MASK]\":4,\"a\":5,\"b\":6,"     \
    "\"e\":7,\".\":8,\"A\":9}"
#define NORMALIZER "\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":true}"
#define PARTS                                                                                      \
    NORMALIZER ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":{\"type\":"  \
               "\"BertProcessing\",\"sep\":[\"[SEP]\",3],\"cls\":[\"[CLS]\",2]},"                  \
               "\"model\":{\"type\":\"WordPiece\",\"max_input_chars_per_word\":2," VOCAB "}"
#define BERT "{\"model_type\":\"bert\"}"

/* A folder: NULL where there is no such file. */
typedef struct folder {
    const char *json, *lines, *config, *map, *added, *model;
} folder;

static qkvi_text_file file(const char *name, const char *bytes) {
    return (qkvi_text_file){ name, bytes, bytes ? strlen(bytes) : 0 };
}

static qkv_status read_folder(const folder *f, qkv_tokenizer **tokenizer, qkv_error *error) {
    const qkvi_text_files files = { .tokenizer = file("tokenizer.json", f->json),
                                    .vocab = file("vocab.txt", f->lines),
                                    .tokenizer_config = file("tokenizer_config.json", f->config),
                                    .special_tokens_map = file("special_tokens_map.json", f->map),
                                    .added_tokens = file("added_tokens.json", f->added),
                                    .config = file("config.json", f->model) };
    return f->json ? qkvi_tokenizer_read_json(&files, tokenizer, error)
                   : qkvi_tokenizer_read_vocab(&files, tokenizer, error);
}

static qkv_tokenizer *open_folder(const folder *f) {
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (read_folder(f, &tokenizer, &error)) fail_msg("%s", error.message);
    return tokenizer;
}

static qkv_encoding *encode(const qkv_tokenizer *tokenizer, const char *text, const char *pair) {
    qkv_encoding *encoding = NULL;
    qkv_error error;
    if (qkv_tokenizer_encode(tokenizer, text, strlen(text), pair, pair ? strlen(pair) : 0,
                             &encoding, &error))
        fail_msg("%s", error.message);
    return encoding;
}

/* Ids between [CLS] and [SEP], as text. */
static void assert_ids(const folder *f, const char *text, const char *wanted) {
    qkv_tokenizer *tokenizer = open_folder(f);
    qkv_encoding *encoding = encode(tokenizer, text, NULL);
    char got[256] = "";
    for (int64_t i = 1; i + 1 < encoding->n; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i > 1 ? " " : "",
                 encoding->ids[i]);
    if (strcmp(got, wanted) != 0) fail_msg("'%s': %s, not %s", text, got, wanted);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

/* ---- Lists of vocab.txt's neighbours --------------------------------------------------------- */

#define DECODER(entries) "{\"added_tokens_decoder\":{" entries "}}"

static void test_lists(void **state) {
    (void)state;
    /* id 10 and 11 follow the lines */
    assert_ids(&(folder){ .lines = LINES, .added = "{\"<x>\":10,\"<Y>\":11}" }, "a<x>b <y>A",
               "5 10 6 11 5");
    assert_ids(&(folder){ .lines = LINES,
                          .config = DECODER("\"11\":{\"content\":\"<Y>\",\"normalized\":false},"
                                            "\"10\":{\"content\":\"<x>\"}") },
               "a<X>b <y><Y>", "5 10 6 1 1 1 11");
    /* with an added_tokens_decoder the two older files do not count */
    assert_ids(&(folder){ .lines = LINES,
                          .config = DECODER("\"10\":{\"content\":\"<x>\"}"),
                          .map = "{\"mask_token\":\"b\"}",
                          .added = "{\"<Y>\":10}" },
               "<x>[MASK]b", "10 4 6");
    /* extra tokens of either name; any field that ends in _token */
    assert_ids(
        &(folder){ .lines = LINES,
                   .config = "{\"additional_special_tokens\":[\"<x>\"],\"boi_token\":\"<i>\"}" },
        "<x><i>", "11 10");
    assert_ids(&(folder){ .lines = LINES,
                          .config = "{\"extra_special_tokens\":{\"image_token\":\"<x>\"}}",
                          .map = "{\"additional_special_tokens\":[\"<y>\"]}" },
               "<x><y>", "10 11");
}

static void test_names(void **state) {
    static const char own[] = "<p>\n<u>\n<c>\n<s>\n<m>\na\nb\n";
    static const char named[] =
        "{\"pad_token\":\"<p>\",\"unk_token\":\"<u>\",\"cls_token\":{\"content\":\"<c>\"},"
        "\"sep_token\":\"<s>\",\"mask_token\":{\"__type\":\"AddedToken\",\"content\":\"<m>\","
        "\"lstrip\":true}}";
    (void)state;
    assert_ids(&(folder){ .lines = own, .config = named }, "a <m> q", "5 4 1");
    assert_ids(&(folder){ .lines = own, .config = "{}", .map = named }, "<c>[CLS]<s>", "2 1 1 1 3");
    qkv_tokenizer *tokenizer = open_folder(&(folder){ .lines = own, .config = named });
    qkv_encoding *encoding = encode(tokenizer, "a", NULL);
    assert_int_equal(encoding->ids[0], 2);
    assert_int_equal(encoding->ids[2], 3);
    assert_int_equal(qkv_tokenizer_special(tokenizer, QKV_TOKEN_MASK), 4);
    assert_int_equal(qkv_tokenizer_special(tokenizer, QKV_TOKEN_UNK), 1);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
    /* a token that BERT has and the vocabulary lacks gets the next id */
    assert_ids(&(folder){ .lines = "[UNK]\n[CLS]\n[SEP]\na\n" }, "a[PAD][MASK]", "3 4 5");
}

/* ---- Tokens that are normalised -------------------------------------------------------------- */

static void assert_range(const qkv_encoding *encoding, int64_t token, int32_t id, int64_t begin,
                         int64_t end) {
    assert_int_equal(encoding->ids[token], id);
    assert_int_equal(encoding->begin[token], begin);
    assert_int_equal(encoding->end[token], end);
}

static void test_normalized(void **state) {
    (void)state;
    const folder f = { .lines = LINES,
                       .config =
                           DECODER("\"10\":{\"content\":\"<\xC3\x89nt>\"},"
                                   "\"11\":{\"content\":\"le\",\"lstrip\":true,\"rstrip\":true},"
                                   "\"12\":{\"content\":\"word\",\"single_word\":true}") };
    qkv_tokenizer *tokenizer = open_folder(&f);
    /*                                             0 2     8   12 13 */
    qkv_encoding *encoding = encode(tokenizer, "a <\xC3\x89NT>b<e\xCC\x81nt>.", NULL);
    assert_int_equal(encoding->n, 7);
    assert_range(encoding, 1, 5, 0, 1);
    assert_range(encoding, 2, 10, 2, 8);
    assert_range(encoding, 3, 6, 8, 9);
    assert_range(encoding, 4, 10, 9, 16);
    assert_range(encoding, 5, 8, 16, 17);
    assert_int_equal(encoding->special[2], 0);
    qkv_encoding_free(encoding);
    encoding = encode(tokenizer,
                      "a  LE\t\xE3\x80\x80"
                      "b",
                      NULL); /* white space of every sort */
    assert_int_equal(encoding->n, 5);
    assert_range(encoding, 2, 11, 1, 9);
    assert_range(encoding, 3, 6, 9, 10);
    qkv_encoding_free(encoding);
    encoding = encode(tokenizer, "WORD aword word.", NULL);
    assert_int_equal(encoding->n, 6); /* "aword" is unknown */
    assert_range(encoding, 1, 12, 0, 4);
    assert_range(encoding, 2, 1, 5, 10);
    assert_range(encoding, 3, 12, 11, 15);
    assert_range(encoding, 4, 8, 15, 16);
    qkv_encoding_free(encoding);
    const int32_t ids[] = { 5, 10 };
    qkv_text *text = NULL;
    assert_int_equal(qkv_tokenizer_decode(tokenizer, ids, 2, 0, &text, NULL), QKV_OK);
    assert_string_equal(text->bytes, "a <ent>"); /* as the reference: what the normaliser made */
    qkv_text_free(text);
    qkv_tokenizer_free(tokenizer);
    /* ideographs have spaces around them in both: that of the text is no part of a word */
    const folder ideographs = { .lines = LINES,
                                .config =
                                    DECODER("\"10\":{\"content\":\"\xE4\xB8\xAD\xE6\x96\x87\"}") };
    tokenizer = open_folder(&ideographs);
    encoding = encode(tokenizer,
                      "a\xE4\xB8\xAD\xE6\x96\x87"
                      "b",
                      NULL);
    assert_int_equal(encoding->n, 5);
    assert_range(encoding, 1, 5, 0, 1);
    assert_range(encoding, 2, 10, 1, 7);
    assert_range(encoding, 3, 6, 7, 8);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

/* ---- Who has the last word ------------------------------------------------------------------- */

static void test_who_wins(void **state) {
    static const char json[] = "{" PARTS "}";
    const struct {
        const char *config, *model, *wanted; /* of "A ab" */
    } rows[] = {
        { NULL, NULL, "5 1" },                        /* the file alone: as it is */
        { "{\"do_lower_case\":false}", BERT, "9 1" }, /* BERT's class: not the file */
        { "{\"do_lower_case\":true}", BERT, "5 1" },  /* … */
        { NULL, BERT, "5 1" },                        /* … lower case by itself */
        { "{\"do_lower_case\":false,\"tokenizer_class\":\"BertTokenizerFast\"}", NULL, "9 1" },
        { "{\"do_lower_case\":false,\"tokenizer_class\":\"PreTrainedTokenizerFast\"}", BERT,
          "5 1" },
        { "{\"do_lower_case\":false,\"tokenizer_class\":\"TokenizersBackend\"}", NULL, "5 1" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_ids(&(folder){ .json = json, .config = rows[i].config, .model = rows[i].model },
                   "A ab", rows[i].wanted);
    /* BERT's words may have 100 characters, those of the file as it is two */
    static const char aaa[] =
        "{" NORMALIZER ",\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
        "\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"[SEP]\",2],"
        "\"cls\":[\"[CLS]\",1]},\"model\":{\"type\":\"WordPiece\","
        "\"max_input_chars_per_word\":2,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,"
        "\"[SEP]\":2,\"aaa\":3,\"[PAD]\":4,\"[MASK]\":5}}}";
    assert_ids(&(folder){ .json = aaa }, "aaa", "0");
    assert_ids(&(folder){ .json = aaa, .model = BERT }, "aaa", "3");
    /* vocab.txt is not looked at beside tokenizer.json, whose added tokens any class takes */
    assert_ids(&(folder){ .json = "{" PARTS ",\"added_tokens\":[{\"id\":10,\"content\":\"<x>\"}]}",
                          .lines = "x\n",
                          .model = BERT },
               "<X>", "10");
    /* … but for an added_tokens_decoder, which replaces them */
    assert_ids(&(folder){ .json = "{" PARTS ",\"added_tokens\":[{\"id\":10,\"content\":\"<x>\"}]}",
                          .config = DECODER("\"10\":{\"content\":\"<y>\"}"),
                          .model = BERT },
               "<x><y>", "1 1 1 10");
}

/* ---- Switches -------------------------------------------------------------------------------- */

static void assert_types(const folder *f, int wanted) {
    qkv_tokenizer *tokenizer = open_folder(f);
    qkv_encoding *encoding = encode(tokenizer, "a", "b");
    assert_int_equal(encoding->n, 5);
    assert_int_equal(encoding->types[3], wanted);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

static void assert_cut(const folder *f, const char *text, const char *pair, int64_t max_len,
                       const int32_t *wanted) {
    qkv_tokenizer *tokenizer = open_folder(f);
    qkv_encoding *encoding = encode(tokenizer, text, pair);
    qkv_tokenizer_cut(tokenizer, encoding, max_len);
    assert_int_equal(encoding->n, max_len);
    for (int64_t i = 0; i < max_len; i++) assert_int_equal(encoding->ids[i], wanted[i]);
    qkv_encoding_free(encoding);
    qkv_tokenizer_free(tokenizer);
}

static void test_switches(void **state) {
    (void)state;
    assert_ids(&(folder){ .lines = LINES,
                          .config = "{\"split_special_tokens\":true,\"added_tokens_decoder\":"
                                    "{\"10\":{\"content\":\"<x>\"}}}" },
               "[MASK]<x>", "1 1 1 10");
    assert_types(&(folder){ .lines = LINES }, 1);
    assert_types(&(folder){ .lines = LINES, .config = "{\"model_input_names\":[\"input_ids\"]}" },
                 0);
    assert_types(
        &(folder){ .lines = LINES, .config = "{\"tokenizer_class\":\"DistilBertTokenizer\"}" }, 0);
    assert_types(&(folder){ .json = "{" PARTS "}" }, 1);
    assert_types(
        &(folder){ .json = "{" PARTS "}", .config = "{\"tokenizer_class\":\"TokenizersBackend\"}" },
        0);
    static const char left[] = "{\"truncation_side\":\"left\"}";
    static const char json_left[] = "{" PARTS ",\"truncation\":{\"direction\":\"Left\"}}";
    const int32_t right_ids[] = { 2, 5, 6, 3 }, left_ids[] = { 2, 7, 8, 3 };
    assert_cut(&(folder){ .lines = LINES }, "a b e .", NULL, 4, right_ids);
    assert_cut(&(folder){ .lines = LINES, .config = left }, "a b e .", NULL, 4, left_ids);
    assert_cut(&(folder){ .json = json_left, .model = BERT }, "a b e .", NULL, 4, left_ids);
    assert_cut(&(folder){ .json = json_left, .config = "{\"truncation_side\":\"right\"}" },
               "a b e .", NULL, 4, right_ids);
    assert_cut(&(folder){ .lines = LINES, .config = left }, "a b e", "b e .", 5,
               (const int32_t[]){ 2, 7, 3, 8, 3 });
}

/* ---- Refused --------------------------------------------------------------------------------- */

static void test_refused(void **state) {
    const struct {
        folder f;
        qkv_status status;
        const char *words;
    } rows[] = {
        { { .lines = LINES,
            .config = DECODER("\"10\":{\"content\":\"<x>\"},\"11\":{\"content\":\"<X>\"}") },
          QKV_ERR_UNSUPPORTED,
          "\"<x>\" and \"<X>\" are one text" },
        { { .lines = LINES, .config = DECODER("\"10\":{\"content\":\"\xCC\x81\"}") },
          QKV_ERR_UNSUPPORTED,
          "leaves nothing of added token" },
        { { .lines = LINES,
            .config = DECODER("\"10\":{\"content\":\" x\"},"
                              "\"11\":{\"content\":\"y\",\"rstrip\":true}") },
          QKV_ERR_UNSUPPORTED,
          "\" x\" begins with white space while \"y\"" },
        { { .lines = LINES, .config = DECODER("\"12\":{\"content\":\"<x>\"}") },
          QKV_ERR_FORMAT,
          "id 12, the vocabulary disagrees: the next id is 10" },
        { { .lines = LINES, .config = DECODER("\"4\":{\"content\":\"a\"}") },
          QKV_ERR_FORMAT,
          "id 4, the vocabulary disagrees: there it has 5" },
        { { .lines = LINES, .config = DECODER("\"x\":{\"content\":\"a\"}") },
          QKV_ERR_FORMAT,
          "an entry of added_tokens_decoder" },
        { { .lines = LINES, .config = "{\"added_tokens_decoder\":null}" },
          QKV_ERR_FORMAT,
          "added_tokens_decoder is no object" },
        { { .lines = LINES, .config = DECODER("\"10\":{\"content\":\"\"}") },
          QKV_ERR_FORMAT,
          "has 0 bytes" },
        { { .lines = LINES, .added = "{\"<x>\":10,\"<y>\":10}" },
          QKV_ERR_FORMAT,
          "added_tokens.json: the added tokens: two tokens have id 10" },
        { { .lines = LINES, .added = "{\"<x>\":1.5}" }, QKV_ERR_FORMAT, "an id is no integer" },
        { { .lines = LINES, .added = "{\"<x>\":4194304}" }, QKV_ERR_LIMIT, "4194304" },
        { { .lines = LINES, .config = "{\"cls_token\":null}" },
          QKV_ERR_UNSUPPORTED,
          "cls_token is null" },
        { { .lines = LINES, .config = "{\"cls_token\":7}" },
          QKV_ERR_FORMAT,
          "cls_token is neither a string nor an object" },
        { { .lines = LINES, .config = "{\"unk_token\":\"<u>\"}" },
          QKV_ERR_FORMAT,
          "no line is <u>" },
        { { .lines = LINES, .config = "{\"truncation_side\":\"top\"}" },
          QKV_ERR_FORMAT,
          "truncation_side \"top\" is neither" },
        { { .lines = LINES, .config = "{\"model_input_names\":[1]}" },
          QKV_ERR_FORMAT,
          "model_input_names[0] is no string" },
        { { .lines = LINES, .config = "{\"fast_tokenizer_files\":[\"tokenizer.4.0.json\"]}" },
          QKV_ERR_UNSUPPORTED,
          "fast_tokenizer_files is not empty" },
        { { .lines = LINES, .config = "{\"extra_special_tokens\":7}" },
          QKV_ERR_FORMAT,
          "extra_special_tokens is neither a list nor an object" },
        { { .lines = LINES, .config = "{\"tokenizer_class\":\"TokenizersBackend\"}" },
          QKV_ERR_UNSUPPORTED,
          "\"TokenizersBackend\" is not one that vocab.txt can be read for" },
        { { .json = "{" PARTS "}", .config = "{\"tokenizer_class\":\"PegasusTokenizer\"}" },
          QKV_ERR_UNSUPPORTED,
          "\"PegasusTokenizer\" is not one that tokenizer.json can be read for" },
        { { .json = "{" PARTS "}", .model = "{\"model_type\":\"gpt2\"}" },
          QKV_ERR_UNSUPPORTED,
          "model \"WordPiece\" is not supported" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        qkv_tokenizer *tokenizer = (qkv_tokenizer *)1;
        qkv_error error = { 0 };
        const qkv_status got = read_folder(&rows[i].f, &tokenizer, &error);
        if (got != rows[i].status || !strstr(error.message, rows[i].words))
            fail_msg("row %zu: %s: \"%s\"", i, qkv_status_name(got), error.message);
        assert_null(tokenizer);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_normalized), cmocka_unit_test(test_who_wins),
        cmocka_unit_test(test_switches),   cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
