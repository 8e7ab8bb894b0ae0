/* `qkv look`: where each token looks. Its options, and which of them go together. */
#include "common/conflicts.h"
#include "look/job.h"

/* ---- Rules ----------------------------------------------------------------------------------- */

#define DECODER "--cross|--decoder|--align"
/* What shows weights of heads, beside what rollout and norms show in their place. */
#define FLOWS_NOT                                                                                  \
    "--align|--slide|--heads|--q|--plot|--pool|--map|--lens|--effect|--against|--serve"

/*
 * --q and --k are in place of a text and its model; a source has a target, and nothing that is of
 * one text only.
 */
static const struct option_conflict inputs[] = {
    { .these = "--q", .without = "--k", .message = "%s without --k" },
    { .these = "--k", .without = "--q", .message = "%s without --q" },
    { .these = "--tokens|--q-tokens|--causal|--window|--scale|--softcap|--sink|--alibi|--kv-len|"
               "--pool",
      .without = "--q",
      .message = "%s goes with --q and --k, not with a text" },
    { .without = "--q|a text|--jsonl|--file|--serve|--image", .message = "TEXT is missing" },
    { .these = "--image",
      .with = "a text|--pair|" DECODER "|--target|--slide|--jsonl|--truncate|--q|--file|"
              "--serve|--lens|--group|--plot|--pool|--map|--heads|--values" },
    { .these = "--query|--smooth|--opacity",
      .without = "--image",
      .message = "%s goes with --image" },
    { .these = "--rollout", .with = "--head|--layer|--cross" },
    { .these = "--rollout|--norms", .with = FLOWS_NOT },
    { .these = "--norms", .with = "--rollout|--image" },
    { .these = "--fuse", .without = "--rollout", .message = "%s goes with --rollout" },
    { .these = "--ids", .with = "--pair|--q|--image|--serve|" DECODER },
    { .these = "--mpi", .with = "--kv-len|--sink|--alibi" },
    { .these = "--mpi", .without = "--q", .message = "%s goes with --q and --k" },
    { .these = "--file", .with = "a text|--jsonl|--q" },
    { .these =
          "a text|--pair|" DECODER "|--target|--top|--what-if|--slide|--jsonl|--model|--truncate|"
          "--weights|--check-finite",
      .with = "--q",
      .message = "--q and --k together with %s" },
    PAIR_RULES(DECODER, "--cross, --decoder or --align"),
    { .these = "--decoder", .with = "--align" },
    { .these = DECODER, .with = "--pair|--slide|--jsonl" },
    { .these = "--lens",
      .with = DECODER "|--target|--slide|--what-if|--plot|--pool|--q|--against" },
    { .these = "--effect", .with = DECODER "|--slide|--what-if|--jsonl|--q|--against|--plot" },
    { .these = "--group", .without = "--effect", .message = "%s goes with --effect" },
    { .these = "--port", .without = "--serve", .message = "%s goes with --serve" },
    { .these = "--serve",
      .with = "-o|--json|--jsonl|--file|--q|--lens|--against|--align|--plot|--pool" },
    { .these = "--against", .with = "--align|--slide|--heads|--plot|--map|--pool|--q" },
};

/* The numbers of a chart are its .csv, so nothing is lost by what is refused. */
static const struct option_conflict charts[] = {
    { .these = "--plot",
      .with = "--json|--jsonl",
      .message = "%s together with %s: the numbers of a chart are -o FILE.csv" },
    { .these = "--plot",
      .without = "-o",
      .message = "%s writes a chart: -o FILE.png, .svg, .pdf or .csv" },
    { .these = PICTURE_CELLS "|--size",
      .with = "--plot",
      .message = "%s together with %s: a chart has no cells" },
};

static int check_plot(const struct cli_command *command, const struct look_options *o) {
    if (!o->sink.plot.set) return EXIT_OK;
    if (path_ending(o->out, PICTURES " .csv") < 0)
        return cli_usage(
            command, "-o: '%s' ends in none of .png .svg .pdf .csv, which --plot writes", o->out);
    if (o->heads) return cli_usage(command, "--plot is of one head: --head L.H, not --heads");
    if (o->which.cross && o->sink.plot.value == PLOT_OFFSETS)
        return cli_usage(command, "--plot offsets: --cross has queries and keys of two texts, "
                                  "between which there are no distances");
    return o->sink.pool.set
               ? cli_usage(command, "--plot together with --pool: a chart has no tiles")
               : EXIT_OK;
}

/* What goes with --lens in a page only, which has it beside the heads. */
static const struct option_conflict lens_alone[] = {
    { .these = "--lens", .with = "--top|--heads|--head|--layer|--map|-o" },
};
static const struct option_conflict against_page[] = {
    { .these = "--against", .with = "--cross|--decoder", .message = "%s with %s writes no page" },
};

static int check_page(const struct cli_command *command, const struct look_options *o,
                      int n_words) {
    const bool page = path_ending(o->out, ".html") == 0;
    if (o->lens && !page)
        return conflicts_check(command, o, n_words, lens_alone, CLI_COUNT(lens_alone));
    return page ? conflicts_check(command, o, n_words, against_page, CLI_COUNT(against_page))
                : EXIT_OK;
}

/* What --against has of one head: a picture, and of two images maps on the terminal. */
static int check_against(const struct cli_command *command, const struct look_options *o) {
    const bool picture = path_ending(o->out, PICTURES) >= 0,
               maps = o->image && !o->out && !o->common.json;
    if (!o->against || !o->common.head || picture || maps) return EXIT_OK;
    return cli_usage(command, "--against together with --head: what changed in one head is a "
                              "picture, -o FILE.png, .svg or .pdf");
}

static int check_out(const struct cli_command *command, const struct look_options *o) {
    const bool page = o->serve || path_ending(o->out, ".html") == 0;
    const int code = path_check_ending(command, o->out, o->align ? ALIGNED : ENDINGS);
    if (code) return code;
    if (o->out && (o->common.json || o->common.jsonl))
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    if (o->heads && !page && !o->align)
        return cli_usage(command, "--heads chooses the heads of a page: -o FILE.html");
    if (o->sink.map.set && (!page || o->windows))
        return cli_usage(command,
                         page ? "--map together with --slide" : "--map is of a page: -o FILE.html");
    if (o->effect && !page)
        return cli_usage(command, "--effect is of a page: -o FILE.html; 'qkv heads --effect' "
                                  "prints a table");
    if (o->against && o->out && path_ending(o->out, ".html " PICTURES " .json") < 0)
        return cli_usage(command,
                         "-o: '%s' ends in none of .html " PICTURES " .json, which --against "
                         "writes",
                         o->out);
    if (o->heads && (o->common.head || o->common.layer.set))
        return cli_usage(command, "--heads together with %s",
                         o->common.head ? "--head" : "--layer");
    return EXIT_OK;
}

/* A page computes weights. A rollout of an image has no weights from one token to another. */
static int check_flow_out(const struct cli_command *command, const struct look_options *o) {
    const char *const endings = o->image ? PICTURES " .json" : PICTURES " .json .csv .npy";
    if (path_ending(o->out, endings) >= 0) return EXIT_OK;
    return cli_usage(command, "-o: '%s' ends in none of %s, which %s writes", o->out, endings,
                     o->rollout ? "--rollout" : "--norms");
}

static int check(const struct cli_command *command, const struct look_options *o, int n_words) {
    int code = conflicts_check(command, o, n_words, inputs, CLI_COUNT(inputs));
    if (code == EXIT_OK && o->align && o->out && path_ending(o->out, ALIGNED) < 0)
        code = cli_usage(command,
                         "--align prints a table, or writes -o FILE" PICTURES ", .json or .txt");
    if (code == EXIT_OK && (o->rollout || o->norms) && o->out) code = check_flow_out(command, o);
    if (code == EXIT_OK && o->softcap.set && !(o->softcap.value > 0))
        code = cli_usage(command, "--softcap: %g is not above 0", o->softcap.value);
    if (code == EXIT_OK) code = scale_check(command, &o->scale);
    if (code == EXIT_OK && o->opacity.set && !(o->opacity.value > 0 && o->opacity.value <= 1))
        code = cli_usage(command, "--opacity %g: must be above 0 and at most 1", o->opacity.value);
    if (code == EXIT_OK) code = conflicts_check(command, o, n_words, charts, CLI_COUNT(charts));
    if (code == EXIT_OK)
        code = picture_check(command, o, &o->sink.picture, o->out,
                             o->against && (o->common.head || o->common.layer.set) ? "--against"
                                                                                   : NULL);
    if (code == EXIT_OK) code = check_page(command, o, n_words);
    if (code == EXIT_OK) code = check_against(command, o);
    if (code == EXIT_OK) code = check_plot(command, o);
    return code ? code : check_out(command, o);
}

/* ---- The command ----------------------------------------------------------------------------- */

static int look(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct look_options *o = data;
    const int code = check(command, o, n_words);
    if (code) return code;
    if (o->out || o->q || o->windows || o->serve) cli_catch_interrupts();
    if (o->serve) return look_serve(command, o, n_words > 0 ? words[0] : NULL);
    if (o->image) return look_image(command, o);
    return o->q ? look_arrays(command, o) : look_texts(command, o, n_words, words);
}

#define OPTIONS struct look_options

static const struct cli_option look_table[] = {
    OPTION_TEXT("--pair", "TEXT", pair),
    PAIR_TABLE(which),
    OPTION_FLAG("--align", align),
    OPTION_INT("--top", "N", top, 1, 1000),
    OPTION_FILE("--file", "F", file, "*"),
    OPTION_TEXT("--slide", "N[,STRIDE]", windows),
    WHAT_IF_ROW(what_if),
    OPTION_FLAG("--norms", norms),
    OPTION_FLAG("--rollout", rollout),
    OPTION_CHOICE("--fuse", "mean|max|min", fuse),
    OPTION_TEXT("--heads", "L.H,L.H...", heads),
    OPTION_FILE("--q", "F", q, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--k", "F", k, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--tokens", "F", tokens, "*"),
    OPTION_FILE("--q-tokens", "F", q_tokens, "*"),
    OPTION_FILE("--causal", "top-left|bottom-right|OFFSET", causal, "top-left|bottom-right"),
    OPTION_TEXT("--window", "LEFT,RIGHT", window),
    OPTION_REAL("--scale", "X", scale),
    OPTION_REAL("--softcap", "X", softcap),
    OPTION_FILE("--sink", "F", sinks, ".npy .npz .safetensors .csv .tsv"),
    OPTION_FILE("--alibi", "F", alibi, ".npy .npz .safetensors .csv .tsv"),
    OPTION_INT("--kv-len", "N", kv_len, 1, INT64_MAX),
    OPTION_CHOICE("--pool", "peak|mass", sink.pool),
    OPTION_CHOICE("--plot", "queries|received|offsets", sink.plot),
    OPTION_CHOICE("--map", "cosine|inner", sink.map),
    OPTION_FILE("--image", "F", image, ".png .jpg .jpeg"),
    OPTION_TEXT("--query", "R,C|CLS|all", query),
    OPTION_REAL("--opacity", "X", opacity),
    OPTION_FLAG("--smooth", smooth),
    OPTION_FLAG("--lens", lens),
    OPTION_FLAG("--effect", effect),
    OPTION_TEXTS("--group", "layers|labels|all|L.H,L.*...", groups),
    OPTION_FILE("--against", "MODEL", against, "/"),
    OPTION_FLAG("--serve", serve),
    OPTION_INT("--port", "N", port, 1, 65535),
    OPTION_FLAG("--mpi", mpi),
    PICTURE_TABLE(sink.picture),
    OPTION_FILE("-o", "FILE", out, ENDINGS " .txt"),
};

const struct cli_command cmd_look = {
    .name = "look",
    .summary = "where each token looks: predictions, all heads, one heat map",
    .words = "TEXT",
    .max_words = 1,
    .takes = TAKES_TEXTS | TAKES_HEAD | TAKES_IMAGES,
    COMMAND_OPTIONS(look_table),
    .run = look,
};
