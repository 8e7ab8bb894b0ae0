/* Generating texts: see model.h. */
#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- Options --------------------------------------------------------------------------------- */

static bool draws(const struct writing_options *o) {
    return o->sample || o->temperature.set || o->top_k.set || o->top_p.set || o->min_p.set ||
           o->seed.set;
}

/* What the command line says goes before what the model's files say. */
static void take_options(struct writing *w) {
    const struct writing_options *const o = w->options;
    qkv_generate_options *const g = &w->generate;
    args_apply(w->job.session.command, o, g);
    if (o->early_stopping.set) g->early_stopping = (qkv_early_stopping)o->early_stopping.value;
    if (draws(o)) g->sample = 1;
    g->stop = o->stop.list;
    g->n_stop = o->stop.n;
    g->cancel = &cli_cancelled;
}

static int read_files(struct writing *w) {
    qkv_error error;
    w->generate = (qkv_generate_options)qkv_generate_options_init();
    w->generate.sample = draws(w->options);
    if (w->options->plain) {
        w->generate.top_k = 50; /* as transformers */
        return EXIT_OK;
    }
    if (qkv_generate_options_read(w->job.session.model, &w->generate, &error) != QKV_OK)
        return cli_fail("%s (--plain does without that file)", error.message);
    return EXIT_OK;
}

/* ---- Models ---------------------------------------------------------------------------------- */

static int check_model(const struct session *session, bool wants_source) {
    const qkv_model_info *const info = session->info;
    const char *const name = session->is_embedded ? "the embedded model" : info->source;
    if (!info->has_lm && info->kind != QKV_MODEL_ENCODER && info->n_labels > 0)
        return cli_fail("%s is a %s that classifies texts, and writes none: `qkv look` has its "
                        "labels",
                        name, info->architecture);
    if (!info->has_lm)
        return cli_fail("%s is a %s, which writes no text: `qkv fill` and `qkv look` are for it. "
                        "%s is for GPT-2, BART and Marian%s",
                        name, info->architecture, session->command->name,
                        session->is_embedded ? ": name one with --model" : "");
    if (wants_source && info->kind != QKV_MODEL_PAIR)
        return cli_fail("%s is a %s, which goes on with a text and translates none: `qkv generate`",
                        name, info->architecture);
    return EXIT_OK;
}

int writing_open(struct writing *w, const struct cli_command *command,
                 const struct writing_options *options, bool wants_source) {
    w->options = options;
    if (options->max_new.set && options->min_new.value > options->max_new.value)
        return cli_usage(command, "--min-new %" PRId64 " is more than --max-new %" PRId64,
                         options->min_new.value, options->max_new.value);
    int code = session_open(&w->job.session, command, &options->common);
    if (code) return code;
    cli_catch_interrupts();
    code = check_model(&w->job.session, wants_source);
    if (code == EXIT_OK) code = read_files(w);
    if (code == EXIT_OK) {
        take_options(w);
        term_init(&w->term, stdout, &options->common);
        return EXIT_OK;
    }
    session_close(&w->job.session);
    return code;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Lines and tabs stay. */
static qkv_status print_escaped(FILE *out, const char *bytes, size_t n, qkv_error *error) {
    while (n > 0) {
        size_t length = 0;
        while (length < n && bytes[length] != '\n' && bytes[length] != '\t') length++;
        char *const escaped = term_escape(bytes, length);
        if (!escaped) return text_no_memory(error);
        fputs(escaped, out);
        free(escaped);
        if (length < n) putc(bytes[length++], out);
        bytes += length;
        n -= length;
    }
    return QKV_OK;
}

qkv_status writing_print(struct writing *w, const char *bytes, size_t n, qkv_error *error) {
    if (w->term.tty) return print_escaped(w->term.out, bytes, n, error);
    fwrite(bytes, 1, n,
           w->term.out); /* whether all could be written is asked at the end: cli_flush */
    return QKV_OK;
}

static int hear(void *user, const char *bytes, size_t n) {
    struct writing *const w = user;
    qkv_error error;
    if (writing_print(w, bytes, n, &error) != QKV_OK) return 1;
    return w->term.tty ? !cli_flush() : 0;
}

qkv_status writing_run(struct writing *w, const qkv_encoding *input, bool stream,
                       qkv_generation **made, qkv_error *error) {
    const struct session *const session = &w->job.session;
    qkv_generate_options options = w->generate;
    const double start = cli_seconds();
    if (stream && options.n_beams == 1 && options.n_return == 1) {
        options.on_text = hear;
        options.user = w;
    }
    const qkv_status status =
        qkv_generate(session->ctx, session->model, input, &options, made, error);
    w->seconds = cli_seconds() - start;
    if (status == QKV_OK && stream && !options.on_text) return writing_print_all(w, *made, error);
    if (status == QKV_OK && stream) putc('\n', w->term.out);
    return status;
}

static const char *end_name(qkv_end end) {
    static const char *const names[] = { "eos",          "stop",   "max_new",
                                         "model_length", "caller", "forbidden" };
    return names[end];
}

qkv_status writing_print_all(struct writing *w, const qkv_generation *made, qkv_error *error) {
    for (int64_t i = 0; i < made->n_sequences; i++) {
        const qkv_sequence *const s = made->sequences[i];
        if (made->n_sequences > 1) {
            term_style(&w->term, STYLE_DIM);
            fprintf(w->term.out, "%" PRId64 "  score %.4f  %" PRId64 " tokens  %s", i + 1, s->score,
                    s->n, end_name(s->end));
            term_style(&w->term, STYLE_NONE);
            putc('\n', w->term.out);
        }
        const qkv_status status = writing_print(w, s->text, (size_t)s->n_bytes, error);
        if (status != QKV_OK) return status;
        putc('\n', w->term.out);
    }
    return QKV_OK;
}

json_t *writing_json(const struct writing *w, const qkv_generation *made) {
    json_t *const list = json_array();
    for (int64_t i = 0; i < made->n_sequences; i++) {
        const qkv_sequence *const s = made->sequences[i];
        json_array_append_new(list, json_set(NULL, "text:o ids:o score:n end:s",
                                             json_bytes(s->text, (size_t)s->n_bytes),
                                             json_ids(s->n, s->ids), s->score, end_name(s->end)));
    }
    return json_set(NULL, "prompt_tokens:i sequences:o steps:i seconds:n", made->prompt_len, list,
                    made->n_steps, w->seconds);
}
