/* Questions about a family: see family.h. */
#include "model/arch/family.h"

#include <math.h>

const char qkvi_family_types[] =
    "\"bert\", \"distilbert\", \"roberta\", \"electra\", \"gpt2\", \"bart\" and \"marian\"";

const qkvi_model_family *qkvi_family_of(const char *type) {
    for (const qkvi_model_family *f = qkvi_families; f->type; f++)
        if (strcmp(f->type, type) == 0) return f;
    return NULL;
}

void qkvi_family_needs(const qkvi_model_family *family, char text[QKVI_NEEDS_BYTES]) {
    const qkvi_model_family *const f = family;
    const struct {
        bool needed;
        const char *name;
    } features[] = {
        { f->norm != QKVI_LAYER_NORM, "RMSNorm" },
        { f->place == QKVI_NORM_OUTPUT, "norms of what each part adds" },
        { f->place == QKVI_NORM_BOTH, "norms before and after each part" },
        { f->qk_norm != QKVI_QK_PLAIN, "norms of queries and keys" },
        { f->positions == QKVI_ROTARY, "rotary positions" },
        { f->positions == QKVI_ROTARY_IN_PARTS, "rotary positions in some layers" },
        { f->kv_heads == QKVI_YES, "fewer key/value heads" },
        { f->head_dim == QKVI_YES, "a head_dim other than hidden / heads" },
        { f->windows == QKVI_YES, "windows of layers" },
        { f->soft_caps, "soft caps" },
        { f->gated, "a gated MLP" },
    };
    const size_t n = sizeof features / sizeof *features;
    int n_left = 0, used = 0;
    *text = 0;
    for (size_t i = 0; i < n; i++) n_left += features[i].needed;
    for (size_t i = 0; i < n; i++) {
        if (!features[i].needed) continue;
        const char *const next = --n_left > 1 ? ", " : n_left == 1 ? " and " : "";
        used +=
            snprintf(text + used, QKVI_NEEDS_BYTES - (size_t)used, "%s%s", features[i].name, next);
    }
}

/* ---- What config.json decides ------------------------------------------------------------------ */

qkvi_act qkvi_family_act(const qkv_model_info *info) {
    static const char *const names[QKVI_N_ACTS] = {
        [QKVI_GELU] = "gelu", [QKVI_GELU_TANH] = "gelu_tanh",   [QKVI_RELU] = "relu",
        [QKVI_SILU] = "silu", [QKVI_QUICK_GELU] = "quick_gelu", [QKVI_TANH] = "tanh",
    };
    for (int act = 0; info->activation && act < QKVI_N_ACTS; act++)
        if (strcmp(info->activation, names[act]) == 0) return (qkvi_act)act;
    return QKVI_GELU;
}

double qkvi_family_scale(const qkv_model_info *info, int64_t head_dim, int64_t layer) {
    if (!info->unscaled && !info->scales_by_layer) return 0;
    const double scale = info->unscaled ? 1 : 1 / sqrt((double)head_dim);
    return info->scales_by_layer ? scale / (double)(layer + 1) : scale;
}
