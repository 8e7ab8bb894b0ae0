/*
 * First weights: see trainer.h. A sum of uniform numbers needs no logarithm, so it has the same
 * bits everywhere. Sinusoids have entries of size 1, in which words of size 0.02 would drown for
 * thousands of steps: next to them words begin with the deviation of Vaswani et al. 2017,
 * 1/sqrt(hidden).
 */
#include <math.h>

#include "core/rng.h"
#include "model/train/trainer.h"

enum { PURPOSE_INIT = 0x696e6974 /* "init" */ };

static const double usual_deviation = 0.02; /* BERT's initializer_range */

/*
 * Eight 16-bit numbers, uniform in 0 … 65535, have mean 4 · 65535 and variance 8 (65536² - 1) / 12.
 */
static float normal(uint64_t seed, uint64_t index, double deviation) {
    const uint32_t key[2] = { (uint32_t)seed, (uint32_t)(seed >> 32) };
    uint32_t words[4] = { 0, PURPOSE_INIT, (uint32_t)index, (uint32_t)(index >> 32) };
    const double scale = deviation / sqrt(8.0 * (65536.0 * 65536.0 - 1) / 12.0);
    int64_t sum = -4 * 65535;
    qkvi_philox(key, words, words);
    for (int w = 0; w < 4; w++) sum += (words[w] & 65535) + (words[w] >> 16);
    return (float)((double)sum * scale);
}

static int ends_with(const char *text, const char *ending) {
    const size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcmp(text + n - m, ending) == 0;
}

/* Of GPT-2 (Radford et al. 2019, section 2.3): two in each layer. */
static int is_residual(const qkvi_param *row) { return ends_with(row->name, ".c_proj.weight"); }

static double deviation_of(const qkvi_param *row, int sinusoidal, int64_t n_residual) {
    const int is_word = strcmp(row->name, "bert.embeddings.word_embeddings.weight") == 0;
    if (sinusoidal && is_word) return 1 / sqrt((double)row->shape[1]);
    return is_residual(row) ? usual_deviation / sqrt((double)n_residual) : usual_deviation;
}

void qkvi_init_weights(uint64_t seed, int sinusoidal, const qkvi_param_table *table,
                       float *params) {
    int64_t n_residual = 0;
    for (int64_t r = 0; r < table->n_rows; r++) n_residual += is_residual(&table->rows[r]);
    for (int64_t r = 0; r < table->n_rows; r++) {
        const qkvi_param *const row = &table->rows[r];
        const int is_norm = row->rank == 1 && ends_with(row->name, ".weight");
        const double deviation = deviation_of(row, sinusoidal, n_residual);
        for (size_t i = row->offset; i < row->offset + row->n_elems; i++)
            params[i] = is_norm ? 1.0f : row->rank == 1 ? 0.0f : normal(seed, i, deviation);
    }
}
