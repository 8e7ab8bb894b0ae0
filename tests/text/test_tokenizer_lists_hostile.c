/*
 * Hostile tokenizer.json: the lists that are read by their bytes, model.vocab and model.merges, and
 * the parts that decoder models have. Each file is opened as that of a folder, in the cage.
 */
#include "hostile/cage.h"

#include <string.h>
#include <unistd.h>

#include "qkv/tokenizer.h"

static qkv_status open_folder(const char *path, qkv_error *error) {
    char folder[512];
    qkv_tokenizer *tokenizer;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    const qkv_status status = qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, error);
    if (status != QKV_OK && tokenizer != NULL) return HOSTILE_BROKEN;
    qkv_tokenizer_free(tokenizer);
    return status;
}

#define LEVEL       "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}"
#define HEAD        "{\"pre_tokenizer\":" LEVEL ",\"model\":{\"type\":\"BPE\","
#define LISTS       "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"]"
#define FILE_OF(in) hostile_make_text, HOSTILE_TEXT(HEAD in "}}")
#define VOCAB(list) FILE_OF("\"vocab\":" list ",\"merges\":[]")
#define MERGES(in)  FILE_OF("\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":" in)
#define PARTS(in)   hostile_make_text, HOSTILE_TEXT("{" in ",\"model\":{\"type\":\"BPE\"," LISTS "}}")
#define SPLIT(regex, rest)                                                                         \
    PARTS("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\","       \
          "\"pattern\":{\"Regex\":\"" regex "\"}," rest "}," LEVEL "]}")
#define UNSUPPORTED QKV_ERR_UNSUPPORTED
#define FORMAT      QKV_ERR_FORMAT
#define LIMIT       QKV_ERR_LIMIT

/* {"a":0,"t0":1,…}, and a last entry. */
static void make_tokens(FILE *out, const hostile_file *file) {
    fprintf(out, HEAD "\"vocab\":{\"a\":0");
    for (int64_t i = 1; i < file->number; i++)
        fprintf(out, ",\"t%lld\":%lld", (long long)i, (long long)i);
    fprintf(out, "%s},\"merges\":[]}}", file->text ? file->text : "");
}

/* Pairs, as large vocabularies have them. */
static void make_pairs(FILE *out, const hostile_file *file) {
    fprintf(out, HEAD "\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[[\"a\",\"b\"]");
    for (int64_t i = 1; i < file->number; i++) fputs(",[\"a\",\"b\"]", out);
    fprintf(out, "%s]}}", file->text ? file->text : "");
}

static const hostile_file cases[] = {
    { "VO06", "strings and pairs", QKV_OK, "",
      FILE_OF(
          "\"vocab\":{\"a\":0,\"b\" : 1,\n\"\\u0061b\":2},\"merges\":[\"a b\", [ \"a\" , \"b\" ]]") },
    { "VO06", "the lists before the type", QKV_OK, "", hostile_make_text,
      HOSTILE_TEXT("{\"model\":{" LISTS ",\"type\":\"BPE\"},\"pre_tokenizer\":" LEVEL "}") },
    { "VO06", "keys written with escapes", QKV_OK, "",
      FILE_OF("\"voca\\u0062\":{\"a\":0},\"merge\\u0073\":[]") },
    { "VO06", "a token twice", FORMAT, "model.vocab: \"a\" is a duplicate key",
      VOCAB("{\"a\":0,\"b\":1,\"\\u0061\":2}") },
    { "VO06", "an id twice", FORMAT, "two tokens have id 1", VOCAB("{\"a\":1,\"b\":1}") },
    { "VO06", "the vocabulary twice", FORMAT, "duplicate", VOCAB("{\"a\":0},\"vocab\":{\"a\":0}") },
    { "VO06", "the model twice", FORMAT, "duplicate", hostile_make_text,
      HOSTILE_TEXT("{\"model\":{" LISTS "},\"model\":{" LISTS "}}") },
    { "VO06", "an id that is a word", FORMAT, "an id in model.vocab is no integer",
      VOCAB("{\"a\":\"0\"}") },
    { "VO06", "an id with a fraction", FORMAT, "no integer", VOCAB("{\"a\":0.0}") },
    { "VO06", "an id with a power", FORMAT, "no integer", VOCAB("{\"a\":1e3}") },
    { "VO06", "an id of 19 digits", FORMAT, "no integer", VOCAB("{\"a\":1000000000000000000}") },
    { "VO06", "an id with a zero before it", FORMAT, "no integer", VOCAB("{\"a\":01}") },
    { "VO06", "an id below 0", FORMAT, "\"a\" has id -1", VOCAB("{\"a\":-1}") },
    { "VO06", "an id above the limit", LIMIT, "the limit is 4194303", VOCAB("{\"a\":4194304}") },
    { "VO06", "no id", FORMAT, "no integer", VOCAB("{\"a\":}") },
    { "VO06", "no colon", FORMAT, "line 1: model.vocab breaks its format", VOCAB("{\"a\" 0}") },
    { "VO06", "a comma too many", FORMAT, "model.vocab breaks its format", VOCAB("{\"a\":0,}") },
    { "VO06", "a comma too few", FORMAT, "model.vocab breaks its format",
      VOCAB("{\"a\":0 \"b\":1}") },
    { "VO06", "a vocabulary closed by ]", FORMAT, "model.vocab breaks its format",
      VOCAB("{\"a\":0]") },
    { "VO06", "a vocabulary that is a list", FORMAT, "model.vocab is an array", VOCAB("[\"a\"]") },
    { "VO06", "a vocabulary that is a number", FORMAT, "model.vocab is an integer", VOCAB("7") },
    { "VO06", "a vocabulary that ends too early", FORMAT, "tokenizer.json", hostile_make_text,
      HOSTILE_TEXT(HEAD "\"vocab\":{\"a\":0") },
    { "VO06", "half of a surrogate pair", FORMAT, "breaks its format", VOCAB("{\"\\ud800\":0}") },
    { "VO06", "the wrong half", FORMAT, "breaks its format", VOCAB("{\"\\ud800\\u0041\":0}") },
    { "VO06", "a lone second half", FORMAT, "breaks its format", VOCAB("{\"\\udc00\":0}") },
    { "VO06", "an escape that ends too early", FORMAT, "breaks its format",
      VOCAB("{\"\\u00\":0}") },
    { "VO06", "an escape that is none", FORMAT, "breaks its format", VOCAB("{\"\\x41\":0}") },
    { "VO06", "NUL", FORMAT, "breaks its format", VOCAB("{\"\\u0000\":0}") },
    { "VO06", "a control character", FORMAT, "breaks its format", VOCAB("{\"\x01\":0}") },
    { "VO06", "invalid UTF-8", FORMAT, "breaks its format", VOCAB("{\"\xff\":0}") },
    { "VO06", "an overlong form", FORMAT, "breaks its format", VOCAB("{\"\xc0\x80\":0}") },
    { "VO06", "the line is named", FORMAT, "line 3: model.vocab breaks", VOCAB("{\n\"a\":0,\n7}") },
    { "VO06", "a million tokens", QKV_OK, "", make_tokens, .number = 1000000 },
    { "VO06", "a million tokens, then one that breaks", FORMAT, "no integer", make_tokens,
      .number = 1000000, HOSTILE_TEXT(",\"x\":{}") },
    { "VO06", "too many tokens", LIMIT, "more than 1048576 tokens", make_tokens,
      .number = 1048580 },
    { "VO07", "600,000 pairs", QKV_OK, "", make_pairs, .number = 600000 },
    { "VO07", "600,000 pairs, then one that breaks", FORMAT, "model.merges[600000] is neither",
      make_pairs, .number = 600000, HOSTILE_TEXT(",[\"a\",{}]") },
    { "VO07", "too many pairs", LIMIT, "more than 700000 objects and arrays", make_pairs,
      .number = 700000 },
    { "VO07", "a merge of three", FORMAT, "model.merges[0] is neither \"a b\" nor [\"a\", \"b\"]",
      MERGES("[\"a b a\"]") },
    { "VO07", "a merge of one", FORMAT, "model.merges[0] is neither", MERGES("[\"ab\"]") },
    { "VO07", "a list of one", FORMAT, "model.merges[0] is neither", MERGES("[[\"a\"]]") },
    { "VO07", "a list of three", FORMAT, "model.merges[0] is neither",
      MERGES("[[\"a\",\"b\",\"a\"]]") },
    { "VO07", "a number", FORMAT, "model.merges[1] is neither", MERGES("[\"a b\",7]") },
    { "VO07", "a list of numbers", FORMAT, "model.merges[0] is neither", MERGES("[[0,1]]") },
    { "VO07", "an unknown token", FORMAT, "\"c\" is not in the vocabulary", MERGES("[\"a c\"]") },
    { "VO07", "an unknown result", FORMAT, "\"ba\" is not in the vocabulary",
      MERGES("[[\"b\",\"a\"]]") },
    { "VO07", "a comma too many", FORMAT, "model.merges[1] is neither", MERGES("[\"a b\",]") },
    { "VO07", "merges that are an object", FORMAT, "model.merges is an object",
      MERGES("{\"a\":1}") },
    { "VO07", "invalid UTF-8", FORMAT, "model.merges breaks its format", MERGES("[\"a \xff\"]") },
    { "VO07", "a merge of 10 KB", FORMAT, "model.merges[0] is neither", hostile_make_repeat,
      .repeat = &(const hostile_repeat){ HEAD "\"vocab\":{\"a\":0},\"merges\":[\"", "0123456789",
                                         "\"]}}", 1000 } },
    { "VO07", "a token of 10 KB in a pair", FORMAT, "is not in the vocabulary", hostile_make_repeat,
      .repeat = &(const hostile_repeat){ HEAD "\"vocab\":{\"a\":0},\"merges\":[[\"a\",\"",
                                         "0123456789", "\"]]}}", 1000 } },
    { "VO08", "another pattern", UNSUPPORTED,
      "pre_tokenizer Split by the pattern \"\\\\w+\" is not supported",
      SPLIT("\\\\w+", "\"behavior\":\"Isolated\"") },
    { "VO08", "a pattern that nearly is one", UNSUPPORTED, "pre_tokenizer Split by the pattern",
      SPLIT("'s|'t|'re|'ve|'m|'ll|'d| ?\\\\p{L}+| ?\\\\p{N}+", "\"behavior\":\"Isolated\"") },
    { "VO08", "what a pattern matches is removed", UNSUPPORTED,
      "behavior \"Removed\" is not supported", SPLIT("\\\\w+", "\"behavior\":\"Removed\"") },
    { "VO08", "no behavior", FORMAT, "behavior", SPLIT("\\\\w+", "\"invert\":false") },
    { "VO08", "three pre-tokenizers", UNSUPPORTED, "Sequence of more than two",
      PARTS(
          "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\"}," LEVEL
          "," LEVEL "]}") },
    { "VO08", "ByteLevel before another", UNSUPPORTED,
      "pre_tokenizer \"ByteLevel\" is not supported",
      PARTS("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[" LEVEL
            ",{\"type\":\"Digits\"}]}") },
    { "VO08", "an unknown pre-tokenizer", UNSUPPORTED,
      "pre_tokenizer \"Whitespace\" is not supported",
      PARTS("\"pre_tokenizer\":{\"type\":\"Whitespace\"}") },
    { "VO08", "an unknown normalizer", UNSUPPORTED, "normalizer \"NFKC\" is not supported",
      PARTS("\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":" LEVEL) },
    { "VO08", "NFKC without ByteLevel", UNSUPPORTED, "normalizer \"NFKC\" is not supported",
      PARTS("\"normalizer\":{\"type\":\"NFKC\"}") },
    { "VO08", "Prepend of a letter", UNSUPPORTED, "normalizer \"Prepend\" is not supported",
      PARTS("\"normalizer\":{\"type\":\"Prepend\",\"prepend\":\"x\"}") },
    { "VO08", "another mark of spaces", UNSUPPORTED, "replacement that is not U+2581",
      PARTS("\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"_\"}") },
    { "VO08", "an unknown scheme", FORMAT, "prepend_scheme \"often\"",
      PARTS(
          "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"prepend_scheme\":\"often\"}") },
    { "VO08", "a scheme that contradicts", FORMAT, "contradicts add_prefix_space",
      PARTS(
          "\"pre_tokenizer\":{\"type\":\"Metaspace\",\"replacement\":\"\xe2\x96\x81\",\"add_prefix_space\":false}") },
    { "VO08", "WordLevel", UNSUPPORTED, "model \"WordLevel\" is not supported", hostile_make_text,
      HOSTILE_TEXT("{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}}") },
    { "VO08", "byte_fallback with ByteLevel", UNSUPPORTED, "model.byte_fallback is set",
      FILE_OF("\"byte_fallback\":true," LISTS) },
    { "VO08", "some bytes", UNSUPPORTED, "but not \"<0xF4>\"", hostile_make_text,
      HOSTILE_TEXT(
          "{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"<0x41>\":0},\"merges\":[]}}") },
};

int main(void) {
    static const hostile_family family = { .name = "tokenizer_lists",
                                           .file_name = "tokenizer.json",
                                           .read = open_folder,
                                           .files = cases,
                                           .n_files = sizeof cases / sizeof *cases };
    return hostile_main(&family, NULL, 0);
}
