/* The audit of the data: where the tensors lie, and whether their values are numbers. See audit.h. */

#include "model/store/audit.h"
#include "model/store/safetensors_parts.h"

enum { CHUNK_BYTES = 1 << 18 };

/* ---- Layout ---------------------------------------------------------------------------------- */

/* Of a name that is there twice readers take the last: the others lie nowhere. */
static void drop_hidden(qkvi_audit *audit) {
    int64_t kept = 0;
    for (int64_t t = 0; t < audit->n_tensors; t++)
        if (!audit->keys.at[audit->tensor_keys[t]].is_hidden)
            audit->tensors[kept++] = audit->tensors[t];
    audit->n_tensors = kept;
}

static qkv_status tell_fault(void *user, const qkvi_layout_fault *fault) {
    qkvi_audit *const audit = user;
    qkvi_audit_find(audit, fault->rule, audit->data_start + fault->offset,
                    fault->tensor ? fault->tensor->name : NULL, "%s", fault->text);
    return QKV_OK;
}

static void check_alignment(qkvi_audit *audit) {
    if (audit->data_start % 8 != 0)
        qkvi_audit_find(audit, "unaligned-data", audit->data_start, NULL,
                        "the data begins at byte %llu, which is not a multiple of 8",
                        (unsigned long long)audit->data_start);
    for (int64_t t = 0; t < audit->n_tensors; t++) {
        const qkvi_stored *const tensor = &audit->tensors[t];
        const size_t width = qkvi_elem_bytes(tensor->type);
        if (tensor->begin % width != 0)
            qkvi_audit_find(audit, "unaligned-tensor", audit->data_start + tensor->begin,
                            tensor->name,
                            "begins at %llu of the data, which is not a multiple of the %zu bytes "
                            "of its type",
                            (unsigned long long)tensor->begin, width);
    }
}

/* ---- Values ---------------------------------------------------------------------------------- */

typedef struct counts {
    int64_t n_nan, n_inf;
    uint64_t first; /* the first of them */
} counts;

/* By their bits, in the stored type: f64 that only f32 cannot hold is a number. */
static void count_not_finite(qkvi_elem type, const unsigned char *bytes, size_t n, uint64_t index,
                             counts *found) {
    const uint64_t exponent = type == QKVI_F64    ? UINT64_C(0x7ff0000000000000)
                              : type == QKVI_F32  ? 0x7f800000
                              : type == QKVI_BF16 ? 0x7f80
                                                  : 0x7c00;
    const uint64_t mantissa = (exponent & -exponent) - 1; /* the bits below the exponent */
    const size_t width = qkvi_elem_bytes(type);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = 0;
        for (size_t b = 0; b < width; b++) bits |= (uint64_t)bytes[i * width + b] << 8 * b;
        if ((bits & exponent) != exponent) continue;
        const int is_inf = (bits & mantissa) == 0;
        if (found->n_nan + found->n_inf == 0) found->first = index + i;
        found->n_inf += is_inf;
        found->n_nan += !is_inf;
    }
}

static qkv_status check_values(qkvi_audit *audit, const qkvi_stored *tensor,
                               unsigned char *buffer) {
    const size_t width = qkvi_elem_bytes(tensor->type), chunk = CHUNK_BYTES / width;
    counts found = { 0 };
    for (size_t i = 0; i < tensor->n_elems; i += chunk) {
        const size_t n = tensor->n_elems - i < chunk ? tensor->n_elems - i : chunk;
        QKV_TRY(qkvi_source_read(&audit->source, audit->data_start + tensor->begin + i * width,
                                 buffer, n * width, audit->error));
        count_not_finite(tensor->type, buffer, n, i, &found);
    }
    if (found.n_nan + found.n_inf > 0)
        qkvi_audit_find(
            audit, "not-finite", audit->data_start + tensor->begin + found.first * width,
            tensor->name, "%lld NaN and %lld infinite values, the first at element %llu",
            (long long)found.n_nan, (long long)found.n_inf, (unsigned long long)found.first);
    return QKV_OK;
}

qkv_status qkvi_audit_data(qkvi_audit *audit) {
    const uint64_t data_bytes = audit->source.n_bytes - audit->data_start;
    drop_hidden(audit);
    if (audit->is_complete)
        QKV_TRY(qkvi_check_layout(audit->tensors, audit->n_tensors, data_bytes, tell_fault, audit));
    check_alignment(audit);
    unsigned char *const buffer = malloc(CHUNK_BYTES);
    qkv_status status = buffer ? QKV_OK : qkvi_audit_no_memory(audit);
    for (int64_t t = 0; status == QKV_OK && t < audit->n_tensors; t++) {
        const qkvi_stored *const tensor = &audit->tensors[t];
        const uint64_t there = tensor->end - tensor->begin;
        if (!qkvi_elem_is_float(tensor->type) || tensor->end > data_bytes ||
            there != tensor->n_elems * qkvi_elem_bytes(tensor->type))
            continue;
        status = check_values(audit, tensor, buffer);
    }
    free(buffer);
    return status;
}
