/*
 * The last include of an isa_<name>.c: puts what the templates made into the one symbol that the
 * object exports.
 */
#include "core/cpu.h"
#include "kernels/table.h"
#include "kernels/tmpl/vmath.h"

#include "kernels/tmpl/amx.h"
#include "kernels/tmpl/dp.h"
#include "kernels/tmpl/gemm_tile.h"
#include "kernels/tmpl/int8.h"
#include "kernels/tmpl/pack.h"
#include "kernels/tmpl/pack_dp.h"

#include "kernels/tmpl/attend.h"
#include "kernels/tmpl/attend_bwd.h"
#include "kernels/tmpl/attend_classes.h"
#include "kernels/tmpl/columns.h"
#include "kernels/tmpl/columns_weights.h"
#include "kernels/tmpl/decode.h"
#include "kernels/tmpl/layer.h"
#include "kernels/tmpl/merge.h"
#include "kernels/tmpl/tsne.h"
#include "kernels/tmpl/tsne_tree.h"

#ifndef ISA_FAST_DP
#define ISA_FAST_DP 0
#endif

const qkvi_kernels ISA_TABLE = {
    .name = ISA_NAME,
    .need = ISA_NEED,
    .mr = V_MR,
    .fast_dp = ISA_FAST_DP,
    .gemm_tile = gemm_tile,
    .half_tile = { [QKVI_CLASS_DP] = dp_tile,
                   [QKVI_CLASS_AMX] = amx_tile,
                   [QKVI_CLASS_AMX_TILES] = amx_tile },
    .int8_round = int8_round,
    .int8_tile = int8_tile,
    .attend_block = attend_block,
    .attend_small = attend_small,
    .columns_block = columns_block,
    .columns_end = columns_end,
    .columns_weights = columns_weights,
    .pack_channels = EACH_TYPE(pack_channels),
    .pack_keys = EACH_TYPE(pack_keys),
    .pack_channel_pairs = pack_channel_pairs,
    .pack_key_pairs = pack_key_pairs,
    .load_rows = EACH_TYPE(load_rows),
    .store_rows = EACH_TYPE(store_rows),
    .mask_any = mask_any,
    .bwd = BWD_KERNELS,
    .decode_split = decode_split,
    .decode_join = decode_join,
    .decode_finish = decode_finish,
    .merge_row = EACH_TYPE(merge_row),
    .layer = LAYER_KERNELS,
    .tsne = { TSNE_KERNELS, TSNE_TREE_KERNELS },
};
