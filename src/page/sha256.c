/**
 * SHA-256 of bytes in memory, as in FIPS 180-4: the message, a 1 bit, zeros and its length in bits
 * are blocks of 64 bytes; each is mixed into eight words by 64 rounds. Constants are the first 32
 * bits of the fractions of the square roots of the first 8 primes (`begin`) and of the cube roots
 * of the first 64 (`rounds`).
 */
#include "page/sha256.h"

static const uint32_t begin[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

static const uint32_t rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void mix(uint32_t state[8], const uint8_t block[64]) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = w[t - 16] + (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[t - 7] +
               (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
    }
    for (int t = 0; t < 64; t++) {
        const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        const uint32_t one =
            h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + choice + rounds[t] + w[t];
        const uint32_t two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + majority;
        h = g, g = f, f = e, e = d + one;
        d = c, c = b, b = a, a = one + two;
    }
    const uint32_t mixed[8] = { a, b, c, d, e, f, g, h };
    for (int i = 0; i < 8; i++) state[i] += mixed[i];
}

void qkvi_sha256(const void *data, size_t n, uint8_t digest[32]) {
    const uint8_t *const bytes = data;
    uint32_t state[8];
    uint8_t last[128] = { 0 };
    const size_t rest = n % 64, tail = rest < 56 ? 64 : 128;
    memcpy(state, begin, sizeof state);
    for (size_t i = 0; i + 64 <= n; i += 64) mix(state, bytes + i);
    if (rest > 0) memcpy(last, bytes + n - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[tail - 1 - (size_t)i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    for (size_t i = 0; i < tail; i += 64) mix(state, last + i);
    for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
