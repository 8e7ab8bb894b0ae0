/*
 * Decoding with kept keys and values: see decoder.h. The stack is run as ever (stack.c), but its
 * blocks ask decoder_attend.c for attention.
 *
 * Slots live in one of two banks of the caches: a reordering forks from one to the other.
 */
#include "core/fpstate.h"
#include "core/ints.h"
#include "model/arch/decoder_impl.h"
#include "model/arch/net_pass.h"

static qkv_status no_memory(qkv_error *error) {
    return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory to decode");
}

/* ---- Tokens ---------------------------------------------------------------------------------- */

static void cut(qkvi_decoder *d, int64_t n, qkvi_cutter *cutter) {
    const qkvi_sequences none = { 0 };
    qkvi_rows_cut(&none, n, false, cutter, &d->pass.rows);
    qkvi_stack_pass_cut(cutter, &d->pass);
    d->narrow = qkvi_cut(cutter, n * d->net->project_out.n_out, sizeof *d->narrow);
}

/* Room for the activations of n rows. */
static qkv_status begin(qkvi_decoder *d, int64_t n, qkv_error *error) {
    qkvi_cutter cutter = { 0 };
    d->pass = (qkvi_stack_pass){ .stack = d->stack,
                                 .n_layers = d->stack->n_layers,
                                 .kept = { qkvi_decoder_attend, d },
                                 .keys = d->n_source > 0 ? &d->source_rows : NULL,
                                 .acts = d->acts };
    cut(d, n, &cutter);
    if (cutter.overflow || !qkvi_arena_reserve(&d->arena, &d->allocator, cutter.used_bytes))
        return no_memory(error);
    cutter = qkvi_cutter_on(d->arena.block);
    cut(d, n, &cutter);
    return QKV_OK;
}

/* Row i is a token at a place of its sequence, which has `reach` tokens after the call. */
static qkv_status put(qkvi_decoder *d, int64_t i, int32_t id, int64_t place, int64_t reach,
                      qkv_error *error) {
    if (id < 0 || id >= d->stack->vocab_size)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "the token %d is none of 0 to %lld", id,
                              (long long)d->stack->vocab_size - 1);
    if (place >= d->max_len)
        return qkvi_error_set(error, QKV_ERR_SHAPE, "a sequence of more than %lld tokens",
                              (long long)d->max_len);
    d->pass.rows.ids[i] = id;
    d->pass.rows.types[i] = 0;
    d->pass.rows.places[i] = (int32_t)(d->stack->first_position + place);
    d->pass.rows.reaches[i] = (int32_t)reach;
    return QKV_OK;
}

/* The rows that there are, and logits of those from `first` on. */
static qkv_status compute(qkv_ctx *ctx, qkvi_decoder *d, int64_t first, float *logits,
                          qkv_error *error) {
    const int64_t n = d->pass.rows.n_rows;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    const qkv_status status = qkvi_stack_forward(ctx, d->stack, &d->pass);
    if (status == QKV_OK)
        qkvi_lm_logits(ctx, d->net, n - first, d->pass.y + first * d->stack->hidden, d->narrow,
                       logits);
    qkvi_fpstate_leave(saved);
    return qkvi_pass_failed(ctx, status, error);
}

qkv_status qkvi_decoder_prompt(qkv_ctx *ctx, qkvi_decoder *d, int64_t slot, int64_t n,
                               const int32_t *ids, float *logits, qkv_error *error) {
    const int64_t before = qkvi_decoder_len(d, slot);
    if (before < 0 || n < 1)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%lld tokens for slot %lld", (long long)n,
                              (long long)slot);
    QKV_TRY(begin(d, n, error));
    for (int64_t i = 0; i < n; i++) QKV_TRY(put(d, i, ids[i], before + i, before + n, error));
    d->prompted = slot;
    return compute(ctx, d, n - 1, logits, error);
}

qkv_status qkvi_decoder_step(qkv_ctx *ctx, qkvi_decoder *d, int64_t n, const int32_t *ids,
                             float *logits, qkv_error *error) {
    if (n < 1 || n > d->n_slots)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "a step of %lld slots of %lld", (long long)n,
                              (long long)d->n_slots);
    QKV_TRY(begin(d, n, error));
    for (int64_t i = 0; i < n; i++) {
        const int64_t place = qkvi_decoder_len(d, i);
        QKV_TRY(put(d, i, ids[i], place, place + 1, error));
    }
    d->prompted = -1;
    return compute(ctx, d, 0, logits, error);
}

/* ---- Slots ----------------------------------------------------------------------------------- */

static qkv_status reorder_cache(qkv_ctx *ctx, qkv_kv_cache *cache, int64_t bank, int64_t other,
                                int64_t n_slots, int64_t n, const int32_t *from) {
    for (int64_t i = 0; i < n; i++)
        QKV_TRY(qkv_kv_cache_fork(ctx, cache, bank + from[i], other + i));
    for (int64_t i = 0; i < n_slots; i++) QKV_TRY(qkv_kv_cache_truncate(ctx, cache, bank + i, 0));
    return QKV_OK;
}

qkv_status qkvi_decoder_reorder(qkv_ctx *ctx, qkvi_decoder *d, int64_t n, const int32_t *from,
                                qkv_error *error) {
    const int64_t other = d->bank ? 0 : d->n_slots;
    if (n < 1 || n > d->n_slots)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%lld slots of %lld", (long long)n,
                              (long long)d->n_slots);
    for (int64_t i = 0; i < n; i++)
        if (from[i] < 0 || from[i] >= d->n_slots)
            return qkvi_error_set(error, QKV_ERR_ARGUMENT, "from[%lld] = %d is no slot",
                                  (long long)i, from[i]);
    for (int64_t l = 0; l < d->stack->n_layers; l++)
        QKV_TRY(qkvi_pass_failed(
            ctx, reorder_cache(ctx, d->caches[l], d->bank, other, d->n_slots, n, from), error));
    d->bank = other;
    return QKV_OK;
}

int64_t qkvi_decoder_len(const qkvi_decoder *d, int64_t slot) {
    return slot < 0 || slot >= d->n_slots ? -1 : qkv_kv_cache_len(d->caches[0], d->bank + slot);
}

/* ---- Making ---------------------------------------------------------------------------------- */

static qkv_status make_caches(qkv_ctx *ctx, qkvi_decoder *d, qkv_error *error) {
    qkv_kv_cache_options options = qkv_kv_cache_options_init();
    options.n_sequences = 2 * d->n_slots;
    options.n_kv_heads = d->stack->n_kv_heads;
    options.head_dim = options.head_dim_v = d->stack->head_dim;
    for (int64_t l = 0; l < d->stack->n_layers; l++) {
        const int64_t ring = qkvi_decoder_ring(d, &d->stack->blocks[l].mha);
        options.page_len = ring > 0 ? QKVI_RING_PAGE : QKVI_DECODER_PAGE;
        options.ring_len = ring;
        options.max_len = ring > 0 ? 0 : d->max_len;
        /* one more for each slot: a page that slots share is copied before it is given back */
        options.n_pages =
            d->n_slots * (qkvi_ceil_div(ring > 0 ? ring : d->max_len, options.page_len) + 1);
        const qkv_status status = qkv_kv_cache_create(ctx, &options, &d->caches[l]);
        QKV_TRY(qkvi_pass_failed(ctx, status, error));
    }
    return QKV_OK;
}

/* Keys and values of the source, of all layers. */
static qkv_status make_cross(qkv_ctx *ctx, qkvi_decoder *d, const float *source, qkv_error *error) {
    const int64_t n = d->n_source;
    const int64_t elems = n * qkvi_mha_kv_width(&d->stack->blocks[0].cross);
    int64_t all;
    if (n == 0) return QKV_OK;
    if (!qkvi_mul_i64(2 * d->stack->n_layers, elems, &all)) return no_memory(error);
    d->cross = qkvi_aligned_array((size_t)all, sizeof(float));
    if (!d->cross) return no_memory(error);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    for (int64_t l = 0; l < d->stack->n_layers; l++) {
        const qkvi_mha *const mha = &d->stack->blocks[l].cross;
        qkvi_linear_forward(ctx, &mha->key, n, source, d->cross + 2 * l * elems);
        qkvi_linear_forward(ctx, &mha->value, n, source, d->cross + (2 * l + 1) * elems);
    }
    qkvi_fpstate_leave(saved);
    return QKV_OK;
}

static qkv_status check(const qkvi_net *net, int64_t n_slots, int64_t max_len, int64_t n_source,
                        const float *source, qkv_error *error) {
    const qkvi_stack *const stack = qkvi_net_last(net);
    if (!net->has_lm || !stack->causal)
        return qkvi_error_set(error, QKV_ERR_UNSUPPORTED, "no LM head");
    if (n_slots < 1 || n_slots > INT32_MAX)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "%lld sequences at once",
                              (long long)n_slots);
    if (max_len < 1 || max_len > stack->max_len)
        return qkvi_error_set(error, QKV_ERR_SHAPE,
                              "max_len = %lld is not between 1 and %lld, the model's",
                              (long long)max_len, (long long)stack->max_len);
    if ((qkvi_stack_crosses(stack) ? n_source < 1 : n_source != 0) || (n_source > 0) != !!source)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "a source of %lld tokens",
                              (long long)n_source);
    return QKV_OK;
}

static qkv_status make(qkv_ctx *ctx, qkvi_decoder *d, const float *source, qkv_error *error) {
    const size_t n_layers = (size_t)d->stack->n_layers;
    d->allocator = qkvi_allocator_resolve((qkv_allocator){ 0 });
    d->caches = qkvi_calloc_array(n_layers, sizeof *d->caches);
    d->acts = qkvi_calloc_array(n_layers, sizeof *d->acts);
    d->last = qkvi_calloc_array((size_t)d->n_slots, sizeof *d->last);
    if (!d->caches || !d->acts || !d->last) return no_memory(error);
    QKV_TRY(make_caches(ctx, d, error));
    return make_cross(ctx, d, source, error);
}

qkv_status qkvi_decoder_make(qkv_ctx *ctx, const qkvi_net *net, int64_t n_slots, int64_t max_len,
                             int64_t n_source, const float *source, qkvi_decoder **decoder,
                             qkv_error *error) {
    *decoder = NULL;
    QKV_TRY(check(net, n_slots, max_len, n_source, source, error));
    qkvi_decoder *d = qkvi_calloc_array(1, sizeof *d);
    if (!d) return no_memory(error);
    d->net = net;
    d->stack = qkvi_net_last(net);
    d->n_slots = n_slots;
    d->max_len = max_len;
    d->n_source = n_source;
    const qkv_status status = make(ctx, d, source, error);
    if (status == QKV_OK)
        *decoder = d;
    else
        qkvi_decoder_free(d);
    return status;
}

void qkvi_decoder_free(qkvi_decoder *d) {
    if (!d) return;
    for (int64_t l = 0; d->caches && l < d->stack->n_layers; l++) qkv_kv_cache_free(d->caches[l]);
    qkvi_arena_release(&d->arena, &d->allocator);
    free(d->caches);
    qkvi_aligned_free(d->cross);
    free(d->acts);
    free(d->last);
    free(d);
}
