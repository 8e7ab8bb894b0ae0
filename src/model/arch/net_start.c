/* A pass that begins within a stack: copies of what one sequence has there. See net.h. */
#include "model/arch/net_pass.h"

/* to [n][elems]: n copies. Sequences of equal length stand in the order of the batch. */
static void repeat(int64_t n, int64_t elems, const float *from, float *to) {
    for (int64_t b = 0; b < n; b++) memcpy(to + b * elems, from, (size_t)elems * sizeof *to);
}

void qkvi_pass_begin_within(const qkvi_net_start *start, qkvi_net_pass *pass) {
    qkvi_stack_pass *const p = &pass->stacks[start->stack];
    const int64_t n = p->rows.n_sequences, hidden = p->stack->hidden;
    p->first = start->layer;
    p->outputs = start->outputs;
    if (start->layer > 0)
        repeat(n, p->rows.n_rows / n * hidden, start->input, qkvi_stack_input(p, start->layer));
    if (start->stack > 0) repeat(n, p->keys->n_rows / n * hidden, start->memory, pass->stacks[0].y);
}
