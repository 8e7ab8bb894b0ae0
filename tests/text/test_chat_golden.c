/*
 * Chat templates: a turn of the user, encoded and decoded again, is what transformers writes by
 * the same template (tools/chat_cases.py). Templates that are not known are not taken for one that
 * is. A file of other cases may be named as argument.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "files/utf8.h"
#include "text/byte_level.h"
#include "text/tokenizer_json.h"

static const char *path = QKV_TEST_DATA "/golden/chat.json";

/* Single bytes, and the marks of all templates. */
static json_t *vocabulary(void) {
    static const char *const marks[] = { "<s>",        "</s>",       "<|im_start|>",
                                         "<|im_end|>", "<|eot_id|>", "<end_of_turn>",
                                         "<|end|>" };
    json_t *const vocab = json_object(), *const added = json_array();
    for (int b = 0; b < 256; b++) {
        char name[8];
        name[qkvi_utf8_put(qkvi_byte_char(b), name)] = '\0';
        json_object_set_new(vocab, name, json_integer(b));
    }
    for (int m = 0; m < 7; m++)
        json_array_append_new(
            added, json_pack("{s:i,s:s,s:b}", "id", 256 + m, "content", marks[m], "special", 1));
    return json_pack("{s:o,s:{s:s,s:b},s:{s:s},s:{s:s,s:o,s:[]}}", "added_tokens", added,
                     "pre_tokenizer", "type", "ByteLevel", "add_prefix_space", 0, "decoder", "type",
                     "ByteLevel", "model", "type", "BPE", "vocab", vocab, "merges");
}

/* own: the template is a file of its own, not a field. */
static qkv_tokenizer *open_case(const char *words, const char *template, int own) {
    json_t *const config = json_pack("{s:s,s:s,s:s}", "tokenizer_class", "PreTrainedTokenizerFast",
                                     "bos_token", "<s>", "eos_token", "</s>");
    json_t *const list = json_pack("[{s:s,s:s},{s:s,s:s}]", "name", "tools", "template", "{{ x }}",
                                   "name", "default", "template", template);
    if (own < 2)
        json_object_set_new(config, "chat_template", json_string(own ? "{{ other }}" : template));
    else
        json_object_set(config, "chat_template", list);
    json_decref(list);
    char *const settings = json_dumps(config, 0);
    qkvi_text_files files = {
        .tokenizer = { "tokenizer.json", words, strlen(words) },
        .vocab.name = "tokenizer.json",
        .tokenizer_config = { "tokenizer_config.json", settings, strlen(settings) },
        .special_tokens_map.name = "special_tokens_map.json",
        .added_tokens.name = "added_tokens.json",
        .config.name = "config.json",
    };
    if (own == 1)
        files.chat_template = (qkvi_text_file){ "chat_template.jinja", template, strlen(template) };
    qkv_tokenizer *tokenizer = NULL;
    qkv_error error;
    if (qkvi_tokenizer_read_json(&files, &tokenizer, &error) != QKV_OK)
        fail_msg("%s", error.message);
    json_decref(config);
    free(settings);
    return tokenizer;
}

static void compare(const qkv_tokenizer *tokenizer, const json_t *one, const char *chat) {
    const char *const text = json_string_value(json_object_get(one, "text"));
    const char *const want = json_string_value(json_object_get(one, "want"));
    qkv_encoding *encoding;
    qkv_text *found;
    qkv_error error;
    int32_t end;
    if (qkv_tokenizer_encode_turn(tokenizer, chat, text, strlen(text), &encoding, &end, &error))
        fail_msg("%s: %s", json_string_value(json_object_get(one, "template")), error.message);
    assert_int_equal(qkv_tokenizer_decode(tokenizer, encoding->ids, encoding->n, 0, &found, &error),
                     QKV_OK);
    if (strcmp(found->bytes, want) != 0)
        fail_msg("%s\n%s\nis not\n%s", json_string_value(json_object_get(one, "template")),
                 found->bytes, want);
    qkv_text_free(found);
    qkv_encoding_free(encoding);
}

static void refuse(const qkv_tokenizer *tokenizer, const char *template) {
    qkv_encoding *encoding;
    qkv_error error;
    int32_t end;
    if (strcmp(qkv_tokenizer_chat(tokenizer), "") != 0)
        fail_msg("%s: taken for %s", template, qkv_tokenizer_chat(tokenizer));
    assert_int_equal(qkv_tokenizer_encode_turn(tokenizer, NULL, "a", 1, &encoding, &end, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_null(encoding);
    assert_non_null(strstr(error.message, "is not known; known are chatml, "));
}

static void test_cases(void **state) {
    (void)state;
    json_error_t cause;
    json_t *const root = json_load_file(path, JSON_ALLOW_NUL, &cause);
    if (!root) fail_msg("%s: line %d: %s", path, cause.line, cause.text);
    json_t *const words = vocabulary();
    char *const bytes = json_dumps(words, 0);
    const json_t *const cases = json_object_get(root, "cases");
    int n_known = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *const one = json_array_get(cases, i);
        const char *const template = json_string_value(json_object_get(one, "template"));
        const char *const kind = json_string_value(json_object_get(one, "kind"));
        qkv_tokenizer *const tokenizer = open_case(bytes, template, (int)(i % 3));
        if (*kind) {
            if (strcmp(qkv_tokenizer_chat(tokenizer), kind) != 0)
                fail_msg("%s: '%s', not %s", template, qkv_tokenizer_chat(tokenizer), kind);
            compare(tokenizer, one, NULL);
            n_known++;
        } else {
            refuse(tokenizer, template);
        }
        qkv_tokenizer_free(tokenizer);
    }
    print_message("%d turns as transformers writes them, %d templates refused\n", n_known,
                  (int)json_array_size(cases) - n_known);
    json_decref(root);
    json_decref(words);
    free(bytes);
}

/* A template by its name, of a vocabulary with and without its marks. */
static void test_named(void **state) {
    (void)state;
    json_t *const words = vocabulary();
    qkv_encoding *encoding;
    qkv_error error;
    int32_t end = 7;
    char *const bytes = json_dumps(words, 0);
    qkv_tokenizer *tokenizer = open_case(bytes, "{{ other }}", 0);
    json_t *one = json_pack("{s:s,s:s,s:s}", "template", "named", "text", " a ", "want",
                            "<|im_start|>user\n a <|im_end|>\n<|im_start|>assistant\n");
    compare(tokenizer, one, "chatml");
    json_object_set_new(
        one, "want", json_string("<s><start_of_turn>user\na<end_of_turn>\n<start_of_turn>model\n"));
    compare(tokenizer, one, "gemma");
    json_object_set_new(one, "want", json_string("<|user|>\n a </s>\n<|assistant|>\n"));
    compare(tokenizer, one, "zephyr");
    assert_int_equal(qkv_tokenizer_encode_turn(tokenizer, "phi3", "", 0, &encoding, &end, &error),
                     QKV_OK);
    assert_int_equal(end, 262);
    qkv_encoding_free(encoding);
    assert_int_equal(
        qkv_tokenizer_encode_turn(tokenizer, "mistral", "", 0, &encoding, &end, &error), QKV_OK);
    assert_int_equal(end, -1);
    qkv_encoding_free(encoding);
    assert_int_equal(qkv_tokenizer_encode_turn(tokenizer, "x", "", 0, &encoding, &end, &error),
                     QKV_ERR_ARGUMENT);
    assert_string_equal(error.message, "chat = \"x\" is none of chatml, gemma, llama2, llama3, "
                                       "mistral, mistral-v1, mistral-v3, mistral-tekken, phi3, "
                                       "zephyr");
    assert_int_equal(
        qkv_tokenizer_encode_turn(tokenizer, "chatml", "\xFF", 1, &encoding, &end, &error),
        QKV_ERR_FORMAT);
    assert_null(encoding);
    json_decref(one);
    qkv_tokenizer_free(tokenizer);
    json_array_clear(json_object_get(words, "added_tokens"));
    free(bytes);
    char *const bare = json_dumps(words, 0);
    tokenizer = open_case(bare, "{{ other }}", 0);
    assert_int_equal(qkv_tokenizer_encode_turn(tokenizer, "chatml", "", 0, &encoding, &end, &error),
                     QKV_ERR_UNSUPPORTED);
    assert_string_equal(error.message, "chatml: the vocabulary has no token <|im_end|>");
    qkv_tokenizer_free(tokenizer);
    free(bare);
    json_decref(words);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_cases),
                                        cmocka_unit_test(test_named) };
    if (argc > 1) path = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
