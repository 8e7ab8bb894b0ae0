/*
 * `qkv generate --file` and `qkv translate --file`: an answer for each line, in order; ranks share
 * the lines (share.h). Ends at the first line that fails.
 */
#include "common/os.h"
#include "common/ranks.h"
#include "common/share.h"
#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct filing {
    struct lines lines; /* first: share_next_line */
    struct writing *w;
    struct progress progress;
    const char *told;
    int64_t n_taken;
};

/* Printed to w->term.out. */
static qkv_status answer(struct writing *w, const struct text *line, qkv_error *error) {
    struct session *const session = &w->job.session;
    qkv_encoding *input = NULL;
    json_t *json = NULL;
    qkv_status status = text_job_encode(&w->job, line, NULL, &input, error);
    if (status == QKV_OK) status = text_fit(session, NULL, input, error);
    if (status == QKV_OK)
        status = w->job.answer(&w->job, input, session->common->json ? &json : NULL, error);
    if (status == QKV_OK && json && !json_print(w->term.out, json))
        status = text_error(error, QKV_ERR_IO, "it cannot be written");
    qkv_encoding_free(input);
    return status;
}

static qkv_status make(void *user, const struct text *line, struct text *made, qkv_error *error) {
    struct writing *const w = ((struct filing *)user)->w;
    FILE *const out = w->term.out;
    w->term.out = os_open_memory(&made->bytes, &made->n);
    qkv_status status = w->term.out ? answer(w, line, error) : text_no_memory(error);
    const bool is_whole = w->term.out && !ferror(w->term.out);
    if (w->term.out && (os_close_memory(w->term.out) != 0 || !is_whole) && status == QKV_OK)
        status = text_no_memory(error);
    w->term.out = out;
    if (status == QKV_OK) return QKV_OK;
    free(made->bytes);
    made->bytes = NULL;
    return status;
}

static qkv_status take(void *user, const struct text *made, qkv_error *error) {
    struct filing *const x = user;
    char text[64];
    if (made->n > 0) fwrite(made->bytes, 1, made->n, stdout);
    snprintf(text, sizeof text, "%" PRId64 " lines%s", ++x->n_taken, x->told);
    progress_text(&x->progress, text);
    if (ferror(stdout)) return text_error(error, QKV_ERR_IO, "it cannot be written");
    return QKV_OK;
}

int writing_run_file(struct writing *w, const char *told) {
    struct filing x = { .lines.quiet = w->options->common.quiet, .w = w, .told = told };
    const struct share share = { .user = &x,
                                 .next = share_next_line,
                                 .make = make,
                                 .take = take,
                                 .failed = share_failed_line,
                                 .journal = w->options->journal,
                                 .model = w->options->common.model,
                                 .quiet = w->options->common.quiet };
    qkv_error error;
    qkv_status status = QKV_OK;
    if (ranks_rank() == 0) status = lines_open(&x.lines, w->options->file, &error);
    int code = ranks_agree(cli_status(status, &error));
    progress_begin(&x.progress, w->options->common.quiet || w->term.tty);
    if (!code) code = cli_status(share_run(&share, &error), &error);
    progress_end(&x.progress);
    lines_close(&x.lines);
    session_close(&w->job.session);
    return code;
}

int writing_begin_file(const struct cli_command *command, const struct writing_options *o,
                       int n_words) {
    if (!o->file) return o->journal ? cli_usage(command, "--journal without --file") : EXIT_OK;
    if (n_words > 0) return cli_usage(command, "--file together with a text");
    if (o->journal && os_is_terminal(stdout)) /* what is kept is printed as it is */
        return cli_usage(command, "--journal prints to a file or a pipe, not to a terminal");
    if (o->common.jsonl) return cli_usage(command, "--file together with --jsonl");
    return ranks_begin(false);
}
