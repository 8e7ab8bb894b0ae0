/* A pass through a net: its memory, and its stacks one after the other. See net_pass.h. */
#include "model/arch/net_pass.h"

#include "core/fpstate.h"
#include "layer/rows.h"

static float *floats(qkvi_cutter *cutter, int64_t n) { return qkvi_cut(cutter, n, sizeof(float)); }

/* What goes into each stack. */
static qkvi_sequences sequences_of(const qkvi_net_batch *batch, int stack) {
    if (stack == 0)
        return (qkvi_sequences){ .n = batch->n_sequences,
                                 .lengths = batch->lengths,
                                 .ids = batch->ids,
                                 .types = batch->types,
                                 .images = batch->images,
                                 .seen = batch->change.seen };
    return (qkvi_sequences){ .n = batch->n_sequences,
                             .lengths = batch->decoder_lengths,
                             .ids = batch->decoder_ids };
}

/* ---- Check ----------------------------------------------------------------------------------- */

static qkv_status check_targets(const qkvi_net *net, const qkvi_net_batch *batch, int64_t n_rows,
                                qkv_error *error) {
    const int64_t n_words = net->has_lm ? net->lm.n_out : net->stacks[0].vocab_size;
    int64_t last = -1;
    for (int64_t i = 0; i < batch->n_targets; i++) {
        const int64_t token = batch->target_tokens[i];
        if (token <= last || token >= n_rows)
            return qkvi_error_set(
                error, QKV_ERR_ARGUMENT, "target_tokens[%lld] = %lld is not between %lld and %lld",
                (long long)i, (long long)token, (long long)last + 1, (long long)n_rows - 1);
        if (batch->target_ids[i] < 0 || batch->target_ids[i] >= n_words)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "target_ids[%lld] = %d is not between 0 and %lld", (long long)i,
                                  batch->target_ids[i], (long long)n_words - 1);
        last = token;
    }
    if (batch->n_targets > 0 && !net->has_mlm && !net->has_lm)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no MLM head");
    return QKV_OK;
}

static qkv_status check_labels(const qkvi_net *net, const qkvi_net_batch *batch, qkv_error *error) {
    if (!batch->labels) return QKV_OK;
    const bool sees = qkvi_stack_sees(&net->stacks[0]);
    const int64_t most = sees ? net->n_labels - 1 : 1;
    if (sees ? net->n_labels == 0 : !net->has_nsp)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, sees ? "no classifier" : "no NSP head");
    for (int64_t b = 0; b < batch->n_sequences; b++)
        if (batch->labels[b] < -1 || batch->labels[b] > most)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT,
                                  "labels[%lld] = %d is not between -1 and %lld", (long long)b,
                                  batch->labels[b], (long long)most);
    return QKV_OK;
}

/* Gradients of positions are those of the images that a model learns from. */
static qkv_status check_learned(const qkvi_net *net, const qkvi_net_batch *batch,
                                qkv_error *error) {
    const qkvi_patches *const p = &net->stacks[0].patches;
    const bool sees = qkvi_stack_sees(&net->stacks[0]) && batch->images;
    for (int64_t b = 0; sees && b < batch->n_sequences; b++) {
        const qkvi_grid grid = qkvi_patches_grid(p, &batch->images[b]);
        if (grid.rows != p->learned.rows || grid.columns != p->learned.columns)
            return qkvi_error_set(error, QKV_ERR_SHAPE,
                                  "image %lld has %lld by %lld patches; the model learns from %lld "
                                  "by %lld",
                                  (long long)b, (long long)grid.rows, (long long)grid.columns,
                                  (long long)p->learned.rows, (long long)p->learned.columns);
    }
    return QKV_OK;
}

static qkv_status check(const qkvi_net *net, const qkvi_net_batch *batch, int n_stacks,
                        int64_t n_rows[2], qkv_error *error) {
    for (int s = 0; s < n_stacks; s++) {
        const qkvi_sequences sequences = sequences_of(batch, s);
        QKV_TRY(qkvi_sequences_check(&net->stacks[s], &sequences, &n_rows[s], error));
    }
    QKV_TRY(check_targets(net, batch, n_rows[n_stacks - 1], error));
    return check_labels(net, batch, error);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void cut_mlm(const qkvi_net *net, qkvi_cutter *cutter, qkvi_net_pass *pass) {
    const qkvi_stack *const stack = &net->stacks[0];
    const int64_t n = pass->n_targets, h = stack->hidden, size = stack->embedding_size;
    const int64_t vocabulary = qkvi_colsum_elems(n, stack->vocab_size);
    const int64_t norm = 2 * qkvi_colsum_elems(n, size);
    qkvi_mlm_acts *m = &pass->mlm;
    float **const rows[] = { &m->u, &m->g, &m->y, &m->d };
    for (int i = 0; i < 4; i++) *rows[i] = floats(cutter, n * size);
    m->packed = floats(cutter, qkvi_rows_packed_elems(n, h > size ? h : size));
    m->stats = floats(cutter, 2 * n);
    m->logits = floats(cutter, n * stack->vocab_size);
    m->sums = floats(cutter, vocabulary > norm ? vocabulary : norm);
}

static void cut_lm(const qkvi_net *net, qkvi_cutter *cutter, qkvi_net_pass *pass) {
    const int64_t n = pass->n_targets, h = qkvi_net_last(net)->hidden,
                  size = net->project_out.n_out;
    const int64_t sums = qkvi_colsum_elems(n, net->lm.n_out);
    pass->lm.x = floats(cutter, n * h);
    pass->lm.rows = qkvi_cut(cutter, n, sizeof *pass->lm.rows);
    pass->lm.logits = floats(cutter, n * net->lm.n_out);
    pass->lm.capped = floats(cutter, net->logit_cap > 0 ? n * net->lm.n_out : 0);
    pass->lm.narrow = floats(cutter, n * size);
    pass->lm.packed = floats(cutter, qkvi_rows_packed_elems(n, h > size ? h : size));
    pass->lm.sums = floats(cutter, qkvi_max_i64(sums, qkvi_colsum_elems(n, size)));
}

static void cut_heads(const qkvi_net *net, qkvi_cutter *cutter, qkvi_net_pass *pass) {
    const int64_t n = pass->n_targets, n_labels = pass->n_labels, h = net->stacks[0].hidden;
    if (qkvi_stack_sees(&net->stacks[0])) {
        qkvi_images_cut(net, cutter, pass);
        return;
    }
    if (net->has_lm)
        cut_lm(net, cutter, pass);
    else
        cut_mlm(net, cutter, pass);
    pass->nsp.pooled = floats(cutter, n_labels * h);
    pass->nsp.d = floats(cutter, n_labels * h);
    pass->nsp.logits = floats(cutter, n_labels * 2);
    pass->row_loss = floats(cutter, 2 * (n > n_labels ? n : n_labels));
}

/* The longest sequence of a batch: what the sort needs room for. */
static int64_t longest(const qkvi_net_batch *batch, int n_stacks) {
    int64_t most = 0;
    for (int s = 0; s < n_stacks; s++) {
        const int64_t *const lengths = s ? batch->decoder_lengths : batch->lengths;
        for (int64_t b = 0; b < batch->n_sequences; b++)
            if (lengths[b] > most) most = lengths[b];
    }
    return most;
}

static void cut_all(const qkvi_net *net, const qkvi_net_batch *batch, const int64_t n_rows[2],
                    bool train, qkvi_cutter *cutter, qkvi_net_pass *pass) {
    qkvi_order_cut(batch->n_sequences, longest(batch, pass->n_stacks), cutter, &pass->order);
    for (int s = 0; s < pass->n_stacks; s++) {
        const qkvi_sequences sequences = sequences_of(batch, s);
        qkvi_rows_cut(&sequences, n_rows[s], s > 0, cutter, &pass->stacks[s].rows);
        qkvi_stack_pass_cut(cutter, &pass->stacks[s]);
    }
    if (train) cut_heads(net, cutter, pass);
}

/* The heads of an encoder read, and give gradients to, the rows that the last block picks. */
static void join_heads(qkvi_net_pass *pass) {
    const qkvi_stack_pass *const stack = &pass->stacks[0];
    const int64_t at = pass->n_targets * stack->stack->hidden;
    pass->mlm.x = stack->y;
    pass->mlm.d_x = stack->pick.d;
    pass->nsp.x = stack->y + at;
    pass->nsp.d_x = stack->pick.d + at;
}

static qkv_status reserve_acts(const qkvi_net *net, qkvi_net_pass *pass, qkv_error *error) {
    int64_t n_layers = 0;
    for (int s = 0; s < net->n_stacks; s++) n_layers += net->stacks[s].n_layers;
    if (n_layers <= pass->acts_capacity) return QKV_OK;
    qkvi_block_acts *acts = qkvi_calloc_array((size_t)n_layers, sizeof *acts);
    if (!acts) return qkvi_no_memory(error, "layers");
    free(pass->acts);
    pass->acts = acts;
    pass->acts_capacity = n_layers;
    return QKV_OK;
}

static void begin_stacks(const qkvi_net *net, const qkvi_net_batch *batch, unsigned keep,
                         const int64_t n_rows[2], qkvi_net_pass *pass) {
    qkvi_block_acts *acts = pass->acts;
    const int64_t chosen = batch->start ? batch->n_sequences * batch->start->n_picks : 0;
    uint32_t site = 0;
    for (int s = 0; s < pass->n_stacks; s++) {
        const qkvi_stack *const stack = &net->stacks[s];
        qkvi_stack_pass *const p = &pass->stacks[s];
        *p = (qkvi_stack_pass){
            .stack = stack, .n_layers = stack->n_layers, .keep = keep, .acts = acts
        };
        p->rows.n_rows = n_rows[s];
        p->change = batch->change;
        p->dropout = (qkvi_row_dropout){ batch->dropout, batch->dropout_seed, site };
        p->keys = s > 0 ? &pass->stacks[s - 1].rows : NULL;
        p->picks = chosen || ((keep & QKVI_KEEP_ALL) && !net->has_lm && !qkvi_stack_sees(stack));
        if (p->picks) p->pick.n = chosen ? chosen : pass->n_targets + pass->n_labels;
        acts += stack->n_layers;
        site += 1 + (uint32_t)stack->n_layers * QKVI_BLOCK_SITES;
    }
}

static void fill_rows(const qkvi_net *net, const qkvi_net_batch *batch, qkvi_net_pass *pass) {
    const bool pairs = pass->n_stacks == 2;
    qkvi_order_make(batch->n_sequences, batch->lengths, pairs ? batch->decoder_lengths : NULL,
                    longest(batch, pass->n_stacks), &pass->order);
    for (int s = 0; s < pass->n_stacks; s++) {
        const qkvi_sequences sequences = sequences_of(batch, s);
        qkvi_stack_pass *const p = &pass->stacks[s];
        qkvi_rows_fill(&net->stacks[s], &sequences, &pass->order, p->keys, &p->rows);
        if (p->keys) p->memory = pass->stacks[s - 1].y;
    }
}

/* Checks the batch, makes room, sorts. */
static qkv_status pass_begin(const qkvi_net *net, const qkvi_net_batch *batch, unsigned keep,
                             qkvi_net_pass *pass, qkv_error *error) {
    const bool train = keep & QKVI_KEEP_ALL;
    int64_t n_rows[2] = { 0 };
    pass->n_stacks = batch->decoder_lengths ? net->n_stacks : 1;
    QKV_TRY(check(net, batch, pass->n_stacks, n_rows, error));
    QKV_TRY(reserve_acts(net, pass, error));
    pass->n_targets = batch->n_targets;
    pass->n_labels = batch->labels ? batch->n_sequences : 0;
    begin_stacks(net, batch, keep, n_rows, pass);
    qkvi_cutter cutter = { 0 };
    cut_all(net, batch, n_rows, train, &cutter, pass);
    size_t bytes = cutter.used_bytes;
    if (bytes > pass->arena.block_bytes)
        bytes += bytes / 16; /* batches of training vary a little */
    if (cutter.overflow || !qkvi_arena_reserve(&pass->arena, &pass->allocator, bytes))
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for activations of %lld tokens",
                              (long long)(n_rows[0] + n_rows[1]));
    cutter = qkvi_cutter_on(pass->arena.block);
    cut_all(net, batch, n_rows, train, &cutter, pass);
    fill_rows(net, batch, pass);
    if (train && pass->stacks[0].picks) join_heads(pass);
    return QKV_OK;
}

qkv_status qkvi_net_pass_create(qkvi_net_pass **pass, qkv_error *error) {
    *pass = qkvi_calloc_array(1, sizeof **pass);
    if (!*pass) return qkvi_no_memory(error, "a pass");
    (*pass)->allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    return QKV_OK;
}

void qkvi_net_pass_free(qkvi_net_pass *pass) {
    if (!pass) return;
    qkvi_arena_release(&pass->arena, &pass->allocator);
    free(pass->acts);
    free(pass);
}

const qkvi_stack_pass *qkvi_net_stack(const qkvi_net_pass *pass, int stack) {
    return &pass->stacks[stack];
}

/* ---- Running --------------------------------------------------------------------------------- */

static qkv_status pass_forward(qkv_ctx *ctx, const qkvi_net *net, int first, qkvi_net_pass *pass) {
    for (int s = first; s < pass->n_stacks; s++)
        QKV_TRY(qkvi_stack_forward(ctx, &net->stacks[s], &pass->stacks[s]));
    return QKV_OK;
}

static qkv_status pass_backward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net *grads,
                                qkvi_net_pass *pass) {
    for (int s = pass->n_stacks - 1; s >= 0; s--) {
        qkvi_stack_pass *const p = &pass->stacks[s];
        if (p->keys) { /* the gradient of the memory begins that of the stack before */
            p->d_memory = pass->stacks[s - 1].d;
            memset(p->d_memory, 0, (size_t)(p->keys->n_rows * p->stack->hidden) * sizeof(float));
        }
        QKV_TRY(qkvi_stack_backward(ctx, &net->stacks[s], &grads->stacks[s], p));
    }
    return QKV_OK;
}

qkv_status qkvi_net_forward(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                            uint32_t flags, qkvi_net_pass *pass, qkv_error *error) {
    qkvi_net_batch inputs = *batch; /* no targets, no labels, no dropout */
    inputs.n_targets = 0;
    inputs.labels = NULL;
    inputs.dropout = 0;
    flags &= QKV_RUN_CAPTURE | QKV_RUN_HIDDEN | QKV_RUN_OUTPUTS;
    QKV_TRY(pass_begin(net, &inputs, flags, pass, error));
    if (batch->start) qkvi_pass_begin_within(batch->start, pass);
    const int first = batch->start ? batch->start->stack : 0;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = pass_forward(ctx, net, first, pass);
    qkvi_fpstate_leave(saved);
    return qkvi_pass_failed(ctx, status, error);
}

static qkv_status loss_and_grads(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                                 qkvi_net_pass *pass, const qkvi_net *grads,
                                 qkvi_net_losses *losses) {
    QKV_TRY(pass_forward(ctx, net, 0, pass));
    *losses = (qkvi_net_losses){ 0 };
    const bool sees = qkvi_stack_sees(&net->stacks[0]);
    if (sees)
        qkvi_images_forward(ctx, net, batch, pass, losses);
    else if (net->has_lm)
        qkvi_lm_forward(ctx, net, batch, pass, losses);
    else
        qkvi_heads_forward(ctx, net, batch, pass, losses);
    if (!grads) return QKV_OK;
    if (sees)
        qkvi_images_backward(ctx, net, grads, pass);
    else if (net->has_lm)
        qkvi_lm_backward(ctx, net, grads, pass);
    else
        qkvi_heads_backward(ctx, net, grads, pass);
    return pass_backward(ctx, net, grads, pass);
}

/* The rows that the heads of an encoder read, those of targets, then first tokens. */
static void pick_rows(const qkvi_net_batch *batch, qkvi_net_pass *pass) {
    qkvi_stack_pass *const p = &pass->stacks[0];
    int32_t *rows = p->pick.rows;
    for (int64_t i = 0; p->picks && i < batch->n_targets; i++)
        *rows++ = p->rows.row_of_token[batch->target_tokens[i]];
    for (int64_t b = 0; p->picks && b < pass->n_labels; b++)
        *rows++ = (int32_t)p->rows.first_row[b];
}

qkv_status qkvi_net_loss(qkv_ctx *ctx, const qkvi_net *net, const qkvi_net_batch *batch,
                         qkvi_net_pass *pass, const qkvi_net *grads, qkvi_net_losses *losses,
                         qkv_error *error) {
    QKV_TRY(check_learned(net, batch, error));
    QKV_TRY(pass_begin(net, batch, QKVI_KEEP_ALL, pass, error));
    pick_rows(batch, pass);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = loss_and_grads(ctx, net, batch, pass, grads, losses);
    qkvi_fpstate_leave(saved);
    return qkvi_pass_failed(ctx, status, error);
}

/* ---- A pass that begins within a stack: copies of what one sequence has there --------------- */

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
    for (int64_t i = 0; i < p->pick.n; i++)
        p->pick.rows[i] =
            (int32_t)(p->rows.first_row[i / start->n_picks] + start->picks[i % start->n_picks]);
}
