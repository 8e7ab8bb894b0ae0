/* See forward_rows.h. */
#include "dist/forward_rows.h"

static void add_range(qkvi_forward_rows *rows, const qkvi_problem *whole, int64_t begin,
                      int64_t end, int64_t first) {
    if (begin >= end) return;
    rows->range[rows->n_ranges] = qkvi_problem_rows(whole, begin, end);
    rows->range[rows->n_ranges++].first_q = first;
}

/*
 * With a block mask they are two ranges: 32 rows from a multiple of 32 on share a list of blocks,
 * and the kernel counts from the first row of a range.
 */
void qkvi_forward_rows_add(qkvi_forward_rows *rows, const qkvi_problem *whole, int64_t begin,
                           int64_t end, int64_t first) {
    int64_t head = 0;
    if (whole->block_len) head = qkvi_min_i64(qkvi_round_up(first, 32) - first, end - begin);
    add_range(rows, whole, begin, begin + head, first);
    add_range(rows, whole, begin + head, end, first + head);
}

typedef struct all_of {
    qkvi_forward_rows *rows;
    qkvi_lay_out *lay_out; /* of what else there is */
    void *user;
} all_of;

static void lay_out_all(void *user, qkvi_cutter *cutter) {
    const all_of *const all = user;
    qkvi_forward_rows *const rows = all->rows;
    for (int n = 0; n < rows->n_ranges; n++)
        qkvi_forward_sums_lay_out(&rows->range[n], cutter, &rows->sums[n]);
    all->lay_out(all->user, cutter);
    rows->workspace = qkvi_cut(cutter, (int64_t)rows->workspace_bytes, 1);
}

qkv_status qkvi_forward_rows_reserve(qkvi_forward_rows *rows, int64_t n_keys, qkvi_lay_out *lay_out,
                                     void *user) {
    all_of all = { rows, lay_out, user };
    for (int n = 0; n < rows->n_ranges; n++) {
        size_t bytes;
        QKV_TRY(qkvi_forward_part_workspace(rows->ctx, &rows->range[n], n_keys, &bytes));
        if (bytes > rows->workspace_bytes) rows->workspace_bytes = bytes;
    }
    return qkvi_call_reserve(rows->ctx, lay_out_all, &all);
}

void qkvi_forward_rows_begin(const qkvi_forward_rows *rows) {
    for (int n = 0; n < rows->n_ranges; n++) qkvi_forward_sums_begin(&rows->sums[n]);
}

static void count_pairs(const qkvi_problem *p, const qkvi_forward_part *part, int64_t *pairs) {
    for (int64_t b = 0; b < p->n_batch; b++) {
        const qkvi_rules rules = qkvi_rules_of(p, b);
        for (int64_t i = 0; i < rules.n_queries; i++) {
            const qkvi_range keys = qkvi_part_keys(part, qkvi_keys_of(&rules, i));
            *pairs += keys.end - keys.begin;
        }
    }
}

qkv_status qkvi_forward_rows_attend(qkvi_forward_rows *rows, const qkvi_problem *keys,
                                    qkvi_range range, bool last) {
    qkv_call_options call = qkv_call_options_init();
    call.workspace = rows->workspace;
    call.workspace_bytes = rows->workspace_bytes;
    call.progress = rows->poll;
    call.progress_user = rows->poll_user;
    for (int n = 0; n < rows->n_ranges; n++) {
        const qkvi_forward_part part = {
            .begin = range.begin, .end = range.end, .last = last, .sums = rows->sums[n]
        };
        qkvi_problem_take_keys(&rows->range[n], keys);
        if (rows->pairs) count_pairs(&rows->range[n], &part, rows->pairs);
        QKV_TRY(qkvi_forward_run_part(rows->ctx, &rows->range[n], &part, &call));
    }
    return QKV_OK;
}
