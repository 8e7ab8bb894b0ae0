/* Where what `qkv look` knows goes: a file by its ending, an object, or the terminal. */
#include <inttypes.h>
#include <string.h>

#include "look/arrays.h"

static qkv_status to_json(const struct look *look, json_t **json, qkv_error *error) {
    return look->arrays ? arrays_json(look, json, error) : look_json(look, json, error);
}

static qkv_status write_json(const struct look *look, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = to_json(look, &object, error);
    return status == QKV_OK ? json_write_file(path, object, error) : status;
}

static const struct output {
    const char *ending;
    qkv_status (*write)(const struct look *look, const char *path, qkv_error *error);
} outputs[] = {
    { ".png", look_picture }, { ".svg", look_picture }, { ".pdf", look_picture },
    { ".html", look_page },   { ".json", write_json },  { ".csv", look_csv },
    { ".npy", look_npy },
};

static const struct output *output_of(const char *path) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    for (int i = 0; dot && i < CLI_COUNT(outputs); i++)
        if (strcmp(dot, outputs[i].ending) == 0) return &outputs[i];
    return NULL;
}

bool look_writes(const char *path) { return output_of(path) != NULL; }

bool look_writes_page(const char *path) {
    const struct output *output = output_of(path);
    return output && output->write == look_page;
}

/* One line about what was written, and how to see one head. */
static void tell_written(const struct look *look) {
    const qkv_heads_choice *choice = &look->choice;
    const struct look_options *options = look->options;
    if (options->common.quiet) return;
    fputs("qkv: wrote ", stderr);
    term_print(stderr, options->out);
    if (look->arrays || look->given)
        ; /* the head was named, or is the sharpest */
    else if (options->plot.set)
        fprintf(stderr, ", head %" PRId64 ".%" PRId64 ": %s; --head names another", choice->layer,
                choice->head, choice->rule);
    else if (output_of(options->out)->write == look_picture)
        fprintf(stderr, ", all heads; try --head %" PRId64 ".%" PRId64 ": %s", choice->layer,
                choice->head, choice->rule);
    fputc('\n', stderr);
}

qkv_status look_show(const struct look *look, json_t **json, qkv_error *error) {
    const char *out = look->options->out;
    if (json) return to_json(look, json, error);
    if (!out) return look->arrays ? arrays_print(look, error) : look_print(look, error);
    const qkv_status status =
        (look->options->plot.set ? look_plot : output_of(out)->write)(look, out, error);
    if (status == QKV_OK) tell_written(look);
    return status;
}
