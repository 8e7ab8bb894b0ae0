/*
 * Hostile small files (ids of docs/hostile-inputs.md): those beside the vocabulary of a tokenizer,
 * and those of sentence-transformers. Each row replaces or adds one file of a valid folder.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "qkv/model.h"

#define OLD QKV_TEST_DATA "/golden/bert_old" /* 53 tokens, 20 numbers wide */

typedef struct row {
    const char *id, *what, *file;
    qkv_status status;
    const char *says;
    const char *text; /* NULL: the file is missing */
    hostile_repeat repeat;
    int n_listed; /* instead: that many entries, each with a number */
} row;

/* ---- Beside a vocabulary --------------------------------------------------------------------- */

#define ADDED            "tokens/added_tokens.json"
#define SETTING          "tokens/tokenizer_config.json"
#define MAP              "tokens/special_tokens_map.json"
#define DECODER(entries) "{\"added_tokens_decoder\": {" entries "}}"

static const row token_rows[] = {
    { "VO02", "nothing in it", ADDED, QKV_OK, "", .text = "{}" },
    { "VO02", "the next id", ADDED, QKV_OK, "", .text = "{\"<ent>\": 53}" },
    { "VO02", "a word's id", ADDED, QKV_OK, "", .text = "{\"the\": 5}" },
    { "VO02", "an id that is taken", ADDED, QKV_ERR_FORMAT, "the next id is 53",
      .text = "{\"<ent>\": 5}" },
    { "VO02", "a gap", ADDED, QKV_ERR_FORMAT, "the next id is 53", .text = "{\"<ent>\": 99}" },
    { "VO02", "another id for a word", ADDED, QKV_ERR_FORMAT, "there it has 5",
      .text = "{\"the\": 53}" },
    { "VO02", "an id below 0", ADDED, QKV_ERR_FORMAT, "has id -1", .text = "{\"<ent>\": -1}" },
    { "VO02", "an id above the limit", ADDED, QKV_ERR_LIMIT, "has id 5000000, the limit is 4194303",
      .text = "{\"<ent>\": 5000000}" },
    { "VO02", "an id above 64 bits", ADDED, QKV_ERR_FORMAT, "added_tokens.json",
      .text = "{\"<ent>\": 18446744073709551669}" },
    { "VO02", "an id that is no integer", ADDED, QKV_ERR_FORMAT, "an id is no integer",
      .text = "{\"<ent>\": \"53\"}" },
    { "VO02", "an id twice", ADDED, QKV_ERR_FORMAT, "two tokens have id 53",
      .text = "{\"<a>\": 53, \"<b>\": 53}" },
    { "VO02", "an empty token", ADDED, QKV_ERR_FORMAT, "has 0 bytes", .text = "{\"\": 53}" },
    { "VO02", "a list", ADDED, QKV_ERR_FORMAT, "is not an object", .text = "[\"<ent>\"]" },
    { "VO02", "a token of 1 MB", ADDED, QKV_ERR_LIMIT, "must be 1 to 256",
      .repeat = { "{\"", "0123456789", "\": 53}", 100000 } },
    { "VO02", "a million '['", ADDED, QKV_ERR_FORMAT, "deeper than",
      .repeat = { "{\"a\":", "[", "}", 1000000 } },
    { "VO02", "50,000 tokens", ADDED, QKV_OK, "", .n_listed = 50000 },
    { "VO03", "an unknown class", SETTING, QKV_ERR_UNSUPPORTED, "tokenizer_class \"T5Tokenizer\"",
      .text = "{\"tokenizer_class\": \"T5Tokenizer\"}" },
    { "VO03", "a class that steers a terminal", SETTING, QKV_ERR_UNSUPPORTED, "\\x1b[2J",
      .text = "{\"tokenizer_class\": \"\\u001b[2J\"}" },
    { "VO03", "a list", SETTING, QKV_ERR_FORMAT, "is not an object", .text = "[]" },
    { "VO03", "a switch that is a word", SETTING, QKV_ERR_FORMAT, "do_lower_case",
      .text = "{\"do_lower_case\": \"yes\"}" },
    { "VO03", "a side that is none", SETTING, QKV_ERR_FORMAT, "neither \"left\" nor \"right\"",
      .text = "{\"truncation_side\": \"up\"}" },
    { "VO03", "a length above 64 bits", SETTING, QKV_OK, "",
      .text = "{\"model_max_length\": 1000000000000000019884624838656}" },
    { "VO03", "a length of 0", SETTING, QKV_ERR_FORMAT, "model_max_length = 0 is less than 1",
      .text = "{\"model_max_length\": 0}" },
    { "VO03", "a length below 0", SETTING, QKV_ERR_FORMAT, "model_max_length",
      .text = "{\"model_max_length\": -5}" },
    { "VO03", "names that are none", SETTING, QKV_ERR_FORMAT, "model_input_names[1]",
      .text = "{\"model_input_names\": [\"input_ids\", 5]}" },
    { "VO03", "a special token that is a number", SETTING, QKV_ERR_FORMAT,
      "mask_token is neither a string nor an object", .text = "{\"mask_token\": 4}" },
    { "VO03", "a special token without content", SETTING, QKV_ERR_FORMAT, "mask_token.content",
      .text = "{\"mask_token\": {\"lstrip\": true}}" },
    { "VO03", "no unknown token", SETTING, QKV_ERR_UNSUPPORTED, "unk_token is null",
      .text = "{\"unk_token\": null}" },
    { "VO03", "an unknown token that is none", SETTING, QKV_ERR_FORMAT, "no line is <unk>",
      .text = "{\"unk_token\": \"<unk>\"}" },
    { "VO03", "extra tokens that are a number", SETTING, QKV_ERR_FORMAT,
      "extra_special_tokens is neither a list nor an object",
      .text = "{\"extra_special_tokens\": 5}" },
    { "VO03", "5,000 extra tokens", SETTING, QKV_ERR_LIMIT, "above 4096 special tokens are named",
      .repeat = { "{\"extra_special_tokens\": [", "\"<e>\", ", "\"<e>\"]}", 5000 } },
    { "VO03", "100,000 fields that name tokens", SETTING, QKV_ERR_LIMIT,
      "above 4096 special tokens are named", .n_listed = 100000 },
    { "VO03", "arguments for code", SETTING, QKV_ERR_UNSUPPORTED, "init_inputs is not empty",
      .text = "{\"init_inputs\": [1]}" },
    { "VO03", "other files", SETTING, QKV_ERR_UNSUPPORTED, "fast_tokenizer_files is not empty",
      .text = "{\"fast_tokenizer_files\": [\"tokenizer.4.0.0.json\"]}" },
    { "VO04", "a list", SETTING, QKV_ERR_FORMAT, "added_tokens_decoder is no object",
      .text = "{\"added_tokens_decoder\": []}" },
    { "VO04", "a key that is no id", SETTING, QKV_ERR_FORMAT, "is not \"id\": {",
      .text = DECODER("\"-1\": {\"content\": \"<ent>\"}") },
    { "VO04", "a key of eight digits", SETTING, QKV_ERR_FORMAT, "is not \"id\": {",
      .text = DECODER("\"00000053\": {\"content\": \"<ent>\"}") },
    { "VO04", "a value that is no object", SETTING, QKV_ERR_FORMAT, "is not \"id\": {",
      .text = DECODER("\"53\": \"<ent>\"") },
    { "VO04", "content that is a number", SETTING, QKV_ERR_FORMAT, "content",
      .text = DECODER("\"53\": {\"content\": 5}") },
    { "VO04", "a switch that is a number", SETTING, QKV_ERR_FORMAT, "lstrip",
      .text = DECODER("\"53\": {\"content\": \"<ent>\", \"lstrip\": 1}") },
    { "VO04", "an id twice", SETTING, QKV_ERR_FORMAT, "two tokens have id 53",
      .text = DECODER("\"53\": {\"content\": \"<a>\"}, \"053\": {\"content\": \"<b>\"}") },
    { "VO04", "two that are one in lower case", SETTING, QKV_ERR_UNSUPPORTED,
      "\"Ent\" and \"ENT\" are one",
      .text = DECODER("\"53\": {\"content\": \"Ent\", \"normalized\": true}, "
                      "\"54\": {\"content\": \"ENT\", \"normalized\": true}") },
    { "VO04", "one that is nothing once normalised", SETTING, QKV_ERR_UNSUPPORTED,
      "the normalizer leaves nothing",
      .text = DECODER("\"53\": {\"content\": \"\xef\xbf\xbd\", \"normalized\": true}") },
    { "VO05", "a special token that is a number", MAP, QKV_ERR_FORMAT,
      "cls_token is neither a string nor an object", .text = "{\"cls_token\": 4}" },
    { "VO05", "additional tokens that are a word", MAP, QKV_ERR_FORMAT,
      "additional_special_tokens is neither a list nor an object",
      .text = "{\"additional_special_tokens\": \"<ent>\"}" },
    { "VO05", "no JSON", MAP, QKV_ERR_FORMAT, "line 1", .text = "{" },
};

/* ---- Folders of sentence-transformers -------------------------------------------------------- */

#define MODULES  "model/modules.json"
#define POOLING  "model/1_Pooling/config.json"
#define DENSE    "model/2_Dense/config.json"
#define WEIGHTS  "model/2_Dense/model.safetensors"
#define SENTENCE "model/sentence_bert_config.json"
#define PROMPTS  "model/config_sentence_transformers.json"

#define OWN            "\"sentence_transformers.models."
#define MODEL          "{\"type\": " OWN "Transformer\", \"path\": \"\"}"
#define POOL(path)     ", {\"type\": " OWN "Pooling\", \"path\": \"" path "\"}"
#define MORE(name)     ", {\"type\": " OWN name "\", \"path\": \"2_Dense\"}"
#define LIST(after)    "[" MODEL POOL("1_Pooling") after "]"
#define WIDTHS         "\"in_features\": 20, \"out_features\": 3"
#define OF_DENSE(more) "{" WIDTHS more "}"

static const row sentence_rows[] = {
    { "SE01", "as it was", MODULES, QKV_OK, "", .text = LIST(MORE("Dense")) },
    { "SE01", "no list", MODULES, QKV_ERR_FORMAT, "is not an array", .text = "{}" },
    { "SE01", "a module that is no object", MODULES, QKV_ERR_FORMAT, "[0] is not an object",
      .text = "[5]" },
    { "SE01", "a module without a type", MODULES, QKV_ERR_FORMAT, "type",
      .text = "[{\"path\": \"\"}]" },
    { "SE01", "65 modules", MODULES, QKV_ERR_LIMIT, "65 modules, the limit is 64",
      .repeat = { "[", MODEL ", ", MODEL "]", 64 } },
    { "SE01", "a million modules", MODULES, QKV_ERR_LIMIT, "values",
      .repeat = { "[", "{},", "{}]", 300000 } },
    { "SE01", "nothing that makes a vector", MODULES, QKV_ERR_UNSUPPORTED, "there is no Pooling",
      .text = "[" MODEL "]" },
    { "SE01", "code of its own", MODULES, QKV_ERR_UNSUPPORTED, "module 'own.Pooling'",
      .text = "[" MODEL ", {\"type\": \"own.Pooling\", \"path\": \"1_Pooling\"}]" },
    { "SE01", "a router", MODULES, QKV_ERR_UNSUPPORTED, "Router' is not supported",
      .text = LIST(MORE("Router")) },
    { "SE01", "two poolings", MODULES, QKV_ERR_UNSUPPORTED, "is there twice",
      .text = LIST(POOL("1_Pooling")) },
    { "SE01", "a layer before the pooling", MODULES, QKV_ERR_UNSUPPORTED, "comes before a Pooling",
      .text = "[" MODEL MORE("Dense") POOL("1_Pooling") "]" },
    { "SE02", "a path upwards", MODULES, QKV_ERR_UNSUPPORTED, "path '..'",
      .text = "[" MODEL POOL("..") "]" },
    { "SE02", "a path upwards and down", MODULES, QKV_ERR_UNSUPPORTED, "path '../1_Pooling'",
      .text = "[" MODEL POOL("../1_Pooling") "]" },
    { "SE02", "a path from the root", MODULES, QKV_ERR_UNSUPPORTED, "path '/etc'",
      .text = "[" MODEL POOL("/etc") "]" },
    { "SE02", "no path", MODULES, QKV_ERR_UNSUPPORTED, "path ''", .text = "[" MODEL POOL("") "]" },
    { "SE02", "a folder that is not there", MODULES, QKV_ERR_FORMAT, "file is missing",
      .text = "[" MODEL POOL("9_Pooling") "]" },
    { "SE02", "a path of 100 KB", MODULES, QKV_ERR_UNSUPPORTED, "path '0123",
      .repeat = { "[" MODEL ", {\"type\": " OWN "Pooling\", \"path\": \"", "0123456789", "\"}]",
                  10000 } },
    { "SE03", "no file", POOLING, QKV_ERR_FORMAT, "the pooling's file is missing", .text = NULL },
    { "SE03", "a list", POOLING, QKV_ERR_FORMAT, "is not an object", .text = "[]" },
    { "SE03", "an unknown mode", POOLING, QKV_ERR_UNSUPPORTED, "pooling_mode 'median'",
      .text = "{\"pooling_mode\": \"median\"}" },
    { "SE03", "a mode that is a number", POOLING, QKV_ERR_FORMAT, "pooling_mode is neither",
      .text = "{\"pooling_mode\": 5}" },
    { "SE03", "no modes", POOLING, QKV_ERR_LIMIT, "pooling_mode has 0 names",
      .text = "{\"pooling_mode\": []}" },
    { "SE03", "seven modes", POOLING, QKV_ERR_LIMIT, "pooling_mode has 7 names",
      .repeat = { "{\"pooling_mode\": [", "\"cls\", ", "\"cls\"]}", 6 } },
    { "SE03", "a switch that is a number", POOLING, QKV_ERR_FORMAT, "include_prompt",
      .text = "{\"include_prompt\": 1}" },
    { "SE03", "more numbers than the next layer takes", POOLING, QKV_ERR_SHAPE,
      "in_features = 20, but 40 numbers come in",
      .text = "{\"pooling_mode\": [\"cls\", \"max\"]}" },
    { "SE04", "no file", DENSE, QKV_ERR_FORMAT, "the module's file is missing", .text = NULL },
    { "SE04", "another width", DENSE, QKV_ERR_SHAPE, "in_features = 21, but 20",
      .text = "{\"in_features\": 21, \"out_features\": 3}" },
    { "SE04", "as wide as memory", DENSE, QKV_ERR_FORMAT, "out_features",
      .text = "{\"in_features\": 20, \"out_features\": 1000000000000}" },
    { "SE04", "no numbers at all", DENSE, QKV_ERR_SHAPE, "out_features",
      .text = "{\"in_features\": 20, \"out_features\": 0}" },
    { "SE04", "other weights than it says", DENSE, QKV_ERR_SHAPE,
      "tensor linear.weight is [3,20], must be [4,20]",
      .text = "{\"in_features\": 20, \"out_features\": 4}" },
    { "SE04", "a tensor in excess", DENSE, QKV_ERR_UNSUPPORTED,
      "tensor linear.bias is none of the module", .text = OF_DENSE(", \"bias\": false") },
    { "SE04", "a tensor that is missing", DENSE, QKV_ERR_FORMAT,
      "tensor residual.weight is missing", .text = OF_DENSE(", \"use_residual\": true") },
    { "SE04", "an unknown activation", DENSE, QKV_ERR_UNSUPPORTED,
      "torch.nn.modules.activation.ELU",
      .text = OF_DENSE(", \"activation_function\": \"torch.nn.modules.activation.ELU\"") },
    { "SE04", "an activation of its own", DENSE, QKV_ERR_UNSUPPORTED, "own.Tanh",
      .text = OF_DENSE(", \"activation_function\": \"own.Tanh\"") },
    { "SE04", "another input", DENSE, QKV_ERR_UNSUPPORTED, "module_input_name",
      .text = OF_DENSE(", \"module_input_name\": \"token_embeddings\"") },
    { "SE04", "no weights", WEIGHTS, QKV_ERR_IO, "is not there", .text = NULL },
    { "SE04", "weights that are a pickle", WEIGHTS, QKV_ERR_FORMAT, "model.safetensors",
      .text = "\x80\x02}q." },
    { "SE05", "a length of 0", SENTENCE, QKV_ERR_FORMAT, "max_seq_length = 0 is less than 1",
      .text = "{\"max_seq_length\": 0}" },
    { "SE05", "a length below 0", SENTENCE, QKV_ERR_FORMAT, "max_seq_length",
      .text = "{\"max_seq_length\": -1}" },
    { "SE05", "a length above 64 bits", SENTENCE, QKV_OK, "",
      .text = "{\"max_seq_length\": 1000000000000000019884624838656}" },
    { "SE05", "a length that is a word", SENTENCE, QKV_ERR_FORMAT, "max_seq_length",
      .text = "{\"max_seq_length\": \"long\"}" },
    { "SE05", "a list", SENTENCE, QKV_ERR_FORMAT, "is not an object", .text = "[1]" },
    { "SE05", "another task", SENTENCE, QKV_ERR_UNSUPPORTED, "transformer_task",
      .text = "{\"transformer_task\": \"fill-mask\"}" },
    { "SE05", "arguments for code", SENTENCE, QKV_ERR_UNSUPPORTED, "model_args is not empty",
      .text = "{\"model_args\": {\"trust_remote_code\": true}}" },
    { "SE06", "prompts that are a list", PROMPTS, QKV_ERR_FORMAT, "prompts",
      .text = "{\"prompts\": [\"query: \"]}" },
    { "SE06", "a prompt that is a number", PROMPTS, QKV_ERR_FORMAT, "a prompt is neither",
      .text = "{\"prompts\": {\"query\": 5}}" },
    { "SE06", "a default that is none", PROMPTS, QKV_ERR_FORMAT, "default_prompt_name 'z'",
      .text = "{\"default_prompt_name\": \"z\"}" },
    { "SE06", "2,000 prompts", PROMPTS, QKV_ERR_LIMIT, "2000 prompts, the limit is 1024",
      .n_listed = 2000 },
    { "SE06", "a vector of no numbers", PROMPTS, QKV_ERR_FORMAT, "truncate_dim = 0 is less than 1",
      .text = "{\"truncate_dim\": 0}" },
    { "SE06", "another kind of model", PROMPTS, QKV_ERR_UNSUPPORTED, "model_type",
      .text = "{\"model_type\": \"SparseEncoder\"}" },
};

/* ---- The folders ----------------------------------------------------------------------------- */

static const struct {
    const char *name, *text;
} base[] = {
    { MODULES, LIST(MORE("Dense")) },
    { POOLING, "{\"pooling_mode\": \"mean\"}" },
    { DENSE, OF_DENSE("") },
};

static void put_text(const char *name, const char *text) {
    char path[512];
    FILE *const out = fopen(hostile_path(path, name), "wb");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void put_weights(void) {
    static const float values[3 * 20] = { 1 };
    qkvi_stored_out tensors[] = { { "linear.bias", QKVI_F32, 1, { 3 }, values },
                                  { "linear.weight", QKVI_F32, 2, { 3, 20 }, values } };
    char path[512];
    qkv_error error;
    assert_int_equal(
        qkvi_safetensors_write(hostile_path(path, WEIGHTS), tensors, 2, NULL, NULL, &error),
        QKV_OK);
}

static const char *const folders[] = { "tokens", "model", "model/1_Pooling", "model/2_Dense" };
static const char *const copied[] = { "tokens/vocab.txt", "model/vocab.txt", "model/config.json",
                                      "model/model.safetensors" };

static void copy(const char *name) {
    char path[512], *bytes;
    size_t n;
    qkv_error error;
    snprintf(path, sizeof path, "%s%s", OLD, strchr(name, '/'));
    assert_int_equal(qkvi_file_load(path, 1 << 22, &bytes, &n, &error), QKV_OK);
    FILE *const out = fopen(hostile_path(path, name), "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, n, out), n);
    assert_int_equal(fclose(out), 0);
    free(bytes);
}

static void begin(void) {
    char path[512];
    for (size_t f = 0; f < sizeof folders / sizeof *folders; f++)
        assert_int_equal(mkdir(hostile_path(path, folders[f]), 0700), 0);
    for (size_t f = 0; f < sizeof copied / sizeof *copied; f++) copy(copied[f]);
    for (size_t f = 0; f < sizeof base / sizeof *base; f++) put_text(base[f].name, base[f].text);
    put_weights();
}

static void end(void) {
    char path[512];
    for (size_t f = 0; f < sizeof copied / sizeof *copied; f++)
        unlink(hostile_path(path, copied[f]));
    for (size_t f = 0; f < sizeof base / sizeof *base; f++)
        unlink(hostile_path(path, base[f].name));
    unlink(hostile_path(path, WEIGHTS));
    for (size_t f = sizeof folders / sizeof *folders; f > 0; f--)
        rmdir(hostile_path(path, folders[f - 1]));
}

/* ---- A row ----------------------------------------------------------------------------------- */

static void put_listed(FILE *out, const row *r) {
    const int is_added = strcmp(r->file, ADDED) == 0, is_setting = strcmp(r->file, SETTING) == 0;
    fputs(is_added || is_setting ? "{" : "{\"prompts\": {", out);
    for (int i = 0; i < r->n_listed; i++) {
        fputs(i ? "," : "", out);
        if (is_added)
            fprintf(out, "\"<%d>\": %d", i, 53 + i);
        else
            fprintf(out, "\"%d%s\": \"<%d>\"", i, is_setting ? "_token" : "", i);
    }
    fputs(is_added || is_setting ? "}" : "}}", out);
}

static void put_row(const row *r) {
    char path[512];
    hostile_path(path, r->file);
    if (!r->text && !r->n_listed && !r->repeat.n) {
        unlink(path);
        return;
    }
    FILE *const out = fopen(path, "wb");
    assert_non_null(out);
    if (r->text) fputs(r->text, out);
    if (r->n_listed) put_listed(out, r);
    if (r->repeat.n) {
        const hostile_file file = { .repeat = &r->repeat };
        hostile_make_repeat(out, &file);
    }
    assert_int_equal(fclose(out), 0);
}

static void remove_row(const row *r) {
    char path[512];
    unlink(hostile_path(path, r->file));
    if (strcmp(r->file, WEIGHTS) == 0) put_weights();
    for (size_t f = 0; f < sizeof base / sizeof *base; f++)
        if (strcmp(r->file, base[f].name) == 0) put_text(base[f].name, base[f].text);
}

static qkv_status open_tokens(const void *path, qkv_error *error) {
    qkv_tokenizer *tokenizer = (qkv_tokenizer *)1;
    const qkv_status status = qkv_tokenizer_open(path, QKV_SOURCE, &tokenizer, error);
    if (status != QKV_OK) return tokenizer ? HOSTILE_BROKEN : status;
    qkv_tokenizer_free(tokenizer);
    return QKV_OK;
}

static qkv_status open_model(const void *path, qkv_error *error) {
    qkv_model *model = (qkv_model *)1;
    const qkv_status status = qkv_model_open(path, NULL, &model, error);
    if (status != QKV_OK) return model ? HOSTILE_BROKEN : status;
    qkv_model_free(model);
    return QKV_OK;
}

static void run_rows(const row *rows, size_t n, const char *folder, hostile_attempt *attempt) {
    for (size_t i = 0; i < n; i++) {
        char path[512], label[200];
        put_row(&rows[i]);
        snprintf(label, sizeof label, "%s %s", rows[i].id, rows[i].what);
        hostile_expect(label, attempt, hostile_path(path, folder), rows[i].status, rows[i].says);
        remove_row(&rows[i]);
    }
}

static void test_tokens(void **state) {
    (void)state;
    run_rows(token_rows, sizeof token_rows / sizeof *token_rows, "tokens", open_tokens);
}

static void test_sentences(void **state) {
    (void)state;
    run_rows(sentence_rows, sizeof sentence_rows / sizeof *sentence_rows, "model", open_model);
}

int main(void) {
    const hostile_family family = { "hostile_small_files", "", NULL, NULL, 0, begin, end };
    const struct CMUnitTest tests[] = {
        { "VO02 to VO05 beside a vocabulary", test_tokens, NULL, NULL, NULL },
        { "SE01 to SE06 folders of sentence-transformers", test_sentences, NULL, NULL, NULL },
    };
    return hostile_main(&family, tests, sizeof tests / sizeof *tests);
}
