/* Runs a model on an image: see image.h. */
#include "look/image.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/predict.h"
#include <qkv/patterns.h>

/* ---- Options --------------------------------------------------------------------------------- */

int image_begin(struct image_seen *t, const struct session *session,
                const struct look_options *options, const char *path) {
    *t = (struct image_seen){
        .options = options, .path = path, .session = session, .text = { .session = session }
    };
    t->seen = (struct seen){ .common = &options->common,
                             .sink = &options->sink,
                             .ctx = session->ctx,
                             .in_layers = true,
                             .overview = OVERVIEW_WORDS,
                             .print = image_print,
                             .add_json = image_add_json,
                             .make_page = image_page,
                             .draw = image_draw };
    const int code = what_if_parse(session->command, &options->what_if, &t->what_if);
    return code ? code
                : session_head(session, QKV_SELF, &t->seen.by_name, &t->seen.choice.layer,
                               &t->seen.choice.head);
}

/* "3,4" by row and column, "CLS" with or without brackets, "all". */
static qkv_status find_query(struct image_seen *t, qkv_error *error) {
    const char *const query = t->options->query;
    const int64_t n = t->input->n;
    char named[40];
    t->query = t->tokens->n_prefix > 0 ? 0 : -1;
    if (!query) return QKV_OK;
    t->query = -1;
    if (strcmp(query, "all") == 0) return QKV_OK;
    snprintf(named, sizeof named, "[%.30s]", query);
    for (int64_t i = 0; i < n && t->query < 0; i++)
        if (strcmp(t->text.labels[i], query) == 0 || strcmp(t->text.labels[i], named) == 0)
            t->query = i;
    if (t->query >= 0) return QKV_OK;
    char *const shown = term_escape(query, strlen(query));
    text_error(error, QKV_ERR_ARGUMENT,
               "--query: '%.60s' is no token of the image: patches are 0,0 to %" PRId64 ",%" PRId64
               "%s",
               shown ? shown : "", t->tokens->rows - 1, t->tokens->columns - 1,
               t->tokens->n_prefix > 0 ? ", others [CLS] and so on" : "; 'all' is their mean");
    free(shown);
    return QKV_ERR_ARGUMENT;
}

/* ---- Maps ------------------------------------------------------------------------------------ */

/* What the query looks at, of the patches: its row, or the mean of those of all patches. */
static qkv_status make_map(struct image_seen *t, int64_t index, float *room, float *map,
                           qkv_error *error) {
    const int64_t first = t->tokens->n_prefix, n = t->input->n, n_patches = image_patches(t),
                  i0 = t->query < 0 ? first : t->query, i1 = t->query < 0 ? n : t->query + 1;
    memset(map, 0, (size_t)n_patches * sizeof *map);
    for (int64_t i = i0; i < i1; i++) {
        const qkv_status status =
            qkv_heads_weights(t->seen.heads, index, i, i + 1, 0, n, room, n, error);
        if (status != QKV_OK) return status;
        for (int64_t j = 0; j < n_patches; j++) map[j] += room[first + j];
    }
    for (int64_t j = 0; j < n_patches; j++) map[j] /= (float)(i1 - i0);
    return QKV_OK;
}

static qkv_status make_maps(struct image_seen *t, qkv_error *error) {
    const int64_t n_patches = image_patches(t);
    float *const room = malloc((size_t)t->input->n * sizeof *room + 1);
    t->maps = malloc((size_t)(t->seen.n_heads * n_patches) * sizeof *t->maps + 1);
    qkv_status status = room && t->maps ? QKV_OK : text_no_memory(error);
    for (int64_t h = 0; h < t->seen.n_heads && status == QKV_OK; h++)
        status = make_map(t, h, room, t->maps + h * n_patches, error);
    free(room);
    return status;
}

/* Of one token, or the mean of those of all patches. */
static qkv_status make_rollout(struct image_seen *t, qkv_error *error) {
    const int64_t first = t->tokens->n_prefix, n = t->input->n, n_patches = image_patches(t),
                  i0 = t->query < 0 ? first : t->query, i1 = t->query < 0 ? n : t->query + 1;
    float *const received = malloc((size_t)n * sizeof *received + 1);
    t->rollout = calloc((size_t)n_patches + 1, sizeof *t->rollout);
    qkv_status status = received && t->rollout ? QKV_OK : text_no_memory(error);
    if (status == QKV_OK)
        status = qkv_inspect_rollout(t->session->ctx, t->session->model, t->text.run, 0, i0, i1,
                                     (qkv_rollout_heads)t->options->fuse.value, received, error);
    if (status == QKV_OK)
        memcpy(t->rollout, received + first, (size_t)n_patches * sizeof *received);
    free(received);
    return status;
}

/* The named head, or of the last layer the one that looks most sharply at a patch. */
static void choose_head(struct image_seen *t) {
    qkv_heads_choice *const choice = &t->seen.choice;
    const int64_t across = t->seen.info->n_heads, n_patches = image_patches(t),
                  last = (t->seen.info->n_layers - 1) * across;
    int64_t best = t->seen.by_name ? choice->layer * across + choice->head : last;
    double sum;
    for (int64_t h = last; h < last + across && !t->seen.by_name; h++) {
        const float *const old = t->maps + best * n_patches, *const map = t->maps + h * n_patches;
        if (map[image_peak(t, map, &sum)] > old[image_peak(t, old, &sum)]) best = h;
    }
    const float *const map = t->maps + best * n_patches;
    const int64_t peak = image_peak(t, map, &sum);
    *choice = qkv_heads_choice_init();
    choice->layer = best / across, choice->head = best % across;
    choice->query = t->query < 0 ? t->tokens->n_prefix + peak : t->query;
    choice->key = t->tokens->n_prefix + peak;
    choice->weight = map[peak];
    t->seen.head = best;
}

/* ---------------------------------------------------------------------------------------------- */

static qkv_status open_image(struct image_seen *t, qkv_error *error) {
    qkv_status status = session_see(t->session, t->path, &t->image, &t->input, error);
    if (status != QKV_OK) return status;
    t->tokens = t->input->image;
    t->text.input = t->input;
    status = attended_open(&t->text, QKV_SELF, NULL, &t->what_if, error);
    return status == QKV_OK ? find_query(t, error) : status;
}

/* Labels, and those of the model as it is, to hold what follows from a question against. */
static qkv_status make_labels(struct image_seen *t, qkv_error *error) {
    const qkv_encoding *const inputs[] = { t->input };
    qkv_run *run = NULL;
    qkv_status status = labels_make(t->session, t->text.run, &t->labels, error);
    if (status != QKV_OK || !t->labels || !t->text.what_if.any) return status;
    status = qkv_model_run(t->session->ctx, t->session->model, 1, inputs, 0, NULL, &run, error);
    if (status == QKV_OK) status = labels_make(t->session, run, &t->before, error);
    qkv_run_free(run);
    return status;
}

static void take_sides(struct image_seen *t) {
    struct seen *const seen = &t->seen;
    seen->keys = seen->queries = (struct seen_side){
        .n = t->input->n, .names = t->text.labels, .tokens_a_name = 1, .sign = "", .note = ""
    };
    seen->first = seen->by_name ? seen->head : 0;
    seen->n_file = seen->n_order = seen->by_name ? 1 : seen->n_heads;
    seen->one = seen->has_weights = seen->by_name && !t->options->rollout;
}

qkv_status image_look(struct image_seen *t, qkv_error *error) {
    qkv_status status = open_image(t, error);
    if (status == QKV_OK) status = attended_run(&t->text, 0, error);
    if (status == QKV_OK) status = seen_heads(&t->seen, t->text.heads, error);
    if (status == QKV_OK) status = make_labels(t, error);
    if (status == QKV_OK) status = make_maps(t, error);
    if (status == QKV_OK) status = make_rollout(t, error);
    if (status != QKV_OK) return status;
    choose_head(t);
    take_sides(t);
    image_describe(t);
    return QKV_OK;
}

void image_free(struct image_seen *t) {
    free(t->labels);
    free(t->before);
    free(t->maps);
    free(t->rollout);
    seen_free(&t->seen);
    attended_free(&t->text);
    qkv_encoding_free(t->input);
    qkv_image_free(t->image);
}
