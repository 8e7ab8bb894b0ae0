/* Models that read images: qkv/vision.h, and the calls of qkv/model.h on images. */
#include "oom/calls.h"
#include "qkv/vision.h"

#define FOLDER(name) QKV_TEST_DATA "/golden/vision/" name

enum { SIDE = 12, MOST = 64 };

static qkv_ctx *ctx;
static qkv_model *opened, *clip, *siglip, *pair, *registers;
static qkv_encoding *made, *image, *small;
static qkv_run *run, *image_run, *clip_run, *classes;
static float pixels[3 * SIDE * SIDE], vector[MOST];
static uint8_t rgb[3 * 20 * 17];
static qkv_image *picture;

static void new_ctx(void) { oom_must(qkv_ctx_create(NULL, &ctx, NULL), NULL); }

static void drop_ctx(void) {
    qkv_ctx_free(ctx);
    ctx = NULL;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static qkv_status open_model(const char *folder, qkv_error *error) {
    opened = clip; /* must become NULL or a model */
    const qkv_status status = qkv_model_open(folder, NULL, &opened, error);
    oom_claim(status == QKV_OK || !opened, "model is NULL after a failure");
    return status;
}
static qkv_status open_vit(qkv_error *error) { return open_model(FOLDER("vit_1"), error); }
static qkv_status open_clip(qkv_error *error) { return open_model(FOLDER("clip_1"), error); }

static uint64_t take_model(void) {
    const qkv_model_info *const info = qkv_model_get_info(qkv_model_images(opened));
    const uint64_t hash = oom_hash(0, &info->n_parameters, sizeof info->n_parameters);
    return oom_hash_text(hash, qkv_model_label(opened, 0));
}

static void drop_model(void) {
    qkv_model_free(opened);
    opened = NULL;
}

/* ---- Images ---------------------------------------------------------------------------------- */

static qkv_status encode(qkv_error *error) {
    made = image; /* must become NULL or an encoding */
    const qkv_status status =
        qkv_image_encode(qkv_model_images(clip), SIDE, SIDE, pixels, 0, &made, error);
    oom_claim(status == QKV_OK || !made, "encoding is NULL after a failure");
    return status;
}

static qkv_status see(qkv_error *error) {
    made = image; /* must become NULL or an encoding */
    const qkv_status status = qkv_image_see(qkv_model_images(clip), picture, NULL, &made, error);
    oom_claim(status == QKV_OK || !made, "encoding is NULL after a failure");
    return status;
}

static uint64_t take_encoding(void) {
    const qkv_image_tokens *const of = made->image;
    const uint64_t hash = oom_hash(0, of->pixels, sizeof pixels);
    return oom_hash(hash, made->special, (size_t)made->n);
}

static void drop_encoding(void) {
    qkv_encoding_free(made);
    made = NULL;
}

static qkv_status run_small(qkv_error *error) {
    return qkv_model_run(ctx, registers, 1, (const qkv_encoding *const *)&small, QKV_RUN_CAPTURE,
                         NULL, &run, error);
}

static uint64_t take_run(void) {
    const qkv_model_info *const info = qkv_model_get_info(registers);
    return oom_hash(0, qkv_run_hidden(run, QKV_SELF, 0, info->n_layers),
                    (size_t)(small->n * info->hidden) * sizeof(float));
}

static void drop_run(void) {
    qkv_run_free(run);
    run = NULL;
    drop_ctx();
}

/* ---- Heads ----------------------------------------------------------------------------------- */

static qkv_status pool(qkv_error *error) {
    return qkv_model_pool(ctx, siglip, image_run, 0, vector, error);
}
static void new_text(void) {
    qkv_error error;
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(pair, QKV_SOURCE);
    oom_must(qkv_tokenizer_encode(tokenizer, "a boat", 6, NULL, 0, &made, &error), &error);
}
static qkv_status fill(qkv_error *error) {
    const int64_t n = made->n;
    const qkv_status status = qkv_model_pad(pair, made, error);
    oom_claim(status == QKV_OK || made->n == n, "tokens are as they were after a failure");
    return status;
}
static uint64_t take_filled(void) {
    return oom_hash(0, made->ids, (size_t)made->n * sizeof *made->ids);
}
static qkv_status join(qkv_error *error) {
    return qkv_model_joint(ctx, qkv_model_images(clip), clip_run, 0, vector, error);
}
static qkv_status classify(qkv_error *error) {
    return qkv_model_classify(ctx, registers, classes, 0, vector, error);
}
static qkv_status match(qkv_error *error) {
    double logits[2], shares[2];
    return qkv_image_match(clip, vector, 2, vector, logits, shares, error);
}
static uint64_t take_vector(void) { return oom_hash(0, vector, sizeof vector); }

static void set_up(void) {
    qkv_error error;
    for (size_t i = 0; i < sizeof pixels / sizeof *pixels; i++)
        pixels[i] = (float)(i * 7 % 23) / 11 - 1;
    oom_must(qkv_model_open(FOLDER("clip_1"), NULL, &clip, &error), &error);
    oom_must(qkv_model_open(FOLDER("siglip_1"), NULL, &siglip, &error), &error);
    oom_must(qkv_model_open(FOLDER("siglip_2"), NULL, &pair, &error), &error);
    oom_must(qkv_model_open(FOLDER("registers_1"), NULL, &registers, &error), &error);
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 % 251);
    oom_must(qkv_image_from_rgb(rgb, 20, 17, &picture, &error), &error);
    const qkv_model *const tower = qkv_model_images(clip);
    oom_must(qkv_image_encode(siglip, SIDE, SIDE, pixels, 0, &image, &error), &error);
    oom_must(qkv_image_encode(registers, SIDE, SIDE, pixels, 0, &small, &error), &error);
    new_ctx();
    oom_must(qkv_model_run(ctx, siglip, 1, (const qkv_encoding *const *)&image, 0, NULL, &image_run,
                           &error),
             &error);
    oom_must(qkv_model_run(ctx, registers, 1, (const qkv_encoding *const *)&small, 0, NULL,
                           &classes, &error),
             &error);
    qkv_encoding *seen = NULL;
    oom_must(qkv_image_encode(tower, SIDE, SIDE, pixels, 0, &seen, &error), &error);
    oom_must(qkv_model_run(ctx, tower, 1, (const qkv_encoding *const *)&seen, 0, NULL, &clip_run,
                           &error),
             &error);
    qkv_encoding_free(seen);
    drop_ctx();
}

static void tear_down(void) {
    qkv_run_free(image_run);
    qkv_run_free(clip_run);
    qkv_run_free(classes);
    qkv_encoding_free(image);
    qkv_encoding_free(small);
    qkv_image_free(picture);
    qkv_model_free(clip);
    qkv_model_free(siglip);
    qkv_model_free(pair);
    qkv_model_free(registers);
}

static const oom_call calls[] = {
    { "qkv_model_open", "one of images", NULL, open_vit, take_model, drop_model, OOM_IO, 60 },
    { "qkv_model_open", "two towers", NULL, open_clip, take_model, drop_model, OOM_IO, 60 },
    { "qkv_image_encode", "an image", NULL, encode, take_encoding, drop_encoding, 0, 0 },
    { "qkv_image_see", "an image", NULL, see, take_encoding, drop_encoding, 0, 0 },
    { "qkv_model_run", "an image of another size", new_ctx, run_small, take_run, drop_run, 0, 0 },
    { "qkv_model_pool", "by attention", new_ctx, pool, take_vector, drop_ctx, 0, 0 },
    { "qkv_model_pad", "a text", new_text, fill, take_filled, drop_encoding, 0, 0 },
    { "qkv_model_joint", "an image", new_ctx, join, take_vector, drop_ctx, 0, 0 },
    { "qkv_image_match", "two texts", NULL, match, take_vector, NULL, 0, 0 },
    { "qkv_model_classify", "an image", new_ctx, classify, take_vector, drop_ctx, 0, 0 },
};

const oom_group oom_vision = { "vision", calls, sizeof calls / sizeof *calls, set_up, tear_down };
