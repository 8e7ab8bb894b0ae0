/*
 * `qkv explain --no-scale`: what softmax does to dot products of random vectors as they get longer,
 * without the factor 1/√d and with it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "explain/explain.h"

static void tables(struct report *report, const qkv_saturation rows[][2]) {
    static const char *const titles[2] = { "Without 1/√d", "With 1/√d" };
    static const char *const formulas[2] = { "w = softmax(q·k)", "w = softmax(q·k / √d)" };
    const double most = log((double)rows[0][0].n_keys);
    for (int scaled = 0; scaled < 2; scaled++) {
        report_step(report, titles[scaled], formulas[scaled], NULL);
        report_table(report, "nnnnnb", "d", "variance", "largest", "gradient", "entropy", "");
        for (int i = 0; i < EXPLAIN_DIMS; i++) {
            const qkv_saturation *row = &rows[i][scaled];
            report_row(report, false);
            report_cell(report, "%" PRId64, row->head_dim);
            report_cell(report, scaled ? "%.3f" : "%.1f", row->score_variance);
            report_cell(report, "%.3f", row->largest);
            report_cell(report, "%.4f", row->gradient);
            report_cell(report, "%.3f", row->entropy);
            report_bar(report, row->entropy / most);
        }
    }
}

qkv_status explain_measure(qkv_ctx *ctx, uint64_t seed, qkv_saturation rows[][2],
                           qkv_error *error) {
    int64_t d = 4;
    for (int i = 0; i < EXPLAIN_DIMS; i++, d *= 4) {
        const int64_t n_draws = d < 32 ? 512 : d < 1024 ? 16384 / d : 16;
        const qkv_status status =
            qkv_inspect_saturation(ctx, d, n_draws, EXPLAIN_QUERIES, EXPLAIN_KEYS, seed, rows[i],
                                   sizeof rows[i][0], error);
        if (status != QKV_OK) return status;
    }
    return QKV_OK;
}

static void tell(struct report *report, uint64_t seed, const qkv_saturation rows[][2]) {
    const qkv_saturation *last = rows[EXPLAIN_DIMS - 1];
    report_title(report, "Why scores are divided by √d");
    report_subtitle(report,
                    "Random queries before %d random keys, independent components of mean 0 and "
                    "variance 1 (seed %" PRIu64 "). A dot product of d of them has variance d.",
                    EXPLAIN_KEYS, seed);
    tables(report, rows);
    report_text(
        report,
        "At d = %" PRId64 " softmax without the factor puts %.1f %% of a row on one key, and "
        "its gradient is %.4f: hardly anything can be learned through it. With the factor it is "
        "%.4f, as for any d.",
        last[0].head_dim, 100 * last[0].largest, last[0].gradient, last[1].gradient);
    report_note(
        report,
        "variance: of all scores. largest: mean of the largest weight of a row. gradient: mean "
        "Frobenius norm of ∂w/∂s = diag(w) − w wᵀ. entropy: mean of −Σ w ln w; a full bar is "
        "ln %d = %.3f, all keys alike. Computed by the library's attention, with the identity "
        "as values, so that its output is w; %" PRId64 " rows of weights at d = %" PRId64
        ", %" PRId64 " at d = %" PRId64 ".",
        EXPLAIN_KEYS, log((double)EXPLAIN_KEYS), rows[0][0].n_draws * rows[0][0].n_queries,
        rows[0][0].head_dim, last[0].n_draws * last[0].n_queries, last[0].head_dim);
}

qkv_status explain_scale(qkv_ctx *ctx, struct report *report, uint64_t seed, qkv_error *error) {
    qkv_saturation rows[EXPLAIN_DIMS][2];
    const qkv_status status = explain_measure(ctx, seed, rows, error);
    if (status == QKV_OK) tell(report, seed, (const qkv_saturation(*)[2])rows);
    return status;
}

qkv_status explain_scale_json(qkv_ctx *ctx, uint64_t seed, json_t **json, qkv_error *error) {
    qkv_saturation rows[EXPLAIN_DIMS][2];
    const qkv_status status = explain_measure(ctx, seed, rows, error);
    if (status != QKV_OK) return status;
    json_t *list = json_array();
    for (int i = 0; i < EXPLAIN_DIMS; i++)
        for (int scaled = 0; scaled < 2; scaled++) {
            const qkv_saturation *row = &rows[i][scaled];
            json_array_append_new(
                list,
                json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "d", (json_int_t)row->head_dim, "scale",
                          json_number(row->scale), "variance", json_number(row->score_variance),
                          "entropy", json_number(row->entropy), "largest",
                          json_number(row->largest), "gradient", json_number(row->gradient)));
        }
    *json = json_pack("{s:I, s:i, s:o}", "seed", (json_int_t)seed, "n_keys", EXPLAIN_KEYS, "rows",
                      list);
    return *json ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}
