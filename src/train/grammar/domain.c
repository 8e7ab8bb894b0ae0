/*
 * Variables: a line of conditions becomes the domain, the list of lexemes that the variable may be.
 *
 *     X = person|animal sg !bare V.takes !Y !Y.subj
 *
 * Conditions on features are checked here; relations to other variables (V.takes, !Y, !Y.subj) are
 * stored, and checked for each assignment. Lexemes that no lexeme of V takes are left out here,
 * too.
 */

#include "train/grammar/family.h"

enum { MAX_DOMAIN_ENTRIES = 1 << 22 }; /* of all variables together, counted with their weights */

qkvi_family *qkvi_family_current(const qkvi_reader *r) {
    return &r->g->families[r->g->n_families - 1];
}

int32_t qkvi_family_var(const qkvi_family *family, qkvi_grammar_token token) {
    for (int32_t v = 0; v < family->n_vars; ++v)
        if (qkvi_token_is(token, family->vars[v].name)) return v;
    return -1;
}

bool qkvi_token_split(qkvi_grammar_token token, char c, qkvi_grammar_token *left,
                      qkvi_grammar_token *right) {
    const char *const at = memchr(token.text, c, (size_t)token.bytes);
    if (!at) return false;
    *left = (qkvi_grammar_token){ token.text, (int32_t)(at - token.text) };
    *right = (qkvi_grammar_token){ at + 1, token.bytes - left->bytes - 1 };
    return true;
}

static qkv_status add_relation(const qkvi_reader *r, qkvi_var *var, qkvi_relation relation) {
    if (var->n_relations == QKVI_MAX_VARS)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d relations", QKVI_MAX_VARS);
    var->relations[var->n_relations++] = relation;
    return QKV_OK;
}

static qkv_status add_any(const qkvi_reader *r, qkvi_var *var, qkvi_features any) {
    if (var->n_any == QKVI_MAX_ANY)
        return qkvi_reader_fail(r, QKV_ERR_LIMIT, "more than %d choices of features", QKVI_MAX_ANY);
    var->any[var->n_any++] = any;
    return QKV_OK;
}

/* "feature", "this|that". */
static qkv_status want_features(const qkvi_reader *r, qkvi_var *var, qkvi_grammar_token token) {
    qkvi_features any = { { 0 } };
    qkvi_grammar_token left, rest = token;
    int32_t feature, n = 0;
    for (bool more = true; more; ++n) {
        more = qkvi_token_split(rest, '|', &left, &token);
        QKV_TRY(qkvi_reader_feature(r, more ? left : rest, false, &feature));
        qkvi_features_add(&any, feature);
        rest = token;
    }
    if (n == 1) {
        qkvi_features_add(&var->all, feature);
        return QKV_OK;
    }
    return add_any(r, var, any);
}

/* "!feature", "!Y", "!Y.subj". */
static qkv_status refuse(const qkvi_reader *r, qkvi_var *var, qkvi_grammar_token token) {
    qkvi_grammar_token left, right;
    const int32_t other = qkvi_family_var(qkvi_family_current(r), token);
    if (other >= 0)
        return add_relation(r, var, (qkvi_relation){ QKVI_RELATION_OTHER_WORD, other, 0 });
    if (qkvi_token_split(token, '.', &left, &right) &&
        qkvi_family_var(qkvi_family_current(r), left) >= 0 && qkvi_token_is(right, "subj"))
        return add_relation(r, var,
                            (qkvi_relation){ QKVI_RELATION_OTHER_PERSON,
                                             qkvi_family_var(qkvi_family_current(r), left), 0 });
    int32_t feature;
    QKV_TRY(qkvi_reader_feature(r, token, false, &feature));
    qkvi_features_add(&var->none, feature);
    return QKV_OK;
}

/* "V.takes": besides the relation, what no V wants is left out from the start. */
static qkv_status add_link(const qkvi_reader *r, qkvi_var *var, int32_t other,
                           qkvi_grammar_token name) {
    const qkvi_domain *const domain = &qkvi_family_current(r)->vars[other].domains[QKVI_ANY];
    int32_t link;
    QKV_TRY(qkvi_reader_link(r, name, false, &link));
    qkvi_features wanted = { { 0 } };
    for (int32_t i = 0; i < domain->n; ++i) {
        const qkvi_features some = r->g->lexemes[domain->members[i]].links[link];
        wanted.bits[0] |= some.bits[0];
        wanted.bits[1] |= some.bits[1];
    }
    QKV_TRY(add_any(r, var, wanted));
    return add_relation(r, var, (qkvi_relation){ QKVI_RELATION_LINK, other, link });
}

static qkv_status condition(const qkvi_reader *r, qkvi_var *var, qkvi_grammar_token token) {
    qkvi_grammar_token left, right;
    if (token.text[0] == '!')
        return refuse(r, var, (qkvi_grammar_token){ token.text + 1, token.bytes - 1 });
    if (!qkvi_token_split(token, '.', &left, &right)) return want_features(r, var, token);
    const int32_t other = qkvi_family_var(qkvi_family_current(r), left);
    if (other < 0)
        return qkvi_reader_fail(r, QKV_ERR_FORMAT, "'%s' is not a variable above this line",
                                qkvi_token_quote(left).text);
    return add_link(r, var, other, right);
}

/* Lists the lexemes that a variable admits, and the pool to draw them from. */
static qkv_status fill_domain(const qkvi_reader *r, const qkvi_var *var, qkvi_bareness bareness,
                              qkvi_domain *domain) {
    const qkvi_grammar *const g = r->g;
    int32_t bare;
    QKV_TRY(qkvi_reader_feature(r, (qkvi_grammar_token){ "bare", 4 }, true, &bare));
    qkvi_features bare_only = { { 0 } };
    qkvi_features_add(&bare_only, bare);
    for (int32_t pass = 0; pass < 2; ++pass) {
        domain->n = domain->n_pool = 0;
        for (int32_t l = 0; l < g->n_lexemes; ++l) {
            const qkvi_lexeme *const lexeme = &g->lexemes[l];
            const bool is_bare = qkvi_features_meet(lexeme->features, bare_only);
            if (!qkvi_var_admits(var, lexeme) || (bareness == QKVI_BARE && !is_bare) ||
                (bareness == QKVI_NOT_BARE && is_bare))
                continue;
            if (pass == 1) domain->members[domain->n] = l;
            ++domain->n;
            for (int32_t i = 0; i < lexeme->weight; ++i, ++domain->n_pool)
                if (pass == 1) domain->pool[domain->n_pool] = l;
        }
        if (pass == 1) break;
        r->g->n_domain_entries += domain->n_pool;
        if (r->g->n_domain_entries > MAX_DOMAIN_ENTRIES)
            return qkvi_reader_fail(r, QKV_ERR_LIMIT, "the variables have more than %d words",
                                    MAX_DOMAIN_ENTRIES);
        domain->members = qkvi_malloc_array((size_t)domain->n, sizeof *domain->members);
        domain->pool = qkvi_malloc_array((size_t)domain->n_pool, sizeof *domain->pool);
        if (!domain->members || !domain->pool)
            return qkvi_reader_fail(r, QKV_ERR_MEMORY, "out of memory");
    }
    return QKV_OK;
}

/* The most lexemes that share a spelling with one of the domain. */
static int32_t most_alike(const qkvi_grammar *g, const qkvi_domain *domain) {
    int32_t most = 1;
    for (int32_t i = 0; i < domain->n; ++i)
        for (int32_t f = 0; f < QKVI_N_FORMS; ++f) {
            const int32_t w = g->lexemes[domain->members[i]].forms[f];
            if (w >= 0 && g->words[w].n_lexemes > most) most = g->words[w].n_lexemes;
        }
    return most;
}

qkv_status qkvi_variable_line(const qkvi_reader *r, const qkvi_grammar_token *tokens, int32_t n) {
    qkvi_family *const family = qkvi_family_current(r);
    if (qkvi_family_var(family, tokens[0]) >= 0)
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
    var->most_alike = most_alike(r->g, &var->domains[QKVI_ANY]);
    return QKV_OK;
}
