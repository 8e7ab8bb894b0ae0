/*
 * Texts in, answers out: from the command line, from standard input, or line by line with
 * --jsonl. A command gives a function that answers one text; everything around it is here.
 */
#ifndef QKV_CLI_COMMON_JOB_H
#define QKV_CLI_COMMON_JOB_H

#include <jansson.h>

#include "common/json.h"
#include "common/session.h"
#include "common/text.h"
#include "common/tokens.h"

struct text_job {
    struct session session;
    const void *options;
    const char *pair;         /* of --pair; nullable */
    const char *file;         /* of --file, in place of the first word; nullable */
    bool turns;               /* each text is a turn of a user … */
    const char *chat;         /* … by the template of that name; NULL: the model's own */
    bool needs_pair;          /* the words are A and B */
    qkv_attention_kind which; /* what --head is of: QKV_SELF if it is not set */
    bool any_length;          /* answers texts that are longer than the model takes */
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
 * Opens the session of a job, and reads --head against its model. An exit code, having said what is
 * wrong and closed the session again.
 */
int text_job_open(struct text_job *job, const struct cli_command *command,
                  const struct cli_common *common);

/* Runs a job over its texts and closes its session. Returns an exit code. */
int text_job_run(struct text_job *job, int n_words, char **words);

/* The tokens of a text, and of its pair, which is nullable; of a turn, if it is one. */
qkv_status text_job_encode(const struct text_job *job, const struct text *text,
                           const struct text *pair, qkv_encoding **encoding, qkv_error *error);

/* Answers one text, and its pair, which is nullable; json as that of text_job. */
qkv_status text_job_answer(struct text_job *job, const struct text *text, const struct text *pair,
                           json_t **json, qkv_error *error);

#endif
