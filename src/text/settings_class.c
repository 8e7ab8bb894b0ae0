/* Classes of tokenizers, and which of them a folder names: see settings.h. Reference: transformers,
 * models/auto/tokenization_auto.py. */
#include "text/settings.h"

#include "core/find.h"

/*
 * Names as files have them, without "Fast". Others split texts in ways that are not here. Types are
 * told where a model may have them: that of DistilBERT has none, and who takes a file as it is
 * knows none.
 */
static const qkvi_tokenizer_class classes[] = {
    { "TokenizersBackend", QKVI_MADE_BY_FILE, 0 },
    { "PreTrainedTokenizer", QKVI_MADE_BY_FILE, 0 },
    { "BloomTokenizer", QKVI_MADE_BY_FILE, 0 }, /* a name that is TokenizersBackend now */
    { "BertTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "DistilBertTokenizer", QKVI_MADE_BY_BERT, 0 },
    { "ElectraTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "MobileBertTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "SqueezeBertTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "LayoutLMTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "LxmertTokenizer", QKVI_MADE_BY_BERT, 1 },
    { "RobertaTokenizer", QKVI_MADE_BY_ROBERTA, 1 },
    { "BartTokenizer", QKVI_MADE_BY_ROBERTA, 1 },
    { "LongformerTokenizer", QKVI_MADE_BY_ROBERTA, 1 },
    { "LEDTokenizer", QKVI_MADE_BY_ROBERTA, 1 },
    { "MvpTokenizer", QKVI_MADE_BY_ROBERTA, 1 },
    { "GPT2Tokenizer", QKVI_MADE_BY_GPT2, 1 },
    { "GPTNeoXTokenizer", QKVI_MADE_BY_GPT_NEOX, 0 },
    { "CLIPTokenizer", QKVI_MADE_BY_CLIP, 0 },
    { "Qwen2Tokenizer", QKVI_MADE_BY_QWEN2, 0 },
    { "LlamaTokenizer", QKVI_MADE_BY_LLAMA, 0 },
    { "GemmaTokenizer", QKVI_MADE_BY_GEMMA, 0 },
    { "MarianTokenizer", QKVI_MADE_BY_MARIAN, 1 },
    { "XLMRobertaTokenizer", QKVI_MADE_BY_XLM_ROBERTA, 0 },
    { "MPNetTokenizer", QKVI_MADE_BY_MPNET, 0 },
    { "T5Tokenizer", QKVI_MADE_BY_T5, 0 },
    { "SiglipTokenizer", QKVI_MADE_BY_SIGLIP, 0 },
};

/* What a model's type says about the class beside a class that is named. */
enum type_rule {
    BEHIND_CLASS, /* it counts where no class is named */
    BEFORE_CLASS  /* it counts whatever class is named: files of such models name wrong ones */
};

/*
 * Types without a row are those of PreTrainedTokenizerFast: tokenizer.json as it is, if there is
 * one.
 */
static const struct model_type {
    const char *name, *class;
    enum type_rule rule;
} types[] = {
    { "bert", "BertTokenizer", BEHIND_CLASS },
    { "distilbert", "BertTokenizer", BEHIND_CLASS },
    { "electra", "BertTokenizer", BEHIND_CLASS },
    { "roberta", "RobertaTokenizer", BEHIND_CLASS },
    { "xlm-roberta", "XLMRobertaTokenizer", BEHIND_CLASS },
    { "mpnet", "MPNetTokenizer", BEHIND_CLASS },
    { "bart", "RobertaTokenizer", BEHIND_CLASS },
    { "gpt2", "GPT2Tokenizer", BEHIND_CLASS },
    { "gptj", "GPT2Tokenizer", BEHIND_CLASS },
    { "opt", "GPT2Tokenizer", BEHIND_CLASS },
    { "gpt_neox", "GPTNeoXTokenizer", BEHIND_CLASS },
    { "clip", "CLIPTokenizer", BEHIND_CLASS },
    { "clip_text_model", "CLIPTokenizer", BEHIND_CLASS },
    { "siglip", "SiglipTokenizer", BEHIND_CLASS },
    { "siglip_text_model", "SiglipTokenizer", BEHIND_CLASS },
    { "marian", "MarianTokenizer", BEHIND_CLASS },
    { "t5", "T5Tokenizer", BEHIND_CLASS },
    { "mt5", "T5Tokenizer", BEHIND_CLASS },
    { "gemma", "GemmaTokenizer", BEHIND_CLASS },
    { "gemma2", "GemmaTokenizer", BEHIND_CLASS },
    { "gemma3", "GemmaTokenizer", BEHIND_CLASS },
    { "gemma3_text", "GemmaTokenizer", BEHIND_CLASS },
    { "qwen2", "Qwen2Tokenizer", BEFORE_CLASS },
    { "qwen3", "Qwen2Tokenizer", BEHIND_CLASS },
    { "granite", "TokenizersBackend", BEFORE_CLASS },
    { "olmo2", "TokenizersBackend", BEFORE_CLASS },
    { "mistral", "TokenizersBackend", BEFORE_CLASS },
    { "mixtral", "TokenizersBackend", BEFORE_CLASS },
    { "modernbert", "TokenizersBackend", BEFORE_CLASS },
    { "phi3", "TokenizersBackend", BEFORE_CLASS },
};

static const qkvi_tokenizer_class *find_class(const char *name) {
    const size_t n = strlen(name) - (qkvi_has_stem(name, "Fast") ? strlen("Fast") : 0);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strlen(classes[i].name) == n && memcmp(name, classes[i].name, n) == 0)
            return &classes[i];
    }
    return NULL;
}

static const struct model_type *find_type(const char *name) {
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) return &types[i];
    return NULL;
}

static const qkvi_tokenizer_class *class_of_maker(qkvi_maker maker) {
    size_t i = 0;
    while (classes[i].maker != maker) i++;
    return &classes[i];
}

static qkvi_json_reader top_of(const qkvi_settings *s, const qkvi_text_file *file,
                               const json_t *root) {
    return (qkvi_json_reader){ file->name, "", root, s->error };
}

static qkv_status refuse(const qkvi_settings *s, const qkvi_text_file *file, const char *field,
                         const char *value, const char *what) {
    return qkvi_error_set(s->error, QKV_ERR_UNSUPPORTED,
                          "%s: %s \"%s\" is not one that %s can be read for", file->name, field,
                          QKVI_PRINTABLE(96, value), what);
}

/* What files name; NULL: nothing does. */
struct named_class {
    const char *class, *type;
    const qkvi_text_file *file; /* that has the class */
};

/* tokenizer_config.json goes before config.json. */
static qkv_status read_names(const qkvi_settings *s, const qkvi_settings_wanted *wanted,
                             struct named_class *names) {
    const qkvi_text_file *const first = &s->files->tokenizer_config, *second = &s->files->config;
    const qkvi_json_reader one = top_of(s, first, s->tokenizer_config);
    const qkvi_json_reader other = top_of(s, second, s->config);
    if (s->tokenizer_config) QKV_TRY(qkvi_json_take_string(&one, "tokenizer_class", &names->class));
    names->file = names->class ? first : second;
    if (s->config && !names->class)
        QKV_TRY(qkvi_json_take_string(&other, "tokenizer_class", &names->class));
    if (s->config) QKV_TRY(qkvi_json_take_string(&other, "model_type", &names->type));
    const struct model_type *const type = names->type ? find_type(names->type) : NULL;
    const qkvi_tokenizer_class *const class = type ? find_class(type->class) : NULL;
    if (wanted->ignores_type && !(class && (class->maker & (unsigned)wanted->makers)))
        names->type = NULL;
    return QKV_OK;
}

/* Files of Llama 3 name LlamaTokenizer, whose words they do not have. */
static int is_byte_level(const qkvi_text_file *file) {
    static const char word[] = "\"ByteLevel\"";
    return file->bytes && qkvi_find(file->bytes, file->n_bytes, word, sizeof word - 1) != NULL;
}

/* A class before a type, but for the rules of the type. */
qkv_status qkvi_settings_choose(qkvi_settings *s, const qkvi_settings_wanted *wanted) {
    struct named_class names = { 0 };
    QKV_TRY(read_names(s, wanted, &names));
    const struct model_type *const type = names.type ? find_type(names.type) : NULL;
    const int by_type = type && (!names.class || type->rule == BEFORE_CLASS);
    s->class = by_type ? find_class(type->class) : names.class ? find_class(names.class) : NULL;
    if (s->class && s->class->maker == QKVI_MADE_BY_LLAMA && is_byte_level(&s->files->tokenizer))
        s->class = class_of_maker(QKVI_MADE_BY_FILE);
    const int is_wanted = s->class && (s->class->maker & (unsigned)wanted->makers);
    if (names.class && !by_type && !is_wanted)
        return refuse(s, names.file, "tokenizer_class", names.class, wanted->what);
    if (names.type && !names.class && !is_wanted && (s->class || wanted->otherwise == 0))
        return refuse(s, &s->files->config, "model_type", names.type, wanted->what);
    if (by_type && !is_wanted)
        return refuse(s, &s->files->config, "model_type", names.type, wanted->what);
    if (!s->class && wanted->otherwise) s->class = class_of_maker(wanted->otherwise);
    if (s->class) return QKV_OK;
    return qkvi_error_set(s->error, QKV_ERR_FORMAT,
                          "%s: what stands around a text is unknown: neither tokenizer_config.json "
                          "has a tokenizer_class nor config.json a model_type",
                          s->files->vocab.name);
}
