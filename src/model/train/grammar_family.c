/* Compiling families: a line of the file becomes domains or frames.
 *
 *     X = person|animal sg !bare V.takes !Y !Y.subj      a domain
 *     say <X> V.past the Y because Y.subj* Y.was Q .     a say: here two frames, "the X" and "X"
 *
 * Checked here, so that nothing below needs to: every name is declared, every variable of a say
 * shows itself in it, every form that an element names exists for each lexeme of the domain, every
 * literal is in a class or a `function` line, and a text fits QKVI_PAIR_WORDS.
 */
#include "model/train/grammar_family.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"

enum { MAX_FAMILIES = 1000, MAX_SAYS = 10000, MAX_FRAMES = 20000, MAX_OPTIONAL = 4 };

/* One token of a say before <X> is expanded. */
typedef struct proto_element {
    qkvi_element element;
    bool is_optional, is_bar;
} proto_element;

static const char *const column_names[QKVI_N_COLUMNS] = { "subj", "obj", "own", "was",
                                                          "is",   "has", "does" };
static const char *const noun_forms[QKVI_N_FORMS] = { NULL, "one", "many", NULL, NULL };
static const char *const verb_forms[QKVI_N_FORMS] = { "base", "s", "past", "ing", "done" };

static qkvi_family *current(const qkvi_reader *r) { return &r->g->families[r->g->n_families - 1]; }

static int32_t find_var(const qkvi_family *family, qkvi_token token) {
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (qkvi_token_is(token, family->vars[v].name)) return v;
    return -1;
}

/* Splits at the first c; false if there is none. */
static bool split_at(qkvi_token token, char c, qkvi_token *left, qkvi_token *right) {
    const char *const at = memchr(token.text, c, (size_t)token.bytes);
    if (!at) return false;
    *left = (qkvi_token){ token.text, (int32_t)(at - token.text) };
    *right = (qkvi_token){ at + 1, token.bytes - left->bytes - 1 };
    return true;
}

qkv_status qkvi_family_begin(const qkvi_reader *r, const qkvi_token *tokens, int32_t n) {
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
    *family = (qkvi_family){ .weight = 1, .first_say = g->n_says, .line = r->line };
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

/* ---- Domains ---- */

static qkv_status add_relation(const qkvi_reader *r, qkvi_var *var, qkvi_relation relation) {
    if (var->n_relations == QKVI_MAX_VARS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d relations", QKVI_MAX_VARS);
    var->relations[var->n_relations++] = relation;
    return QKV_OK;
}

/* "feature", "this|that". */
static qkv_status want_features(const qkvi_reader *r, qkvi_var *var, qkvi_token token) {
    qkvi_features any = { { 0 } };
    qkvi_token left, rest = token;
    int32_t feature, n = 0;
    for (bool more = true; more; ++n) {
        more = split_at(rest, '|', &left, &token);
        QKV_TRY(qkvi_reader_feature(r, more ? left : rest, false, &feature));
        qkvi_features_add(&any, feature);
        rest = token;
    }
    if (n == 1) {
        qkvi_features_add(&var->all, feature);
        return QKV_OK;
    }
    if (var->n_any == QKVI_MAX_ANY)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d choices of features", QKVI_MAX_ANY);
    var->any[var->n_any++] = any;
    return QKV_OK;
}

/* "!feature", "!Y", "!Y.subj". */
static qkv_status refuse(const qkvi_reader *r, qkvi_var *var, qkvi_token token) {
    qkvi_token left, right;
    const int32_t other = find_var(current(r), token);
    if (other >= 0)
        return add_relation(r, var, (qkvi_relation){ QKVI_RELATION_OTHER_WORD, other, 0 });
    if (split_at(token, '.', &left, &right) && find_var(current(r), left) >= 0 &&
        qkvi_token_is(right, "subj"))
        return add_relation(
            r, var, (qkvi_relation){ QKVI_RELATION_OTHER_PERSON, find_var(current(r), left), 0 });
    int32_t feature;
    QKV_TRY(qkvi_reader_feature(r, token, false, &feature));
    qkvi_features_add(&var->none, feature);
    return QKV_OK;
}

static qkv_status condition(const qkvi_reader *r, qkvi_var *var, qkvi_token token) {
    qkvi_token left, right;
    if (token.text[0] == '!')
        return refuse(r, var, (qkvi_token){ token.text + 1, token.bytes - 1 });
    if (!split_at(token, '.', &left, &right)) return want_features(r, var, token);
    const int32_t other = find_var(current(r), left);
    if (other < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable above this line",
                                qkvi_token_quote(left).text);
    int32_t link;
    QKV_TRY(qkvi_reader_link(r, right, false, &link));
    return add_relation(r, var, (qkvi_relation){ QKVI_RELATION_LINK, other, link });
}

/* Whether some lexeme of each variable that `var` is linked to wants this one. */
static bool is_wanted(const qkvi_reader *r, const qkvi_var *var, const qkvi_lexeme *lexeme) {
    for (int32_t i = 0; i < var->n_relations; ++i) {
        const qkvi_relation *const relation = &var->relations[i];
        if (relation->kind != QKVI_RELATION_LINK) continue;
        const qkvi_domain *const other = &current(r)->vars[relation->other].domains[QKVI_ANY];
        bool wanted = false;
        for (int32_t k = 0; k < other->n && !wanted; ++k)
            wanted = qkvi_features_meet(lexeme->features,
                                        r->g->lexemes[other->members[k]].links[relation->link]);
        if (!wanted) return false;
    }
    return true;
}

/* Lists the lexemes that a variable admits, and the urn to draw them from. */
static qkv_status fill_domain(const qkvi_reader *r, const qkvi_var *var, qkvi_bareness bareness,
                              qkvi_domain *domain) {
    const qkvi_grammar *const g = r->g;
    int32_t bare;
    QKV_TRY(qkvi_reader_feature(r, (qkvi_token){ "bare", 4 }, true, &bare));
    qkvi_features bare_only = { { 0 } };
    qkvi_features_add(&bare_only, bare);
    for (int32_t pass = 0; pass < 2; ++pass) {
        domain->n = domain->n_urn = 0;
        for (int32_t l = 0; l < g->n_lexemes; ++l) {
            const qkvi_lexeme *const lexeme = &g->lexemes[l];
            const bool is_bare = qkvi_features_meet(lexeme->features, bare_only);
            if (!qkvi_var_admits(var, lexeme) || !is_wanted(r, var, lexeme) ||
                (bareness == QKVI_BARE && !is_bare) || (bareness == QKVI_NOT_BARE && is_bare))
                continue;
            if (pass == 1) domain->members[domain->n] = l;
            ++domain->n;
            for (int32_t i = 0; i < lexeme->weight; ++i, ++domain->n_urn)
                if (pass == 1) domain->urn[domain->n_urn] = l;
        }
        if (pass == 1) break;
        domain->members = qkvi_malloc_array((size_t)domain->n, sizeof *domain->members);
        domain->urn = qkvi_malloc_array((size_t)domain->n_urn, sizeof *domain->urn);
        if (!domain->members || !domain->urn)
            return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
    }
    return QKV_OK;
}

static qkv_status variable(const qkvi_reader *r, const qkvi_token *tokens, int32_t n) {
    qkvi_family *const family = current(r);
    if (find_var(family, tokens[0]) >= 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the variable '%s' is there already",
                                qkvi_token_quote(tokens[0]).text);
    if (family->n_vars == QKVI_MAX_VARS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d variables", QKVI_MAX_VARS);
    qkvi_var *const var = &family->vars[family->n_vars];
    QKV_TRY(qkvi_reader_keep(r, tokens[0].text, tokens[0].bytes, &var->name));
    for (int32_t i = 2; i < n; ++i) QKV_TRY(condition(r, var, tokens[i]));
    ++family->n_vars;
    for (int b = 0; b < QKVI_N_BARENESS; ++b)
        QKV_TRY(fill_domain(r, var, (qkvi_bareness)b, &var->domains[b]));
    if (var->domains[QKVI_ANY].n == 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "no word is what '%s' wants", var->name);
    return QKV_OK;
}

/* ---- Elements ---- */

static qkv_status need_form(const qkvi_reader *r, int32_t v, int32_t form) {
    const qkvi_domain *const domain = &current(r)->vars[v].domains[QKVI_ANY];
    for (int32_t i = 0; i < domain->n; ++i) {
        const qkvi_lexeme *const lexeme = &r->g->lexemes[domain->members[i]];
        if (lexeme->forms[form] < 0)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' of variable '%s' lacks a form",
                                    r->g->words[lexeme->forms[0]].text, current(r)->vars[v].name);
    }
    return QKV_OK;
}

static qkv_status need_person(const qkvi_reader *r, int32_t v) {
    const qkvi_domain *const domain = &current(r)->vars[v].domains[QKVI_ANY];
    for (int32_t i = 0; i < domain->n; ++i) {
        const qkvi_lexeme *const lexeme = &r->g->lexemes[domain->members[i]];
        if (lexeme->person < 0)
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' of variable '%s' has no person",
                                    r->g->words[lexeme->forms[0]].text, current(r)->vars[v].name);
    }
    return QKV_OK;
}

/* "V.past", "Y.subj". */
static qkv_status dotted(const qkvi_reader *r, int32_t v, qkvi_token right, qkvi_element *element) {
    const qkvi_domain *const domain = &current(r)->vars[v].domains[QKVI_ANY];
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
    const int32_t other = find_var(current(r), right);
    if (other < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(right).text);
    if (qkvi_token_is(left, "a")) {
        element->kind = QKVI_ARTICLE;
        element->var = (int8_t)other;
        return need_form(r, other, 0);
    }
    const int32_t v = find_var(current(r), left);
    if (v < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(left).text);
    element->kind = QKVI_AGREE;
    element->var = (int8_t)v;
    element->other = (int8_t)other;
    QKV_TRY(need_form(r, v, 1));
    return need_person(r, other);
}

/* "when|while|until". */
static qkv_status literal(const qkvi_reader *r, qkvi_token token, qkvi_element *element) {
    qkvi_token left, right = token;
    *element = (qkvi_element){ .kind = QKVI_LITERAL };
    for (bool more = true; more;) {
        token = right;
        more = split_at(token, '|', &left, &right);
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

static qkv_status parse_element(const qkvi_reader *r, qkvi_token token, proto_element *proto) {
    qkvi_token left, right;
    *proto = (proto_element){ 0 };
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
    const int32_t v = find_var(current(r), token);
    if (v >= 0) {
        element->kind = QKVI_FORM;
        element->var = (int8_t)v;
        return need_form(r, v, 0);
    }
    if (proto->is_optional)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(token).text);
    if (token.bytes > 1 && split_at(token, ':', &left, &right))
        return colon(r, left, right, element);
    if (token.bytes > 1 && split_at(token, '.', &left, &right)) {
        if (find_var(current(r), left) >= 0)
            return dotted(r, find_var(current(r), left), right, element);
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable",
                                qkvi_token_quote(left).text);
    }
    return literal(r, token, element);
}

/* ---- Says ---- */

/* Appends one frame: optional variable i is bare where bit i of `bare` is set. */
static qkv_status add_frame(const qkvi_reader *r, const proto_element *protos, int32_t n,
                            const qkvi_say *say, uint32_t bare) {
    qkvi_grammar *const g = r->g;
    if (g->n_frames == MAX_FRAMES)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d frames", MAX_FRAMES);
    QKV_TRY(qkvi_reader_grow(r, &g->frames, g->n_frames, &g->cap_frames, sizeof *g->frames));
    qkvi_frame frame = { .family = say->family, .say = g->n_says, .first_element = g->n_elements };
    for (int32_t i = 0; i < say->n_optional; ++i)
        frame.bareness[say->optional[i]] = bare >> i & 1 ? QKVI_BARE : QKVI_NOT_BARE;
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
            QKV_TRY(literal(r, (qkvi_token){ "the", 3 }, &parts[n_parts++]));
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

/* The variables of each half; an error if one of the say's never shows itself. */
static qkv_status note_vars(const qkvi_reader *r, const proto_element *protos, int32_t n,
                            qkvi_say *say) {
    uint32_t shown = 0;
    int32_t half = 0, n_bars = 0;
    for (int32_t i = 0; i < n; ++i) {
        const qkvi_element *const element = &protos[i].element;
        n_bars += protos[i].is_bar;
        if (protos[i].is_bar) half = 1;
        if (element->is_probe && (element->kind != QKVI_PERSON || say->is_pair))
            return qkvi_reader_fail(r, QKV_ERR_FORMAT, "only a pronoun of a say can be a probe");
        say->has_probe |= element->is_probe;
        if (protos[i].is_bar || element->kind == QKVI_LITERAL) continue;
        say->vars[half] |= 1u << element->var;
        if (element->kind == QKVI_AGREE) say->vars[half] |= 1u << element->other;
        if (element->kind == QKVI_FORM || element->kind == QKVI_AGREE) shown |= 1u << element->var;
    }
    if (n_bars != say->is_pair || (say->is_pair && (protos[0].is_bar || protos[n - 1].is_bar)))
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "a pair has one '|' inside, a say none");
    const uint32_t hidden = (say->vars[0] | say->vars[1]) & ~shown;
    if (hidden)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the variable '%s' never shows itself",
                                current(r)->vars[__builtin_ctz(hidden)].name);
    if (say->is_pair && !(say->vars[0] & say->vars[1]))
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "the halves of a pair share no variable");
    return QKV_OK;
}

static qkv_status add_say(const qkvi_reader *r, const qkvi_token *tokens, int32_t n, bool is_pair,
                          bool is_held) {
    qkvi_grammar *const g = r->g;
    proto_element protos[QKVI_PAIR_WORDS + 1];
    if (n < 1 || n > QKVI_PAIR_WORDS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "a say has 1 to %d words", (int)QKVI_PAIR_WORDS);
    if (g->n_says == MAX_SAYS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d says", MAX_SAYS);
    qkvi_say say = { .family = g->n_families - 1,
                     .first_frame = g->n_frames,
                     .is_pair = is_pair,
                     .is_held = is_held };
    for (int32_t i = 0; i < n; ++i) {
        QKV_TRY(parse_element(r, tokens[i], &protos[i]));
        if (!protos[i].is_optional) continue;
        bool known = false;
        for (int32_t k = 0; k < say.n_optional; ++k)
            known |= say.optional[k] == protos[i].element.var;
        if (known) continue;
        if (say.n_optional == MAX_OPTIONAL)
            return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d variables in <>", MAX_OPTIONAL);
        say.optional[say.n_optional++] = protos[i].element.var;
    }
    QKV_TRY(note_vars(r, protos, n, &say));
    for (uint32_t bare = 0; bare < 1u << say.n_optional; ++bare)
        QKV_TRY(add_frame(r, protos, n, &say, bare));
    QKV_TRY(qkvi_reader_grow(r, &g->says, g->n_says, &g->cap_says, sizeof *g->says));
    g->says[g->n_says++] = say;
    current(r)->n_says++;
    return QKV_OK;
}

qkv_status qkvi_family_line(const qkvi_reader *r, const qkvi_token *tokens, int32_t n) {
    if (n >= 2 && qkvi_token_is(tokens[1], "=")) return variable(r, tokens, n);
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
        if (!family->n_says)
            return qkvi_reader_fail(&at, QKV_ERR_FORMAT, "the family '%s' says nothing",
                                    family->name);
        for (int32_t i = 0; i < family->n_hold; ++i) {
            const char *const name = family->hold_names[i];
            family->hold[i] = find_var(family, (qkvi_token){ name, (int32_t)strlen(name) });
            if (family->hold[i] < 0)
                return qkvi_reader_fail(&at, QKV_ERR_FORMAT, "hold: '%s' is not a variable", name);
        }
    }
    return QKV_OK;
}
