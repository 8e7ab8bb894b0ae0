/* `qkv embed`: texts to vectors, and which texts are near each other. */
#include "embed/embed.h"

#include "common/given.h"

#include "qkv/files.h"

#include <math.h>
#include <stdlib.h>

/*
 * Texts between two looks at the progress and at Ctrl-C: at most CHUNK, and fewer where a model is
 * large, so that the bar moves about twice a second on one core; but enough for batches.
 */
enum { CHUNK = 1024, LEAST_CHUNK = 16 };

static int64_t chunk_from(const struct embed *e, int64_t first) {
    const double most = 2e10, /* multiplications */
        of_token = (double)e->session->info->n_parameters;
    double work = 0;
    int64_t n = 0;
    while (n < CHUNK && first + n < e->n && (n < LEAST_CHUNK || work < most))
        work += of_token * (double)e->encodings[first + n++]->n;
    return n;
}

static qkv_status compute(struct embed *e, qkv_error *error) {
    const struct embed_options *o = e->options;
    qkv_embed_options options = qkv_embed_options_init();
    struct progress progress;
    e->pooling = o->pooling.set ? (qkv_pooling)(o->pooling.value + QKV_POOLING_MEAN)
                                : e->session->info->pooling;
    options.pooling = o->pooling.set ? e->pooling : QKV_POOLING_DEFAULT;
    options.normalize = o->normalize;
    options.n_prompt = e->n_prompt;
    e->dim = o->pooling.set ? e->session->info->hidden : e->session->info->sentence_dim;
    e->vectors = calloc((size_t)e->n, (size_t)e->dim * sizeof(*e->vectors));
    e->lengths = calloc((size_t)e->n, sizeof(*e->lengths));
    if (!e->vectors || !e->lengths) return text_no_memory(error);
    progress_begin(&progress, o->common.quiet);
    qkv_status status = QKV_OK;
    for (int64_t i = 0, n; status == QKV_OK && i < e->n; i += n) {
        n = chunk_from(e, i);
        if (cli_cancelled)
            status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
        else
            status = qkv_model_embed(e->session->ctx, e->session->model, n,
                                     (const qkv_encoding *const *)e->encodings + i, &options,
                                     e->vectors + i * e->dim, error);
        progress_bar(&progress, "vectors", i + n, e->n);
    }
    progress_end(&progress);
    for (int64_t i = 0; i < e->n; i++) {
        const float *const vector = e->vectors + i * e->dim;
        e->lengths[i] = sqrt(rows_product(vector, vector, e->dim));
    }
    return status;
}

static int answer(struct embed *e, int n_words, char **words) {
    const struct embed_options *o = e->options;
    qkv_error error;
    qkv_status status = o->out ? qkv_file_writable(o->out, &error) : QKV_OK;
    if (status == QKV_OK) status = embed_read(e, n_words, words, &error);
    if (status == QKV_OK && o->tokens) {
        status = embed_tokens(e, &error);
        return status == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
    }
    if (status == QKV_OK) status = compute(e, &error);
    if (status == QKV_OK && o->out) status = embed_write(e, &error);
    if (status == QKV_OK && !o->out && !o->common.json) status = embed_print(e, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return o->out || !o->common.json || json_print(stdout, embed_json(e)) ? EXIT_OK : EXIT_FAILED;
}

static int check(const struct cli_command *command, const struct embed_options *o, int n_words) {
    if (o->file && n_words > 0) return cli_usage(command, "--file together with a text");
    if (!o->file && n_words == 0) return cli_usage(command, "TEXT or --file is missing");
    if (o->out && o->common.json) return cli_usage(command, "-o together with --json");
    if (o->out && !text_ends(o->out, ".npy") && !text_ends(o->out, ".json"))
        return cli_usage(command, "-o: '%s' ends in none of .npy .json", o->out);
    if (o->out && o->similar && text_ends(o->out, ".npy"))
        return cli_usage(command, "-o: --similar makes a list: FILE.json, or no --similar");
    if (o->prompt && o->no_prompt) return cli_usage(command, "--prompt together with --no-prompt");
    const char *const of_texts =
        given_first(command, o, 0, "--similar|--top|--pooling|--normalize|--prompt|--no-prompt");
    if (o->tokens && of_texts)
        return cli_usage(command, "--tokens together with %s, which is of texts", of_texts);
    if (!o->tokens && (o->word || o->token_layer.set))
        return cli_usage(command, "%s goes with --tokens", o->word ? "--word" : "--layer");
    if (o->top.set && !o->similar) return cli_usage(command, "--top without --similar");
    return EXIT_OK;
}

static int embed(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct embed_options *options = data;
    struct session session;
    int code = check(command, options, n_words);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    code = session_open(&session, command, &options->common);
    if (code) return code;
    struct embed e = { .session = &session, .options = options };
    code = answer(&e, n_words, words);
    embed_free(&e);
    session_close(&session);
    return code;
}

#define OPTIONS struct embed_options

static const struct cli_option embed_table[] = {
    OPTION_FILE("--file", "F", file, ".txt"),
    OPTION_TEXT("--similar", "TEXT", similar),
    OPTION_INT("--top", "N", top, 1, 1000),
    OPTION_TEXT("--prompt", "PROMPT", prompt),
    OPTION_FLAG("--no-prompt", no_prompt),
    OPTION_CHOICE("--pooling", "mean|cls|max|sqrt|weighted|last", pooling),
    OPTION_FLAG("--normalize", normalize),
    OPTION_FLAG("--tokens", tokens),
    OPTION_TEXT("--word", "TOKEN", word),
    OPTION_INT("--layer", "N", token_layer, 0, 1000000),
    OPTION_FILE("-o", "FILE", out, ".npy .json"),
};

const struct cli_command cmd_embed = {
    .name = "embed",
    .summary = "vectors of texts, and which texts are alike",
    .words = "[TEXT...]",
    .max_words = 65536,
    .takes = TAKES_ANSWER | TAKES_TRUNCATE,
    COMMAND_OPTIONS(embed_table),
    .run = embed,
};
