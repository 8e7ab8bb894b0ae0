/*
 * A model whose logits are a hash of all tokens so far, as in tools/generate_cases.py, with the
 * interface that searches use. If a search fills or reorders slots wrongly, logits differ at once.
 */
#ifndef QKV_TESTS_GENERATE_TABLE_H
#define QKV_TESTS_GENERATE_TABLE_H

#include <stdlib.h>
#include <string.h>

#include "model/generate/search.h"

static const int64_t table_eos = 0;

enum { TABLE_SLOTS = 256, TABLE_LEN = 64 };

typedef struct table_lm {
    uint32_t seed;
    int64_t vocab;
    int sharp;
    int64_t n_slots; /* filled slots */
    uint32_t state[TABLE_SLOTS];
    int64_t n_steps, n_reorders;
} table_lm;

static inline uint32_t table_mix(uint32_t h) {
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ h >> 16;
}

static inline void table_push(table_lm *t, int64_t slot, int32_t id) {
    t->state[slot] = table_mix(t->state[slot] * 31u + (uint32_t)id + 1u);
}

static inline void table_logits(const table_lm *t, int64_t slot, int32_t last, float *row) {
    for (int64_t j = 0; j < t->vocab; j++)
        row[j] =
            (float)(table_mix(t->state[slot] ^ (uint32_t)j * 0x9E3779B1u) >> 12) * 0x1p-17f - 4;
    if (t->sharp) row[(last + 1 + (int64_t)(t->state[slot] % 2)) % t->vocab] += 3;
}

/* Fills slot 0. */
static inline void table_prompt(table_lm *t, int64_t n, const int32_t *ids, float *row) {
    t->n_slots = 1;
    t->state[0] = t->seed;
    for (int64_t i = 0; i < n; i++) table_push(t, 0, ids[i]);
    table_logits(t, 0, ids[n - 1], row);
}

static inline qkv_status table_step(void *self, int64_t n, const int32_t *ids, float *logits,
                                    qkv_error *error) {
    table_lm *const t = self;
    (void)error;
    if (n < 1 || n > t->n_slots) abort();
    for (int64_t i = 0; i < n; i++) {
        if (ids[i] < 0 || ids[i] >= t->vocab) abort();
        table_push(t, i, ids[i]);
        table_logits(t, i, ids[i], logits + i * t->vocab);
    }
    t->n_slots = n;
    t->n_steps++;
    return QKV_OK;
}

static inline qkv_status table_reorder(void *self, int64_t n, const int32_t *from,
                                       qkv_error *error) {
    table_lm *const t = self;
    uint32_t state[TABLE_SLOTS];
    (void)error;
    if (n < 1 || n > TABLE_SLOTS) abort();
    for (int64_t i = 0; i < n; i++) {
        if (from[i] < 0 || from[i] >= t->n_slots) abort();
        state[i] = t->state[from[i]];
    }
    memcpy(t->state, state, (size_t)n * sizeof *state);
    t->n_slots = n;
    t->n_reorders++;
    return QKV_OK;
}

#endif
