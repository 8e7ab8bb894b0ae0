/* `qkv look --q F --k F`: reads a dump, computes what its heads do, and shows or writes it. */
#include <string.h>

#include "dump.h"

static qkv_status write_json(struct dump *dump, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = dump_json(dump, &object, error);
    return status == QKV_OK ? json_write_file(path, object, error) : status;
}

static const struct output {
    const char *ending;
    qkv_status (*write)(struct dump *dump, const char *path, qkv_error *error);
} outputs[] = {
    { ".png", dump_picture }, { ".svg", dump_picture }, { ".pdf", dump_picture },
    { ".html", dump_page },   { ".json", write_json },  { ".csv", dump_csv },
    { ".npy", dump_npy },
};

/* The command has looked that the ending is one of these. */
static qkv_status write_file(struct dump *dump, qkv_error *error) {
    const char *path = dump->options->out, *dot = strrchr(path, '.');
    int i = 0;
    while (strcmp(dot, outputs[i].ending) != 0) i++;
    const bool plot = dump->options->plot.set;
    const qkv_status status = (plot ? dump_plot : outputs[i].write)(dump, path, error);
    if (status == QKV_OK) cli_note(dump->options->common.quiet, "qkv: wrote %s", path);
    return status;
}

static qkv_status show(struct dump *dump, qkv_error *error) {
    const struct look_options *options = dump->options;
    if (options->out) return write_file(dump, error);
    if (!options->common.json) return dump_print(dump, error);
    json_t *json = NULL;
    const qkv_status status = dump_json(dump, &json, error);
    if (status != QKV_OK) return status;
    return json_print(stdout, json) ? QKV_OK : text_error(error, QKV_ERR_IO, "standard output");
}

static void warn(const struct dump *dump) {
    for (int64_t h = 0; h < dump->n_shown; h++) {
        const struct dump_head *head = &dump->heads[h];
        if (head->n_nan > 0)
            cli_note(dump->options->common.quiet,
                     "qkv: warning: head %lld: %lld queries have weights that are no numbers",
                     (long long)head->stats.head, (long long)head->n_nan);
    }
}

int look_arrays(const struct cli_command *command, const struct look_options *options) {
    struct dump dump;
    qkv_error error;
    int code = dump_parse(command, options, &dump);
    if (!code) code = session_context(command, &options->common, &dump.ctx);
    if (!code && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (!code) code = dump_read(&dump);
    if (!code) code = dump_plot_check(&dump);
    if (!code && dump_compute(&dump, &error) != QKV_OK) code = cli_fail("%s", error.message);
    if (!code) warn(&dump);
    if (!code && show(&dump, &error) != QKV_OK) code = cli_fail("%s", error.message);
    dump_free(&dump);
    qkv_ctx_destroy(dump.ctx);
    return code;
}
