/*
 * The tables of docs/scale.md about many ranks must be those of the library's model of costs:
 * qkvi_explain_costs on 8, 64 and 512 ranks, which are threads that only agree. Backward and memory
 * follow the formulas of the same page. `dist_costs --print` prints the tables.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "dist/costs.h"

enum {
    MOST = 512,
    HEADS = 32,
    KV_HEADS = 8,
    DIM = 128,
    BYTES = 2, /* of an element: bf16 */
    TABLE_BYTES = 4096
};
static const double flops_of_core = 1e11, cores = 32, links[] = { 25e9 / 8, 100e9 / 8 };

/* ---- Ranks that only agree ------------------------------------------------------------------- */

typedef struct paper {
    pthread_barrier_t barrier;
    char *shared; /* [rank][bytes of an exchange] */
    int64_t n;    /* tokens */
    double bytes_per_second;
    qkvi_costs costs; /* as rank 0 sees them */
    qkv_status status;
} paper;

typedef struct member {
    qkvi_transport base;
    paper *of;
    pthread_t thread;
} member;

static qkv_status allgather(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                            qkv_error *error) {
    paper *const p = ((member *)t)->of;
    (void)error;
    if (bytes > sizeof(qkvi_record)) abort();
    memcpy(p->shared + (size_t)t->rank * bytes, mine, bytes);
    pthread_barrier_wait(&p->barrier);
    memcpy(all, p->shared, (size_t)t->size * bytes);
    pthread_barrier_wait(&p->barrier);
    return QKV_OK;
}

static void *rank_main(void *argument) {
    member *const m = argument;
    paper *const p = m->of;
    const qkvi_rates rates = { cores * flops_of_core, p->bytes_per_second, 1e-5 };
    const int64_t n = p->n / m->base.size;
    qkv_ctx_options options = qkv_ctx_options_init();
    qkvi_group *const group = qkvi_group_new(&m->base);
    qkv_ctx *ctx = NULL;
    qkv_attention_desc d;
    qkvi_costs costs;
    options.n_threads = 1;
    if (!group || qkv_ctx_create(&options, &ctx, NULL) != QKV_OK) abort();
    qkv_attention_desc_contiguous(&d, 1, HEADS, KV_HEADS, n, n, DIM, DIM);
    d.dtype = d.o_dtype = QKV_BF16;
    d.flags |= QKV_SET_CAUSAL;
    const qkv_status status = qkvi_explain_costs(group, ctx, NULL, &d, &rates, &costs);
    if (m->base.rank == 0) {
        p->status = status;
        p->costs = costs;
    }
    qkv_ctx_free(ctx);
    qkvi_group_free(group);
    return NULL;
}

static qkvi_costs costs_of(int64_t n, int size, double bytes_per_second) {
    static const qkvi_transport_ops ops = { .allgather = allgather };
    paper p = { .n = n, .bytes_per_second = bytes_per_second };
    member *const members = calloc((size_t)size, sizeof *members);
    p.shared = calloc((size_t)size, sizeof(qkvi_record));
    if (!members || !p.shared || pthread_barrier_init(&p.barrier, NULL, (unsigned)size)) abort();
    for (int rank = 0; rank < size; rank++) {
        members[rank] = (member){ .base = { &ops, rank, size }, .of = &p };
        if (pthread_create(&members[rank].thread, NULL, rank_main, &members[rank])) abort();
    }
    for (int rank = 0; rank < size; rank++) pthread_join(members[rank].thread, NULL);
    pthread_barrier_destroy(&p.barrier);
    free(p.shared);
    free(members);
    if (p.status != QKV_OK) abort();
    return p.costs;
}

/* ---- Formulas -------------------------------------------------------------------------------- */

static double greater(double x, double y) { return x > y ? x : y; }

/* Of q, k, v, o and lse of a rank. */
static double array_bytes(double n) {
    return n * (HEADS * (2.0 * DIM * BYTES + 4) + KV_HEADS * 2.0 * DIM * BYTES);
}
/* What a call needs besides: two chunks, and a row's maximum, sum and output. */
static double forward_bytes(double n) { return 2 * 8388608.0 + n * HEADS * (DIM + 19) * 4.0; }
/* Gradients, and what backward needs, which is more than what forward needs. */
static double training_bytes(double n) {
    const double gradients = array_bytes(n),
                 sums = n * 4.0 * (HEADS * (DIM + 1) + KV_HEADS * 2.0 * DIM);
    return gradients + greater(4 * 8388608.0 + sums, forward_bytes(n));
}
/* Of all ranks, in the two passes of backward. */
static double backward_sent(double n) {
    return n * (KV_HEADS * 2.0 * DIM * BYTES + HEADS * (2.0 * DIM * BYTES + 8));
}

/* ---- The tables ------------------------------------------------------------------------------ */

/* Two digits that count, as a person writes them. */
static void add_number(char *row, double x) {
    char text[32], *const end = row + strlen(row);
    snprintf(text, sizeof text, "%.2g", x);
    const double rounded = strtod(text, NULL);
    const int digits = rounded >= 10 ? 0 : rounded >= 1 ? 1 : rounded >= 0.1 ? 2 : 3;
    snprintf(text, sizeof text, "%.*f", digits, rounded);
    const size_t n = strlen(text);
    if (n > 3 && digits == 0) /* thousands */
        sprintf(end, " %.*s,%s |", (int)n - 3, text, text + n - 3);
    else
        sprintf(end, " %s |", text);
}

/* A rank's numbers of one layer; cost: with the faster and the slower link. */
static void add_row(char *table, int64_t n, int size, const qkvi_costs costs[2]) {
    const qkvi_cost *const o = costs[0].of;
    const double own = (double)n / size, rate = costs[0].rates.bytes_per_second;
    const double backward = 3.5 * o[QKVI_SCHEME_ORDERED].compute_seconds;
    char *const row = table + strlen(table);
    sprintf(row, "| %lld M | %d |", (long long)(n >> 20), size);
    add_number(row, o[QKVI_SCHEME_ORDERED].seconds);
    add_number(row, o[QKVI_SCHEME_ZIGZAG].seconds);
    if (o[QKVI_SCHEME_ULYSSES].possible)
        add_number(row, o[QKVI_SCHEME_ULYSSES].seconds);
    else
        strcat(row, " |");
    for (int link = 0; link < 2; link++)
        add_number(row, costs[link].of[QKVI_SCHEME_ORDERED].send_seconds);
    add_number(row, (double)o[QKVI_SCHEME_ORDERED].bytes_sent / 1e9);
    add_number(row, (double)o[QKVI_SCHEME_ZIGZAG].bytes_sent / 1e9);
    add_number(row, (array_bytes(own) + forward_bytes(own)) / 1e9);
    add_number(row,
               o[QKVI_SCHEME_ORDERED].seconds + greater(backward, backward_sent((double)n) / rate));
    add_number(row, ((double)o[QKVI_SCHEME_ORDERED].bytes_sent + backward_sent(own)) / 1e9);
    add_number(row, (array_bytes(own) + training_bytes(own)) / 1e9);
    strcat(row, "\n");
}

static void make_table(char table[TABLE_BYTES]) {
    static const int sizes[] = { 8, 64, MOST };
    *table = 0;
    for (int64_t n = 1 << 20; n <= 10 << 20; n *= 10)
        for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
            const qkvi_costs costs[2] = { costs_of(n, sizes[s], links[0]),
                                          costs_of(n, sizes[s], links[1]) };
            add_row(table, n, sizes[s], costs);
        }
}

/*
 * A decoder of 70 billion parameters over 8 ranks, by tensor parallelism and by stages: a prompt of
 * n tokens, and one new token. Sums over ranks send each rank's n rows twice, but for 1/8.
 */
static void make_model_table(char table[TABLE_BYTES]) {
    enum { RANKS = 8, LAYERS = 80, HIDDEN = 8192, SUMS = 2 * LAYERS, ROUNDS = 2 * (RANKS - 1) };
    const double parameters = 70e9, memory = 300e9, message = 1e-5;
    *table = 0;
    for (int64_t n = 1; n <= 8192; n *= 8192) {
        const double row = (double)HIDDEN * BYTES * (double)n;
        const double tensor = SUMS * 2.0 * row * (RANKS - 1) / RANKS;
        const double read = parameters * BYTES / RANKS / memory;
        const double work = 2 * parameters * (double)n / RANKS / (cores * flops_of_core);
        const double computing = greater(read, work);
        char *const line = table + strlen(table);
        sprintf(line, "| %lld |", (long long)n);
        add_number(line, 1e3 * computing);
        add_number(line, tensor / 1e6);
        for (int link = 0; link < 2; link++)
            add_number(line, 1e3 * (tensor / links[link] + SUMS * ROUNDS * message));
        add_number(line, row / 1e6);
        for (int link = 0; link < 2; link++)
            add_number(line, 1e3 * (RANKS - 1) * (row / links[link] + message));
        strcat(line, "\n");
    }
}

/* ---- The page -------------------------------------------------------------------------------- */

static char *page_text(void) {
    FILE *const in = fopen(QKV_TEST_ROOT "/docs/scale.md", "rb");
    char *const text = calloc(1 << 20, 1);
    assert_non_null(in);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, in) > 0);
    fclose(in);
    return text;
}

static void has_table(void (*make)(char *)) {
    char table[TABLE_BYTES];
    char *const text = page_text();
    make(table);
    const bool found = strstr(text, table);
    free(text);
    if (!found) fail_msg("docs/scale.md has not these lines:\n%s", table);
}

static void of_attention(void **state) {
    (void)state;
    has_table(make_table);
}
static void of_models(void **state) {
    (void)state;
    has_table(make_model_table);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(of_attention),
                                        cmocka_unit_test(of_models) };
    if (argc > 1 && strcmp(argv[1], "--print") == 0) {
        char table[TABLE_BYTES];
        make_table(table);
        fputs(table, stdout);
        make_model_table(table);
        fputs(table, stdout);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
