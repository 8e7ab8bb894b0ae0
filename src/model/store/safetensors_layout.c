/* All tensors together: see safetensors_layout.h. */
#include "model/store/safetensors_layout.h"

typedef struct layout {
    qkv_status (*visit)(void *user, const qkvi_layout_fault *fault);
    void *user;
    uint64_t end; /* of all tensors so far */
} layout;

static int by_offset(const void *left, const void *right) {
    const qkvi_stored *const a = left, *const b = right;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return a->end < b->end ? -1 : a->end > b->end;
}

static qkv_status check_place(const layout *all, const qkvi_stored *tensor, int is_first) {
    static const char *const rules[] = { "not-at-0", "overlap", "hole" };
    static const char *const forms[] = {
        "is the first but does not begin at 0: it begins at %llu",
        "overlaps the tensors before it: it begins at %llu, they end at %llu",
        "leaves a hole: it begins at %llu, the tensors before it end at %llu"
    };
    char text[128];
    if (tensor->begin == all->end) return QKV_OK;
    const int kind = is_first ? 0 : tensor->begin < all->end ? 1 : 2;
    snprintf(text, sizeof text, forms[kind], (unsigned long long)tensor->begin,
             (unsigned long long)all->end);
    const uint64_t offset = kind == 1 ? tensor->begin : all->end;
    return all->visit(all->user, &(qkvi_layout_fault){ rules[kind], tensor, offset, text });
}

static qkv_status check_size(const layout *all, const qkvi_stored *tensor) {
    char text[128];
    const uint64_t there = tensor->end - tensor->begin;
    const size_t needed = tensor->n_elems * qkvi_elem_bytes(tensor->type);
    if (there == needed) return QKV_OK;
    snprintf(text, sizeof text,
             "data_offsets do not fit its shape and dtype: %llu bytes, they need %zu",
             (unsigned long long)there, needed);
    return all->visit(all->user, &(qkvi_layout_fault){ "size", tensor, tensor->begin, text });
}

static qkv_status check_end(const layout *all, uint64_t data_bytes) {
    char text[128];
    if (all->end == data_bytes) return QKV_OK;
    const int is_more = data_bytes > all->end;
    snprintf(text, sizeof text, "%llu bytes of data, but its tensors need %llu",
             (unsigned long long)data_bytes, (unsigned long long)all->end);
    return all->visit(all->user,
                      &(qkvi_layout_fault){ is_more ? "trailing-bytes" : "missing-bytes", NULL,
                                            is_more ? all->end : data_bytes, text });
}

qkv_status qkvi_check_layout(qkvi_stored *tensors, int64_t n_tensors, uint64_t data_bytes,
                             qkv_status (*visit)(void *user, const qkvi_layout_fault *fault),
                             void *user) {
    layout all = { visit, user, 0 };
    if (n_tensors > 0) qsort(tensors, (size_t)n_tensors, sizeof *tensors, by_offset);
    for (int64_t t = 0; t < n_tensors; t++) {
        QKV_TRY(check_place(&all, &tensors[t], t == 0));
        QKV_TRY(check_size(&all, &tensors[t]));
        if (tensors[t].end > all.end) all.end = tensors[t].end;
    }
    return check_end(&all, data_bytes);
}
