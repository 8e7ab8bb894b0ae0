/**
 * Unigram of a tokenizer.json, taken as it is or made anew by XLMRobertaTokenizer and T5Tokenizer
 * of transformers.
 *
 *     model          Unigram: vocab [["piece", score], …] in order of ids; unk_id; byte_fallback
 *     normalizer     null, Precompiled, Strip, Replace of two and more spaces, a Sequence of these
 *     pre_tokenizer  null, WhitespaceSplit, Metaspace, or both in this order
 *     decoder        as of metaspace BPE: tokenizer_parts.h
 *
 * Of the file these classes take only the vocabulary and the first Precompiled. Their unknown piece
 * has a fixed id. Reference: transformers, models/xlm_roberta/tokenization_xlm_roberta.py,
 * models/t5/tokenization_t5.py, tokenization_utils_tokenizers.py.
 */
#include "text/unigram.h"

#include <math.h>

#include "files/encode.h"
#include "files/utf8.h"
#include "text/tokenizer_json.h"
#include "text/tokenizer_parts.h"

enum { UNK_OF_XLM_ROBERTA = 3, UNK_OF_T5 = 2 };

/* ---- The vocabulary -------------------------------------------------------------------------- */

static const char vocab_path[] = "model.vocab";

static qkv_status no_memory(const qkvi_tokenizer_reader *r) {
    return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for the vocabulary");
}

static qkv_status add_piece(const qkvi_tokenizer_reader *r, const char *piece, size_t n,
                            double score) {
    qkvi_unigram *const model = qkvi_unigram_of(r->tokenizer);
    const int32_t id = r->tokenizer->pieces.n_ids;
    if (id >= QKVI_VOCAB_MAX_TOKENS)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_LIMIT, "%s has more than %d tokens, the limit",
                                   vocab_path, QKVI_VOCAB_MAX_TOKENS);
    if (qkvi_reserve(&model->scores, &model->n_scores, (size_t)id + 1, sizeof score) != QKV_OK)
        return no_memory(r);
    model->scores[id] = score;
    return qkvi_tokenizer_add_word(r, vocab_path, piece, n, id);
}

/* [["piece", score], …] by its bytes. */
static qkv_status walk_pieces(const qkvi_tokenizer_reader *r, qkvi_json_span list, int is_exact) {
    qkvi_json_cursor c = { r->words->text, list.begin, list.end };
    char piece[QKVI_PIECE_MAX_BYTES], number[QKVI_JSON_DECIMAL_BYTES];
    double score = 0;
    size_t n = 0;
    int more = qkvi_json_take_mark(&c, '[') && qkvi_json_peek(&c) != ']';
    while (more) {
        if (!qkvi_json_take_mark(&c, '[') || !qkvi_json_take_text(&c, piece, sizeof piece, &n) ||
            !qkvi_json_take_mark(&c, ',') || !qkvi_json_take_decimal(&c, number) ||
            !qkvi_json_take_mark(&c, ']'))
            return qkvi_tokenizer_broken(r, vocab_path, &c);
        score = is_exact ? qkvi_unigram_score(number) : qkvi_unigram_score_quick(number);
        if (!isfinite(score))
            return QKVI_TOKENIZER_FAIL(
                r, QKV_ERR_FORMAT, "%s: the score of \"%s\" is not finite", vocab_path,
                QKVI_PRINTABLE_BYTES(96, piece, n < sizeof piece ? n : sizeof piece));
        QKV_TRY(add_piece(r, piece, n, score));
        more = qkvi_json_take_mark(&c, ',');
    }
    if (!qkvi_json_take_mark(&c, ']') || c.at < list.end)
        return qkvi_tokenizer_broken(r, vocab_path, &c);
    return QKV_OK;
}

/* The same where the list is among the values. */
static qkv_status read_values(const qkvi_tokenizer_reader *r, const json_t *list) {
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const pair = json_array_get(list, i);
        const char *const piece = json_string_value(json_array_get(pair, 0));
        const json_t *const score = json_array_get(pair, 1);
        if (!piece || !json_is_number(score) || json_array_size(pair) != 2)
            return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "%s[%zu] is not [\"piece\", score]",
                                       vocab_path, i);
        QKV_TRY(add_piece(r, piece, strlen(piece), json_number_value(score)));
    }
    return QKV_OK;
}

static int is_piece(const void *user, int32_t id) {
    (void)user;
    (void)id;
    return 1;
}

static qkv_status build_trie(const qkvi_tokenizer_reader *r) {
    const qkv_status status = qkvi_trie_build(&qkvi_unigram_of(r->tokenizer)->trie,
                                              &r->tokenizer->pieces, is_piece, NULL);
    if (status == QKV_ERR_LIMIT)
        return QKVI_TOKENIZER_FAIL(r, status,
                                   "%s: the pieces begin in more than %d ways, the limit",
                                   vocab_path, QKVI_TRIE_MAX_NODES);
    return status == QKV_OK ? QKV_OK : no_memory(r);
}

static qkv_status read_pieces(const qkvi_tokenizer_reader *r, const json_t *model, int is_exact) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", model);
    const json_t *list = NULL;
    QKV_TRY(qkvi_json_take_array(&inner, "vocab", &list));
    if (list == NULL) return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "%s is missing", vocab_path);
    if (r->words && r->words->vocab.end > 0)
        QKV_TRY(walk_pieces(r, r->words->vocab, is_exact));
    else
        QKV_TRY(read_values(r, list));
    QKV_TRY(qkvi_tokenizer_seal_model(r->tokenizer, r->error));
    QKV_TRY(qkvi_tokenizer_check_twice(r));
    return build_trie(r);
}

/* Of a model, unless it is the class'. */
static qkv_status read_unk(const qkvi_tokenizer_reader *r, int64_t unk) {
    const int32_t n = r->tokenizer->pieces.n_ids;
    if (unk >= n)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT,
                                   "model.unk_id = %lld is not less than the %d pieces of %s",
                                   (long long)unk, n, vocab_path);
    qkvi_unigram_of(r->tokenizer)->unk = (int32_t)unk;
    r->tokenizer->special[QKV_TOKEN_UNK] = (int32_t)unk;
    return QKV_OK;
}

static qkv_status read_model(const qkvi_tokenizer_reader *r) {
    const json_t *object = NULL;
    int64_t unk = -1;
    QKV_TRY(qkvi_tokenizer_model(r, "Unigram", &object));
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "model", object);
    QKV_TRY(qkvi_json_take_bool(&inner, "byte_fallback",
                                &qkvi_unigram_of(r->tokenizer)->byte_fallback));
    QKV_TRY(qkvi_json_take_int(&inner, "unk_id", INT32_MAX, &unk));
    if (unk < 0)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_UNSUPPORTED,
                                   "model.unk_id that is null is not supported");
    QKV_TRY(read_pieces(r, object, 0));
    return read_unk(r, unk);
}

/* ---- The normalizer -------------------------------------------------------------------------- */

static qkv_status read_map(const qkvi_tokenizer_reader *r, const json_t *part) {
    static const char path[] = "normalizer.precompiled_charsmap";
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "normalizer", part);
    qkvi_charsmap *const map = &qkvi_unigram_of(r->tokenizer)->map;
    char name[QKVI_NAME_BYTES + sizeof path + 2];
    const char *text = "";
    QKV_TRY(qkvi_json_need_string(&inner, "precompiled_charsmap", &text));
    const size_t n = strlen(text);
    char *const bytes = malloc(n / 4 * 3 + 1);
    if (bytes == NULL) return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for %s", path);
    const int64_t n_bytes = qkvi_base64_take(text, n, bytes);
    qkv_status status = QKV_OK;
    if (n_bytes <= 0)
        status = QKVI_TOKENIZER_FAIL(r, QKV_ERR_FORMAT, "%s is no base64 of any bytes", path);
    snprintf(name, sizeof name, "%s: %s", r->name, path);
    if (status == QKV_OK) status = qkvi_charsmap_open(map, name, bytes, (size_t)n_bytes, r->error);
    free(bytes);
    return status;
}

/* Replace of " {2,}" by one character. */
static int is_of_spaces(const json_t *part, int32_t *code) {
    const char *const content = json_string_value(json_object_get(part, "content"));
    const size_t n = content ? strlen(content) : 0;
    return qkvi_part_has_pattern(part, "Regex", " {2,}") && n > 0 &&
           qkvi_utf8_next(content, n, code) == n;
}

static qkv_status read_step(const qkvi_tokenizer_reader *r, const json_t *part,
                            qkvi_unigram_step *step) {
    const qkvi_json_reader inner = qkvi_tokenizer_fields(r, "normalizer", part);
    if (qkvi_part_is(part, "Precompiled") && qkvi_unigram_of(r->tokenizer)->map.n_units == 0) {
        step->kind = QKVI_STEP_MAP;
        return read_map(r, part);
    }
    if (qkvi_part_is(part, "Strip")) {
        *step = (qkvi_unigram_step){ .kind = QKVI_STEP_STRIP, .left = 1, .right = 1 };
        QKV_TRY(qkvi_json_take_bool(&inner, "strip_left", &step->left));
        return qkvi_json_take_bool(&inner, "strip_right", &step->right);
    }
    step->kind = QKVI_STEP_SPACES;
    if (qkvi_part_is(part, "Replace") && is_of_spaces(part, &step->code)) return QKV_OK;
    return qkvi_tokenizer_refuse(r, "normalizer", qkvi_part_type(part));
}

static qkv_status read_normalizer(const qkvi_tokenizer_reader *r) {
    static const char list[] = "normalizers";
    const json_t *const part = json_object_get(r->root, "normalizer");
    qkvi_unigram *const model = qkvi_unigram_of(r->tokenizer);
    if (r->lower_first) return qkvi_tokenizer_refuse(r, "normalizer", "Lowercase");
    if (qkvi_part_is_null(part)) return QKV_OK;
    const size_t n = qkvi_part_count(part, list);
    if (n > QKVI_UNIGRAM_STEPS)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_LIMIT, "normalizer has more than %d steps, the limit",
                                   QKVI_UNIGRAM_STEPS);
    for (size_t i = 0; i < n; i++)
        QKV_TRY(read_step(r, qkvi_part_entry(part, list, i), &model->steps[model->n_steps++]));
    r->tokenizer->normalizes = n > 0;
    return QKV_OK;
}

/* ---- The pre-tokenizer ----------------------------------------------------------------------- */

static qkv_status read_pre_tokenizer(const qkvi_tokenizer_reader *r) {
    static const char list[] = "pretokenizers";
    const json_t *const part = json_object_get(r->root, "pre_tokenizer");
    qkvi_unigram *const model = qkvi_unigram_of(r->tokenizer);
    if (qkvi_part_is_null(part)) return QKV_OK;
    for (size_t i = 0; i < qkvi_part_count(part, list); i++) {
        const json_t *const one = qkvi_part_entry(part, list, i);
        if (qkvi_part_is(one, "WhitespaceSplit") && i == 0)
            model->splits_white = 1;
        else if (qkvi_part_is(one, "Metaspace") && !model->metaspace.is_on)
            QKV_TRY(qkvi_metaspace_read(r, one, &model->metaspace));
        else
            return qkvi_tokenizer_refuse(r, "pre_tokenizer", qkvi_part_type(one));
    }
    return QKV_OK;
}

qkv_status qkvi_unigram_read_json(qkvi_tokenizer_reader *r) {
    r->tokenizer = qkvi_unigram_new();
    if (r->tokenizer == NULL)
        return QKVI_TOKENIZER_FAIL(r, QKV_ERR_MEMORY, "no memory for a tokenizer");
    QKV_TRY(read_normalizer(r));
    QKV_TRY(read_pre_tokenizer(r));
    return read_model(r);
}

/* ---- The classes ----------------------------------------------------------------------------- */

/* The first Precompiled of the file, at the top or in a Sequence. */
static qkv_status take_map(const qkvi_tokenizer_reader *r) {
    static const char list[] = "normalizers";
    const json_t *const part = json_object_get(r->root, "normalizer");
    qkvi_unigram *const model = qkvi_unigram_of(r->tokenizer);
    for (size_t i = 0; i < qkvi_part_count(part, list); i++) {
        const json_t *const one = qkvi_part_entry(part, list, i);
        if (!qkvi_part_is(one, "Precompiled") || model->n_steps > 0) continue;
        model->steps[model->n_steps++].kind = QKVI_STEP_MAP;
        r->tokenizer->normalizes = 1;
        QKV_TRY(read_map(r, one));
    }
    return QKV_OK;
}

static void set_words(const qkvi_settings *s, qkv_tokenizer *tokenizer) {
    qkvi_unigram *const model = qkvi_unigram_of(tokenizer);
    qkvi_metaspace *const rules = &model->metaspace;
    model->splits_white = rules->is_on = rules->splits = 1;
    rules->drops_first = s->class->maker == QKVI_MADE_BY_T5 || s->add_prefix_space;
    rules->prepend = rules->drops_first ? QKVI_PREPEND_ALWAYS : QKVI_PREPEND_NEVER;
}

/* A </s>, or A </s> B </s>. */
static void set_t5_templates(qkv_tokenizer *tokenizer, int32_t eos) {
    const qkvi_template_item after = { eos, 0 };
    const qkvi_template_item a = { QKVI_TEMPLATE_TEXT, 0 }, b = { QKVI_TEMPLATE_PAIR, 0 };
    tokenizer->single = (qkvi_template){ 2, { a, after } };
    tokenizer->pair = (qkvi_template){ 4, { a, after, b, after } };
}

static qkv_status fill(const qkvi_settings *s, const json_t *root, qkv_tokenizer *tokenizer) {
    const qkvi_tokenizer_reader r = qkvi_tokenizer_reader_of(s, root, tokenizer);
    const int is_t5 = s->class->maker == QKVI_MADE_BY_T5;
    const json_t *model = NULL;
    if (s->files->lower_first)
        return qkvi_error_set(s->error, QKV_ERR_UNSUPPORTED,
                              "%s: do_lower_case of a sentence model is not supported for %s",
                              s->files->tokenizer.name, s->class->name);
    set_words(s, tokenizer);
    QKV_TRY(take_map(&r));
    QKV_TRY(qkvi_tokenizer_model(&r, "Unigram", &model));
    QKV_TRY(read_pieces(&r, model, 1));
    QKV_TRY(read_unk(&r, is_t5 ? UNK_OF_T5 : UNK_OF_XLM_ROBERTA));
    QKV_TRY(qkvi_settings_add_tokens(s, root, tokenizer));
    const int32_t eos = qkvi_settings_id(s, QKVI_EOS, tokenizer);
    if (is_t5)
        set_t5_templates(tokenizer, eos);
    else
        qkvi_tokenizer_roberta_templates(tokenizer, qkvi_settings_id(s, QKVI_BOS, tokenizer), eos);
    return qkvi_settings_apply(s, tokenizer);
}

qkv_status qkvi_unigram_make(const qkvi_settings *s, const json_t *root, qkv_tokenizer **out) {
    return qkvi_settings_make(s, root, qkvi_unigram_new(), fill, out);
}
