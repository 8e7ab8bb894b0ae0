/* See stored.h. */
#include "check/stored.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/oracle_row.h"
#include "check/rules.h"

/* ---- Where a token is ------------------------------------------------------------------------ */

/* Sizes of the array in memory: batches or pages, heads, tokens of each. */
static void array_size(const check_case *c, const qkv_kv_view *view, char which, int64_t size[4]) {
    layout_shape(&c->d, which, size);
    if (view->ring_len) size[2] = view->ring_len;
    if (view->page_len) {
        size[0] = view->n_pages;
        size[2] = view->page_len;
    }
}

/* K or V, with the scales of its tokens if it has any. */
typedef struct half {
    char which;
    const int64_t *stride, *scale_stride;
    const guarded *array, *scale;
} half;

static half half_of(const kv_stored *s, char which) {
    const qkv_kv_view *const v = &s->view;
    return which == 'k' ? (half){ 'k', v->k_stride, v->k_scale_stride, &s->k, &s->k_scale }
                        : (half){ 'v', v->v_stride, v->v_scale_stride, &s->v, &s->v_scale };
}

/* Entries of a batch's page table. */
static int64_t table_len(const check_case *c, const qkv_kv_view *view) {
    const int64_t len = view->ring_len ? view->ring_len : c->d.len_k;
    return (len + view->page_len - 1) / view->page_len;
}

/* The element of channel 0 of token j, by the header's words. */
static int64_t place_of(const qkv_kv_view *view, const int64_t stride[3], int64_t b, int64_t g,
                        int64_t j) {
    if (view->ring_len) j %= view->ring_len;
    if (!view->page_len) return b * stride[0] + g * stride[1] + j * stride[2];
    const int64_t page = view->pages[b * view->pages_stride + j / view->page_len];
    return page * stride[0] + g * stride[1] + j % view->page_len * stride[2];
}

/* The first token that is there. */
static int64_t first_token(const check_case *c, const qkv_kv_view *view, int64_t b) {
    const int64_t len = c->d.flags & QKV_SET_KV_LEN ? c->kv_len[b] : c->d.len_k;
    int64_t first = view->first ? view->first[b] : 0;
    if (view->ring_len && len - view->ring_len > first) first = len - view->ring_len;
    return first;
}

static bool is_there(const check_case *c, const qkv_kv_view *view, int64_t b, int64_t j) {
    return j < layout_keys(&c->d, b) && j >= first_token(c, view, b);
}

static bool seen_by_any(const check_case *c, int64_t b, int64_t g, int64_t j) {
    const int64_t group = c->d.n_heads / c->d.n_kv_heads;
    for (int64_t h = g * group; h < (g + 1) * group; h++)
        for (int64_t i = 0; i < layout_queries(&c->d, b); i++)
            if (rule_sees(&c->d, b, h, i, j)) return true;
    return false;
}

/* ---- Layouts --------------------------------------------------------------------------------- */

/* A ring holds what a window lets the queries at its end see. */
void stored_limits(rng *r, check_case *c, int layout, int64_t *ring_len) {
    qkv_attention_desc *const d = &c->d;
    *ring_len = 0;
    if (layout != LAYOUT_RING && layout != LAYOUT_PAGED_RING) return;
    *ring_len = 16 * rng_between(r, (d->len_q + 15) / 16 + 1, 40);
    d->flags |= QKV_SET_CAUSAL | QKV_SET_Q_OFFSET | QKV_SET_WINDOW;
    d->flags &= ~(uint32_t)QKV_SET_PREFIX_LEN;
    d->q_offsets = c->q_offsets;
    for (int64_t b = 0; b < d->n_batch; b++) c->q_offsets[b] = layout_keys(d, b) - d->len_q;
    if (d->window_left < 0 || d->window_left > *ring_len - d->len_q)
        d->window_left = rng_between(r, 0, *ring_len - d->len_q);
}

/* Dense but for gaps; the order of the dimensions is random. */
static void array_strides(rng *r, const int64_t size[4], int64_t stride[3]) {
    static const int order[][3] = { { 2, 1, 0 }, { 1, 2, 0 }, { 1, 0, 2 } };
    const int *const o = order[rng_between(r, 0, 2)];
    int64_t step = size[3] + (rng_chance(r, 50) ? rng_between(r, 0, 7) : 0);
    for (int n = 0; n < 3; n++) {
        if (step == 0) step = 1;
        stride[o[n]] = step;
        step = step * size[o[n]] + (rng_chance(r, 30) ? rng_between(r, 0, 9) : 0);
    }
}

/*
 * A table in which pages may stand more than once; entries that no query sees by its length are
 * no pages at all.
 */
static void make_table(rng *r, const check_case *c, kv_stored *s) {
    static const int32_t rubbish[] = { -1, INT32_MIN, INT32_MAX };
    const int64_t n = table_len(c, &s->view), rows = rng_chance(r, 15) ? 1 : c->d.n_batch;
    s->view.pages_stride = rows == 1 ? 0 : n + rng_between(r, 0, 3);
    s->view.n_pages = n * rows + rng_between(r, 0, 2);
    s->pages = guarded_new((size_t)(rows && n ? (rows - 1) * s->view.pages_stride + n : 0) *
                               sizeof(int32_t),
                           c->at_end);
    int32_t *const table = s->pages.data;
    const bool shares = rng_chance(r, 30);
    for (int64_t b = 0; b < rows; b++)
        for (int64_t at = 0; at < n; at++)
            table[b * s->view.pages_stride + at] =
                (int32_t)(shares ? rng_between(r, 0, s->view.n_pages - 1)
                                 : s->view.n_pages - 1 - (b * n + at));
    if (rows == c->d.n_batch && !s->view.ring_len)
        for (int64_t b = 0; b < rows; b++)
            for (int64_t at = 0; at < n; at++)
                if (at * s->view.page_len >= layout_keys(&c->d, b))
                    table[b * s->view.pages_stride + at] = rubbish[rng_between(r, 0, 2)];
    s->view.pages = table;
}

static void choose_layout(rng *r, const check_case *c, int layout, int64_t ring_len, kv_stored *s) {
    s->view.ring_len = ring_len;
    if (layout == LAYOUT_PAGES) s->view.page_len = 16 * rng_between(r, 1, 5);
    if (layout == LAYOUT_PAGED_RING) s->view.page_len = ring_len % 32 ? 16 : 32;
    if (s->view.page_len) make_table(r, c, s);
    int64_t size[4];
    array_size(c, &s->view, 'k', size);
    array_strides(r, size, s->view.k_stride);
    array_size(c, &s->view, 'v', size);
    array_strides(r, size, s->view.v_stride);
    size[3] = 1;
    array_strides(r, size, s->view.k_scale_stride);
    array_strides(r, size, s->view.v_scale_stride);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static guarded array_new(const check_case *c, const qkv_kv_view *view, char which) {
    int64_t size[4];
    array_size(c, view, which, size);
    const int64_t *const stride = which == 'k' ? view->k_stride : view->v_stride;
    return guarded_new((size_t)layout_elems(size, stride) * element_bytes((elem_type)view->dtype),
                       c->at_end);
}

static guarded scales_new(const check_case *c, const qkv_kv_view *view, char which) {
    int64_t size[4];
    if (view->dtype != QKV_I8) return (guarded){ .data = NULL };
    array_size(c, view, which, size);
    size[3] = 1;
    const int64_t *const stride = which == 'k' ? view->k_scale_stride : view->v_scale_stride;
    return guarded_new((size_t)layout_elems(size, stride) * sizeof(float), c->at_end);
}

static void arrays_new(const check_case *c, kv_stored *s) {
    s->k = array_new(c, &s->view, 'k');
    s->v = array_new(c, &s->view, 'v');
    s->k_scale = scales_new(c, &s->view, 'k');
    s->v_scale = scales_new(c, &s->view, 'v');
}

static void fill_token(rng *r, elem_type type, const half *x, int64_t at, int64_t at_scale,
                       int64_t n) {
    const bool whole = type == ELEMENT_I8;
    for (int64_t c = 0; c < n; c++)
        element_set(x->array->data, type, at + c,
                    whole ? (double)rng_between(r, -128, 127) : (double)rng_normal(r));
    if (whole) ((float *)x->scale->data)[at_scale] = 0.01f * rng_normal(r);
}

typedef void token_function(rng *r, const check_case *c, const kv_stored *s, const half *x,
                            int64_t b, int64_t g, int64_t j, void *argument);

static void for_each_token(rng *r, const check_case *c, const kv_stored *s, char which,
                           token_function *function, void *argument) {
    const half x = half_of(s, which);
    int64_t size[4];
    layout_shape(&c->d, which, size);
    for (int64_t b = 0; b < size[0]; b++)
        for (int64_t g = 0; g < size[1]; g++)
            for (int64_t j = 0; j < size[2]; j++)
                if (is_there(c, &s->view, b, j)) function(r, c, s, &x, b, g, j, argument);
}

/* Values of the tokens that a query sees; the rest stays what it is, NaN. */
static void fill(rng *r, const check_case *c, const kv_stored *s, const half *x, int64_t b,
                 int64_t g, int64_t j, void *argument) {
    (void)argument;
    if (!seen_by_any(c, b, g, j)) return;
    fill_token(r, (elem_type)s->view.dtype, x, place_of(&s->view, x->stride, b, g, j),
               place_of(&s->view, x->scale_stride, b, g, j),
               x->which == 'k' ? c->d.head_dim : c->d.head_dim_v);
}

static void read_token(rng *r, const check_case *c, const kv_stored *s, const half *x, int64_t b,
                       int64_t g, int64_t j, void *argument) {
    const elem_type type = (elem_type)s->view.dtype;
    const int64_t n = x->which == 'k' ? c->d.head_dim : c->d.head_dim_v;
    double *const to = (double *)argument + ((b * c->d.n_kv_heads + g) * c->d.len_k + j) * n;
    const int64_t at = place_of(&s->view, x->stride, b, g, j);
    (void)r;
    double scale = 1;
    if (type == ELEMENT_I8)
        scale =
            element_get(x->scale->data, ELEMENT_F32, place_of(&s->view, x->scale_stride, b, g, j));
    for (int64_t ch = 0; ch < n; ch++) to[ch] = element_get(x->array->data, type, at + ch) * scale;
}

/* What is not there is NaN. */
static double *read_back(const check_case *c, const kv_stored *s, char which) {
    int64_t size[4];
    layout_shape(&c->d, which, size);
    const int64_t n = size[0] * size[1] * size[2] * size[3];
    double *const dense = oracle_zeros(n, sizeof *dense);
    for (int64_t at = 0; at < n; at++) dense[at] = (double)NAN;
    for_each_token(NULL, c, s, which, read_token, dense);
    return dense;
}

static void seal(kv_stored *s) {
    guarded *const all[] = { &s->k, &s->v, &s->pages, &s->first, &s->k_scale, &s->v_scale };
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (all[n]->map) guarded_read_only(all[n]);
    s->view.k = s->k.data;
    s->view.v = s->v.data;
    s->view.pages = s->pages.data;
    s->view.k_scale = s->k_scale.data;
    s->view.v_scale = s->v_scale.data;
}

/* The case's sizes; of whole numbers, their scales have them. */
static void resize(rng *r, const check_case *c, const kv_stored *s) {
    const elem_type type = (elem_type)s->view.dtype;
    const bool whole = type == ELEMENT_I8;
    if (!c->any_size) return;
    case_resize_array(r, whole ? &s->k_scale : &s->k, whole ? ELEMENT_F32 : type, &c->k_sizes);
    case_resize_array(r, whole ? &s->v_scale : &s->v, whole ? ELEMENT_F32 : type, &c->v_sizes);
}

kv_stored stored_new(rng *r, const check_case *c, elem_type type, int layout, int64_t ring_len) {
    kv_stored s = { .view = { .struct_size = sizeof s.view, .dtype = (qkv_dtype)type } };
    choose_layout(r, c, layout, ring_len, &s);
    arrays_new(c, &s);
    for_each_token(r, c, &s, 'k', fill, NULL);
    for_each_token(r, c, &s, 'v', fill, NULL);
    resize(r, c, &s);
    s.k_dense = read_back(c, &s, 'k');
    s.v_dense = read_back(c, &s, 'v');
    seal(&s);
    return s;
}

/* Bytes, and a scale, from where the token is in `like`. */
static void copy_token(rng *r, const check_case *c, const kv_stored *like, const half *x, int64_t b,
                       int64_t g, int64_t j, void *argument) {
    const kv_stored *const s = argument;
    const half y = half_of(s, x->which);
    const int64_t bytes = (int64_t)element_bytes((elem_type)s->view.dtype);
    const int64_t n = x->which == 'k' ? c->d.head_dim : c->d.head_dim_v;
    (void)r;
    memcpy((char *)y.array->data + place_of(&s->view, y.stride, b, g, j) * bytes,
           (char *)x->array->data + place_of(&like->view, x->stride, b, g, j) * bytes,
           (size_t)(n * bytes));
    if (y.scale->data)
        ((float *)y.scale->data)[place_of(&s->view, y.scale_stride, b, g, j)] =
            ((float *)x->scale->data)[place_of(&like->view, x->scale_stride, b, g, j)];
}

kv_stored stored_contiguous(const check_case *c, const kv_stored *like) {
    kv_stored s = { .view = { .struct_size = 0 } };
    qkv_kv_view_contiguous(&s.view, &c->d, like->view.dtype);
    arrays_new(c, &s);
    for_each_token(NULL, c, like, 'k', copy_token, &s);
    for_each_token(NULL, c, like, 'v', copy_token, &s);
    seal(&s);
    return s;
}

void stored_free(kv_stored *s) {
    guarded_free(&s->k);
    guarded_free(&s->v);
    guarded_free(&s->pages);
    guarded_free(&s->first);
    guarded_free(&s->k_scale);
    guarded_free(&s->v_scale);
    free(s->k_dense);
    free(s->v_dense);
}
