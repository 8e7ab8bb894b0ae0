/* A JPEG. What is checked: image_check.h. */
#include "fuzz/fuzz.h"
#include "fuzz/image_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    fuzz_image(bytes, n_bytes);
    return 0;
}
