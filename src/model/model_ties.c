/*
 * Which matrices of words are one: as config.json says (tie_word_embeddings), and as the file does.
 * Copies of a tied matrix that are stored and differ are parameters of their own, as in
 * transformers 5, and equal ones are kept once. A head that would need what is not stored is none.
 */
#include <math.h>

#include "core/fpstate.h"
#include "layer/angles.h"
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

/* What a head needs, untied or not, and the file lacks; NULL: nothing. */
static const char *lacks(const qkvi_resolver *resolver, const qkvi_model_family *family,
                         const qkv_model_info *info, char name[128]) {
    const char *const *const bias = family->spelling.bias;
    const char *const own = info->has_lm ? family->head_bias : NULL;
    const char *const lost = own && !qkvi_resolve_own(resolver, own) ? own : NULL;
    if (!(info->untied & QKV_UNTIED_HEAD) || !(info->has_mlm || info->has_lm)) return lost;
    snprintf(name, 128, "%s.weight", family->head);
    if (!qkvi_resolve_own(resolver, name)) return name;
    return info->has_mlm && bias[1] && !qkvi_resolve(resolver, bias[0]) ? bias[1] : lost;
}

static qkv_status drop_head(qkv_model *model, const char *missing, qkv_error *error) {
    char text[300];
    snprintf(
        text, sizeof text, "no %s head: %s'%s' is not stored", model->info.has_mlm ? "MLM" : "LM",
        model->info.untied ? "config.json says tie_word_embeddings: false, and " : "", missing);
    model->info.has_mlm = model->info.has_lm = 0;
    model->no_head = strdup(text);
    return model->no_head ? QKV_OK : qkvi_no_memory(error, "a message");
}

/* Heads of a model that reads images. */
static void find_image_heads(const qkvi_resolver *resolver, const qkvi_model_family *family,
                             qkv_model_info *info) {
    const qkvi_image_family *const f = &family->image;
    char probe[96];
    snprintf(probe, sizeof probe, "%sattention.out_proj", f->probe ? f->probe : "");
    info->has_pooler = has(resolver, f->probe ? probe : family->pooler);
    if (!info->has_pooler && !family->joint) info->joint_dim = 0; /* it would be what is pooled */
    info->distilled = has(resolver, f->distilled[0]);
    if (!info->distilled && !has(resolver, family->classifier)) info->n_labels = 0;
    info->untied = 0;
}

qkv_status qkvi_model_ties(qkv_model *model, const qkvi_model_family *family,
                           qkvi_resolver *resolver, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    char name[128];
    if (info->joint_dim > 0 && family->joint && !has(resolver, family->joint)) info->joint_dim = 0;
    if (qkvi_family_sees(family)) {
        find_image_heads(resolver, family, info);
        return QKV_OK;
    }
    info->has_mlm = has(resolver, family->transform);
    if (family->norm_bias) /* a classifier has the same layer, and no words */
        info->has_mlm &= qkvi_resolve(resolver, family->decoder_bias) != NULL;
    info->has_nsp = has(resolver, family->nsp);
    info->has_pooler = info->has_nsp || has(resolver, family->pooler);
    info->has_discriminator = has(resolver, family->discriminator);
    const char *const below = qkvi_classifier_below(info);
    if (!has(resolver, qkvi_classifier_name(info)) || (below && !has(resolver, below)))
        info->n_labels = 0;
    if (info->n_labels > 0) info->has_lm = 0; /* such a decoder tells no words */
    resolver->ties = info->untied == 0;
    const char *const missing = lacks(resolver, family, info, name);
    if (missing) QKV_TRY(drop_head(model, missing, error));
    if (!info->has_mlm && !info->has_lm) info->untied &= ~QKV_UNTIED_HEAD;
    if (resolver->ties) QKV_TRY(find_others(family, resolver, info, error));
    if (info->has_mlm) QKV_TRY(skip_bias(&family->spelling, resolver, error));
    return QKV_OK;
}

/* ---- How texts and images match -------------------------------------------------------------- */

/* One number, of shape [] or [1]; absent: *value stays. */
static qkv_status load_number(qkvi_resolver *resolver, const char *name, double *value,
                              qkv_error *error) {
    const qkvi_stored *const stored = qkvi_resolve_own(resolver, name);
    float read;
    if (!stored) return QKV_OK;
    if (stored->n_elems != 1 || !qkvi_elem_is_float(stored->type))
        return qkvi_error_set(error, QKV_ERR_SHAPE, "%s: tensor '%s' is not one number",
                              resolver->file->source.name, name);
    QKV_TRY(qkvi_safetensors_read_f32(resolver->file, stored, &read, error));
    qkvi_resolver_skip(resolver, stored);
    *value = (double)read;
    return QKV_OK;
}

qkv_status qkvi_model_match(qkv_model *model, const qkvi_model_family *family,
                            qkvi_resolver *resolver, qkv_error *error) {
    double scale = 0;
    if (!family->joint && model->info.joint_dim == 0) return QKV_OK;
    QKV_TRY(load_number(resolver, "logit_scale", &scale, error));
    if (!(scale > -80 && scale < 80))
        return qkvi_error_set(error, QKV_ERR_FORMAT,
                              "%s: logit_scale = %g is not between -80 and 80",
                              resolver->file->source.name, scale);
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    model->info.match_scale = qkvi_angle_exp(scale);
    qkvi_fpstate_leave(saved);
    return load_number(resolver, "logit_bias", &model->info.match_bias, error);
}

/* ---- What is no parameter -------------------------------------------------------------------- */

/*
 * What is stored and no parameter: a bias of logits, and tables of positions that could be
 * computed. A table that is stored is what transformers adds, so only one that is what would be
 * computed is left out.
 */

/* The tensor of that name and shape as floats, for qkvi_aligned_free; NULL if it is not stored. */
static qkv_status load(qkvi_resolver *resolver, const char *name, int64_t rows, int64_t cols,
                       float **values, qkv_error *error) {
    qkvi_param_table table = { 0 };
    *values = NULL;
    if (!qkvi_resolve_own(resolver, name)) return QKV_OK;
    qkv_status status = qkvi_params_add(&table, 2, rows, cols, error, "%s", name);
    if (status == QKV_OK) status = qkvi_resolver_check(resolver, &table, error);
    if (status == QKV_OK && !(*values = qkvi_params_arena(&table)))
        status = qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for '%s'", name);
    if (status == QKV_OK) status = qkvi_resolver_load(resolver, &table, NULL, *values, error);
    qkvi_params_free(&table);
    if (status == QKV_OK) return QKV_OK;
    qkvi_aligned_free(*values);
    *values = NULL;
    return status;
}

/* ---- The bias of logits ---------------------------------------------------------------------- */

/* Of zeros it is none. */
qkv_status qkvi_model_lm_bias(qkv_model *model, const qkvi_model_family *family,
                              qkvi_resolver *resolver, qkv_error *error) {
    const int64_t n = model->info.target_vocab_size;
    int64_t n_set = 0;
    if (!family->lm_bias) return QKV_OK;
    QKV_TRY(load(resolver, family->lm_bias, 1, n, &model->lm_bias, error));
    for (int64_t i = 0; model->lm_bias && i < n; i++) n_set += model->lm_bias[i] != 0;
    if (n_set > 0) return QKV_OK;
    qkvi_aligned_free(model->lm_bias);
    model->lm_bias = NULL;
    return QKV_OK;
}

/* ---- Positions ------------------------------------------------------------------------------- */

/* What a model with sinusoids has at its positions, for qkvi_aligned_free. */
static float *make_sinusoids(const qkv_model_info *info) {
    size_t n;
    float *const table = qkvi_mul_size((size_t)info->max_len, (size_t)info->hidden, &n)
                             ? qkvi_aligned_array(n, sizeof *table)
                             : NULL;
    if (!table) return NULL;
    const qkvi_fpstate saved = qkvi_fpstate_enter();
    if (qkvi_family_of(info->architecture)->positions == QKVI_SINUSOIDS)
        qkvi_sinusoids_half(info->max_len, info->hidden, table);
    else
        qkvi_sinusoids(info->max_len, info->hidden, table);
    qkvi_fpstate_leave(saved);
    return table;
}

/* The largest difference between stored positions and sinusoids; NaN counts as infinite. */
static qkv_status find_distance(const qkv_model_info *info, const float *stored, float *distance,
                                qkv_error *error) {
    float *const computed = make_sinusoids(info);
    if (!computed) return qkvi_no_memory(error, "positions");
    *distance = 0;
    for (int64_t i = 0; i < info->max_len * info->hidden; i++) {
        const float off = fabsf(stored[i] - computed[i]);
        if (!(off <= *distance)) *distance = off >= 0 ? off : INFINITY;
    }
    qkvi_aligned_free(computed);
    return QKV_OK;
}

/* Keeps those of a stack that are stored and are no sinusoids. */
static qkv_status load_positions(qkv_model *model, const char *name, qkvi_resolver *resolver,
                                 float **positions, qkv_error *error) {
    const qkv_model_info *const info = &model->info;
    char full[128];
    float distance = 0;
    snprintf(full, sizeof full, "%s.weight", name);
    QKV_TRY(load(resolver, full, info->max_len, info->hidden, positions, error));
    if (!*positions) return QKV_OK;
    const qkv_status status = find_distance(info, *positions, &distance, error);
    if (distance > model->positions_off) model->positions_off = distance;
    if (status == QKV_OK && distance > 0) return QKV_OK;
    qkvi_aligned_free(*positions);
    *positions = NULL;
    return status;
}

/*
 * Marian's stay as they are stored, in training, too. A BERT's were ours, and learned on in
 * transformers: then they are parameters again.
 */
qkv_status qkvi_model_positions(qkv_model *model, const qkvi_model_family *family,
                                qkvi_resolver *resolver, qkv_error *error) {
    qkv_model_info *const info = &model->info;
    if (!info->sinusoidal_positions) return QKV_OK;
    for (int s = 0; s < qkvi_family_stacks(family); s++)
        QKV_TRY(load_positions(model, family->stacks[s].position, resolver, &model->positions[s],
                               error));
    if (family->positions == QKVI_SINUSOIDS || !model->positions[0]) return QKV_OK;
    info->sinusoidal_positions = 0;
    qkvi_aligned_free(model->positions[0]);
    model->positions[0] = NULL;
    return QKV_OK;
}

void qkvi_net_take_buffers(qkvi_net *net, float *lm_bias, float *const positions[2]) {
    if (lm_bias) net->lm.bias = lm_bias;
    for (int s = 0; s < net->n_stacks; s++)
        if (positions[s])
            memcpy(net->stacks[s].sinusoids, positions[s],
                   (size_t)(net->stacks[s].max_len * net->stacks[s].hidden) * sizeof(float));
}
