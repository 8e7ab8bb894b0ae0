/* Jobs of `qkv look` over texts: see job.h. */
#include "look/job.h"

#include <stdlib.h>

#include "common/lens.h"
#include "look/against.h"

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct look_options *options = job->options;
    const struct look_job *self = (const struct look_job *)job;
    if (options->against)
        return look_against(job, &self->other, input, &self->what_if, json, error);
    struct look look = { .text = { .session = &job->session, .input = input },
                         .ctx = job->session.ctx,
                         .said = { job->said[0], job->said[1] },
                         .options = options,
                         .given = job->given,
                         .list = self->list,
                         .n_list = self->n_list,
                         .choice = { .layer = job->layer, .head = job->head } };
    qkv_status status = options->windows
                            ? windows_make(&look, &self->what_if, &self->windows, error)
                            : look_make(&look, &self->what_if, error);
    if (status == QKV_OK && options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (status == QKV_OK)
        status = look_show(&look, json, error);
    look_free_text(&look);
    windows_free(look.windows);
    return status;
}

int look_job_open(struct look_job *job, const struct cli_command *command,
                  const struct look_options *options) {
    *job = (struct look_job){
        .texts = { .options = options,
                   .pair = options->pair,
                   .file = options->file,
                   .any_length = options->windows != NULL,
                   .longer = look_which(options) == QKV_SELF ? "--slide N looks at windows of it, "
                                                             : NULL,
                   .which = look_which(options),
                   /* of a page the lens is a part (page_lens.c) */
                   .answer = options->lens && !options->out ? lens_answer : answer }
    };
    struct text_job *const texts = &job->texts;
    int code = what_if_parse(command, &options->what_if, &job->what_if);
    if (code == EXIT_OK) code = windows_parse(command, options, &job->windows);
    if (code == EXIT_OK) code = text_job_open(texts, command, &options->common);
    if (code) return code;
    code = look_list_heads(command, options, &texts->session, &job->list, &job->n_list);
    if (code == EXIT_OK && job->n_list > 0) {
        texts->given = true;
        texts->layer = job->list[0].layer;
        texts->head = job->list[0].head;
    }
    return code;
}

void look_job_close(struct look_job *job) {
    session_close(&job->texts.session);
    session_close(&job->other);
    free(job->list);
}

int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words) {
    struct look_job job;
    struct cli_common common = options->common; /* of the other model */
    qkv_error error;
    int code = look_job_open(&job, command, options);
    common.model = options->against;
    if (code == EXIT_OK && options->against) code = session_open(&job.other, command, &common);
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK) code = text_job_run(&job.texts, n_words, words);
    look_job_close(&job);
    return code;
}
