/**
 * What a folder says about its tokenizer beside the vocabulary, as transformers 5 reads it:
 *
 *     tokenizer_config.json    the class, its switches, the special tokens, added_tokens_decoder
 *     special_tokens_map.json  special tokens, before those of tokenizer_config.json
 *     added_tokens.json        {"token": id, …}
 *     config.json              model_type, where no class is named
 *
 * The class decides who has the last word. Most classes make the tokenizer anew: of a
 * tokenizer.json they take vocabulary, merges and added tokens, decoders' what stands around a
 * text, too; all else is what tokenizer_config.json says, or what the class has where it is silent.
 * TokenizersBackend takes tokenizer.json as it is.
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

/** The files of a folder. Each reader needs some of the first row, and may use the others. */
typedef struct qkvi_text_files {
    qkvi_text_file tokenizer, vocab, merges, spm;
    qkvi_text_file tokenizer_config, special_tokens_map, added_tokens, config;
    qkvi_text_file chat_template; /* chat_template.jinja */
    int lower_first; /* texts are put in lower case before anything else happens to them */
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

/** Who makes the tokenizer. */
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
    QKVI_MADE_BY_GPT_NEOX = 1024
} qkvi_maker;

typedef struct qkvi_tokenizer_class {
    const char *name;
    qkvi_maker maker;
    int has_types; /* texts of a pair have types, unless model_input_names says otherwise */
} qkvi_tokenizer_class;

/** A named special token; its string lives as long as the settings. */
typedef struct qkvi_named_token {
    const char *content; /* NULL: none */
    unsigned flags;      /* of added.h */
    int is_given;        /* by a file, not by the class */
} qkvi_named_token;

typedef struct qkvi_settings {
    const qkvi_text_files *files;
    json_t *tokenizer_config, *config;         /* NULL: not there */
    json_t *special_tokens_map, *added_tokens; /* the same where there is an added_tokens_decoder */
    const qkvi_tokenizer_class *class;
    qkvi_named_token named[QKVI_N_NAMED];
    int lower_case, strip_accents, split_cjk; /* strip_accents -1: as lower_case */
    int add_prefix_space, trim_offsets, add_bos, add_eos;
    int legacy;         /* Llama: U+2581 before each stretch, not only the first */
    int splits_special; /* special tokens are not looked for in texts */
    int cuts_left;      /* truncation_side */
    int has_types;
    int64_t max_len;                          /* model_max_length */
    const struct qkvi_tokenizer_words *words; /* of a tokenizer.json: the lists that root lacks */
    /* the vocabulary is not that of which the lists have ids: only what is named counts */
    int is_other;
    qkv_error *error;
} qkvi_settings;

/** What a reader of vocabularies can be asked to make. */
typedef struct qkvi_settings_wanted {
    const char *what;     /* for messages: "vocab.txt" */
    int makers;           /* a set of bits; another class is refused */
    qkvi_maker otherwise; /* where no file tells; 0: that is refused, too */
    int ignores_type;     /* the type of a model tells nothing if its class is none of these */
} qkvi_settings_wanted;

/** Reads the small files. FORMAT, LIMIT, UNSUPPORTED, MEMORY; settings may be freed also then. */
qkv_status qkvi_settings_read(const qkvi_text_files *files, const qkvi_settings_wanted *wanted,
                              qkvi_settings *settings, qkv_error *error);
void qkvi_settings_free(qkvi_settings *settings);

/**
 * Which class makes the tokenizer; the small files are parsed. FORMAT, UNSUPPORTED. In
 * settings_class.c.
 */
qkv_status qkvi_settings_choose(qkvi_settings *settings, const qkvi_settings_wanted *wanted);

/** What a tokenizer.json says about cutting and padding, where tokenizer_config.json does not. */
qkv_status qkvi_settings_take_json(qkvi_settings *settings, const json_t *root);

/**
 * Sets what all makers have: whether texts have types, special tokens are looked for, the side that
 * is cut, the chat template. MEMORY.
 */
qkv_status qkvi_settings_apply(const qkvi_settings *settings, qkv_tokenizer *tokenizer);

/** Reads the files into a tokenizer; root: of a tokenizer.json, or NULL. */
typedef qkv_status qkvi_settings_fill(const qkvi_settings *settings, const json_t *root,
                                      qkv_tokenizer *tokenizer);

/**
 * A tokenizer that is filled. made: an empty one, which is taken over; NULL: there was no memory.
 */
QKV_NODISCARD qkv_status qkvi_settings_make(const qkvi_settings *settings, const json_t *root,
                                            qkv_tokenizer *made, qkvi_settings_fill *fill,
                                            qkv_tokenizer **out);

/* ---- Added tokens: see added_list.h ---------------------------------------------------------- */

/**
 * Adds the tokens that the files list and name, of a tokenizer whose model is sealed, seals it, and
 * finds its roles. root: that of tokenizer.json, NULL if there is none. An id that a file gives to
 * a token must be the one that transformers gives it, or it is FORMAT. LIMIT; UNSUPPORTED; MEMORY.
 */
qkv_status qkvi_settings_add_tokens(const qkvi_settings *settings, const json_t *root,
                                    qkv_tokenizer *tokenizer);

/** The id of a named token after that, -1 if there is none. */
int32_t qkvi_settings_id(const qkvi_settings *settings, qkvi_named which,
                         const qkv_tokenizer *tokenizer);

#endif
