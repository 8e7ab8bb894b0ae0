/*
 * A digest of what scalar code computes (FNV-1a over its bytes, every NaN alike), by which runs on
 * different processors can be compared.
 */
#include <math.h>

#include "check/check.h"

static uint64_t byte_added(uint64_t digest, unsigned byte) {
    return (digest ^ byte) * 0x100000001b3;
}

void digest_add(check_report *report, elem_type type, const void *data, size_t n) {
    const size_t bytes = element_bytes(type);
    for (size_t i = 0; i < n; i++) {
        const unsigned char *const x = (const unsigned char *)data + i * bytes;
        const bool nan = isnan(element_get(data, type, (int64_t)i));
        for (size_t b = 0; b < bytes; b++)
            report->digest = byte_added(report->digest, nan ? 0xFFu : x[b]);
    }
}

void digest_outputs(check_report *report, const check_case *c, const outputs *x) {
    for (int n = 0; n < OUTPUTS; n++) {
        const elem_type type = outputs_element(&c->d, n);
        const guarded *const g = outputs_at(x, n);
        digest_add(report, type, g->data, g->bytes / element_bytes(type));
    }
}

uint64_t digest_joined(uint64_t digest, uint64_t other) {
    for (int b = 0; b < 64; b += 8) digest = byte_added(digest, (unsigned)(other >> b & 0xFF));
    return digest;
}
