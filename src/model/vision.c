/* Images as encodings, and what is pooled of them: see qkv/vision.h. */
#include "qkv/vision.h"

#include <math.h>

#include "core/fpstate.h"
#include "core/options.h"
#include "image/prepare.h"
#include "layer/angles.h"
#include "model/model_impl.h"
#include "model/run_impl.h"
#include "text/tokenizer.h"

enum { MAX_TOKENS = 1 << 20 };

/* ---- Towers ---------------------------------------------------------------------------------- */

const qkv_model *qkv_model_images(const qkv_model *model) {
    if (!model || model->info.patch_height > 0) return model;
    return model->tower;
}

qkv_status qkvi_model_read_rules(const char *folder, qkv_model *model, qkv_error *error) {
    qkv_model *const sees = model->tower ? model->tower : model;
    if (sees->info.patch_height == 0) return QKV_OK;
    qkv_error *const problem = &sees->image_problem;
    const qkv_status status =
        qkvi_image_rules_find(folder, sees->info.architecture, &sees->image_rules, problem);
    problem->status = status; /* of IO, too: an encoding of pixels needs no rules */
    return status == QKV_ERR_MEMORY ? qkvi_error_set(error, status, "%s", problem->message)
                                    : QKV_OK;
}

/* ---- Encodings ------------------------------------------------------------------------------- */

static qkv_status check_size(const qkv_model *model, int64_t height, int64_t width, int flags,
                             qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    const bool any =
        (flags & QKV_IMAGE_ANY_SIZE) || qkvi_family_of(info->architecture)->image.interpolates;
    if (height < info->patch_height || width < info->patch_width)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "an image of %lld by %lld pixels (height by width) has no patch of "
                              "%lld by %lld",
                              (long long)height, (long long)width, (long long)info->patch_height,
                              (long long)info->patch_width);
    if (!any && (height != info->image_height || width != info->image_width))
        return qkvi_error_set(
            error, QKV_ERR_SHAPE,
            "the image has %lld by %lld pixels (height by width), the model %lld by %lld",
            (long long)height, (long long)width, (long long)info->image_height,
            (long long)info->image_width);
    if (width <= QKV_IMAGE_MAX_PIXELS / height) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_LIMIT, "an image of %lld by %lld pixels has more than %d",
                          (long long)height, (long long)width, QKV_IMAGE_MAX_PIXELS);
}

/* What comes before arrays are made. */
static qkv_image_tokens measure(const qkv_model_info *info, int64_t height, int64_t width) {
    return (qkv_image_tokens){ .height = height,
                               .width = width,
                               .n_prefix = info->n_prefix,
                               .n_registers = info->n_registers,
                               .rows = height / info->patch_height,
                               .columns = width / info->patch_width,
                               .patch_height = info->patch_height,
                               .patch_width = info->patch_width };
}

static qkv_status fill(const qkv_image_tokens *sizes, const float *pixels, qkv_encoding *out,
                       qkv_error *error) {
    const size_t n = (size_t)out->n, n_pixels = (size_t)(3 * sizes->height * sizes->width);
    out->ids = qkvi_calloc_array(n, sizeof *out->ids);
    out->types = qkvi_calloc_array(n, sizeof *out->types);
    out->special = qkvi_calloc_array(n, sizeof *out->special);
    out->begin = qkvi_calloc_array(n, sizeof *out->begin);
    out->end = qkvi_calloc_array(n, sizeof *out->end);
    out->image = calloc(1, sizeof *out->image);
    float *const copy = qkvi_malloc_array(n_pixels, sizeof *copy);
    if (out->image) {
        *out->image = *sizes;
        out->image->pixels = copy; /* the encoding's now */
    }
    if (!out->ids || !out->types || !out->special || !out->begin || !out->end || !out->image ||
        !copy) {
        if (!out->image) free(copy);
        return qkvi_no_memory(error, "an image");
    }
    memcpy(copy, pixels, n_pixels * sizeof *copy);
    memset(out->special, 1, (size_t)sizes->n_prefix);
    return QKV_OK;
}

static qkv_status check_sees(const qkv_model *model, qkv_error *error) {
    if (model->info.patch_height > 0) return QKV_OK;
    return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a %s reads texts, not images",
                          model->info.source, model->info.architecture);
}

qkv_status qkv_image_encode(const qkv_model *model, int64_t height, int64_t width,
                            const float *pixels, int flags, qkv_encoding **encoding,
                            qkv_error *error) {
    QKV_TRY(qkvi_need(encoding, "encoding", error));
    *encoding = NULL;
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(pixels, "pixels", error));
    if (flags & ~QKV_IMAGE_ANY_SIZE)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "flags = %#x has unknown bits",
                              (unsigned)flags);
    QKV_TRY(check_sees(model, error));
    QKV_TRY(check_size(model, height, width, flags, error));
    const qkv_image_tokens sizes = measure(&model->info, height, width);
    const int64_t n = sizes.n_prefix + sizes.rows * sizes.columns;
    if (n > MAX_TOKENS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the image has %lld patches, more than %d",
                              (long long)n, MAX_TOKENS);
    qkv_encoding *const out = calloc(1, sizeof *out);
    if (!out) return qkvi_no_memory(error, "an image");
    out->n = n;
    const qkv_status status = fill(&sizes, pixels, out, error);
    if (status == QKV_OK)
        *encoding = out;
    else
        qkv_encoding_free(out);
    return status;
}

/* ---- Images as they are ---------------------------------------------------------------------- */

/* The rules for another side of what the model reads. */
static qkv_status resize(int64_t size, qkvi_image_rules *rules, qkv_error *error) {
    if (size == 0) return QKV_OK;
    if (size < 0)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "size = %lld is below 0", (long long)size);
    if (size > QKVI_IMAGE_MAX_OUTPUT)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "size = %lld is more than %d", (long long)size,
                              QKVI_IMAGE_MAX_OUTPUT);
    const bool crops = rules->crop_height > 0 || rules->shortest_edge > 0;
    rules->height = rules->width = crops ? 0 : size;
    rules->shortest_edge = rules->crop_height = rules->crop_width = crops ? size : 0;
    return QKV_OK;
}

typedef struct seen {
    qkvi_image_view view;
    float *pixels;
    uint8_t *rgb;
} seen;

static qkv_status see(const qkv_model *model, const qkv_image *image, const qkvi_image_rules *rules,
                      int flags, seen *s, qkv_encoding **encoding, qkv_error *error) {
    QKV_TRY(qkvi_image_view_of(rules, image, &s->view, error));
    QKV_TRY(check_size(model, s->view.height, s->view.width, flags, error));
    const size_t n = (size_t)(3 * s->view.height * s->view.width);
    s->pixels = qkvi_malloc_array(n, sizeof *s->pixels);
    s->rgb = qkvi_malloc_array(n, 1);
    if (!s->pixels || !s->rgb) return qkvi_no_memory(error, "an image");
    QKV_TRY(qkvi_image_prepare(rules, image, s->pixels, s->rgb, error));
    QKV_TRY(
        qkv_image_encode(model, s->view.height, s->view.width, s->pixels, flags, encoding, error));
    qkv_image_tokens *const tokens = (*encoding)->image;
    tokens->rgb = s->rgb; /* the encoding's now */
    s->rgb = NULL;
    tokens->y0 = s->view.y0, tokens->x0 = s->view.x0;
    tokens->y1 = s->view.y1, tokens->x1 = s->view.x1;
    return QKV_OK;
}

qkv_status qkv_image_see(const qkv_model *model, const qkv_image *image,
                         const qkv_see_options *options, qkv_encoding **encoding,
                         qkv_error *error) {
    qkv_see_options asked = qkv_see_options_init();
    QKV_TRY(qkvi_need(encoding, "encoding", error));
    *encoding = NULL;
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(image, "image", error));
    if (options)
        QKV_TRY(qkvi_options_read(&asked, sizeof asked, options, "qkv_see_options", error));
    QKV_TRY(check_sees(model, error));
    if (model->image_problem.status != QKV_OK)
        return qkvi_error_set(error, model->image_problem.status, "%s",
                              model->image_problem.message);
    qkvi_image_rules rules = model->image_rules;
    QKV_TRY(resize(asked.size, &rules, error));
    seen s = { .pixels = NULL };
    const qkv_status status =
        see(model, image, &rules, asked.size > 0 ? QKV_IMAGE_ANY_SIZE : 0, &s, encoding, error);
    free(s.pixels);
    free(s.rgb);
    return status;
}

void qkv_image_token(const qkv_encoding *encoding, int64_t index, char name[32]) {
    if (!name) return;
    name[0] = 0;
    if (!encoding || !encoding->image || index < 0 || index >= encoding->n) return;
    const qkv_image_tokens *const image = encoding->image;
    const int64_t n_classes = image->n_prefix - image->n_registers, at = index - image->n_prefix;
    if (index < n_classes)
        snprintf(name, 32, "%s", index == 0 ? "[CLS]" : "[DIST]");
    else if (at < 0)
        snprintf(name, 32, "[REG%d]", (int)(index - n_classes));
    else
        snprintf(name, 32, "%d,%d", (int)(at / image->columns), (int)(at % image->columns));
}

/* ---- Heads ----------------------------------------------------------------------------------- */

/* The row of a text that is pooled. */
static int64_t end_of_text(const qkv_model *model, const qkv_run *run, int64_t b) {
    const qkvi_batch_rows *const rows = &qkvi_net_stack(run->pass, 0)->rows;
    const int32_t *const ids = rows->ids + rows->first_row[b];
    const int64_t n = run->lengths[b];
    int64_t at = 0;
    if (model->info.padded_len > 0) return n - 1;
    if (model->info.eos_id == 2) {
        for (int64_t i = 1; i < n; i++)
            if (ids[i] > ids[at]) at = i;
        return at;
    }
    for (int64_t i = 0; i < n; i++)
        if (ids[i] == model->info.eos_id) return i;
    return 0;
}

static qkv_status pool(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                       float *pooled, qkv_error *error) {
    const float *const x = qkv_run_hidden(run, QKV_SELF, b, run->n_layers);
    if (model->info.patch_height > 0)
        return qkvi_net_pool_image(ctx, model->net, run->lengths[b], x, pooled, error);
    if (!qkvi_family_of(model->info.architecture)->joint)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED,
                              "%s: a %s has no vector of a text of its own", model->info.source,
                              model->info.architecture);
    memcpy(pooled, x + end_of_text(model, run, b) * run->hidden,
           (size_t)run->hidden * sizeof *pooled);
    return QKV_OK;
}

qkv_status qkv_model_pool(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                          float *pooled, qkv_error *error) {
    QKV_TRY(qkvi_run_check(ctx, model, run, b, pooled, "pooled", error));
    return pool(ctx, model, run, b, pooled, error);
}

qkv_status qkv_model_pad(const qkv_model *model, qkv_encoding *encoding, qkv_error *error) {
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(encoding, "encoding", error));
    if (encoding->image)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "encoding: images are not filled up");
    const int32_t own = model->tokenizer ? model->tokenizer->special[QKV_TOKEN_PAD] : -1;
    return qkvi_encoding_pad(encoding, model->info.padded_len,
                             own >= 0 ? own : (int32_t)model->info.pad_id, error);
}

qkv_status qkv_model_joint(qkv_ctx *ctx, const qkv_model *model, const qkv_run *run, int64_t b,
                           float *vector, qkv_error *error) {
    QKV_TRY(qkvi_run_check(ctx, model, run, b, vector, "vector", error));
    float *const pooled = qkvi_aligned_array((size_t)run->hidden, sizeof *pooled);
    if (!pooled) return qkvi_no_memory(error, "a vector");
    qkv_status status =
        model->info.joint_dim > 0 ? pool(ctx, model, run, b, pooled, error) : QKV_OK;
    if (status == QKV_OK) status = qkvi_net_join(ctx, model->net, pooled, vector, error);
    qkvi_aligned_free(pooled);
    return status;
}

static double product(int64_t n, const float *x, const float *y) {
    double sum = 0;
    for (int64_t c = 0; c < n; c++) sum += (double)x[c] * (double)y[c];
    return sum;
}

/* exp(x - most), of which the least are 0. */
static double share_of(double x, double most) {
    return x - most > -700 ? qkvi_angle_exp(x - most) : 0;
}

static double sigmoid(double x) {
    return x >= 0 ? 1 / (1 + share_of(-x, 0)) : share_of(x, 0) / (1 + share_of(x, 0));
}

static void match(const qkv_model_info *info, const float *image, int64_t n_texts,
                  const float *texts, double *logits, double *shares) {
    const int64_t n = info->joint_dim;
    const double length = product(n, image, image);
    double most = -INFINITY, sum = 0;
    for (int64_t t = 0; t < n_texts; t++) {
        const float *const text = texts + t * n;
        const double lengths = sqrt(length * product(n, text, text));
        const double cosine = lengths > 0 ? product(n, image, text) / lengths : 0;
        logits[t] = info->match_scale * cosine + info->match_bias;
        if (logits[t] > most) most = logits[t];
    }
    for (int64_t t = 0; shares && info->match_each && t < n_texts; t++)
        shares[t] = sigmoid(logits[t]);
    if (!shares || info->match_each) return;
    for (int64_t t = 0; t < n_texts; t++) sum += shares[t] = share_of(logits[t], most);
    for (int64_t t = 0; t < n_texts; t++) shares[t] /= sum;
}

qkv_status qkv_image_match(const qkv_model *model, const float *image, int64_t n_texts,
                           const float *texts, double *logits, double *shares, qkv_error *error) {
    QKV_TRY(qkvi_need(model, "model", error));
    QKV_TRY(qkvi_need(image, "image", error));
    QKV_TRY(qkvi_need(texts, "texts", error));
    QKV_TRY(qkvi_need(logits, "logits", error));
    if (n_texts < 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "n_texts = %lld is below 1",
                              (long long)n_texts);
    if (model->info.joint_dim == 0)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "%s: a %s matches no texts and images",
                              model->info.source, model->info.architecture);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    match(&model->info, image, n_texts, texts, logits, shares);
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}
