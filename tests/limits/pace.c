/*
 * pace [FILE]: measures how slow this processor is at present, in this build: the CPU seconds of a
 * known piece of work, divided by those on the reference processor in the release build. Writes it
 * to FILE, or prints it. Sanitizers slow it down as they slow down the tests.
 *
 * The work is like that of tests and compilers: unpredictable branches (a heap), loads that miss
 * the first-level cache (a hash table), chains of arithmetic (a matrix product in double). The
 * result is the median of some rounds. QKV_TEST_LIMITS_DIVISOR in the environment divides the pace,
 * and so every limit of a run: a suite that passes with 4 has room on a busy machine.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Seconds of a round on an AMD Zen 3 (family 25, 2.45 GHz), by gcc 12 -O3. */
static const double REFERENCE_SECONDS = 0.075;

enum { N_ROUNDS = 5, N_SORTED = 1 << 18, N_WORDS = 1 << 19, N_SLOTS = 1 << 20, N_DIM = 256 };

static uint32_t next_random(uint32_t *state) { return *state = *state * 1664525u + 1013904223u; }

static void sift_down(uint32_t *heap, int root, int n) {
    for (int child; (child = 2 * root + 1) < n; root = child) {
        if (child + 1 < n && heap[child + 1] > heap[child]) child++;
        if (heap[root] >= heap[child]) return;
        const uint32_t less = heap[root];
        heap[root] = heap[child];
        heap[child] = less;
    }
}

/* Heap sort of random numbers: the middle one. */
static uint32_t sort(uint32_t *heap) {
    uint32_t state = 1;
    for (int i = 0; i < N_SORTED; i++) heap[i] = next_random(&state);
    for (int root = N_SORTED / 2 - 1; root >= 0; root--) sift_down(heap, root, N_SORTED);
    for (int n = N_SORTED - 1; n > 0; n--) {
        const uint32_t greatest = heap[0];
        heap[0] = heap[n];
        heap[n] = greatest;
        sift_down(heap, 0, n);
    }
    return heap[N_SORTED / 2];
}

/* Random keys into an open-addressed table: the number of different ones. */
static uint32_t count_keys(uint32_t *slots) {
    uint32_t state = 2, n = 0;
    for (int s = 0; s < N_SLOTS; s++) slots[s] = 0;
    for (int w = 0; w < N_WORDS; w++) {
        const uint32_t key = next_random(&state) >> 12 | 1u << 31;
        uint32_t at = key * 2654435769u >> 12;
        while (slots[at] && slots[at] != key) at = (at + 1) % N_SLOTS;
        n += !slots[at];
        slots[at] = key;
    }
    return n;
}

/* The trace of a product, every element a chain of its own. */
static double multiply(double *a) {
    double trace = 0;
    for (int i = 0; i < N_DIM * N_DIM; i++) a[i] = 1.0 / (1 + i % 97);
    for (int i = 0; i < N_DIM; i++)
        for (int j = 0; j < N_DIM; j++) {
            double sum = 0;
            for (int k = 0; k < N_DIM; k++) sum += a[i * N_DIM + k] * a[k * N_DIM + j];
            trace += i == j ? sum : 0 * sum;
        }
    return trace;
}

static double seconds_of_a_round(uint32_t *memory, double *matrix, double *result) {
    const clock_t start = clock();
    *result += sort(memory) + count_keys(memory) + multiply(matrix);
    return (double)(clock() - start) / CLOCKS_PER_SEC;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    static uint32_t memory[N_SLOTS];
    static double matrix[N_DIM * N_DIM];
    double seconds[N_ROUNDS], result = 0;
    for (int r = 0; r < N_ROUNDS; r++) seconds[r] = seconds_of_a_round(memory, matrix, &result);
    qsort(seconds, N_ROUNDS, sizeof *seconds, ascending);
    const char *const text = getenv("QKV_TEST_LIMITS_DIVISOR");
    const double divisor = text && *text ? strtod(text, NULL) : 1;
    const double pace = seconds[N_ROUNDS / 2] / REFERENCE_SECONDS / divisor;
    if (!(divisor >= 1) || !(result > 0) || !(pace > 0)) {
        fprintf(stderr, "pace: QKV_TEST_LIMITS_DIVISOR is '%s', not a number of 1 or more\n", text);
        return 1;
    }
    FILE *const out = argc > 1 ? fopen(argv[1], "w") : stdout;
    if (!out) return perror(argv[1]), 1;
    fprintf(out, "%.3f\n", pace);
    return fclose(out) != 0;
}
