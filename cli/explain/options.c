/* Options of `qkv explain` that do not go together. */
#include "explain/explain.h"

#include "qkv/files.h"

#include <string.h>

bool explain_ends_in(const char *path, const char *ending) {
    const char *dot = strrchr(path, '.');
    return dot && strcmp(dot, ending) == 0;
}

int explain_check_out(const struct cli_command *command, const struct explain_options *o) {
    if (!o->out) return EXIT_OK;
    const bool picture = explain_ends_in(o->out, ".png") || explain_ends_in(o->out, ".svg") ||
                         explain_ends_in(o->out, ".pdf");
    if (!explain_ends_in(o->out, ".html") && !(picture && (o->no_scale || o->positions)))
        return cli_usage(command, "-o: '%s' ends in %s", o->out,
                         o->no_scale || o->positions ? "none of .html .png .svg .pdf"
                         : picture ? "a picture's ending: only --no-scale and --positions draw one"
                                   : "something else than .html");
    if (o->common.json || o->common.jsonl)
        return cli_usage(command, "-o together with %s", o->common.json ? "--json" : "--jsonl");
    qkv_error error;
    return qkv_file_writable(o->out, &error) == QKV_OK ? EXIT_OK : cli_fail("%s", error.message);
}

/* What is about another kind of report than the one that is asked for, or NULL. */
static const char *stray(const struct explain_options *o, bool has_text) {
    const bool alone = o->no_scale || o->positions;
    const bool needs_text = o->common.head || o->common.layer.set || o->common.model || o->pair;
    if (has_text && alone) return "a text";
    if (o->q && has_text) return "a text";
    if ((alone || o->shuffle) && (o->query || o->q || o->causal))
        return o->query ? "--query" : o->q ? "--q" : "--causal";
    if (has_text && o->causal) return "--causal";
    if (o->shapes && (alone || o->shuffle)) return "--shapes";
    if (!has_text && !o->shuffle && needs_text)
        return o->pair ? "--pair" : o->common.model ? "--model" : "--head";
    if (o->shuffle && (o->common.json || o->common.jsonl)) return "--json";
    if (!has_text && o->common.json && !o->no_scale) return "--json";
    if (!o->positions && (o->length.set || o->dim.set)) return o->length.set ? "--length" : "--dim";
    if (!o->no_scale && !o->shuffle && o->seed.set) return "--seed";
    return NULL;
}

int explain_check_kind(const struct cli_command *command, const struct explain_options *o,
                       bool has_text) {
    if (o->no_scale + o->positions + o->shuffle > 1)
        return cli_usage(command, "%s together with %s", o->no_scale ? "--no-scale" : "--positions",
                         o->no_scale && o->positions ? "--positions" : "--shuffle");
    if (!o->q != !o->k || !o->q != !o->v)
        return cli_usage(command, "%s is missing: arrays are --q, --k and --v",
                         !o->q   ? "--q"
                         : !o->k ? "--k"
                                 : "--v");
    const char *word = stray(o, has_text);
    if (!word) return EXIT_OK;
    if (o->no_scale || o->positions || o->shuffle)
        return cli_usage(command, "%s together with %s", word,
                         o->no_scale    ? "--no-scale"
                         : o->positions ? "--positions"
                                        : "--shuffle");
    if (has_text && (o->q || o->causal))
        return cli_usage(command, "%s together with %s", word, o->q ? "--q" : "a text");
    const char *with = strcmp(word, "--seed") == 0 ? "--no-scale or --shuffle"
                       : strcmp(word, "--length") == 0 || strcmp(word, "--dim") == 0 ? "--positions"
                                                                                     : "a TEXT";
    return cli_usage(command, "%s without %s", word, with);
}
