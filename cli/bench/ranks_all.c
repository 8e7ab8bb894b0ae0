/*
 * The measurements of `qkv bench --mpi`. A time is that of the slowest rank; results are medians of
 * the rounds, each of which times all parts, one after the other.
 *
 *     overlap = 1 - waiting / transfer
 *
 * waiting: seconds of the call in which a rank only waits for messages. transfer: seconds in which
 * it waits for or moves messages in the same call without computing. (The difference of whole times
 * would be smaller than their noise.)
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/ranks_case.h"
#include "common/job.h"
#include "common/os.h"

static const double ROUND_SECONDS = 0.05;

/* What a case came to: medians of seconds. */
struct outcome {
    char name[100];
    double seconds[N_PARTS], waiting, transfer; /* negative: there is none */
    int64_t bytes;                              /* that the rank that sends most sends */
};

struct measuring {
    const struct ranks_options *options;
    bool has_one; /* there are processors for all threads of all ranks */
    int n_threads;
    os_cpus own, all;
    double *times; /* [n ranks] */
};

/* ---- Processors ------------------------------------------------------------------------------ */

/* mpirun binds ranks to processors; one process has those of all. */
static void find_processors(struct measuring *m) {
    const int size = ranks_size();
    os_cpus *const sets = calloc((size_t)size, sizeof *sets);
    int n_all = 0;
    if (!sets) abort(); /* which ends the job */
    os_cpus_get(&m->own);
    ranks_gather(&m->own, (int)sizeof m->own, sets);
    for (int i = 0; i < CLI_COUNT(m->all.bits); i++) {
        m->all.bits[i] = 0;
        for (int rank = 0; rank < size; rank++) m->all.bits[i] |= sets[rank].bits[i];
        n_all += __builtin_popcountll(m->all.bits[i]);
    }
    m->has_one = n_all >= size * m->n_threads;
    free(sets);
}

/* Threads are begun where the thread is that makes the context. */
static int make_all_ctx(const struct measuring *m, struct ranks_bench *b) {
    struct cli_common common = *m->options->common;
    common.threads = (struct arg_int){ true, (int64_t)ranks_size() * m->n_threads };
    os_cpus_set(&m->all);
    const int code = session_context(m->options->command, &common, &b->all_ctx);
    os_cpus_set(&m->own);
    return code;
}

/* ---- Times ----------------------------------------------------------------------------------- */

/* The greatest of all ranks; QKV_ERR_… if one of them failed, which has said why. */
static qkv_status slowest(struct measuring *m, double mine, double *seconds) {
    ranks_gather(&mine, (int)sizeof mine, m->times);
    *seconds = 0;
    for (int rank = 0; rank < ranks_size(); rank++) {
        if (m->times[rank] < 0) return QKV_ERR_IO;
        if (m->times[rank] > *seconds) *seconds = m->times[rank];
    }
    return QKV_OK;
}

static double idle_seconds(enum ranks_part part) {
    return ranks_seconds_waited() + (part == PART_TRANSFER ? ranks_seconds_moved() : 0);
}

/* Of one call, and how long it waited. All ranks begin together. */
static qkv_status time_part(struct measuring *m, struct ranks_bench *b, enum ranks_part part,
                            int calls, double *seconds, double *waited) {
    qkv_error error = { QKV_OK, "" };
    qkv_status status = slowest(m, 0, seconds);
    if (part == PART_ONE && ranks_rank() == 0) os_cpus_set(&m->all);
    const double start = cli_seconds(), before = idle_seconds(part);
    for (int i = 0; i < calls && status == QKV_OK; i++) status = ranks_bench_run(b, part, &error);
    double mine = (cli_seconds() - start) / calls;
    const double idle = (idle_seconds(part) - before) / calls;
    if (part == PART_ONE) {
        ranks_rest();
        if (ranks_rank() == 0) os_cpus_set(&m->own);
        if (ranks_rank() > 0) mine = 0;
    }
    if (status != QKV_OK) cli_fail("%s", error.message);
    status = slowest(m, status == QKV_OK ? mine : -1, seconds);
    return status == QKV_OK ? slowest(m, idle, waited) : status;
}

static bool has_part(const struct measuring *m, const struct ranks_bench *b, int part) {
    return ranks_case_has(b->c, (enum ranks_part)part) && (part != PART_ONE || m->has_one);
}

static double median(int n, double *values) {
    bench_sort(values, n);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* One call of each part for memory and warmth, which also says how many calls take a while. */
static qkv_status begin(struct measuring *m, struct ranks_bench *b, int calls[N_PARTS],
                        struct outcome *r) {
    for (int part = 0; part < N_PARTS; part++) {
        double seconds, waited;
        if (!has_part(m, b, part)) continue;
        const int64_t before = ranks_bytes_sent();
        qkv_status status = time_part(m, b, (enum ranks_part)part, 1, &seconds, &waited);
        const double sent = (double)(ranks_bytes_sent() - before);
        if (status == QKV_OK && part == PART_BOTH) {
            double most;
            status = slowest(m, sent, &most);
            r->bytes = (int64_t)most;
        }
        if (status == QKV_OK) status = time_part(m, b, (enum ranks_part)part, 1, &seconds, &waited);
        if (status != QKV_OK) return status;
        calls[part] = seconds * 1000 < ROUND_SECONDS ? 1000 : (int)(ROUND_SECONDS / seconds) + 1;
    }
    return QKV_OK;
}

/* Of all rounds; negative where there is no such part. */
static double median_of(const struct measuring *m, const struct ranks_bench *b, int part,
                        double *values) {
    return has_part(m, b, part) ? median(m->options->rounds, values) : -1;
}

static qkv_status measure(struct measuring *m, struct ranks_bench *b, struct outcome *r) {
    double seconds[N_PARTS][BENCH_MOST_ROUNDS], waited[N_PARTS][BENCH_MOST_ROUNDS];
    int calls[N_PARTS] = { 1, 1, 1, 1 };
    qkv_status status = begin(m, b, calls, r);
    for (int i = 0; i < m->options->rounds && status == QKV_OK; i++)
        for (int part = 0; part < N_PARTS && status == QKV_OK; part++)
            if (has_part(m, b, part))
                status = time_part(m, b, (enum ranks_part)part, calls[part], &seconds[part][i],
                                   &waited[part][i]);
    if (status != QKV_OK) return status;
    for (int part = 0; part < N_PARTS; part++)
        r->seconds[part] = median_of(m, b, part, seconds[part]);
    r->waiting = median_of(m, b, PART_BOTH, waited[PART_BOTH]);
    r->transfer = median_of(m, b, PART_TRANSFER, waited[PART_TRANSFER]);
    return QKV_OK;
}

static int measure_case(struct measuring *m, const struct ranks_case *c, int64_t len,
                        struct outcome *r) {
    struct ranks_bench b;
    int code = ranks_bench_make(&b, c, len) ? EXIT_OK : cli_fail("out of memory");
    if (!code) code = session_context(m->options->command, m->options->common, &b.ctx);
    if (!code && m->has_one && ranks_rank() == 0) code = make_all_ctx(m, &b);
    code = ranks_agree(code);
    ranks_case_name(c, len, r->name);
    if (!code && measure(m, &b, r) != QKV_OK) code = EXIT_FAILED;
    ranks_bench_free(&b);
    return ranks_agree(code);
}

/* ---- What is said ---------------------------------------------------------------------------- */

static void print_head(const struct measuring *m) {
    printf("%d rank%s of %d thread%s; medians of %d rounds\n\n", ranks_size(),
           ranks_size() > 1 ? "s" : "", m->n_threads, m->n_threads > 1 ? "s" : "",
           m->options->rounds);
    printf("%-42s %9s %9s %9s %9s %9s %9s %9s\n", "case", "ms", "compute", "transfer", "waiting",
           "overlap %", "MiB sent", "speed %");
}

static void print_number(double value, double factor, int digits) {
    if (value < 0)
        printf(" %9s", "-");
    else
        printf(" %9.*f", digits, value * factor);
}

/* One process's seconds over ours; negative: unknown. */
static double speed_of(const struct outcome *r) {
    return r->seconds[PART_ONE] < 0 ? -1 : r->seconds[PART_ONE] / r->seconds[PART_BOTH];
}

/* Negative: unknown. */
static double overlap_of(const struct outcome *r) {
    if (r->transfer <= 0) return -1;
    return r->waiting < r->transfer ? 1 - r->waiting / r->transfer : 0;
}

static void print(const struct outcome *r) {
    printf("%-42s", r->name);
    print_number(r->seconds[PART_BOTH], 1e3, 2);
    print_number(r->seconds[PART_COMPUTE], 1e3, 2);
    print_number(r->transfer, 1e3, 3);
    print_number(r->waiting, 1e3, 3);
    print_number(overlap_of(r), 100, 0);
    print_number((double)r->bytes, 1.0 / (1 << 20), 3);
    print_number(speed_of(r), 100, 1);
    putchar('\n');
}

static double known(double value) { return value < 0 ? NAN : value; }

static json_t *outcome_json(const struct outcome *r) {
    return json_set(NULL,
                    "case:s seconds:n compute_seconds:n transfer_seconds:n waiting_seconds:n "
                    "overlap:n bytes_sent:i one_process_seconds:n speed:n",
                    r->name, r->seconds[PART_BOTH], known(r->seconds[PART_COMPUTE]),
                    known(r->transfer), known(r->waiting), known(overlap_of(r)), r->bytes,
                    known(r->seconds[PART_ONE]), known(speed_of(r)));
}

static int write_json(const struct measuring *m, json_t *list) {
    qkv_error error;
    json_t *const object = json_set(NULL, "qkv:s ranks:d threads:d rounds:d cases:o", qkv_version(),
                                    ranks_size(), m->n_threads, m->options->rounds, list);
    if (strcmp(m->options->json, "-") == 0) return json_emit(object);
    return cli_status(json_write_file(m->options->json, object, &error), &error);
}

/* ---- All cases ------------------------------------------------------------------------------- */

static bool wanted(const struct ranks_options *options, const struct ranks_case *c, int64_t len) {
    for (int i = 0; i < options->n_words; i++)
        if (ranks_case_is(c, len, options->words[i])) return true;
    return options->n_words == 0;
}

static int check_words(const struct ranks_options *options, int64_t len) {
    const struct ranks_case *c;
    for (int w = 0; w < options->n_words; w++) {
        int i = 0;
        while ((c = ranks_case_at(i)) && !ranks_case_is(c, len, options->words[w])) i++;
        if (!c)
            return cli_usage(options->command, "no case of --mpi has the word '%s'",
                             options->words[w]);
    }
    return EXIT_OK;
}

static int count_threads(struct measuring *m) {
    qkv_ctx *ctx = NULL;
    const int code = session_context(m->options->command, m->options->common, &ctx);
    if (!code) m->n_threads = qkv_ctx_threads(ctx);
    qkv_ctx_free(ctx);
    return code;
}

static int measure_all(struct measuring *m, int64_t len, json_t *list) {
    const bool shows = ranks_rank() == 0 && !(m->options->json && *m->options->json == '-');
    const struct ranks_case *c;
    find_processors(m);
    if (shows) print_head(m);
    for (int i = 0; (c = ranks_case_at(i)); i++) {
        struct outcome r;
        if (!wanted(m->options, c, len)) continue;
        const int code = measure_case(m, c, len, &r);
        if (code) return code;
        json_array_append_new(list, outcome_json(&r));
        if (shows) print(&r);
        if (shows) cli_flush();
    }
    return EXIT_OK;
}

int ranks_bench_all(const struct ranks_options *options) {
    struct measuring m = { .options = options };
    int code = ranks_begin(true);
    const int64_t runs = 2 * (int64_t)ranks_size();
    const int64_t len = (options->len > runs ? options->len : runs) / runs * runs;
    json_t *const list = json_array();
    if (!code) code = check_words(options, len);
    if (!code) code = count_threads(&m);
    m.times = calloc((size_t)ranks_size(), sizeof *m.times);
    if (!code && (!m.times || !list)) code = cli_fail("out of memory");
    code = ranks_agree(code);
    if (!code) code = measure_all(&m, len, list);
    if (!code && options->json && ranks_rank() == 0) code = write_json(&m, json_incref(list));
    json_decref(list);
    free(m.times);
    code = ranks_agree(code);
    ranks_end();
    return code;
}
