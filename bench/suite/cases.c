/*
 * The cases of `qkv bench`: a line each. The first word of a name is its suite. --compare and
 * bench/peers.py find cases by their names, which therefore must not change.
 */
#include <string.h>

#include "suite/suite.h"

#define F  BENCH_FORWARD
#define B  BENCH_BACKWARD
#define FB BENCH_BOTH
#define D  BENCH_DECODE
#define C  BENCH_COLUMNS

/* clang-format off */
static const struct bench_case cases[] = { /* a line is a case */
    /* name, call, type, { batch, heads, kv heads, queries, keys, channels, those of v }, rule */
    { "forward f32 H1 L4096 D64", F, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, NULL },
    { "forward f32 H1 L4096 D128", F, QKV_F32, { 1, 1, 1, 4096, 4096, 128, 128 }, NULL },
    { "forward f32 H12 L2048 D64", F, QKV_F32, { 1, 12, 12, 2048, 2048, 64, 64 }, NULL },
    { "forward bf16 H1 L4096 D64", F, QKV_BF16, { 1, 1, 1, 4096, 4096, 64, 64 }, NULL },
    { "forward bf16 H1 L4096 D128", F, QKV_BF16, { 1, 1, 1, 4096, 4096, 128, 128 }, NULL },
    { "forward bf16 H12 L2048 D64", F, QKV_BF16, { 1, 12, 12, 2048, 2048, 64, 64 }, NULL },
    { "forward f16 H1 L4096 D64", F, QKV_F16, { 1, 1, 1, 4096, 4096, 64, 64 }, NULL },
    { "causal f32 H1 L4096 D64", F, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_causal },
    { "causal f32 H1 L4096 D128", F, QKV_F32, { 1, 1, 1, 4096, 4096, 128, 128 }, bench_causal },
    { "causal f32 H12 L1024 D64", F, QKV_F32, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_causal },
    { "causal f32 H4 L4096 D128", F, QKV_F32, { 1, 4, 4, 4096, 4096, 128, 128 }, bench_causal },
    { "causal f32 H4 L1024 D192 Dv128", F, QKV_F32, { 1, 4, 4, 1024, 1024, 192, 128 }, bench_causal },
    { "causal bf16 H12 L1024 D64", F, QKV_BF16, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_causal },
    { "causal bf16 H4 L4096 D128", F, QKV_BF16, { 1, 4, 4, 4096, 4096, 128, 128 }, bench_causal },
    { "causal bf16 H4 L1024 D192 Dv128", F, QKV_BF16, { 1, 4, 4, 1024, 1024, 192, 128 }, bench_causal },
    { "masks f32 H12 L1024 D64 bool", F, QKV_F32, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_bools },
    { "masks f32 H12 L1024 D64 bits", F, QKV_F32, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_bits },
    { "masks f32 H12 L1024 D64 additive", F, QKV_F32, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_numbers },
    { "masks f32 H12 L4096 D64 window", F, QKV_F32, { 1, 12, 12, 4096, 4096, 64, 64 }, bench_window },
    { "masks f32 H12 L4096 D64 segments", F, QKV_F32, { 1, 12, 12, 4096, 4096, 64, 64 }, bench_segments },
    { "masks f32 H12 L4096 D64 blocks", F, QKV_F32, { 1, 12, 12, 4096, 4096, 64, 64 }, bench_blocks },
    { "masks bf16 H12 L1024 D64 bool", F, QKV_BF16, { 1, 12, 12, 1024, 1024, 64, 64 }, bench_bools },
    { "gqa f32 H32:8 L2048 D128 causal", F, QKV_F32, { 1, 32, 8, 2048, 2048, 128, 128 }, bench_causal },
    { "gqa f32 H32:1 L1024 D64", F, QKV_F32, { 1, 32, 1, 1024, 1024, 64, 64 }, NULL },
    { "gqa bf16 H32:8 L2048 D128 causal", F, QKV_BF16, { 1, 32, 8, 2048, 2048, 128, 128 }, bench_causal },
    { "decode f32 H32:8 L8192 D128", D, QKV_F32, { 1, 32, 8, 1, 8192, 128, 128 }, NULL },
    { "decode f32 H12 L1024 D64", D, QKV_F32, { 1, 12, 12, 1, 1024, 64, 64 }, NULL },
    { "decode f32 B16 H32:8 L1024 D128", D, QKV_F32, { 16, 32, 8, 1, 1024, 128, 128 }, NULL },
    { "decode bf16 H32:8 L8192 D128", D, QKV_BF16, { 1, 32, 8, 1, 8192, 128, 128 }, NULL },
    { "decode f16 H32:8 L8192 D128", D, QKV_F16, { 1, 32, 8, 1, 8192, 128, 128 }, NULL },
    { "decode int8 H32:8 L8192 D128", D, QKV_I8, { 1, 32, 8, 1, 8192, 128, 128 }, NULL },
    { "varlen f32 B16 H12 L64-1024 D64", F, QKV_F32, { 16, 12, 12, 1024, 1024, 64, 64 }, bench_packed },
    { "varlen f32 B16 H12 L64-1024 D64 causal", F, QKV_F32, { 16, 12, 12, 1024, 1024, 64, 64 }, bench_packed_causal },
    { "varlen bf16 B16 H12 L64-1024 D64", F, QKV_BF16, { 16, 12, 12, 1024, 1024, 64, 64 }, bench_packed },
    { "stats f32 H1 L4096 D64 spread", F, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_rows_spread },
    { "stats f32 H1 L4096 D64 keys", F, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_rows_keys },
    { "stats f32 H1 L4096 D64 rows", F, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_rows_all },
    { "stats f32 H1 L4096 D64 received", C, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_columns_received },
    { "stats f32 H1 L4096 D64 columns", C, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, bench_columns_all },
    { "backward f32 H1 L4096 D64", B, QKV_F32, { 1, 1, 1, 4096, 4096, 64, 64 }, NULL },
    { "backward f32 H4 L2048 D64", B, QKV_F32, { 1, 4, 4, 2048, 2048, 64, 64 }, NULL },
    { "backward f32 H4 L2048 D128 causal", B, QKV_F32, { 1, 4, 4, 2048, 2048, 128, 128 }, bench_causal },
    { "backward f32 H4 L2048 D64 both", FB, QKV_F32, { 1, 4, 4, 2048, 2048, 64, 64 }, NULL },
    { "backward f32 H4 L2048 D128 causal both", FB, QKV_F32, { 1, 4, 4, 2048, 2048, 128, 128 }, bench_causal },
    { "backward bf16 H4 L2048 D64", B, QKV_BF16, { 1, 4, 4, 2048, 2048, 64, 64 }, NULL },
    { "backward bf16 H4 L2048 D64 both", FB, QKV_BF16, { 1, 4, 4, 2048, 2048, 64, 64 }, NULL },
    { "backward bf16 H4 L2048 D128 causal both", FB, QKV_BF16, { 1, 4, 4, 2048, 2048, 128, 128 }, bench_causal },
    { "small f32 H12 L11 D64", F, QKV_F32, { 1, 12, 12, 11, 11, 64, 64 }, NULL },
    { "small f32 H12 L16 D64 causal", F, QKV_F32, { 1, 12, 12, 16, 16, 64, 64 }, bench_causal },
    { "small f32 H12 L64 D64", F, QKV_F32, { 1, 12, 12, 64, 64, 64, 64 }, NULL },
    { "small f32 B8 H12 L128 D64", F, QKV_F32, { 8, 12, 12, 128, 128, 64, 64 }, NULL },
    { "small bf16 H12 L11 D64", F, QKV_BF16, { 1, 12, 12, 11, 11, 64, 64 }, NULL },
    { "small bf16 B8 H12 L128 D64", F, QKV_BF16, { 8, 12, 12, 128, 128, 64, 64 }, NULL },
};
/* clang-format on */

const struct bench_case *bench_case_at(int index) {
    return index < (int)(sizeof cases / sizeof *cases) ? &cases[index] : NULL;
}

int bench_suite_length(const char *name) { return (int)strcspn(name, " "); }

bool bench_case_is(const struct bench_case *c, const char *word) {
    for (const char *at = c->name; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        if (strlen(word) == n && strncmp(at, word, n) == 0) return true;
        at += n;
    }
    return strcmp(c->name, word) == 0;
}
