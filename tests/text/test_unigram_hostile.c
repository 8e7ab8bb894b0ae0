/*
 * Hostile tokenizer.json of Unigram (ids VO09 of docs/hostile-inputs.md): the list of pieces, the
 * map of characters, the steps around it. Each file is opened as that of a folder, in the cage, and
 * reads a text of many spaces and marks.
 */
#include "hostile/cage.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qkv/tokenizer.h"

enum { TEXT_BYTES = 100000 };

/* Spaces, letters, one letter with many marks. */
static qkv_status read_text(const qkv_tokenizer *tokenizer, qkv_error *error) {
    char *const text = malloc(TEXT_BYTES);
    qkv_encoding *encoding = NULL;
    if (!text) return QKV_ERR_MEMORY;
    for (int i = 0; i < TEXT_BYTES; i++)
        text[i] = i < TEXT_BYTES / 2 ? "a  b c\n"[i % 7] : "\xCC\x81"[i % 2];
    const qkv_status status =
        qkv_tokenizer_encode(tokenizer, text, TEXT_BYTES, NULL, 0, &encoding, error);
    qkv_encoding_free(encoding);
    free(text);
    return status;
}

static qkv_status open_folder(const char *path, qkv_error *error) {
    char folder[512];
    qkv_tokenizer *tokenizer;
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = '\0';
    qkv_status status = qkv_tokenizer_open(folder, QKV_SOURCE, &tokenizer, error);
    if (status != QKV_OK && tokenizer != NULL) return HOSTILE_BROKEN;
    if (status == QKV_OK) status = read_text(tokenizer, error);
    qkv_tokenizer_free(tokenizer);
    return status;
}

#define MODEL(in)   "\"model\":{\"type\":\"Unigram\"," in "}"
#define LIST        "\"vocab\":[[\"<unk>\",0],[\"a\",-1.5],[\"ab\",-2e-1]]"
#define FILE_OF(in) hostile_make_text, HOSTILE_TEXT("{" in "}")
#define VOCAB(list) FILE_OF(MODEL("\"unk_id\":0,\"vocab\":" list))
#define PARTS(in)   FILE_OF(in "," MODEL("\"unk_id\":0," LIST))
#define MAP(in)     PARTS("\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":" in "}")
#define UNSUPPORTED QKV_ERR_UNSUPPORTED
#define FORMAT      QKV_ERR_FORMAT
#define LIMIT       QKV_ERR_LIMIT

/* `number` pieces and a last entry. */
static void make_pieces(FILE *out, const hostile_file *file) {
    fprintf(out, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1]");
    for (int64_t i = 1; i < file->number; i++) fprintf(out, ",[\"t%lld\",-1.25]", (long long)i);
    fprintf(out, "%s]}}", file->text ? file->text : "");
}

/* Pieces of random letters: more beginnings than a trie may have. */
static void make_ways(FILE *out, const hostile_file *file) {
    uint64_t x = 1;
    fprintf(out, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1]");
    for (int64_t i = 1; i < file->number; i++) {
        char piece[101];
        for (int c = 0; c < 100; c++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            piece[c] = (char)('a' + (x >> 40) % 26);
        }
        piece[100] = '\0';
        fprintf(out, ",[\"%s\",-1]", piece);
    }
    fputs("]}}", out);
}

static const hostile_file cases[] = {
    { "VO09", "pieces, with blanks and escapes", QKV_OK, "",
      VOCAB("[ [ \"\\u0061\" ,\n -1.5e-3 ] , [\"b\",0] ]") },
    { "VO09", "the list before the type", QKV_OK, "",
      FILE_OF("\"model\":{" LIST ",\"unk_id\":0,\"type\":\"Unigram\"}") },
    { "VO09", "the key written with escapes", QKV_OK, "",
      FILE_OF(MODEL("\"unk_id\":0,\"voca\\u0062\":[[\"a\",-1],[\"b\",-2.5]]")) },
    { "VO09", "the same, and a score that is a word", FORMAT, "model.vocab[0] is not",
      FILE_OF(MODEL("\"unk_id\":0,\"voca\\u0062\":[[\"a\",\"-1\"]]")) },
    { "VO09", "an empty piece", QKV_OK, "", VOCAB("[[\"\",0],[\"a\",-1]]") },
    { "VO09", "a piece twice", FORMAT, "model.vocab: \"a\" is", VOCAB("[[\"a\",-1],[\"a\",-2]]") },
    { "VO09", "no pieces", FORMAT, "is not less than the 0 pieces", VOCAB("[]") },
    { "VO09", "an object", FORMAT, "model.vocab is an object", VOCAB("{\"a\":-1}") },
    { "VO09", "no list", FORMAT, "model.vocab is missing", FILE_OF(MODEL("\"unk_id\":0")) },
    { "VO09", "a piece without a score", FORMAT, "line 1: model.vocab breaks its format",
      VOCAB("[[\"a\"]]") },
    { "VO09", "three entries", FORMAT, "breaks its format", VOCAB("[[\"a\",-1,2]]") },
    { "VO09", "a score that is a word", FORMAT, "breaks its format", VOCAB("[[\"a\",\"-1\"]]") },
    { "VO09", "a score that is null", FORMAT, "breaks its format", VOCAB("[[\"a\",null]]") },
    { "VO09", "a score that begins with a zero", FORMAT, "breaks its format",
      VOCAB("[[\"a\",01]]") },
    { "VO09", "a score without digits", FORMAT, "breaks its format", VOCAB("[[\"a\",-]]") },
    { "VO09", "a score that ends in a point", FORMAT, "breaks its format", VOCAB("[[\"a\",1.]]") },
    { "VO09", "an exponent without digits", FORMAT, "breaks its format", VOCAB("[[\"a\",1e+]]") },
    { "VO09", "a score beyond all numbers", FORMAT, "the score of \"a\" is not finite",
      VOCAB("[[\"a\",-1e999]]") },
    { "VO09", "an exponent of many digits", FORMAT, "is not finite",
      VOCAB("[[\"a\",1e99999999999999999999999]]") },
    { "VO09", "a score that is nearly nothing", QKV_OK, "", VOCAB("[[\"a\",1e-99999999999999]]") },
    { "VO09", "a score of 10 KB", FORMAT, "breaks its format", hostile_make_repeat,
      .repeat =
          &(const hostile_repeat){
              "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1.", "0123456789",
              "]]}}", 1000 } },
    { "VO09", "a piece of 10 KB", LIMIT, "has 10000 bytes, the limit is 1024", hostile_make_repeat,
      .repeat =
          &(const hostile_repeat){ "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"",
                                   "0123456789", "\",-1]]}}", 1000 } },
    { "VO09", "NUL in a piece", FORMAT, "breaks its format", VOCAB("[[\"\\u0000\",-1]]") },
    { "VO09", "a list that ends too early", FORMAT, "tokenizer.json", hostile_make_text,
      HOSTILE_TEXT("{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1") },
    { "VO09", "250,000 pieces", QKV_OK, "", make_pieces, .number = 250000 },
    { "VO09", "250,000 pieces, then one that breaks", FORMAT, "breaks its format", make_pieces,
      .number = 250000, HOSTILE_TEXT(",[7,-1]") },
    { "VO09", "too many pieces", LIMIT, "more than 700000 objects and arrays", make_pieces,
      .number = 700000 },
    { "VO09", "too many beginnings", LIMIT, "begin in more than 2097152 ways", make_ways,
      .number = 25000 },
    { "VO09", "no unknown piece", UNSUPPORTED, "model.unk_id that is null", FILE_OF(MODEL(LIST)) },
    { "VO09", "an unknown piece that is none", FORMAT, "model.unk_id = 3 is not less than the 3",
      FILE_OF(MODEL("\"unk_id\":3," LIST)) },
    { "VO09", "an unknown piece below 0", FORMAT, "model.unk_id",
      FILE_OF(MODEL("\"unk_id\":-1," LIST)) },
    { "VO09", "a map that is null", FORMAT, "precompiled_charsmap", MAP("null") },
    { "VO09", "a map that is empty", FORMAT, "is no base64 of any bytes", MAP("\"\"") },
    { "VO09", "a map that is no base64", FORMAT, "is no base64", MAP("\"AAA\"") },
    { "VO09", "base64 with a stranger", FORMAT, "is no base64", MAP("\"AAA!\"") },
    { "VO09", "base64 with a break", FORMAT, "is no base64", MAP("\"AAAA\\nAAA\"") },
    { "VO09", "padding in the middle", FORMAT, "is no base64", MAP("\"AA==AAAA\"") },
    { "VO09", "bits that no byte has", FORMAT, "is no base64", MAP("\"AAF=\"") },
    { "VO09", "a map of three bytes", FORMAT, "has 3 bytes, fewer than 4", MAP("\"AAAA\"") },
    { "VO09", "a trie longer than the map", FORMAT, "the trie has", MAP("\"/////w==\"") },
    { "VO09", "two maps", UNSUPPORTED, "normalizer \"Precompiled\" is not supported",
      PARTS("\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":["
            "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAA=\"},"
            "{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAAA=\"}]}") },
    { "VO09", "spaces that become two", UNSUPPORTED, "normalizer \"Replace\" is not supported",
      PARTS(
          "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\"xy\"}") },
    { "VO09", "another pattern", UNSUPPORTED, "normalizer \"Replace\" is not supported",
      PARTS(
          "\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"a\"},\"content\":\"b\"}") },
    { "VO09", "a strip that is a word", FORMAT, "strip_left",
      PARTS("\"normalizer\":{\"type\":\"Strip\",\"strip_left\":\"yes\"}") },
    { "VO09", "nine steps", LIMIT, "normalizer has more than 8 steps",
      PARTS(
          "\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Strip\"},{\"type\":\"Strip\"},"
          "{\"type\":\"Strip\"},{\"type\":\"Strip\"},{\"type\":\"Strip\"},{\"type\":\"Strip\"},{\"type\":\"Strip\"},"
          "{\"type\":\"Strip\"},{\"type\":\"Strip\"}]}") },
    { "VO09", "NFKC", UNSUPPORTED, "normalizer \"NFKC\" is not supported",
      PARTS("\"normalizer\":{\"type\":\"NFKC\"}") },
    { "VO09", "white space behind Metaspace", UNSUPPORTED,
      "pre_tokenizer \"WhitespaceSplit\" is not supported",
      PARTS("\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Metaspace\","
            "\"replacement\":\"\xe2\x96\x81\"},{\"type\":\"WhitespaceSplit\"}]}") },
    { "VO09", "a pre-tokenizer of BERT", UNSUPPORTED,
      "pre_tokenizer \"BertPreTokenizer\" is not supported",
      PARTS("\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"}") },
};

int main(void) {
    static const hostile_family family = { .name = "unigram",
                                           .file_name = "tokenizer.json",
                                           .read = open_folder,
                                           .files = cases,
                                           .n_files = sizeof cases / sizeof *cases };
    return hostile_main(&family, NULL, 0);
}
