/* Options of the calls of qkv/mpi.h, and the calls that predict and measure costs. */
#include <string.h>

#include "core/options.h"
#include "dist/decode.h"
#include "dist/measure.h"
#include "dist/ring.h"
#include "mpi/mpi_group.h"

_Static_assert((int)QKVMPI_SCHEMES == (int)QKVI_N_SCHEMES, "a plan has all schemes");
_Static_assert((int)QKV_REASON_BYTES == (int)QKVI_COST_REASON_BYTES, "reasons have one size");

static qkv_status read_options(const qkvmpi_options *options, const char **scheme,
                               qkvi_rates *rates, qkv_error *error) {
    qkvmpi_options read = qkvmpi_options_init();
    *rates = (qkvi_rates){ 0 };
    if (options) QKV_TRY(qkvi_options_read(&read, sizeof read, options, "qkvmpi_options", error));
    *scheme = read.scheme;
    *rates = (qkvi_rates){ read.flops_per_second, read.bytes_per_second, read.seconds_per_message };
    return qkvi_rates_read(rates, error);
}

qkv_status qkvi_mpi_options(const qkvmpi_options *options, qkvi_scheme *scheme, qkvi_rates *rates,
                            qkv_error *error) {
    const char *name = NULL;
    *scheme = QKVI_SCHEME_ORDERED;
    QKV_TRY(read_options(options, &name, rates, error));
    return qkvi_scheme_named(name, scheme, error);
}

qkv_status qkvi_mpi_decode_options(const qkvmpi_options *options, qkvi_scheme *scheme,
                                   qkv_error *error) {
    const char *name = NULL;
    qkvi_rates rates;
    *scheme = QKVI_SCHEME_ORDERED;
    QKV_TRY(read_options(options, &name, &rates, error));
    return qkvi_decode_scheme_named(name, scheme, error);
}

static void write_scheme(qkvi_scheme scheme, const qkvi_cost *from, qkvmpi_scheme_cost *to) {
    strcpy(to->name, qkvi_scheme_name(scheme));
    to->possible = from->possible;
    to->same_bits = scheme == QKVI_SCHEME_ORDERED || scheme == QKVI_SCHEME_ULYSSES;
    to->bytes_sent = from->bytes_sent;
    to->most_bytes = from->most_bytes;
    to->operations = from->operations;
    to->imbalance = from->imbalance;
    to->compute_seconds = from->compute_seconds;
    to->send_seconds = from->send_seconds;
    to->seconds = from->seconds;
    memcpy(to->reason, from->reason, sizeof to->reason);
}

static void write_plan(const qkvmpi_group *group, const qkvi_costs *costs, qkvmpi_plan *to) {
    qkvmpi_plan plan = qkvmpi_plan_init();
    plan.n_ranks = qkvmpi_group_size(group);
    plan.flops_per_second = costs->rates.flops_per_second;
    plan.bytes_per_second = costs->rates.bytes_per_second;
    plan.seconds_per_message = costs->rates.seconds_per_message;
    strcpy(plan.chosen, qkvi_scheme_name(costs->chosen));
    memcpy(plan.reason, costs->reason, sizeof plan.reason);
    for (int s = 0; s < QKVI_N_SCHEMES; s++)
        write_scheme((qkvi_scheme)s, &costs->of[s], &plan.schemes[s]);
    qkvi_options_write(to, &plan, sizeof plan);
}

/* The plan is read, too: that finds a size that was not set. */
static qkv_status read_plan(const qkvmpi_plan *plan, qkv_error *error) {
    qkvmpi_plan read = qkvmpi_plan_init();
    if (!plan) return qkvi_error_set(error, QKV_ERR_ARGUMENT, "plan is NULL");
    return qkvi_options_read(&read, sizeof read, plan, "plan", error);
}

qkv_status qkvmpi_attention_explain(qkvmpi_group *group, qkv_ctx *ctx,
                                    const qkv_attention_desc *desc, const qkvmpi_options *options,
                                    qkvmpi_plan *plan) {
    qkvi_scheme scheme;
    qkvi_rates rates;
    qkvi_costs costs;
    qkv_error error = { QKV_OK, "" };
    if (!group) return QKV_ERR_ARGUMENT;
    qkv_status status = read_plan(plan, &error);
    if (status == QKV_OK) status = qkvi_mpi_options(options, &scheme, &rates, &error);
    QKV_TRY(
        qkvi_explain_costs(group->of, ctx, status == QKV_OK ? NULL : &error, desc, &rates, &costs));
    write_plan(group, &costs, plan);
    return QKV_OK;
}

qkv_status qkvmpi_measure(qkvmpi_group *group, qkv_ctx *ctx, qkv_dtype dtype,
                          qkvmpi_options *options) {
    qkvmpi_options read = qkvmpi_options_init();
    qkvi_rates rates;
    qkv_error error = { QKV_OK, "" };
    qkv_status status = QKV_OK;
    if (!group) return QKV_ERR_ARGUMENT;
    if (!options)
        status = qkvi_error_set(&error, QKV_ERR_ARGUMENT, "options is NULL");
    else
        status = qkvi_options_read(&read, sizeof read, options, "qkvmpi_options", &error);
    QKV_TRY(qkvi_measure(group->of, ctx, status == QKV_OK ? NULL : &error, dtype, &rates));
    read.flops_per_second = rates.flops_per_second;
    read.bytes_per_second = rates.bytes_per_second;
    read.seconds_per_message = rates.seconds_per_message;
    qkvi_options_write(options, &read, sizeof read);
    return QKV_OK;
}
