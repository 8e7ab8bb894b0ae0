/* Options of `qkv look` that do not go together, and heads that a model does not have. */
#include <inttypes.h>
#include <string.h>

#include "look/look.h"

const char *look_pair_option(const struct look_options *o) {
    const char *option = pair_option(&o->which);
    return option ? option : o->align ? "--align" : NULL;
}

qkv_which look_which(const struct look_options *options) {
    const qkv_which which = pair_which(&options->which);
    return options->align ? QKV_CROSS : which;
}

/* A source has a target, given or written by the model, and nothing that is of one text only. */
int look_check_pair(const struct cli_command *command, const struct look_options *o) {
    const char *other = o->which.decoder && o->align ? "--align"
                        : o->pair                    ? "--pair"
                        : o->windows                 ? "--slide"
                        : o->common.jsonl            ? "--jsonl"
                                                     : NULL;
    const int code =
        pair_check(command, &o->which, look_pair_option(o), "--cross, --decoder or --align", other);
    if (code) return code;
    if (o->align && o->out && !strstr(o->out, ".json"))
        return cli_usage(command, "--align prints a table, or writes -o FILE.json");
    return EXIT_OK;
}

/* --q and --k in place of a text and its model; what belongs to either only. */
int look_check_input(const struct cli_command *command, const struct look_options *o, int n_words) {
    if (!o->q != !o->k)
        return cli_usage(command, "%s without %s", o->q ? "--q" : "--k", o->q ? "--k" : "--q");
    const char *of_arrays = o->tokens      ? "--tokens"
                            : o->q_tokens  ? "--q-tokens"
                            : o->causal    ? "--causal"
                            : o->window    ? "--window"
                            : o->scale.set ? "--scale"
                            : o->pool.set  ? "--pool"
                                           : NULL;
    if (!o->q && of_arrays)
        return cli_usage(command, "%s goes with --q and --k, not with a text", of_arrays);
    if (!o->q && n_words == 0 && !o->common.jsonl && !o->file)
        return cli_usage(command, "TEXT is missing");
    if (o->file && (n_words > 0 || o->common.jsonl || o->q))
        return cli_usage(command, "--file together with %s",
                         n_words > 0       ? "a text"
                         : o->common.jsonl ? "--jsonl"
                                           : "--q");
    const char *of_texts = n_words > 0           ? "a text"
                           : o->pair             ? "--pair"
                           : look_pair_option(o) ? look_pair_option(o)
                           : o->which.target     ? "--target"
                           : o->top.set          ? "--top"
                           : o->what_if.n > 0    ? "--what-if"
                           : o->windows          ? "--slide"
                           : o->common.jsonl     ? "--jsonl"
                           : o->common.model     ? "--model"
                           : o->common.truncate  ? "--truncate"
                                                 : NULL;
    return o->q && of_texts ? cli_usage(command, "--q and --k together with %s", of_texts)
                            : EXIT_OK;
}

int look_check_out(const struct cli_command *command, const struct look_options *o, bool known,
                   bool page) {
    if (o->out && !known)
        return cli_usage(command, "-o: '%s' ends in none of .html .png .svg .pdf .json .csv .npy",
                         o->out);
    if (o->out && (o->common.json || o->common.jsonl))
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    if (o->heads && !page && !o->align)
        return cli_usage(command, "--heads chooses the heads of a page: -o FILE.html");
    if (o->map.set && (!page || o->windows))
        return cli_usage(command,
                         page ? "--map together with --slide" : "--map is of a page: -o FILE.html");
    if (o->heads && (o->common.head || o->common.layer.set))
        return cli_usage(command, "--heads together with %s",
                         o->common.head ? "--head" : "--layer");
    return EXIT_OK;
}

/* The numbers of a chart are its .csv, so nothing is lost by what is refused. */
int look_check_plot(const struct cli_command *command, const struct look_options *o) {
    static const char *const endings[] = { ".png", ".svg", ".pdf", ".csv" };
    const char *dot = o->out ? strrchr(o->out, '.') : NULL;
    bool known = false;
    for (int i = 0; dot && i < CLI_COUNT(endings); i++) known |= strcmp(dot, endings[i]) == 0;
    if (!o->plot.set) return EXIT_OK;
    if (o->common.json || o->common.jsonl)
        return cli_usage(command, "--plot together with %s: the numbers of a chart are -o FILE.csv",
                         o->common.json ? "--json" : "--jsonl");
    if (!o->out)
        return cli_usage(command, "--plot writes a chart: -o FILE.png, .svg, .pdf or .csv");
    if (!known)
        return cli_usage(
            command, "-o: '%s' ends in none of .png .svg .pdf .csv, which --plot writes", o->out);
    if (o->heads) return cli_usage(command, "--plot is of one head: --head L.H, not --heads");
    if (o->which.cross && o->plot.value == PLOT_OFFSETS)
        return cli_usage(command, "--plot offsets: --cross has queries and keys of two texts, "
                                  "between which there are no distances");
    return o->pool.set ? cli_usage(command, "--plot together with --pool: a chart has no tiles")
                       : EXIT_OK;
}

/* The heads of --heads that the model must have; the first is the head that is looked at. */
int look_list_heads(const struct cli_command *command, const struct look_options *options,
                    const struct session *session, struct head_name **list, int *n) {
    int64_t n_layers, n_heads;
    if (!options->heads) return EXIT_OK;
    session_sizes(session, look_which(options), &n_layers, &n_heads);
    const int code = heads_list_parse(command, "--heads", options->heads, list, n);
    if (code) return code;
    for (int i = 0; i < *n; i++) {
        const struct head_name *name = &(*list)[i];
        if (name->layer < 0)
            return cli_usage(command, "--heads: %" PRId64 " names no layer: L.%" PRId64, name->head,
                             name->head);
        if (name->layer >= n_layers || name->head >= n_heads)
            return cli_usage(command,
                             "--heads: there is no %" PRId64 ".%" PRId64
                             ": the model has layers 0 to %" PRId64 ", heads 0 to %" PRId64,
                             name->layer, name->head, n_layers - 1, n_heads - 1);
    }
    return EXIT_OK;
}
