/*
 * Reads the arrays of `qkv attend` and makes the descriptor of the problem. Arrays of rank 4, 3 and
 * 2 are [B,H,L,D], [H,L,D] and [L,D]; dimensions that are missing on the left are 1.
 */
#include <stdlib.h>
#include <string.h>

#include "attend/attend.h"
#include "common/ranks.h"
#include "common/rows.h"

/*
 * Numbers, rounded to the type that is computed with. Integers become f32 alone. rows: NULL, or
 * this rank's part is read, and the array's shape is that of the whole.
 */
static int read_part(const char *option, const char *path, bool quiet, qkv_dtype dtype,
                     int64_t rows[3], qkv_array **array) {
    qkv_error error;
    const qkv_array_type type = attend_array_type(dtype);
    if (rows && strcmp(path, "-") == 0)
        return cli_fail("%s: --mpi reads parts of files, and '-' is none", option);
    const qkv_status status =
        rows ? qkv_array_read_part(path, type, ranks_rank(), ranks_size(), array, rows, &error)
             : array_read(path, quiet, type, array, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    if (rows) {
        rows[2] = (*array)->shape[(*array)->rank - 2];
        (*array)->shape[(*array)->rank - 2] = rows[1];
    }
    if ((*array)->type == QKV_ARRAY_BOOL)
        return cli_fail("%s %s: holds booleans, not numbers", option, path);
    if ((*array)->type == QKV_ARRAY_I64 && dtype != QKV_F32)
        return cli_fail("%s %s: holds integers, which are read with --dtype f32", option, path);
    rows_to_floats(*array);
    return EXIT_OK;
}

/* q of one dimension is one query, v of one dimension a number for each key. */
static void take_vectors(struct attend_problem *problem) {
    qkv_array *const q = problem->q, *const v = problem->v;
    problem->q_is_vector = q->rank == 1;
    problem->v_is_vector = v->rank == 1;
    if (problem->q_is_vector) {
        q->shape[1] = q->shape[0];
        q->shape[0] = 1;
        q->rank = 2;
    }
    if (problem->v_is_vector) {
        v->shape[1] = 1;
        v->rank = 2;
    }
}

static int read_input(const char *option, const char *path, const struct attend_options *options,
                      int least, int64_t rows[3], qkv_array **array) {
    const int code = read_part(option, path, options->common.quiet, (qkv_dtype)options->dtype.value,
                               rows, array);
    if (code) return code;
    if ((*array)->rank < least || (*array)->rank > 4) {
        char shape[200];
        return cli_fail("%s %s: shape %s is none of [B,H,L,D], [H,L,D], [L,D]%s", option, path,
                        attend_shape_text(*array, shape),
                        least > 1                    ? ""
                        : strcmp(option, "--q") == 0 ? ", [D]"
                                                     : ", [L]");
    }
    return EXIT_OK;
}

static int mismatch(const char *a_name, const qkv_array *a, const char *b_name, const qkv_array *b,
                    const char *rule) {
    char a_shape[200], b_shape[200];
    return cli_fail("%s has shape %s, %s has %s: %s", a_name, attend_shape_text(a, a_shape), b_name,
                    attend_shape_text(b, b_shape), rule);
}

static int check_shapes(const qkv_array *q, const qkv_array *k, const qkv_array *v) {
    if (q->rank != k->rank) return mismatch("--q", q, "--k", k, "the ranks differ");
    if (k->rank != v->rank) return mismatch("--k", k, "--v", v, "the ranks differ");
    if (attend_size(q, 0) != attend_size(k, 0))
        return mismatch("--q", q, "--k", k, "the batches differ");
    if (attend_size(k, 0) != attend_size(v, 0))
        return mismatch("--k", k, "--v", v, "the batches differ");
    if (attend_size(k, 1) != attend_size(v, 1))
        return mismatch("--k", k, "--v", v, "the heads differ");
    if (attend_size(k, 2) != attend_size(v, 2))
        return mismatch("--k", k, "--v", v, "the lengths differ");
    if (attend_size(q, 3) != attend_size(k, 3))
        return mismatch("--q", q, "--k", k, "the head sizes differ");
    if (attend_size(k, 1) == 0 ? attend_size(q, 1) != 0
                               : attend_size(q, 1) % attend_size(k, 1) != 0)
        return mismatch("--q", q, "--k", k, "the heads of q are no multiple of those of k");
    return EXIT_OK;
}

static void apply_numbers(const struct attend_options *options, const struct attend_rules *rules,
                          qkv_attention_desc *desc) {
    if (rules->drops) {
        desc->flags |= QKV_SET_DROPOUT;
        desc->dropout = (float)rules->dropout;
        desc->dropout_seed = (uint64_t)rules->dropout_seed;
    }
    if (options->scale.set) {
        desc->flags |= QKV_SET_SCALE;
        desc->scale = (float)options->scale.value;
    }
    if (options->softcap.set) {
        desc->flags |= QKV_SET_SOFTCAP;
        desc->softcap = (float)options->softcap.value;
    }
}

/* Were they meant as a mask that tells who sees? It is said, since the two differ much. */
static void remark_on_floats(const char *path, const qkv_array *mask, bool quiet) {
    const float *const values = mask->data;
    bool ones = false;
    for (int64_t i = 0; i < mask->n_elems; i++) {
        if (values[i] != 0 && values[i] != 1) return;
        ones |= values[i] == 1;
    }
    if (ones)
        cli_note(quiet,
                 "qkv: --mask %s: floating-point numbers, which are added to scores, though all "
                 "are 0 or 1; to tell who sees, store booleans or integers",
                 path);
}

static const char added[] =
    "; numbers that are added to scores are floating-point, in text with a point: -2.0";

/* As tokenizers make masks. Aligned on the right, their batches would be queries. */
static const char *of_batches(const qkv_array *mask, const qkv_attention_desc *desc) {
    const bool is =
        mask->rank == 2 && mask->shape[0] == desc->n_batch && mask->shape[1] == desc->len_k;
    return is ? "; [batch, keys] is to be [batch,1,1,keys]" : NULL;
}

/* A dimension of 1 repeats; the last may be shorter than the keys, which hides the rest. */
static int apply_mask(const char *path, bool quiet, struct attend_problem *problem) {
    qkv_attention_desc *desc = &problem->desc;
    qkv_error error;
    if (!path) return EXIT_OK;
    if (array_read(path, quiet, QKV_ARRAY_F32, &problem->mask, &error) != QKV_OK)
        return cli_fail("%s", error.message);
    const qkv_array *mask = problem->mask;
    int code = attend_to_booleans("--mask", path, added, problem->mask);
    if (code) return code;
    char shape[200];
    if (mask->rank > 4)
        return cli_fail("--mask %s: shape %s has more than 4 dimensions", path,
                        attend_shape_text(mask, shape));
    const struct attend_fit fit = { { desc->n_batch, desc->n_heads, desc->len_q, desc->len_k },
                                    .n_repeat = 4,
                                    .may_end_early = true,
                                    .note = of_batches(mask, desc) };
    code = attend_broadcast("--mask", path, mask, &fit, desc->mask_stride);
    if (code) return code;
    if (mask->type == QKV_ARRAY_F32) remark_on_floats(path, mask, quiet);
    desc->mask_len_k = attend_size(mask, 3) > 1 ? attend_size(mask, 3) : desc->len_k;
    desc->flags |= QKV_SET_MASK;
    desc->mask = mask->data;
    desc->mask_type = mask->type == QKV_ARRAY_BOOL ? QKV_MASK_BOOL : QKV_MASK_F32;
    return EXIT_OK;
}

static int read_gradient(const char *path, bool quiet, struct attend_problem *problem) {
    if (!path) return EXIT_OK;
    const int code =
        read_part("--grad-out", path, quiet, problem->desc.dtype, NULL, &problem->grad_out);
    if (code) return code;
    const qkv_array *grad = problem->grad_out, *q = problem->q;
    int rank = 0;
    bool same = true;
    for (int d = 4 - problem->rank; d < 4; d++) {
        if ((d == 2 && problem->q_is_vector) || (d == 3 && problem->v_is_vector)) continue;
        same = same && rank < grad->rank &&
               grad->shape[rank] == (d < 3 ? attend_size(q, d) : attend_size(problem->v, 3));
        rank++;
    }
    if (same && rank == grad->rank) return EXIT_OK;
    return mismatch("--grad-out", grad, "--q", q,
                    "it must have the shape of the output, that of q with v's last size");
}

static int read_arrays(const struct attend_options *options, struct attend_problem *problem) {
    int64_t rows_q[3] = { 0 }, rows_k[3] = { 0 }; /* first, all, those that are read */
    const bool parts = options->mpi;
    int code = read_input("--q", options->q, options, 1, parts ? rows_q : NULL, &problem->q);
    if (!code) code = read_input("--k", options->k, options, 2, parts ? rows_k : NULL, &problem->k);
    if (!code) code = read_input("--v", options->v, options, 1, parts ? rows_k : NULL, &problem->v);
    problem->rows = (struct attend_rows){ rows_q[2], rows_k[2], rows_q[0], rows_q[1] };
    if (!code) take_vectors(problem);
    if (!code) code = check_shapes(problem->q, problem->k, problem->v);
    if (!code) problem->rank = problem->q->rank;
    return code;
}

int attend_problem_read(qkv_ctx *ctx, const struct attend_options *options,
                        struct attend_rules *rules, struct attend_problem *problem) {
    *problem = (struct attend_problem){ 0 };
    int code = options->x ? attend_project(ctx, options, problem) : read_arrays(options, problem);
    if (code) return code;
    const qkv_array *q = problem->q, *k = problem->k, *v = problem->v;
    qkv_attention_desc_contiguous(&problem->desc, attend_size(q, 0), attend_size(q, 1),
                                  attend_size(k, 1), attend_size(q, 2), attend_size(k, 2),
                                  attend_size(q, 3), attend_size(v, 3));
    problem->desc.dtype = (qkv_dtype)options->dtype.value;
    problem->desc.arithmetic = (qkv_class)options->arithmetic.value;
    code = attend_packed_read(options, rules, problem);
    if (!code) code = rules_apply(&rules->seen, &problem->desc);
    if (code) return code;
    apply_numbers(options, rules, &problem->desc);
    code = apply_mask(options->mask, options->common.quiet, problem);
    if (!code && options->dmask && problem->desc.mask_type == QKV_MASK_BOOL)
        code = cli_fail("--dmask: %s holds booleans, which have no gradient", options->mask);
    if (!code) code = attend_blocks_read(options, problem);
    if (!code) code = attend_modifiers_read(options, problem);
    return code ? code : read_gradient(options->grad_out, options->common.quiet, problem);
}

void attend_problem_free(struct attend_problem *problem) {
    if (problem->made) problem->q = problem->k = problem->v = NULL;
    attend_made_free(problem->made);
    qkv_array_free(problem->q);
    qkv_array_free(problem->k);
    qkv_array_free(problem->v);
    qkv_array_free(problem->mask);
    qkv_array_free(problem->alibi);
    qkv_array_free(problem->sink);
    qkv_array_free(problem->grad_out);
    qkv_array_free(problem->grad_lse);
    free(problem->offsets);
    free(problem->seg_q);
    free(problem->seg_k);
    free(problem->bits);
    qkv_array_free(problem->cu_q);
    qkv_array_free(problem->cu_k);
    free(problem->block_offsets);
    free(problem->block_index);
}
