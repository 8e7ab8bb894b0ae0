/*
 * Elements: one token of a template becomes a literal, a form of a variable, or something that agrees
 * with one.
 *
 *     when|until   X   V.past   Y.subj*   V:X   a:Y   <X>   |
 *
 * Checked here, so that nothing below needs to: every name is declared, every form and person that
 * an element names exists for each lexeme of the domain, and every literal is in a class or a
 * `function` line.
 */
#include "model/grammar/family.h"

static const char *const column_names[QKVI_N_COLUMNS] = { "subj", "obj", "own", "was",
                                                          "is",   "has", "does" };
static const char *const noun_forms[QKVI_N_FORMS] = { NULL, "one", "many", NULL, NULL };
static const char *const verb_forms[QKVI_N_FORMS] = { "base", "s", "past", "ing", "done" };

static qkv_status need_form(const qkvi_reader *r, int32_t v, int32_t form) {
    const qkvi_domain *const domain = &qkvi_family_current(r)->vars[v].domains[QKVI_ANY];
    for (int32_t i = 0; i < domain->n; ++i) {
        const qkvi_lexeme *const lexeme = &r->g->lexemes[domain->members[i]];
        if (lexeme->forms[form] < 0)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' of variable '%s' lacks a form",
                                    r->g->words[lexeme->forms[0]].text,
                                    qkvi_family_current(r)->vars[v].name);
    }
    return QKV_OK;
}

static qkv_status need_person(const qkvi_reader *r, int32_t v) {
    const qkvi_domain *const domain = &qkvi_family_current(r)->vars[v].domains[QKVI_ANY];
    for (int32_t i = 0; i < domain->n; ++i) {
        const qkvi_lexeme *const lexeme = &r->g->lexemes[domain->members[i]];
        if (lexeme->person < 0)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' of variable '%s' has no person",
                                    r->g->words[lexeme->forms[0]].text,
                                    qkvi_family_current(r)->vars[v].name);
    }
    return QKV_OK;
}

/* "V.past", "Y.subj". */
static qkv_status dotted(const qkvi_reader *r, int32_t v, qkvi_token right, qkvi_element *element) {
    const qkvi_domain *const domain = &qkvi_family_current(r)->vars[v].domains[QKVI_ANY];
    const qkvi_kind kind = r->g->classes[r->g->lexemes[domain->members[0]].class_id].kind;
    element->var = (int8_t)v;
    for (int8_t c = 0; c < QKVI_N_COLUMNS; ++c)
        if (qkvi_token_is(right, column_names[c])) {
            element->kind = QKVI_PERSON;
            element->form = c;
            return need_person(r, v);
        }
    const char *const *const names = kind == QKVI_KIND_VERB ? verb_forms : noun_forms;
    for (int8_t f = 0; f < QKVI_N_FORMS; ++f)
        if (names[f] && qkvi_token_is(right, names[f])) {
            element->kind = QKVI_FORM;
            element->form = f;
            return need_form(r, v, f);
        }
    return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is neither a form nor a column",
                            qkvi_token_quote(right).text);
}

/* "a:Y", "V:X". */
static qkv_status colon(const qkvi_reader *r, qkvi_token left, qkvi_token right,
                        qkvi_element *element) {
    const int32_t other = qkvi_family_var(qkvi_family_current(r), right);
    if (other < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(right).text);
    if (qkvi_token_is(left, "a")) {
        element->kind = QKVI_ARTICLE;
        element->var = (int8_t)other;
        return need_form(r, other, 0);
    }
    const int32_t v = qkvi_family_var(qkvi_family_current(r), left);
    if (v < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(left).text);
    element->kind = QKVI_AGREE;
    element->var = (int8_t)v;
    element->other = (int8_t)other;
    QKV_TRY(need_form(r, v, 1));
    return need_person(r, other);
}

qkv_status qkvi_literal_parse(const qkvi_reader *r, qkvi_token token, qkvi_element *element) {
    qkvi_token left, right = token;
    *element = (qkvi_element){ .kind = QKVI_LITERAL };
    for (bool more = true; more;) {
        token = right;
        more = qkvi_token_split(token, '|', &left, &right);
        int32_t word;
        QKV_TRY(qkvi_word_add(r, more ? left : token, &word));
        if (!r->g->words[word].is_function && !r->g->words[word].is_content)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is in no class and no function line",
                                    r->g->words[word].text);
        if (element->n_words == QKVI_MAX_ALTERNATIVES)
            return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d alternatives",
                                    QKVI_MAX_ALTERNATIVES);
        element->words[element->n_words++] = word;
    }
    return QKV_OK;
}

qkv_status qkvi_element_parse(const qkvi_reader *r, qkvi_token token, qkvi_proto_element *proto) {
    qkvi_token left, right;
    *proto = (qkvi_proto_element){ 0 };
    qkvi_element *const element = &proto->element;
    if (qkvi_token_is(token, "|")) {
        proto->is_bar = true;
        return QKV_OK;
    }
    if (token.bytes > 2 && token.text[0] == '<' && token.text[token.bytes - 1] == '>') {
        token = (qkvi_token){ token.text + 1, token.bytes - 2 };
        proto->is_optional = true;
    }
    if (token.bytes > 1 && token.text[token.bytes - 1] == '*') {
        --token.bytes;
        element->is_probe = true;
    }
    const int32_t v = qkvi_family_var(qkvi_family_current(r), token);
    if (v >= 0) {
        element->kind = QKVI_FORM;
        element->var = (int8_t)v;
        return need_form(r, v, 0);
    }
    if (proto->is_optional)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(token).text);
    if (token.bytes > 1 && qkvi_token_split(token, ':', &left, &right))
        return colon(r, left, right, element);
    if (token.bytes > 1 && qkvi_token_split(token, '.', &left, &right)) {
        if (qkvi_family_var(qkvi_family_current(r), left) >= 0)
            return dotted(r, qkvi_family_var(qkvi_family_current(r), left), right, element);
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(left).text);
    }
    return qkvi_literal_parse(r, token, element);
}
