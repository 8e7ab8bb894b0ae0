/*
 * The last include of an isa_<name>.c, which defines ISA(x), ISA_NAME and ISA_NEED: puts what the
 * templates made into tables. With ISA_PART defined as one of the parts below, only that part's
 * table is made, the one symbol that its object exports; as ISA_TABLE, only the table of all. A set
 * that takes parts of another one, and products of floats, defines SHARED(x) as the symbols of that
 * one.
 */
#include "core/cpu.h"
#include "kernels/table.h"
#include "kernels/tmpl/vmath.h"

#define ISA_ALL     0
#define ISA_TABLE   1
#define ISA_GEMM    2
#define ISA_ATTEND  3
#define ISA_COLUMNS 4
#define ISA_ROWS    5
#define ISA_BWD     6
#define ISA_DECODE  7
#define ISA_LAYER   8
#define ISA_TSNE    9

#ifndef ISA_PART
#define ISA_PART ISA_ALL
#endif
#define ISA_MAKES(part) (ISA_PART == ISA_ALL || ISA_PART == (part))

#ifndef ISA_FAST_DP
#define ISA_FAST_DP 0
#endif
#ifdef SHARED
#define ISA_SHARES true
#else
#define ISA_SHARES false
#define SHARED     ISA
#endif

/* A part includes templates of which it takes some functions. */
#if ISA_PART != ISA_ALL
#pragma GCC diagnostic ignored "-Wunused-function"
#endif

extern const qkvi_gemm_kernels ISA(gemm), SHARED(gemm);
extern const qkvi_attend_kernels ISA(attend), SHARED(attend);
extern const qkvi_columns_kernels ISA(columns);
extern const qkvi_rows_kernels SHARED(rows);
extern const qkvi_bwd_kernels ISA(bwd), SHARED(bwd);
extern const qkvi_decode_kernels SHARED(decode);
extern const qkvi_layer_kernels SHARED(layer);
extern const qkvi_tsne_kernels SHARED(tsne);

#if ISA_MAKES(ISA_GEMM)
#include "kernels/tmpl/amx.h"
#include "kernels/tmpl/dp.h"
#include "kernels/tmpl/gemm_tile.h"
#include "kernels/tmpl/int8.h"

/* A jump. */
static void shared_tile(int n_rows, int n_cols, int64_t k, const float *a, int64_t a_row,
                        int64_t a_col, const float *b, float *c, int64_t c_row, int add,
                        const float *bias, const float *ahead, int64_t ahead_rows) {
    SHARED(gemm).tile(n_rows, n_cols, k, a, a_row, a_col, b, c, c_row, add, bias, ahead,
                      ahead_rows);
}

const qkvi_gemm_kernels ISA(gemm) = {
    .tile = ISA_SHARES ? shared_tile : gemm_tile,
    .half_tile = { [QKVI_CLASS_DP] = dp_tile,
                   [QKVI_CLASS_AMX] = amx_tile,
                   [QKVI_CLASS_AMX_TILES] = amx_tile },
    .int8_round = int8_round,
    .int8_tile = int8_tile,
};
#endif

#if ISA_MAKES(ISA_ATTEND)
#include "kernels/tmpl/attend_classes.h"

const qkvi_attend_kernels ISA(attend) = {
    .block = attend_block,
    .small = attend_small,
    .mask_any = mask_any,
    .stats_rows = attend_stats_rows,
    .classes = attend_classes,
};
#endif

#if ISA_MAKES(ISA_COLUMNS)
#include "kernels/tmpl/columns_weights.h"

const qkvi_columns_kernels ISA(columns) = {
    .block = columns_block,
    .end = columns_end,
    .weights = columns_weights,
};
#endif

#if ISA_MAKES(ISA_ROWS)
#include "kernels/tmpl/merge.h"
#include "kernels/tmpl/pack_dp.h"

const qkvi_rows_kernels ISA(rows) = {
    .pack_channels = EACH_TYPE(pack_channels),
    .pack_keys = EACH_TYPE(pack_keys),
    .pack_channel_pairs = pack_channel_pairs,
    .pack_key_pairs = pack_key_pairs,
    .load = EACH_TYPE(load_rows),
    .store = EACH_TYPE(store_rows),
    .merge = EACH_TYPE(merge_row),
};
#endif

#if ISA_MAKES(ISA_BWD)
#include "kernels/tmpl/attend_bwd.h"

const qkvi_bwd_kernels ISA(bwd) = BWD_KERNELS;
#endif

#if ISA_MAKES(ISA_DECODE)
#include "kernels/tmpl/decode.h"

const qkvi_decode_kernels ISA(decode) = {
    .split = decode_split,
    .join = decode_join,
    .finish = decode_finish,
};
#endif

#if ISA_MAKES(ISA_LAYER)
#include "kernels/tmpl/layer.h"

const qkvi_layer_kernels ISA(layer) = LAYER_KERNELS;
#endif

#if ISA_MAKES(ISA_TSNE)
#include "kernels/tmpl/tsne.h"
#include "kernels/tmpl/tsne_tree.h"

const qkvi_tsne_kernels ISA(tsne) = { TSNE_KERNELS, TSNE_TREE_KERNELS };
#endif

#if ISA_MAKES(ISA_TABLE)
const qkvi_kernels ISA(kernels) = {
    .name = ISA_NAME,
    .need = ISA_NEED,
    .mr = V_MR,
    .fast_dp = ISA_FAST_DP,
    .gemm = &ISA(gemm),
    .attend = &ISA(attend),
    .columns = &ISA(columns),
    .rows = &SHARED(rows),
    .bwd = &ISA(bwd),
    .decode = &SHARED(decode),
    .layer = &SHARED(layer),
    .tsne = &SHARED(tsne),
};
#endif
