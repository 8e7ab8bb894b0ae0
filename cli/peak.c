/*
 * FMA peak: independent chains in registers, enough of them to hide the latency (2 FMA a cycle x
 * 4 cycles, with room: 24 of 32 zmm, 12 of 16 ymm). Compiled for its instruction set by
 * attribute, chosen by what the processor has, so that the tool itself stays portable.
 */
#include "peak.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "cli.h"

#if defined(__x86_64__)
#include <immintrin.h>

enum { CHAINS_512 = 24, CHAINS_256 = 12 };

__attribute__((target("avx512f"))) static float spin_512(int64_t rounds) {
    const __m512 a = _mm512_set1_ps(1.0000001F), b = _mm512_set1_ps(1e-9F);
    __m512 c[CHAINS_512];
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS_512; i++) c[i] = _mm512_set1_ps((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 24
        for (int i = 0; i < CHAINS_512; i++) c[i] = _mm512_fmadd_ps(a, c[i], b);
        __asm__ volatile("" : "+x"(c[0])); /* keeps rounds apart */
    }
    float sum = 0;
#pragma GCC unroll 24
    for (int i = 0; i < CHAINS_512; i++) sum += _mm512_cvtss_f32(c[i]);
    return sum;
}

__attribute__((target("avx2,fma"))) static float spin_256(int64_t rounds) {
    const __m256 a = _mm256_set1_ps(1.0000001F), b = _mm256_set1_ps(1e-9F);
    __m256 c[CHAINS_256];
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS_256; i++) c[i] = _mm256_set1_ps((float)i);
    for (int64_t r = 0; r < rounds; r++) {
#pragma GCC unroll 12
        for (int i = 0; i < CHAINS_256; i++) c[i] = _mm256_fmadd_ps(a, c[i], b);
        __asm__ volatile("" : "+x"(c[0]));
    }
    float sum = 0;
#pragma GCC unroll 12
    for (int i = 0; i < CHAINS_256; i++) sum += _mm256_cvtss_f32(c[i]);
    return sum;
}

static bool has_512(void) { return __builtin_cpu_supports("avx512f"); }
static bool has_256(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

const char *peak_name(void) { return has_512() ? "avx512" : has_256() ? "avx2" : NULL; }

static float spin(int64_t rounds) { return has_512() ? spin_512(rounds) : spin_256(rounds); }

static double flops_per_round(void) { return has_512() ? CHAINS_512 * 16 * 2 : CHAINS_256 * 8 * 2; }

#else

const char *peak_name(void) { return NULL; }
static float spin(int64_t rounds) { return (float)rounds; }
static double flops_per_round(void) { return 0; }

#endif

enum { ROUNDS = 20000 }; /* of the chains, about 0.1 ms */

struct worker {
    pthread_t thread;
    double seconds, rate;
    volatile float sink;
};

/* Rate of one window of about a millisecond. */
static double window_rate(struct worker *worker) {
    enum { CALLS = 10 };
    const double start = cli_seconds();
    for (int i = 0; i < CALLS; i++) worker->sink = spin(ROUNDS);
    return CALLS * (double)ROUNDS * flops_per_round() / (cli_seconds() - start) / 1e9;
}

static void *work(void *argument) {
    struct worker *worker = argument;
    const double start = cli_seconds();
    while (cli_seconds() - start < worker->seconds) {
        const double rate = window_rate(worker);
        if (rate > worker->rate) worker->rate = rate;
    }
    return NULL;
}

double peak_measure(int n_threads, double seconds) {
    struct worker *workers = calloc((size_t)n_threads, sizeof(*workers));
    double rate = 0;
    int started = 1;
    if (!workers || !peak_name()) {
        free(workers);
        return 0;
    }
    for (int i = 0; i < n_threads; i++) workers[i].seconds = seconds;
    while (started < n_threads &&
           pthread_create(&workers[started].thread, NULL, work, &workers[started]) == 0)
        started++;
    work(&workers[0]);
    for (int i = 1; i < started; i++) pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < started; i++) rate += workers[i].rate;
    free(workers);
    return rate;
}
