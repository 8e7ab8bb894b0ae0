/**
 * What a folder says about its tokenizer besides the vocabulary, as transformers 5 reads it:
 *
 *     tokenizer_config.json    the class, its switches, the special tokens, added_tokens_decoder
 *     special_tokens_map.json  special tokens, which precede those of tokenizer_config.json
 *     added_tokens.json        {"token": id, …}
 *     config.json              model_type, if no class is named
 *
 * The class decides which file counts. Most classes make the tokenizer anew: from tokenizer.json
 * they take vocabulary, merges and added tokens (classes of decoders also what is put around a
 * text); all else is in tokenizer_config.json, or a default of the class. TokenizersBackend takes
 * tokenizer.json as it is.
 */
#ifndef QKVI_TEXT_SETTINGS_H
#define QKVI_TEXT_SETTINGS_H

#include "files/json.h"
#include "text/tokenizer.h"

/** A file in memory; its name is for messages, escaped. bytes NULL: there is no such file. */
typedef struct qkvi_text_file {
    const char *name, *bytes;
    size_t n_bytes;
} qkvi_text_file;

/** The files of a folder. A reader needs some of the first four, and may use the others. */
typedef struct qkvi_text_files {
    qkvi_text_file tokenizer, vocab, merges, spm;
    qkvi_text_file tokenizer_config, special_tokens_map, added_tokens, config;
    qkvi_text_file chat_template; /* chat_template.jinja */
    int lower_first;              /* convert texts to lower case before anything else */
} qkvi_text_files;

/** The named special tokens, in the order in which they get ids. */
typedef enum qkvi_named {
    QKVI_BOS,
    QKVI_EOS,
    QKVI_UNK,
    QKVI_SEP,
    QKVI_PAD,
    QKVI_CLS,
    QKVI_MASK,
    QKVI_N_NAMED
} qkvi_named;

/** Which class makes the tokenizer. */
typedef enum qkvi_maker {
    QKVI_MADE_BY_FILE = 1, /* TokenizersBackend: tokenizer.json as it is */
    QKVI_MADE_BY_BERT = 2,
    QKVI_MADE_BY_ROBERTA = 4,
    QKVI_MADE_BY_GPT2 = 8,
    QKVI_MADE_BY_MARIAN = 16,
    QKVI_MADE_BY_QWEN2 = 32,
    QKVI_MADE_BY_LLAMA = 64,
    QKVI_MADE_BY_GEMMA = 128,
    QKVI_MADE_BY_XLM_ROBERTA = 256,
    QKVI_MADE_BY_MPNET = 512,
    QKVI_MADE_BY_GPT_NEOX = 1024,
    QKVI_MADE_BY_CLIP = 2048,
    QKVI_MADE_BY_T5 = 4096,
    QKVI_MADE_BY_SIGLIP = 8192,
    QKVI_MADE_BY_ANY = 2 * QKVI_MADE_BY_SIGLIP - 1
} qkvi_maker;

typedef struct qkvi_tokenizer_class {
    const char *name;
    qkvi_maker maker;
    int has_types; /* the two texts of a pair have types 0 and 1, if model_input_names agrees */
} qkvi_tokenizer_class;

/** A named special token; its string lives as long as the settings. */
typedef struct qkvi_named_token {
    const char *content; /* NULL: none */
    unsigned flags;      /* of added.h */
    int is_given;        /* by a file, not only by the class */
} qkvi_named_token;

typedef struct qkvi_settings {
    const qkvi_text_files *files;
    json_t *tokenizer_config, *config;         /* NULL: no such file */
    json_t *special_tokens_map, *added_tokens; /* also NULL if there is an added_tokens_decoder */
    const qkvi_tokenizer_class *class;
    qkvi_named_token named[QKVI_N_NAMED];
    int lower_case, strip_accents, split_cjk; /* strip_accents -1: as lower_case */
    int add_prefix_space, trim_offsets, add_bos, add_eos;
    int legacy;         /* Llama: U+2581 before each stretch, not only the first one */
    int splits_special; /* special tokens in a text are tokenized like other text */
    int cuts_left;      /* truncation_side */
    int has_types;
    int64_t max_len;                          /* model_max_length */
    const struct qkvi_tokenizer_words *words; /* of a tokenizer.json: the lists that root lacks */
    int is_other; /* another vocabulary than that whose ids files list: only named tokens count */
    qkv_error *error;
} qkvi_settings;

/** Which classes a reader of vocabularies can make. */
typedef struct qkvi_settings_wanted {
    const char *what;     /* for messages: "vocab.txt" */
    int makers;           /* a set of qkvi_maker; other classes are refused */
    qkvi_maker otherwise; /* the class if no file names one; 0: that is refused, too */
    int ignores_type;     /* a model_type whose class is none of makers counts as no class */
} qkvi_settings_wanted;

/** Reads the small files. FORMAT, LIMIT, UNSUPPORTED, MEMORY. Settings may be freed even then. */
qkv_status qkvi_settings_read(const qkvi_text_files *files, const qkvi_settings_wanted *wanted,
                              qkvi_settings *settings, qkv_error *error);
void qkvi_settings_free(qkvi_settings *settings);

/** Finds the class, from the parsed small files. FORMAT, UNSUPPORTED. In settings_class.c. */
qkv_status qkvi_settings_choose(qkvi_settings *settings, const qkvi_settings_wanted *wanted);

/** Takes truncation and padding from tokenizer.json, where tokenizer_config.json has none. */
qkv_status qkvi_settings_take_json(qkvi_settings *settings, const json_t *root);

/**
 * Sets what tokenizers of all classes have: whether texts have types, whether special tokens are
 * looked for in texts, the side that is cut, the chat template. MEMORY.
 */
qkv_status qkvi_settings_apply(const qkvi_settings *settings, qkv_tokenizer *tokenizer);

/** Keeps names and digests of the files that are there (tokenizer_files.c). */
void qkvi_tokenizer_keep_files(const qkvi_text_files *files, qkv_tokenizer *tokenizer);

/** Reads the files into a tokenizer; root: of a tokenizer.json, or NULL. */
typedef qkv_status qkvi_settings_fill(const qkvi_settings *settings, const json_t *root,
                                      qkv_tokenizer *tokenizer);

/**
 * Fills a tokenizer. made: an empty one, which *out becomes, or which is freed after a failure;
 * NULL: there was no memory for it.
 */
QKV_NODISCARD qkv_status qkvi_settings_make(const qkvi_settings *settings, const json_t *root,
                                            qkv_tokenizer *made, qkvi_settings_fill *fill,
                                            qkv_tokenizer **out);

/* ---- Added tokens: see added_list.h ---------------------------------------------------------- */

/**
 * Adds the tokens that the files list and name to a tokenizer whose model is sealed, seals it, and
 * finds the tokens of roles. root: of tokenizer.json, or NULL. FORMAT if a file gives a token
 * another id than transformers does; LIMIT; UNSUPPORTED; MEMORY.
 */
qkv_status qkvi_settings_add_tokens(const qkvi_settings *settings, const json_t *root,
                                    qkv_tokenizer *tokenizer);

/** After qkvi_settings_add_tokens: the id of a named token, -1 if there is none. */
int32_t qkvi_settings_id(const qkvi_settings *settings, qkvi_named which,
                         const qkv_tokenizer *tokenizer);

#endif
