/*
 * What bench/peers.py calls of us: the cases of `qkv bench`, one by one, on arrays that the peers
 * get too, and the peaks. A shared library of the library and of bench/suite.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "suite/suite.h"

struct shim {
    qkv_ctx *ctx;
    struct bench bench;
    struct peak peak;
    qkv_attention_plan plan;
    const struct bench_case *c;
};

#pragma GCC visibility push(default)
struct shim *shim_open(const char *name, int n_threads);
const char *shim_call(struct shim *shim);
double shim_peak(const struct shim *shim, double seconds);
const char *shim_peak_name(const struct shim *shim);
double shim_operations(const struct shim *shim);
double shim_kv_bytes(const struct shim *shim);
void shim_sizes(const struct shim *shim, int64_t sizes[9]);
const void *shim_array(const struct shim *shim, int index);
const char *shim_isa(const struct shim *shim);
const char *shim_arithmetic(const struct shim *shim);
#pragma GCC visibility pop

/* The case with this name; NULL: there is none, or no memory. Cases are never freed. */
struct shim *shim_open(const char *name, int n_threads) {
    qkv_ctx_options options = qkv_ctx_options_init();
    struct shim *shim = calloc(1, sizeof *shim);
    int n = 0;
    while (bench_case_at(n) && strcmp(bench_case_at(n)->name, name) != 0) n++;
    options.n_threads = n_threads;
    if (!shim || !bench_case_at(n) || qkv_ctx_create(&options, &shim->ctx, NULL) != QKV_OK)
        return NULL;
    shim->c = bench_case_at(n);
    if (!bench_make(&shim->bench, shim->ctx, shim->c)) return NULL;
    if (bench_explain(&shim->bench, &shim->plan) != QKV_OK) return NULL;
    const size_t bytes = (size_t)shim->bench.kv_bytes * (size_t)shim->bench.n_copies;
    return peak_open(&shim->peak, bench_peak_of(&shim->plan), n_threads, bytes) ? shim : NULL;
}

/* NULL: it worked; otherwise why not. */
const char *shim_call(struct shim *shim) {
    return bench_call_once(&shim->bench) == QKV_OK ? NULL : qkv_ctx_message(shim->ctx);
}

double shim_peak(const struct shim *shim, double seconds) {
    return peak_measure(&shim->peak, seconds);
}

const char *shim_peak_name(const struct shim *shim) { return peak_name(shim->peak.kind); }

double shim_operations(const struct shim *shim) { return bench_operations(&shim->bench); }

double shim_kv_bytes(const struct shim *shim) { return shim->bench.kv_bytes; }

/* batch, heads, key/value heads, queries, keys, channels of q and k, of v, type, call */
void shim_sizes(const struct shim *shim, int64_t sizes[9]) {
    memcpy(sizes, shim->c->sizes, 7 * sizeof *sizes);
    sizes[7] = shim->c->dtype;
    sizes[8] = shim->c->call;
}

/* q, k, v, o, d_o, d_q, d_k, d_v, the mask */
const void *shim_array(const struct shim *shim, int index) {
    const struct bench *b = &shim->bench;
    const void *const arrays[] = { b->q,         b->k,         b->v,
                                   b->o,         b->grads.d_o, b->grads.d_q,
                                   b->grads.d_k, b->grads.d_v, b->desc.mask };
    return arrays[index];
}

const char *shim_isa(const struct shim *shim) { return qkv_ctx_isa(shim->ctx); }

const char *shim_arithmetic(const struct shim *shim) { return shim->plan.arithmetic; }
