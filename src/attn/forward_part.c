/* See forward_part.h. */
#include "attn/forward_part.h"

#include <math.h>
#include <string.h>

#include "attn/plan.h"
#include "attn/stats.h"

void qkvi_forward_sums_lay_out(const qkvi_problem *p, qkvi_cutter *cutter,
                               qkvi_forward_sums *sums) {
    const bool works = qkvi_forward_works(p, p->lse);
    sums->n_rows = works ? p->n_batch * p->n_heads * p->len_q : 0;
    sums->o_row = qkvi_o_sum_row(p);
    sums->m = qkvi_cut(cutter, sums->n_rows, sizeof *sums->m);
    sums->l = qkvi_cut(cutter, sums->n_rows, sizeof *sums->l);
    sums->l_rounded = qkvi_cut(cutter, sums->n_rows, sizeof *sums->l_rounded);
    sums->o = qkvi_cut(cutter, sums->n_rows, (size_t)sums->o_row * sizeof *sums->o);
    sums->stats_bytes = qkvi_stats_sums_bytes(p);
    sums->stats = p->has_stats ? qkvi_cut(cutter, sums->n_rows, sums->stats_bytes) : NULL;
}

void qkvi_forward_sums_begin(const qkvi_forward_sums *sums) {
    const size_t n = (size_t)sums->n_rows;
    if (n == 0) return;
    for (size_t row = 0; row < n; row++) sums->m[row] = -INFINITY;
    memset(sums->l, 0, n * sizeof *sums->l);
    memset(sums->l_rounded, 0, n * sizeof *sums->l_rounded);
    memset(sums->o, 0, n * (size_t)sums->o_row * sizeof *sums->o);
}

void qkvi_forward_parts_begin(const qkvi_problem *p) {
    if (p->has_stats) qkvi_stats_begin(p);
}
