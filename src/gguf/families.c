/*
 * Names of tensors: see families.h. Facts are from llama.cpp's gguf-py/gguf/constants.py and
 * tensor_mapping.py (names), and conversion/ (what it changes).
 */
#include "gguf/families.h"

#include <inttypes.h>

/* ---- Rows ------------------------------------------------------------------------------------ */

#define DECODER_ENDS                                                                               \
    .layer = "model.layers.", .ends = { { "token_embd", "model.embed_tokens", false },             \
                                        { "output_norm", "model.norm", false },                    \
                                        { "output", "lm_head", true } }

#define ATTENTION                                                                                  \
    { "attn_q", "self_attn.q_proj", false }, { "attn_k", "self_attn.k_proj", false },              \
        { "attn_v", "self_attn.v_proj", false }, {                                                 \
        "attn_output", "self_attn.o_proj", false                                                   \
    }
#define MLP                                                                                        \
    { "ffn_gate", "mlp.gate_proj", false }, { "ffn_up", "mlp.up_proj", false }, {                  \
        "ffn_down", "mlp.down_proj", false                                                         \
    }
#define HEAD_NORMS                                                                                 \
    { "attn_q_norm", "self_attn.q_norm", false }, { "attn_k_norm", "self_attn.k_norm", false }
#define PRE_NORMS                                                                                  \
    { "attn_norm", "input_layernorm", false }, { "ffn_norm", "post_attention_layernorm", false }
#define GEMMA_NORMS                                                                                \
    { "attn_norm", "input_layernorm", false }, { "ffn_norm", "pre_feedforward_layernorm", false }, \
        OUTPUT_NORMS
#define OUTPUT_NORMS                                                                               \
    { "post_attention_norm", "post_attention_layernorm", false }, {                                \
        "post_ffw_norm", "post_feedforward_layernorm", false                                       \
    }

#define BERT_ENDS(prefix)                                                                          \
    { "token_embd", prefix "embeddings.word_embeddings", false },                                  \
        { "position_embd", prefix "embeddings.position_embeddings", false }, {                     \
        "token_embd_norm", prefix "embeddings.LayerNorm", false                                    \
    }

static const qkvi_gguf_family families[] = {
    { .arch = "llama",
      .model_type = "llama",
      DECODER_ENDS,
      .permuted = true,
      .block = { ATTENTION, MLP, PRE_NORMS } },
    { .arch = "smollm3",
      .model_type = "smollm3",
      DECODER_ENDS,
      .permuted = true,
      .block = { ATTENTION, MLP, PRE_NORMS } },
    { .arch = "qwen2",
      .model_type = "qwen2",
      DECODER_ENDS,
      .block = { ATTENTION, MLP, PRE_NORMS } },
    { .arch = "qwen3",
      .model_type = "qwen3",
      DECODER_ENDS,
      .block = { ATTENTION, MLP, PRE_NORMS, HEAD_NORMS } },
    { .arch = "olmo2",
      .model_type = "olmo2",
      DECODER_ENDS,
      .block = { ATTENTION, MLP, HEAD_NORMS, OUTPUT_NORMS } },
    { .arch = "phi3",
      .model_type = "phi3",
      DECODER_ENDS,
      .keeps_fused = true,
      .block = { { "attn_qkv", "self_attn.qkv_proj", false },
                 { "attn_output", "self_attn.o_proj", false },
                 { "ffn_up", "mlp.gate_up_proj", false },
                 { "ffn_down", "mlp.down_proj", false },
                 PRE_NORMS } },
    { .arch = "gemma",
      .model_type = "gemma",
      DECODER_ENDS,
      .adds_one = true,
      .block = { ATTENTION, MLP, PRE_NORMS } },
    { .arch = "gemma2",
      .model_type = "gemma2",
      DECODER_ENDS,
      .adds_one = true,
      .swa = 2,
      .block = { ATTENTION, MLP, GEMMA_NORMS } },
    { .arch = "gemma3",
      .model_type = "gemma3_text",
      DECODER_ENDS,
      .adds_one = true,
      .swa = 6,
      .block = { ATTENTION, MLP, GEMMA_NORMS, HEAD_NORMS } },
    { .arch = "modern-bert",
      .model_type = "modernbert",
      .layer = "model.layers.",
      .keeps_fused = true,
      .swa = 3,
      .ends = { { "token_embd", "model.embeddings.tok_embeddings", false },
                { "token_embd_norm", "model.embeddings.norm", false },
                { "output_norm", "model.final_norm", false } },
      .block = { { "attn_norm", "attn_norm", true }, /* the first layer has none */
                 { "attn_qkv", "attn.Wqkv", false },
                 { "attn_output", "attn.Wo", false },
                 { "ffn_norm", "mlp_norm", false },
                 { "ffn_up", "mlp.Wi", false },
                 { "ffn_down", "mlp.Wo", false } } },
    { .arch = "gpt2",
      .model_type = "gpt2",
      .layer = "transformer.h.",
      .keeps_fused = true,
      .turns = true,
      .ends = { { "token_embd", "transformer.wte", false },
                { "position_embd", "transformer.wpe", false },
                { "output_norm", "transformer.ln_f", false },
                { "output", "lm_head", true } },
      .block = { { "attn_norm", "ln_1", false },
                 { "attn_qkv", "attn.c_attn", false },
                 { "attn_output", "attn.c_proj", false },
                 { "ffn_norm", "ln_2", false },
                 { "ffn_up", "mlp.c_fc", false },
                 { "ffn_down", "mlp.c_proj", false } } },
    { .arch = "gptneox",
      .model_type = "gpt_neox",
      .layer = "gpt_neox.layers.",
      .keeps_fused = true,
      .by_head = true,
      .ends = { { "token_embd", "gpt_neox.embed_in", false },
                { "output_norm", "gpt_neox.final_layer_norm", false },
                { "output", "embed_out", true } },
      .block = { { "attn_norm", "input_layernorm", false },
                 { "attn_qkv", "attention.query_key_value", false },
                 { "attn_output", "attention.dense", false },
                 { "ffn_norm", "post_attention_layernorm", false },
                 { "ffn_up", "mlp.dense_h_to_4h", false },
                 { "ffn_down", "mlp.dense_4h_to_h", false } } },
    { .arch = "bloom",
      .model_type = "bloom",
      .layer = "transformer.h.",
      .keeps_fused = true,
      .by_head = true,
      .ends = { { "token_embd", "transformer.word_embeddings", false },
                { "token_embd_norm", "transformer.word_embeddings_layernorm", false },
                { "output_norm", "transformer.ln_f", false },
                { "output", "lm_head", true } },
      .block = { { "attn_norm", "input_layernorm", false },
                 { "attn_qkv", "self_attention.query_key_value", false },
                 { "attn_output", "self_attention.dense", false },
                 { "ffn_norm", "post_attention_layernorm", false },
                 { "ffn_up", "mlp.dense_h_to_4h", false },
                 { "ffn_down", "mlp.dense_4h_to_h", false } } },
    { .arch = "bert",
      .model_type = "bert",
      .layer = "bert.encoder.layer.",
      .ends = { BERT_ENDS("bert."),
                { "token_types", "bert.embeddings.token_type_embeddings", false } },
      .block = { { "attn_q", "attention.self.query", false },
                 { "attn_k", "attention.self.key", false },
                 { "attn_v", "attention.self.value", false },
                 { "attn_output", "attention.output.dense", false },
                 { "attn_output_norm", "attention.output.LayerNorm", false },
                 { "ffn_up", "intermediate.dense", false },
                 { "ffn_down", "output.dense", false },
                 { "layer_output_norm", "output.LayerNorm", false } } },
    { .arch = "bert",
      .model_type = "distilbert",
      .layer = "distilbert.transformer.layer.",
      .ends = { BERT_ENDS("distilbert.") },
      .block = { { "attn_q", "attention.q_lin", false },
                 { "attn_k", "attention.k_lin", false },
                 { "attn_v", "attention.v_lin", false },
                 { "attn_output", "attention.out_lin", false },
                 { "attn_output_norm", "sa_layer_norm", false },
                 { "ffn_up", "ffn.lin1", false },
                 { "ffn_down", "ffn.lin2", false },
                 { "layer_output_norm", "output_layer_norm", false } } },
};

const char qkvi_gguf_archs[] =
    "\"llama\", \"qwen2\", \"qwen3\", \"gemma\", \"gemma2\", \"gemma3\", "
    "\"phi3\", \"smollm3\", \"olmo2\", \"gpt2\", \"gptneox\", \"bloom\", \"bert\" and "
    "\"modern-bert\"";

const qkvi_gguf_family *qkvi_gguf_family_of(const char *arch, bool has_types) {
    for (size_t f = 0; f < sizeof families / sizeof *families; f++) {
        if (strcmp(families[f].arch, arch) != 0) continue;
        if (!has_types && strcmp(families[f].model_type, "bert") == 0) continue;
        return &families[f];
    }
    return NULL;
}

/* ---- Views ----------------------------------------------------------------------------------- */

enum { MAX_NAME = 128 };

typedef struct naming {
    const qkvi_gguf_family *family;
    const qkvi_gguf_sizes *sizes;
    const qkvi_gguf_parts *parts;
    qkvi_gguf_views *views;
    qkv_error *error;
} naming;

static qkv_status refuse(const naming *n, const qkvi_gguf_tensor *tensor, qkv_status status,
                         const char *rule) {
    return qkvi_file_fail(n->error, status, n->parts->files[tensor->part]->source.name,
                          "tensor '%s' %s", QKVI_PRINTABLE(160, tensor->name), rule);
}

static qkv_status not_known(const naming *n, const qkvi_gguf_tensor *tensor) {
    char rule[120];
    snprintf(rule, sizeof rule, "is not known in architecture '%s'", n->family->arch);
    return refuse(n, tensor, QKV_ERR_UNSUPPORTED, rule);
}

/* A name cut into its stem and ".weight" or ".bias", which it must have. */
typedef struct stem {
    char text[64];
    const char *ending; /* NULL: neither */
} stem;

static stem stem_of(const char *name) {
    static const char *const endings[] = { ".weight", ".bias" };
    stem s = { .ending = NULL };
    for (int e = 0; e < 2; e++)
        if (qkvi_has_stem(name, endings[e])) s.ending = endings[e];
    const size_t n = s.ending ? strlen(name) - strlen(s.ending) : 0;
    if (n >= sizeof s.text) s.ending = NULL;
    if (s.ending) memcpy(s.text, name, n);
    return s;
}

static const qkvi_gguf_part *find_part(const qkvi_gguf_part *parts, const char *stored) {
    for (int p = 0; p < QKVI_GGUF_PARTS && parts[p].stored; p++)
        if (strcmp(parts[p].stored, stored) == 0) return &parts[p];
    return NULL;
}

static qkvi_gguf_view whole(const qkvi_gguf_tensor *tensor) {
    return (qkvi_gguf_view){ .tensor = tensor, .n_rows = tensor->shape[0] };
}

/* llama.cpp adds 1 to Gemma's norms, in f32: so they are stored. */
static qkv_status take_one(const naming *n, const qkvi_gguf_tensor *tensor, const char *stored,
                           qkvi_gguf_view *view) {
    if (!n->family->adds_one || !qkvi_ends_with(stored, "norm")) return QKV_OK;
    if (tensor->type->id != QKVI_GGUF_F32)
        return refuse(n, tensor, QKV_ERR_UNSUPPORTED,
                      "is not of type F32, which norms of this architecture must be");
    view->add = -1;
    return QKV_OK;
}

/* Heads whose rows are permuted, of a part; 0: none are. */
static int64_t heads_of(const naming *n, const char *stored) {
    if (!n->family->permuted) return 0;
    return strcmp(stored, "attn_q") == 0   ? n->sizes->n_heads
           : strcmp(stored, "attn_k") == 0 ? n->sizes->n_kv_heads
                                           : 0;
}

/* Rows of queries and keys: a head has head_dim of them. */
static qkv_status check_heads(const naming *n, const qkvi_gguf_tensor *tensor,
                              const qkvi_gguf_view *view) {
    char rule[120];
    if (!view->n_heads || view->n_rows == view->n_heads * n->sizes->head_dim) return QKV_OK;
    snprintf(rule, sizeof rule, "has %" PRId64 " rows, not %" PRId64 " heads of %" PRId64,
             view->n_rows, view->n_heads, n->sizes->head_dim);
    return refuse(n, tensor, QKV_ERR_SHAPE, rule);
}

static qkv_status check_fused(const naming *n, const qkvi_gguf_tensor *tensor) {
    const qkvi_gguf_sizes *const s = n->sizes;
    char rule[120];
    if (tensor->shape[0] == (s->n_heads + 2 * s->n_kv_heads) * s->head_dim) return QKV_OK;
    snprintf(rule, sizeof rule,
             "has %" PRId64 " rows, not %" PRId64 " of queries and twice %" PRId64
             " of keys and values",
             tensor->shape[0], s->n_heads * s->head_dim, s->n_kv_heads * s->head_dim);
    return refuse(n, tensor, QKV_ERR_SHAPE, rule);
}

/* The three that are fused, in this order along the rows. */
static qkv_status add_fused(const naming *n, const qkvi_gguf_tensor *tensor, int64_t layer,
                            const char *ending) {
    static const char *const stored[3] = { "attn_q", "attn_k", "attn_v" };
    const qkvi_gguf_sizes *const s = n->sizes;
    const int64_t rows[3] = { s->n_heads * s->head_dim, s->n_kv_heads * s->head_dim,
                              s->n_kv_heads * s->head_dim };
    char name[MAX_NAME];
    int64_t first = 0;
    QKV_TRY(check_fused(n, tensor));
    for (int p = 0; p < 3; p++) {
        const qkvi_gguf_part *const part = find_part(n->family->block, stored[p]);
        if (!part) return not_known(n, tensor);
        snprintf(name, sizeof name, "%s%" PRId64 ".%s%s", n->family->layer, layer, part->parameter,
                 ending);
        const qkvi_gguf_view view = { .tensor = tensor,
                                      .first_row = first,
                                      .n_rows = rows[p],
                                      .n_heads = heads_of(n, stored[p]) };
        QKV_TRY(qkvi_gguf_views_add(n->views, name, view, n->error));
        first += rows[p];
    }
    return QKV_OK;
}

static qkv_status add_in_block(const naming *n, const qkvi_gguf_tensor *tensor, int64_t layer,
                               const char *stored, const char *ending) {
    char name[MAX_NAME];
    qkvi_gguf_view view = whole(tensor);
    if (!n->family->keeps_fused && strcmp(stored, "attn_qkv") == 0)
        return add_fused(n, tensor, layer, ending);
    const qkvi_gguf_part *const part = find_part(n->family->block, stored);
    if (!part) return not_known(n, tensor);
    QKV_TRY(take_one(n, tensor, stored, &view));
    view.n_heads = heads_of(n, stored);
    QKV_TRY(check_heads(n, tensor, &view));
    view.turned = n->family->turns && tensor->rank == 2;
    if (n->family->by_head && strcmp(stored, "attn_qkv") == 0) {
        view.n_heads = n->sizes->n_heads;
        view.by_head = true;
        QKV_TRY(check_fused(n, tensor));
    }
    snprintf(name, sizeof name, "%s%" PRId64 ".%s%s", n->family->layer, layer, part->parameter,
             ending);
    return qkvi_gguf_views_add(n->views, name, view, n->error);
}

/* "blk.7.": its number, and what follows; NULL: no block is named so. */
static const char *block_of(const char *stored, int64_t *layer) {
    char *end;
    if (strncmp(stored, "blk.", 4) != 0 || stored[4] < '0' || stored[4] > '9') return NULL;
    if (stored[4] == '0' && stored[5] != '.') return NULL; /* a number has one spelling */
    *layer = strtoll(stored + 4, &end, 10);
    return *end == '.' && end - stored < 24 ? end + 1 : NULL;
}

static qkv_status add_tensor(const naming *n, const qkvi_gguf_tensor *tensor) {
    const stem s = stem_of(tensor->name);
    int64_t layer = 0;
    char name[MAX_NAME], rule[120];
    qkvi_gguf_view view = whole(tensor);
    if (!s.ending) return not_known(n, tensor);
    const char *const inner = block_of(s.text, &layer);
    if (inner && layer >= n->sizes->n_layers) {
        snprintf(rule, sizeof rule, "is of a layer that is not there: block_count is %" PRId64,
                 n->sizes->n_layers);
        return refuse(n, tensor, QKV_ERR_FORMAT, rule);
    }
    if (inner) return add_in_block(n, tensor, layer, inner, s.ending);
    const qkvi_gguf_part *const part = find_part(n->family->ends, s.text);
    if (!part) return not_known(n, tensor);
    QKV_TRY(take_one(n, tensor, s.text, &view));
    snprintf(name, sizeof name, "%s%s", part->parameter, s.ending);
    return qkvi_gguf_views_add(n->views, name, view, n->error);
}

/* ---- What must be there ---------------------------------------------------------------------- */

static qkv_status missing(const naming *n, const char *name) {
    return qkvi_file_fail(n->error, QKV_ERR_FORMAT, n->parts->files[0]->source.name,
                          "tensor '%s' is missing", name);
}

static bool is_fused(const naming *n, int64_t layer, const char *stored) {
    char name[MAX_NAME];
    if (strcmp(stored, "attn_q") != 0 && strcmp(stored, "attn_k") != 0 &&
        strcmp(stored, "attn_v") != 0)
        return false;
    snprintf(name, sizeof name, "blk.%" PRId64 ".attn_qkv.weight", layer);
    return qkvi_gguf_tensor_of(n->parts, name) != NULL;
}

/* By the names of the file, where a later reader has those of transformers. */
static qkv_status check_weights(const naming *n) {
    char name[MAX_NAME];
    for (int p = 0; p < QKVI_GGUF_PARTS && n->family->ends[p].stored; p++) {
        snprintf(name, sizeof name, "%s.weight", n->family->ends[p].stored);
        if (!n->family->ends[p].may_lack && !qkvi_gguf_tensor_of(n->parts, name))
            return missing(n, name);
    }
    for (int64_t layer = 0; layer < n->sizes->n_layers; layer++)
        for (int p = 0; p < QKVI_GGUF_PARTS && n->family->block[p].stored; p++) {
            const qkvi_gguf_part *const part = &n->family->block[p];
            snprintf(name, sizeof name, "blk.%" PRId64 ".%s.weight", layer, part->stored);
            if (part->may_lack || qkvi_gguf_tensor_of(n->parts, name)) continue;
            if (!is_fused(n, layer, part->stored)) return missing(n, name);
        }
    return QKV_OK;
}

qkv_status qkvi_gguf_views_of(const qkvi_gguf_family *family, const qkvi_gguf_sizes *sizes,
                              const qkvi_gguf_parts *parts, qkvi_gguf_views *views,
                              qkv_error *error) {
    const naming n = { family, sizes, parts, views, error };
    QKV_TRY(check_weights(&n));
    for (int64_t t = 0; t < parts->n_tensors; t++) {
        /* Frequencies are no parameter: config.c has told them. */
        if (strcmp(parts->tensors[t]->name, "rope_freqs.weight") == 0) continue;
        QKV_TRY(add_tensor(&n, parts->tensors[t]));
    }
    return QKV_OK;
}
