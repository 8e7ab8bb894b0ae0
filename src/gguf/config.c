/*
 * Keys as config.json: see config.h. Facts are from llama.cpp's conversion/ (how it writes its
 * files) and src/ (what it computes without a key). Fields are spelled as transformers 4 wrote
 * them, which qkv and transformers 5 read, too.
 */
#include "gguf/config.h"

#include <inttypes.h>
#include <math.h>

#include "gguf/config_rope.h"

/* ---- Fields ---------------------------------------------------------------------------------- */

void qkvi_gguf_put(qkvi_gguf_making *m, const char *field, json_t *value) {
    if (json_object_set_new(m->out->json, field, value) != 0) m->failed = true;
}

void qkvi_gguf_put_int(qkvi_gguf_making *m, const char *field, int64_t value) {
    qkvi_gguf_put(m, field, json_integer(value));
}

void qkvi_gguf_put_real(qkvi_gguf_making *m, const char *field, double value) {
    qkvi_gguf_put(m, field, json_real(value));
}

/* ---- Keys of the architecture ---------------------------------------------------------------- */

const char *qkvi_gguf_own(const qkvi_gguf_making *m, const char *name, char text[QKVI_GGUF_OWN]) {
    snprintf(text, QKVI_GGUF_OWN, "%s.%s", m->out->family->arch, name);
    return text;
}

static qkv_status missing(const qkvi_gguf_making *m, const char *name) {
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_FORMAT, "key '%s' is missing", name);
}

qkv_status qkvi_gguf_own_int(const qkvi_gguf_making *m, const char *name, int64_t *value) {
    char own[QKVI_GGUF_OWN];
    return qkvi_gguf_take_int(m->keys, qkvi_gguf_own(m, name, own), value);
}

qkv_status qkvi_gguf_own_real(const qkvi_gguf_making *m, const char *name, double *value) {
    char own[QKVI_GGUF_OWN];
    return qkvi_gguf_take_real(m->keys, qkvi_gguf_own(m, name, own), value);
}

static qkv_status need_int(const qkvi_gguf_making *m, const char *name, int64_t *value) {
    char own[QKVI_GGUF_OWN];
    if (!qkvi_gguf_key_of(m->keys->file, qkvi_gguf_own(m, name, own))) return missing(m, own);
    QKV_TRY(qkvi_gguf_take_int(m->keys, own, value));
    if (*value >= 1 && *value <= INT32_MAX) return QKV_OK;
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_SHAPE, "key '%s' is %" PRId64 ", not from 1 to %d", own,
                          *value, INT32_MAX);
}

static qkv_status need_real(const qkvi_gguf_making *m, const char *name, double *value) {
    char own[QKVI_GGUF_OWN];
    if (!qkvi_gguf_key_of(m->keys->file, qkvi_gguf_own(m, name, own))) return missing(m, own);
    return qkvi_gguf_take_real(m->keys, own, value);
}

/* A number, or one for each layer, which must all be the same. */
static qkv_status need_count(const qkvi_gguf_making *m, const char *name, int64_t *value) {
    char own[QKVI_GGUF_OWN];
    const qkvi_gguf_key *const key = qkvi_gguf_ask(m->keys, qkvi_gguf_own(m, name, own));
    if (!key || !key->is_array) return need_int(m, name, value);
    for (uint64_t i = 0; i < key->count; i++) {
        int64_t one;
        QKV_TRY(qkvi_gguf_int_of(m->keys, key, i, &one));
        if (i > 0 && one != *value)
            return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                                  "key '%s' differs from layer to layer, which is not supported",
                                  own);
        *value = one;
    }
    if (key->count > 0 && *value >= 1 && *value <= INT32_MAX) return QKV_OK;
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_SHAPE, "key '%s' holds no number from 1 to %d", own,
                          INT32_MAX);
}

/* ---- Keys with one value that is computed ---------------------------------------------------- */

/* What changes the graph in a way that is not here, unless it is one of two values. */
static qkv_status check_neutral(const qkvi_gguf_making *m) {
    static const struct {
        const char *name;
        double one, other;
    } neutral[] = { { "attention.scale", 0, 0 },
                    { "attention.clamp_kqv", 0, 0 },
                    { "attention.max_alibi_bias", 0, 0 },
                    { "logit_scale", 0, 1 },
                    { "residual_scale", 0, 1 },
                    { "embedding_scale", 0, 1 },
                    { "expert_count", 0, 0 },
                    { "expert_used_count", 0, 0 },
                    { "rope.scaling.yarn_ext_factor", 1, 1 } };
    for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++) {
        double value = neutral[i].one;
        QKV_TRY(qkvi_gguf_own_real(m, neutral[i].name, &value));
        if (value != neutral[i].one && value != neutral[i].other)
            return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                                  "key '%s.%s' is %g, which is not supported", m->out->family->arch,
                                  neutral[i].name, value);
    }
    return QKV_OK;
}

/* Encoders see all of a text, decoders what is before. */
static qkv_status check_causal(const qkvi_gguf_making *m, bool is_encoder) {
    char own[QKVI_GGUF_OWN];
    bool causal = !is_encoder;
    QKV_TRY(qkvi_gguf_take_bool(m->keys, qkvi_gguf_own(m, "attention.causal", own), &causal));
    if (causal == !is_encoder) return QKV_OK;
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED, "key '%s' is %s, which is not supported",
                          own, causal ? "true" : "false");
}

/*
 * Original files of Meta and folders of Hugging Face have other rows, but a GGUF file has one
 * order.
 */
static qkv_status check_layout(const qkvi_gguf_making *m) {
    static const char known[] = "Meta AI original pth";
    char own[QKVI_GGUF_OWN], *layout;
    QKV_TRY(qkvi_gguf_take_text(m->keys, qkvi_gguf_own(m, "tensor_data_layout", own), &layout));
    const bool is_known = !layout || strcmp(layout, known) == 0;
    free(layout);
    if (is_known) return QKV_OK;
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED, "key '%s' is not '%s'", own, known);
}

static qkv_status take_pooling(qkvi_gguf_making *m) {
    int64_t type = 0;
    QKV_TRY(qkvi_gguf_own_int(m, "pooling_type", &type));
    if (type < QKVI_GGUF_POOLING_NONE || type > QKVI_GGUF_POOLING_LAST)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "key '%s.pooling_type' is %" PRId64
                              ", which is none of 0 (none), 1 (mean), 2 (first), 3 (last)",
                              m->out->family->arch, type);
    m->out->pooling = (qkvi_gguf_pooling)type;
    return QKV_OK;
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* Heads are as wide as key_length says, else as the part that is turned, else width / heads. */
static qkv_status take_head_dim(qkvi_gguf_making *m) {
    static const char *const names[] = { "attention.value_length", "rope.dimension_count" };
    qkvi_gguf_sizes *const s = &m->out->sizes;
    int64_t key_length = 0, found[2] = { 0 };
    QKV_TRY(qkvi_gguf_own_int(m, "attention.key_length", &key_length));
    for (int i = 0; i < 2; i++) QKV_TRY(qkvi_gguf_own_int(m, names[i], &found[i]));
    if (strcmp(m->out->family->arch, "gptneox") == 0) { /* a part of a head may be turned */
        m->rotary_dim = found[1];
        found[1] = 0;
    }
    s->head_dim = key_length > 0 ? key_length : found[1] > 0 ? found[1] : m->hidden / s->n_heads;
    for (int i = 0; i < 2; i++)
        if (found[i] != 0 && found[i] != s->head_dim)
            return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                                  "key '%s.%s' is %" PRId64 ", but heads have %" PRId64 " channels",
                                  m->out->family->arch, names[i], found[i], s->head_dim);
    return QKV_OK;
}

static qkv_status take_sizes(qkvi_gguf_making *m) {
    qkvi_gguf_sizes *const s = &m->out->sizes;
    char own[QKVI_GGUF_OWN];
    int64_t n_words;
    QKV_TRY(need_int(m, "embedding_length", &m->hidden));
    QKV_TRY(need_int(m, "block_count", &s->n_layers));
    QKV_TRY(need_int(m, "context_length", &m->max_len));
    QKV_TRY(need_count(m, "feed_forward_length", &m->intermediate));
    QKV_TRY(need_count(m, "attention.head_count", &s->n_heads));
    s->n_kv_heads = s->n_heads;
    if (qkvi_gguf_key_of(m->keys->file, qkvi_gguf_own(m, "attention.head_count_kv", own)))
        QKV_TRY(need_count(m, "attention.head_count_kv", &s->n_kv_heads));
    QKV_TRY(qkvi_gguf_own_int(m, "vocab_size", &n_words)); /* rows of token_embd.weight say it */
    return take_head_dim(m);
}

/* Rows of a tensor that must be there. */
static qkv_status rows_of(const qkvi_gguf_making *m, const char *name, int64_t *rows) {
    const qkvi_gguf_tensor *const tensor = qkvi_gguf_tensor_of(m->parts, name);
    if (!tensor) return QKVI_GGUF_FAIL(m->keys, QKV_ERR_FORMAT, "tensor '%s' is missing", name);
    *rows = tensor->shape[0];
    return QKV_OK;
}

static bool has(const qkvi_gguf_making *m, const char *name) {
    return qkvi_gguf_tensor_of(m->parts, name) != NULL;
}

/* Fields that all but BERT and GPT-2 have. */
static void put_sizes(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    qkvi_gguf_put_int(m, "hidden_size", m->hidden);
    qkvi_gguf_put_int(m, "intermediate_size", m->intermediate);
    qkvi_gguf_put_int(m, "num_hidden_layers", s->n_layers);
    qkvi_gguf_put_int(m, "num_attention_heads", s->n_heads);
    qkvi_gguf_put_int(m, "max_position_embeddings", m->max_len);
}

/* ---- Windows --------------------------------------------------------------------------------- */

/* A bool for each layer, or a number: one layer of so many has no window. */
static qkv_status slides_in(const qkvi_gguf_making *m, bool *slides) {
    char own[QKVI_GGUF_OWN];
    const int64_t n = m->out->sizes.n_layers;
    int64_t pattern = m->out->family->swa;
    const qkvi_gguf_key *const key =
        qkvi_gguf_ask(m->keys, qkvi_gguf_own(m, "attention.sliding_window_pattern", own));
    if (key && key->is_array && key->count != (uint64_t)n)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_SHAPE,
                              "key '%s' has %" PRIu64 " layers, not %" PRId64, own, key->count, n);
    if (key && !key->is_array) QKV_TRY(qkvi_gguf_take_int(m->keys, own, &pattern));
    /* llama.cpp counts the layer without one last in a group, ModernBERT first. */
    const int64_t full = strcmp(m->out->family->arch, "modern-bert") == 0 ? 0 : pattern - 1;
    for (int64_t i = 0; i < n; i++) {
        int64_t one = pattern > 0 && i % pattern != full;
        if (key && key->is_array) QKV_TRY(qkvi_gguf_int_of(m->keys, key, (uint64_t)i, &one));
        slides[i] = one != 0;
    }
    return QKV_OK;
}

/* window 0: no layer has one. */
static qkv_status put_layer_types(qkvi_gguf_making *m, int64_t window) {
    bool slides[QKVI_GGUF_MAX_LAYERS];
    const int64_t n = m->out->sizes.n_layers;
    if (n > QKVI_GGUF_MAX_LAYERS)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_LIMIT, "%" PRId64 " layers, the limit is %d", n,
                              QKVI_GGUF_MAX_LAYERS);
    QKV_TRY(slides_in(m, slides));
    json_t *const types = json_array();
    for (int64_t i = 0; i < n; i++)
        if (json_array_append_new(types, json_string(slides[i] && window > 0 ? "sliding_attention"
                                                                             : "full_attention")))
            m->failed = true;
    qkvi_gguf_put(m, "layer_types", types);
    return QKV_OK;
}

/* ---- Families -------------------------------------------------------------------------------- */

static qkv_status put_cap(qkvi_gguf_making *m, const char *key, const char *field, double absent) {
    double cap = absent;
    QKV_TRY(qkvi_gguf_own_real(m, key, &cap));
    qkvi_gguf_put(m, field, cap == 0 ? json_null() : json_real(cap));
    return QKV_OK;
}

/*
 * llama.cpp has no key for the divisor of scores: the largest model of each family takes width /
 * heads, the others the width of a head. A window is that of Gemma 2 where it is absent; none of
 * Gemma 3's layers slides then.
 */
static qkv_status put_gemma(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    const bool is_second = strcmp(m->out->family->arch, "gemma2") == 0;
    const bool is_first = strcmp(m->out->family->arch, "gemma") == 0;
    int64_t window = is_second ? 4096 : 0;
    double theta = 10000;
    qkvi_gguf_put(m, is_first ? "hidden_act" : "hidden_activation",
                  json_string("gelu_pytorch_tanh"));
    if (is_first) return QKV_OK;
    const bool is_largest = s->n_layers == (is_second ? 46 : 62);
    qkvi_gguf_put_int(m, "query_pre_attn_scalar",
                      is_largest ? m->hidden / s->n_heads : s->head_dim);
    QKV_TRY(qkvi_gguf_own_int(m, "attention.sliding_window", &window));
    if (window > 0) qkvi_gguf_put_int(m, "sliding_window", window);
    QKV_TRY(put_cap(m, "final_logit_softcapping", "final_logit_softcapping", is_second ? 30 : 0));
    if (is_second)
        QKV_TRY(put_cap(m, "attn_logit_softcapping", "attn_logit_softcapping", 50));
    else
        QKV_TRY(qkvi_gguf_own_real(m, "rope.freq_base_swa", &theta));
    if (!is_second) qkvi_gguf_put_real(m, "rope_local_base_freq", theta);
    return put_layer_types(m, window);
}

static qkv_status put_window(qkvi_gguf_making *m) {
    int64_t window = 0;
    QKV_TRY(qkvi_gguf_own_int(m, "attention.sliding_window", &window));
    qkvi_gguf_put(m, "sliding_window", window > 0 ? json_integer(window) : json_null());
    return QKV_OK;
}

/* Mistral 7B v0.1 and what was made of it: there the window of 4,096 is lost. */
static bool may_slide(const qkvi_gguf_making *m, int64_t n_words, double theta) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    return m->hidden == 4096 && m->intermediate == 14336 && s->n_layers == 32 &&
           s->n_kv_heads == 8 && n_words < 32768 && theta == 10000;
}

/* Fields that decoders of Llama's graph have beside sizes and positions. */
static qkv_status put_decoder(qkvi_gguf_making *m, int64_t n_words, double theta) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    const char *const arch = m->out->family->arch;
    double eps = 0;
    QKV_TRY(need_real(m, "attention.layer_norm_rms_epsilon", &eps));
    qkvi_gguf_put_real(m, "rms_norm_eps", eps);
    qkvi_gguf_put_int(m, "num_key_value_heads", s->n_kv_heads);
    qkvi_gguf_put_int(m, "head_dim", s->head_dim);
    qkvi_gguf_put(m, "mlp_bias", json_boolean(has(m, "blk.0.ffn_up.bias")));
    if (strncmp(arch, "gemma", 5) == 0) return put_gemma(m);
    if (strcmp(arch, "phi3") == 0) return put_window(m);
    if (strcmp(arch, "smollm3") == 0) qkvi_gguf_put_int(m, "no_rope_layer_interval", 4);
    if (strcmp(arch, "smollm3") == 0 || strncmp(arch, "qwen", 4) == 0)
        qkvi_gguf_put(m, "use_sliding_window", json_false());
    m->out->may_slide = strcmp(arch, "llama") == 0 && may_slide(m, n_words, theta);
    return QKV_OK;
}

static qkv_status put_modernbert(qkvi_gguf_making *m, double theta, const json_t *scaling) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    char own[QKVI_GGUF_OWN], *act;
    double eps = 0, local = 10000;
    int64_t window = 0;
    if (s->n_kv_heads != s->n_heads || s->head_dim * s->n_heads != m->hidden || scaling)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "a modern-bert has as many keys as queries, of width / heads "
                              "channels, and no scaled positions");
    QKV_TRY(need_int(m, "attention.sliding_window", &window));
    QKV_TRY(need_real(m, "attention.layer_norm_epsilon", &eps));
    QKV_TRY(qkvi_gguf_own_real(m, "rope.freq_base_swa", &local));
    QKV_TRY(qkvi_gguf_take_text(m->keys, qkvi_gguf_own(m, "hidden_act", own), &act));
    qkvi_gguf_put(m, "hidden_activation", json_string(act ? act : "gelu"));
    free(act);
    qkvi_gguf_put_int(m, "local_attention", window);
    qkvi_gguf_put_real(m, "norm_eps", eps);
    qkvi_gguf_put_real(m, "global_rope_theta", theta);
    qkvi_gguf_put_real(m, "local_rope_theta", local);
    qkvi_gguf_put(m, "norm_bias", json_false());
    return put_layer_types(m, window);
}

/* Positions that turn, and the fields of who has them. */
static qkv_status put_rotary(qkvi_gguf_making *m, int64_t n_words) {
    const bool is_encoder = strcmp(m->out->family->arch, "modern-bert") == 0;
    double theta = 10000;
    json_t *scaling = NULL;
    QKV_TRY(qkvi_gguf_own_real(m, "rope.freq_base", &theta));
    QKV_TRY(qkvi_gguf_config_scaling(m, theta, &scaling));
    const bool bias = has(m, "blk.0.attn_q.bias") || has(m, "blk.0.attn_qkv.bias");
    put_sizes(m);
    qkvi_gguf_put(m, "attention_bias", json_boolean(bias));
    const qkv_status status =
        is_encoder ? put_modernbert(m, theta, scaling) : put_decoder(m, n_words, theta);
    if (!is_encoder) qkvi_gguf_put_real(m, "rope_theta", theta);
    qkvi_gguf_put(m, "rope_scaling", scaling ? scaling : json_null());
    return status;
}

static qkv_status put_gpt2(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    double eps = 0;
    QKV_TRY(need_real(m, "attention.layer_norm_epsilon", &eps));
    if (s->n_kv_heads != s->n_heads || s->head_dim * s->n_heads != m->hidden)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "a gpt2 has as many keys as queries, of width / heads channels");
    qkvi_gguf_put_int(m, "n_embd", m->hidden);
    qkvi_gguf_put_int(m, "n_inner", m->intermediate);
    qkvi_gguf_put_int(m, "n_layer", s->n_layers);
    qkvi_gguf_put_int(m, "n_head", s->n_heads);
    qkvi_gguf_put_int(m, "n_positions", m->max_len);
    qkvi_gguf_put_real(m, "layer_norm_epsilon", eps);
    qkvi_gguf_put(m, "activation_function", json_string("gelu_new"));
    return QKV_OK;
}

/*
 * rotary_pct is what transformers multiplies a head's channels with, and rounds down: the least
 * number that makes it so many. The converter has no key for theta, which is 10000 in all of them.
 */
static qkv_status put_neox(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    const int64_t turned = m->rotary_dim > 0 ? m->rotary_dim : s->head_dim;
    char own[QKVI_GGUF_OWN];
    double eps = 0, theta = 10000, part = (double)turned / (double)s->head_dim;
    bool parallel = true;
    json_t *scaling = NULL;
    QKV_TRY(need_real(m, "attention.layer_norm_epsilon", &eps));
    QKV_TRY(qkvi_gguf_own_real(m, "rope.freq_base", &theta));
    QKV_TRY(qkvi_gguf_config_scaling(m, theta, &scaling));
    qkvi_gguf_put(m, "rope_scaling", scaling ? scaling : json_null());
    QKV_TRY(
        qkvi_gguf_take_bool(m->keys, qkvi_gguf_own(m, "use_parallel_residual", own), &parallel));
    if (s->n_kv_heads != s->n_heads || s->head_dim * s->n_heads != m->hidden ||
        turned > s->head_dim)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "a gptneox has as many keys as queries, of width / heads channels, "
                              "of which at most all are rotated");
    while ((int64_t)(part * (double)s->head_dim) < turned) part = nextafter(part, 2);
    put_sizes(m);
    qkvi_gguf_put_real(m, "layer_norm_eps", eps);
    qkvi_gguf_put_real(m, "rotary_pct", part);
    qkvi_gguf_put_real(m, "rotary_emb_base", theta);
    qkvi_gguf_put(m, "use_parallel_residual", json_boolean(parallel));
    qkvi_gguf_put(m, "hidden_act", json_string("gelu"));
    qkvi_gguf_put(m, "attention_bias", json_boolean(has(m, "blk.0.attn_qkv.bias")));
    return QKV_OK;
}

/*
 * BLOOM has no key for its slopes, which follow from the number of heads, nor for the residual of
 * some of its kin, which llama.cpp does not compute. Feed-forwards are four times as wide.
 */
static qkv_status put_bloom(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    double eps = 0;
    QKV_TRY(need_real(m, "attention.layer_norm_epsilon", &eps));
    if (s->n_kv_heads != s->n_heads || s->head_dim * s->n_heads != m->hidden ||
        m->intermediate != 4 * m->hidden)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "a bloom has as many keys as queries, of width / heads channels, and "
                              "feed-forwards of 4 times its width");
    qkvi_gguf_put_int(m, "hidden_size", m->hidden);
    qkvi_gguf_put_int(m, "n_layer", s->n_layers);
    qkvi_gguf_put_int(m, "n_head", s->n_heads);
    qkvi_gguf_put_real(m, "layer_norm_epsilon", eps);
    return QKV_OK;
}

/* RoBERTa is a BERT here, too: rows of positions that it does not use were cut off. */
static qkv_status put_bert(qkvi_gguf_making *m) {
    const qkvi_gguf_sizes *const s = &m->out->sizes;
    const bool is_distil = strcmp(m->out->family->model_type, "distilbert") == 0;
    double eps = 0;
    int64_t n_types = 0;
    QKV_TRY(need_real(m, "attention.layer_norm_epsilon", &eps));
    QKV_TRY(rows_of(m, "position_embd.weight", &m->max_len));
    if (s->n_kv_heads != s->n_heads || s->head_dim * s->n_heads != m->hidden)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "a bert has as many keys as queries, of width / heads channels");
    if (is_distil && eps != 1e-12)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                              "key 'bert.attention.layer_norm_epsilon' is %g, and without "
                              "token_types.weight it must be 1e-12, as DistilBERT has it",
                              eps);
    put_sizes(m);
    if (is_distil) {
        qkvi_gguf_put_int(m, "dim", m->hidden);
        qkvi_gguf_put_int(m, "hidden_dim", m->intermediate);
        qkvi_gguf_put_int(m, "n_layers", s->n_layers);
        qkvi_gguf_put_int(m, "n_heads", s->n_heads);
        return QKV_OK;
    }
    QKV_TRY(rows_of(m, "token_types.weight", &n_types));
    qkvi_gguf_put_int(m, "type_vocab_size", n_types);
    qkvi_gguf_put_real(m, "layer_norm_eps", eps);
    return QKV_OK;
}

/* ---- All ------------------------------------------------------------------------------------- */

static qkv_status refuse_unknown(const qkvi_gguf_making *m) {
    const qkvi_gguf_file *const file = m->keys->file;
    const size_t n = strlen(m->out->family->arch);
    for (int64_t k = 0; k < file->n_keys; k++) {
        const char *const name = file->keys[k].name;
        if (m->keys->asked[k] || strncmp(name, m->out->family->arch, n) != 0 || name[n] != '.')
            continue;
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED, "key '%s' is not known here",
                              QKVI_PRINTABLE(160, name));
    }
    return QKV_OK;
}

static qkv_status find_family(const qkvi_gguf_making *m) {
    char *arch, *type;
    QKV_TRY(qkvi_gguf_take_text(m->keys, "general.type", &type));
    const bool is_model = !type || strcmp(type, "model") == 0;
    if (!is_model)
        QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED, "key 'general.type' is '%s', not 'model'",
                       QKVI_PRINTABLE(96, type));
    free(type);
    if (!is_model) return QKV_ERR_UNSUPPORTED;
    QKV_TRY(qkvi_gguf_take_text(m->keys, "general.architecture", &arch));
    if (!arch) return missing(m, "general.architecture");
    m->out->family = qkvi_gguf_family_of(arch, has(m, "token_types.weight"));
    const qkv_status status =
        m->out->family
            ? QKV_OK
            : QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                             "general.architecture '%s' is not supported; of GGUF files qkv "
                             "loads %s",
                             QKVI_PRINTABLE(96, arch), qkvi_gguf_archs);
    free(arch);
    return status;
}

static qkv_status make(qkvi_gguf_making *m) {
    int64_t n_words = 0;
    QKV_TRY(find_family(m));
    const char *const arch = m->out->family->arch;
    const bool is_bert = strcmp(arch, "bert") == 0;
    const bool is_encoder = is_bert || strcmp(arch, "modern-bert") == 0;
    QKV_TRY(rows_of(m, "token_embd.weight", &n_words));
    QKV_TRY(take_sizes(m));
    QKV_TRY(check_neutral(m));
    QKV_TRY(check_causal(m, is_encoder));
    QKV_TRY(check_layout(m));
    QKV_TRY(take_pooling(m));
    qkvi_gguf_put(m, "model_type", json_string(m->out->family->model_type));
    qkvi_gguf_put_int(m, "vocab_size", n_words);
    qkvi_gguf_put(m, "tie_word_embeddings", json_boolean(!has(m, "output.weight")));
    const qkv_status status = is_bert                        ? put_bert(m)
                              : strcmp(arch, "gpt2") == 0    ? put_gpt2(m)
                              : strcmp(arch, "gptneox") == 0 ? put_neox(m)
                              : strcmp(arch, "bloom") == 0   ? put_bloom(m)
                                                             : put_rotary(m, n_words);
    QKV_TRY(status);
    QKV_TRY(refuse_unknown(m));
    return m->failed ? QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for its keys") : QKV_OK;
}

qkv_status qkvi_gguf_config_make(const qkvi_gguf_keys *keys, const qkvi_gguf_parts *parts,
                                 qkvi_gguf_config *config) {
    *config = (qkvi_gguf_config){ .json = json_object() };
    qkvi_gguf_making m = { .keys = keys, .parts = parts, .out = config };
    if (!config->json) return QKVI_GGUF_FAIL(keys, QKV_ERR_MEMORY, "no memory for its keys");
    return make(&m);
}

void qkvi_gguf_config_free(qkvi_gguf_config *config) {
    json_decref(config->json);
    config->json = NULL;
}
