/* `qkv lookup`: a dictionary that finds by meaning, and what it is beside a plain one. */
#include "lookup/lookup.h"

#include "common/conflicts.h"
#include "common/lines.h"
#include "common/shared.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Standard input whole, as a table. */
static qkv_status read_stdin(bool quiet, qkv_table **table, qkv_error *error) {
    enum { LIMIT = 1 << 26 };
    struct text text;
    if (!text_read(stdin, LIMIT, &text)) return text_no_memory(error);
    text_say_stdin_mark(&text, quiet);
    const qkv_status status =
        ferror(stdin) ? text_error(error, QKV_ERR_IO, "standard input: %s", strerror(errno))
                      : qkv_table_parse("standard input", text.bytes, text.n, table, error);
    free(text.bytes);
    return status;
}

static qkv_status read_table(const char *path, bool quiet, qkv_table **table, qkv_error *error) {
    char room[SHARED_ROOM];
    text_say_mark(path = shared_path(path, room), quiet);
    return qkv_table_read(path, table, error);
}

static void lookup_free(struct lookup *l) {
    free(l->q);
    free(l->k);
    free(l->unknown);
    free(l->values);
    free(l->entropy);
    free(l->top_keys);
    free(l->top_weights);
    free(l->lengths);
}

static int answer(struct lookup *l) {
    qkv_error error;
    json_t *json = NULL;
    qkv_status status = lookup_vectors(l, &error);
    if (status == QKV_OK) status = lookup_compute(l, &error);
    if (status == QKV_OK && l->options->out)
        status = lookup_plane(l, &error);
    else if (status == QKV_OK)
        status = l->options->common.json ? lookup_json(l, &json, &error) : lookup_print(l, &error);
    lookup_free(l);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    if (l->options->out) cli_note(l->options->common.quiet, "qkv: wrote %s", l->options->out);
    return !json || json_print(stdout, json) ? EXIT_OK : EXIT_FAILED;
}

static int check(const struct cli_command *command, const struct lookup_options *o, int n_words) {
    if (n_words < 2) return cli_usage(command, "%s is missing", n_words ? "QUERY" : "TABLE");
    if (o->temperature.set && !(o->temperature.value >= 1e-6 && o->temperature.value <= 1e6))
        return cli_usage(command, "--temperature: %g is not between 1e-6 and 1e6",
                         o->temperature.value);
    if (o->hard && (o->temperature.set || o->top.set))
        return cli_usage(command, "--hard together with %s",
                         o->temperature.set ? "--temperature" : "--top");
    const char *const of_model =
        option_first(command, o, 0, "--sentence|--model|--weights|--check-finite");
    if (o->vectors && of_model) return cli_usage(command, "--vectors together with %s", of_model);
    if (o->out && o->hard) return cli_usage(command, "-o together with --hard");
    const int code = path_check_out(command, &o->common, o->out, ".png .svg .pdf");
    return code ? code : picture_check(command, o, &o->picture, o->out, NULL);
}

/* A session with a model; or with --vectors without one. */
static int open_session(struct session *session, const struct cli_command *command,
                        const struct lookup_options *o) {
    if (!o->vectors) return session_open(session, command, &o->common);
    *session = (struct session){ .command = command, .common = &o->common };
    return session_context(command, &o->common, &session->ctx);
}

static int lookup(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct lookup_options *options = data;
    struct session session;
    qkv_table *table = NULL, *own = NULL;
    qkv_error error;
    int code = check(command, options, n_words);
    if (code) return code;
    const bool quiet = options->common.quiet, is_stdin = strcmp(words[0], "-") == 0;
    qkv_status status =
        is_stdin ? read_stdin(quiet, &table, &error) : read_table(words[0], quiet, &table, &error);
    if (status == QKV_OK && options->vectors)
        status = read_table(options->vectors, quiet, &own, &error);
    code =
        status == QKV_OK ? open_session(&session, command, options) : cli_fail("%s", error.message);
    if (code == EXIT_OK) {
        struct lookup l = { .session = &session,
                            .options = options,
                            .table = table,
                            .own = own,
                            .n_queries = n_words - 1,
                            .queries = words + 1 };
        code = answer(&l);
        session_close(&session);
    }
    qkv_table_free(table);
    qkv_table_free(own);
    return code;
}

#define OPTIONS struct lookup_options

static const struct cli_option lookup_table[] = {
    OPTION_CHOICE("--metric", "cosine|dot", metric),
    OPTION_REAL("--temperature", "X", temperature),
    OPTION_FLAG("--hard", hard),
    OPTION_INT("--top", "N", top, 1, 64),
    OPTION_FLAG("--sentence", sentence),
    OPTION_FILE("--vectors", "F", vectors, ".csv .tsv"),
    PICTURE_POINTS_TABLE(picture),
    OPTION_FILE("-o", "FILE", out, ".png .svg .pdf"),
};

const struct cli_command cmd_lookup = {
    .name = "lookup",
    .summary = "look a value up by meaning",
    .words = "TABLE QUERY...",
    .max_words = 4096,
    .suggest = ".csv .tsv",
    .takes = TAKES_ANSWER,
    COMMAND_OPTIONS(lookup_table),
    .run = lookup,
};
