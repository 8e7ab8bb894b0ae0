/* `qkv lookup`: a dictionary that finds by meaning, and what it is beside a plain one. */
#include "lookup/lookup.h"

#include "common/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Standard input whole, as a table. */
static qkv_status read_stdin(qkv_table **table, qkv_error *error) {
    enum { LIMIT = 1 << 26 };
    struct text text;
    if (!text_read(stdin, LIMIT, &text)) return text_no_memory(error);
    const qkv_status status =
        ferror(stdin) ? text_error(error, QKV_ERR_IO, "standard input: %s", strerror(errno))
                      : qkv_table_parse("standard input", text.bytes, text.n, table, error);
    free(text.bytes);
    return status;
}

static void lookup_free(struct lookup *l) {
    free(l->q);
    free(l->k);
    free(l->unknown);
    free(l->values);
    free(l->entropy);
    free(l->top_keys);
    free(l->top_weights);
}

static int answer(struct lookup *l) {
    qkv_error error;
    json_t *json = NULL;
    qkv_status status = lookup_vectors(l, &error);
    if (status == QKV_OK) status = lookup_compute(l, &error);
    if (status == QKV_OK)
        status = l->options->common.json ? lookup_json(l, &json, &error) : lookup_print(l, &error);
    lookup_free(l);
    if (status != QKV_OK) return cli_fail("%s", error.message);
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
    return EXIT_OK;
}

static int lookup(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct lookup_options *options = data;
    struct session session;
    qkv_table *table = NULL;
    qkv_error error;
    int code = check(command, options, n_words);
    if (code) return code;
    const qkv_status status = strcmp(words[0], "-") == 0 ? read_stdin(&table, &error)
                                                         : qkv_table_read(words[0], &table, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    code = session_open(&session, command, &options->common);
    if (code == EXIT_OK) {
        struct lookup l = { .session = &session,
                            .options = options,
                            .table = table,
                            .n_queries = n_words - 1,
                            .queries = words + 1 };
        code = answer(&l);
        session_close(&session);
    }
    qkv_table_free(table);
    return code;
}

#define OPTIONS struct lookup_options

static const struct cli_option lookup_table[] = {
    OPTION_CHOICE("--metric", "cosine|dot", metric),
    OPTION_REAL("--temperature", "X", temperature),
    OPTION_FLAG("--hard", hard),
    OPTION_INT("--top", "N", top, 1, 64),
    OPTION_FLAG("--sentence", sentence),
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
