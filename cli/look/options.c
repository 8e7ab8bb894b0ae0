/* Which options of `qkv look` go together, and the heads that --heads names. */
#include "look/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/given.h"
#include "common/number.h"

/* ---- Rules ----------------------------------------------------------------------------------- */

#define DECODER "--cross|--decoder|--align"

/*
 * --q and --k are in place of a text and its model; a source has a target, and nothing that is of
 * one text only.
 */
static const struct given_rule inputs[] = {
    { .these = "--q", .without = "--k", .message = "%s without --k" },
    { .these = "--k", .without = "--q", .message = "%s without --q" },
    { .these = "--tokens|--q-tokens|--causal|--window|--scale|--pool",
      .without = "--q",
      .message = "%s goes with --q and --k, not with a text" },
    { .without = "--q|a text|--jsonl|--file|--serve", .message = "TEXT is missing" },
    { .these = "--mpi", .without = "--q", .message = "%s goes with --q and --k" },
    { .these = "--file", .with = "a text|--jsonl|--q" },
    { .these =
          "a text|--pair|" DECODER "|--target|--top|--what-if|--slide|--jsonl|--model|--truncate",
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
static const struct given_rule charts[] = {
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
    if (given_ending(o->out, PICTURES " .csv") < 0)
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
static const struct given_rule lens_alone[] = {
    { .these = "--lens", .with = "--top|--heads|--head|--layer|--map|-o" },
};
static const struct given_rule against_page[] = {
    { .these = "--against", .with = "--cross|--decoder", .message = "%s with %s writes no page" },
};

static int check_page(const struct cli_command *command, const struct look_options *o,
                      int n_words) {
    const bool page = given_ending(o->out, ".html") == 0;
    if (o->lens && !page)
        return given_check(command, o, n_words, lens_alone, CLI_COUNT(lens_alone));
    return page ? given_check(command, o, n_words, against_page, CLI_COUNT(against_page)) : EXIT_OK;
}

static int check_out(const struct cli_command *command, const struct look_options *o) {
    const bool page = o->serve || given_ending(o->out, ".html") == 0;
    const int code = given_check_ending(command, o->out, ENDINGS);
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
    if (o->against && o->out && given_ending(o->out, ".html " PICTURES " .json") < 0)
        return cli_usage(command,
                         "-o: '%s' ends in none of .html " PICTURES " .json, which --against "
                         "writes",
                         o->out);
    if (o->heads && (o->common.head || o->common.layer.set))
        return cli_usage(command, "--heads together with %s",
                         o->common.head ? "--head" : "--layer");
    return EXIT_OK;
}

int look_check(const struct cli_command *command, const struct look_options *o, int n_words) {
    int code = given_check(command, o, n_words, inputs, CLI_COUNT(inputs));
    if (code == EXIT_OK && o->align && o->out && given_ending(o->out, PICTURES " .json") < 0)
        code = cli_usage(command, "--align prints a table, or writes -o FILE" PICTURES " or .json");
    if (code == EXIT_OK) code = given_check(command, o, n_words, charts, CLI_COUNT(charts));
    if (code == EXIT_OK)
        code = picture_check(command, o, &o->sink.picture, o->out,
                             o->against && (o->common.head || o->common.layer.set) ? "--against"
                                                                                   : NULL);
    if (code == EXIT_OK) code = check_page(command, o, n_words);
    if (code == EXIT_OK) code = check_plot(command, o);
    return code ? code : check_out(command, o);
}

/* ---- Lists of heads -------------------------------------------------------------------------- */

/* One name of n characters. */
static bool parse_one(const char *text, size_t n, struct head_name *name) {
    char copy[48];
    if (n >= sizeof copy) return false;
    snprintf(copy, sizeof copy, "%.*s", (int)n, text);
    name->layer = -1;
    return strchr(copy, '.') ? session_place(copy, &name->layer, &name->head)
                             : number_int(copy, 0, INT32_MAX, &name->head);
}

static bool is_in(const struct head_name *list, int n, const struct head_name *name) {
    for (int i = 0; i < n; i++)
        if (list[i].layer == name->layer && list[i].head == name->head) return true;
    return false;
}

int heads_parse(const struct cli_command *command, const char *option, const char *text,
                struct head_name **list, int *n) {
    *n = 0;
    *list = calloc(strlen(text) / 2 + 1, sizeof **list);
    if (!*list) return cli_fail("out of memory");
    for (const char *at = text;; at++) {
        const size_t bytes = strcspn(at, ",");
        struct head_name name;
        if (!parse_one(at, bytes, &name))
            return cli_usage(command, "%s: '%.*s' is not L.H or H", option, (int)bytes, at);
        if (is_in(*list, *n, &name))
            return cli_usage(command, "%s names %.*s twice", option, (int)bytes, at);
        (*list)[(*n)++] = name;
        at += bytes;
        if (!*at) return EXIT_OK;
    }
}

int heads_of_model(const struct look_options *options, const struct session *session,
                   struct head_name **list, int *n) {
    const struct cli_command *const command = session->command;
    if (!options->heads) return EXIT_OK;
    int code = heads_parse(command, "--heads", options->heads, list, n);
    for (int i = 0; code == EXIT_OK && i < *n; i++) {
        const struct head_name *name = &(*list)[i];
        char text[48];
        if (name->layer < 0)
            return cli_usage(command, "--heads: %" PRId64 " names no layer: L.%" PRId64, name->head,
                             name->head);
        snprintf(text, sizeof text, "%" PRId64 ".%" PRId64, name->layer, name->head);
        code = session_check_head(session, look_which(options), "--heads", text, name->layer,
                                  name->head, "model");
    }
    return code;
}
