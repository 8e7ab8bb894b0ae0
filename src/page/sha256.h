/** SHA-256 (FIPS 180-4), by which a page says which script and which style it allows. */
#ifndef QKVI_PAGE_SHA256_H
#define QKVI_PAGE_SHA256_H

#include "files/base.h"

void qkvi_sha256(const void *data, size_t n, uint8_t digest[32]);

#endif
