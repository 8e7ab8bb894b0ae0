/*
 * Kernels of the map: against libm and plain sums in double, and with the same bits on every
 * instruction set as on the first (scalar), on rows that end at a page that may not be touched.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "kernels/table.h"

enum { MAX_N = 70, DIM = 9, N_ROUNDS = 300, N_ROWS = 4 };

static uint64_t seed = 20260714;

/* Row r: room doubles that end at a guard page. */
static double *row(int r, int64_t room) {
    static char *pages[N_ROWS + DIM];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (!pages[r]) {
        pages[r] = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(pages[r] != MAP_FAILED);
        assert_int_equal(mprotect(pages[r] + page, page, PROT_NONE), 0);
    }
    return (double *)(void *)(pages[r] + page) - room;
}

static double uniform(qkvi_rng *rng) { return qkvi_rng_u32(rng) * 0x1p-32; }

/* ln, as the descent takes it. */
static double log_of(const qkvi_kernels *kernels, double a) {
    const double p[8] = { 1 }, x[8] = { a };
    return kernels->tsne->sum_p_log(1, p, x);
}

static void logarithms(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 1, 0);
    double worst = 0;
    for (int i = 0; i < 100000; i++) {
        const double a = i % 2 ? ldexp(1 + uniform(&rng), (int)qkvi_rng_below(&rng, 2000) - 1000)
                               : 1 + (uniform(&rng) - 0.5) * ldexp(1, -(i % 50));
        const double is = log(a), got = log_of(qkvi_kernels_at(0), a);
        const double off = fabs(got - is) / fmax(fabs(is), 1e-300);
        if (is != 0) worst = fmax(worst, off);
        if (is == 0) assert_true(got == 0);
    }
    print_message("ln: relative error %.2g\n", worst);
    assert_true(worst < 1e-15);
}

/* Two points beside self, of which one is nearest: p = e^0 and e^-x, over their sum. */
static void exponentials(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 2, 0);
    for (int i = 0; i < 20000; i++) {
        const double x = i == 0 ? 0 : i == 1 ? 1e300 : 800 * uniform(&rng) * uniform(&rng);
        const double d[8] = { 7, 5, 5 + x };
        double p[8];
        /* an entropy that beta = 1 has, so that the search ends at once */
        const double e = exp(-(d[2] - d[1])), sum = 1 + e;
        const double entropy = log(sum) + (e > 0 ? e * (d[2] - d[1]) / sum : 0);
        assert_true(qkvi_kernels_at(0)->tsne->affinities(3, 0, d, entropy, 1e-9, p) == 1);
        if (x < 700 && !(fabs(p[2] - e / sum) <= 4e-16 * (e / sum) + 1e-310))
            fail_msg("e^-%.17g: %.17g, not %.17g", x, p[2], e / sum);
        assert_true(p[0] == 0 && p[3] == 0 && p[7] == 0);
        if (x > 710) assert_true(p[2] == 0);
    }
}

static double entropy_of(const double *p, int64_t n) {
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        if (p[j] > 0) sum -= p[j] * log(p[j]);
    return sum;
}

static void perplexities(void **state) {
    (void)state;
    qkvi_rng rng = qkvi_rng_make(seed, 3, 0);
    for (int round = 0; round < N_ROUNDS; round++) {
        const int64_t n = 3 + qkvi_rng_below(&rng, MAX_N - 10),
                      self = qkvi_rng_below(&rng, (uint32_t)n);
        double d[MAX_N + 8], p[MAX_N + 8];
        const double scale = ldexp(1, (int)qkvi_rng_below(&rng, 80) - 40);
        for (int64_t j = 0; j < n; j++) d[j] = scale * uniform(&rng);
        const double wanted = log(1 + uniform(&rng) * (double)(n - 2));
        const double beta = qkvi_kernels_at(0)->tsne->affinities(n, self, d, wanted, 1e-10, p);
        assert_true(beta > 0 && p[self] == 0);
        if (!(fabs(entropy_of(p, n) - wanted) < 1e-9))
            fail_msg("seed %llu, round %d: entropy %.12g, not %.12g", (unsigned long long)seed,
                     round, entropy_of(p, n), wanted);
    }
    /* all distances equal: an even row, whatever is asked for */
    double d[8] = { 3, 3, 3, 3, 3 }, p[8];
    qkvi_kernels_at(0)->tsne->affinities(5, 2, d, log(2), 1e-10, p);
    for (int j = 0; j < 5; j++) assert_true(p[j] == (j == 2 ? 0 : 0.25));
}

/* ---- Sums, and the same bits ----------------------------------------------------------------- */

struct outputs {
    double dots[MAX_N], squares[MAX_N], p[MAX_N], beta, cost, log;
    qkvi_tsne_force force;
};

static void compute(const qkvi_kernels *kernels, int64_t n, int64_t self, uint64_t round,
                    struct outputs *out) {
    const int64_t room = (n + 7) / 8 * 8;
    qkvi_rng rng = qkvi_rng_make(seed, 4, round);
    double *const x = row(0, room), *const y = row(1, room), *const p = row(2, room);
    double *const d = row(3, room), *const columns = malloc((size_t)(DIM * room) * sizeof *columns);
    double point[DIM];
    memset(out, 0, sizeof *out);
    const double spread = ldexp(1, (int)qkvi_rng_below(&rng, 24) - 12);
    for (int64_t j = 0; j < room; j++) {
        x[j] = j < n ? spread * (uniform(&rng) - 0.5) : 0;
        y[j] = j < n ? spread * (uniform(&rng) - 0.5) : 0;
        d[j] = j < n ? uniform(&rng) : 0;
        p[j] = -1; /* is written */
        for (int c = 0; c < DIM; c++) columns[c * room + j] = j < n ? uniform(&rng) - 0.5 : 0;
    }
    for (int c = 0; c < DIM; c++) point[c] = columns[c * room + self];
    out->beta = kernels->tsne->affinities(n, self, d, log(2), 1e-10, p);
    memcpy(out->p, p, (size_t)room * sizeof *p);
    kernels->tsne->force(n, self, p, x, y, &out->force);
    out->cost = kernels->tsne->cost(n, self, p, x, y);
    out->log = kernels->tsne->sum_p_log(n, p, p);
    kernels->tsne->dots(room, DIM, point, columns, d);
    memcpy(out->dots, d, (size_t)room * sizeof *d);
    kernels->tsne->squares(room, DIM, point, columns, d);
    memcpy(out->squares, d, (size_t)room * sizeof *d);
    free(columns);
    assert_true(out->squares[self] == 0);
}

static void near(const char *what, double got, double wanted, double size) {
    if (!(fabs(got - wanted) <= 1e-14 * size + 1e-300))
        fail_msg("%s: %.17g, not %.17g", what, got, wanted);
}

/* x, y and p are still those of compute. */
static void check_force(int64_t n, int64_t self, const struct outputs *out) {
    const int64_t room = (n + 7) / 8 * 8;
    const double *const x = row(0, room), *const y = row(1, room), *const p = row(2, room);
    double f[5] = { 0 }, sizes[5] = { 0 }, cost = 0;
    for (int64_t j = 0; j < n; j++) {
        const double dx = x[self] - x[j], dy = y[self] - y[j], a = 1 + dx * dx + dy * dy;
        const double terms[5] = { p[j] / a * dx, p[j] / a * dy, dx / a / a, dy / a / a, 1 / a };
        for (int t = 0; t < 5 && j != self; t++) {
            f[t] += terms[t];
            sizes[t] += fabs(terms[t]);
        }
        cost += p[j] * log(a);
    }
    near("attract x", out->force.attract[0], f[0], sizes[0]);
    near("attract y", out->force.attract[1], f[1], sizes[1]);
    near("repel x", out->force.repel[0], f[2], sizes[2]);
    near("repel y", out->force.repel[1], f[3], sizes[3]);
    near("sum w", out->force.sum_w, f[4], sizes[4]);
    near("cost", out->cost, cost, fabs(cost) + 1); /* 1 + |y|^2 is rounded */
    near("sum p ln p", out->log, -entropy_of(p, n), 1);
}

static void same_bits(void **state) {
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        const int64_t n = 2 + (int64_t)(round % (MAX_N - 10)), self = (int64_t)(round * 7) % n;
        struct outputs scalar, other;
        compute(qkvi_kernels_at(0), n, self, round, &scalar);
        check_force(n, self, &scalar);
        for (int isa = 1; qkvi_kernels_at(isa); isa++) {
            compute(qkvi_kernels_at(isa), n, self, round, &other);
            if (memcmp(&scalar, &other, sizeof scalar) != 0)
                fail_msg("n = %lld: %s has other bits than scalar", (long long)n,
                         qkvi_kernels_at(isa)->name);
        }
    }
}

int main(int argc, char **argv) {
    if (argc > 1) seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logarithms),
        cmocka_unit_test(exponentials),
        cmocka_unit_test(perplexities),
        cmocka_unit_test(same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
