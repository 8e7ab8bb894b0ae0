/*
 * A walk on a cache of keys and values, told by bytes: append, truncate, fork and decode, beside a
 * plain model of it, in which every sequence is an array of its own. What the walk finds wrong ends
 * the process.
 *
 *     lengths           those of the model, after each step; a refused step changes nothing
 *     pages             all are free again at the end; without forks exactly those needed are not
 *     qkv_attention_decode  over the view: the bits of the same tokens from contiguous arrays
 */
#ifndef QKV_FUZZ_KV_WALK_H
#define QKV_FUZZ_KV_WALK_H

#include "fuzz/fuzz.h"

/* Returns how many steps were accepted. */
int kv_walk(const uint8_t *bytes, size_t n_bytes);

#endif
