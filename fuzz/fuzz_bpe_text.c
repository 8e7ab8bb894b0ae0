/*
 * A text for a byte-level BPE that has every byte, some merges, added tokens of every kind and, by
 * the first byte, a space before it, ranges without spaces, the words of Llama 3, NFC. What is
 * valid UTF-8 comes back byte for byte when its ids become text; without added tokens its ranges
 * leave nothing out.
 */
#include <stdlib.h>
#include <string.h>

#include "files/utf8.h"
#include "fuzz/fuzz.h"
#include "text/bpe.h"
#include "text/byte_level.h"

enum { PREFIX = 1, TRIM = 2, ADDED = 4, MODERN = 8, NFC = 16, N_KINDS = 32 };

/* "a b": each of its tokens is there; their joined string becomes one. */
static const char *const merges[] = { "a b",
                                      "ab ab",
                                      "b a",
                                      "\xc4\xa0 a",
                                      "\xc3\xa4 \xc2\xb8",
                                      "\xc3\xa4\xc2\xb8 \xc5\x83",
                                      "\xc4\xa0 \xc4\xa0",
                                      "' s" };

enum { N_MERGES = sizeof merges / sizeof merges[0] };

static void add_piece(qkv_tokenizer *tokenizer, const char *token, size_t n) {
    FUZZ_CHECK(qkvi_pieces_add(&tokenizer->pieces, tokenizer->pieces.n_ids, token, n) == QKV_OK);
}

static void add_pieces(qkv_tokenizer *tokenizer) {
    char token[16];
    for (int byte = 0; byte < 256; byte++)
        add_piece(tokenizer, token, qkvi_utf8_put(qkvi_byte_char(byte), token));
    for (size_t i = 0; i < N_MERGES; i++) {
        size_t n = 0;
        for (const char *at = merges[i]; *at; at++)
            if (*at != ' ') token[n++] = *at;
        add_piece(tokenizer, token, n);
    }
}

static void add_merges(qkv_tokenizer *tokenizer) {
    qkv_error error;
    for (size_t i = 0; i < N_MERGES; i++) {
        const char *const space = strchr(merges[i], ' ');
        const char *const parts[2] = { merges[i], space + 1 };
        const size_t n[2] = { (size_t)(space - merges[i]), strlen(space + 1) };
        FUZZ_CHECK(qkvi_bpe_add_merge(tokenizer, "", "", parts, n, &error) == QKV_OK);
    }
    FUZZ_CHECK(qkvi_bpe_end_merges(tokenizer, "", &error) == QKV_OK);
}

static qkv_tokenizer *make_tokenizer(int kind) {
    static const char *const added[] = { "<l>", "<r>", "<w>", "<n>", "<lr>" };
    static const unsigned flags[] = { QKVI_ADDED_LSTRIP | QKVI_ADDED_SPECIAL, QKVI_ADDED_RSTRIP,
                                      QKVI_ADDED_SINGLE_WORD, QKVI_ADDED_NORMALIZED,
                                      QKVI_ADDED_LSTRIP | QKVI_ADDED_RSTRIP };
    qkv_error error;
    qkv_tokenizer *const tokenizer = qkvi_bpe_new();
    FUZZ_CHECK(tokenizer);
    add_pieces(tokenizer);
    FUZZ_CHECK(qkvi_tokenizer_seal_model(tokenizer, &error) == QKV_OK);
    add_merges(tokenizer);
    for (int i = 0; kind & ADDED && i < 5; i++)
        FUZZ_CHECK(qkvi_added_add(&tokenizer->added, 300 + i, added[i], strlen(added[i]),
                                  flags[i]) == QKV_OK);
    tokenizer->normalizes = qkvi_bpe_of(tokenizer)->composes = (kind & NFC) != 0;
    FUZZ_CHECK(qkvi_tokenizer_seal(tokenizer, "x", &error) == QKV_OK);
    qkvi_bpe_of(tokenizer)->add_prefix_space = (kind & PREFIX) != 0;
    tokenizer->trim_offsets = (kind & TRIM) != 0;
    if (kind & MODERN) {
        qkvi_bpe_of(tokenizer)->cut = QKVI_CUT_MODERN;
        qkvi_bpe_of(tokenizer)->max_digits = 3;
        qkvi_bpe_of(tokenizer)->gpt2_words = 0;
    }
    tokenizer->single = qkvi_bare_single;
    tokenizer->pair = qkvi_bare_pair;
    return tokenizer;
}

/* Text to ids to text; without added tokens, which may take white space. */
static void check_round(const qkv_tokenizer *tokenizer, int kind, const char *text, size_t n) {
    qkv_encoding *encoding;
    qkv_text *back;
    qkv_error error;
    const int prefix = kind & PREFIX && n > 0 && text[0] != ' ';
    if (qkv_tokenizer_encode(tokenizer, text, n, NULL, 0, &encoding, &error) != QKV_OK) return;
    FUZZ_CHECK(qkv_tokenizer_decode(tokenizer, encoding->ids, encoding->n, 0, &back, &error) ==
               QKV_OK);
    FUZZ_CHECK(back->n == (int64_t)n + prefix && (!prefix || back->bytes[0] == ' '));
    FUZZ_CHECK(n == 0 || memcmp(back->bytes + prefix, text, n) == 0);
    int64_t last = 0;
    for (int64_t i = 0; i < encoding->n && !(kind & TRIM); i++) {
        FUZZ_CHECK(encoding->begin[i] == last);
        last = encoding->end[i];
    }
    FUZZ_CHECK(kind & TRIM || last == (int64_t)n);
    qkv_text_free(back);
    qkv_encoding_free(encoding);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    static qkv_tokenizer *tokenizers[N_KINDS];
    if (n_bytes == 0) return 0;
    const int kind = bytes[0] % N_KINDS;
    if (!tokenizers[kind]) tokenizers[kind] = make_tokenizer(kind);
    const char *const text = (const char *)bytes + 1;
    const size_t n = n_bytes - 1;
    fuzz_encode(tokenizers[kind], text, n, text, n / 2);
    fuzz_encode(tokenizers[kind], text, n, NULL, 0);
    const int is_other =
        (kind & NFC) || (kind & MODERN && kind & PREFIX); /* a space before each word */
    if (!(kind & ADDED) && !is_other) check_round(tokenizers[kind], kind, text, n);
    return 0;
}
