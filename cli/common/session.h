/* A context and a model, opened by the shared options of a command. */
#ifndef QKV_CLI_COMMON_SESSION_H
#define QKV_CLI_COMMON_SESSION_H

#include "common/cli.h"
#include <qkv/vision.h>

enum { HINT_BYTES = 640 };

struct session {
    const struct cli_command *command;
    const struct cli_common *common;
    qkv_ctx *ctx;
    qkv_model *model;
    qkv_model *whole; /* of session_images: what was opened, of which model is a part; else NULL */
    const qkv_model_info *info;
    const qkv_tokenizer *tokenizer, *target; /* target: of what the decoder writes */
    qkv_tokenizer *alone;  /* a tokenizer without a model: then model and info are NULL */
    bool is_embedded;      /* the model is the one in this binary */
    char hint[HINT_BYTES]; /* about the text that was read last; "": none (hints.h) */
};

/*
 * Makes a context by --threads and --isa, or by QKV_NUM_THREADS and QKV_ISA. Returns an exit code,
 * having said what is wrong.
 */
int session_context(const struct cli_command *command, const struct cli_common *common,
                    qkv_ctx **ctx);

/*
 * Refuses an instruction set that this processor does not have. source: "--isa" or "QKV_ISA", for
 * the message. Returns an exit code.
 */
int session_isa(const struct cli_command *command, const char *source, const char *isa);

/*
 * Opens the model of --model or QKV_MODEL, or the embedded one, and a context if the command
 * TAKES_COMPUTE. Returns an exit code, having said what is wrong.
 */
int session_open(struct session *session, const struct cli_command *command,
                 const struct cli_common *common);
/*
 * Turns a session to the part of its model that reads images, for --image; then it has no
 * tokenizer. Returns an exit code, having said what is wrong.
 */
int session_images(struct session *session);
/*
 * Reads an image as tokens of such a session. image: NULL, or receives the image as it is in the
 * file. The caller frees both, after a failure, too.
 */
qkv_status session_see(const struct session *session, const char *path, qkv_image **image,
                       qkv_encoding **tokens, qkv_error *error);

/* Opens only the tokenizer of the target language in the folder of the model. */
int session_open_target(struct session *session, const struct cli_command *command,
                        const struct cli_common *common);
void session_close(struct session *session);

/* A hash by which ranks see whether they have opened the same model (digest.c). */
uint64_t session_digest(const struct session *session);

/* Is the name "models/default", and no such folder there? Then it means the embedded model. */
bool session_names_embedded(const char *name);

/*
 * Prints the warnings of a model on standard error, unless quiet; with --check-finite also those
 * about weights that are NaN or infinite.
 */
void session_warn(const qkv_model *model, const struct cli_common *common);

/*
 * A token in readable form (qkv_tokenizer_show), from malloc. A label is also escaped for printing;
 * session_token is the label by the tokenizer of a session.
 */
char *token_shown(const qkv_tokenizer *tokenizer, int32_t id);
char *token_label(const qkv_tokenizer *tokenizer, int32_t id);
char *session_token(const struct session *session, int32_t id);
/*
 * Does `word`, which a user wrote, mean this label? A label that begins with the sign of a space
 * also matches without it, or with a space in its place.
 */
bool label_is(const char *label, const char *word);
/*
 * Finds the label that a user means by `word`; *place is -1 if there is none, which is no error. It
 * is an error if there are several: the message has the option and the places.
 */
qkv_status label_find(char *const *labels, int64_t n, const char *option, const char *word,
                      int64_t *place, qkv_error *error);
/* Writes the places where is[i] is set, "1, 4 and 7"; of more than 8 only the first 8. */
void label_where(const uint8_t *is, int64_t n, char *text, size_t bytes);

/* The labels of all tokens of an input, in a new array. */
qkv_status session_labels(const struct session *session, const qkv_encoding *input, char ***labels,
                          qkv_error *error);
void session_labels_free(char **labels, int64_t n); /* NULL is allowed */

/* Reads the name of a head, "L.H"; false if the text is none. */
bool session_place(const char *text, int64_t *layer, int64_t *head);

/*
 * Refuses an option that needs an encoder-decoder, if the model is none; option NULL: it was not
 * given. Returns an exit code.
 */
int session_pair(const struct session *session, const char *option);

/* The numbers of layers and heads of one kind of attention of the model. */
void session_sizes(const struct session *session, qkv_attention_kind which, int64_t *n_layers,
                   int64_t *n_heads);

/*
 * Reads --head and --layer; *given: they were given. Returns an exit code, having said what is
 * wrong, also if the attention has no such head.
 */
int session_head(const struct session *session, qkv_attention_kind which, bool *given,
                 int64_t *layer, int64_t *head);

/*
 * Refuses a head that an attention of the model does not have. For the message: the option, its
 * value `text`, and what the model is called, `model`. Returns an exit code.
 */
int session_check_head(const struct session *session, qkv_attention_kind which, const char *option,
                       const char *text, int64_t layer, int64_t head, const char *model);

/*
 * Cuts an encoding to the most tokens that the model takes, if --truncate was given; otherwise a
 * longer one is an error. longer: what the message adds, "--slide 60 looks …"; nullable.
 */
qkv_status text_fit(const struct session *session, const char *longer, qkv_encoding *encoding,
                    qkv_error *error);

/*
 * Cuts an encoding to `most` tokens, if --truncate was given; otherwise a longer one is an error,
 * "`what` has N tokens, the model `does` `most`". longer: as in text_fit.
 */
qkv_status text_shorten(const struct session *session, const qkv_tokenizer *tokenizer, int64_t most,
                        const char *what, const char *does, const char *longer,
                        qkv_encoding *encoding, qkv_error *error);

/* Options of qkv_model_open by --weights. */
qkv_model_open_options session_weights(const struct cli_common *common);

/* Opens the embedded model; false: this build has none (embedded.c). */
bool embedded_model(const qkv_model_open_options *options, qkv_model **model, qkv_status *status,
                    qkv_error *error);
/* The grammar that the embedded model was trained on; NULL without such a model. */
const char *embedded_grammar(size_t *n_bytes);

#endif
