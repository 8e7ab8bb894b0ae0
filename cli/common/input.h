/*
 * Texts in, answers out: from the command line, from standard input, or line by line with
 * --jsonl. A command gives a function that answers one text; everything around it is here.
 */
#ifndef QKV_CLI_COMMON_INPUT_H
#define QKV_CLI_COMMON_INPUT_H

#include <jansson.h>

#include "common/session.h"

struct text; /* lines.h */

struct text_job {
    struct session session;
    const void *options;
    const char *pair;            /* of --pair; nullable */
    const char *file;            /* of --file, in place of the first word; nullable */
    const char *before, *behind; /* what stands around each text; nullable */
    bool needs_pair;             /* the words are A and B */
    qkv_which which;             /* what --head is of: QKV_SELF if it is not set */
    bool any_length;             /* answers texts that are longer than the model takes */
    const char
        *longer; /* what else can be done about a longer text, "--slide 60 looks …"; nullable */
    /*
     * Answers one text. json NULL: print it. Otherwise: make an object. A text that does not suit
     * the command is the caller's mistake: set usage.
     */
    qkv_status (*answer)(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error);
    bool usage;
    const struct text
        *said[2]; /* while one is answered: the text and its pair, which may be NULL */
    /* The head that --head names, if any (text_job_open). */
    bool given;
    int64_t layer, head;
};

/*
 * Opens the session of a job, and reads --head against its model. An exit code, having said what is wrong
 * and closed the session again.
 */
int text_job_open(struct text_job *job, const struct cli_command *command,
                  const struct cli_common *common);

/* Runs a job over its texts and closes its session. Returns an exit code. */
int text_job_run(struct text_job *job, int n_words, char **words);

/* Answers one text, and its pair, which is nullable; json as that of text_job. */
qkv_status text_job_answer(struct text_job *job, const struct text *text, const struct text *pair,
                           json_t **json, qkv_error *error);

/*
 * Cuts an encoding to the model's length, with --truncate; otherwise it is an error to be longer.
 * longer: what else can be done, as in text_job; nullable.
 */
qkv_status text_fit(const struct session *session, const char *longer, qkv_encoding *encoding,
                    qkv_error *error);

/*
 * Cuts an encoding to `most` tokens, with --truncate; otherwise it is an error to be longer: `what` has
 * so many tokens, the model `does` so many. longer: what else can be done, as in text_job; nullable.
 */
qkv_status text_shorten(const struct session *session, const qkv_tokenizer *tokenizer, int64_t most,
                        const char *what, const char *does, const char *longer,
                        qkv_encoding *encoding, qkv_error *error);

/* Sets *error and returns the status. */
qkv_status text_error(qkv_error *error, qkv_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* "out of memory" */
qkv_status text_no_memory(qkv_error *error);

/* Does a name end so, with something before? */
bool text_ends(const char *name, const char *ending);

/* Appends to a text in room for `bytes`; what does not fit is cut. */
void text_append(char *text, size_t bytes, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Sentences below a picture; what does not fit is cut. Zeros at first. */
struct caption {
    char text[1700];
};
#define caption_add(caption, ...) text_append((caption)->text, sizeof(caption)->text, __VA_ARGS__)

/* Appends " Text: \"...\"." with the first words of a text, and of its pair. */
void caption_add_texts(struct caption *caption, const struct text *const said[2]);

/* "tokens": the tokens of an encoding as a JSON array. */
json_t *text_tokens_json(const struct session *session, const qkv_encoding *input);

json_t *tokens_json(const qkv_tokenizer *tokenizer, const qkv_encoding *input);
json_t *token_json(const qkv_tokenizer *tokenizer, int32_t id);

/* A token of the vocabulary, or any text: escaped if it is not UTF-8. */
json_t *text_token_json(const struct session *session, int32_t id);
json_t *json_text(const char *text);
json_t *json_bytes(const char *bytes, size_t n);

/* For json_pack, a member named as a field: for "I", as it is, and by json_count for "o". */
#define JSON_INT(of, field)   #field, (json_int_t)(of)->field
#define JSON_FIELD(of, field) #field, (of)->field
#define JSON_COUNT(of, field) #field, json_count((int64_t)(of)->field)

/* A number for JSON, which has no NaN and no infinity: null for those. */
json_t *json_number(double value);
/* An integer; null below 0, where there is none. */
json_t *json_count(int64_t n);

/*
 * Adds members to an object, a new one if it is NULL: json_set(NULL, "layer:i weight:n label:t",
 * …). Letters of values: i an int64_t, n a double as json_number has it, s a string, t a text as
 * json_text has it, o a json_t * that is taken. A string or json_t * that is NULL is left out.
 * Returns NULL without memory.
 */
json_t *json_set(json_t *object, const char *members, ...);

/*
 * JSON with 9 significant digits, in which what a terminal must not have is \uXXXX; json_print: a line of it,
 * taking the reference. False if it cannot be written.
 */
bool json_put(FILE *out, const json_t *value);
bool json_print(FILE *out, json_t *object);
/* The same to standard output: an exit code. */
int json_emit(json_t *object);

/* Writes an object to a file, whole or not at all. Takes the reference. */
qkv_status json_write_file(const char *path, json_t *object, qkv_error *error);

#endif
