/* Memory of a stack's activations: see stack.h. */
#include "model/arch/stack.h"

#include "core/ints.h"
#include "layer/rows.h"

/*
 * Rows that the feed-forward part of a run takes at once, so that its intermediate rows, which are
 * the widest by far, stay few and in a cache. Rows do not depend on each other: the bits are the
 * same.
 */
enum { FEED_ROWS = 512 };

static float *floats(qkvi_cutter *cutter, int64_t n) { return qkvi_cut(cutter, n, sizeof(float)); }

/* A new array, or the one that an earlier layer no longer needs. */
static float *again(bool reuse, float *earlier, qkvi_cutter *cutter, int64_t n) {
    return reuse ? earlier : floats(cutter, n);
}

/* What a part adds, before its norm: its result, where it has none. */
static void cut_normed(bool train, bool share, bool normed, const qkvi_part_acts *before, int64_t n,
                       int64_t hidden, qkvi_cutter *cutter, qkvi_part_acts *part) {
    part->f = again(!train || !normed, part->s, cutter, n * hidden);
    part->f_stats = again(share, before->f_stats, cutter, normed ? 2 * n : 0);
}

/* A part's arrays are those of the layer before, if all may share. apart: s is no array of y. */
static void cut_part(bool train, bool apart, bool share, bool normed, const qkvi_part_acts *before,
                     int64_t n, int64_t hidden, qkvi_cutter *cutter, qkvi_part_acts *part) {
    part->stats = again(share, before->stats, cutter, 2 * n);
    part->y = again(share, before->y, cutter, n * hidden);
    part->s = apart ? again(share, before->s, cutter, n * hidden) : part->y;
    cut_normed(train, share, normed, before, n, hidden, cutter, part);
}

/*
 * The last part has the block's output, which the next layer reads and the one after it need not.
 */
static void cut_output(bool train, bool apart, bool kept, bool normed, int64_t l, int64_t n,
                       int64_t hidden, qkvi_cutter *cutter, qkvi_block_acts *a) {
    const qkvi_block_acts *one = l >= 1 ? a - 1 : a, *two = l >= 2 ? a - 2 : a;
    const bool share = l >= 1 && !train, reuse = l >= 2 && !kept;
    a->part2.stats = again(share, one->part2.stats, cutter, 2 * n);
    if (apart && !train)
        a->part2.y = again(share, one->part2.y, cutter, n * hidden);
    else
        a->part2.y = again(reuse, two->part2.y, cutter, n * hidden);
    a->part2.s = apart ? again(reuse, two->part2.s, cutter, n * hidden) : a->part2.y;
    cut_normed(train, l >= 1 && !train, normed, &one->part2, n, hidden, cutter, &a->part2);
}

/* The same of halves: a new array, or the earlier one. */
static uint16_t *again_half(bool reuse, uint16_t *earlier, qkvi_cutter *cutter, int64_t n) {
    return reuse ? earlier : qkvi_cut(cutter, n, sizeof(uint16_t));
}

/* Of an encoder that attends in bf16: then q, k and v as floats are shared by all layers. */
static void cut_half(bool share_capture, bool share, int64_t n, qkvi_cutter *cutter,
                     const qkvi_mha_acts *before, qkvi_mha_acts *a) {
    a->q = again(share, before->q, cutter, n);
    a->k = again(share, before->k, cutter, n);
    for (int i = 0; i < 3; i++)
        a->half[i] = again_half(i < 2 ? share_capture : share, before->half[i], cutter, n);
}

/* Of norms of queries and keys that gradients pass through. */
static void cut_raw(const qkvi_mha *mha, int64_t n, int64_t n_keys, qkvi_cutter *cutter,
                    qkvi_mha_acts *a) {
    const qkvi_layernorm *const norms[2] = { &mha->q_norm, &mha->k_norm };
    const int64_t elems[2] = { n * qkvi_mha_width(mha), n_keys * qkvi_mha_kv_width(mha) };
    for (int i = 0; i < 2 && norms[i]->gamma; i++) {
        a->raw[i] = floats(cutter, elems[i]);
        a->stats[i] = floats(cutter, 2 * (elems[i] / norms[i]->n));
    }
}

static void cut_mha(const qkvi_stack_pass *pass, int64_t l, int64_t n_keys, qkvi_cutter *cutter,
                    const qkvi_mha_acts *before, qkvi_mha_acts *a) {
    const bool train = pass->keep & QKVI_KEEP_ALL;
    const bool capture = train || (pass->keep & QKVI_KEEP_CAPTURE);
    const bool share = l >= 1 && !train, share_capture = l >= 1 && !capture;
    const qkvi_mha *const mha = &pass->stack->blocks[l].mha;
    const int64_t n = pass->rows.n_rows, width = qkvi_mha_width(mha);
    const int64_t kv_width = qkvi_mha_kv_width(mha);
    for (int i = 0; i < 3; i++) a->half[i] = NULL;
    for (int i = 0; i < 2; i++) a->raw[i] = a->stats[i] = NULL;
    if (!pass->stack->causal && qkvi_mha_in_half(mha)) {
        cut_half(share_capture, share, n * width, cutter, before, a);
    } else {
        a->q = again(share_capture, before->q, cutter, n * width);
        a->k = again(share_capture, before->k, cutter, n_keys * kv_width);
    }
    a->lse = again(share_capture, before->lse, cutter, n * pass->stack->n_heads);
    a->v = again(share, before->v, cutter, n_keys * kv_width);
    a->o = again(share && !(pass->keep & QKVI_KEEP_OUTPUTS), before->o, cutter, n * width);
    if (train) cut_raw(mha, n, n_keys, cutter, a);
}

static void cut_block(int64_t l, qkvi_cutter *cutter, qkvi_stack_pass *pass) {
    const qkvi_stack *const s = pass->stack;
    const bool train = pass->keep & QKVI_KEEP_ALL, share = l >= 1 && !train;
    const bool kept = train || (pass->keep & QKVI_KEEP_HIDDEN);
    const int64_t n_rows = pass->rows.n_rows;
    const int64_t n = pass->picks && l == s->n_layers - 1 ? pass->pick.n : n_rows;
    /* what reads the block's input is there for all rows */
    const int64_t n_part1 = s->blocks[l].pre_norm && n < n_rows ? n_rows : n;
    const qkvi_block *const block = &s->blocks[l];
    const bool normed1 = block->out1.gamma, normed2 = block->out2.gamma;
    const bool apart = train || block->from_norm;
    qkvi_block_acts *a = &pass->acts[l];
    const qkvi_block_acts *one = l >= 1 ? a - 1 : a;
    cut_mha(pass, l, n_rows, cutter, &one->mha, &a->mha);
    cut_part(train, apart, share, normed1, &one->part1, n_part1, s->hidden, cutter, &a->part1);
    if (pass->keys) {
        cut_mha(pass, l, pass->keys->n_rows, cutter, &one->cross, &a->cross);
        cut_part(train, apart, share, false, &one->part_cross, n, s->hidden, cutter,
                 &a->part_cross);
    }
    a->n_feed = share ? one->n_feed : train ? n : qkvi_min_i64(n, FEED_ROWS);
    const int64_t n_wide = a->n_feed * s->intermediate;
    a->g = again(share, one->g, cutter, n_wide);
    cut_output(train, apart, kept, normed2, l, n, s->hidden, cutter, a);
    if (block->gate.n_out > 0) {
        a->gate = again(!train, a->g, cutter, n_wide);
        a->u = again(share, one->u, cutter, n_wide);
    } else {
        a->u = again(!train, a->g, cutter, n_wide);
    }
    a->output = block->adds ? a->part2.s : a->part2.y;
}

static void cut_embed(qkvi_cutter *cutter, qkvi_stack_pass *pass) {
    const qkvi_stack *const s = pass->stack;
    const bool train = pass->keep & QKVI_KEEP_ALL, normed = s->embed_norm.gamma;
    const int64_t n = pass->rows.n_rows;
    pass->embedded = floats(cutter, n * s->embedding_size);
    pass->embed_s = again(!train || !normed, pass->embedded, cutter, n * s->embedding_size);
    pass->h0 = again(!qkvi_stack_projects(s), pass->embedded, cutter, n * s->hidden);
    pass->embed_stats = floats(cutter, 2 * n);
    if (qkvi_stack_sees(s)) {
        const qkvi_patch_rows images = qkvi_stack_images(pass);
        qkvi_patches_cut(&s->patches, &images, train, cutter, &pass->patches);
    }
    for (int r = 0; r < 2; r++)
        pass->turns[r] = s->ropes[r].w ? floats(cutter, n * s->ropes[r].dim) : NULL;
}

/* Rows that the last block goes on with. */
static void cut_pick(qkvi_cutter *cutter, qkvi_stack_pass *pass) {
    const qkvi_stack *const s = pass->stack;
    const int64_t n = pass->pick.n, width = qkvi_mha_width(&s->blocks[s->n_layers - 1].mha);
    float **const picked[] = { &pass->pick.o, &pass->pick.x, &pass->pick.d };
    const int n_arrays = pass->keep & QKVI_KEEP_ALL ? 3 : 2;
    for (int i = 0; i < n_arrays; i++)
        *picked[i] = floats(cutter, n * qkvi_max_i64(width, s->hidden));
    pass->pick.rows = qkvi_cut(cutter, n, sizeof *pass->pick.rows);
}

/* What gradients pass through. */
static void cut_training(qkvi_cutter *cutter, qkvi_stack_pass *pass) {
    const qkvi_stack *const s = pass->stack;
    const int64_t n = pass->rows.n_rows, size = s->embedding_size, n_picked = pass->pick.n;
    const int64_t n_keys = pass->keys ? pass->keys->n_rows : 0;
    const int64_t widest = size > s->hidden ? size : s->hidden;
    pass->d = floats(cutter, n * s->hidden);
    pass->d_memory = floats(cutter, n_keys * s->hidden);
    qkvi_block_scratch_cut(&s->blocks[0], n > n_picked ? n : n_picked, n_keys, cutter,
                           &pass->scratch);
    pass->embed_sums = floats(cutter, 2 * qkvi_colsum_elems(n > n_picked ? n : n_picked, widest));
    const int64_t scattered = qkvi_embed_scratch_elems(&s->embed, n);
    pass->embed_scratch =
        qkvi_cut(cutter, qkvi_max_i64(scattered, qkvi_stack_positions(s) + n), sizeof(int32_t));
    if (!qkvi_stack_projects(s)) return;
    pass->d_embed = floats(cutter, n * size);
    pass->embed_packed = floats(cutter, qkvi_rows_packed_elems(n, size));
}

void qkvi_stack_pass_cut(qkvi_cutter *cutter, qkvi_stack_pass *pass) {
    const qkvi_stack *const s = pass->stack;
    const int64_t n = qkvi_stack_last_rows(pass);
    cut_embed(cutter, pass);
    for (int64_t l = 0; l < s->n_layers; l++) cut_block(l, cutter, pass);
    pass->y = pass->acts[s->n_layers - 1].output;
    if (s->last_norm.gamma) {
        pass->y = floats(cutter, n * s->hidden);
        pass->y_stats = floats(cutter, 2 * n);
    }
    cut_pick(cutter, pass);
    if (pass->keep & QKVI_KEEP_ALL) cut_training(cutter, pass);
}

const float *qkvi_stack_hidden(const qkvi_stack_pass *pass, int64_t layer) {
    const int64_t n = pass->n_layers;
    const bool train = pass->keep & QKVI_KEEP_ALL;
    const bool kept = layer == n ? !pass->picks : train || (pass->keep & QKVI_KEEP_HIDDEN);
    if (layer < 0 || layer > n || !kept) return NULL;
    if (layer == n) return pass->y;
    return layer ? pass->acts[layer - 1].output : pass->h0;
}

const qkvi_mha_acts *qkvi_stack_captured(const qkvi_stack_pass *pass, int64_t layer, bool cross) {
    const bool kept = pass->keep & (QKVI_KEEP_CAPTURE | QKVI_KEEP_ALL);
    if (!kept || layer < 0 || layer >= pass->n_layers || (cross && !pass->keys)) return NULL;
    return cross ? &pass->acts[layer].cross : &pass->acts[layer].mha;
}

float *qkvi_stack_input(const qkvi_stack_pass *pass, int64_t layer) {
    return layer ? pass->acts[layer - 1].output : pass->h0;
}

const float *qkvi_stack_outputs(const qkvi_stack_pass *pass, int64_t layer, bool cross) {
    const bool kept = pass->keep & (QKVI_KEEP_OUTPUTS | QKVI_KEEP_ALL);
    if (!kept || layer < 0 || layer >= pass->n_layers || (cross && !pass->keys)) return NULL;
    return cross ? pass->acts[layer].cross.o : pass->acts[layer].mha.o;
}
