/* Batches of a stack: their checks, the order of sequences, and their rows: see stack.h. */
#include "model/arch/stack.h"

/* ---- Check ----------------------------------------------------------------------------------- */

qkv_status qkvi_sequences_check_lengths(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                        int64_t *n_rows, qkv_error *error) {
    int64_t total = 0;
    if (sequences->n < 1 || sequences->n > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "a batch of %lld inputs is not between 1 and 2^31 - 1",
                              (long long)sequences->n);
    for (int64_t b = 0; b < sequences->n; b++) {
        if (sequences->lengths[b] < 1 || sequences->lengths[b] > stack->max_len)
            return qkvi_error_set(
                error, QKV_ERR_SHAPE, "input %lld has %lld tokens; the model takes 1 to %lld",
                (long long)b, (long long)sequences->lengths[b], (long long)stack->max_len);
        total += sequences->lengths[b];
    }
    if (total > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "the batch has %lld tokens, more than 2^31 - 1",
                              (long long)total);
    *n_rows = total;
    return QKV_OK;
}

/* Images, each with as many tokens as it has rows. */
static qkv_status check_images(const qkvi_stack *stack, const qkvi_sequences *sequences,
                               qkv_error *error) {
    const qkvi_patches *const patches = &stack->patches;
    for (int64_t b = 0; b < sequences->n; b++) {
        const qkvi_pixels *const image = &sequences->images[b];
        const qkvi_grid grid = qkvi_patches_grid(patches, image);
        const int64_t n = qkvi_patches_prefix(patches) + grid.rows * grid.columns;
        if (grid.rows < 1 || grid.columns < 1 || n != sequences->lengths[b])
            return qkvi_error_set(error, QKV_ERR_SHAPE,
                                  "input %lld has %lld tokens, but an image of %lld by %lld pixels "
                                  "(height by width) has %lld",
                                  (long long)b, (long long)sequences->lengths[b],
                                  (long long)image->height, (long long)image->width, (long long)n);
    }
    return QKV_OK;
}

qkv_status qkvi_sequences_check(const qkvi_stack *stack, const qkvi_sequences *sequences,
                                int64_t *n_rows, qkv_error *error) {
    QKV_TRY(qkvi_sequences_check_lengths(stack, sequences, n_rows, error));
    if (qkvi_stack_sees(stack) != (sequences->images != NULL))
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "the model reads %s",
                              sequences->images ? "texts, not images" : "images, not texts");
    if (sequences->images) return check_images(stack, sequences, error);
    for (int64_t t = 0; t < *n_rows; t++) {
        if (sequences->ids[t] < 0 || sequences->ids[t] >= stack->vocab_size)
            return qkvi_error_set(
                error, QKV_ERR_ARGUMENT, "token %lld has the id %d; the model has ids 0 to %lld",
                (long long)t, sequences->ids[t], (long long)stack->vocab_size - 1);
        if (stack->n_types > 0 && sequences->types && sequences->types[t] >= stack->n_types)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "token %lld has the type %d; the model has types 0 to %lld",
                                  (long long)t, sequences->types[t], (long long)stack->n_types - 1);
    }
    return QKV_OK;
}

/* ---- Order ----------------------------------------------------------------------------------- */

void qkvi_order_cut(int64_t n, int64_t max_len, qkvi_cutter *cutter, qkvi_order *order) {
    order->sequences = qkvi_cut(cutter, n, sizeof *order->sequences);
    order->other = qkvi_cut(cutter, n, sizeof *order->other);
    order->starts = qkvi_cut(cutter, max_len + 2, sizeof *order->starts);
}

/* Counting sort, which is stable: to = from, by length. */
static void sort_by(int64_t n, const int64_t *lengths, int64_t max_len, int64_t *starts,
                    const int64_t *from, int64_t *to) {
    memset(starts, 0, (size_t)(max_len + 2) * sizeof *starts);
    for (int64_t b = 0; b < n; b++) starts[lengths[b] + 1]++;
    for (int64_t len = 1; len <= max_len + 1; len++) starts[len] += starts[len - 1];
    for (int64_t i = 0; i < n; i++) to[starts[lengths[from[i]]]++] = from[i];
}

void qkvi_order_make(int64_t n, const int64_t *lengths, const int64_t *then, int64_t max_len,
                     qkvi_order *order) {
    int64_t *const from = order->other, *const to = order->sequences;
    for (int64_t b = 0; b < n; b++) from[b] = b;
    if (then) {
        sort_by(n, then, max_len, order->starts, from, to);
        memcpy(from, to, (size_t)n * sizeof *from);
    }
    sort_by(n, lengths, max_len, order->starts, from, to);
}

/* ---- Rows ------------------------------------------------------------------------------------ */

void qkvi_rows_cut(const qkvi_sequences *sequences, int64_t n_rows, bool crosses,
                   qkvi_cutter *cutter, qkvi_batch_rows *rows) {
    const int64_t n = sequences->n;
    *rows = (qkvi_batch_rows){ .n_sequences = n,
                               .n_rows = n_rows,
                               .lengths = sequences->lengths,
                               .images = sequences->images };
    rows->groups = qkvi_cut(cutter, n, sizeof *rows->groups);
    if (crosses) rows->cross_groups = qkvi_cut(cutter, n, sizeof *rows->cross_groups);
    rows->ids = qkvi_cut(cutter, n_rows, sizeof *rows->ids);
    rows->types = qkvi_cut(cutter, n_rows, sizeof *rows->types);
    rows->places = qkvi_cut(cutter, n_rows, sizeof *rows->places);
    rows->reaches = qkvi_cut(cutter, n_rows, sizeof *rows->reaches);
    if (sequences->seen) rows->seen = qkvi_cut(cutter, n_rows, sizeof *rows->seen);
    rows->row_of_token = qkvi_cut(cutter, n_rows, sizeof *rows->row_of_token);
    rows->first_row = qkvi_cut(cutter, n, sizeof *rows->first_row);
}

/* The next sequence joins the last group if it is alike, or begins one. */
static void join_group(int64_t *n_groups, qkvi_sequence_group *groups, qkvi_sequence_group next) {
    qkvi_sequence_group *const last = *n_groups ? &groups[*n_groups - 1] : NULL;
    if (last && last->len == next.len && last->len_keys == next.len_keys)
        last->n_sequences++;
    else
        groups[(*n_groups)++] = next;
}

static void make_groups(const qkvi_order *order, const qkvi_batch_rows *memory,
                        qkvi_batch_rows *rows) {
    int64_t row = 0;
    for (int64_t i = 0; i < rows->n_sequences; i++) {
        const int64_t b = order->sequences[i], len = rows->lengths[b];
        rows->first_row[b] = row;
        join_group(&rows->n_groups, rows->groups, (qkvi_sequence_group){ row, 1, len, row, len });
        if (memory)
            join_group(
                &rows->n_cross_groups, rows->cross_groups,
                (qkvi_sequence_group){ row, 1, len, memory->first_row[b], memory->lengths[b] });
        row += len;
    }
}

int32_t qkvi_stack_place(const qkvi_stack *stack, const int32_t *ids, int64_t i) {
    const int64_t padding = stack->first_position - 1;
    int64_t place = i;
    if (stack->skips_padding && ids[i] == padding) return (int32_t)padding;
    for (int64_t j = 0; stack->skips_padding && j < i; j++) place -= ids[j] == padding;
    return (int32_t)(stack->first_position + place);
}

void qkvi_rows_fill(const qkvi_stack *stack, const qkvi_sequences *sequences,
                    const qkvi_order *order, const qkvi_batch_rows *memory, qkvi_batch_rows *rows) {
    int64_t token = 0;
    make_groups(order, memory, rows);
    for (int64_t b = 0; b < sequences->n; b++) {
        const int64_t len = sequences->lengths[b], first = rows->first_row[b];
        const bool words = !sequences->images; /* images have no words, types and places */
        for (int64_t i = 0; i < len; i++, token++) {
            rows->ids[first + i] = words ? sequences->ids[token] : 0;
            rows->types[first + i] = words ? qkvi_stack_type(stack, sequences->types, token) : 0;
            rows->places[first + i] =
                words ? qkvi_stack_place(stack, sequences->ids + token - i, i) : 0;
            rows->reaches[first + i] = (int32_t)len;
            if (rows->seen) rows->seen[first + i] = sequences->seen[token];
            rows->row_of_token[token] = (int32_t)(first + i);
        }
    }
}
