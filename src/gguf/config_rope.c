/*
 * Positions in keys. rope.scaling.type is linear where it is absent, and the factor 1. Llama 3's
 * scaling is no key but a tensor, rope_freqs.weight, by which each frequency is divided.
 */
#include "gguf/config_rope.h"

#include <math.h>

static qkv_status refuse_freqs(const qkvi_gguf_making *m, const char *rule) {
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED, "tensor 'rope_freqs.weight' %s", rule);
}

/* The factors as floats, to be freed. */
static qkv_status read_factors(const qkvi_gguf_making *m, const qkvi_gguf_tensor *tensor,
                               float **factors) {
    const size_t n = (size_t)m->out->sizes.head_dim / 2;
    *factors = NULL;
    if (tensor->type->id != QKVI_GGUF_F32 || tensor->n_elems != n)
        return refuse_freqs(m, "is not of type F32, or not half as long as a head is wide");
    *factors = malloc(n * sizeof **factors + 1);
    if (!*factors) return QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for frequencies");
    const qkvi_source *const source = &m->parts->files[tensor->part]->source;
    const qkv_status status =
        qkvi_source_read(source, tensor->begin, *factors, n * sizeof **factors, m->keys->error);
    if (status == QKV_OK) return QKV_OK;
    free(*factors);
    *factors = NULL;
    return status;
}

/* What Llama 3's scaling divides the frequency of a pair by: waves longer than 8192 by the factor,
 * those shorter than a quarter of that by 1, and between them smoothly. */
static double llama3_divisor(double theta, double share, double factor) {
    const double wave = 6.283185307179586 * pow(theta, share);
    const double smooth = fmin(fmax((8192 / wave - 1) / 3, 0), 1);
    return 1 / ((1 - smooth) / factor + smooth);
}

/* The only scaling that is known to be written so; 1 everywhere is none. */
static qkv_status scaling_of(const qkvi_gguf_making *m, const float *factors, double theta,
                             json_t **scaling) {
    const int64_t d = m->out->sizes.head_dim;
    float most = 0;
    for (int64_t i = 0; i < d / 2; i++) {
        if (!isfinite(factors[i]) || factors[i] < 1)
            return refuse_freqs(m, "holds a factor that is not finite, or less than 1");
        most = fmaxf(most, factors[i]);
    }
    const double factor = qkvi_gguf_shortest(most);
    for (int64_t i = 0; i < d / 2; i++) {
        const double wanted = llama3_divisor(theta, (double)(2 * i) / (double)d, factor);
        if (fabs((double)factors[i] - wanted) > 1e-4 * wanted)
            return refuse_freqs(m, "is not what rope_type llama3 gives with low_freq_factor 1, "
                                   "high_freq_factor 4 and 8192 positions");
    }
    if (factor == 1) return QKV_OK;
    *scaling = json_pack("{s:s,s:f,s:f,s:f,s:i}", "rope_type", "llama3", "factor", factor,
                         "low_freq_factor", 1.0, "high_freq_factor", 4.0,
                         "original_max_position_embeddings", 8192);
    return *scaling ? QKV_OK : QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for its keys");
}

static qkv_status by_factors(const qkvi_gguf_making *m, const qkvi_gguf_tensor *tensor,
                             double theta, json_t **scaling) {
    float *factors;
    QKV_TRY(read_factors(m, tensor, &factors));
    const qkv_status status = scaling_of(m, factors, theta, scaling);
    free(factors);
    return status;
}

/* ---- Keys ------------------------------------------------------------------------------------ */

typedef enum scaling_type { NONE, LINEAR, YARN, N_SCALINGS } scaling_type;

static qkv_status take_type(const qkvi_gguf_making *m, scaling_type *type) {
    static const char *const names[N_SCALINGS] = { "none", "linear", "yarn" };
    char own[QKVI_GGUF_OWN], *text;
    QKV_TRY(qkvi_gguf_take_text(m->keys, qkvi_gguf_own(m, "rope.scaling.type", own), &text));
    *type = LINEAR;
    qkv_status status = QKV_OK;
    if (text) {
        int t = 0;
        while (t < N_SCALINGS && strcmp(names[t], text) != 0) t++;
        *type = (scaling_type)t;
        if (t == N_SCALINGS)
            status = QKVI_GGUF_FAIL(m->keys, QKV_ERR_UNSUPPORTED,
                                    "key '%s' is '%s', which is none of none, linear, yarn", own,
                                    QKVI_PRINTABLE(96, text));
    }
    free(text);
    return status;
}

/* Old files have the factor by another name. 0 is no factor. */
static qkv_status take_factor(const qkvi_gguf_making *m, double *factor) {
    *factor = 0;
    QKV_TRY(qkvi_gguf_own_real(m, "rope.scale_linear", factor));
    return qkvi_gguf_own_real(m, "rope.scaling.factor", factor);
}

/* A real that yarn has where the key is there. */
static qkv_status put_yarn(const qkvi_gguf_making *m, const char *key, const char *field,
                           json_t *scaling) {
    double value = NAN;
    QKV_TRY(qkvi_gguf_own_real(m, key, &value));
    if (isnan(value) || json_object_set_new(scaling, field, json_real(value)) == 0) return QKV_OK;
    return QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for its keys");
}

static qkv_status fill_yarn(const qkvi_gguf_making *m, int64_t original, json_t *scaling) {
    static const char *const fields[][2] = {
        { "rope.scaling.yarn_attn_factor", "attention_factor" },
        { "rope.scaling.yarn_beta_fast", "beta_fast" },
        { "rope.scaling.yarn_beta_slow", "beta_slow" },
    };
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++)
        QKV_TRY(put_yarn(m, fields[f][0], fields[f][1], scaling));
    if (original > 0 && json_object_set_new(scaling, "original_max_position_embeddings",
                                            json_integer(original)) != 0)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for its keys");
    return QKV_OK;
}

static qkv_status by_keys(const qkvi_gguf_making *m, scaling_type type, double factor,
                          int64_t original, json_t **scaling) {
    if (type == YARN && factor == 0)
        return QKVI_GGUF_FAIL(m->keys, QKV_ERR_FORMAT, "key '%s.rope.scaling.factor' is missing",
                              m->out->family->arch);
    if (type == NONE || factor == 0 || (type == LINEAR && factor == 1)) return QKV_OK;
    *scaling =
        json_pack("{s:s,s:f}", "rope_type", type == YARN ? "yarn" : "linear", "factor", factor);
    if (!*scaling) return QKVI_GGUF_FAIL(m->keys, QKV_ERR_MEMORY, "no memory for its keys");
    return type == YARN ? fill_yarn(m, original, *scaling) : QKV_OK;
}

qkv_status qkvi_gguf_config_scaling(qkvi_gguf_making *m, double theta, json_t **scaling) {
    const qkvi_gguf_tensor *const freqs = qkvi_gguf_tensor_of(m->parts, "rope_freqs.weight");
    char own[QKVI_GGUF_OWN];
    scaling_type type;
    double factor;
    int64_t original = 0;
    *scaling = NULL;
    QKV_TRY(take_type(m, &type));
    QKV_TRY(take_factor(m, &factor));
    QKV_TRY(qkvi_gguf_own_int(m, "rope.scaling.original_context_length", &original));
    qkvi_gguf_ask(m->keys, qkvi_gguf_own(m, "rope.scaling.finetuned", own)); /* how it was made */
    if (freqs && (type == YARN || (type == LINEAR && factor != 0 && factor != 1)))
        return refuse_freqs(m, "is there beside a scaling of positions by keys");
    qkv_status status =
        freqs ? by_factors(m, freqs, theta, scaling) : by_keys(m, type, factor, original, scaling);
    if (status == QKV_OK) return QKV_OK;
    json_decref(*scaling);
    *scaling = NULL;
    return status;
}
