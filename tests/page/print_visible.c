/*
 * print_visible [SEED]: random problems with rules of position, as JSON: the rules as in the
 * manifest of a page, and the keys that each query sees by the library. visible.js compares them
 * with the function of the page.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "check/chance.h"
#include "core/alloc.h"
#include "files/encode.h"
#include "page/parts.h"

enum { PROBLEMS = 4000, MOST = 24 };

static int64_t window_side(rng *r) {
    return rng_chance(r, 30) ? -1 : rng_chance(r, 5) ? INT64_MAX : rng_between(r, 0, MOST);
}

static void choose(rng *r, qkv_attention_desc *d, int64_t lists[3]) {
    const qkv_rule *rule;
    qkv_attention_desc_contiguous(d, 1, 1, 1, rng_between(r, 1, MOST), rng_between(r, 1, MOST), 1,
                                  1);
    for (int n = 0; (rule = qkv_attention_rule(n)); n++)
        if (rule->flag != QKV_SET_SEGMENTS && rng_chance(r, 35))
            d->flags |= rule->flag | rule->needs;
    d->window_left = window_side(r);
    d->window_right = window_side(r);
    d->chunk = rng_between(r, 1, MOST);
    d->q_offset = rng_chance(r, 5) ? (int64_t)1 << 48 : rng_between(r, -MOST, MOST);
    lists[0] = rng_between(r, 0, d->len_k);
    lists[1] = rng_between(r, 0, d->len_k);
    lists[2] = rng_between(r, 0, d->len_q);
    d->prefix_len = &lists[0];
    d->kv_len = &lists[1];
    d->q_len = &lists[2];
}

static int print(const qkv_attention_desc *d) {
    const qkv_page page = { .n = d->len_k, .rules = d };
    qkvi_bytes rules = { 0 };
    qkvi_page_add_rules(&rules, &page);
    printf("{%.*s\"n\":%" PRId64 ",\"keys\":[", (int)rules.n, rules.data, d->len_k);
    qkvi_bytes_free(&rules);
    for (int64_t i = 0; i < d->len_q; i++) {
        int64_t first, end;
        qkv_error error;
        if (qkv_attention_visible_keys(d, 0, i, 0, &first, &end, &error) != QKV_OK) {
            fprintf(stderr, "print_visible: %s\n", error.message);
            return 1;
        }
        printf("%s[%" PRId64 ",%" PRId64 "]", i ? "," : "", first, end);
    }
    puts("]}");
    return 0;
}

int main(int argc, char **argv) {
    rng r = { argc > 1 ? strtoull(argv[1], NULL, 0) : 20261123 };
    int failed = 0;
    for (int n = 0; n < PROBLEMS && !failed; n++) {
        qkv_attention_desc d;
        int64_t lists[3];
        choose(&r, &d, lists);
        failed = print(&d);
    }
    return failed;
}
