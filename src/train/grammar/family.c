/*
 * Families: their first lines, and their templates, compiled into frames.
 *
 *     say <X> V.past the Y because Y.subj* Y.was Q .     two frames: "the X …" and "X …"
 *
 * Checks: every variable of a template determines some element, a pair has two halves with a
 * variable in common, and a text has at most QKVI_PAIR_WORDS.
 */
#include "train/grammar/family.h"

enum {
    MAX_FAMILIES = 1000,
    MAX_TEMPLATES = 10000,
    MAX_FRAMES = 20000,
    MAX_OPTIONAL = 4,
    MAX_READINGS = 1 << 16
};

qkv_status qkvi_family_begin(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n) {
    qkvi_grammar *const g = r->g;
    if (n < 1) return qkvi_reader_fail(r, QKV_ERR_FORMAT, "a family needs a name");
    if (g->n_families == MAX_FAMILIES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d families", MAX_FAMILIES);
    for (int32_t f = 0; f < g->n_families; ++f)
        if (qkvi_token_is(tokens[0], g->families[f].name))
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the family '%s' is there already",
                                    qkvi_token_quote(tokens[0]).text);
    QKV_TRY(
        qkvi_reader_grow(r, &g->families, g->n_families, &g->cap_families, sizeof *g->families));
    qkvi_family *const family = &g->families[g->n_families++];
    *family = (qkvi_family){ .weight = 1, .first_template = g->n_templates, .line = r->line };
    QKV_TRY(qkvi_reader_keep(r, tokens[0].text, tokens[0].bytes, &family->name));
    family->name_hash = qkvi_word_hash(family->name, (size_t)tokens[0].bytes);
    for (int32_t i = 1; i < n; ++i) {
        if (tokens[i].bytes == 2 && tokens[i].text[0] == '*' && tokens[i].text[1] >= '1' &&
            tokens[i].text[1] <= '9')
            family->weight = tokens[i].text[1] - '0';
        else if (qkvi_token_is(tokens[i], "hold"))
            continue;
        else if (family->n_hold == 2)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "at most two variables can be held");
        else
            QKV_TRY(qkvi_reader_keep(r, tokens[i].text, tokens[i].bytes,
                                     &family->hold_names[family->n_hold++]));
    }
    return QKV_OK;
}

/* ---- Says ---- */

/* Appends one frame: optional variable i is bare where bit i of `bare` is set. */
static qkv_status add_frame(const qkvi_reader *r, const qkvi_proto_element *protos, int32_t n,
                            const qkvi_sentence_template *template, uint32_t bare) {
    qkvi_grammar *const g = r->g;
    if (g->n_frames == MAX_FRAMES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d frames", MAX_FRAMES);
    QKV_TRY(qkvi_reader_grow(r, &g->frames, g->n_frames, &g->cap_frames, sizeof *g->frames));
    qkvi_sentence_frame frame = { .family = template->family,
                                  .template = g->n_templates,
                                  .first_element = g->n_elements };
    for (int32_t i = 0; i < template->n_optional; ++i)
        frame.bareness[template->optional[i]] = bare >> i & 1 ? QKVI_BARE : QKVI_NOT_BARE;
    bool has_bar = false;
    for (int32_t i = 0; i < n; ++i) {
        if (protos[i].is_bar) {
            frame.n_a = frame.n_elements;
            has_bar = true;
            continue;
        }
        qkvi_element parts[2];
        int32_t n_parts = 0;
        if (protos[i].is_optional && frame.bareness[protos[i].element.var] == QKVI_NOT_BARE)
            QKV_TRY(qkvi_literal_parse(r, (qkvi_grammar_token){ "the", 3 }, &parts[n_parts++]));
        parts[n_parts++] = protos[i].element;
        for (int32_t k = 0; k < n_parts; ++k) {
            QKV_TRY(qkvi_reader_grow(r, &g->elements, g->n_elements, &g->cap_elements,
                                     sizeof *g->elements));
            g->elements[g->n_elements++] = parts[k];
            ++frame.n_elements;
        }
    }
    if (!has_bar) frame.n_a = frame.n_elements;
    if (frame.n_elements > QKVI_PAIR_WORDS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d words", (int)QKVI_PAIR_WORDS);
    g->frames[g->n_frames++] = frame;
    return QKV_OK;
}

/* The variables of each half; an error if one of the template's never shows itself. */
static qkv_status note_vars(const qkvi_reader *r, const qkvi_proto_element *protos, int32_t n,
                            qkvi_sentence_template *template) {
    uint32_t shown = 0;
    int32_t half = 0, n_bars = 0;
    for (int32_t i = 0; i < n; ++i) {
        const qkvi_element *const element = &protos[i].element;
        n_bars += protos[i].is_bar;
        if (protos[i].is_bar) half = 1;
        if (element->is_probe && (element->kind != QKVI_PERSON || template->is_pair))
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "only a pronoun of a say can be a probe");
        template->has_probe |= element->is_probe;
        if (protos[i].is_bar || element->kind == QKVI_LITERAL) continue;
        template->vars[half] |= 1u << element->var;
        if (element->kind == QKVI_AGREE) template->vars[half] |= 1u << element->other;
        if (element->kind == QKVI_FORM || element->kind == QKVI_AGREE) shown |= 1u << element->var;
    }
    if (n_bars != template->is_pair ||
        (template->is_pair && (protos[0].is_bar || protos[n - 1].is_bar)))
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "a pair has one '|' inside, a say none");
    int64_t n_readings = 1;
    for (int32_t v = 0; v < QKVI_MAX_VARS && n_readings <= MAX_READINGS; ++v)
        if ((template->vars[0] | template->vars[1]) >> v & 1)
            n_readings *= qkvi_family_current(r)->vars[v].most_alike;
    if (n_readings > MAX_READINGS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "the words of this are too ambiguous");
    const uint32_t hidden = (template->vars[0] | template->vars[1]) & ~shown;
    if (hidden)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the variable '%s' never shows itself",
                                qkvi_family_current(r)->vars[__builtin_ctz(hidden)].name);
    if (template->is_pair && !(template->vars[0] & template->vars[1]))
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the halves of a pair share no variable");
    return QKV_OK;
}

static qkv_status add_say(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n,
                          bool is_pair, bool is_held) {
    qkvi_grammar *const g = r->g;
    qkvi_proto_element protos[QKVI_PAIR_WORDS + 1];
    if (n < 1 || n > QKVI_PAIR_WORDS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "a say has 1 to %d words", (int)QKVI_PAIR_WORDS);
    if (g->n_templates == MAX_TEMPLATES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d says", MAX_TEMPLATES);
    qkvi_sentence_template template = { .family = g->n_families - 1,
                                        .first_frame = g->n_frames,
                                        .is_pair = is_pair,
                                        .is_held = is_held };
    for (int32_t i = 0; i < n; ++i) {
        QKV_TRY(qkvi_element_parse(r, tokens[i], &protos[i]));
        if (!protos[i].is_optional) continue;
        bool known = false;
        for (int32_t k = 0; k < template.n_optional; ++k)
            known |= template.optional[k] == protos[i].element.var;
        if (known) continue;
        if (template.n_optional == MAX_OPTIONAL)
            return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d variables in <>", MAX_OPTIONAL);
        template.optional[template.n_optional++] = protos[i].element.var;
    }
    QKV_TRY(note_vars(r, protos, n, &template));
    for (uint32_t bare = 0; bare < 1u << template.n_optional; ++bare)
        QKV_TRY(add_frame(r, protos, n, &template, bare));
    QKV_TRY(qkvi_reader_grow(r, &g->templates, g->n_templates, &g->cap_templates,
                             sizeof *g->templates));
    g->templates[g->n_templates++] = template;
    qkvi_family_current(r)->n_templates++;
    return QKV_OK;
}

qkv_status qkvi_family_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n) {
    if (n >= 2 && qkvi_token_is(tokens[1], "=")) return qkvi_variable_line(r, tokens, n);
    const bool is_held = qkvi_token_is(tokens[0], "held");
    if (is_held) {
        ++tokens;
        --n;
    }
    if (n > 0 && qkvi_token_is(tokens[0], "say"))
        return add_say(r, tokens + 1, n - 1, false, is_held);
    if (n > 0 && qkvi_token_is(tokens[0], "pair"))
        return add_say(r, tokens + 1, n - 1, true, is_held);
    return qkvi_reader_fail(r, QKV_ERR_FORMAT, "expected 'V = …', 'say …' or 'pair … | …'");
}

qkv_status qkvi_family_end(const qkvi_reader *r) {
    for (int32_t f = 0; f < r->g->n_families; ++f) {
        qkvi_family *const family = &r->g->families[f];
        qkvi_reader at = *r;
        at.line = family->line;
        if (!family->n_templates)
            return qkvi_reader_fail(&at, QKV_ERR_FORMAT, "the family '%s' says nothing",
                                    family->name);
        for (int32_t i = 0; i < family->n_hold; ++i) {
            const char *const name = family->hold_names[i];
            family->hold[i] =
                qkvi_family_var(family, (qkvi_grammar_token){ name, (int32_t)strlen(name) });
            if (family->hold[i] < 0)
                return qkvi_reader_fail(&at, QKV_ERR_FORMAT, "hold: '%s' is not a variable", name);
        }
    }
    return QKV_OK;
}
