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
    const char *image;        /* of --image, in place of texts; nullable */
    bool no_texts;            /* a model without a tokenizer is opened, too */
    bool turns;               /* each text is a user's turn, put into a chat template */
    const char *chat;         /* the name of that template; NULL: the model's own */
    bool needs_pair;          /* the command has two words, the text and its pair */
    qkv_attention_kind which; /* the attention whose head --head names; 0 is QKV_SELF */
    const char *asks;         /* the option that asks for it; NULL: --cross or --decoder */
    bool any_length;          /* texts may be longer than the model takes */
    const char *longer; /* for the error of a longer text: what to do, "--slide 60 …"; nullable */
    /*
     * Answers one text: prints the answer if json is NULL, else makes an object of it. For a text
     * that does not suit the command it sets usage, and the exit code is EXIT_USAGE.
     */
    qkv_status (*answer)(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error);
    bool usage;
    const struct text *said[2]; /* during answer: the text, and its pair or NULL; of images NULL */
    bool given;                 /* --head names a head, which text_job_open reads */
    int64_t layer, head;
};

/*
 * Opens the session of a job, and reads --head, which must be a head of its model. Returns an exit
 * code; after an error the message is said and the session closed.
 */
int text_job_open(struct text_job *job, const struct cli_command *command,
                  const struct cli_common *common);

/* Runs a job over its texts and closes its session. Returns an exit code. */
int text_job_run(struct text_job *job, int n_words, char **words);

/* Encodes a text, and its pair (nullable); with job->turns, by the chat template. */
qkv_status text_job_encode(const struct text_job *job, const struct text *text,
                           const struct text *pair, qkv_encoding **encoding, qkv_error *error);

/* Answers one text, and its pair (nullable); json as that of job->answer. */
qkv_status text_job_answer(struct text_job *job, const struct text *text, const struct text *pair,
                           json_t **json, qkv_error *error);

#endif
