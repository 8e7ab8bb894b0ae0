/* A context and a model, as the common options ask for them. */
#ifndef QKV_CLI_COMMON_SESSION_H
#define QKV_CLI_COMMON_SESSION_H

#include "common/cli.h"
#include <qkv/model.h>

enum { HINT_BYTES = 640 };

struct session {
    const struct cli_command *command;
    const struct cli_common *common;
    qkv_ctx *ctx;
    qkv_model *model;
    const qkv_model_info *info;
    const qkv_tokenizer *tokenizer, *target; /* target: of what is written */
    qkv_tokenizer *alone; /* a tokenizer without a model, which is NULL with its info then */
    bool is_embedded;     /* the model is the one of this binary */
    char
        hint[HINT_BYTES]; /* about the text that was read last, as a sentence; "": none (hints.h) */
};

/*
 * Makes a context by --threads, --isa and their variables. Returns an exit code, having said why.
 */
int session_context(const struct cli_command *command, const struct cli_common *common,
                    qkv_ctx **ctx);

/* Is an instruction set usable here? source: "--isa", "QKV_ISA". Returns an exit code, too. */
int session_isa(const struct cli_command *command, const char *source, const char *isa);

/* Opens the model of --model, QKV_MODEL or this binary; with a context if the command computes. */
int session_open(struct session *session, const struct cli_command *command,
                 const struct cli_common *common);
/* Opens the tokenizer of the target language of a folder, and no model. */
int session_open_target(struct session *session, const struct cli_command *command,
                        const struct cli_common *common);
void session_close(struct session *session);

/* A number that another model or tokenizer does not have (digest.c). */
uint64_t session_digest(const struct session *session);

/* Does a name mean the embedded model: "models/default", where no such model is? */
bool session_names_embedded(const char *name);

/*
 * Warnings on standard error, unless quiet, of what is odd about a model; with --check-finite also
 * of its weights.
 */
void session_warn(const qkv_model *model, const struct cli_common *common);

/*
 * A token as it is shown (qkv_tokenizer_show); as a label it is escaped for printing, too. malloc.
 */
char *token_shown(const qkv_tokenizer *tokenizer, int32_t id);
char *token_label(const qkv_tokenizer *tokenizer, int32_t id);
char *session_token(const struct session *session, int32_t id);
/*
 * Does a user who writes `word` mean this label? It may be without the sign of a space before it,
 * or with a space.
 */
bool label_is(const char *label, const char *word);
/*
 * The one token that has the text, -1 if none has, which is no error. If it stands several times,
 * that is an error which names the option and the places.
 */
qkv_status label_find(char *const *labels, int64_t n, const char *option, const char *word,
                      int64_t *place, qkv_error *error);
/* "1 and 4", "1, 4 and 7": the first places where is[i] is set, of at most 8. */
void label_where(const uint8_t *is, int64_t n, char *text, size_t bytes);

/* The same for each token of an input, in a new array. */
qkv_status session_labels(const struct session *session, const qkv_encoding *input, char ***labels,
                          qkv_error *error);
void session_labels_free(char **labels, int64_t n); /* NULL is allowed */

/* "L.H": false if it is no such name. */
bool session_place(const char *text, int64_t *layer, int64_t *head);

/*
 * EXIT_USAGE, having said so, if a model without a decoder over an encoder is asked for its
 * `option`; NULL: it is not.
 */
int session_pair(const struct session *session, const char *option);

/* How many layers and heads there are of an attention of the model. */
void session_sizes(const struct session *session, qkv_attention_kind which, int64_t *n_layers,
                   int64_t *n_heads);

/*
 * The head of an attention that --head and --layer name: *given tells whether one was named.
 * Returns an exit code, having said what is wrong.
 */
int session_head(const struct session *session, qkv_attention_kind which, bool *given,
                 int64_t *layer, int64_t *head);

/*
 * EXIT_USAGE, having said so, if an attention of the model has no such head; `option` named it by
 * `text`, and calls what has the attention `model`.
 */
int session_check_head(const struct session *session, qkv_attention_kind which, const char *option,
                       const char *text, int64_t layer, int64_t head, const char *model);

/*
 * Cuts an encoding to the model's length, with --truncate; otherwise it is an error to be longer.
 * longer: what else can be done, "--slide 60 looks …"; nullable.
 */
qkv_status text_fit(const struct session *session, const char *longer, qkv_encoding *encoding,
                    qkv_error *error);

/*
 * Cuts an encoding to `most` tokens, with --truncate; otherwise it is an error to be longer: `what`
 * has so many tokens, the model `does` so many. longer: what else can be done, as in text_job;
 * nullable.
 */
qkv_status text_shorten(const struct session *session, const qkv_tokenizer *tokenizer, int64_t most,
                        const char *what, const char *does, const char *longer,
                        qkv_encoding *encoding, qkv_error *error);

/* How --weights wants models opened. */
qkv_model_open_options session_weights(const struct cli_common *common);

/* The model that is built in, if any (embedded.c). */
bool embedded_model(const qkv_model_open_options *options, qkv_model **model, qkv_status *status,
                    qkv_error *error);
/* The grammar that it was trained on, NULL without. */
const char *embedded_grammar(size_t *n_bytes);

#endif
