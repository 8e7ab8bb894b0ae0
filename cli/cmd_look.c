/*
 * `qkv look`: where each token looks. Runs the model once with capture; look_*.c show what came
 * of it.
 */
#include "look.h"
#include "term.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A job over texts, and what else was asked for. */
struct look_job {
    struct text_job texts;
    struct head_name *list; /* of --heads */
    int n_list;
    struct what_if what_if;
    struct slide_rule slide;
};

static qkv_status write_json(const struct look *look, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = look_json(look, &object, error);
    if (status != QKV_OK) return status;
    return json_write_file(path, object, error);
}

/* What -o can write, by the file's ending. */
static const struct output {
    const char *ending;
    qkv_status (*write)(const struct look *look, const char *path, qkv_error *error);
} outputs[] = {
    { ".png", look_picture }, { ".svg", look_picture }, { ".pdf", look_picture },
    { ".html", look_page },   { ".json", write_json },  { ".csv", look_csv },
    { ".npy", look_npy },
};

static const struct output *output_of(const char *path) {
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < CLI_COUNT(outputs); i++)
        if (strcmp(dot, outputs[i].ending) == 0) return &outputs[i];
    return NULL;
}

/* One line about what was written, and how to see one head. */
static void tell_written(const struct look *look) {
    const struct choice *choice = &look->choice;
    const struct look_options *options = look->options;
    if (options->common.quiet) return;
    fputs("qkv: wrote ", stderr);
    term_print(stderr, options->out);
    if (!look->given && options->plot.set)
        fprintf(stderr, ", head %" PRId64 ".%" PRId64 ": %s; --head names another", choice->layer,
                choice->head, choice->rule);
    else if (!look->given && output_of(options->out)->write == look_picture)
        fprintf(stderr, ", all heads; try --head %" PRId64 ".%" PRId64 ": %s", choice->layer,
                choice->head, choice->rule);
    fputc('\n', stderr);
}

static qkv_status show(const struct look *look, json_t **json, qkv_error *error) {
    const char *out = look->options->out;
    if (json) return look_json(look, json, error);
    if (!out) return look_print(look, error);
    const bool plot = look->options->plot.set;
    const qkv_status status = (plot ? look_plot : output_of(out)->write)(look, out, error);
    if (status == QKV_OK) tell_written(look);
    return status;
}

static qkv_status answer(struct text_job *job, const qkv_encoding *input, json_t **json,
                         qkv_error *error) {
    const struct look_options *options = job->options;
    const struct look_job *self = (const struct look_job *)job;
    struct look look = { .session = &job->session,
                         .options = options,
                         .input = input,
                         .given = job->given,
                         .list = self->list,
                         .n_list = self->n_list,
                         .choice = { .layer = job->layer, .head = job->head } };
    qkv_status status = options->slide ? slide_make(&look, &self->what_if, &self->slide, error)
                                       : look_make(&look, &self->what_if, error);
    if (status == QKV_OK && options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    else if (status == QKV_OK)
        status = show(&look, json, error);
    look_free(&look);
    return status;
}

static int look_texts(const struct cli_command *command, const struct look_options *options,
                      int n_words, char **words) {
    struct look_job job = { .texts = { .options = options,
                                       .pair = options->pair,
                                       .file = options->file,
                                       .any_length = options->slide != NULL,
                                       .longer = look_which(options) == QKV_SELF
                                                     ? "--slide N looks at windows of it, "
                                                     : NULL,
                                       .which = look_which(options),
                                       .answer = answer } };
    struct text_job *const texts = &job.texts;
    int code = what_if_parse(command, &options->what_if, &job.what_if);
    if (code == EXIT_OK) code = slide_parse(command, options, &job.slide);
    if (code == EXIT_OK) code = text_job_open(texts, command, &options->common);
    if (code) return code;
    code = look_list_heads(command, options, &texts->session, &job.list, &job.n_list);
    if (code == EXIT_OK && job.n_list > 0) {
        texts->given = true;
        texts->layer = job.list[0].layer;
        texts->head = job.list[0].head;
    }
    qkv_error error;
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK)
        code = text_job_run(texts, n_words, words);
    else
        session_close(&texts->session);
    free(job.list);
    return code;
}

static int look(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct look_options *options = data;
    const struct output *output = options->out ? output_of(options->out) : NULL;
    int code = look_check_input(command, options, n_words);
    if (code == EXIT_OK) code = look_check_pair(command, options);
    if (code == EXIT_OK) code = look_check_plot(command, options);
    if (code == EXIT_OK)
        code = look_check_out(command, options, output, output && output->write == look_page);
    if (code) return code;
    if (options->out || options->q || options->slide) cli_catch_interrupts();
    return options->q ? look_arrays(command, options)
                      : look_texts(command, options, n_words, words);
}

#define OPTION(field) offsetof(struct look_options, field)

static const struct cli_option look_table[] = {
    { .name = "--pair",
      .argument = "TEXT",
      .help = "a second text, which the model sees as the next sentence",
      .kind = ARG_TEXT,
      .offset = OPTION(pair) },
    PAIR_TABLE(struct look_options, which),
    { .name = "--align",
      .help = "for each word of the target the word of the text that it looks at most: weights of "
              "the layer before the last, mean over its heads, or over those of --head or --heads",
      .kind = ARG_FLAG,
      .offset = OPTION(align) },
    { .name = "--top",
      .argument = "N",
      .help = "how many words for each [MASK], or for what comes next (default: 5)",
      .kind = ARG_INT,
      .offset = OPTION(top),
      .min = 1,
      .max = 1000 },
    { .name = "--file",
      .argument = "F",
      .help = "the text is what the file holds (- : standard input)",
      .kind = ARG_TEXT,
      .offset = OPTION(file),
      .suggest = "*" },
    { .name = "--slide",
      .argument = "N[,STRIDE]",
      .help =
          "look at windows of N tokens, each STRIDE after the one before (default: N), and show "
          "means over them",
      .kind = ARG_TEXT,
      .offset = OPTION(slide) },
    { .name = "--what-if",
      .argument = "causal|no-scale|temperature=T|drop=TOKEN",
      .help =
          "run the model so, in all layers and heads: each token sees itself and those before "
          "it; without the factor 1/sqrt(d); scores divided by T; without a token (its position "
          "from 0, or its text) as a key. May be given several times",
      .kind = ARG_TEXTS,
      .offset = OPTION(what_if),
      .suggest = "causal|no-scale|temperature=|drop=" },
    { .name = "--heads",
      .argument = "L.H,L.H...",
      .help = "the heads of a page, the one that it shows first at the front; or of --align",
      .kind = ARG_TEXT,
      .offset = OPTION(heads) },
    { .name = "--q",
      .argument = "F",
      .help = "queries, [L,D], [H,L,D] or [1,H,L,D] (F.npy, F.npz:NAME or F.safetensors:NAME), in "
              "place of a "
              "text",
      .kind = ARG_TEXT,
      .offset = OPTION(q),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--k",
      .argument = "F",
      .help = "keys, with --q; of fewer heads or of another length, too",
      .kind = ARG_TEXT,
      .offset = OPTION(k),
      .suggest = ".npy .npz .safetensors" },
    { .name = "--tokens",
      .argument = "F",
      .help = "names of the keys of --k, one a line (default: their numbers)",
      .kind = ARG_TEXT,
      .offset = OPTION(tokens),
      .suggest = "*" },
    { .name = "--q-tokens",
      .argument = "F",
      .help = "names of the queries of --q, one a line (default: those of the keys where they are "
              "as many, else their numbers)",
      .kind = ARG_TEXT,
      .offset = OPTION(q_tokens),
      .suggest = "*" },
    { .name = "--causal",
      .argument = "top-left|bottom-right|OFFSET",
      .help = "with --q: query i sees keys j <= i + OFFSET; top-left: 0, bottom-right: the last "
              "query sees the last key",
      .kind = ARG_TEXT,
      .offset = OPTION(causal),
      .suggest = "top-left|bottom-right" },
    { .name = "--window",
      .argument = "LEFT,RIGHT",
      .help = "with --q: a query sees so many keys before and after its place (-1: all)",
      .kind = ARG_TEXT,
      .offset = OPTION(window) },
    { .name = "--scale",
      .argument = "X",
      .help = "with --q: the factor on q.k (default: 1 / sqrt(D))",
      .kind = ARG_REAL,
      .offset = OPTION(scale) },
    { .name = "--pool",
      .argument = "peak|mass",
      .help = "with --q: what a cell stands for where a picture has more weights than cells: the "
              "largest of them (default), or the queries' weight on its keys; with .npy and .csv: "
              "write such cells, at most 1024 a side",
      .kind = ARG_CHOICE,
      .offset = OPTION(pool) },
    { .name = "--plot",
      .argument = "queries|received|offsets",
      .help = "write a chart of one head, that of --head or the chosen one: of each query the "
              "entropy and the largest of its weights; what each key receives of all queries; the "
              "mean weight by distance of the key from the query (-o FILE.png, .svg, .pdf or .csv)",
      .kind = ARG_CHOICE,
      .offset = OPTION(plot) },
    { .name = "--map",
      .argument = "cosine|inner",
      .help =
          "of a page: the map of the head that it shows first, by t-SNE with this distance, also "
          "of more than 4096 queries and keys together, by the method of Barnes and Hut (up to "
          "65536; 16384 take seconds). Without it a page has maps by cosine of fewer",
      .kind = ARG_CHOICE,
      .offset = OPTION(map) },
    { .name = "-o",
      .argument = "FILE",
      .help = "write a file instead, of all heads or of the one of --head: a page for a browser "
              "(.html), a picture (.png, .svg, .pdf), the weights (.npy, .csv) or what --json "
              "prints (.json)",
      .kind = ARG_TEXT,
      .offset = OPTION(out),
      .suggest = ".html .png .svg .pdf .npy .csv .json" },
};

const struct cli_command cmd_look = {
    .name = "look",
    .summary = "where each token looks: predictions, all heads, one heat map",
    .words = "TEXT",
    .details =
        "Runs the model on a text and shows what attention did: the likeliest words for each "
        "[MASK], a thumbnail of every head (rows: layers, columns: heads, both from 0) with a "
        "label where a rule gives one, and the heat map of one head: that of --head, else the one "
        "in which [MASK] looks most sharply at a content word. Rows of a map are the tokens that "
        "look (queries), columns those looked at (keys).\n\n"
        "    qkv look \"I was watching the [MASK] when it opened.\"\n"
        "    qkv look \"I was watching the [MASK] when it opened.\" --head 1.2 -o head.png\n"
        "    qkv look \"I was watching the [MASK] when it opened.\" -o page.html\n\n"
        "-o FILE.html is one file that any browser opens without a network: it holds the queries "
        "and keys of the heads and computes every weight from them, so that its size grows with "
        "the text and not with its square. It has the map of the head that it shows first, as of "
        "`qkv map`, and of all where that is quick; Ctrl-C ends a map, and the page has the best "
        "so far. Above 32 MB it keeps the heads with the sharpest queries, or the first of "
        "--heads, "
        "and says so; one head, named with --head, is always written.\n\n"
        "Of a decoder (GPT-2) each token sees itself and those before it: keys that are hidden "
        "from a query "
        "have no cell, null in JSON, NaN in .npy and an empty field in .csv. Shown are the "
        "likeliest "
        "tokens that come next, the perplexity of the text, and the head that continues a "
        "repetition "
        "most, else the one in which a token looks most sharply at a content word before it.\n\n"
        "Of an encoder-decoder (BART, Marian) it is the encoder; --cross is the decoder's "
        "attention "
        "to the text while it writes (its own translation, or --target TEXT) and --decoder that to "
        "itself: a row is a token that it "
        "read, and the one "
        "that it predicts from there. --align prints which word of the text each word of the "
        "target looks "
        "at most.\n\n"
        "    qkv look \"a red fox followed two cats\" --model models/translator --cross\n\n"
        "--file F takes the text from a file. One that is longer than the model takes is looked at "
        "in "
        "windows of N tokens with --slide N[,STRIDE]: shown are means over all windows, by place "
        "in "
        "the window, and where each looks most sharply; a page has the windows to choose from.\n\n"
        "    qkv look --file book.txt --slide 40,20\n\n"
        "--what-if asks what the model would have done with other attention, in all of its layers "
        "and "
        "heads. Predictions are then shown before and after, and everything is marked: "
        "modified: not what the model computed.\n\n"
        "    qkv look \"I was watching the [MASK] when it opened.\" --what-if drop=watching\n\n"
        "--q F --k F looks at queries and keys of any model, without it, at any length: F.npy, "
        "F.npz:NAME or F.safetensors:NAME, [L,D], [H,L,D] or [1,H,L,D], k perhaps of fewer heads "
        "or of another "
        "length. Nothing then stores queries x keys: a picture of more than 1024 tokens is pooled, "
        "a page computes any weight from its q and k, and .npy and .csv, up to a limit, hold all "
        "weights or, with --pool, the cells of tiles.\n\n"
        "    qkv look --q q.npy --k k.npy --causal top-left -o page.html\n"
        "    qkv look --q q.npy --k k.npy --pool mass -o map.png\n\n"
        "-o FILE.npy holds the weights, [layers, heads, n, n], with --head [n, n]. FILE.csv "
        "has a line for each weight, layer,head,query,key,weight; with --head a line for each "
        "query, and the tokens as first line and column. FILE.svg and FILE.pdf have text that can "
        "be searched.\n\n"
        "--plot queries, received or offsets writes a chart of one head, as a picture or as the "
        "numbers in it (.csv); of arrays without storing their weights.\n\n"
        "    qkv look \"I was watching the [MASK].\" --plot received -o keys.png\n"
        "    qkv look --q q.npy --k k.npy --plot offsets -o distances.csv\n\n"
        "--json: {\"tokens\", \"predictions\", \"heads\": [{\"layer\", \"head\", \"label\", "
        "\"entropy\", ...}], \"sharpest\"}, with --head also \"weights\", a row for each query; of "
        "an "
        "ELECTRA discriminator \"replaced\", for each token the probability that it stands in "
        "place of another.",
    .min_words = 0,
    .max_words = 1,
    .takes = TAKES_MODEL | TAKES_WEIGHTS | TAKES_HEAD | TAKES_COMPUTE | TAKES_TERM |
             TAKES_TRUNCATE | TAKES_JSON | TAKES_JSONL | TAKES_QUIET | TAKES_VERBOSE,
    .options = look_table,
    .n_options = CLI_COUNT(look_table),
    .options_bytes = sizeof(struct look_options),
    .run = look,
};
