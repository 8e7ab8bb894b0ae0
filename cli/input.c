/*
 * Where texts come from, and cutting them to the model's length. Cutting a pair takes tokens from
 * the end of the longer text until both fit, as `longest_first` does in transformers.
 */
#include "jsonl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

qkv_status text_error(qkv_error *error, qkv_status status, const char *format, ...) {
    va_list list;
    va_start(list, format);
    error->status = status;
    vsnprintf(error->message, sizeof error->message, format, list);
    va_end(list);
    return status;
}

void text_append(char *text, size_t bytes, const char *format, ...) {
    const size_t used = strlen(text);
    va_list list;
    va_start(list, format);
    vsnprintf(text + used, bytes - used, format, list);
    va_end(list);
}

/* Everything on standard input, without one newline at the end. */
static qkv_status read_all(struct text *text, qkv_error *error) {
    size_t room = 4096;
    *text = (struct text){ malloc(room), 0 };
    while (text->bytes) {
        text->n += fread(text->bytes + text->n, 1, room - text->n, stdin);
        if (text->n > TEXT_LIMIT)
            return text_error(error, QKV_ERR_LIMIT, "standard input: longer than %d bytes",
                              TEXT_LIMIT);
        if (text->n < room) break;
        char *larger = realloc(text->bytes, room *= 2);
        if (!larger) free(text->bytes);
        text->bytes = larger;
    }
    if (!text->bytes) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    if (ferror(stdin)) return text_error(error, QKV_ERR_IO, "standard input: %s", strerror(errno));
    if (text->n > 0 && text->bytes[text->n - 1] == '\n') text->n--;
    return QKV_OK;
}

static qkv_status fit(struct text_job *job, qkv_encoding *encoding, qkv_error *error) {
    const int64_t max_len = job->session.info->max_len, n = encoding->n;
    if (!(job->session.command->takes & TAKES_TRUNCATE) || n <= max_len) return QKV_OK;
    if (!job->session.common->truncate)
        return text_error(error, QKV_ERR_SHAPE,
                          "the text has %" PRId64 " tokens, the model takes %" PRId64
                          ": --truncate cuts it",
                          n, max_len);
    qkv_encoding_cut(encoding, max_len);
    cli_note(job->session.common->quiet, "qkv: text cut from %" PRId64 " to %" PRId64 " tokens", n,
             encoding->n);
    return QKV_OK;
}

/* ---- One text, or lines of JSON -------------------------------------------------------------- */

static qkv_status answer(struct text_job *job, const struct text *text, const struct text *pair,
                         json_t **json, qkv_error *error) {
    qkv_encoding *encoding = NULL;
    qkv_status status =
        qkv_tokenizer_encode(job->session.tokenizer, text->bytes, text->n,
                             pair ? pair->bytes : NULL, pair ? pair->n : 0, &encoding, error);
    if (status == QKV_OK) status = fit(job, encoding, error);
    if (status == QKV_OK) status = job->answer(job, encoding, json, error);
    qkv_encoding_free(encoding);
    return status;
}

static int run_words(struct text_job *job, int n_words, char **words) {
    struct text text[2] = { { NULL, 0 }, { NULL, 0 } }, input = { NULL, 0 };
    qkv_error error;
    qkv_status status = QKV_OK;
    const char *given[2] = { words[0], n_words > 1 ? words[1] : job->pair };
    for (int i = 0; i < 2 && given[i] && status == QKV_OK; i++) {
        text[i] = (struct text){ (char *)(uintptr_t)given[i], strlen(given[i]) };
        if (strcmp(given[i], "-") != 0) continue;
        if (input.bytes) return cli_usage(job->session.command, "'-' can be read only once");
        status = read_all(&input, &error);
        text[i] = input;
    }
    json_t *object = NULL;
    const bool as_json = job->session.common->json;
    if (status == QKV_OK)
        status =
            answer(job, &text[0], given[1] ? &text[1] : NULL, as_json ? &object : NULL, &error);
    free(input.bytes);
    if (status != QKV_OK)
        return job->usage ? cli_usage(job->session.command, "%s", error.message)
                          : cli_fail("%s", error.message);
    if (as_json && !json_print(stdout, object)) return EXIT_FAILED;
    return EXIT_OK;
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
        status = answer(job, &text[0], n_texts > 1 ? &text[1] : NULL, object, error);
    json_decref(root);
    return status;
}

/* Every line has its answer, if only {"error": ...}. */
static int run_lines(struct text_job *job) {
    struct jsonl lines = { .number = 0 };
    qkv_status status = QKV_OK;
    qkv_error error;
    bool all_well = true, written = true;
    while (written && jsonl_next(&lines, &status, &error)) {
        json_t *object = NULL;
        if (status == QKV_OK) status = answer_line(job, &lines.line, &object, &error);
        if (status != QKV_OK) {
            char message[600];
            snprintf(message, sizeof message, "line %" PRId64 ": %s", lines.number, error.message);
            json_decref(object);
            object = json_pack("{s:o}", "error", json_text(message));
            all_well = false;
        }
        written = json_print(stdout, object) && cli_flush();
    }
    free(lines.line.bytes);
    if (ferror(stdin)) return cli_fail("standard input: %s", strerror(errno));
    return all_well && written ? EXIT_OK : EXIT_FAILED;
}

int text_job_run(struct text_job *job, int n_words, char **words) {
    const struct cli_command *command = job->session.command;
    int code;
    if (!job->session.common->jsonl)
        code = run_words(job, n_words, words);
    else if (n_words > 0 || job->pair)
        code = cli_usage(command, "--jsonl reads texts from standard input, not '%s'",
                         n_words > 0 ? words[0] : job->pair);
    else
        code = run_lines(job);
    session_close(&job->session);
    return code;
}
