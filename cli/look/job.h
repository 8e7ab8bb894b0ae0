/*
 * Jobs of `qkv look`: choose a source and a sink. Only job.c knows both.
 */
#ifndef QKV_CLI_LOOK_JOB_H
#define QKV_CLI_LOOK_JOB_H

#include "look/options.h"

/* Look at the texts of the command line, or at arrays. Return exit codes. */
int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words);
int look_arrays(const struct cli_command *command, const struct look_options *options);
int look_image(const struct cli_command *command, const struct look_options *options);

/*
 * Texts, or images, one after the other, through a model that stays open: answers in memory, with
 * nothing said on the terminal. images: a model that reads no texts will do, too.
 * look_service_open returns an exit code, having said what is wrong; the service is to be closed in
 * any case.
 */
struct look_service;
int look_service_open(struct look_service **service, const struct cli_command *command,
                      const struct look_options *options, bool images);
void look_service_close(struct look_service *service);
/* Without a tokenizer if the model reads images only. */
const struct session *look_service_session(const struct look_service *service);

/* A text, or the path of an image; the other one is NULL. */
struct look_input {
    const struct text *text;
    const char *image;
};
/*
 * The file of `qkv look TEXT -o FILE.html`, to be freed with qkv_text_free. Maps take most of its
 * time: without them the view says that they are not there yet. json, unless it is NULL, becomes
 * what look_service_json makes: both are of one pass through the model.
 */
qkv_status look_service_page(struct look_service *service, struct look_input input, bool maps,
                             qkv_text **page, json_t **json, qkv_error *error);
/* What `qkv look TEXT --json` prints, a new object. */
qkv_status look_service_json(struct look_service *service, struct look_input input, json_t **json,
                             qkv_error *error);

/*
 * --serve: a server on this computer, whose page has a field for a text. Each text gives the page
 * of `qkv look TEXT -o FILE.html` with the same options; an error is shown in its place. first: the
 * text to begin with, nullable.
 */
int look_serve(const struct cli_command *command, const struct look_options *options,
               const char *first);

#endif
