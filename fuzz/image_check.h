/* What fuzz_png and fuzz_jpeg check of bytes that may be an image. */
#ifndef QKV_FUZZ_IMAGE_CHECK_H
#define QKV_FUZZ_IMAGE_CHECK_H

#include <stddef.h>
#include <stdint.h>

/*
 * What is accepted has a size within the limits, as many pixels, the same ones a second time, and a
 * model's rules can be applied to it; what is refused leaves no image.
 */
void fuzz_image(const uint8_t *bytes, size_t n_bytes);

#endif
