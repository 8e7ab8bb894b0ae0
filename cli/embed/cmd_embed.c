/* `qkv embed`: texts to vectors, and which texts are near each other. */
#include "embed/embed.h"

#include "common/conflicts.h"
#include "common/hints.h"
#include "common/ranks.h"

#include "qkv/files.h"

/* --tokens: of few texts. */
static int answer_tokens(const struct embed *e, qkv_error *error) {
    return cli_status(embed_tokens(e, error), error);
}

static int deliver(const struct embed *e) {
    const struct embed_options *const o = e->options;
    qkv_error error;
    if (o->out) return cli_status(embed_write(e, &error), &error);
    if (!o->common.json) return cli_status(embed_print(e, &error), &error);
    return json_print(stdout, embed_json(e)) ? EXIT_OK : EXIT_FAILED;
}

/* The first rank has the texts, and the answer. */
static int answer(struct embed *e, int n_words, char **words) {
    const struct embed_options *const o = e->options;
    const bool first = ranks_rank() == 0;
    qkv_error error;
    if (o->pairs) return cli_status(embed_pairs(e, &error), &error);
    if (!e->session->tokenizer && !o->image)
        return cli_fail("%s: a %s reads images, not texts: --image F", e->session->info->source,
                        e->session->info->architecture);
    if (o->image && n_words > 0) return embed_match(e, n_words, words);
    if (first && n_words == 1) hints_say_file(e->session, words[0]);
    qkv_status status = o->out && first ? qkv_file_writable(o->out, &error) : QKV_OK;
    if (status == QKV_OK && o->image) {
        status = embed_see(e, &error);
        return status == QKV_OK ? deliver(e) : cli_status(status, &error);
    }
    if (status == QKV_OK)
        status = first ? embed_read(e, n_words, words, &error) : embed_find_prompt(e, &error);
    if (status == QKV_OK && o->tokens) return answer_tokens(e, &error);
    if (status == QKV_OK) status = embed_begin(e, &error);
    const int code = ranks_agree(cli_status(status, &error));
    if (code) return code;
    status = embed_compute(e, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    return first ? deliver(e) : EXIT_OK;
}

static int check(const struct cli_command *command, const struct embed_options *o, int n_words) {
    const char *const no_image = option_first(
        command, o, 0,
        "--file|--journal|--similar|--top|--prompt|--no-prompt|--pooling|--normalize|--tokens|--word");
    const char *const no_pairs = option_first(
        command, o, 0,
        "--file|--image|--journal|--similar|--prompt|--no-prompt|--pooling|--normalize|--tokens|"
        "--word|--layer");
    if (o->pairs && no_pairs) return cli_usage(command, "--pairs together with %s", no_pairs);
    if (o->pairs && n_words > 0) return cli_usage(command, "--pairs together with a text");
    if (o->image && no_image) return cli_usage(command, "--image together with %s", no_image);
    if (o->image && o->out && n_words > 0)
        return cli_usage(command, "-o writes vectors: --image without a text has one");
    if (o->file && n_words > 0) return cli_usage(command, "--file together with a text");
    if (!o->file && !o->image && !o->pairs && n_words == 0)
        return cli_usage(command, "TEXT or --file is missing");
    if (o->journal && (!o->file || o->tokens))
        return cli_usage(command, "--journal goes with --file, without --tokens");
    if (o->out && o->common.json) return cli_usage(command, "-o together with --json");
    if (o->out && !text_ends(o->out, ".npy") && !text_ends(o->out, ".json"))
        return cli_usage(command, "-o: '%s' ends in none of .npy .json", o->out);
    if (o->out && o->similar && text_ends(o->out, ".npy"))
        return cli_usage(command, "-o: --similar makes a list: FILE.json, or no --similar");
    if (o->prompt && o->no_prompt) return cli_usage(command, "--prompt together with --no-prompt");
    const char *const of_texts =
        option_first(command, o, 0, "--similar|--top|--pooling|--normalize|--prompt|--no-prompt");
    if (o->tokens && of_texts)
        return cli_usage(command, "--tokens together with %s, which is of texts", of_texts);
    if (!o->tokens && (o->word || o->token_layer.set))
        return cli_usage(command, "%s goes with --tokens", o->word ? "--word" : "--layer");
    if (o->top.set && !o->similar && !o->pairs)
        return cli_usage(command, "--top without --similar or --pairs");
    return EXIT_OK;
}

static int embed(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct embed_options *options = data;
    struct session session;
    int code = check(command, options, n_words);
    if (code) return code;
    if (options->out) cli_catch_interrupts();
    if (options->file && !options->tokens) code = ranks_begin(false);
    if (!code) code = session_open(&session, command, &options->common);
    if (!code) {
        struct embed e = { .session = &session, .options = options };
        code = answer(&e, n_words, words);
        embed_free(&e);
        session_close(&session);
    }
    code = ranks_agree(code);
    ranks_end();
    return code;
}

#define OPTIONS struct embed_options

static const struct cli_option embed_table[] = {
    OPTION_FILE("--file", "F", file, ".txt"),
    OPTION_FILE("--image", "F", image, ".png .jpg .jpeg"),
    OPTION_FILE("--pairs", "F", pairs, ".tsv .txt"),
    OPTION_FILE("--journal", "F", journal, "*"),
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
    .takes = TAKES_ANSWER | TAKES_TRUNCATE | TAKES_IMAGES,
    COMMAND_OPTIONS(embed_table),
    .over_ranks = true,
    .run = embed,
};
