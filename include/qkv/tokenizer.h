/**
 * qkv tokenizers: text to tokens, and tokens to text.
 *
 *     qkv_tokenizer *tokenizer = NULL;
 *     qkv_encoding *tokens = NULL;
 *     if (qkv_tokenizer_open("models/bert", QKV_SOURCE, &tokenizer, &error) == QKV_OK &&
 *         qkv_tokenizer_encode(tokenizer, text, strlen(text), NULL, 0, &tokens, &error) == QKV_OK)
 *         printf("%lld tokens\n", (long long)tokens->n);
 *
 * A tokenizer is read-only after it is opened and may be used by many threads at once.
 * Every object is freed by its own function, which accepts NULL.
 */
#ifndef QKV_TOKENIZER_H
#define QKV_TOKENIZER_H

#include "qkv/qkv.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qkv_tokenizer qkv_tokenizer;

/** Which texts of a model: those that go in, or those that come out of a translator. */
typedef enum qkv_side { QKV_SOURCE, QKV_TARGET } qkv_side;

typedef enum qkv_token_role {
    QKV_TOKEN_UNK,
    QKV_TOKEN_SEP,
    QKV_TOKEN_PAD,
    QKV_TOKEN_CLS,
    QKV_TOKEN_MASK
} qkv_token_role;

/* ---- Opening --------------------------------------------------------------------------------- */

/**
 * Opens the tokenizer of a model folder. The first of these decides:
 *
 *   source.spm and vocab.json   SentencePiece (Marian)
 *   tokenizer.json              what it says
 *   vocab.txt                   WordPiece
 *   vocab.json and merges.txt   byte-level BPE of GPT-2, RoBERTa and BART
 *
 * Each is read with tokenizer_config.json, special_tokens_map.json, added_tokens.json,
 * chat_template.jinja and config.json, as transformers 5 does (docs/tokenizers.md).
 *
 * @param side  QKV_TARGET: target.spm instead of source.spm, and target_vocab.json instead of
 *              vocab.json where the vocabularies are separate. Ignored by folders with one
 *              tokenizer.
 * @return QKV_OK; QKV_ERR_IO if files are missing, naming them; QKV_ERR_FORMAT, QKV_ERR_LIMIT or
 *         QKV_ERR_UNSUPPORTED, naming file, field, value and rule; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_open(const char *directory, qkv_side side,
                                                    qkv_tokenizer **tokenizer, qkv_error *error);

/**
 * Makes a WordPiece tokenizer from the bytes of a vocab.txt and, unless it is NULL, of a
 * tokenizer_config.json.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_open_memory(const void *vocab, size_t vocab_bytes,
                                                           const void *config, size_t config_bytes,
                                                           qkv_tokenizer **tokenizer,
                                                           qkv_error *error);
QKV_API void qkv_tokenizer_free(qkv_tokenizer *tokenizer);

/**
 * Returns the name of the index-th file that a tokenizer was made from, without its folder; NULL
 * past the end. *digest, unless digest is NULL, receives a hash of the file's bytes, by which
 * several processes compare what each has opened. It is no cryptographic one.
 */
QKV_API const char *qkv_tokenizer_file(const qkv_tokenizer *tokenizer, int64_t index,
                                       uint64_t *digest);

/* ---- Text to tokens -------------------------------------------------------------------------- */

/**
 * What an encoding of an image has besides tokens (qkv/vision.h). The encoding owns it.
 * Experimental.
 */
typedef struct qkv_image_tokens {
    /** [3][height][width]: pixels as the model reads them. */
    const float *pixels;
    int64_t height, width;
    /** Tokens before the patches: [CLS], [DIST], registers. They have no place in the image. */
    int64_t n_prefix, n_registers;
    /** Token n_prefix + r * columns + c is the patch (r, c). */
    int64_t rows, columns;
    /** Pixels of a patch: rows r * patch_height to (r + 1) * patch_height - 1, and so on. */
    int64_t patch_height, patch_width;
    /** [height][width][3]: the same before it is rescaled, 0 to 255; NULL: not known. */
    const uint8_t *rgb;
    /**
     * The part of the original image that the model sees, in pixels of that image: rows y0 to y1,
     * columns x0 to x1. They lie beyond the image where it was padded. All 0: not known.
     */
    double y0, x0, y1, x1;
} qkv_image_tokens;

/** A tokenized text or pair, or an image (qkv/vision.h): arrays of n. */
typedef struct qkv_encoding {
    int64_t n;
    int32_t *ids;
    /** Segment: 0 for the first text and its [SEP], 1 for the second. */
    uint8_t *types;
    /** 1: a special token, inserted or written in the text. */
    uint8_t *special;
    /** The token's bytes in the text that it comes from. Inserted tokens have an empty range. */
    int64_t *begin, *end;
    /** The image that the tokens are parts of; NULL: they are of a text. */
    qkv_image_tokens *image;
} qkv_encoding;

/**
 * Makes [CLS] text [SEP], or [CLS] text [SEP] pair [SEP], or what the model puts around its texts.
 * Texts are UTF-8 and may hold NUL. pair may be NULL. Added tokens written in a text are recognised
 * as the tokenizer normalises them; special ones, as a rule, exactly. Time is linear in the text.
 * @return QKV_OK; QKV_ERR_FORMAT for invalid UTF-8, with the byte offset; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_encode(const qkv_tokenizer *tokenizer,
                                                      const char *text, size_t text_bytes,
                                                      const char *pair, size_t pair_bytes,
                                                      qkv_encoding **encoding, qkv_error *error);
QKV_API void qkv_encoding_free(qkv_encoding *encoding);

/**
 * Cuts an encoding to max_len tokens, as longest_first of PyPI tokenizers does. The longer text
 * loses its last tokens until both are as long, and then each loses one in turn. An odd token stays
 * with the text that was longer, or with the second one. Tokens around the texts always stay.
 *
 * @param tokenizer  NULL is allowed. If its files say truncation_side "left", texts lose their
 *                   first tokens.
 */
QKV_API void qkv_tokenizer_cut(const qkv_tokenizer *tokenizer, qkv_encoding *encoding,
                               int64_t max_len);

/* ---- Turns ----------------------------------------------------------------------------------- */

/**
 * Returns the name of the chat template of a tokenizer's files: "chatml", "gemma", "llama2",
 * "llama3", "mistral", "mistral-v1", "mistral-v3", "mistral-tekken", "phi3" or "zephyr"; "" for one
 * that is not known, and NULL if there is none. Templates are recognised by their text, and none is
 * run (docs/tokenizers.md).
 */
QKV_API const char *qkv_tokenizer_chat(const qkv_tokenizer *tokenizer);

/**
 * Makes the tokens of a turn of the user, up to where the answer begins. They are those of
 * apply_chat_template of transformers with add_generation_prompt: BOS and a turn of the system, if
 * the template writes them by itself, the marks of the user around the text, the mark of the
 * answer. Added tokens written in the text are recognised. Places of tokens count from the
 * beginning of all that is written.
 *
 * @param chat      name of a template; NULL: that of the files. One that is named writes no turn of
 *                  the system, and needs its marks in the vocabulary.
 * @param end       receives the token that ends an answer; -1: the end tokens of the model do.
 * @return as qkv_tokenizer_encode; QKV_ERR_UNSUPPORTED if the files have no template, or one that
 *         is not known, or the vocabulary lacks a mark; QKV_ERR_ARGUMENT for another name.
 *         *encoding is NULL on error.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_encode_turn(const qkv_tokenizer *tokenizer,
                                                           const char *chat, const char *text,
                                                           size_t text_bytes,
                                                           qkv_encoding **encoding, int32_t *end,
                                                           qkv_error *error);

/* ---- Tokens to text -------------------------------------------------------------------------- */

typedef struct qkv_text {
    /** A NUL follows the last one. */
    char *bytes;
    int64_t n;
} qkv_text;

enum { QKV_DECODE_SKIP_SPECIAL = 1 };

/**
 * Makes the text of ids, as the decoder of PyPI tokenizers does. WordPiece puts spaces between
 * words and removes those before punctuation. Marian's decoder is that of SentencePiece. Byte-level
 * BPE returns the bytes that were encoded, and U+FFFD for each maximal part that is no UTF-8
 * (Unicode 15, section 3.9). Time and memory are linear.
 *
 * @param flags  0, or QKV_DECODE_SKIP_SPECIAL to leave special tokens out.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an id without a token or an unknown flag;
 *         QKV_ERR_UNSUPPORTED for a decoder that is not implemented; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_decode(const qkv_tokenizer *tokenizer,
                                                      const int32_t *ids, int64_t n, int flags,
                                                      qkv_text **text, qkv_error *error);

/**
 * Returns a token as it is shown to people: for byte-level BPE and SentencePiece the text that it
 * stands for. A space is U+2423, a newline U+21B5, a tab U+21E5. Other control characters, and
 * bytes that are part of a character only, are written as \x1b or \xe6. Tokens of WordPiece and
 * special tokens are shown as the vocabulary has them.
 * @return QKV_OK; QKV_ERR_ARGUMENT for an id without a token; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_tokenizer_show(const qkv_tokenizer *tokenizer, int32_t id,
                                                    qkv_text **text, qkv_error *error);
QKV_API void qkv_text_free(qkv_text *text);

/* ---- The vocabulary -------------------------------------------------------------------------- */

/** Returns the number of ids. */
QKV_API int32_t qkv_tokenizer_size(const qkv_tokenizer *tokenizer);
/**
 * Returns the bytes of a token as its vocabulary has it, without a final NUL; NULL out of range.
 */
QKV_API const char *qkv_tokenizer_token(const qkv_tokenizer *tokenizer, int32_t id, size_t *bytes);
/** Returns the id of a token, or -1. */
QKV_API int32_t qkv_tokenizer_id(const qkv_tokenizer *tokenizer, const char *token, size_t bytes);
/** Returns the id of a special token, or -1 if the vocabulary lacks it. */
QKV_API int32_t qkv_tokenizer_special(const qkv_tokenizer *tokenizer, qkv_token_role role);

#ifdef __cplusplus
}
#endif
#endif
