/*
 * Elements: one token of a template becomes a literal, a form of a variable, or something that
 * agrees with one.
 *
 *     when|until   X   V.past   Y.subj*   V:X   a:Y   <X>   |
 *
 * Checks, on which later code relies: every name is declared; every form and person of an element
 * exists for each lexeme of its domain; every literal is in a class or a `function` line.
 */
#include "train/grammar/family.h"
#include "train/grammar/words.h"

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
static qkv_status dotted(const qkvi_reader *r, int32_t v, qkvi_grammar_token right,
                         qkvi_element *element) {
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
static qkv_status colon(const qkvi_reader *r, qkvi_grammar_token left, qkvi_grammar_token right,
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

qkv_status qkvi_literal_parse(const qkvi_reader *r, qkvi_grammar_token token,
                              qkvi_element *element) {
    qkvi_grammar_token left, right = token;
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

qkv_status qkvi_element_parse(const qkvi_reader *r, qkvi_grammar_token token,
                              qkvi_proto_element *proto) {
    qkvi_grammar_token left, right;
    *proto = (qkvi_proto_element){ 0 };
    qkvi_element *const element = &proto->element;
    if (qkvi_token_is(token, "|")) {
        proto->is_bar = true;
        return QKV_OK;
    }
    if (token.bytes > 2 && token.text[0] == '<' && token.text[token.bytes - 1] == '>') {
        token = (qkvi_grammar_token){ token.text + 1, token.bytes - 2 };
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

/* ---- Entries --------------------------------------------------------------------------------- */

/*
 * Entries of a class become lexemes: an entry is inflected, and each reading is one lexeme.
 *
 * Regular English only: plural +s; verbs +s, +ed, +ing, dropping a final e. Everything else is
 * spelled out in the file.
 */

enum { MAX_LEXEMES = 60000 };

/* stem without its last `cut` bytes, then ending, as a word. */
static qkv_status inflect(const qkvi_reader *r, qkvi_grammar_token stem, int32_t cut,
                          const char *ending, int32_t *word) {
    char text[2 * QKVI_WORD_BYTES];
    if (stem.bytes > QKVI_WORD_BYTES || stem.bytes <= cut) return qkvi_word_add(r, stem, word);
    memcpy(text, stem.text, (size_t)(stem.bytes - cut));
    const size_t n = strlen(ending);
    memcpy(text + stem.bytes - cut, ending, n);
    return qkvi_word_add(r, (qkvi_grammar_token){ text, stem.bytes - cut + (int32_t)n }, word);
}

/* Splits an entry at '/'; an empty part stays empty. */
static qkv_status split_entry(const qkvi_reader *r, qkvi_grammar_token entry,
                              qkvi_grammar_token *parts, int32_t limit, int32_t *n_parts) {
    *n_parts = 0;
    const char *const end = entry.text + entry.bytes;
    for (const char *from = entry.text; from <= end;) {
        const char *to = from;
        while (to < end && *to != '/') ++to;
        if (*n_parts == limit)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' has more than %d forms",
                                    qkvi_token_quote(entry).text, (int)limit);
        parts[(*n_parts)++] = (qkvi_grammar_token){ from, (int32_t)(to - from) };
        from = to + 1;
    }
    return QKV_OK;
}

static int32_t person_named(const qkvi_grammar *g, const char *name) {
    for (int32_t p = 0; p < g->n_persons; ++p)
        if (strcmp(g->persons[p].name, name) == 0) return p;
    return -1;
}

static qkv_status lexeme_add(const qkvi_reader *r, const qkvi_class_head *head,
                             const int32_t *forms, int32_t person, const char *number) {
    qkvi_grammar *const g = r->g;
    if (g->n_lexemes == MAX_LEXEMES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d entries", MAX_LEXEMES);
    QKV_TRY(qkvi_reader_grow(r, &g->lexemes, g->n_lexemes, &g->cap_lexemes, sizeof *g->lexemes));
    qkvi_lexeme *const lexeme = &g->lexemes[g->n_lexemes++];
    *lexeme = (qkvi_lexeme){ .features = head->features,
                             .person = (int16_t)person,
                             .class_id = (int16_t)head->class_id,
                             .weight = (int16_t)head->weight };
    memcpy(lexeme->forms, forms, sizeof lexeme->forms);
    memcpy(lexeme->links, head->links, sizeof lexeme->links);
    g->classes[head->class_id].n_lexemes++;
    if (number) {
        int32_t feature;
        QKV_TRY(qkvi_reader_feature(r, (qkvi_grammar_token){ number, (int32_t)strlen(number) },
                                    true, &feature));
        qkvi_features_add(&lexeme->features, feature);
    }
    return QKV_OK;
}

/* "door": door and doors. "bread/": no plural. "/scissors": no singular. */
static qkv_status noun_add(const qkvi_reader *r, const qkvi_class_head *head,
                           qkvi_grammar_token entry) {
    qkvi_grammar_token parts[2] = { { NULL, 0 }, { NULL, 0 } };
    int32_t n_parts, one = -1, many = -1;
    QKV_TRY(split_entry(r, entry, parts, 2, &n_parts));
    if (parts[0].bytes) QKV_TRY(qkvi_word_add(r, parts[0], &one));
    if (n_parts == 1) QKV_TRY(inflect(r, parts[0], 0, "s", &many));
    if (n_parts == 2 && parts[1].bytes) QKV_TRY(qkvi_word_add(r, parts[1], &many));
    if (one < 0 && many < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is no noun", qkvi_token_quote(entry).text);
    const int32_t singular[QKVI_N_FORMS] = { one, one, many, -1, -1 };
    const int32_t plural[QKVI_N_FORMS] = { many, one, many, -1, -1 };
    for (int32_t i = 0; i < head->n_persons && one >= 0; ++i)
        QKV_TRY(lexeme_add(r, head, singular, head->persons[i], "sg"));
    if (many < 0) return QKV_OK;
    const int32_t they = person_named(r->g, "they");
    if (they < 0) return qkvi_reader_fail(r, QKV_ERR_FORMAT, "plurals need 'person they' above");
    return lexeme_add(r, head, plural, they, "pl");
}

/* Parts base/~s/past/~ing/done; what is missing is regular. */
static qkv_status verb_add(const qkvi_reader *r, const qkvi_class_head *head,
                           qkvi_grammar_token entry) {
    static const char *const endings[QKVI_N_FORMS] = { "", "s", "ed", "ing", "" };
    qkvi_grammar_token parts[QKVI_N_FORMS] = { { NULL, 0 } };
    int32_t n_parts, forms[QKVI_N_FORMS];
    QKV_TRY(split_entry(r, entry, parts, QKVI_N_FORMS, &n_parts));
    if (!parts[0].bytes)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is no verb", qkvi_token_quote(entry).text);
    const bool ends_in_e = parts[0].text[parts[0].bytes - 1] == 'e';
    for (int32_t f = 0; f < QKVI_N_FORMS; ++f) {
        if (f < n_parts && parts[f].bytes)
            QKV_TRY(qkvi_word_add(r, parts[f], &forms[f]));
        else if (f == 4)
            forms[f] = forms[2];
        else
            QKV_TRY(inflect(r, parts[0], ends_in_e && f >= 2, endings[f], &forms[f]));
    }
    return lexeme_add(r, head, forms, -1, NULL);
}

qkv_status qkvi_entry_add(const qkvi_reader *r, const qkvi_class_head *head,
                          qkvi_grammar_token entry) {
    if (head->kind == QKVI_KIND_NOUN) return noun_add(r, head, entry);
    if (head->kind == QKVI_KIND_VERB) return verb_add(r, head, entry);
    int32_t forms[QKVI_N_FORMS] = { -1, -1, -1, -1, -1 };
    QKV_TRY(qkvi_word_add(r, entry, &forms[0]));
    if (!head->n_persons) return lexeme_add(r, head, forms, -1, NULL);
    for (int32_t i = 0; i < head->n_persons; ++i)
        QKV_TRY(lexeme_add(r, head, forms, head->persons[i], NULL));
    return QKV_OK;
}
