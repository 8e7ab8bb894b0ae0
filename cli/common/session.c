/* Opens what a command works with, and reads --head L.H against the model it opened. */
#include "common/job.h"
#include "common/ranks.h"
#include "common/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/number.h"
#include "common/term.h"
#include "core/os.h"

int session_isa(const struct cli_command *command, const char *source, const char *isa) {
    char list[128] = "";
    for (int i = 0; qkv_isa_name(i); i++) {
        if (strcmp(qkv_isa_name(i), isa) == 0) return EXIT_OK;
        text_append(list, sizeof list, i ? ", %s" : "%s", qkv_isa_name(i));
    }
    return cli_usage(command, "%s: '%s' is not one of those usable here: %s", source, isa, list);
}

int session_context(const struct cli_command *command, const struct cli_common *common,
                    qkv_ctx **ctx) {
    qkv_ctx_options options = qkv_ctx_options_init();
    int64_t threads = common->threads.value;
    const char *variable = getenv("QKV_NUM_THREADS");
    if (!common->threads.set && variable && *variable && !number_int(variable, 1, 1024, &threads))
        return cli_usage(command, "QKV_NUM_THREADS: '%s' is not a whole number from 1 to 1024",
                         variable);
    const char *isa = common->isa ? common->isa : getenv("QKV_ISA");
    if (isa && *isa) {
        const int code = session_isa(command, common->isa ? "--isa" : "QKV_ISA", isa);
        if (code) return code;
        options.isa = isa;
    }
    options.n_threads = (int)threads;
    qkv_error error;
    return cli_status(qkv_ctx_create(&options, ctx, &error), &error);
}

static bool is_folder(const char *name) {
    qkvi_os_about about;
    return qkvi_os_examine(name, &about) == 0 && about.kind == QKVI_OS_FOLDER;
}

qkv_model_open_options session_weights(const struct cli_common *common) {
    qkv_model_open_options options = qkv_model_open_options_init();
    static const qkv_model_weights kinds[] = { QKV_WEIGHTS_FILE, QKV_WEIGHTS_F32, QKV_WEIGHTS_BF16,
                                               QKV_WEIGHTS_INT8 };
    options.weights = kinds[common->weights.value];
    return options;
}

/* A folder without a model that we read may still have a tokenizer, if that is enough. */
static int open_named(struct session *session, const char *name) {
    qkv_error error;
    qkv_model_open_options options = session_weights(session->common);
    struct progress_clock clock;
    options.ctx = session->ctx;
    progress_clock_begin(&clock, "opening the model", session->common->quiet);
    const qkv_status status = qkv_model_open(name, &options, &session->model, &error);
    progress_clock_end(&clock);
    if (status == QKV_OK) return EXIT_OK;
    if (!(session->command->takes & TAKES_TOKENIZER) || !is_folder(name) ||
        (status != QKV_ERR_IO && status != QKV_ERR_UNSUPPORTED))
        return cli_fail("%s", error.message);
    return cli_status(qkv_tokenizer_open(name, QKV_SOURCE, &session->alone, &error), &error);
}

static const char *model_name(const struct cli_common *common) {
    return common->model ? common->model : getenv("QKV_MODEL");
}

/* The embedded model's folder in the source: an installation has no such folder. */
#define EMBEDDED "models/default"

bool session_names_embedded(const char *name) {
    const bool is = strcmp(name, EMBEDDED) == 0 || strcmp(name, EMBEDDED "/") == 0;
    qkvi_os_about about;
    return is && qkvi_os_examine(EMBEDDED "/config.json", &about) != 0;
}

static int open_model(struct session *session) {
    const char *name = model_name(session->common);
    char room[SHARED_ROOM];
    qkv_error error;
    if (name && *name && !session_names_embedded(name))
        return open_named(session, shared_path(name, room));
    qkv_status status = QKV_OK;
    const qkv_model_open_options options = session_weights(session->common);
    if (!embedded_model(&options, &session->model, &status, &error))
        return cli_fail("no model is embedded in this build: name one with --model or QKV_MODEL");
    session->is_embedded = true;
    return status == QKV_OK ? EXIT_OK : cli_fail("the embedded model: %s", error.message);
}

static void warn_of_weights(void *user, const qkv_not_finite *found) {
    const struct cli_common *common = user;
    cli_note(common->quiet, "qkv: warning: weights '%s' hold %" PRId64 " NaN, %" PRId64 " infinite",
             found->tensor, found->n_nan, found->n_inf);
}

void session_warn(const qkv_model *model, const struct cli_common *common) {
    for (int64_t i = 0; qkv_model_warning(model, i); i++)
        cli_note(common->quiet, "qkv: warning: %s", qkv_model_warning(model, i));
    if (common->check_finite)
        qkv_model_check_finite(model, warn_of_weights, (void *)(uintptr_t)common);
}

static void take_model(struct session *session) {
    session->tokenizer = session->alone;
    if (session->alone) return;
    session->info = qkv_model_get_info(session->model);
    session->tokenizer = qkv_model_tokenizer(session->model, QKV_SOURCE);
    session->target = qkv_model_tokenizer(session->model, QKV_TARGET);
}

/* Models of images have no tokenizer, which commands about texts need. */
static int refuse_images(const struct session *session) {
    if (session->tokenizer || session->command->takes & TAKES_IMAGES) return EXIT_OK;
    return cli_fail("%s: a %s reads images, and %s texts", session->info->source,
                    session->info->architecture, session->command->name);
}

/* The files of a tokenizer, one by one, so that the message names the first that differs. */
static int agree_on_files(const qkv_tokenizer *tokenizer, int code) {
    enum { MOST_FILES = 9 }; /* ranks with fewer go on, too */
    for (int64_t i = 0; i < MOST_FILES; i++) {
        char shown[80] = "none";
        uint64_t digest = 0;
        const char *const name = code ? NULL : qkv_tokenizer_file(tokenizer, i, &digest);
        if (name) snprintf(shown, sizeof shown, "%s (%016" PRIx64 ")", name, digest);
        code = ranks_agree_on(code,
                              &(struct ranks_fact){ "file of the tokenizer", shown,
                                                    hash_add(HASH_START, shown, strlen(shown)) });
    }
    return code;
}

/* Ranks may each have files of that name. */
static int agree_on_model(const struct session *session, int code) {
    char shown[300] = "";
    if (ranks_size() == 1) return code;
    code = agree_on_files(session->tokenizer, code);
    code = agree_on_files(session->target, code);
    const uint64_t hash = code ? 0 : session_digest(session);
    if (!code)
        snprintf(shown, sizeof shown, "%.200s (%016" PRIx64 ")", session->info->source, hash);
    return ranks_agree_on(code, &(struct ranks_fact){ "model", shown, hash });
}

int session_open(struct session *session, const struct cli_command *command,
                 const struct cli_common *common) {
    *session = (struct session){ .command = command, .common = common };
    int code = EXIT_OK;
    if (command->takes & TAKES_COMPUTE) code = session_context(command, common, &session->ctx);
    if (code == EXIT_OK) code = open_model(session);
    if (code == EXIT_OK) take_model(session);
    if (code == EXIT_OK) code = refuse_images(session);
    code = agree_on_model(session, code);
    if (code) {
        session_close(session);
        return code;
    }
    if (session->alone) return EXIT_OK;
    session_warn(session->model, common);
    for (int64_t i = 0; common->verbose && qkv_model_unused(session->model, i); i++)
        fprintf(stderr, "unused tensor: %s\n", qkv_model_unused(session->model, i));
    return EXIT_OK;
}

int session_open_target(struct session *session, const struct cli_command *command,
                        const struct cli_common *common) {
    const char *name = model_name(common);
    qkv_error error;
    if (!name || !is_folder(name))
        return cli_usage(command, "--target needs a --model that is a folder");
    *session = (struct session){ .command = command, .common = common };
    const qkv_status status = qkv_tokenizer_open(name, QKV_TARGET, &session->alone, &error);
    session->tokenizer = session->alone;
    return cli_status(status, &error);
}

void session_close(struct session *session) {
    qkv_model_free(session->whole ? session->whole : session->model);
    qkv_tokenizer_free(session->alone);
    qkv_ctx_free(session->ctx);
    session->model = session->whole = NULL;
    session->alone = NULL;
    session->ctx = NULL;
}

/* Of an id without a token "", NULL: no memory. */
static char *show(const qkv_tokenizer *tokenizer, int32_t id, bool escaped) {
    qkv_text *shown = NULL;
    qkv_error error;
    if (qkv_tokenizer_show(tokenizer, id, &shown, &error) == QKV_ERR_MEMORY) return NULL;
    const char *const bytes = shown ? shown->bytes : "";
    const size_t n = shown ? (size_t)shown->n : 0;
    char *const text = escaped ? term_escape(bytes, n) : strndup(bytes, n);
    qkv_text_free(shown);
    return text;
}

char *token_shown(const qkv_tokenizer *tokenizer, int32_t id) { return show(tokenizer, id, false); }
char *token_label(const qkv_tokenizer *tokenizer, int32_t id) { return show(tokenizer, id, true); }

bool label_is(const char *label, const char *word) {
    static const char space[] = "\u2423";
    if (strcmp(label, word) == 0) return true;
    if (strncmp(label, space, sizeof space - 1) != 0) return false;
    return strcmp(label + sizeof space - 1, word + (*word == ' ')) == 0;
}

void label_where(const uint8_t *is, int64_t n, char *text, size_t bytes) {
    enum { MOST = 8 };
    int64_t n_places = 0, told = 0;
    for (int64_t i = 0; i < n; i++) n_places += is[i] != 0;
    *text = '\0';
    for (int64_t i = 0; i < n && told < MOST; i++) {
        if (!is[i]) continue;
        text_append(text, bytes, "%s%" PRId64,
                    told == 0              ? ""
                    : told + 1 == n_places ? " and "
                                           : ", ",
                    i);
        told++;
    }
    if (n_places > MOST) text_append(text, bytes, " and %" PRId64 " more", n_places - MOST);
}

qkv_status label_find(char *const *labels, int64_t n, const char *option, const char *word,
                      int64_t *place, qkv_error *error) {
    char places[200];
    int64_t n_found = 0;
    uint8_t *const is = calloc((size_t)n + 1, 1);
    *place = -1;
    if (!is) return text_no_memory(error);
    for (int64_t i = 0; i < n; i++) {
        if (!label_is(labels[i], word)) continue;
        is[i] = 1;
        if (n_found++ == 0) *place = i;
    }
    label_where(is, n, places, sizeof places);
    free(is);
    if (n_found < 2) return QKV_OK;
    *place = -1;
    return text_error(error, QKV_ERR_ARGUMENT,
                      "%s: '%.60s' stands %" PRId64 " times, at tokens %s: name one by its number",
                      option, word, n_found, places);
}

char *session_token(const struct session *session, int32_t id) {
    return token_label(session->tokenizer, id);
}

qkv_status session_labels(const struct session *session, const qkv_encoding *input, char ***labels,
                          qkv_error *error) {
    *labels = calloc((size_t)input->n + 1, sizeof(char *));
    bool made = *labels != NULL;
    for (int64_t i = 0; made && i < input->n; i++) {
        char name[32];
        qkv_image_token(input, i, name);
        (*labels)[i] = *name ? strdup(name) : session_token(session, input->ids[i]);
        made = (*labels)[i] != NULL;
    }
    return made ? QKV_OK : text_no_memory(error);
}

void session_labels_free(char **labels, int64_t n) {
    for (int64_t i = 0; labels && i < n; i++) free(labels[i]);
    free(labels);
}

bool session_place(const char *text, int64_t *layer, int64_t *head) {
    char first[24];
    const char *dot = strchr(text, '.');
    if (!dot || dot - text >= (int)sizeof first) return false;
    snprintf(first, sizeof first, "%.*s", (int)(dot - text), text);
    return number_int(first, 0, INT32_MAX, layer) && number_int(dot + 1, 0, INT32_MAX, head);
}

/* "L.H", or "H" together with --layer L. */
static bool parse_head(const struct cli_common *common, int64_t *layer, int64_t *head) {
    if (strchr(common->head, '.')) return session_place(common->head, layer, head);
    *layer = common->layer.value;
    return number_int(common->head, 0, INT32_MAX, head);
}

int session_pair(const struct session *session, const char *option) {
    if (!option || session->info->kind == QKV_MODEL_PAIR) return EXIT_OK;
    return cli_usage(session->command, "%s: %s has no decoder over an encoder", option,
                     session->info->source);
}

void session_sizes(const struct session *session, qkv_attention_kind which, int64_t *n_layers,
                   int64_t *n_heads) {
    const qkv_model_info *info = session->info;
    *n_layers = which == QKV_SELF ? info->n_layers : info->n_decoder_layers;
    *n_heads = which == QKV_SELF ? info->n_heads : info->n_decoder_heads;
}

int session_check_head(const struct session *session, qkv_attention_kind which, const char *option,
                       const char *text, int64_t layer, int64_t head, const char *model) {
    int64_t n_layers, n_heads;
    session_sizes(session, which, &n_layers, &n_heads);
    if (layer < n_layers && head < n_heads) return EXIT_OK;
    return cli_usage(session->command,
                     "%s: there is no %s: the %s has layers 0 to %" PRId64 ", heads 0 to %" PRId64,
                     option, text, model, n_layers - 1, n_heads - 1);
}

int session_head(const struct session *session, qkv_attention_kind which, bool *given,
                 int64_t *layer, int64_t *head) {
    const struct cli_common *common = session->common;
    const struct cli_command *command = session->command;
    *given = common->head != NULL;
    if (!common->head && common->layer.set) return cli_usage(command, "--layer without --head");
    if (!common->head) return EXIT_OK;
    if (!parse_head(common, layer, head))
        return cli_usage(command, "--head: '%s' is not L.H or H", common->head);
    if (!strchr(common->head, '.') && !common->layer.set)
        return cli_usage(command, "--head %s names no layer: --head L.%s, or --layer L --head %s",
                         common->head, common->head, common->head);
    if (common->layer.set && *layer != common->layer.value)
        return cli_usage(command, "--head %s and --layer %" PRId64 " are different layers",
                         common->head, common->layer.value);
    char text[48];
    snprintf(text, sizeof text, "%" PRId64 ".%" PRId64, *layer, *head);
    return session_check_head(session, which, "--head", text, *layer, *head,
                              which == QKV_SELF ? "model" : "decoder");
}

qkv_status text_shorten(const struct session *session, const qkv_tokenizer *tokenizer, int64_t most,
                        const char *what, const char *does, const char *longer,
                        qkv_encoding *encoding, qkv_error *error) {
    if (encoding->n <= most) return QKV_OK;
    if (!session->common->truncate)
        return text_error(error, QKV_ERR_SHAPE,
                          "%s has %" PRId64 " tokens, the model %s %" PRId64
                          ": %s--truncate cuts it",
                          what, encoding->n, does, most, longer ? longer : "");
    qkv_tokenizer_cut(tokenizer, encoding, most);
    return QKV_OK;
}

qkv_status text_fit(const struct session *session, const char *longer, qkv_encoding *encoding,
                    qkv_error *error) {
    if (!(session->command->takes & TAKES_TRUNCATE)) return QKV_OK;
    return text_shorten(session, session->tokenizer, session->info->max_len, "the text", "takes",
                        longer, encoding, error);
}
