/* See costs.h. */
#include "dist/costs.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "dist/chunks.h"
#include "dist/ulysses.h"

/* What costs are made of. */
typedef struct model {
    qkvi_group *group;
    const qkvi_problem *p;
    const qkvi_rates *rates;
    double all, most;      /* pairs of one head: of all ranks; of the rank that has most */
    int64_t all_k, key;    /* keys; bytes of one */
    double steps_of_bcast; /* messages that wait for each other */
} model;

/* The library needs no libm. */
static double greater(double x, double y) { return x > y ? x : y; }
static double less(double x, double y) { return x < y ? x : y; }

/* Steps of a broadcast in which those who have it send it on. */
static int64_t depth_of(int size) {
    int64_t depth = 0;
    for (int64_t n = 1; n < size; n *= 2) depth++;
    return depth;
}

static void say(char *text, const char *format, ...) QKVI_PRINTF(2, 3);
static void say(char *text, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, QKVI_COST_REASON_BYTES, format, arguments);
    va_end(arguments);
}

const char *qkvi_scheme_name(qkvi_scheme scheme) {
    static const char *const names[] = { "ordered", "ring", "zigzag", "ulysses", "auto" };
    return names[scheme];
}

qkv_status qkvi_rates_read(qkvi_rates *r, qkv_error *error) {
    struct {
        const char *name;
        double *value, instead;
    } const all[] = { { "flops_per_second", &r->flops_per_second, 1e12 },
                      { "bytes_per_second", &r->bytes_per_second, 25e9 / 8 },
                      { "seconds_per_message", &r->seconds_per_message, 1e-5 } };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++) {
        if (!isfinite(*all[n].value) || *all[n].value < 0)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "%s = %g is not a finite number of 0 or more", all[n].name,
                                  *all[n].value);
        if (*all[n].value == 0) *all[n].value = all[n].instead;
    }
    return QKV_OK;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

static int64_t own(const int64_t *first, int rank) { return first[rank + 1] - first[rank]; }

static int64_t bytes_of(const model *m, qkvi_scheme scheme) {
    qkvi_group *const group = m->group;
    const int me = group->transport->rank, size = group->transport->size;
    const int64_t k = own(group->first_k, me), q = own(group->first_q, me);
    if (scheme == QKVI_SCHEME_ORDERED) return k * m->key;
    if (scheme != QKVI_SCHEME_ULYSSES)
        return (m->all_k - own(group->first_k, (me + 1) % size)) * m->key;
    const qkvi_ulysses_rows row = qkvi_ulysses_rows_of(group, m->p);
    return (size - 1) * (q * row.q + k * row.k) + (group->first_q[size] - q) * row.o;
}

/* ---- What a scheme takes --------------------------------------------------------------------- */

static bool is_even(const qkvi_group *group, const int64_t *first) {
    bool even = first[1] % 2 == 0;
    for (int rank = 0; rank < group->transport->size; rank++) even &= own(first, rank) == first[1];
    return even;
}

/* Why a scheme cannot be, NULL if it can. */
static const char *refusal(const model *m, qkvi_scheme scheme) {
    if (scheme == QKVI_SCHEME_ORDERED) return NULL;
    if (m->p->has_stats) return "it has no statistics";
    if (scheme == QKVI_SCHEME_ZIGZAG &&
        (!is_even(m->group, m->group->first_q) || !is_even(m->group, m->group->first_k)))
        return "pieces have not one even length";
    if (scheme == QKVI_SCHEME_ULYSSES && m->p->n_kv_heads % m->group->transport->size)
        return "n_kv_heads is no multiple of the number of ranks";
    return NULL;
}

/* ---- Seconds --------------------------------------------------------------------------------- */

static void add_seconds(const model *m, qkvi_scheme scheme, qkvi_cost *c) {
    const int size = m->group->transport->size;
    const double all_bytes = (double)m->all_k * (double)m->key, rate = m->rates->bytes_per_second;
    const bool shares = scheme == QKVI_SCHEME_ZIGZAG || scheme == QKVI_SCHEME_ULYSSES;
    const double pairs = shares ? m->all / size : m->most, mean = m->all / size;
    const double messages = scheme == QKVI_SCHEME_ORDERED   ? m->steps_of_bcast
                            : scheme == QKVI_SCHEME_ULYSSES ? 3.0 * (size - 1)
                                                            : size - 1;
    c->operations = 2 * (double)(m->p->head_dim + m->p->head_dim_v) * pairs * (double)m->p->n_heads;
    c->imbalance = mean > 0 ? pairs / mean - 1 : 0;
    c->compute_seconds = c->operations / m->rates->flops_per_second;
    /* A broadcast goes over every link. */
    const double bytes = scheme == QKVI_SCHEME_ORDERED ? all_bytes : (double)c->most_bytes;
    c->send_seconds = size == 1 ? 0 : bytes / rate + messages * m->rates->seconds_per_message;
    c->seconds = scheme == QKVI_SCHEME_ULYSSES ? c->compute_seconds + c->send_seconds
                                               : greater(c->compute_seconds, c->send_seconds);
}

static void explain(const model *m, qkvi_scheme scheme, qkvi_cost *c) {
    static const char *const when[QKVI_N_SCHEMES] = { "meanwhile", "meanwhile",
                                                      "meanwhile, if rows lie so",
                                                      "before and after" };
    const char *const why = refusal(m, scheme);
    c->possible = !why;
    if (why)
        say(c->reason, "not possible: %s", why);
    else
        say(c->reason,
            "%.3g s: computing takes %.3g s, %.2f times the mean of all ranks; sending %.3g s, %s",
            c->seconds, c->compute_seconds, 1 + c->imbalance, c->send_seconds, when[scheme]);
}

/* ---- All schemes ----------------------------------------------------------------------------- */

static int64_t count_pairs(const qkvi_problem *p) {
    int64_t pairs = 0;
    for (int64_t b = 0; b < p->n_batch; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        for (int64_t i = 0; i < rules.n_queries; i++) {
            const qkvi_range keys = qkvi_keys_of(&rules, i);
            pairs += keys.end - keys.begin;
        }
    }
    return pairs;
}

static void choose(qkvi_costs *costs) {
    const qkvi_cost *const o = &costs->of[QKVI_SCHEME_ORDERED];
    const qkvi_cost *const u = &costs->of[QKVI_SCHEME_ULYSSES];
    costs->chosen =
        u->possible && u->seconds < o->seconds ? QKVI_SCHEME_ULYSSES : QKVI_SCHEME_ORDERED;
    if (!u->possible)
        say(costs->reason, "ordered: of the schemes with the bits of one process the only possible "
                           "one");
    else
        say(costs->reason,
            "%s: %.3g s, beside %.3g s of %s; rings have not the bits of one process",
            qkvi_scheme_name(costs->chosen), less(o->seconds, u->seconds),
            greater(o->seconds, u->seconds),
            qkvi_scheme_name(costs->chosen == QKVI_SCHEME_ULYSSES ? QKVI_SCHEME_ORDERED
                                                                  : QKVI_SCHEME_ULYSSES));
}

/* What ranks tell each other: rates first, which must be the same. */
enum { AT_BYTES = 3, AT_PAIRS = AT_BYTES + QKVI_N_SCHEMES };
static const qkvi_group_value fields[] = { { "flops_per_second", QKVI_FIELD_HASH },
                                           { "bytes_per_second", QKVI_FIELD_HASH },
                                           { "seconds_per_message", QKVI_FIELD_HASH } };

_Static_assert(sizeof(qkvi_rates) == AT_BYTES * sizeof(int64_t), "rates are the first values");

static void read_records(const qkvi_group *group, model *m, qkvi_costs *costs) {
    for (int rank = 0; rank < group->transport->size; rank++) {
        const int64_t *const value = group->records[rank].value;
        m->all += (double)value[AT_PAIRS];
        m->most = greater(m->most, (double)value[AT_PAIRS]);
        for (int s = 0; s < QKVI_N_SCHEMES; s++)
            costs->of[s].most_bytes = qkvi_max_i64(costs->of[s].most_bytes, value[AT_BYTES + s]);
    }
}

static qkv_status compare_costs(model *m, qkvi_group *group, qkvi_costs *costs) {
    qkvi_record record = { 0 };
    memcpy(record.value, &costs->rates, sizeof costs->rates);
    for (int s = 0; s < QKVI_N_SCHEMES; s++)
        if (!refusal(m, (qkvi_scheme)s))
            record.value[AT_BYTES + s] = costs->of[s].bytes_sent = bytes_of(m, (qkvi_scheme)s);
    record.value[AT_PAIRS] = count_pairs(m->p);
    QKV_TRY(qkvi_group_exchange(group, &record));
    QKV_TRY(qkvi_group_compare(group, fields, AT_BYTES));
    read_records(group, m, costs);
    return QKV_OK;
}

qkv_status qkvi_costs_of(qkvi_group *group, qkv_ctx *ctx, qkv_status status,
                         const qkv_attention_desc *desc, const qkvi_rates *rates,
                         qkvi_costs *costs) {
    const int size = group->transport->size;
    qkvi_problem p;
    qkvi_chunks chunks;
    QKV_TRY(qkvi_call_open_shape(group, ctx, status, desc, &p));
    *costs = (qkvi_costs){ .rates = *rates };
    qkvi_chunks_init(&chunks, group, &p);
    model m = { .group = group,
                .p = &p,
                .rates = &costs->rates,
                .all_k = group->first_k[size],
                .key = qkvi_chunks_row_bytes(&p),
                .steps_of_bcast = (double)(depth_of(size) * chunks.stream.count) };
    QKV_TRY(compare_costs(&m, group, costs));
    for (int s = 0; s < QKVI_N_SCHEMES; s++) {
        add_seconds(&m, (qkvi_scheme)s, &costs->of[s]);
        explain(&m, (qkvi_scheme)s, &costs->of[s]);
    }
    choose(costs);
    return QKV_OK;
}

qkv_status qkvi_explain_costs(qkvi_group *group, qkv_ctx *ctx, const qkv_error *refused,
                              const qkv_attention_desc *desc, const qkvi_rates *rates,
                              qkvi_costs *costs) {
    const qkv_status begun = qkvi_call_begin(group, ctx);
    const qkv_status status = qkvi_call_refuse(group, begun, refused);
    return qkvi_call_end(group, ctx, begun, qkvi_costs_of(group, ctx, status, desc, rates, costs));
}
