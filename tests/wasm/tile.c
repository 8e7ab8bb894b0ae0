/*
 * tile.c [ROUNDS [SEED]]: the tile of exact FMA (V_TILE of vec_wasm.h) beside qkvi_fmaf_computed,
 * which has the proof. Numbers are drawn so that sums lie in the middle of two floats, are
 * subnormal, overflow, or have factors of 0. The last line is "N cases".
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/fma.h"
#include "core/rng.h"
#include "kernels/vec/vec_wasm.h"

enum { DEPTH = 40, ROWS = 6, KINDS = 7 };

static qkvi_rng rng;
static uint32_t draw(void) { return qkvi_rng_u32(&rng); }
static float of(uint32_t sign_and_fraction, uint32_t exponent) {
    const uint32_t bits = (sign_and_fraction & 0x807FFFFF) | exponent << 23;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static float number(uint32_t kind) {
    const uint32_t r = draw();
    switch (kind) {
    case 0: return of(r, 120 + draw() % 12);               /* ordinary */
    case 1: return (float)((int)(r % 33) - 16);            /* whole, often 0 */
    case 2: return of(r & 0x807F0000, 100 + draw() % 40);  /* of few bits */
    case 3: return of(r & 0x80700000, draw() % 254);       /* of fewer, and of any size */
    case 4: return of(r, draw() % 70);                     /* products are subnormal */
    case 5: return of(r, r >> 23 & 0xFF);                  /* any: NaN, infinite */
    default: return of(r & 0x80000001, 102 + draw() % 50); /* beside powers of 2 */
    }
}

int main(int argc, char **argv) {
    static float a[ROWS * DEPTH], b[DEPTH * 32];
    static vf c[V_MR][V_NV];
    float want[ROWS][16], made[ROWS][16];
    const long n_rounds = argc > 1 ? atol(argv[1]) : 60000;
    long n_cases = 0, n_wrong = 0;
    rng = qkvi_rng_make(argc > 2 ? strtoull(argv[2], NULL, 10) : 1, 0, 0);
    for (long n = 0; n < n_rounds; n++) {
        const int rows = 1 + (int)(draw() % ROWS), depth = 1 + (int)(draw() % DEPTH);
        const uint32_t kinds[3] = { draw() % KINDS, draw() % KINDS, draw() % KINDS };
        const bool mixed = draw() % 3 == 0;
        for (int i = 0; i < ROWS * DEPTH; i++) a[i] = number(mixed ? draw() % KINDS : kinds[0]);
        for (int i = 0; i < DEPTH * 32; i++) b[i] = number(mixed ? draw() % KINDS : kinds[1]);
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 16; j++) want[i][j] = number(kinds[2]);
        for (int i = 0; i < ROWS; i++) c[i][0] = vf_loadu(want[i]);
        v_tile(rows, depth, a, DEPTH, 1, b, c);
        for (int i = 0; i < ROWS; i++) vf_storeu(made[i], c[i][0]);
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < 16; j++)
                for (int k = 0; k < depth; k++)
                    want[i][j] = qkvi_fmaf_computed(a[i * DEPTH + k], b[32 * k + j], want[i][j]);
        n_cases += (long)rows * 16 * depth;
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < 16; j++) {
                if (isnan(want[i][j]) && isnan(made[i][j])) continue;
                if (memcmp(&want[i][j], &made[i][j], sizeof(float)) == 0) continue;
                if (n_wrong++ < 5)
                    printf("FAILED: %d rows, %d steps, kinds %u %u %u: %a is not %a\n", rows, depth,
                           kinds[0], kinds[1], kinds[2], (double)made[i][j], (double)want[i][j]);
            }
    }
    printf("%ld wrong\n%ld cases\n", n_wrong, n_cases);
    return n_wrong > 0;
}
