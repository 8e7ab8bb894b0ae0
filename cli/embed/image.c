/*
 * `qkv embed --image`: the vector of an image, and how well texts match it, by a model of both
 * (CLIP). Vectors are those of the space that both share, or what a model of images alone pools.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/shared.h"
#include "embed/embed.h"
#include <qkv/image.h>
#include <qkv/vision.h>

/* What either tower makes of an input. */
static qkv_status vector_of(const struct embed *e, const qkv_model *model, qkv_encoding *input,
                            float *vector, qkv_error *error) {
    const qkv_encoding *const inputs[] = { input };
    qkv_run *run = NULL;
    qkv_status status = qkv_model_run(e->session->ctx, model, 1, inputs, 0, NULL, &run, error);
    if (status == QKV_OK)
        status = qkv_model_get_info(model)->joint_dim > 0
                     ? qkv_model_joint(e->session->ctx, model, run, 0, vector, error)
                     : qkv_model_pool(e->session->ctx, model, run, 0, vector, error);
    qkv_run_free(run);
    return status;
}

static qkv_status image_vector(const struct embed *e, float **vector, int64_t *dim,
                               qkv_error *error) {
    const qkv_model *const model = qkv_model_images(e->session->model);
    qkv_image *image = NULL;
    qkv_encoding *tokens = NULL;
    *vector = NULL;
    if (!model)
        return text_error(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads texts, not images",
                          e->session->info->source, e->session->info->architecture);
    const qkv_model_info *const info = qkv_model_get_info(model);
    *dim = info->joint_dim > 0 ? info->joint_dim : info->hidden;
    char room[SHARED_ROOM];
    qkv_status status = qkv_image_read(shared_path(e->options->image, room), &image, error);
    if (status == QKV_OK) status = qkv_image_see(model, image, NULL, &tokens, error);
    if (status == QKV_OK && !(*vector = calloc((size_t)*dim, sizeof **vector)))
        status = text_no_memory(error);
    if (status == QKV_OK) status = vector_of(e, model, tokens, *vector, error);
    qkv_encoding_free(tokens);
    qkv_image_free(image);
    return status;
}

qkv_status embed_see(struct embed *e, qkv_error *error) {
    const char *const name = e->options->image;
    e->texts = calloc(1, sizeof *e->texts);
    e->encodings = calloc(1, sizeof(qkv_encoding *));
    e->lengths = calloc(1, sizeof *e->lengths);
    if (!e->texts || !e->encodings || !e->lengths) return text_no_memory(error);
    char *const copy = strdup(name);
    if (!copy) return text_no_memory(error);
    e->texts[0] = (struct text){ copy, strlen(copy) };
    e->n = 1;
    const qkv_status status = image_vector(e, &e->vectors, &e->dim, error);
    if (status == QKV_OK) e->lengths[0] = sqrt(rows_product(e->vectors, e->vectors, e->dim));
    return status;
}

/* ---- Matches --------------------------------------------------------------------------------- */

static qkv_status text_vectors(struct embed *e, int n_words, char **words, float *vectors,
                               qkv_error *error) {
    const struct session *const session = e->session;
    for (int t = 0; t < n_words; t++) {
        qkv_encoding *tokens = NULL;
        qkv_status status = qkv_tokenizer_encode(session->tokenizer, words[t], strlen(words[t]),
                                                 NULL, 0, &tokens, error);
        if (status == QKV_OK) status = text_fit(session, "", tokens, error);
        if (status == QKV_OK) status = qkv_model_pad(session->model, tokens, error);
        if (status == QKV_OK)
            status =
                vector_of(e, session->model, tokens, vectors + t * session->info->joint_dim, error);
        qkv_encoding_free(tokens);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

/* One text of the answer. */
typedef struct match {
    const char *text;
    double cosine, logit, share;
} match;

static json_t *match_json(const match *m) {
    return json_set(NULL, "text:t cosine:n logit:n share:n", m->text, m->cosine, m->logit,
                    m->share);
}

static void print_match(const match *m) {
    printf("%5.1f %%  %6.3f  ", 100 * m->share, m->cosine);
    term_print(stdout, m->text);
    putchar('\n');
}

static int answer(const struct embed *e, int n_words, char **words, const double *logits,
                  const double *shares) {
    const qkv_model_info *const info = e->session->info;
    json_t *const list = e->options->common.json ? json_array() : NULL;
    for (int t = 0; t < n_words; t++) {
        const match m = { words[t], (logits[t] - info->match_bias) / info->match_scale, logits[t],
                          shares[t] };
        if (list)
            json_array_append_new(list, match_json(&m));
        else
            print_match(&m);
    }
    if (!e->options->common.json) return EXIT_OK;
    json_t *const object = json_set(NULL, "image:t matches:o", e->options->image, list);
    return json_emit(object);
}

int embed_match(struct embed *e, int n_words, char **words) {
    const qkv_model_info *const info = e->session->info;
    qkv_error error;
    int64_t dim;
    if (info->joint_dim == 0)
        return cli_fail("%s: a %s matches no texts and images", info->source, info->architecture);
    float *const texts = calloc((size_t)n_words, (size_t)info->joint_dim * sizeof *texts);
    double *const found = calloc((size_t)n_words, 2 * sizeof *found);
    float *image = NULL;
    qkv_status status = texts && found ? QKV_OK : text_no_memory(&error);
    if (status == QKV_OK) status = image_vector(e, &image, &dim, &error);
    if (status == QKV_OK) status = text_vectors(e, n_words, words, texts, &error);
    if (status == QKV_OK)
        status = qkv_image_match(e->session->model, image, n_words, texts, found, found + n_words,
                                 &error);
    const int code = status == QKV_OK ? answer(e, n_words, words, found, found + n_words)
                                      : cli_status(status, &error);
    free(image);
    free(texts);
    free(found);
    return code;
}
