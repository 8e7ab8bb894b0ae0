/* A cache of keys and values, and decode from it: kv_walk.h says what is compared. */
#include "fuzz/kv_walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    (void)kv_walk(bytes, n_bytes);
    return 0;
}
