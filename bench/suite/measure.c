/*
 * The rounds of `qkv bench`. The peak is measured beside each round, by the same clock, and a few
 * times before the first one, to have one measurement that other work did not disturb.
 */
#include "suite/suite.h"

#include "core/os.h"

static const double PEAK_SECONDS = 4e-3, ROUND_SECONDS = 5e-3;
enum { MOST_CALLS = 1 << 20, PEAKS_BEFORE = 8 };

static qkv_status forward(const struct bench *bench, const qkv_call_options *call) {
    return qkv_attention_forward(bench->ctx, &bench->desc, bench->q, bench->k, bench->v, bench->o,
                                 bench->lse, call);
}

static qkv_status backward(const struct bench *bench, const qkv_call_options *call) {
    return qkv_attention_backward(bench->ctx, &bench->desc, bench->q, bench->k, bench->v, bench->o,
                                  bench->lse, &bench->grads, call);
}

static qkv_status decode(struct bench *bench, const qkv_call_options *call) {
    const size_t at = (size_t)bench->copy * bench->copy_bytes;
    qkv_kv_view view = bench->view;
    view.k = (const char *)view.k + at;
    view.v = (const char *)view.v + at;
    if (view.k_scale) view.k_scale += at / sizeof *view.k_scale;
    if (view.v_scale) view.v_scale += at / sizeof *view.v_scale;
    bench->copy = (bench->copy + 1) % bench->n_copies;
    return qkv_attention_decode(bench->ctx, &bench->desc, bench->q, &view, bench->o, bench->lse,
                                call);
}

static qkv_status columns(const struct bench *bench, const qkv_call_options *call) {
    return qkv_attention_columns_pass(bench->ctx, &bench->desc, bench->q, bench->k, bench->lse,
                                      &bench->columns, call);
}

qkv_status bench_call_once(struct bench *bench) {
    qkv_call_options call = qkv_call_options_init();
    call.cancel = bench->cancel;
    if (bench->call == BENCH_DECODE) return decode(bench, &call);
    if (bench->call == BENCH_COLUMNS) return columns(bench, &call);
    qkv_status status = QKV_OK;
    if (bench->call != BENCH_BACKWARD) status = forward(bench, &call);
    if (status == QKV_OK && bench->call != BENCH_FORWARD) status = backward(bench, &call);
    return status;
}

/* Of one call, from as many calls as take a round. */
static qkv_status time_calls(struct bench *bench, int *calls, struct bench_round *round) {
    const int n_threads = qkv_ctx_threads(bench->ctx);
    for (;;) {
        const double wall = qkvi_os_seconds(), start = peak_seconds(n_threads);
        for (int i = 0; i < *calls; i++) {
            const qkv_status status = bench_call_once(bench);
            if (status != QKV_OK) return status;
        }
        round->seconds = peak_seconds(n_threads) - start;
        round->wall = qkvi_os_seconds() - wall;
        if (round->seconds >= ROUND_SECONDS || *calls >= MOST_CALLS) break;
        *calls *= 2;
    }
    round->seconds /= *calls;
    round->wall /= *calls;
    return QKV_OK;
}

/* 2 operations a pair, channel and product: 2 products forward, 5 backward, 1 over columns. */
double bench_operations(const struct bench *bench) {
    const qkv_attention_desc *d = &bench->desc;
    const double heads = (double)(d->n_batch * d->n_heads);
    const double dim_v = bench->call == BENCH_COLUMNS ? 0 : (double)d->head_dim_v;
    const double once = 2 * heads * bench->pairs * ((double)d->head_dim + dim_v);
    const double times[] = { 1, 2.5, 3.5, 1, 1 }; /* of enum bench_call */
    return once * times[bench->call];
}

qkv_status bench_explain(const struct bench *bench, qkv_attention_plan *plan) {
    static const qkv_pass passes[] = {
        QKV_PASS_FORWARD, QKV_PASS_BACKWARD, QKV_PASS_BACKWARD, QKV_PASS_DECODE, QKV_PASS_FORWARD
    }; /* of enum bench_call; columns: its scores */
    *plan = qkv_attention_plan_init();
    plan->pass = passes[bench->call];
    return qkv_attention_explain(bench->ctx, &bench->desc, plan);
}

enum peak_kind bench_peak_of(const qkv_attention_plan *plan) {
    if (plan->pass == QKV_PASS_DECODE) return PEAK_READ;
    switch (plan->arithmetic_class) {
    case QKV_CLASS_AMX: return PEAK_AMX;
    case QKV_CLASS_DP: return PEAK_DP;
    default: return PEAK_FMA;
    }
}

static qkv_status workspace(const struct bench *bench, double *bytes) {
    size_t forward_bytes = 0, backward_bytes = 0;
    qkv_status status = QKV_OK;
    if (bench->call == BENCH_DECODE)
        status = qkv_attention_decode_workspace(bench->ctx, &bench->desc, &forward_bytes);
    else if (bench->call == BENCH_COLUMNS)
        status = qkv_attention_columns_workspace(bench->ctx, &bench->desc, &bench->columns,
                                                 &forward_bytes);
    else if (bench->call != BENCH_BACKWARD)
        status = qkv_attention_workspace(bench->ctx, &bench->desc, &forward_bytes);
    if (status == QKV_OK && (bench->call == BENCH_BACKWARD || bench->call == BENCH_BOTH))
        status = qkv_attention_backward_workspace(bench->ctx, &bench->desc, &backward_bytes);
    *bytes = (double)(forward_bytes > backward_bytes ? forward_bytes : backward_bytes);
    return status;
}

/*
 * The first call: its context is new, so that all it needs is allocated now. Backward alone and
 * columns then get the o and lse that they want.
 */
static qkv_status first_call(struct bench *bench, struct bench_result *result) {
    const double before = bench_memory_mark();
    qkv_status status = bench_call_once(bench);
    result->memory_bytes = before < 0 ? -1 : bench_memory_peak() - before;
    if (status == QKV_OK && (bench->call == BENCH_BACKWARD || bench->call == BENCH_COLUMNS))
        status = forward(bench, NULL);
    return status;
}

static void describe(const struct bench *bench, const struct bench_case *c,
                     const qkv_attention_plan *plan, struct bench_result *result) {
    const enum peak_kind peak_of = bench_peak_of(plan);
    *result = (struct bench_result){
        .name = c->name, .peak_of = peak_of, .kernel = plan->kernel, .arithmetic = plan->arithmetic
    };
    if (peak_of == PEAK_READ && bench->n_copies == 1) result->peak_bytes = bench->kv_bytes;
}

/* Rounds, each beside the peak, and what they come to. */
static qkv_status measure_rounds(struct bench *bench, int n, struct bench_result *result) {
    struct bench_round rounds[BENCH_MOST_ROUNDS];
    struct peak peak;
    int calls = 1;
    qkv_status status = time_calls(bench, &calls, &rounds[0]);
    if (status != QKV_OK) return status;
    if (!peak_open(&peak, result->peak_of, qkv_ctx_threads(bench->ctx),
                   (size_t)bench->kv_bytes * (size_t)bench->n_copies))
        return QKV_ERR_MEMORY;
    for (int r = 0; r < PEAKS_BEFORE; r++) {
        const double found = peak_measure(&peak, PEAK_SECONDS);
        if (found > result->peak) result->peak = found;
    }
    for (int r = 0; r < n && status == QKV_OK; r++) {
        rounds[r].peak = peak_measure(&peak, PEAK_SECONDS);
        status = time_calls(bench, &calls, &rounds[r]);
    }
    peak_close(&peak);
    if (status == QKV_OK) bench_summarise(n, rounds, result);
    return status;
}

qkv_status bench_measure(struct bench *bench, const struct bench_case *c, int rounds,
                         struct bench_result *result) {
    qkv_attention_plan plan;
    qkv_status status = bench_explain(bench, &plan);
    if (status != QKV_OK) return status;
    describe(bench, c, &plan, result);
    status = workspace(bench, &result->workspace_bytes);
    if (status == QKV_OK) status = first_call(bench, result);
    if (status == QKV_OK) status = measure_rounds(bench, rounds, result);
    if (status != QKV_OK) return status;
    result->gflops = bench_operations(bench) / 1e9 / result->seconds;
    result->gbytes = bench->bytes / 1e9 / result->seconds;
    return QKV_OK;
}
