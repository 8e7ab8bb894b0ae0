/**
 * qkv vision: models that read images, and images as tokens.
 *
 *     qkv_image *image = NULL;
 *     qkv_encoding *tokens = NULL;
 *     if (qkv_image_read("cat.jpg", &image, &error) == QKV_OK &&
 *         qkv_image_see(model, image, NULL, &tokens, &error) == QKV_OK &&
 *         qkv_model_run(ctx, model, 1, (const qkv_encoding *const *)&tokens, QKV_RUN_CAPTURE, NULL,
 *                       &run, &error) == QKV_OK)
 *         … heads, weights, statistics and maps, as of a text …
 *
 * An image is cut into patches, and each patch is a token (Dosovitskiy et al. 2021). An encoding of
 * an image goes wherever one of a text goes. qkv_model_get_info says how large patches and images
 * are, and how many tokens stand before the patches.
 *
 * Experimental: see docs/api.md, Stability.
 */
#ifndef QKV_VISION_H
#define QKV_VISION_H

#include "qkv/image.h"
#include "qkv/model.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    /**
     * The image may have another size than those that the model learned from: positions are
     * interpolated. DINO does so without being asked.
     */
    QKV_IMAGE_ANY_SIZE = 1
};

/**
 * Returns the model that reads images: the model itself, or the tower of CLIP or SigLIP that does;
 * NULL: it reads texts only. It lives as long as the model.
 */
QKV_API const qkv_model *qkv_model_images(const qkv_model *model);

/**
 * Makes the tokens of an image: those before the patches, which are special, and the patches, from
 * left to right, from top to bottom. Ids are 0, and ranges are empty. What does not fill a patch,
 * at the right and at the bottom, is not read.
 *
 * @param model   reads images (qkv_model_images).
 * @param pixels  [3][height][width]: red, green and blue, as the model wants them (resized, cropped
 *                and normalized). They are copied.
 * @param flags   0, or QKV_IMAGE_ANY_SIZE.
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL or an unknown flag; QKV_ERR_UNSUPPORTED for a model of
 *         texts; QKV_ERR_SHAPE for an image without a patch, or of another size than the model's;
 *         QKV_ERR_LIMIT for more than 2^26 pixels or 2^20 tokens; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_image_encode(const qkv_model *model, int64_t height,
                                                  int64_t width, const float *pixels, int flags,
                                                  qkv_encoding **encoding, qkv_error *error);

/** How an image is prepared for a model. Made by qkv_see_options_init(). */
typedef struct qkv_see_options {
    size_t struct_size;
    /**
     * The side of what the model reads, in pixels: the shorter side of the image is resized to it
     * and the middle is kept, or, of models that do not crop, both sides are. Positions are
     * interpolated. 0: as the model's files say.
     */
    int64_t size;
} qkv_see_options;
QKV_DEFINE_INIT(qkv_see_options)

/**
 * Makes the tokens of an image as the files of a model say: preprocessor_config.json, or the object
 * image_processor of processor_config.json. The image is resized, cropped, rescaled and normalized,
 * with the bits of transformers' torchvision processors on a processor with AVX2; of DINOv3, which
 * resizes floats, nearly (docs/images.md).
 *
 * @param model    reads images (qkv_model_images).
 * @param options  NULL: the defaults.
 * @return as qkv_image_encode; QKV_ERR_IO if the model's folder has neither file; the errors of
 *         that file; QKV_ERR_ARGUMENT for a size below 0; QKV_ERR_LIMIT for one above 4,096.
 */
QKV_API QKV_NODISCARD qkv_status qkv_image_see(const qkv_model *model, const qkv_image *image,
                                               const qkv_see_options *options,
                                               qkv_encoding **encoding, qkv_error *error);

/**
 * Writes what a token of an image is called: "[CLS]", "[DIST]", "[REG0]" … or "r,c", the row and
 * the column of a patch. It is "" if the encoding is of no image, or for an index out of range.
 */
QKV_API void qkv_image_token(const qkv_encoding *encoding, int64_t index, char name[32]);

/* ---- Heads on top ---------------------------------------------------------------------------- */

/**
 * Computes the vector [hidden] of an image, or of a text of CLIP or SigLIP, from its last hidden
 * states x:
 *
 *     ViT, DeiT     tanh(W x_0 + b) where the model has a pooler, else x_0
 *     DINO          x_0
 *     CLIP          norm(x_0); of a text x_e, e the first token that ends it (eos_id), or 0 if none
 *                   does. In files that say eos_token_id 2, e is the token with the largest id
 *     SigLIP        z + W2 act(W1 norm(z) + b1) + b2, with z what a learned row gets that attends
 *                   to all x; of a text the last row, of padding unless the text is that long
 *
 * @return QKV_OK; QKV_ERR_UNSUPPORTED for a model without such a vector; QKV_ERR_ARGUMENT;
 *         QKV_ERR_MEMORY; QKV_ERR_BUSY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_pool(qkv_ctx *ctx, const qkv_model *model,
                                                const qkv_run *run, int64_t b, float *pooled,
                                                qkv_error *error);

/**
 * Fills up the tokens of a text with the token of padding, to padded_len of qkv_model_info: those
 * that SigLIP learned from were, and nothing masks them. A longer text, and one for a model whose
 * padded_len is 0, stay as they are. Vectors of qkv_model_joint are of texts that are filled up.
 *
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL, or tokens of an image; QKV_ERR_MEMORY.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_pad(const qkv_model *model, qkv_encoding *encoding,
                                               qkv_error *error);

/**
 * Computes the vector [joint_dim] of an image or of a text in the space that both share: W pooled
 * of CLIP, of SigLIP W pooled + b of a text and pooled of an image, not normalized. They match by
 * match_scale cos + match_bias (qkv_model_info). Of CLIP the softmax of that over texts is their
 * probability (Radford et al. 2021), of SigLIP the sigmoid of each (Zhai et al. 2023).
 *
 * @return as qkv_model_pool; QKV_ERR_UNSUPPORTED if joint_dim is 0.
 */
QKV_API QKV_NODISCARD qkv_status qkv_model_joint(qkv_ctx *ctx, const qkv_model *model,
                                                 const qkv_run *run, int64_t b, float *vector,
                                                 qkv_error *error);

/**
 * Computes how well an image matches texts, from their vectors in the space that both share:
 *
 *     logits[t] = match_scale cos(image, text t) + match_bias
 *     shares[t] = exp(logits[t]) / sum exp(logits), or with match_each 1 / (1 + exp(-logits[t]))
 *
 * A vector of length 0 has the cosine 0. Sums are in double.
 *
 * @param model   has a joint space; either tower.
 * @param image   [joint_dim].
 * @param texts   [n_texts][joint_dim].
 * @param logits  [n_texts].
 * @param shares  NULL, or [n_texts].
 * @return QKV_OK; QKV_ERR_ARGUMENT for NULL or no texts; QKV_ERR_UNSUPPORTED if joint_dim is 0.
 */
QKV_API QKV_NODISCARD qkv_status qkv_image_match(const qkv_model *model, const float *image,
                                                 int64_t n_texts, const float *texts,
                                                 double *logits, double *shares, qkv_error *error);

#ifdef __cplusplus
}
#endif
#endif
