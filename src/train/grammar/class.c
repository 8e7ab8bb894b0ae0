/*
 * The lines of a grammar that define words: `person`, `function`, and the classes.
 *
 *     person he : he him his was is has does
 *     function : when until the a
 *     noun door = thing opens key=feature|feature it *2 : door gate box/boxes
 */

#include "train/grammar/words.h"

enum { MAX_CLASSES = 1000 };

qkv_status qkvi_function_words(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n) {
    for (int32_t i = 0; i < n; ++i) {
        int32_t word;
        QKV_TRY(qkvi_word_add(r, tokens[i], &word));
        r->g->words[word].is_function = true;
    }
    return QKV_OK;
}

qkv_status qkvi_person_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n) {
    qkvi_grammar *const g = r->g;
    if (n != 3 + QKVI_N_COLUMNS || !qkvi_token_is(tokens[2], ":"))
        return qkvi_reader_fail(r, QKV_ERR_FORMAT,
                                "expected 'person NAME : subj obj own was is has does'");
    if (g->n_persons == QKVI_MAX_PERSONS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d persons", QKVI_MAX_PERSONS);
    qkvi_person *const p = &g->persons[g->n_persons];
    QKV_TRY(qkvi_reader_keep(r, tokens[1].text, tokens[1].bytes, &p->name));
    p->takes_s = qkvi_token_is(tokens[1], "he") || qkvi_token_is(tokens[1], "she") ||
                 qkvi_token_is(tokens[1], "it");
    for (int32_t c = 0; c < QKVI_N_COLUMNS; ++c)
        QKV_TRY(qkvi_word_add(r, tokens[3 + c], &p->words[c]));
    ++g->n_persons;
    return qkvi_function_words(r, tokens + 3, QKVI_N_COLUMNS);
}

static int32_t find_person(const qkvi_grammar *g, qkvi_grammar_token token) {
    for (int32_t p = 0; p < g->n_persons; ++p)
        if (qkvi_token_is(token, g->persons[p].name)) return p;
    return -1;
}

/* "key=feature|feature" */
static qkv_status link_trait(const qkvi_reader *r, qkvi_grammar_token token, const char *equals,
                             qkvi_class_head *head) {
    const qkvi_grammar_token name = { token.text, (int32_t)(equals - token.text) };
    int32_t link, feature;
    QKV_TRY(qkvi_reader_link(r, name, true, &link));
    const char *const end = token.text + token.bytes;
    for (const char *from = equals + 1; from <= end;) {
        const char *to = from;
        while (to < end && *to != '|') ++to;
        if (to == from) return qkvi_reader_fail(r, QKV_ERR_FORMAT, "an empty feature");
        const qkvi_grammar_token part = { from, (int32_t)(to - from) };
        QKV_TRY(qkvi_reader_feature(r, part, true, &feature));
        qkvi_features_add(&head->links[link], feature);
        from = to + 1;
    }
    return QKV_OK;
}

/*
 * One token between '=' and ':': a link, a weight, a person or a feature. *type: the first feature.
 */
static qkv_status class_trait(const qkvi_reader *r, qkvi_grammar_token token, qkvi_class_head *head,
                              const char **type) {
    const char *const equals = memchr(token.text, '=', (size_t)token.bytes);
    if (equals) return link_trait(r, token, equals, head);
    if (token.text[0] == '*') {
        if (token.bytes != 2 || token.text[1] < '1' || token.text[1] > '9')
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "a weight is *1 to *9");
        head->weight = token.text[1] - '0';
        return QKV_OK;
    }
    const int32_t p = find_person(r->g, token);
    if (p >= 0) {
        if (head->n_persons == QKVI_MAX_READINGS)
            return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d persons of a class",
                                    QKVI_MAX_READINGS);
        head->persons[head->n_persons++] = p;
        return QKV_OK;
    }
    int32_t feature;
    QKV_TRY(qkvi_reader_feature(r, token, true, &feature));
    if (!*type) *type = r->g->features[feature];
    qkvi_features_add(&head->features, feature);
    return QKV_OK;
}

/* The class of this name and kind, added if new. */
static qkv_status find_class(const qkvi_reader *r, qkvi_kind kind, qkvi_grammar_token name,
                             int32_t *class_id) {
    qkvi_grammar *const g = r->g;
    for (*class_id = 0; *class_id < g->n_classes; ++*class_id) {
        if (!qkvi_token_is(name, g->classes[*class_id].name)) continue;
        if (g->classes[*class_id].kind != kind)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is another kind of word above",
                                    qkvi_token_quote(name).text);
        return QKV_OK;
    }
    if (g->n_classes == MAX_CLASSES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d classes", MAX_CLASSES);
    QKV_TRY(qkvi_reader_grow(r, &g->classes, g->n_classes, &g->cap_classes, sizeof *g->classes));
    g->classes[g->n_classes] = (qkvi_class){ .kind = kind };
    QKV_TRY(qkvi_reader_keep(r, name.text, name.bytes, &g->classes[g->n_classes].name));
    ++g->n_classes;
    return QKV_OK;
}

qkv_status qkvi_entries(const qkvi_reader *r, const qkvi_class_head *head,
                        const qkvi_grammar_token *tokens, int32_t n) {
    for (int32_t i = 0; i < n; ++i) QKV_TRY(qkvi_entry_add(r, head, tokens[i]));
    return QKV_OK;
}

qkv_status qkvi_class_line(const qkvi_reader *r, qkvi_kind kind, const qkvi_grammar_token *tokens,
                           int32_t n, qkvi_class_head *head) {
    int32_t colon = 3, own_feature;
    while (colon < n && !qkvi_token_is(tokens[colon], ":")) ++colon;
    if (n < 5 || !qkvi_token_is(tokens[2], "=") || colon >= n)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "expected 'KIND CLASS = FEATURE … : …'");
    if (r->g->n_families)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "classes come before families");
    *head = (qkvi_class_head){ .kind = kind, .weight = 1 };
    QKV_TRY(find_class(r, kind, tokens[1], &head->class_id));
    const char *type = NULL;
    for (int32_t i = 3; i < colon; ++i) QKV_TRY(class_trait(r, tokens[i], head, &type));
    qkvi_class *const class = &r->g->classes[head->class_id];
    if (!class->type) class->type = type ? type : class->name;
    QKV_TRY(qkvi_reader_feature(r, tokens[1], true, &own_feature));
    qkvi_features_add(&head->features, own_feature);
    if (kind == QKVI_KIND_NOUN && !head->n_persons) {
        const int32_t it = find_person(r->g, (qkvi_grammar_token){ "it", 2 });
        if (it < 0) return qkvi_reader_fail(r, QKV_ERR_FORMAT, "nouns need 'person it' above");
        head->persons[head->n_persons++] = it;
    }
    return qkvi_entries(r, head, tokens + colon + 1, n - colon - 1);
}
