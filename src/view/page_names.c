/**
 * Shorter names for what a script declares. A name stands for the same variables before and after: all
 * variables of one name get one new name, no two names get the same, and no new name occurs in the script,
 * so whatever scope a name is looked up in, it is found where it was.
 *
 *     const total=(list,{first=0})=>list.reduce(...)      const a=(b,{first:c=0})=>b.reduce(...)
 *
 * What is not a variable stays: properties, keys, methods, strings, and names that are not declared here,
 * which are the browser's. A script must not declare a name of the browser's that it also uses as such.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "view/page_code.h"
#include "view/page_words.h"

enum { BUCKETS = 1024, SHORTEST = 4 }; /* characters of a new name, with its NUL, at most */

struct name {
    const qkvi_script_word *token; /* where it stands first */
    int declared, uses, shorthands, order, next;
    char given[SHORTEST]; /* "": it stays */
};

struct names {
    struct name *list;
    int n;
    int *of; /* of each token; -1: none */
    int first[BUCKETS];
};

static int is_shown(const qkvi_script_word *tokens, int t, char c) {
    return tokens[t].kind == QKVI_SCRIPT_MARK && *tokens[t].text == c;
}

/* The characters beside a token; NUL at the ends. */
static char after(const qkvi_script_words *tokens, int t) {
    return t + 1 < tokens->n ? *tokens->list[t + 1].text : 0;
}
static char before(const qkvi_script_words *tokens, int t) {
    return t > 0 ? tokens->list[t].text[-1] : 0;
}

static int is_property(const qkvi_script_words *tokens, int t) {
    return before(tokens, t) == '.' && !(t > 2 && is_shown(tokens->list, t - 2, '.'));
}

/* Does a token begin an entry of an object? */
static int begins_entry(const qkvi_script_words *tokens, int t) {
    const int around = tokens->list[t].around;
    return around >= 0 && tokens->list[around].object &&
           (t - 1 == around || is_shown(tokens->list, t - 1, ','));
}
static int is_key(const qkvi_script_words *tokens, int t) {
    const char c = after(tokens, t);
    return begins_entry(tokens, t) && (c == ':' || c == '(');
}
static int is_shorthand(const qkvi_script_words *tokens, int t) {
    const char c = after(tokens, t);
    return begins_entry(tokens, t) && (c == ',' || c == '}' || c == '=');
}
static int is_variable(const qkvi_script_words *tokens, int t) {
    return tokens->list[t].kind == QKVI_SCRIPT_NAME && !is_property(tokens, t) &&
           !is_key(tokens, t);
}

/* ---- Which names there are --------------------------------------------------------------------- */

static unsigned bucket_of(const char *text, int n) {
    unsigned hash = 2166136261u; /* FNV-1a */
    for (int i = 0; i < n; i++) hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash % BUCKETS;
}

static int find(const struct names *names, const char *text, int n) {
    int at = names->first[bucket_of(text, n)];
    while (at >= 0 && (names->list[at].token->n != n ||
                       memcmp(names->list[at].token->text, text, (size_t)n) != 0))
        at = names->list[at].next;
    return at;
}

static int keep(struct names *names, const qkvi_script_word *token) {
    const int found = find(names, token->text, token->n);
    if (found >= 0) return found;
    int *const first = &names->first[bucket_of(token->text, token->n)];
    names->list[names->n] = (struct name){ .token = token, .order = names->n, .next = *first };
    return *first = names->n++;
}

static void collect(const qkvi_script_words *tokens, struct names *names) {
    for (int b = 0; b < BUCKETS; b++) names->first[b] = -1;
    for (int t = 0; t < tokens->n; t++) {
        names->of[t] = is_variable(tokens, t) ? keep(names, &tokens->list[t]) : -1;
        if (names->of[t] < 0) continue;
        struct name *const name = &names->list[names->of[t]];
        *(is_shorthand(tokens, t) ? &name->shorthands : &name->uses) += 1;
    }
}

/* ---- Which of them are declared ---------------------------------------------------------------- */

static void declare(struct names *names, int t) {
    if (names->of[t] >= 0) names->list[names->of[t]].declared = 1;
}

/* Names between two brackets, but for those in values that stand for what is missing. */
static void declare_within(const qkvi_script_words *tokens, struct names *names, int open) {
    for (int t = open + 1; t < tokens->list[open].other; t++)
        if (strchr("(,{[:.", before(tokens, t))) declare(names, t);
}

static int ends_value(const qkvi_script_word *word) {
    return (word->kind == QKVI_SCRIPT_MARK && strchr(",;\n)}", *word->text)) ||
           qkvi_script_word_is(word, "of");
}

/* const and let: names or patterns, each with its value. */
static void declare_list(const qkvi_script_words *tokens, struct names *names, int t) {
    const qkvi_script_word *const list = tokens->list;
    while (t < tokens->n) {
        if (list[t].other > t) declare_within(tokens, names, t);
        declare(names, t);
        while (t < tokens->n && !ends_value(&list[t]))
            t = list[t].other > t ? list[t].other + 1 : t + 1;
        if (t == tokens->n || !is_shown(list, t, ',')) return;
        t++;
    }
}

static int is_arrow(const qkvi_script_words *tokens, int t) {
    return t + 1 < tokens->n && is_shown(tokens->list, t, '=') &&
           is_shown(tokens->list, t + 1, '>');
}

/* Is this bracket that of a function's parameters? */
static int has_parameters(const qkvi_script_words *tokens, int open) {
    const qkvi_script_word *const list = tokens->list;
    if (!is_shown(list, open, '(') || list[open].other < 0) return 0;
    if (is_arrow(tokens, list[open].other + 1)) return 1;
    if (open == 0) return 0;
    return qkvi_script_word_is(&list[open - 1], "function") ||
           qkvi_script_word_is(&list[open - 1], "catch") ||
           (list[open - 1].kind == QKVI_SCRIPT_NAME && is_key(tokens, open - 1)) ||
           (open > 1 && qkvi_script_word_is(&list[open - 2], "function"));
}

static void find_declared(const qkvi_script_words *tokens, struct names *names) {
    for (int t = 0; t < tokens->n; t++) {
        const qkvi_script_word *const token = &tokens->list[t];
        if (is_arrow(tokens, t + 1) || (t > 0 && qkvi_script_word_is(token - 1, "function")))
            declare(names, t);
        if (has_parameters(tokens, t)) declare_within(tokens, names, t);
        if (token->kind == QKVI_SCRIPT_WORD &&
            (qkvi_script_word_is(token, "const") || qkvi_script_word_is(token, "let")))
            declare_list(tokens, names, t + 1);
    }
}

/* ---- New ones ------------------------------------------------------------------------------------ */

static int by_uses(const void *a, const void *b) {
    const struct name *const x = *(struct name *const *)a, *const y = *(struct name *const *)b;
    if (x->uses != y->uses) return x->uses < y->uses ? 1 : -1;
    return x->order - y->order;
}

/* The index-th of all: a ... z, A ... Z, _, $, then two characters. Returns how many it has. */
static int nth_name(int index, char name[SHORTEST]) {
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_$0123456789";
    enum { FIRST = 54, ALL = 64 };
    if (index < FIRST) {
        name[0] = letters[index];
        name[1] = '\0';
        return 1;
    }
    index -= FIRST;
    name[0] = letters[index / ALL % FIRST];
    name[1] = letters[index % ALL];
    name[2] = '\0';
    return 2;
}

static int is_free(const struct names *names, const char *text, int n) {
    return find(names, text, n) < 0 && !qkvi_script_reserved(text, n);
}

/* In the order of their uses, as long as that makes the script shorter. */
static void give(const struct names *names, struct name **order) {
    enum { ALL_NAMES = 54 + 54 * 64 };
    for (int i = 0; i < names->n; i++) order[i] = &names->list[i];
    qsort(order, (size_t)names->n, sizeof(struct name *), by_uses);
    char given[SHORTEST];
    int next = 0, n = 0;
    for (int i = 0; i < names->n; i++) {
        struct name *const name = order[i];
        while (n == 0 && next < ALL_NAMES) {
            n = nth_name(next++, given);
            if (!is_free(names, given, n)) n = 0;
        }
        const int gain = name->uses * (name->token->n - n) - name->shorthands * (n + 1);
        if (n == 0 || !name->declared || gain <= 0) continue;
        memcpy(name->given, given, sizeof given);
        n = 0;
    }
}

static void write(const qkvi_script_words *tokens, const struct names *names, qkvi_bytes *code) {
    for (int t = 0; t < tokens->n; t++) {
        const qkvi_script_word *const token = &tokens->list[t];
        const char *const given = names->of[t] < 0 ? "" : names->list[names->of[t]].given;
        if (t > 0 && token->text[-1] == ' ') qkvi_bytes_text(code, " ");
        if (*given && is_shorthand(tokens, t)) {
            qkvi_bytes_add(code, token->text, (size_t)token->n);
            qkvi_bytes_text(code, ":");
        }
        if (*given)
            qkvi_bytes_text(code, given);
        else
            qkvi_bytes_add(code, token->text, (size_t)token->n);
    }
}

static void tell(const struct names *names, qkvi_bytes *lines) {
    for (int i = 0; i < names->n; i++) {
        const struct name *const name = &names->list[i];
        if (!*name->given) continue;
        qkvi_bytes_add(lines, name->token->text, (size_t)name->token->n);
        qkvi_bytes_text(lines, " ");
        qkvi_bytes_text(lines, name->given);
        qkvi_bytes_text(lines, "\n");
    }
}

void qkvi_script_rename(qkvi_bytes *code, qkvi_bytes *lines, const char *at, const char *end) {
    qkvi_script_words tokens = qkvi_script_words_read(at, end);
    struct names names = { 0 };
    names.list = qkvi_malloc_array((size_t)tokens.n, sizeof *names.list);
    names.of = qkvi_malloc_array((size_t)tokens.n, sizeof *names.of);
    struct name **const order = qkvi_malloc_array((size_t)tokens.n, sizeof *order);
    if (tokens.failed || names.list == NULL || names.of == NULL || order == NULL) {
        code->failed = 1;
    } else {
        collect(&tokens, &names);
        find_declared(&tokens, &names);
        give(&names, order);
        write(&tokens, &names, code);
        if (lines) tell(&names, lines);
    }
    free(order);
    free(names.list);
    free(names.of);
    free(tokens.list);
}
