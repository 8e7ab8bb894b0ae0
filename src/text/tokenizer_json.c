/**
 * tokenizer.json: the part of Hugging Face's format that supported models use.
 *
 *     model           read with normalizer and pre_tokenizer by a function of kinds[], by its type
 *     added_tokens    cut out of the text
 *     post_processor  templates around a text
 *     decoder         must be that of the kind, or decoding is refused
 *
 * A class may take only the vocabulary (settings.h). Anything else that would change ids is refused
 * by its name. truncation and padding have no effect on encodings here.
 */
#include "text/tokenizer_json.h"

#include "text/bpe.h"
#include "text/tokenizer_parts.h"
#include "text/unigram.h"
#include "text/wordpiece.h"

static qkvi_metaspace *metaspace_of(const qkv_tokenizer *tokenizer) {
    if (tokenizer->kind == &qkvi_metaspace_kind) return &qkvi_bpe_of(tokenizer)->metaspace;
    return tokenizer->kind == &qkvi_unigram_kind ? &qkvi_unigram_of(tokenizer)->metaspace : NULL;
}

/* A decoder changes no ids: one that is not the kind's is refused when something is decoded. */
static qkv_status read_decoder(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    const qkvi_json_reader top = qkvi_tokenizer_fields(r, "", r->root);
    QKV_TRY(qkvi_json_take_object(&top, "decoder", &object));
    r->tokenizer->decoder = QKVI_DECODER_PLAIN;
    if (object == NULL) return QKV_OK;
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "decoder", object);
    QKV_TRY(qkvi_json_need_string(&inner, "type", &type));
    qkvi_metaspace *const rules = metaspace_of(r->tokenizer);
    if (rules) return qkvi_metaspace_read_decoder(r, object, rules);
    r->tokenizer->decoder =
        strcmp(type, r->tokenizer->kind->decoder) == 0 ? QKVI_DECODER_KIND : QKVI_DECODER_OTHER;
    return QKV_OK;
}

/* Kinds of model, by model.type. */
static const struct {
    const qkvi_tokenizer_kind *kind;
    qkvi_tokenizer_read_kind *read;
} kinds[] = {
    { &qkvi_wordpiece_kind, qkvi_wordpiece_read_json },
    { &qkvi_bpe_kind, qkvi_bpe_read_json },
    { &qkvi_unigram_kind, qkvi_unigram_read_json },
};

static qkv_status read_kind(qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "model", &object, &type));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].kind->name, type) == 0) return kinds[i].read(r);
    }
    return qkvi_tokenizer_refuse(r, "model", type);
}

/* The whole file, as it is. */
static qkv_status read_file(const qkvi_settings *s, const json_t *root, qkv_tokenizer **tokenizer) {
    qkvi_tokenizer_reader r = qkvi_tokenizer_reader_of(s, root, NULL);
    qkv_status status = read_kind(&r);
    if (status == QKV_OK) status = qkvi_settings_add_tokens(s, root, r.tokenizer);
    if (status == QKV_OK) status = qkvi_tokenizer_read_post_processor(&r);
    if (status == QKV_OK) status = read_decoder(&r);
    if (status == QKV_OK) status = qkvi_settings_apply(s, r.tokenizer);
    if (status == QKV_OK)
        *tokenizer = r.tokenizer;
    else
        qkv_tokenizer_free(r.tokenizer);
    return status;
}

static qkv_status read_any(qkvi_settings *s, const json_t *root, qkv_tokenizer **tokenizer) {
    QKV_TRY(qkvi_settings_take_json(s, root));
    switch (s->class->maker) {
    case QKVI_MADE_BY_BERT:
    case QKVI_MADE_BY_MPNET: return qkvi_bert_make(s, root, tokenizer);
    case QKVI_MADE_BY_T5:
    case QKVI_MADE_BY_XLM_ROBERTA: return qkvi_unigram_make(s, root, tokenizer);
    case QKVI_MADE_BY_ROBERTA:
    case QKVI_MADE_BY_QWEN2:
    case QKVI_MADE_BY_LLAMA:
    case QKVI_MADE_BY_GEMMA:
    case QKVI_MADE_BY_GPT_NEOX:
    case QKVI_MADE_BY_CLIP:
    case QKVI_MADE_BY_GPT2: return qkvi_bpe_make(s, root, tokenizer);
    default: return read_file(s, root, tokenizer);
    }
}

qkv_status qkvi_tokenizer_read_json(const qkvi_text_files *files, qkv_tokenizer **tokenizer,
                                    qkv_error *error) {
    static const qkvi_settings_wanted wanted = { "tokenizer.json",
                                                 QKVI_MADE_BY_ANY & ~QKVI_MADE_BY_MARIAN &
                                                     ~QKVI_MADE_BY_SIGLIP,
                                                 QKVI_MADE_BY_FILE, 0 };
    const qkvi_text_file *const file = &files->tokenizer;
    qkvi_settings settings;
    qkvi_tokenizer_words words = { 0 };
    json_t *root = NULL;
    *tokenizer = NULL;
    qkv_status status = qkvi_settings_read(files, &wanted, &settings, error);
    if (status == QKV_OK)
        status =
            qkvi_tokenizer_words_load(file->name, file->bytes, file->n_bytes, &words, &root, error);
    settings.words = &words;
    if (status == QKV_OK) status = read_any(&settings, root, tokenizer);
    json_decref(root);
    qkvi_settings_free(&settings);
    return status;
}
