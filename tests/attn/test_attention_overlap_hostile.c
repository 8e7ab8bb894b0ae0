/*
 * Outputs must overlap nothing (AT06), and neither must the caller's workspace (AT18): each array
 * that a call writes is placed on each other one, wholly, by one element at either end, and
 * directly beside it, which is allowed. Every array has a slot of its own in one block of memory,
 * so that no others overlap.
 */
#include "attn/attention_world.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOT = 1 << 15, MOST = 24 };

typedef struct array {
    const char *name;
    void *at; /* where the world keeps its pointer */
    size_t bytes;
    bool output;
} array;

/* The arrays of a call, in the order in which an overlap is looked for. */
typedef struct arrays {
    array list[MOST];
    int n;
} arrays;

static char *block; /* a slot for each array */

static char *slot(int n) { return block + n * SLOT + SLOT / 2; }

static void set_pointer(const array *a, const void *to) { memcpy(a->at, &to, sizeof to); }

static void add(arrays *all, const char *name, void *at, size_t bytes, bool output) {
    const array a = { name, at, bytes, output };
    set_pointer(&a, slot(all->n));
    all->list[all->n++] = a;
}

static void add_inputs(arrays *all, world *w) {
    add(all, "q", &w->q, sizeof w->q_data, false);
    add(all, "k", &w->k, sizeof w->k_data, false);
    add(all, "v", &w->v, sizeof w->v_data, false);
    add(all, "q_offsets", &w->d.q_offsets, B * sizeof(int64_t), false);
    add(all, "kv_len", &w->d.kv_len, B * sizeof(int64_t), false);
    add(all, "q_len", &w->d.q_len, B * sizeof(int64_t), false);
    add(all, "prefix_len", &w->d.prefix_len, B * sizeof(int64_t), false);
    add(all, "alibi_slopes", &w->d.alibi_slopes, H * sizeof(float), false);
    add(all, "sinks", &w->d.sinks, H * sizeof(float), false);
    add(all, "distance_bias", &w->d.distance_bias, sizeof w->distances, false);
    add(all, "seg_q", &w->d.seg_q, B * LQ * sizeof(int32_t), false);
    add(all, "seg_k", &w->d.seg_k, B * LK * sizeof(int32_t), false);
    add(all, "mask", &w->d.mask, sizeof w->mask_f32, false);
}

static world *world_in_slots(int call, arrays *all) {
    world *w = fresh_with_options();
    memset(block, 0, MOST * SLOT);
    all->n = 0;
    add_inputs(all, w);
    add(all, "o", call == FORWARD ? (void *)&w->o : (void *)&w->saved_o, sizeof w->out.o,
        call == FORWARD);
    add(all, "lse", call == FORWARD ? (void *)&w->lse : (void *)&w->saved_lse, sizeof w->out.lse,
        call == FORWARD);
    if (call == FORWARD) return w;
    add(all, "d_o", &w->g.d_o, sizeof w->d_o_data, false);
    add(all, "d_lse", &w->g.d_lse, sizeof w->d_lse_data, false);
    add(all, "d_q", &w->g.d_q, sizeof w->out.d_q, true);
    add(all, "d_k", &w->g.d_k, sizeof w->out.d_k, true);
    add(all, "d_v", &w->g.d_v, sizeof w->out.d_v, true);
    add(all, "d_sinks", &w->g.d_sinks, sizeof w->out.d_sinks, true);
    add(all, "d_mask", &w->g.d_mask, sizeof w->out.d_mask, true);
    add(all, "d_distance_bias", &w->g.d_distance_bias, sizeof w->out.d_distances, true);
    return w;
}

/* Refused with this text, and not a byte of the block has changed. */
static void refuse_here(world *w, int call, const char *text) {
    static char before[MOST * SLOT];
    memcpy(before, block, sizeof before);
    refuse(w, call, QKV_ERR_ARGUMENT, text);
    assert_memory_equal(block, before, sizeof before);
}

/* Places of an array of a_bytes in relation to one of b_bytes at b. */
enum { SAME_BEGINNING, ON_ITS_LAST, ON_ITS_FIRST, AFTER_IT, BEFORE_IT, PLACES };

static char *place_of(int place, char *b, size_t a_bytes, size_t b_bytes) {
    switch (place) {
    case SAME_BEGINNING: return b;
    case ON_ITS_LAST: return b + b_bytes - sizeof(float);
    case ON_ITS_FIRST: return b + sizeof(float) - a_bytes;
    case AFTER_IT: return b + b_bytes;
    default: return b - a_bytes;
    }
}

static void lay_on(int call, int a, int b, int place) {
    arrays all;
    char text[128];
    world *w = world_in_slots(call, &all);
    const array *x = &all.list[a], *y = &all.list[b];
    set_pointer(x, place_of(place, slot(b), x->bytes, y->bytes));
    if (place >= AFTER_IT) {
        accept(w, call);
        return;
    }
    const array *const first = y->output && b < a ? y : x;
    snprintf(text, sizeof text, "%s, an output, overlaps %s", first->name,
             first == x ? y->name : x->name);
    refuse_here(w, call, text);
}

static void AT06_outputs_overlap_nothing(void **state) {
    (void)state;
    static const int calls[] = { FORWARD, BACKWARD };
    int n_pairs = 0;
    for (int c = 0; c < 2; c++) {
        arrays all;
        world_in_slots(calls[c], &all);
        for (int a = 0; a < all.n; a++)
            for (int b = 0; all.list[a].output && b < all.n; b++)
                for (int place = 0; a != b && place < PLACES; place++, n_pairs++)
                    lay_on(calls[c], a, b, place);
    }
    assert_int_equal(n_pairs, (2 * 14 + 6 * 22) * PLACES);
}

static void AT06_in_place_is_refused(void **state) {
    (void)state;
    REFUSE(FORWARD, w->o = w->q_data, QKV_ERR_ARGUMENT, "o, an output, overlaps q");
    REFUSE(FORWARD, w->o = w->v_data, QKV_ERR_ARGUMENT, "o, an output, overlaps v");
    REFUSE(BACKWARD, w->g.d_q = w->q_data, QKV_ERR_ARGUMENT, "d_q, an output, overlaps q");
    REFUSE(BACKWARD, w->g.d_k = w->k_data, QKV_ERR_ARGUMENT, "d_k, an output, overlaps k");
    REFUSE(BACKWARD, w->g.d_v = w->v_data, QKV_ERR_ARGUMENT, "d_v, an output, overlaps v");
    REFUSE(BACKWARD, w->g.d_q = w->d_o_data, QKV_ERR_ARGUMENT, "d_q, an output, overlaps d_o");
}

static void AT06_inputs_may_overlap_one_another(void **state) {
    (void)state;
    world_outputs apart;
    world *w = fresh();
    qkv_attention_desc_contiguous(&w->d, 1, 2, 2, LQ, LQ, D, D);
    world_point(w);
    const int64_t n = 2 * LQ * D;
    for (int64_t e = 0; e < 2 * n; e++) w->q_data[e] = (float)(e % 13) * 0.25f - 1;
    memcpy(w->k_data, w->q_data + 3, (size_t)n * sizeof(float));
    memcpy(w->v_data, w->q_data + 5, (size_t)n * sizeof(float));
    memcpy(w->d_o_data, w->q_data + 1, (size_t)n * sizeof(float));
    accept(w, FORWARD);
    memcpy(w->o_data[0], w->out.o, sizeof w->out.o);
    memcpy(w->lse_data[0], w->out.lse, sizeof w->out.lse);
    accept(w, BACKWARD);
    apart = w->out;
    memset(&w->out, 0, sizeof w->out);
    w->k = w->q_data + 3, w->v = w->q_data + 5, w->g.d_o = w->q_data + 1;
    accept(w, FORWARD | BACKWARD);
    assert_memory_equal(w->out.o, apart.o, (size_t)n * sizeof(float));
    assert_memory_equal(w->out.d_q, apart.d_q, (size_t)n * sizeof(float));
    assert_memory_equal(w->out.d_k, apart.d_k, (size_t)n * sizeof(float));
    assert_memory_equal(w->out.d_v, apart.d_v, (size_t)n * sizeof(float));
}

/* ---- Merge: exactly in place, or apart ------------------------------------------------------- */

static void fill_parts(world *w) {
    for (int n = 0; n < PARTS; n++) {
        for (int e = 0; e < B * H * LQ * DV; e++) w->o_data[n][e] = (float)(e * (n + 3) % 17) - 8;
        for (int e = 0; e < B * H * LQ; e++) w->lse_data[n][e] = (float)((e + 5 * n) % 7) - 3;
    }
}

static void AT06_merge_in_place(void **state) {
    (void)state;
    world *w = fresh();
    fill_parts(w);
    accept(w, MERGE);
    const world_outputs apart = w->out;
    for (int on_o = 0; on_o < PARTS; on_o++)
        for (int on_lse = 0; on_lse < PARTS; on_lse++) {
            w = fresh();
            fill_parts(w);
            w->o = w->o_data[on_o];
            w->lse = w->lse_data[on_lse];
            accept(w, MERGE);
            assert_memory_equal(w->o, apart.o, sizeof apart.o);
            assert_memory_equal(w->lse, apart.lse, sizeof apart.lse);
        }
    w = fresh();
    fill_parts(w);
    w->o_parts[1] = w->o_parts[0]; /* parts may be one and the same */
    w->lse_parts[1] = w->lse_parts[0];
    accept(w, MERGE);
}

static void AT06_merge_overlaps(void **state) {
    (void)state;
    enum { N_O = B * H * LQ * DV, N_LSE = B * H * LQ };
    const qkv_status no = QKV_ERR_ARGUMENT;
    REFUSE(MERGE, w->o = w->o_data[0] + 1, no, "o, an output, overlaps o_parts[0]");
    REFUSE(MERGE, (w->lse_parts[0] = w->d_lse_data, w->o = w->o_data[1] + N_O - 1), no,
           "o, an output, overlaps o_parts[1]");
    REFUSE(MERGE, w->o = w->lse_data[0], no, "o, an output, overlaps lse_parts[0]");
    REFUSE(MERGE, w->lse = w->lse_data[1] + 1, no, "lse, an output, overlaps lse_parts[1]");
    REFUSE(MERGE, w->lse = w->lse_data[0] + N_LSE - 1, no, "lse, an output, overlaps lse_parts[0]");
    REFUSE(MERGE, w->lse = w->o_data[1] + N_O / 2, no, "lse, an output, overlaps o_parts[1]");
    REFUSE(MERGE, w->lse = w->o, no, "o, an output, overlaps lse");
    REFUSE(MERGE, w->lse = (float *)w->o + N_O - 1, no, "o, an output, overlaps lse");
    ACCEPT(MERGE, w->o_parts[1] = w->o_data[0] + N_LSE); /* parts may overlap one another */
}

/* ---- AT18: the workspace --------------------------------------------------------------------- */

static void AT18_workspace_overlaps_nothing(void **state) {
    (void)state;
    static const int calls[] = { FORWARD, BACKWARD };
    enum { BYTES = 1 << 20 }; /* more than any call here needs */
    char *const memory = aligned_alloc(64, BYTES + SLOT);
    assert_non_null(memory);
    for (int c = 0; c < 2; c++)
        for (int n = 0;; n++) {
            arrays all;
            char text[128];
            world *w = world_in_slots(calls[c], &all);
            if (n == all.n) break;
            memset(memory, 0, BYTES + SLOT);
            w->call.workspace = memory;
            w->call.workspace_bytes = BYTES;
            snprintf(text, sizeof text, "workspace, scratch memory, overlaps %s", all.list[n].name);
            set_pointer(&all.list[n], memory);
            refuse_here(w, calls[c], text);
            set_pointer(&all.list[n], memory + BYTES - 8);
            refuse_here(w, calls[c], text);
            set_pointer(&all.list[n], memory + BYTES); /* right behind it */
            accept(w, calls[c]);
        }
    free(memory);
}

static void AT18_workspace_of_a_wrong_size(void **state) {
    (void)state;
    static const int calls[] = { FORWARD, BACKWARD }, queries[] = { FORWARD_BYTES, BACKWARD_BYTES };
    for (int c = 0; c < 2; c++) {
        char text[160];
        world *w = fresh();
        accept(w, queries[c]);
        const size_t need = w->out.bytes;
        char *const memory = aligned_alloc(64, need + 128);
        assert_non_null(memory);
        for (size_t less = 1; less <= need; less += need / 3) {
            w = fresh();
            w->call.workspace = memory;
            w->call.workspace_bytes = need - less;
            snprintf(text, sizeof text,
                     "workspace_bytes = %zu is less than the %zu that this call needs", need - less,
                     need);
            refuse(w, calls[c], QKV_ERR_ARGUMENT, text);
        }
        for (int off = 1; off < 64; off++) {
            w = fresh();
            w->call.workspace = memory + off;
            w->call.workspace_bytes = need + 64;
            snprintf(text, sizeof text, "workspace = %p is not aligned to 64 bytes",
                     w->call.workspace);
            refuse(w, calls[c], QKV_ERR_ARGUMENT, text);
        }
        w = fresh();
        w->call.workspace = memory;
        w->call.workspace_bytes = SIZE_MAX;
        refuse(w, calls[c], QKV_ERR_ARGUMENT,
               "workspace_bytes = 18446744073709551615 is greater than 4611686018427387903");
        w->call.workspace_bytes = need;
        accept(w, calls[c]);
        w->call.workspace = NULL; /* the context's own, whatever the size says */
        w->call.workspace_bytes = 1;
        accept(w, calls[c]);
        free(memory);
    }
}

static int make_all(void **state) {
    block = aligned_alloc(64, MOST * SLOT);
    return block ? make_world_ctx(state) : -1;
}

static int free_all(void **state) {
    free(block);
    return destroy_world_ctx(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(AT06_outputs_overlap_nothing),
        cmocka_unit_test(AT06_in_place_is_refused),
        cmocka_unit_test(AT06_inputs_may_overlap_one_another),
        cmocka_unit_test(AT06_merge_in_place),
        cmocka_unit_test(AT06_merge_overlaps),
        cmocka_unit_test(AT18_workspace_overlaps_nothing),
        cmocka_unit_test(AT18_workspace_of_a_wrong_size),
    };
    return cmocka_run_group_tests(tests, make_all, free_all);
}
