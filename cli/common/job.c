/* Where texts come from: see job.h. */
#include "common/job.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/hints.h"
#include "common/ids.h"
#include "common/lines.h"

/* Everything in a file, or in standard input, without the end of its last line. */
static qkv_status read_all(const struct text_job *job, const char *path, struct text *text,
                           qkv_error *error) {
    struct lines lines = { .quiet = job->session.common->quiet };
    qkv_status status = lines_open(&lines, path, error);
    if (status == QKV_OK) status = lines_whole(&lines, text, error);
    lines_close(&lines);
    return status;
}

static qkv_status fit(const struct text_job *job, qkv_encoding *encoding, qkv_error *error) {
    const int64_t n = encoding->n;
    if (job->any_length) return QKV_OK;
    const qkv_status status = text_fit(&job->session, job->longer, encoding, error);
    if (status == QKV_OK && encoding->n < n)
        cli_note(job->session.common->quiet, "qkv: text cut from %" PRId64 " to %" PRId64 " tokens",
                 n, encoding->n);
    return status;
}

/* ---- One text, or lines of JSON -------------------------------------------------------------- */

qkv_status text_job_encode(const struct text_job *job, const struct text *text,
                           const struct text *pair, qkv_encoding **encoding, qkv_error *error) {
    const qkv_tokenizer *const tokenizer = job->session.tokenizer;
    int32_t end;
    *encoding = NULL;
    if (job->session.common->ids && pair)
        return text_error(error, QKV_ERR_ARGUMENT, "--ids is one list of ids, not two");
    if (job->session.common->ids) return ids_read(&job->session, text, encoding, error);
    if (job->turns && pair)
        return text_error(error, QKV_ERR_ARGUMENT, "one text is a turn, not two");
    if (job->turns)
        return qkv_tokenizer_encode_turn(tokenizer, job->chat, text->bytes, text->n, encoding, &end,
                                         error);
    return qkv_tokenizer_encode(tokenizer, text->bytes, text->n, pair ? pair->bytes : NULL,
                                pair ? pair->n : 0, encoding, error);
}

qkv_status text_job_answer(struct text_job *job, const struct text *text, const struct text *pair,
                           json_t **json, qkv_error *error) {
    qkv_encoding *encoding = NULL;
    qkv_status status = text_job_encode(job, text, pair, &encoding, error);
    const struct cli_common *common = job->session.common;
    const bool hinted = status == QKV_OK && !job->turns && !common->ids &&
                        !(job->session.command->takes & TAKES_TOKENIZER);
    if (hinted) hints_make(&job->session, encoding, text, pair);
    if (hinted && !common->quiet && !common->jsonl) hints_say(&job->session);
    if (status == QKV_OK) status = fit(job, encoding, error);
    job->said[0] = text;
    job->said[1] = pair;
    if (status == QKV_OK) status = job->answer(job, encoding, json, error);
    (common->ids ? ids_free : qkv_encoding_free)(encoding);
    return status;
}

/*
 * A word of the command line is a text; '-' is standard input, and a file that was named is read.
 */
static qkv_status take_text(const struct text_job *job, const char *given, bool named,
                            struct text *owned, struct text *text, qkv_error *error) {
    *text = (struct text){ (char *)(uintptr_t)given, strlen(given) };
    if (!named && strcmp(given, "-") != 0) {
        hints_say_file(&job->session, given);
        return QKV_OK;
    }
    const qkv_status status = read_all(job, given, owned, error);
    *text = *owned;
    return status;
}

/* Says what failed, or prints the object that was made. */
static int tell(const struct text_job *job, qkv_status status, json_t *object,
                const qkv_error *error) {
    if (status != QKV_OK)
        return job->usage ? cli_usage(job->session.command, "%s", error->message)
                          : cli_fail("%s", error->message);
    return job->session.common->json && !json_print(stdout, object) ? EXIT_FAILED : EXIT_OK;
}

static int run_image(struct text_job *job) {
    qkv_encoding *tokens = NULL;
    json_t *object = NULL;
    qkv_error error;
    qkv_status status = session_see(&job->session, job->image, NULL, &tokens, &error);
    if (status == QKV_OK)
        status = job->answer(job, tokens, job->session.common->json ? &object : NULL, &error);
    qkv_encoding_free(tokens);
    return tell(job, status, object, &error);
}

static int run_words(struct text_job *job, int n_words, char **words) {
    struct text text[2] = { { NULL, 0 }, { NULL, 0 } }, owned[2] = { { NULL, 0 }, { NULL, 0 } };
    qkv_error error;
    qkv_status status = QKV_OK;
    const char *given[2] = { job->file ? job->file : words[0], n_words > 1 ? words[1] : job->pair };
    if (given[1] && strcmp(given[0], "-") == 0 && strcmp(given[1], "-") == 0)
        return cli_usage(job->session.command, "'-' can be read only once");
    for (int i = 0; i < 2 && given[i] && status == QKV_OK; i++)
        status = take_text(job, given[i], i == 0 && job->file, &owned[i], &text[i], &error);
    json_t *object = NULL;
    const bool as_json = job->session.common->json;
    if (status == QKV_OK)
        status = text_job_answer(job, &text[0], given[1] ? &text[1] : NULL,
                                 as_json ? &object : NULL, &error);
    free(owned[0].bytes);
    free(owned[1].bytes);
    return tell(job, status, object, &error);
}

static qkv_status answer_line(struct text_job *job, const struct text *line, json_t **object,
                              qkv_error *error) {
    struct text text[2];
    int n_texts = 0;
    json_t *root = NULL;
    qkv_status status = jsonl_parse(line, text, &n_texts, &root, error);
    if (status == QKV_OK && job->needs_pair && n_texts < 2)
        status = text_error(error, QKV_ERR_FORMAT, "not an array of two strings");
    if (status == QKV_OK)
        status = text_job_answer(job, &text[0], n_texts > 1 ? &text[1] : NULL, object, error);
    json_decref(root);
    return status;
}

/* Every line has its answer, if only {"error": ...}. */
static int run_lines(struct text_job *job) {
    struct lines lines = { .quiet = job->session.common->quiet,
                           .in = stdin,
                           .name = lines_name("-") };
    qkv_status status = QKV_OK;
    qkv_error error;
    bool all_well = true, written = true;
    while (written && lines_next(&lines, &status, &error)) {
        json_t *object = NULL;
        if (status == QKV_OK) status = answer_line(job, &lines.line, &object, &error);
        if (status != QKV_OK) {
            char message[sizeof error.message + 40];
            snprintf(message, sizeof message, "line %" PRId64 ": %s", lines.number, error.message);
            json_decref(object);
            object = json_set(NULL, "error:t", message);
            all_well = false;
        }
        written = json_print(stdout, object) && cli_flush();
    }
    free(lines.line.bytes);
    if (ferror(stdin)) return cli_fail("standard input: %s", strerror(errno));
    return all_well && written ? EXIT_OK : EXIT_FAILED;
}

int text_job_open(struct text_job *job, const struct cli_command *command,
                  const struct cli_common *common) {
    int code = session_open(&job->session, command, common);
    if (code) return code;
    if (job->image)
        code = session_images(&job->session);
    else if (!job->session.tokenizer && !job->no_texts)
        code = cli_fail("%s: a %s reads images: give one with --image F", job->session.info->source,
                        job->session.info->architecture);
    if (!code)
        code = session_pair(&job->session, job->which == QKV_SELF    ? NULL
                                           : job->asks               ? job->asks
                                           : job->which == QKV_CROSS ? "--cross"
                                                                     : "--decoder");
    if (!code) code = session_head(&job->session, job->which, &job->given, &job->layer, &job->head);
    if (code) session_close(&job->session);
    return code;
}

int text_job_run(struct text_job *job, int n_words, char **words) {
    const struct cli_command *command = job->session.command;
    int code;
    if (job->image)
        code = run_image(job);
    else if (!job->session.common->jsonl)
        code = run_words(job, n_words, words);
    else if (n_words > 0 || job->pair)
        code = cli_usage(command, "--jsonl reads texts from standard input, not '%s'",
                         n_words > 0 ? words[0] : job->pair);
    else
        code = run_lines(job);
    session_close(&job->session);
    return code;
}
