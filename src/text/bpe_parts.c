/*
 * The parts of a tokenizer.json whose model is BPE. With a pre-tokenizer ByteLevel it is
 * byte-level, else metaspace:
 *
 *     byte-level  normalizer     null, Lowercase, NFC, or the latter two in this order
 *                 pre_tokenizer  ByteLevel; before it, in a Sequence, Digits, or Split by a pattern
 *                                of words.h
 *     metaspace   normalizer     null, Prepend of U+2581, Replace of spaces by U+2581, or both
 *                 pre_tokenizer  null, Metaspace, or Split at spaces, which has no effect here
 *                 decoder        Metaspace, or a Sequence of Replace, ByteFallback, Fuse and Strip
 */
#include "text/bpe.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_parts.h"
#include "text/words.h"

static const char pre_list[] = "pretokenizers";

static int is_byte_level(const json_t *root) {
    const json_t *const part = json_object_get(root, "pre_tokenizer");
    for (size_t i = 0; i < qkvi_part_count(part, pre_list); i++)
        if (qkvi_part_is(qkvi_part_entry(part, pre_list, i), "ByteLevel")) return 1;
    return 0;
}

/* ---- Byte-level ------------------------------------------------------------------------------ */

static qkv_status read_normalizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_tokenizer_normalizer(r, &object, &model->lowers));
    model->composes = qkvi_part_is(object, "NFC");
    r->tokenizer->normalizes = model->lowers || model->composes;
    if (object == NULL || model->composes) return QKV_OK;
    return qkvi_tokenizer_refuse(r, "normalizer", qkvi_part_type(object));
}

/*
 * Split by a pattern: one that is written out in words.c. Each word is a part, also where words are
 * said to be what stays when the rest is removed, for there is no rest.
 */
static qkv_status read_split(const qkvi_tokenizer_reader *r, const json_t *part) {
    static const struct {
        const char *pattern;
        qkvi_bpe_cut cut;
        int max_digits;
    } known[] = {
        { qkvi_gpt2_pattern, QKVI_CUT_GPT2, 0 },
        { qkvi_bloom_pattern, QKVI_CUT_BLOOM, 0 },
        { qkvi_llama3_pattern, QKVI_CUT_MODERN, 3 },
        { qkvi_qwen_pattern, QKVI_CUT_MODERN, 1 },
    };
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "pre_tokenizer", part);
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    const json_t *const pattern = json_object_get(part, "pattern");
    const char *behavior = "", *text = json_string_value(json_object_get(pattern, "Regex"));
    int invert = 0;
    QKV_TRY(qkvi_json_need_string(&inner, "behavior", &behavior));
    QKV_TRY(qkvi_json_take_bool(&inner, "invert", &invert));
    const int keeps =
        strcmp(behavior, "Isolated") == 0 || (strcmp(behavior, "Removed") == 0 && invert);
    if (!keeps)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                                   "pre_tokenizer Split with behavior \"%s\" is not supported",
                                   QKVI_PRINTABLE(96, behavior));
    for (size_t i = 0; i < sizeof known / sizeof *known && text; i++) {
        if (strcmp(text, known[i].pattern) != 0) continue;
        model->cut = known[i].cut;
        model->max_digits = known[i].max_digits;
        return QKV_OK;
    }
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                               "pre_tokenizer Split by the pattern \"%s\" is not supported",
                               QKVI_PRINTABLE(96, text ? text : "null"));
}

static qkv_status read_byte_level(const qkvi_tokenizer_reader *r, const json_t *part) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "pre_tokenizer", part);
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    model->add_prefix_space = model->gpt2_words = 1;
    QKV_TRY(qkvi_json_take_bool(&inner, "add_prefix_space", &model->add_prefix_space));
    return qkvi_json_take_bool(&inner, "use_regex", &model->gpt2_words);
}

static qkv_status read_digits(const qkvi_tokenizer_reader *r, const json_t *part) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "pre_tokenizer", part);
    int each = 0;
    QKV_TRY(qkvi_json_take_bool(&inner, "individual_digits", &each));
    qkvi_bpe_of(r->tokenizer)->cut = each ? QKVI_CUT_DIGIT : QKVI_CUT_DIGITS;
    return QKV_OK;
}

/* At most one that cuts, then ByteLevel. */
static qkv_status read_pre_tokenizer(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    const char *type = "";
    QKV_TRY(qkvi_tokenizer_part(r, "pre_tokenizer", &object, &type));
    const size_t n = qkvi_part_count(object, pre_list);
    if (n > 2) return qkvi_tokenizer_refuse(r, "pre_tokenizer", "Sequence of more than two");
    const json_t *const first = n == 2 ? qkvi_part_entry(object, pre_list, 0) : NULL;
    const json_t *const last = qkvi_part_entry(object, pre_list, n - 1);
    if (first && qkvi_part_is(first, "Digits"))
        QKV_TRY(read_digits(r, first));
    else if (first && qkvi_part_is(first, "Split"))
        QKV_TRY(read_split(r, first));
    else if (first)
        return qkvi_tokenizer_refuse(r, "pre_tokenizer", qkvi_part_type(first));
    if (!qkvi_part_is(last, "ByteLevel"))
        return qkvi_tokenizer_refuse(r, "pre_tokenizer", qkvi_part_type(last));
    return read_byte_level(r, last);
}

/* ---- Metaspace ------------------------------------------------------------------------------- */

static qkv_status read_spaces(const qkvi_tokenizer_reader *r) {
    static const char list[] = "normalizers";
    const json_t *const part = json_object_get(r->root, "normalizer");
    qkvi_metaspace *const rules = &qkvi_bpe_of(r->tokenizer)->metaspace;
    if (r->lower_first) return qkvi_tokenizer_refuse(r, "normalizer", "Lowercase");
    if (qkvi_part_is_null(part)) return QKV_OK;
    for (size_t i = 0; i < qkvi_part_count(part, list); i++) {
        const json_t *const one = qkvi_part_entry(part, list, i);
        int *const is_on = qkvi_part_is(one, "Replace") ? &rules->replaces : &rules->prepends;
        const int is_ours =
            qkvi_part_is(one, "Replace")
                ? qkvi_part_has_pattern(one, "String", " ") &&
                      qkvi_part_has_text(one, "content", QKVI_META)
                : qkvi_part_is(one, "Prepend") && qkvi_part_has_text(one, "prepend", QKVI_META);
        if (!is_ours || *is_on) return qkvi_tokenizer_refuse(r, "normalizer", qkvi_part_type(one));
        *is_on = 1;
    }
    r->tokenizer->normalizes = rules->replaces || rules->prepends;
    return QKV_OK;
}

static qkv_status read_metaspace(const qkvi_tokenizer_reader *r) {
    const json_t *const part = json_object_get(r->root, "pre_tokenizer");
    qkvi_metaspace *const rules = &qkvi_bpe_of(r->tokenizer)->metaspace;
    if (qkvi_part_is_null(part)) return QKV_OK;
    const int is_at_spaces =
        qkvi_part_is(part, "Split") && qkvi_part_has_pattern(part, "String", " ");
    if (is_at_spaces && rules->replaces) return QKV_OK;
    if (!qkvi_part_is(part, "Metaspace") || rules->replaces || rules->prepends)
        return qkvi_tokenizer_refuse(r, "pre_tokenizer", qkvi_part_type(part));
    return qkvi_metaspace_read(r, part, rules);
}

/* ---- The model ------------------------------------------------------------------------------- */

/* What would change ids and is not implemented: only its neutral value is accepted. */
static qkv_status refuse_switches(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    static const char *const texts[] = { "continuing_subword_prefix", "end_of_word_suffix" };
    double dropout = 0;
    const qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    const char *name = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = "";
        QKV_TRY(qkvi_json_take_string(inner, texts[i], &text));
        if (*text) name = texts[i];
    }
    QKV_TRY(qkvi_json_take_real(inner, "dropout", &dropout));
    if (model->byte_fallback && r->tokenizer->kind == &qkvi_bpe_kind) name = "byte_fallback";
    if (dropout != 0) name = "dropout";
    if (name == NULL) return QKV_OK;
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                               "model.%s is set, which is not "
                               "supported",
                               name);
}

static qkv_status read_unk(const qkvi_tokenizer_reader *r, const qkvi_json_reader *inner) {
    const char *unk = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_json_take_string(inner, "unk_token", &unk));
    if (unk == NULL) return QKV_OK;
    return qkvi_tokenizer_set_unk(r, unk, &model->unk);
}

static qkv_status read_model(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    qkvi_bpe *model = qkvi_bpe_of(r->tokenizer);
    QKV_TRY(qkvi_tokenizer_model(r, "BPE", &object));
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", object);
    QKV_TRY(qkvi_json_take_bool(&inner, "byte_fallback", &model->byte_fallback));
    QKV_TRY(refuse_switches(r, &inner));
    QKV_TRY(qkvi_json_take_bool(&inner, "fuse_unk", &model->fuse_unk));
    QKV_TRY(qkvi_json_take_bool(&inner, "ignore_merges", &model->ignore_merges));
    QKV_TRY(qkvi_tokenizer_read_words(r, object));
    if (model->byte_fallback) QKV_TRY(qkvi_metaspace_check_bytes(r->tokenizer, r->name, r->error));
    QKV_TRY(read_unk(r, &inner));
    return qkvi_bpe_read_merges(r, object);
}

qkv_status qkvi_bpe_read_json(qkvi_tokenizer_reader *r) {
    const int has_bytes = is_byte_level(r->root);
    r->tokenizer = has_bytes ? qkvi_bpe_new() : qkvi_metaspace_new();
    if (r->tokenizer == NULL)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for a tokenizer");
    QKV_TRY(has_bytes ? read_normalizer(r) : read_spaces(r));
    QKV_TRY(has_bytes ? read_pre_tokenizer(r) : read_metaspace(r));
    return read_model(r);
}
