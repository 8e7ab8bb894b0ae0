/* Chooses source and sink of `qkv look`: see job.h. */
#include "look/job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/conflicts.h"
#include "common/draw.h"
#include "common/lens.h"
#include "common/named.h"
#include "look/against.h"
#include "look/arrays.h"
#include "look/image_against.h"
#include "look/windows.h"
#include "sinks/sinks.h"

/* ---- Sinks ----------------------------------------------------------------------------------- */

/* In the order of ENDINGS. */
static qkv_status (*const writers[])(const struct seen *seen, const char *path,
                                     qkv_error *error) = {
    seen_page, seen_picture, seen_picture, seen_picture, seen_json_write, seen_csv, seen_npy
};

/* One line about what was written, and how to see one head. */
static void tell_written(const struct seen *seen, const char *path) {
    const qkv_heads_choice *choice = &seen->choice;
    if (seen->common->quiet) return;
    fputs("qkv: wrote ", stderr);
    term_print(stderr, path);
    if (seen->rule && seen->sink->plot.set)
        fprintf(stderr, ", head %" PRId64 ".%" PRId64 ": %s; --head names another", choice->layer,
                choice->head, seen->rule);
    else if (seen->rule && !seen->draw && path_ending(path, PICTURES) >= 0)
        fprintf(stderr, ", all heads; try --head %" PRId64 ".%" PRId64 ": %s", choice->layer,
                choice->head, seen->rule);
    fputc('\n', stderr);
}

/* "look-3.0", "look", "align-1", "received-3.0": what a file has, for its name. */
static void name_content(const struct seen *seen, char what[64]) {
    static const char *const plots[] = { "queries", "received", "offsets" };
    const struct arg_int *const plot = &seen->sink->plot;
    const struct head_name *const name = &seen->names[seen->head];
    const char *const kind = plot->set        ? plots[plot->value]
                             : seen->quantity ? seen->quantity->name
                                              : "look";
    if (*seen->content)
        snprintf(what, 64, "%s", seen->content);
    else if ((seen->by_name || plot->set) && name->layer >= 0)
        snprintf(what, 64, "%s-%" PRId64 ".%" PRId64, kind, name->layer, name->head);
    else
        snprintf(what, 64, "%s", kind);
}

/*
 * As an object, on the terminal, or in a file, which --against does not name by what it has. With
 * an object, a page goes into memory before it, if it is wanted there.
 */
static qkv_status show_seen(const struct seen *seen, const struct look_options *options,
                            json_t **json, qkv_error *error) {
    const char *out = options->out;
    if (json) {
        const qkv_status status = options->sink.page ? seen_page(seen, out, error) : QKV_OK;
        return status == QKV_OK ? seen_json(seen, json, error) : status;
    }
    if (!out) return seen_print(seen, error);
    char what[64], room[NAMED_ROOM];
    name_content(seen, what);
    if (!options->against) out = named_file(out, what, seen->said, room);
    const int ending = path_ending(out, ENDINGS);
    const qkv_status status = (seen->sink->plot.set ? seen_chart
                               : ending < 0         ? alignment_write
                                                    : writers[ending])(seen, out, error);
    if (status == QKV_OK && is_first_rank()) tell_written(seen, out);
    return status;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

struct look_job {
    struct text_job texts;
    struct head_name *list; /* of --heads */
    int n_list;
    struct what_if what_if;
    struct windows_rule windows;
    struct session other; /* of --against */
};

/* A text alone, with findings if they are shown, as objects do. */
static qkv_status look_text(const struct look_job *job, const qkv_encoding *input, bool as_object,
                            struct text_seen **made, qkv_error *error) {
    const struct look_options *const options = job->texts.options;
    const bool tells = (as_object || !options->out || path_ending(options->out, ".json") == 0) &&
                       !options->norms && !options->rollout;
    struct text_seen *const t = *made = calloc(1, sizeof *t);
    if (!t) return text_no_memory(error);
    text_begin(t, &job->texts, input, job->list, job->n_list);
    const qkv_status status = text_look(t, &job->what_if, error);
    return status == QKV_OK && tells && !options->align ? findings_make(t, error) : status;
}

static void free_text(struct text_seen *t) {
    if (t) text_free(t);
    free(t);
}

static qkv_status answer_encoding(struct text_job *texts, const qkv_encoding *input, json_t **json,
                                  qkv_error *error) {
    const struct look_options *const options = texts->options;
    const struct look_job *const job = (const struct look_job *)texts;
    struct text_seen *t = NULL;
    qkv_status status = options->against
                            ? against_look(texts, &job->other, input, &job->what_if, &t, error)
                        : options->windows ? windows_look(texts, input, job->list, job->n_list,
                                                          &job->what_if, &job->windows, &t, error)
                                           : look_text(job, input, json != NULL, &t, error);
    if (status == QKV_OK && options->out && cli_cancelled)
        status = text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    if (status == QKV_OK) status = show_seen(&t->seen, options, json, error);
    (options->against ? against_free : options->windows ? windows_free : free_text)(t);
    return status;
}

/* --heads, all of them in the model. An exit code. */
static int parse_heads(const struct look_options *options, const struct session *session,
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

/*
 * images: a model that reads images only will do. An exit code, having said what is wrong. To be
 * closed in any case.
 */
static int open_job(struct look_job *job, const struct cli_command *command,
                    const struct look_options *options, bool images) {
    *job = (struct look_job){
        .texts = { .options = options,
                   .pair = options->pair,
                   .file = options->file,
                   .any_length = options->windows != NULL,
                   .no_texts = images,
                   .longer = look_which(options) == QKV_SELF ? "--slide N looks at windows of it, "
                                                             : NULL,
                   .which = look_which(options),
                   .asks = options->align && !options->which.cross ? "--align" : NULL,
                   /* of a page the lens is a part (lens.c) */
                   .answer = options->lens && !options->out ? lens_answer : answer_encoding }
    };
    struct text_job *const texts = &job->texts;
    int code = what_if_parse(command, &options->what_if, &job->what_if);
    if (code == EXIT_OK) code = windows_parse(command, options, &job->windows);
    if (code == EXIT_OK) code = text_job_open(texts, command, &options->common);
    if (code) return code;
    code = parse_heads(options, &texts->session, &job->list, &job->n_list);
    if (code == EXIT_OK && job->n_list > 0) {
        texts->given = true;
        texts->layer = job->list[0].layer;
        texts->head = job->list[0].head;
    }
    return code;
}

static void close_job(struct look_job *job) {
    session_close(&job->texts.session);
    session_close(&job->other);
    free(job->list);
}

int look_texts(const struct cli_command *command, const struct look_options *options, int n_words,
               char **words) {
    struct look_job job;
    struct cli_common common = options->common; /* of the other model */
    qkv_error error;
    int code = open_job(&job, command, options, false);
    common.model = options->against;
    if (code == EXIT_OK && options->against) code = session_open(&job.other, command, &common);
    if (code == EXIT_OK && options->out && qkv_file_writable(options->out, &error) != QKV_OK)
        code = cli_fail("%s", error.message);
    if (code == EXIT_OK) code = text_job_run(&job.texts, n_words, words);
    close_job(&job);
    return code;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* What is not one of several lines: with --json printed, otherwise shown. */
static qkv_status show_or_print(const struct seen *seen, const struct look_options *options,
                                qkv_error *error) {
    json_t *json = NULL;
    const qkv_status status = show_seen(seen, options, options->common.json ? &json : NULL, error);
    if (status != QKV_OK || !json) return status;
    return json_print(stdout, json) ? QKV_OK : text_error(error, QKV_ERR_IO, "standard output");
}

static qkv_status answer_arrays(struct arrays *arrays, qkv_error *error) {
    const qkv_status status = arrays_look(arrays, error);
    return status == QKV_OK ? show_or_print(&arrays->seen, arrays->options, error) : status;
}

/* The first rank alone writes. */
static int check_out(const struct look_options *options) {
    qkv_error error;
    if (!options->out || !is_first_rank()) return EXIT_OK;
    return cli_status(qkv_file_writable(options->out, &error), &error);
}

/* Other ranks print nothing, and do what the first one does for its terminal. */
static int open_terminal(const struct look_options *options, int64_t *side) {
    struct term term;
    if (!is_first_rank() && !freopen("/dev/null", "w", stdout))
        return cli_fail("/dev/null cannot be opened");
    term_init(&term, stdout, &options->common);
    const int64_t mine = heatmap_side(&term);
    int64_t *const all = calloc((size_t)ranks_size(), sizeof *all);
    if (!all) abort(); /* which ends the job */
    ranks_gather(&mine, (int)sizeof mine, all);
    *side = all[0];
    free(all);
    return EXIT_OK;
}

int look_arrays(const struct cli_command *command, const struct look_options *options) {
    struct arrays *const arrays = calloc(1, sizeof *arrays);
    qkv_error error;
    int code = arrays ? arrays_parse(command, options, arrays) : cli_fail("out of memory");
    if (!code && options->mpi) code = ranks_begin(true);
    if (!code) code = session_context(command, &options->common, &arrays->seen.ctx);
    if (!code) code = check_out(options);
    code = ranks_agree(code);
    if (!code) code = ranks_agree(open_terminal(options, &arrays->seen.side));
    if (!code) {
        code = arrays_read(arrays);
        if (!code) code = cli_status(answer_arrays(arrays, &error), &error);
        code = ranks_agree(ranks_leave(code));
    }
    ranks_end();
    if (arrays) {
        qkv_ctx *const ctx = arrays->seen.ctx;
        arrays_free(arrays);
        qkv_ctx_free(ctx);
    }
    free(arrays);
    return code;
}

/* ---- Images ---------------------------------------------------------------------------------- */

static qkv_status show_image(const struct image_seen *t, qkv_status status, qkv_error *error) {
    if (status == QKV_OK && t->options->out && cli_cancelled)
        return text_error(error, QKV_ERR_CANCELLED, "nothing was written");
    return status == QKV_OK ? show_or_print(&t->seen, t->options, error) : status;
}

static int look_two_images(const struct session *session, const struct look_options *options) {
    qkv_error error;
    struct image_against *const a = calloc(1, sizeof *a);
    int code = a ? image_against_begin(a, session, options) : cli_fail("out of memory");
    if (!code) code = check_out(options);
    if (!code)
        code = cli_status(show_image(&a->of[0], image_against_look(a, &error), &error), &error);
    if (a) image_against_free(a);
    free(a);
    return code;
}

static int look_one_image(const struct session *session, const struct look_options *options) {
    qkv_error error;
    struct image_seen *const t = calloc(1, sizeof *t);
    int code = t ? image_begin(t, session, options, options->image) : cli_fail("out of memory");
    if (!code) code = check_out(options);
    if (!code) code = cli_status(show_image(t, image_look(t, &error), &error), &error);
    if (t) image_free(t);
    free(t);
    return code;
}

int look_image(const struct cli_command *command, const struct look_options *options) {
    struct session session;
    int code = session_open(&session, command, &options->common);
    if (code) return code;
    code = session_images(&session);
    if (!code) code = (options->against ? look_two_images : look_one_image)(&session, options);
    session_close(&session);
    return code;
}

/* ---- Texts, or images, one after the other --------------------------------------------------- */

struct look_service {
    struct look_job job;
    struct look_options page_options, json_options;
    struct text pair; /* of --pair; bytes NULL: none */
    qkv_text *page;   /* of the text that is answered */
};

static struct text as_text(const char *words) {
    return (struct text){ (char *)(uintptr_t)words, words ? strlen(words) : 0 };
}

/* An answer says nothing on the terminal; what out ends in says what it is. */
static struct look_options answering(const struct look_options *options, const char *out) {
    struct look_options each = *options;
    each.out = out;
    each.common.json = out == NULL;
    each.common.quiet = true;
    return each;
}

int look_service_open(struct look_service **made, const struct cli_command *command,
                      const struct look_options *options, bool images) {
    struct look_service *const service = *made = calloc(1, sizeof *service);
    if (!service) return cli_fail("out of memory");
    service->pair = as_text(options->pair);
    service->page_options = answering(options, "page.html");
    service->page_options.sink.page = &service->page;
    service->json_options = answering(options, NULL);
    /* the model may have warnings, before it is all quiet */
    service->page_options.common.quiet = options->common.quiet;
    const int code = open_job(&service->job, command, &service->page_options, images);
    service->page_options.common.quiet = true;
    return code;
}

void look_service_close(struct look_service *service) {
    if (service) close_job(&service->job);
    free(service);
}

const struct session *look_service_session(const struct look_service *service) {
    return &service->job.texts.session;
}

static qkv_status answer_text(struct look_service *service, const struct look_options *options,
                              const struct text *text, json_t **json, qkv_error *error) {
    struct text_job *const texts = &service->job.texts;
    if (!texts->session.tokenizer)
        return text_error(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads images, not texts",
                          texts->session.info->source, texts->session.info->architecture);
    texts->options = options;
    texts->session.common = &options->common;
    return text_job_answer(texts, text, service->pair.bytes ? &service->pair : NULL, json, error);
}

static qkv_status answer_image(struct look_service *service, const struct look_options *options,
                               const char *path, json_t **json, qkv_error *error) {
    struct session session = service->job.texts.session; /* the other tower of the same model */
    if (!qkv_model_images(session.model))
        return text_error(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads texts, not images",
                          session.info->source, session.info->architecture);
    session.common = &options->common;
    struct image_seen *const t = calloc(1, sizeof *t);
    if (!t) return text_no_memory(error);
    const bool begun =
        session_images(&session) == EXIT_OK && image_begin(t, &session, options, path) == EXIT_OK;
    qkv_status status =
        begun ? image_look(t, error) : text_error(error, QKV_ERR_ARGUMENT, "%s", cli_kept);
    if (status == QKV_OK) status = show_seen(&t->seen, options, json, error);
    image_free(t);
    free(t);
    return status;
}

static qkv_status answer_as(struct look_service *service, const struct look_options *options,
                            struct look_input input, json_t **json, qkv_error *error) {
    return input.image ? answer_image(service, options, input.image, json, error)
                       : answer_text(service, options, input.text, json, error);
}

qkv_status look_service_page(struct look_service *service, struct look_input input, bool maps,
                             qkv_text **page, json_t **json, qkv_error *error) {
    service->page_options.sink.no_maps = !maps;
    const qkv_status status = answer_as(service, &service->page_options, input, json, error);
    if (status != QKV_OK) { /* the object may have failed */
        qkv_text_free(service->page);
        service->page = NULL;
    }
    *page = service->page;
    service->page = NULL;
    return status;
}

qkv_status look_service_json(struct look_service *service, struct look_input input, json_t **json,
                             qkv_error *error) {
    return answer_as(service, &service->json_options, input, json, error);
}
