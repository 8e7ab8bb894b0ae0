/* Memory of a pass: see bert_pass.h. */
#include "model/arch/bert_pass.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/status.h"
#include "kernels/gemm.h"
#include "model/layer/rows.h"

static float *floats(qkvi_cutter *cutter, int64_t n) { return qkvi_cut(cutter, n, sizeof(float)); }

/* A new array, or the one that an earlier layer no longer needs. */
static float *again(bool reuse, float *earlier, qkvi_cutter *cutter, int64_t n) {
    return reuse ? earlier : floats(cutter, n);
}

static void cut_block(const qkvi_bert_params *p, int64_t l, qkvi_cutter *cutter,
                      qkvi_bert_pass *pass) {
    const bool train = pass->keep & QKVI_KEEP_ALL;
    const bool capture = train || (pass->keep & QKVI_KEEP_CAPTURE);
    const bool hidden = train || (pass->keep & QKVI_KEEP_HIDDEN);
    const int64_t n = pass->rows.n_rows, h = n * p->hidden;
    const int64_t n_rest = train && l == p->n_layers - 1 ? pass->pick.n : n;
    const int64_t rest = n_rest * p->hidden, wide = n_rest * p->intermediate;
    qkvi_block_acts *a = &pass->acts[l];
    const qkvi_block_acts *one = l >= 1 ? a - 1 : a, *two = l >= 2 ? a - 2 : a;
    const bool share = l >= 1 && !train, share_capture = l >= 1 && !capture;

    a->mha.q = again(share_capture, one->mha.q, cutter, h);
    a->mha.k = again(share_capture, one->mha.k, cutter, h);
    a->mha.lse = again(share_capture, one->mha.lse, cutter, n * p->n_heads);
    a->mha.v = again(share, one->mha.v, cutter, h);
    a->mha.o = again(share, one->mha.o, cutter, h);
    a->stats1 = again(share, one->stats1, cutter, 2 * n_rest);
    a->stats2 = again(share, one->stats2, cutter, 2 * n_rest);
    a->y1 = again(share, one->y1, cutter, rest);
    a->g = again(share, one->g, cutter, wide);
    a->y2 = again(l >= 2 && !hidden, two->y2, cutter, rest);
    a->s1 = again(!train, a->y1, cutter, rest);
    a->u = again(!train, a->g, cutter, wide);
    a->s2 = again(!train, a->y2, cutter, rest);
}

static void cut_heads(const qkvi_bert_params *p, int64_t n_targets, qkvi_cutter *cutter,
                      qkvi_bert_pass *pass) {
    const int64_t n = n_targets, n_labels = pass->n_labels, h = p->hidden;
    const int64_t size = p->embedding_size;
    const int64_t vocabulary = qkvi_colsum_elems(n, p->vocab_size);
    const int64_t norm = 2 * qkvi_colsum_elems(n, size);
    qkvi_mlm_acts *m = &pass->mlm;
    float **const rows[] = { &m->u, &m->g, &m->y, &m->d };
    for (int i = 0; i < 4; i++) *rows[i] = floats(cutter, n * size);
    m->packed = floats(cutter, (int64_t)qkvi_gemm_packed_elems(n, h > size ? h : size));
    m->stats = floats(cutter, 2 * n);
    m->logits = floats(cutter, n * p->vocab_size);
    m->sums = floats(cutter, vocabulary > norm ? vocabulary : norm);

    pass->nsp.pooled = floats(cutter, n_labels * h);
    pass->nsp.d = floats(cutter, n_labels * h);
    pass->nsp.logits = floats(cutter, n_labels * 2);
    pass->row_loss = floats(cutter, 2 * (n > n_labels ? n : n_labels));
}

/* What the gradient of the embeddings passes through. */
static void cut_embed(const qkvi_bert_params *p, qkvi_cutter *cutter, qkvi_bert_pass *pass) {
    const int64_t n = pass->rows.n_rows, size = p->embedding_size;
    const int64_t norm = 2 * qkvi_colsum_elems(n, size), sums = qkvi_colsum_elems(n, p->hidden);
    pass->embed_sums = floats(cutter, norm > sums ? norm : sums);
    pass->embed_scratch = qkvi_cut(cutter, qkvi_embed_scratch_elems(&p->embed, n), sizeof(int32_t));
    if (!qkvi_bert_projects(p)) return;
    pass->d_embed = floats(cutter, n * size);
    pass->embed_packed = floats(cutter, (int64_t)qkvi_gemm_packed_elems(n, size));
}

static void cut_training(const qkvi_bert_params *p, const qkvi_bert_batch *batch,
                         qkvi_cutter *cutter, qkvi_bert_pass *pass) {
    const int64_t n_rows = pass->rows.n_rows, n_picked = pass->pick.n;
    float **const picked[] = { &pass->pick.o, &pass->pick.x, &pass->pick.d };
    for (int i = 0; i < 3; i++) *picked[i] = floats(cutter, n_picked * p->hidden);
    pass->pick.rows = qkvi_cut(cutter, n_picked, sizeof *pass->pick.rows);
    cut_heads(p, batch->n_targets, cutter, pass);
    pass->d = floats(cutter, n_rows * p->hidden);
    qkvi_block_scratch_cut(&p->blocks[0], n_rows > n_picked ? n_rows : n_picked, cutter,
                           &pass->scratch);
    cut_embed(p, cutter, pass);
}

static void cut_all(const qkvi_bert_params *p, const qkvi_bert_batch *batch, int64_t n_rows,
                    qkvi_cutter *cutter, qkvi_bert_pass *pass) {
    const bool train = pass->keep & QKVI_KEEP_ALL;
    qkvi_batch_cut(p, batch, n_rows, cutter, &pass->rows);
    pass->embedded = floats(cutter, n_rows * p->embedding_size);
    pass->embed_s = again(!train, pass->embedded, cutter, n_rows * p->embedding_size);
    pass->h0 = again(!qkvi_bert_projects(p), pass->embedded, cutter, n_rows * p->hidden);
    pass->embed_stats = floats(cutter, 2 * n_rows);
    for (int64_t l = 0; l < p->n_layers; l++) cut_block(p, l, cutter, pass);
    if (train) cut_training(p, batch, cutter, pass);
}

/* The heads read from, and give gradients to, the rows that the last block picks. */
static void join_heads(const qkvi_bert_params *p, int64_t n_targets, qkvi_bert_pass *pass) {
    const float *last = pass->acts[p->n_layers - 1].y2;
    pass->mlm.x = last;
    pass->mlm.d_x = pass->pick.d;
    pass->nsp.x = last + n_targets * p->hidden;
    pass->nsp.d_x = pass->pick.d + n_targets * p->hidden;
}

static qkv_status reserve_acts(qkvi_bert_pass *pass, int64_t n_layers, qkv_error *error) {
    if (n_layers <= pass->acts_capacity) return QKV_OK;
    qkvi_block_acts *acts = qkvi_calloc_array((size_t)n_layers, sizeof *acts);
    if (!acts) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for layers");
    free(pass->acts);
    pass->acts = acts;
    pass->acts_capacity = n_layers;
    return QKV_OK;
}

qkv_status qkvi_pass_begin(const qkvi_bert_params *params, const qkvi_bert_batch *batch,
                           unsigned keep, qkvi_bert_pass *pass, qkv_error *error) {
    int64_t n_rows;
    QKV_TRY(qkvi_batch_check(params, batch, &n_rows, error));
    QKV_TRY(reserve_acts(pass, params->n_layers, error));
    pass->keep = keep;
    pass->n_layers = params->n_layers;
    pass->hidden = params->hidden;
    pass->n_labels = batch->labels ? batch->n_sequences : 0;
    pass->pick.n = batch->n_targets + pass->n_labels;
    qkvi_cutter cutter = { 0 };
    cut_all(params, batch, n_rows, &cutter, pass);
    size_t bytes = cutter.used_bytes;
    if (bytes > pass->arena.block_bytes)
        bytes += bytes / 16; /* batches of training vary a little */
    if (cutter.overflow || !qkvi_arena_reserve(&pass->arena, &pass->allocator, bytes))
        return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for activations of %lld tokens",
                              (long long)n_rows);
    cutter = qkvi_cutter_on(pass->arena.block);
    cut_all(params, batch, n_rows, &cutter, pass);
    qkvi_batch_sort(params, batch, &pass->rows);
    pass->change = batch->change;
    pass->change.seen = pass->rows.seen;
    if (keep & QKVI_KEEP_ALL) join_heads(params, batch->n_targets, pass);
    return QKV_OK;
}

qkvi_groups qkvi_pass_groups(const qkvi_bert_pass *pass) {
    return (qkvi_groups){ pass->rows.n_rows, pass->rows.n_groups, pass->rows.groups, pass->change };
}

const qkvi_mha_change *qkvi_bert_change(const qkvi_bert_pass *pass) { return &pass->change; }

qkv_status qkvi_bert_pass_create(qkvi_bert_pass **pass, qkv_error *error) {
    *pass = qkvi_calloc_array(1, sizeof **pass);
    if (!*pass) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a pass");
    (*pass)->allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    return QKV_OK;
}

void qkvi_bert_pass_free(qkvi_bert_pass *pass) {
    if (!pass) return;
    qkvi_arena_release(&pass->arena, &pass->allocator);
    free(pass->acts);
    free(pass);
}

int64_t qkvi_bert_row(const qkvi_bert_pass *pass, int64_t sequence) {
    return pass->rows.first_row[sequence];
}

const float *qkvi_bert_hidden(const qkvi_bert_pass *pass, int64_t layer) {
    const bool train = pass->keep & QKVI_KEEP_ALL; /* has all layers but the last */
    const bool kept = layer == pass->n_layers ? !train : train || (pass->keep & QKVI_KEEP_HIDDEN);
    if (layer < 0 || layer > pass->n_layers || !kept) return NULL;
    return layer ? pass->acts[layer - 1].y2 : pass->h0;
}

static const qkvi_mha_acts *captured(const qkvi_bert_pass *pass, int64_t layer) {
    const bool kept = pass->keep & (QKVI_KEEP_CAPTURE | QKVI_KEEP_ALL);
    return kept && layer >= 0 && layer < pass->n_layers ? &pass->acts[layer].mha : NULL;
}

const float *qkvi_bert_query(const qkvi_bert_pass *pass, int64_t layer) {
    return captured(pass, layer) ? captured(pass, layer)->q : NULL;
}
const float *qkvi_bert_key(const qkvi_bert_pass *pass, int64_t layer) {
    return captured(pass, layer) ? captured(pass, layer)->k : NULL;
}
const float *qkvi_bert_lse(const qkvi_bert_pass *pass, int64_t layer) {
    return captured(pass, layer) ? captured(pass, layer)->lse : NULL;
}
