/**
 * BPE as classes of transformers make it anew: settings.h has the switches; the vocabulary comes
 * from a tokenizer.json, or from vocab.json and merges.txt.
 *
 *     GPT-2, RoBERTa, BART   byte-level, GPT-2's words
 *     GPT-NeoX               the same, NFC
 *     Qwen2                  byte-level, NFC, Qwen's words
 *     CLIP                   byte-level, NFC, lower case; words without spaces, whose last byte has
 *                            a token of its own: "BYTE</w>"
 *     Llama                  metaspace as a pre-tokenizer, bytes, no unk
 *     Gemma                  metaspace as a normalizer, bytes
 *
 * Reference: transformers, models/{gpt2,gpt_neox,qwen2,clip,llama,gemma}/tokenization_*.py.
 */
#include "text/bpe.h"
#include "text/tokenizer_json.h"

static qkv_status read_words(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader reader = qkvi_tokenizer_reader_of(s, root, tokenizer);
    const json_t *model = NULL;
    if (root == NULL) return qkvi_bpe_read_files(s->files, tokenizer, s->error);
    QKV_TRY(qkvi_tokenizer_model(&reader, "BPE", &model));
    QKV_TRY(qkvi_tokenizer_read_words(&reader, model));
    return qkvi_bpe_read_merges(&reader, model);
}

static void append(qkvi_template *template, int32_t id, uint8_t type) {
    template->items[template->n++] = (qkvi_template_item){ id, type };
}

/* [bos] A [eos], and the same of a pair with types 0 and 1. */
static void set_gpt2(const qkvi_settings *s, bool adds, qkv_tokenizer *tokenizer) {
    qkvi_template *const pair = &tokenizer->pair;
    const int32_t bos = qkvi_settings_id(s, QKVI_BOS, tokenizer);
    const int32_t eos = qkvi_settings_id(s, QKVI_EOS, tokenizer);
    for (int i = 0; i < 2; i++) {
        if (adds && s->add_bos && bos >= 0) append(pair, bos, (uint8_t)i);
        append(pair, i == 0 ? QKVI_TEMPLATE_TEXT : QKVI_TEMPLATE_PAIR, (uint8_t)i);
        if (adds && s->add_eos && eos >= 0) append(pair, eos, (uint8_t)i);
        if (i == 0) tokenizer->single = *pair;
    }
}

/*
 * What stands around texts: of GPT-2 a tokenizer.json says it, if there is one. Beside one nothing
 * does in GPT-NeoX.
 */
static qkv_status set_around(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader reader = qkvi_tokenizer_reader_of(s, root, tokenizer);
    if (s->class->maker == QKVI_MADE_BY_ROBERTA) {
        tokenizer->trim_offsets = s->trim_offsets;
        tokenizer->trim_keeps_first = s->add_prefix_space;
        qkvi_tokenizer_roberta_templates(tokenizer, tokenizer->special[QKV_TOKEN_CLS],
                                         tokenizer->special[QKV_TOKEN_SEP]);
        return QKV_OK;
    }
    if (s->class->maker == QKVI_MADE_BY_CLIP) {
        qkvi_tokenizer_roberta_templates(tokenizer, qkvi_settings_id(s, QKVI_BOS, tokenizer),
                                         qkvi_settings_id(s, QKVI_EOS, tokenizer));
        return QKV_OK;
    }
    const int is_neox = s->class->maker == QKVI_MADE_BY_GPT_NEOX;
    if (root && !is_neox) return qkvi_tokenizer_read_post_processor(&reader);
    set_gpt2(s, !root, tokenizer);
    return QKV_OK;
}

/* ---- What the classes set -------------------------------------------------------------------- */

static void set_byte_level(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    qkvi_bpe *model = qkvi_bpe_of(tokenizer);
    const int is_qwen = s->class->maker == QKVI_MADE_BY_QWEN2;
    model->add_prefix_space = s->add_prefix_space;
    model->lowers = s->files->lower_first;
    if (is_qwen) {
        model->composes = model->max_digits = 1;
        model->cut = QKVI_CUT_MODERN;
        model->gpt2_words = 0;
    }
    if (s->class->maker == QKVI_MADE_BY_GPT_NEOX) model->composes = 1;
    if (s->class->maker == QKVI_MADE_BY_CLIP) {
        model->composes = model->lowers_composed = model->ends_words = 1;
        model->add_prefix_space = model->gpt2_words = 0;
        model->cut = QKVI_CUT_CLIP;
    }
    tokenizer->normalizes = model->lowers || model->composes;
}

/* A byte without a token. */
static void set_unk(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    const char *const unk = s->named[QKVI_UNK].content;
    if (s->class->maker != QKVI_MADE_BY_CLIP) return;
    qkvi_bpe_of(tokenizer)->unk = qkvi_pieces_find(&tokenizer->pieces, unk, strlen(unk));
}

/* tokenization_utils_base.py, _get_prepend_scheme. */
static void set_metaspace(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    qkvi_bpe *model = qkvi_bpe_of(tokenizer);
    qkvi_metaspace *const rules = &model->metaspace;
    const int is_gemma = s->class->maker == QKVI_MADE_BY_GEMMA;
    model->fuse_unk = model->byte_fallback = rules->joins_bytes = 1;
    tokenizer->normalizes = rules->replaces = is_gemma;
    rules->is_on = !is_gemma;
    if (is_gemma || !s->add_prefix_space) return;
    rules->prepend = s->legacy ? QKVI_PREPEND_ALWAYS : QKVI_PREPEND_FIRST;
    rules->strips = 1;
}

static qkv_status end_metaspace(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    const char *const unk = s->named[QKVI_UNK].content;
    if (tokenizer->kind != &qkvi_metaspace_kind) return QKV_OK;
    if (s->class->maker == QKVI_MADE_BY_GEMMA && unk)
        qkvi_bpe_of(tokenizer)->unk = qkvi_pieces_find(&tokenizer->pieces, unk, strlen(unk));
    return qkvi_metaspace_check_bytes(tokenizer, s->files->tokenizer.name, s->error);
}

/* More than ByteLevel: SmolLM2's files have Digits before it, and name GPT2Tokenizer. */
static int is_sequence(const json_t *root) {
    const json_t *const part = json_object_get(root, "pre_tokenizer");
    return json_array_size(json_object_get(part, "pretokenizers")) > 1;
}

static qkv_status fill(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const int has_bytes = tokenizer->kind == &qkvi_bpe_kind;
    if (!has_bytes && s->files->lower_first)
        return qkvi_error_set(s->error, QKV_ERR_UNSUPPORTED,
                              "%s: do_lower_case of a sentence model is not supported for %s",
                              s->files->tokenizer.name, s->class->name);
    (has_bytes ? set_byte_level : set_metaspace)(s, tokenizer);
    QKV_TRY(read_words(s, root, tokenizer));
    QKV_TRY(end_metaspace(s, tokenizer));
    set_unk(s, tokenizer);
    QKV_TRY(qkvi_settings_add_tokens(s, root, tokenizer));
    QKV_TRY(set_around(s, root, tokenizer));
    QKV_TRY(qkvi_settings_apply(s, tokenizer));
    tokenizer->other_words = has_bytes &&
                             !(s->class->maker & (QKVI_MADE_BY_QWEN2 | QKVI_MADE_BY_CLIP)) &&
                             is_sequence(root);
    return QKV_OK;
}

qkv_status qkvi_bpe_make(const qkvi_settings *s, const json_t *root, qkv_tokenizer **out) {
    const int has_bytes = !(s->class->maker & (QKVI_MADE_BY_LLAMA | QKVI_MADE_BY_GEMMA));
    return qkvi_settings_make(s, root, has_bytes ? qkvi_bpe_new() : qkvi_metaspace_new(), fill,
                              out);
}

qkv_status qkvi_tokenizer_read_bpe(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                   qkv_error *error) {
    static const qkvi_settings_wanted wanted = { "vocab.json and merges.txt",
                                                 QKVI_MADE_BY_ROBERTA | QKVI_MADE_BY_GPT2 |
                                                     QKVI_MADE_BY_QWEN2 | QKVI_MADE_BY_GPT_NEOX |
                                                     QKVI_MADE_BY_CLIP,
                                                 0, 0 };
    qkvi_settings settings;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK) status = qkvi_bpe_make(&settings, NULL, tokenizer);
    qkvi_settings_free(&settings);
    return status;
}
