/* The results of `qkv bench`: lines of a table, or a JSON object. */
#include <math.h>
#include <stdio.h>

#include "bench/bench.h"
#include "common/job.h"

void bench_print_head(const qkv_ctx *ctx, int rounds) {
    printf("isa %s, %d thread%s; medians of %d rounds; peaks: %s", qkv_ctx_isa(ctx),
           qkv_ctx_threads(ctx), qkv_ctx_threads(ctx) > 1 ? "s" : "", rounds,
           peak_name(PEAK_FMA) ? peak_name(PEAK_FMA) : "unknown");
    for (int kind = PEAK_DP; kind <= PEAK_AMX; kind++)
        if (peak_name((enum peak_kind)kind)) printf(", %s", peak_name((enum peak_kind)kind));
    printf("\n\n");
    printf("%-38s %9s %6s %8s %7s %8s %7s %8s\n", "case", "ms", "+- %", "GFLOP/s", "GB/s", "peak",
           "share %", "MiB");
}

void bench_print(const struct bench_result *r) {
    printf("%-38s %9.4f %6.1f %8.1f %7.2f", r->name, r->seconds * 1e3, r->spread * 100, r->gflops,
           r->gbytes);
    if (r->peak > 0)
        printf(" %8.1f %7.1f", r->peak, r->share * 100);
    else
        printf(" %8s %7s", "-", "-");
    if (r->memory_bytes >= 0)
        printf(" %8.2f", r->memory_bytes / (1 << 20));
    else
        printf(" %8s", "-");
    puts(r->busy ? " *" : "");
}

void bench_print_busy(bool busy) {
    if (busy)
        puts(
            "\n* The machine was busy, or its clock changed: rounds of the case, or the peaks beside\n"
            "  them, differ by more than 10 %, or they waited for a processor. Measure it again.");
}

static json_t *result_json(const struct bench_result *r) {
    const bool peak = r->peak > 0;
    json_t *const object =
        json_set(NULL,
                 "case:s kernel:s arithmetic:s seconds:n spread:n gflops:n gb_per_second:n "
                 "peak_of:o",
                 r->name, r->kernel, r->arithmetic, r->seconds, r->spread, r->gflops, r->gbytes,
                 peak ? json_string(peak_name(r->peak_of)) : json_null());
    return json_set(object, "peak:n share:n busy:b workspace_bytes:n memory_bytes:n",
                    peak ? r->peak : NAN, peak ? r->share : NAN, r->busy, r->workspace_bytes,
                    r->memory_bytes >= 0 ? r->memory_bytes : NAN);
}

json_t *bench_json(const qkv_ctx *ctx, int rounds, int n, const struct bench_result *results) {
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, result_json(&results[i]));
    return json_set(NULL, "qkv:s isa:s threads:d rounds:d cases:o", qkv_version(), qkv_ctx_isa(ctx),
                    qkv_ctx_threads(ctx), rounds, list);
}
