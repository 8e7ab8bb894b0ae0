/*
 * `qkv bench`: forward, causal and backward attention beside the machine's own FMA peak. Machines
 * drift by several per cent within minutes, so every round measures the peak, then the case; what
 * is compared between builds is the median of their ratios. FLOPs are 2·B·H·Lq·Lk·(D + Dv), half
 * if causal, 2.5 times for backward.
 */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "peak.h"
#include "session.h"
#include "term.h"

enum { MOST_ROUNDS = 101 };

struct bench_options {
    struct cli_common common;
    struct arg_int rounds;
};

struct bench_case {
    const char *name;
    int64_t n_batch, n_heads, n_kv_heads, length, head_dim;
    bool causal, backward;
};

static const struct bench_case cases[] = {
    { "forward  L4096 D64", 1, 1, 1, 4096, 64, false, false },
    { "forward  L4096 D128", 1, 1, 1, 4096, 128, false, false },
    { "forward  B8 H12 L128 D64", 8, 12, 12, 128, 64, false, false },
    { "forward  H12 L11 D64", 1, 12, 12, 11, 64, false, false },
    { "causal   L4096 D64", 1, 1, 1, 4096, 64, true, false },
    { "causal   L4096 D128", 1, 1, 1, 4096, 128, true, false },
    { "causal   H12 L1024 D64", 1, 12, 12, 1024, 64, true, false },
    { "causal   H32:8 L2048 D128", 1, 32, 8, 2048, 128, true, false },
    { "backward L4096 D64", 1, 1, 1, 4096, 64, false, true },
    { "backward H4 L2048 D64", 1, 4, 4, 2048, 64, false, true },
    { "backward H4 L2048 D128 causal", 1, 4, 4, 2048, 128, true, true },
};

/* Arrays of one case; everything but the gradients' destination is set once. */
struct bench {
    qkv_ctx *ctx;
    qkv_attention_desc desc;
    qkv_attention_grads grads;
    float *q, *k, *v, *o, *lse, *memory;
    bool backward;
};

struct measurement {
    double seconds, spread, gflops, share, peak; /* spread: quartiles' distance over the median */
};

/* ---- One case ------------------------------------------------------------------------------- */

/* Uniform in [-1, 1) from a linear congruence: speed does not depend on the values. */
static void fill_random(float *values, int64_t n) {
    uint32_t state = 1;
    for (int64_t i = 0; i < n; i++) {
        state = state * 1664525U + 1013904223U;
        values[i] = (float)(state >> 8) / 8388608.0F - 1;
    }
}

static bool bench_make(struct bench *bench, const struct bench_case *c) {
    const int64_t n_q = c->n_batch * c->n_heads * c->length * c->head_dim;
    const int64_t n_k = c->n_batch * c->n_kv_heads * c->length * c->head_dim;
    const int64_t n_lse = c->n_batch * c->n_heads * c->length;
    const int64_t n_inputs = 2 * n_q + 2 * n_k, n_gradients = c->backward ? n_q + 2 * n_k : 0;
    float *next = malloc((size_t)(n_inputs + n_q + n_lse + n_gradients) * sizeof(float));
    if (!next) return false;
    bench->memory = next;
    fill_random(next, n_inputs);
    memset(next + n_inputs, 0, (size_t)(n_q + n_lse + n_gradients) * sizeof(float));
    qkv_attention_desc_contiguous(&bench->desc, c->n_batch, c->n_heads, c->n_kv_heads, c->length,
                                  c->length, c->head_dim, c->head_dim);
    if (c->causal) bench->desc.flags |= QKV_SET_CAUSAL;
    qkv_attention_grads_contiguous(&bench->grads, &bench->desc);
    bench->backward = c->backward;
    bench->q = next;
    bench->grads.d_o = next += n_q;
    bench->k = next += n_q;
    bench->v = next += n_k;
    bench->o = next += n_k;
    bench->lse = next += n_q;
    bench->grads.d_q = next += n_lse;
    bench->grads.d_k = next + n_q;
    bench->grads.d_v = next + n_q + n_k;
    return true;
}

static qkv_status forward(const struct bench *bench) {
    return qkv_attention_forward(bench->ctx, &bench->desc, bench->q, bench->k, bench->v, bench->o,
                                 bench->lse, NULL);
}

static qkv_status backward(const struct bench *bench) {
    return qkv_attention_backward(bench->ctx, &bench->desc, bench->q, bench->k, bench->v, bench->o,
                                  bench->lse, &bench->grads, NULL);
}

/*
 * One thread is timed by its own processor time, so that what else runs on the machine does not
 * count; several by the wall.
 */
static double bench_seconds(const struct bench *bench) {
    struct timespec now;
    if (qkv_ctx_threads(bench->ctx) > 1) return cli_seconds();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Seconds of one call, from as many calls as take 5 ms. */
static qkv_status time_calls(const struct bench *bench, int *calls, double *seconds) {
    for (;;) {
        const double start = bench_seconds(bench);
        for (int i = 0; i < *calls; i++) {
            const qkv_status status = bench->backward ? backward(bench) : forward(bench);
            if (status != QKV_OK) return status;
        }
        *seconds = bench_seconds(bench) - start;
        if (*seconds >= 5e-3 || *calls >= 1 << 20) break;
        *calls *= 2;
    }
    *seconds /= *calls;
    return QKV_OK;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *sorted, int n, double q) {
    return sorted[(int)(q * (n - 1) + 0.5)];
}

static double flops_of(const struct bench_case *c) {
    double flops = 4.0 * (double)(c->n_batch * c->n_heads) * (double)c->length * (double)c->length *
                   (double)c->head_dim;
    if (c->causal) flops /= 2;
    return c->backward ? 2.5 * flops : flops;
}

static qkv_status measure(struct bench *bench, const struct bench_case *c, int rounds,
                          struct measurement *result) {
    double seconds[MOST_ROUNDS], shares[MOST_ROUNDS], peaks[MOST_ROUNDS];
    const double flops = flops_of(c) / 1e9;
    int calls = 1;
    qkv_status status = forward(bench); /* warm-up; the backward pass needs its o and lse */
    if (status == QKV_OK) status = time_calls(bench, &calls, &seconds[0]);
    for (int r = 0; r < rounds && status == QKV_OK; r++) {
        peaks[r] = peak_measure(qkv_ctx_threads(bench->ctx), 4e-3);
        status = time_calls(bench, &calls, &seconds[r]);
        shares[r] = peaks[r] > 0 ? flops / seconds[r] / peaks[r] : 0;
    }
    if (status != QKV_OK) return status;
    qsort(seconds, (size_t)rounds, sizeof(double), ascending);
    qsort(shares, (size_t)rounds, sizeof(double), ascending);
    qsort(peaks, (size_t)rounds, sizeof(double), ascending);
    result->seconds = quantile(seconds, rounds, 0.5);
    result->spread =
        (quantile(seconds, rounds, 0.75) - quantile(seconds, rounds, 0.25)) / result->seconds;
    result->gflops = flops / result->seconds;
    result->share = quantile(shares, rounds, 0.5);
    result->peak = quantile(peaks, rounds, 0.5);
    return QKV_OK;
}

/* ---- The suite ------------------------------------------------------------------------------ */

static json_t *case_json(const struct bench_case *c, const struct measurement *m) {
    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:f}", "case", c->name, "seconds", m->seconds, "spread",
                     m->spread, "gflops", m->gflops, "peak_gflops", m->peak, "share", m->share);
}

static void print_case(const struct bench_case *c, const struct measurement *m) {
    printf("%-30s %11.4f %8.1f %9.1f %9.1f", c->name, m->seconds * 1e3, m->spread * 100, m->gflops,
           m->peak);
    if (m->peak > 0)
        printf(" %8.1f\n", m->share * 100);
    else
        printf(" %8s\n", "-");
}

static void print_head(const qkv_ctx *ctx, int rounds) {
    printf("isa %s, %d thread%s, peak of %s; medians of %d rounds\n\n", qkv_ctx_isa(ctx),
           qkv_ctx_threads(ctx), qkv_ctx_threads(ctx) > 1 ? "s" : "",
           peak_name() ? peak_name() : "unknown", rounds);
    printf("%-30s %11s %8s %9s %9s %8s\n", "case", "ms", "+- %", "GFLOP/s", "peak", "share %");
}

/* A case is run if its name holds one of the words, or if there are none. */
static bool wanted(const struct bench_case *c, int n_words, char **words) {
    for (int i = 0; i < n_words; i++)
        if (strstr(c->name, words[i])) return true;
    return n_words == 0;
}

static int run_suite(qkv_ctx *ctx, int rounds, int n_words, char **words, bool as_json,
                     json_t *list) {
    for (int i = 0; i < CLI_COUNT(cases); i++) {
        if (!wanted(&cases[i], n_words, words)) continue;
        struct bench bench = { .ctx = ctx };
        struct measurement result;
        if (!bench_make(&bench, &cases[i])) return cli_fail("out of memory");
        const qkv_status status = measure(&bench, &cases[i], rounds, &result);
        free(bench.memory);
        if (status != QKV_OK) return cli_fail("%s: %s", cases[i].name, qkv_ctx_message(ctx));
        if (as_json)
            json_array_append_new(list, case_json(&cases[i], &result));
        else
            print_case(&cases[i], &result);
        if (!cli_flush()) return EXIT_FAILED;
    }
    return EXIT_OK;
}

static int run_bench(const struct cli_command *command, const void *data, int n_words,
                     char **words) {
    const struct bench_options *options = data;
    int n_wanted = 0;
    for (int i = 0; i < CLI_COUNT(cases); i++) n_wanted += wanted(&cases[i], n_words, words);
    if (n_wanted == 0) return cli_usage(command, "no case has '%s' in its name", words[0]);
    struct cli_common common = options->common;
    const char *variable = getenv("QKV_NUM_THREADS");
    if (!common.threads.set && !(variable && *variable))
        common.threads = (struct arg_int){ true, 1 };
    qkv_ctx *ctx = NULL;
    int code = session_context(command, &common, &ctx);
    if (code) return code;
    const int rounds = options->rounds.set ? (int)options->rounds.value : 9;
    json_t *list = json_array();
    if (!common.json) print_head(ctx, rounds);
    code = run_suite(ctx, rounds, n_words, words, common.json, list);
    if (!code && common.json) {
        json_t *object = json_pack("{s:s,s:i,s:i,s:s?,s:O}", "isa", qkv_ctx_isa(ctx), "threads",
                                   qkv_ctx_threads(ctx), "rounds", rounds, "peak_of", peak_name(),
                                   "cases", list);
        json_dumpf(object, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(9));
        putchar('\n');
        json_decref(object);
    }
    json_decref(list);
    qkv_ctx_destroy(ctx);
    return code;
}

static const struct cli_option bench_table[] = {
    { .name = "--rounds",
      .argument = "N",
      .help = "rounds of each case (9)",
      .kind = ARG_INT,
      .offset = offsetof(struct bench_options, rounds),
      .min = 1,
      .max = MOST_ROUNDS },
};

const struct cli_command cmd_bench = {
    .name = "bench",
    .summary = "speed of attention here, beside this machine's peak",
    .words = "[CASE...]",
    .details =
        "Measures forward, causal and backward attention on one thread (or --threads), each "
        "round beside the machine's own peak of fused multiply-adds. 'share' is the median "
        "of their ratios: the figure to compare, since clocks drift. '+- %' is the distance "
        "of the quartiles of the time: processor time of one thread, wall time of several. "
        "GFLOP counts 4 B H L L D, half of it if causal, 2.5 "
        "times for backward. CASE: only the cases with one of these words in their names.\n\n"
        "    qkv bench causal --rounds 21",
    .max_words = 16,
    .suggest = "forward|causal|backward",
    .takes = TAKES_COMPUTE | TAKES_JSON,
    .options = bench_table,
    .n_options = CLI_COUNT(bench_table),
    .options_bytes = sizeof(struct bench_options),
    .run = run_bench,
};
