/* See attention_case.h. */
#include "fuzz/attention_case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"

enum { MOST_ELEMS = 1 << 15, MOST_EDITS = 12 };

/* ---- Bytes to a problem ---------------------------------------------------------------------- */

uint64_t attention_next_random(uint64_t *state) { /* splitmix64 */
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int64_t any_number(fuzz_reader *r) {
    const uint8_t kind = fuzz_byte(r), small = fuzz_byte(r);
    switch (kind % 5) {
    case 0: return small;
    case 1: return -(int64_t)small;
    case 2: return (int64_t)((UINT64_C(1) << small % 64) + (uint64_t)(int8_t)fuzz_byte(r));
    case 3: return INT64_MAX - small;
    default: return (int64_t)fuzz_u64(r);
    }
}

/* One field of the descriptor or the gradients becomes any number. */
static void edit(fuzz_reader *r, attention_case *c) {
    qkv_attention_desc *const d = &c->desc;
    const uint8_t place = fuzz_byte(r);
    const int64_t value = any_number(r);
    int64_t *const sizes[] = { &d->n_batch,  &d->n_heads,    &d->n_kv_heads,  &d->len_q,
                               &d->len_k,    &d->head_dim,   &d->head_dim_v,  &d->window_left,
                               &d->q_offset, &d->mask_len_k, &d->window_right };
    int64_t *const strides[] = { d->q_stride,         d->k_stride,         d->v_stride,
                                 d->o_stride,         d->lse_stride,       c->grads.d_o_stride,
                                 c->grads.d_q_stride, c->grads.d_k_stride, c->grads.d_v_stride };
    if (place < 0x60) {
        *sizes[place % 11] = value;
    } else if (place < 0xc0) {
        strides[place % 9][place / 9 % 3] = value;
    } else if (place < 0xe0) {
        (place & 4 ? d->mask_stride : c->grads.d_mask_stride)[place % 4] = value;
    } else if (place < 0xe8) {
        d->flags = (uint32_t)value;
    } else if (place < 0xf0) {
        *(place % 3 == 0   ? &d->chunk
          : place % 3 == 1 ? &d->seg_q_stride
                           : &d->seg_k_stride) = value;
    } else if (place < 0xf3) {
        *(place % 2 ? &d->o_dtype : &d->dtype) = (qkv_dtype)(int)value;
    } else if (place < 0xf4) {
        d->arithmetic = value == QKV_CLASS_AUTO ? QKV_CLASS_F32 : (qkv_class)(int)value;
    } else if (place < 0xf8) {
        d->mask_type = (qkv_mask_type)(int)value;
    } else {
        d->struct_size = sizeof *d + (size_t)(value % 4200);
    }
}

static float number_of(uint8_t byte) {
    static const float special[] = { 0.0f, -0.0f, 1e-45f, 1e-30f, 3e38f, INFINITY, NAN, 1e-8f };
    return byte < 8 ? special[byte] : (float)(byte - 100) / 16.0f;
}

/* A value per batch: in [low, high], or now and then not. */
int64_t attention_value(uint64_t *state, int64_t low, int64_t high) {
    const uint64_t random = attention_next_random(state);
    if (random % 64 == 0) return (int64_t)attention_next_random(state) >> random / 64 % 64;
    return high <= low ? low : low + (int64_t)(random / 64 % (uint64_t)(high - low + 1));
}

static void fill_lengths(attention_case *c) {
    qkv_attention_desc *const d = &c->desc;
    uint64_t state = c->seed;
    if (d->n_batch < 0 || d->n_batch > CASE_MOST_BATCHES) return;
    for (int64_t b = 0; b < d->n_batch; b++) {
        c->kv_len[b] = attention_value(&state, 0, d->len_k < 4096 ? d->len_k : 4096);
        c->q_len[b] = attention_value(&state, 0, d->len_q < 4096 ? d->len_q : 4096);
        c->q_offsets[b] = attention_value(&state, -50, 700);
    }
    for (int64_t b = 0; b < d->n_batch; b++)
        c->prefix_len[b] = attention_value(&state, 0, d->len_k < 4096 ? d->len_k : 4096);
    d->kv_len = c->kv_len;
    d->q_len = c->q_len;
    d->prefix_len = c->prefix_len;
    if (c->seed & 1) d->q_offsets = c->q_offsets;
}

/* A dense mask, but for the dimensions that repeat. */
static void shape_mask(attention_case *c, uint8_t repeats, uint8_t shorter) {
    qkv_attention_desc *const d = &c->desc;
    const int64_t size[4] = { d->n_batch, d->n_heads, d->len_q, d->len_k - shorter % 8 };
    const bool bits = d->mask_type == QKV_MASK_BITS;
    int64_t stride = 1;
    for (int i = 3; i >= 0; i--) {
        const bool one = repeats >> i & 1;
        d->mask_stride[i] = one ? 0 : stride;
        if (!one) stride *= i == 3 && bits ? (size[3] + 7) / 8 : size[i];
    }
    d->mask_len_k = repeats & 8 ? 1 : size[3];
    memcpy(c->grads.d_mask_stride, d->mask_stride, sizeof d->mask_stride);
}

void attention_case_read(const uint8_t *bytes, size_t n_bytes, attention_case *c) {
    fuzz_reader r = { bytes, n_bytes };
    memset(c, 0, sizeof *c);
    qkv_attention_desc *const d = &c->desc;
    const int64_t n_batch = fuzz_byte(&r) % 4, n_kv_heads = fuzz_byte(&r) % 4;
    const int64_t group = fuzz_byte(&r) % 4, len_q = fuzz_byte(&r) % 100;
    const int64_t len_k = fuzz_byte(&r) + 2 * (int64_t)fuzz_byte(&r);
    const int64_t head_dim = fuzz_byte(&r) % 72, head_dim_v = fuzz_byte(&r) % 72;
    qkv_attention_desc_contiguous(d, n_batch, n_kv_heads * group, n_kv_heads, len_q, len_k,
                                  head_dim, head_dim_v);
    qkv_attention_grads_contiguous(&c->grads, d);
    d->flags = fuzz_byte(&r);
    const uint8_t choices = fuzz_byte(&r);
    c->wants_lse = !(choices & 1);
    c->wants_d_lse = choices & 2;
    d->mask_type = choices & 4 ? QKV_MASK_F32 : choices & 8 ? QKV_MASK_BITS : QKV_MASK_BOOL;
    shape_mask(c, choices >> 4, fuzz_byte(&r));
    c->style = fuzz_byte(&r);
    c->shift = fuzz_byte(&r) % 16;
    d->q_offset = (int8_t)fuzz_byte(&r);
    d->window_left = (int8_t)fuzz_byte(&r);
    d->window_right = (int8_t)fuzz_byte(&r);
    d->scale = number_of(fuzz_byte(&r));
    d->softcap = number_of(fuzz_byte(&r));
    c->seed = fuzz_u64(&r);
    d->flags |= (uint32_t)(c->seed >> 56) % 32 * QKV_SET_PREFIX_LEN; /* and the flags after it */
    if ((c->seed >> 40 & 7) <= QKV_F16) d->dtype = (qkv_dtype)(c->seed >> 40 & 7);
    /* Never the one that the instruction set decides: all are to have the same bits. */
    const qkv_class pairs = c->seed >> 39 & 1 ? QKV_CLASS_AMX : QKV_CLASS_DP;
    d->arithmetic = d->dtype == QKV_BF16 && c->seed >> 44 & 1 ? pairs : QKV_CLASS_F32;
    if (c->seed >> 43 & 1) d->flags |= QKV_SET_O_DTYPE; /* QKV_F32 */
    c->wants_d_sinks = c->seed >> 61 & 1 && d->flags & QKV_SET_SINKS;
    c->wants_d_mask = c->seed >> 44 & 1;
    if ((c->seed >> 45 & 3) == 0) d->flags |= QKV_SET_DROPOUT;
    d->dropout = (float)(c->seed >> 32 & 255) / 255;
    d->dropout_seed = c->seed;
    d->chunk = (int64_t)(c->seed >> 48 & 255);
    d->seg_q_stride = c->seed >> 62 & 1 ? 0 : len_q;
    d->seg_k_stride = c->seed >> 63 ? 0 : len_k;
    for (int n = 0; n < MOST_EDITS && r.left; n++) edit(&r, c);
    fill_lengths(c);
    attention_rules_read(c);
    attention_view_read(c);
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

bool attention_array_plan(const int64_t size[4], const int64_t stride[3], int64_t last_stride,
                          size_t elem_bytes, attention_array *array) {
    *array = (attention_array){ .elem_bytes = elem_bytes };
    memcpy(array->size, size, sizeof array->size);
    memcpy(array->stride, stride, 3 * sizeof *stride);
    array->stride[3] = last_stride;
    if (!size[0] || !size[1] || !size[2] || !size[3]) return true;
    __int128 last = 0;
    for (int i = 0; i < 4; i++) {
        if (array->stride[i] < 0) return false;
        last += (__int128)(size[i] - 1) * array->stride[i];
    }
    if (last >= MOST_ELEMS) return false;
    array->n_elems = (size_t)last + 1;
    return true;
}

bool attention_array_plan_typed(const int64_t size[4], const int64_t stride[3], qkv_dtype type,
                                attention_array *array) {
    const bool fits = attention_array_plan(size, stride, 1, (size_t)qkvi_dtype_bytes(type), array);
    array->type = type;
    return fits;
}

void attention_array_alloc(attention_array *array, uint8_t shift) {
    const size_t before = shift * array->elem_bytes;
    array->block = fuzz_alloc(before + array->n_elems * array->elem_bytes);
    array->data = (char *)array->block + before;
}

void attention_array_free(attention_array *array) { free(array->block); }

static float value_of_style(uint8_t style, uint64_t random) {
    static const float rare[] = { 0.0f, -0.0f, 1e-42f, -3e38f, 1e20f, INFINITY, -INFINITY, NAN };
    const uint64_t pick = random >> 40;
    if ((style & 3) == 1 && pick % 16 == 0) return rare[pick / 16 % 5];
    if ((style & 3) == 2 && pick % 256 == 0) return rare[pick / 256 % 8];
    if ((style & 3) == 3 && pick % 4 == 0) return rare[5 + pick / 4 % 3];
    const float spread = style & 4 ? 40.0f : 1.0f;
    return ((float)(int64_t)(random % 65536) - 32768.0f) / 16384.0f * spread;
}

void attention_array_fill(attention_array *array, uint8_t style, uint64_t seed) {
    uint64_t state = seed;
    for (size_t i = 0; i < array->n_elems; i++) {
        const uint64_t random = attention_next_random(&state);
        if (array->elem_bytes == 1)
            ((uint8_t *)array->data)[i] =
                random >> 60 < (uint64_t)(style >> 4) ? 0 : (uint8_t)random;
        else if (array->elem_bytes == 2)
            ((uint16_t *)array->data)[i] = array->type == QKV_F16
                                               ? qkvi_f16_of_f32(value_of_style(style, random))
                                               : qkvi_bf16_of_f32(value_of_style(style, random));
        else
            ((float *)array->data)[i] = value_of_style(style, random);
    }
}

void attention_array_fill_segments(attention_array *array, uint64_t seed) {
    static const int32_t ids[] = { 0, 1, -1, INT32_MIN };
    int32_t id = 0;
    for (size_t i = 0; i < array->n_elems; i++) {
        const uint64_t random = attention_next_random(&seed);
        if (random % 8 == 0) id = ids[random / 8 % 4];
        ((int32_t *)array->data)[i] = id;
    }
}

void attention_array_clear(attention_array *array, uint8_t canary) {
    array->canary = canary;
    memset(array->data, canary, array->n_elems * array->elem_bytes);
}

static bool is_canary(const attention_array *array, size_t at) {
    const uint8_t *const bytes = (const uint8_t *)array->data + at * array->elem_bytes;
    for (size_t i = 0; i < array->elem_bytes; i++)
        if (bytes[i] != array->canary) return false;
    return true;
}

/* What a call may write: row i of sequence b lies at row starts[b] + i. */
static void mark_rows(const attention_array *array, int64_t b, int64_t first, int64_t n,
                      uint8_t *may) {
    const int64_t *const size = array->size, *const stride = array->stride;
    for (int64_t h = 0; h < size[1]; h++)
        for (int64_t i = first; i < first + n; i++)
            for (int64_t c = 0; c < size[3]; c++)
                may[b * stride[0] + h * stride[1] + i * stride[2] + c * stride[3]] = 1;
}

void attention_array_check(const attention_array *array, const int64_t *starts, int64_t n_batch,
                           const int64_t *rows) {
    uint8_t *const may = calloc(array->n_elems + 1, 1);
    FUZZ_CHECK(may);
    for (int64_t b = 0; array->n_elems && b < (starts ? n_batch : array->size[0]); b++) {
        const int64_t all = starts ? starts[b + 1] - starts[b] : array->size[2];
        mark_rows(array, starts ? 0 : b, starts ? starts[b] : 0, rows ? rows[b] : all, may);
    }
    for (size_t at = 0; at < array->n_elems; at++) { /* 16 bits may be a canary's by chance */
        if (array->elem_bytes > 2 || !may[at]) FUZZ_CHECK(is_canary(array, at) == !may[at]);
    }
    free(may);
}

static bool is_nan(const attention_array *array, size_t at) {
    if (array->elem_bytes != 2) return isnan(((const float *)array->data)[at]);
    const uint16_t x = ((const uint16_t *)array->data)[at];
    return isnan(array->type == QKV_F16 ? qkvi_f32_of_f16(x) : qkvi_f32_of_bf16(x));
}

bool attention_array_same(const attention_array *a, const attention_array *b) {
    const char *const x = a->data, *const y = b->data;
    const size_t n = a->elem_bytes;
    if (memcmp(x, y, a->n_elems * n) == 0) return true;
    for (size_t i = 0; i < a->n_elems; i++)
        if (memcmp(x + i * n, y + i * n, n) != 0 && !(is_nan(a, i) && is_nan(b, i))) return false;
    return true;
}
