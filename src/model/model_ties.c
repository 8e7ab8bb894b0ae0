/*
 * Which matrices of words are one: as config.json says (tie_word_embeddings), and as the file does. Copies
 * of a tied matrix that are stored and differ are parameters of their own, as in transformers 5, and equal
 * ones are kept once. A head that would need what is not stored is none.
 */

#include "model/arch/net_params.h"
#include "model/model_impl.h"

/* A part is there if its weight is. */
static bool has(const qkvi_resolver *resolver, const char *part) {
    char name[128];
    if (!part) return false;
    snprintf(name, sizeof name, "%s.weight", part);
    return qkvi_resolve(resolver, name) != NULL;
}

/* Whether a copy is stored that differs from what it would be tied to. */
static qkv_status differs(qkvi_resolver *resolver, const char *source, const char *copy,
                          bool *other, qkv_error *error) {
    const qkvi_stored *const to = qkvi_resolve(resolver, source);
    const qkvi_stored *const from = qkvi_resolve_own(resolver, copy);
    bool same = true;
    if (to && from) QKV_TRY(qkvi_resolver_compare(resolver, to, from, &same, error));
    if (same) qkvi_resolver_skip(resolver, from);
    *other = !same;
    return QKV_OK;
}

/* Of a tie that holds: whose copy is another one. */
static qkv_status find_others(const qkvi_model_family *family, qkvi_resolver *resolver,
                              qkv_model_info *info, qkv_error *error) {
    const struct {
        int bit;
        const char *part;
    } parts[] = { { QKV_UNTIED_HEAD, family->head },
                  { QKV_UNTIED_DECODER, family->shared_words ? family->stacks[1].word : NULL },
                  { QKV_UNTIED_ENCODER, family->shared_words ? family->stacks[0].word : NULL } };
    const int n = info->separate_words ? 1 : 3;
    char source[128], copy[128];
    snprintf(source, sizeof source, "%s.weight", qkvi_head_name(info, family));
    int others = 0;
    for (int p = 0; p < n; p++) {
        const bool no_head = parts[p].bit == QKV_UNTIED_HEAD && !info->has_mlm && !info->has_lm;
        bool other = false;
        if (!parts[p].part || no_head) continue;
        snprintf(copy, sizeof copy, "%s.weight", parts[p].part);
        QKV_TRY(differs(resolver, source, copy, &other, error));
        if (other) others |= parts[p].bit;
    }
    info->untied = others;
    return QKV_OK;
}

/* The parameter that is no more than a copy of the decoder's own bias. */
static qkv_status skip_bias(const qkvi_spelling *spelling, qkvi_resolver *resolver,
                            qkv_error *error) {
    bool other;
    if (!spelling->bias[0] || !qkvi_resolve_own(resolver, spelling->bias[1])) return QKV_OK;
    return differs(resolver, spelling->bias[0], spelling->bias[0], &other, error);
}

/* What an untied head needs and the file lacks; NULL: nothing. */
static const char *lacks(const qkvi_resolver *resolver, const qkvi_model_family *family,
                         const qkv_model_info *info, char name[128]) {
    const char *const *const bias = family->spelling.bias;
    if (!(info->untied & QKV_UNTIED_HEAD) || !(info->has_mlm || info->has_lm)) return NULL;
    snprintf(name, 128, "%s.weight", family->head);
    if (!qkvi_resolve_own(resolver, name)) return name;
    return info->has_mlm && bias[1] && !qkvi_resolve(resolver, bias[0]) ? bias[1] : NULL;
}

static qkv_status drop_head(qkv_model *model, const char *missing, qkv_error *error) {
    char text[300];
    snprintf(text, sizeof text,
             "no %s head: config.json says tie_word_embeddings: false, and '%s' is not stored",
             model->info.has_mlm ? "MLM" : "LM", missing);
    model->info.has_mlm = model->info.has_lm = 0;
    model->no_head = strdup(text);
    return model->no_head ? QKV_OK
                          : qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a message");
}

qkv_status qkvi_model_ties(qkv_model *model, const qkvi_model_family *family,
                           qkvi_resolver *resolver, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    char name[128];
    info->has_mlm = has(resolver, family->transform);
    info->has_nsp = has(resolver, family->nsp);
    info->has_pooler = info->has_nsp || has(resolver, family->pooler);
    info->has_discriminator = has(resolver, family->discriminator);
    resolver->ties = info->untied == 0;
    const char *const missing = lacks(resolver, family, info, name);
    if (missing) QKV_TRY(drop_head(model, missing, error));
    if (!info->has_mlm && !info->has_lm) info->untied &= ~QKV_UNTIED_HEAD;
    if (resolver->ties) QKV_TRY(find_others(family, resolver, info, error));
    if (info->has_mlm) QKV_TRY(skip_bias(&family->spelling, resolver, error));
    return QKV_OK;
}
