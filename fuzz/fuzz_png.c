/*
 * A PNG as it is, and with its checksums made right, behind which few inputs would come otherwise.
 * What is checked: image_check.h.
 */
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "fuzz/fuzz.h"
#include "fuzz/image_check.h"

static size_t length_of(const uint8_t *bytes) {
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

/* Of each whole chunk. */
static void repair(uint8_t *bytes, size_t n_bytes) {
    for (size_t at = 8; at <= n_bytes && n_bytes - at >= 12;) {
        const size_t n = length_of(bytes + at);
        if (n > n_bytes - at - 12) return;
        const uLong crc = crc32(0, bytes + at + 4, (uInt)(n + 4));
        for (int i = 0; i < 4; i++) bytes[at + 8 + n + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
        at += n + 12;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    uint8_t *const repaired = fuzz_alloc(n_bytes);
    fuzz_image(bytes, n_bytes);
    if (n_bytes) memcpy(repaired, bytes, n_bytes);
    repair(repaired, n_bytes);
    if (n_bytes && memcmp(repaired, bytes, n_bytes) != 0) fuzz_image(repaired, n_bytes);
    free(repaired);
    return 0;
}
