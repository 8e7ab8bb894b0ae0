/* See d_q_sums.h. */
#include "attn/d_q_sums.h"

#include "core/ints.h"
#include "core/os.h"

enum { FREE = -1, TAKEN = -2 }; /* TAKEN: soon a head's */

void qkvi_d_q_lay_out(qkvi_cutter *cutter, const qkvi_problem *p, int64_t n_places,
                      qkvi_d_q_sums *sums) {
    sums->n_places = p->dtype == QKV_F32 ? 0 : (int)n_places;
    sums->places = NULL;
    if (sums->n_places == 0) return;
    sums->places = qkvi_cut(cutter, sums->n_places, sizeof *sums->places);
    for (int n = 0; n < sums->n_places; n++) {
        float *rows =
            qkvi_cut(cutter, p->heads_per_kv * p->len_q, (size_t)p->head_dim * sizeof *rows);
        if (sums->places) sums->places[n].rows = rows;
    }
}

void qkvi_d_q_begin(qkvi_d_q_sums *sums) {
    for (int n = 0; n < sums->n_places; n++) {
        atomic_init(&sums->places[n].head, FREE);
        atomic_init(&sums->places[n].left, 0);
    }
}

qkvi_d_q_place *qkvi_d_q_enter(const qkvi_d_q_sums *sums, int64_t head, int64_t block,
                               int64_t n_blocks) {
    if (sums->n_places == 0) return NULL;
    for (;; qkvi_os_yield())
        for (int n = 0; n < sums->n_places; n++) {
            qkvi_d_q_place *place = &sums->places[n];
            long long is = atomic_load_explicit(&place->head, memory_order_acquire);
            if (block > 0 && is == head) return place;
            if (block > 0 || is != FREE ||
                !atomic_compare_exchange_strong(&place->head, &is, TAKEN))
                continue;
            atomic_store_explicit(&place->left, n_blocks, memory_order_relaxed);
            atomic_store_explicit(&place->head, head, memory_order_release);
            return place;
        }
}

void qkvi_d_q_leave(qkvi_d_q_place *place) {
    if (place && atomic_fetch_sub(&place->left, 1) == 1)
        atomic_store_explicit(&place->head, FREE, memory_order_release);
}
