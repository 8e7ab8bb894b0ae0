/**
 * The small files of a folder, and the class that they name: see settings.h. Reference:
 * transformers, models/auto/tokenization_auto.py, tokenization_utils_base.py (_from_pretrained),
 * tokenization_utils_tokenizers.py.
 */
#include "text/settings.h"

#include "text/tokenizer_fields.h"

static qkvi_json_reader top_of(const qkvi_settings *s, const qkvi_text_file *file,
                               const json_t *root) {
    return (qkvi_json_reader){ file->name, "", root, s->error };
}

/* ---- Switches -------------------------------------------------------------------------------- */

static qkv_status take_side(const qkvi_json_reader *reader, int *cuts_left) {
    const char *side = *cuts_left ? "left" : "right";
    QKV_TRY(qkvi_json_take_string(reader, "truncation_side", &side));
    *cuts_left = strcmp(side, "left") == 0;
    if (*cuts_left || strcmp(side, "right") == 0) return QKV_OK;
    return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT,
                          "truncation_side \"%s\" is neither \"left\" nor \"right\"",
                          QKVI_PRINTABLE(96, side));
}

/* model_input_names: without token_type_ids a model is given none, and has zeros. */
static qkv_status take_inputs(const qkvi_json_reader *reader, int *has_types) {
    const json_t *names = NULL;
    QKV_TRY(qkvi_json_take_array(reader, "model_input_names", &names));
    if (names == NULL) return QKV_OK;
    *has_types = 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        if (name == NULL)
            return QKVI_JSON_FAIL(reader, QKV_ERR_FORMAT, "model_input_names[%zu] is no string", i);
        if (strcmp(name, "token_type_ids") == 0) *has_types = 1;
    }
    return QKV_OK;
}

/*
 * model_max_length, or by its older name max_len: a huge number is no limit. Marian's class has
 * one.
 */
static qkv_status take_length(qkvi_settings *s) {
    const qkvi_json_reader reader = top_of(s, &s->files->tokenizer_config, s->tokenizer_config);
    s->max_len = s->class->maker == QKVI_MADE_BY_MARIAN ? 512 : QKVI_NO_LIMIT;
    if (s->tokenizer_config == NULL) return QKV_OK;
    QKV_TRY(qkvi_json_take_limit(&reader, "max_len", QKVI_NO_LIMIT, &s->max_len));
    QKV_TRY(qkvi_json_take_limit(&reader, "model_max_length", QKVI_NO_LIMIT, &s->max_len));
    if (s->max_len > 0) return QKV_OK;
    return qkvi_error_set(s->error, QKV_ERR_FORMAT, "%s: model_max_length = 0 is less than 1",
                          reader.file);
}

/* What would take other files, or other arguments, than those that are read here. */
static qkv_status refuse_lists(const qkvi_json_reader *reader) {
    static const char *const names[] = { "fast_tokenizer_files", "init_inputs" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *list = NULL;
        QKV_TRY(qkvi_json_take_array(reader, names[i], &list));
        if (json_array_size(list) > 0)
            return QKVI_JSON_FAIL(reader, QKV_ERR_UNSUPPORTED,
                                  "%s is not empty, which is not supported", names[i]);
    }
    return QKV_OK;
}

static qkv_status take_switches(qkvi_settings *s) {
    const qkvi_json_reader reader = top_of(s, &s->files->tokenizer_config, s->tokenizer_config);
    const struct {
        const char *name;
        int *value;
    } switches[] = {
        { "do_lower_case", &s->lower_case },
        { "strip_accents", &s->strip_accents },
        { "tokenize_chinese_chars", &s->split_cjk },
        { "add_prefix_space", &s->add_prefix_space },
        { "trim_offsets", &s->trim_offsets },
        { "add_bos_token", &s->add_bos },
        { "add_eos_token", &s->add_eos },
        { "split_special_tokens", &s->splits_special },
        { "legacy", &s->legacy },
    };
    if (s->tokenizer_config == NULL) return QKV_OK;
    for (size_t i = 0; i < sizeof switches / sizeof *switches; i++)
        QKV_TRY(qkvi_json_take_bool(&reader, switches[i].name, switches[i].value));
    QKV_TRY(take_side(&reader, &s->cuts_left));
    QKV_TRY(take_inputs(&reader, &s->has_types));
    return refuse_lists(&reader);
}

/* ---- Named tokens ---------------------------------------------------------------------------- */

static const char *const named_fields[QKVI_N_NAMED] = { "bos_token", "eos_token", "unk_token",
                                                        "sep_token", "pad_token", "cls_token",
                                                        "mask_token" };

static void set_defaults(qkvi_settings *s) {
    static const struct {
        qkvi_maker maker;
        const char *tokens[QKVI_N_NAMED];
    } defaults[] = {
        { QKVI_MADE_BY_BERT, { NULL, NULL, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]" } },
        { QKVI_MADE_BY_ROBERTA, { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>" } },
        { QKVI_MADE_BY_GPT2, { "<|endoftext|>", "<|endoftext|>", "<|endoftext|>" } },
        { QKVI_MADE_BY_GPT_NEOX,
          { "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, "<|padding|>" } },
        { QKVI_MADE_BY_CLIP,
          { "<|startoftext|>", "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>" } },
        { QKVI_MADE_BY_QWEN2, { NULL, "<|endoftext|>", "<|endoftext|>", NULL, "<|endoftext|>" } },
        { QKVI_MADE_BY_LLAMA, { "<s>", "</s>", "<unk>" } },
        { QKVI_MADE_BY_GEMMA, { "<bos>", "<eos>", "<unk>", NULL, "<pad>", NULL, "<mask>" } },
        { QKVI_MADE_BY_MARIAN, { NULL, "</s>", "<unk>", NULL, "<pad>" } },
        { QKVI_MADE_BY_XLM_ROBERTA, { "<s>", "</s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>" } },
        { QKVI_MADE_BY_MPNET, { "<s>", "</s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>" } },
        { QKVI_MADE_BY_T5, { NULL, "</s>", "<unk>", NULL, "<pad>" } },
        { QKVI_MADE_BY_SIGLIP, { NULL, "</s>", "<unk>", NULL, "</s>" } },
    };
    for (size_t d = 0; d < sizeof defaults / sizeof *defaults; d++) {
        if (defaults[d].maker != s->class->maker) continue;
        for (int i = 0; i < QKVI_N_NAMED; i++)
            s->named[i] = (qkvi_named_token){ defaults[d].tokens[i], QKVI_ADDED_SPECIAL, 0 };
    }
    if (s->class->maker == QKVI_MADE_BY_MPNET) s->named[QKVI_MASK].flags |= QKVI_ADDED_LSTRIP;
    for (int i = 0; i < QKVI_N_NAMED && s->class->maker == QKVI_MADE_BY_SIGLIP; i++)
        s->named[i].flags |= QKVI_ADDED_LSTRIP | QKVI_ADDED_RSTRIP;
}

static qkv_status take_named(qkvi_settings *s, const qkvi_text_file *file, const json_t *root) {
    for (int i = 0; i < QKVI_N_NAMED; i++) {
        const json_t *value = json_object_get(root, named_fields[i]);
        if (json_is_null(value)) s->named[i] = (qkvi_named_token){ 0 };
        if (value == NULL || json_is_null(value)) continue;
        QKV_TRY(qkvi_settings_token(file->name, named_fields[i], value, 1, &s->named[i], s->error));
    }
    return QKV_OK;
}

/* What the class cannot be without. */
static qkv_status check_named(const qkvi_settings *s) {
    static const struct {
        qkvi_maker maker;
        qkvi_named which;
    } needed[] = {
        { QKVI_MADE_BY_BERT, QKVI_UNK },        { QKVI_MADE_BY_BERT, QKVI_CLS },
        { QKVI_MADE_BY_BERT, QKVI_SEP },        { QKVI_MADE_BY_ROBERTA, QKVI_CLS },
        { QKVI_MADE_BY_ROBERTA, QKVI_SEP },     { QKVI_MADE_BY_MARIAN, QKVI_UNK },
        { QKVI_MADE_BY_MARIAN, QKVI_EOS },      { QKVI_MADE_BY_XLM_ROBERTA, QKVI_BOS },
        { QKVI_MADE_BY_XLM_ROBERTA, QKVI_EOS }, { QKVI_MADE_BY_MPNET, QKVI_UNK },
        { QKVI_MADE_BY_MPNET, QKVI_CLS },       { QKVI_MADE_BY_MPNET, QKVI_SEP },
        { QKVI_MADE_BY_CLIP, QKVI_BOS },        { QKVI_MADE_BY_CLIP, QKVI_EOS },
        { QKVI_MADE_BY_CLIP, QKVI_UNK },        { QKVI_MADE_BY_T5, QKVI_EOS },
        { QKVI_MADE_BY_SIGLIP, QKVI_EOS },      { QKVI_MADE_BY_SIGLIP, QKVI_UNK },
    };
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        if (needed[i].maker == s->class->maker && !s->named[needed[i].which].content)
            return qkvi_error_set(s->error, QKV_ERR_UNSUPPORTED,
                                  "%s: %s is null, which is not supported",
                                  s->files->tokenizer_config.name, named_fields[needed[i].which]);
    }
    return QKV_OK;
}

/* ---- Everything ------------------------------------------------------------------------------ */

static qkv_status load(const qkvi_text_file *file, json_t **root, qkv_error *error) {
    if (file->bytes == NULL) return QKV_OK;
    return qkvi_json_load(file->name, file->bytes, file->n_bytes, &qkvi_json_limits_tokenizer, root,
                          error);
}

qkv_status qkvi_settings_read(const qkvi_text_files *files, const qkvi_settings_wanted *wanted,
                              qkvi_settings *s, qkv_error *error) {
    *s = (qkvi_settings){ .files = files,
                          .lower_case = 1,
                          .strip_accents = -1,
                          .split_cjk = 1,
                          .trim_offsets = 1,
                          .error = error };
    QKV_TRY(load(&files->tokenizer_config, &s->tokenizer_config, error));
    QKV_TRY(load(&files->config, &s->config, error));
    if (!json_object_get(s->tokenizer_config, "added_tokens_decoder")) {
        QKV_TRY(load(&files->special_tokens_map, &s->special_tokens_map, error));
        QKV_TRY(load(&files->added_tokens, &s->added_tokens, error));
    }
    QKV_TRY(qkvi_settings_choose(s, wanted));
    s->add_prefix_space = (s->class->maker & (QKVI_MADE_BY_LLAMA | QKVI_MADE_BY_XLM_ROBERTA)) != 0;
    s->has_types = s->class->has_types || (!s->tokenizer_config && !s->config);
    QKV_TRY(take_switches(s));
    if (s->class->maker == QKVI_MADE_BY_XLM_ROBERTA &&
        json_is_null(json_object_get(s->tokenizer_config, "add_prefix_space")))
        s->add_prefix_space = 0; /* to this class null is not absent */
    QKV_TRY(take_length(s));
    set_defaults(s);
    QKV_TRY(take_named(s, &files->tokenizer_config, s->tokenizer_config));
    QKV_TRY(take_named(s, &files->special_tokens_map, s->special_tokens_map));
    return check_named(s);
}

void qkvi_settings_free(qkvi_settings *s) {
    json_decref(s->tokenizer_config);
    json_decref(s->special_tokens_map);
    json_decref(s->added_tokens);
    json_decref(s->config);
}

/* Of truncation only the side matters, of padding only the token: nothing is cut or padded here. */
qkv_status qkvi_settings_take_json(qkvi_settings *s, const json_t *root) {
    const qkvi_json_reader top = top_of(s, &s->files->tokenizer, root);
    const json_t *truncation = NULL, *padding = NULL;
    const char *direction = "Right", *pad = NULL;
    QKV_TRY(qkvi_json_take_object(&top, "truncation", &truncation));
    QKV_TRY(qkvi_json_take_object(&top, "padding", &padding));
    const qkvi_json_reader cut = { top.file, "truncation", truncation, s->error };
    const qkvi_json_reader fill = { top.file, "padding", padding, s->error };
    if (truncation) QKV_TRY(qkvi_json_take_string(&cut, "direction", &direction));
    if (padding) QKV_TRY(qkvi_json_take_string(&fill, "pad_token", &pad));
    if (!json_object_get(s->tokenizer_config, "truncation_side"))
        s->cuts_left = strcmp(direction, "Left") == 0;
    if (pad && s->class->maker == QKVI_MADE_BY_FILE && s->tokenizer_config &&
        !json_object_get(s->tokenizer_config, "pad_token"))
        s->named[QKVI_PAD] = (qkvi_named_token){ pad, QKVI_ADDED_SPECIAL, 1 };
    return QKV_OK;
}

/*
 * A token that a switch wants at one end of a text, where the class, which does not heed the
 * switch, has none.
 */
static int lacks(const qkvi_settings *s, const qkv_tokenizer *tokenizer, int is_wanted,
                 qkvi_named token, int at_end) {
    const qkvi_template *const text = &tokenizer->single;
    const int32_t id = is_wanted ? qkvi_settings_id(s, token, tokenizer) : -1;
    return id >= 0 && (text->n == 0 || text->items[at_end ? text->n - 1 : 0].id != id);
}

/* Of several templates the one that is named default. */
static const json_t *chat_template(const json_t *config) {
    const json_t *const field = json_object_get(config, "chat_template");
    for (size_t i = 0; i < json_array_size(field); i++) {
        const json_t *const one = json_array_get(field, i);
        const char *const name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(one, "template");
    }
    return field;
}

/* A file of its own goes before the field. */
static qkv_status take_chat(const qkvi_settings *s, qkvi_chat *chat) {
    const json_t *const field = chat_template(s->tokenizer_config);
    const char *template = s->files->chat_template.bytes;
    size_t n = s->files->chat_template.n_bytes;
    if (!template && json_is_string(field)) {
        template = json_string_value(field);
        n = json_string_length(field);
    }
    const qkv_status status =
        qkvi_chat_read(template, n, s->named[QKVI_BOS].content, s->named[QKVI_EOS].content, chat);
    return status == QKV_OK ? QKV_OK : qkvi_no_memory(s->error, "a chat template");
}

qkv_status qkvi_settings_apply(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    tokenizer->has_types = s->has_types;
    tokenizer->lacks_bos = lacks(s, tokenizer, s->add_bos, QKVI_BOS, 0);
    tokenizer->lacks_eos = lacks(s, tokenizer, s->add_eos, QKVI_EOS, 1);
    if (s->splits_special)
        tokenizer->added.skips =
            s->class->maker == QKVI_MADE_BY_MARIAN ? QKVI_ADDED_ALL : QKVI_ADDED_SPECIAL;
    tokenizer->cuts_left = s->cuts_left;
    tokenizer->max_len = s->max_len;
    return take_chat(s, &tokenizer->chat);
}

qkv_status qkvi_settings_make(const qkvi_settings *s, const json_t *root, qkv_tokenizer *made,
                              qkvi_settings_fill *fill, qkv_tokenizer **out) {
    *out = NULL;
    if (made == NULL)
        return qkvi_error_set(s->error, QKV_ERR_MEMORY, "%s: no memory for a tokenizer",
                              s->files->vocab.name);
    const qkv_status status = fill(s, root, made);
    if (status == QKV_OK) {
        qkvi_tokenizer_keep_files(s->files, made);
        *out = made;
    } else {
        qkv_tokenizer_free(made);
    }
    return status;
}
