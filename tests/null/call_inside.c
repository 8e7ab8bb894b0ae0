/* Pointers inside lists and structs: see nulls.h. The name says which, after a colon. */
#include "null/models.h"
#include "null/nulls.h"
#include "qkv/files.h"
#include "qkv/generate.h"
#include "qkv/page.h"
#include "qkv/patterns.h"
#include "qkv/picture.h"
#include "qkv/train.h"

enum { N = 3, D = 4 };
static float x[N * D], y[N * D], lse[N];
static const double numbers[N * D];
static int32_t ids[] = { 5, 6, 7, 8 };
static qkv_run *run;

static qkv_attention_desc make_desc(void) {
    qkv_attention_desc desc;
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, N, N, D, D);
    return desc;
}

/* ---- Attention ------------------------------------------------------------------------------- */

static qkv_status merge(void) {
    const qkv_attention_desc desc = make_desc();
    const void *const o_parts[] = { P(0, x) };
    const float *const lse_parts[] = { P(1, lse) };
    return qkv_attention_merge(null_ctx, &desc, 1, o_parts, lse_parts, y, NULL);
}
static qkv_status stats_merge(void) {
    const qkv_attention_desc desc = make_desc();
    static float entropy[2][N];
    qkv_attention_stats stats, part;
    qkv_attention_stats_contiguous(&stats, &desc);
    part = stats;
    stats.entropy = entropy[0];
    part.entropy = P(2, entropy[1]);
    const qkv_attention_stats *const parts[] = { P(0, &part) };
    const float *const lse_parts[] = { P(1, lse) };
    return qkv_attention_stats_merge(null_ctx, &desc, 1, parts, lse_parts, NULL, &stats);
}
static qkv_status masked(void) {
    qkv_attention_desc desc = make_desc();
    static const float mask[N * N], slopes[1], sinks[1], distances[1];
    static const int64_t kv_len[] = { N }, q_len[] = { N }, prefix[] = { 1 };
    static const int32_t segments[N];
    desc.flags = QKV_SET_MASK | QKV_SET_ALIBI | QKV_SET_SINKS | QKV_SET_KV_LEN | QKV_SET_Q_LEN |
                 QKV_SET_CAUSAL | QKV_SET_PREFIX_LEN | QKV_SET_SEGMENTS | QKV_SET_DISTANCE_BIAS;
    desc.mask = P(0, mask);
    desc.mask_type = QKV_MASK_F32;
    desc.mask_stride[2] = N;
    desc.mask_stride[3] = 1;
    desc.alibi_slopes = P(1, slopes);
    desc.sinks = P(2, sinks);
    desc.kv_len = P(3, kv_len);
    desc.q_len = P(4, q_len);
    desc.prefix_len = P(5, prefix);
    desc.seg_q = P(6, segments);
    desc.seg_k = P(7, segments);
    desc.distance_bias = P(8, distances);
    return qkv_attention_forward(null_ctx, &desc, x, x, x, y, NULL, NULL);
}
static qkv_status with_stats(void) {
    qkv_attention_desc desc = make_desc();
    qkv_attention_stats stats;
    qkv_attention_stats_contiguous(&stats, &desc);
    desc.flags = QKV_SET_STATS;
    desc.stats = P(0, &stats);
    return qkv_attention_forward(null_ctx, &desc, x, x, x, y, NULL, NULL);
}
static qkv_status backward(void) {
    const qkv_attention_desc desc = make_desc();
    static float dq[N * D], dk[N * D], dv[N * D];
    qkv_attention_grads grads;
    qkv_attention_grads_contiguous(&grads, &desc);
    grads.d_o = P(0, x);
    grads.d_q = P(1, dq);
    grads.d_k = P(2, dk);
    grads.d_v = P(3, dv);
    null_must(qkv_attention_forward(null_ctx, &desc, x, x, x, y, lse, NULL));
    return qkv_attention_backward(null_ctx, &desc, x, x, x, y, lse, &grads, NULL);
}

/* ---- Models ---------------------------------------------------------------------------------- */

static qkv_encoding tokens(void) { return (qkv_encoding){ .n = 4, .ids = P(1, ids) }; }

static qkv_status model_run(void) {
    const qkv_encoding input = tokens();
    const qkv_encoding *const inputs[] = { P(0, &input) };
    return qkv_model_run(null_ctx, null_bert, 1, inputs, 0, NULL, &run, &null_error);
}
static qkv_model *open_bart(void) {
    qkv_model *bart;
    null_must(
        qkv_model_open(QKV_TEST_DATA "/golden/decoder/bart_1/mild", NULL, &bart, &null_error));
    return bart;
}
static qkv_status run_pair(void) {
    const qkv_encoding input = tokens(), other = { .n = 4, .ids = ids };
    const qkv_encoding *const sources[] = { P(0, &input) }, *const targets[] = { P(2, &other) };
    return qkv_model_run(
        null_ctx, open_bart(), 1, sources, 0,
        &(qkv_run_options){ .struct_size = sizeof(qkv_run_options), .targets = targets }, &run,
        &null_error);
}
static qkv_status embed(void) {
    static float vectors[4096];
    const qkv_encoding input = tokens();
    const qkv_encoding *const inputs[] = { P(0, &input) };
    return qkv_model_embed(null_ctx, null_bert, 1, inputs, NULL, vectors, &null_error);
}
static qkv_model *open_gpt2(void) {
    qkv_model *gpt2;
    null_must(
        qkv_model_open(QKV_TEST_DATA "/golden/decoder/gpt2_1/mild", NULL, &gpt2, &null_error));
    return gpt2;
}
static qkv_status perplexity(void) {
    const qkv_encoding input = tokens();
    const qkv_encoding *const inputs[] = { P(0, &input) };
    qkv_perplexity_report report = qkv_perplexity_report_init();
    return qkv_perplexity(null_ctx, open_gpt2(), 1, inputs, 0, &report, &null_error);
}
static qkv_status pair_perplexity(void) {
    const qkv_encoding source = tokens(), target = { .n = 4, .ids = P(3, ids) };
    const qkv_encoding *const sources[] = { P(0, &source) }, *const targets[] = { P(2, &target) };
    qkv_perplexity_report report = qkv_perplexity_report_init();
    return qkv_perplexity_pairs(null_ctx, open_bart(), 1, sources, targets, &report, &null_error);
}
static qkv_status generate(void) {
    static const int64_t lengths[] = { 1 };
    const qkv_encoding input = { .n = 4, .ids = P(0, ids) };
    const char *const stop[] = { P(2, "x") };
    qkv_generate_options options = qkv_generate_options_init();
    qkv_generation *made;
    options.max_new = 2;
    options.bad_words = P(1, ids);
    options.bad_word_lengths = P(3, lengths);
    options.n_bad_words = 1;
    options.stop = P(4, stop);
    options.eos = P(5, ids);
    options.n_stop = options.n_eos = 1;
    return qkv_generate(null_ctx, open_gpt2(), &input, &options, &made, &null_error);
}
static qkv_status heads_run(void) {
    const qkv_token_list list = { P(0, qkv_model_tokenizer(null_bert, QKV_SOURCE)),
                                  P(1, null_tokens) };
    qkv_heads *made;
    return qkv_heads_open_run(null_ctx, null_run, QKV_SELF, 0, &list, NULL, &made, &null_error);
}
static qkv_status heads_ids(void) {
    const qkv_encoding input = { .n = null_tokens->n, .ids = P(0, null_tokens->ids) };
    const qkv_token_list list = { qkv_model_tokenizer(null_bert, QKV_SOURCE), &input };
    qkv_heads *made;
    return qkv_heads_open_run(null_ctx, null_run, QKV_SELF, 0, &list, NULL, &made, &null_error);
}
static qkv_status heads_arrays(void) {
    static const float four[4];
    static const char *const names[] = { "a", "b" }, *const lack[] = { "a", NULL };
    qkv_heads_arrays arrays = qkv_heads_arrays_init();
    qkv_heads *made;
    arrays.q = P(0, four);
    arrays.k = P(1, four);
    arrays.n_heads = arrays.n_kv_heads = 1;
    arrays.n_queries = arrays.n_keys = arrays.head_dim = 2;
    arrays.keys = P(2, names) ? names : lack;
    return qkv_heads_open_arrays(null_ctx, &arrays, &made, &null_error);
}
static qkv_status steps(void) {
    const qkv_encoding input = { .n = null_tokens->n, .ids = P(0, null_tokens->ids) };
    qkv_steps *made;
    return qkv_inspect_steps(null_bert, null_run, 0, &input, 0, 0, 1, &made, &null_error);
}
static qkv_status words(void) {
    static int32_t word[64];
    static uint8_t content[64];
    const qkv_tokenizer *const tokenizer = qkv_model_tokenizer(null_bert, QKV_SOURCE);
    qkv_encoding input = *null_tokens;
    input.ids = P(0, input.ids);
    input.special = P(1, input.special);
    qkv_inspect_content(tokenizer, &input, content);
    return qkv_inspect_words(tokenizer, &input, word) ? QKV_OK : QKV_ERR_ARGUMENT;
}
static qkv_status cut(void) {
    qkv_encoding input = *null_tokens;
    input.ids = P(0, input.ids);
    input.types = P(1, input.types);
    input.special = P(2, input.special);
    input.begin = P(3, input.begin);
    input.end = P(4, input.end);
    qkv_tokenizer_cut(NULL, &input, 3);
    return QKV_OK;
}
static qkv_status head_view(void) {
    const qkv_attention_desc desc = make_desc();
    const qkv_head_view whole = { sizeof whole, &desc, x, x, lse, 0, 0 };
    const qkv_head_view head = { sizeof head, P(0, &desc), P(1, x), P(2, x), P(3, lse), 0, 0 };
    qkv_divergence found = qkv_divergence_init();
    return qkv_inspect_divergence(null_ctx, &head, &whole, 0, NULL, &found, NULL, &null_error);
}
static qkv_status arrays_write(void) {
    const qkv_array array = { QKV_ARRAY_F32, 1, { 2 }, 2, P(0, x), NULL };
    const qkv_array *const arrays[] = { P(1, &array) };
    const char *const paths[] = { P(2, NULL_FOLDER "/several.npy") };
    return qkv_arrays_write(1, paths, arrays, &null_error);
}
static qkv_status train(void) {
    qkv_train_options own = qkv_train_options_init();
    own.text = P(0, NULL_FOLDER "/text");
    own.out = P(1, NULL_FOLDER "/model");
    own.n_layers = own.n_heads = own.n_steps = own.batch = 1;
    own.warmup = 0;
    own.hidden = own.intermediate = 4;
    own.vocab_size = 200;
    own.max_len = 8;
    return qkv_train(null_ctx, &own, &null_error);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

#define PICTURE NULL_FOLDER "/inside.svg"

static qkv_status heatmap(void) {
    const qkv_heatmap map = {
        .struct_size = sizeof map, .n_rows = N, .n_cols = N, .weights = P(0, x)
    };
    return qkv_picture_heatmap_write(&map, PICTURE, &null_error);
}
static qkv_status grid(void) {
    const qkv_head_grid heads = {
        .struct_size = sizeof heads, .n_layers = 1, .n_heads = 1, .n = N, .weights = P(0, x)
    };
    return qkv_picture_grid_write(&heads, PICTURE, &null_error);
}
static qkv_status curve(void) {
    const qkv_curve loss = {
        .struct_size = sizeof loss, .n = N, .x = P(0, numbers), .y = P(1, numbers)
    };
    return qkv_picture_curve_write(&loss, PICTURE, &null_error);
}
static qkv_status chart(void) {
    const qkv_series series = { .y = P(0, numbers) };
    const qkv_panel panel = { .n_series = 1, .series = P(1, &series) };
    const qkv_chart one = { .struct_size = sizeof one,
                            .n = N,
                            .n_panels = 1,
                            .panels = P(2, &panel),
                            .panel_bytes = sizeof panel,
                            .series_bytes = sizeof series };
    return qkv_picture_chart_write(&one, PICTURE, &null_error);
}
static qkv_head_profile profile(void) {
    return (qkv_head_profile){ .struct_size = sizeof(qkv_head_profile),
                               .n_queries = N,
                               .n_keys = N,
                               .entropy = P(0, numbers),
                               .largest = P(1, numbers),
                               .received = P(0, numbers),
                               .by_offset = P(0, numbers) };
}
static qkv_status queries(void) {
    const qkv_head_profile one = profile();
    return qkv_picture_queries_write(&one, PICTURE, &null_error);
}
static qkv_status received(void) {
    const qkv_head_profile one = profile();
    return qkv_picture_received_write(&one, PICTURE, &null_error);
}
static qkv_status offsets(void) {
    const qkv_head_profile one = profile();
    return qkv_picture_offsets_write(&one, PICTURE, &null_error);
}
static qkv_status page(void) {
    const char *const names[] = { "a", P(0, "b"), "c" };
    const qkv_page_head head = { .q = P(1, x), .k = P(2, x), .lse = P(3, lse) };
    const qkv_page one = { .struct_size = sizeof one,
                           .n = N,
                           .head_dim = D,
                           .scale = 0.5f,
                           .query = -1,
                           .tokens = P(4, names),
                           .n_heads = 1,
                           .heads = P(5, &head),
                           .head_bytes = sizeof head };
    return qkv_page_write(&one, NULL_FOLDER "/inside.html", NULL, &null_error);
}
static qkv_status points(void) {
    const qkv_point_map map = {
        .struct_size = sizeof map, .n_queries = N, .n_keys = N, .xy = P(0, numbers)
    };
    return qkv_picture_points_write(&map, PICTURE, &null_error);
}

const null_call null_inside[] = {
    { "qkv_attention_merge: o_parts[0], lse_parts[0]", merge, "rr" },
    { "qkv_attention_stats_merge: parts[0], lse_parts[0], entropy", stats_merge, "rrr" },
    { "qkv_attention_forward: mask, slopes, sinks, lengths, segments, distances", masked,
      "rrrrrrrrr" },
    { "qkv_attention_forward: stats", with_stats, "r" },
    { "qkv_attention_backward: d_o, d_q, d_k, d_v", backward, "rrrr" },
    { "qkv_model_run: inputs[0], ids", model_run, "rr" },
    { "qkv_model_run: sources[0], ids, targets[0]", run_pair, "rrr" },
    { "qkv_model_embed: inputs[0], ids", embed, "rr" },
    { "qkv_perplexity: texts[0], ids", perplexity, "rr" },
    { "qkv_perplexity_pairs: sources[0], targets[0], ids", pair_perplexity, "rrrr" },
    { "qkv_generate: ids, bad words, stop[0], lengths, stop, eos", generate, "rrrrrr" },
    { "qkv_heads_open_run: tokenizer, tokens", heads_run, "rr" },
    { "qkv_heads_open_run: ids", heads_ids, "r" },
    { "qkv_heads_open_arrays: q, k, a name", heads_arrays, "rrr" },
    { "qkv_inspect_steps: ids", steps, "r" },
    { "qkv_inspect_words: ids, special", words, "--" },
    { "qkv_tokenizer_cut: ids, types, special, begin, end", cut, "nnnnn" },
    { "qkv_inspect_divergence: desc, q, k, lse", head_view, "rrrr" },
    { "qkv_arrays_write: data, arrays[0], paths[0]", arrays_write, "rrr" },
    { "qkv_train: text, out", train, "-r" },
    { "qkv_picture_heatmap_write: weights", heatmap, "r" },
    { "qkv_picture_grid_write: weights", grid, "r" },
    { "qkv_picture_curve_write: x, y", curve, "rr" },
    { "qkv_picture_chart_write: y, series, panels", chart, "rrr" },
    { "qkv_picture_queries_write: entropy, largest", queries, "rr" },
    { "qkv_picture_received_write: received", received, "rn" },
    { "qkv_picture_offsets_write: by_offset", offsets, "rn" },
    { "qkv_page_write: tokens[1], q, k, lse, tokens, heads", page, "nrrrrr" },
    { "qkv_picture_points_write: xy", points, "r" },
    { 0 },
};
