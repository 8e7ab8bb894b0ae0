/* Hints about a text: see hints.h. */
#include "common/hints.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/os.h"
#include "common/term.h"

/* Several hints stand in lines of their own. */
__attribute__((format(printf, 2, 3))) static void add_hint(struct session *session,
                                                           const char *format, ...) {
    const size_t used = strlen(session->hint);
    va_list values;
    va_start(values, format);
    if (used + 1 < HINT_BYTES) {
        if (used) strcpy(session->hint + used, "\n");
        vsnprintf(session->hint + strlen(session->hint), HINT_BYTES - strlen(session->hint), format,
                  values);
    }
    va_end(values);
}

/* ---- A mask that is none --------------------------------------------------------------------- */

/* The first place where `word` stands in any case, without being `but`; NULL: nowhere. */
static const char *find_other(const struct text *text, const char *word, const char *but) {
    const size_t n = strlen(word), m = strlen(but);
    for (size_t i = 0; i + n <= text->n; i++)
        if (strncasecmp(text->bytes + i, word, n) == 0 &&
            !(n == m && memcmp(text->bytes + i, but, m) == 0))
            return text->bytes + i;
    return NULL;
}

static bool wrong_mask_in(struct session *session, const struct text *text) {
    const int32_t id = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_MASK);
    size_t n = 0;
    const char *token = id < 0 ? NULL : qkv_tokenizer_token(session->tokenizer, id, &n);
    char *mask = token ? strndup(token, n) : NULL;
    const char *const words[] = { mask, "[mask]", "<mask>" };
    bool found = false;
    for (int i = 0; mask && !found && i < CLI_COUNT(words); i++) {
        const char *place = find_other(text, words[i], mask);
        found = place != NULL;
        if (found)
            add_hint(session, "'%.*s' is no mask of this model, which is %s", (int)strlen(words[i]),
                     place, mask);
    }
    free(mask);
    return found;
}

/* ---- Words that the embedded model lacks ----------------------------------------------------- */

enum { MOST_WORDS = 4, LIST_BYTES = 320 };

/* The first words, each once in any case, and whether there are more. */
struct unknown {
    char text[LIST_BYTES];
    struct {
        const char *bytes;
        size_t n;
    } words[MOST_WORDS];
    int n;
    bool more;
};

static void add_word(struct unknown *unknown, const struct text *text, int64_t begin, int64_t end) {
    if (unknown->more || begin < 0 || (size_t)end > text->n) return;
    const char *bytes = text->bytes + begin;
    const size_t n = (size_t)(end - begin);
    for (int i = 0; i < unknown->n; i++)
        if (n == unknown->words[i].n && strncasecmp(bytes, unknown->words[i].bytes, n) == 0) return;
    unknown->more = unknown->n == MOST_WORDS;
    if (unknown->more) return;
    unknown->words[unknown->n].bytes = bytes;
    unknown->words[unknown->n++].n = n;
    char *word = term_escape(bytes, n);
    text_append(unknown->text, sizeof unknown->text, "%s'%.40s'", unknown->n > 1 ? ", " : "",
                word ? word : "");
    free(word);
}

/* Does the token go on with the word before it: a piece of WordPiece? */
static bool goes_on(const struct session *session, int32_t id) {
    size_t n = 0;
    const char *token = qkv_tokenizer_token(session->tokenizer, id, &n);
    return token && n > 2 && memcmp(token, "##", 2) == 0;
}

/* Words of text number `which` that are several tokens, or [UNK]. */
static void find_unknown(const struct session *session, const qkv_encoding *input, int which,
                         const struct text *text, struct unknown *unknown) {
    const int32_t unk = qkv_tokenizer_special(session->tokenizer, QKV_TOKEN_UNK);
    for (int64_t i = 0, end; i < input->n; i = end) {
        end = i + 1;
        if (input->types[i] != which || input->special[i]) continue;
        while (end < input->n && goes_on(session, input->ids[end])) end++;
        if (end > i + 1 || input->ids[i] == unk)
            add_word(unknown, text, input->begin[i], input->end[end - 1]);
    }
}

static void add_unknown(struct session *session, const qkv_encoding *input, const struct text *text,
                        const struct text *pair) {
    struct unknown unknown = { .n = 0 };
    find_unknown(session, input, 0, text, &unknown);
    if (pair) find_unknown(session, input, 1, pair, &unknown);
    if (unknown.n == 0) return;
    if (unknown.more) text_append(unknown.text, sizeof unknown.text, " and more");
    add_hint(session,
             "the embedded model was never shown %s: it reads %s in pieces. It knows the few "
             "words of its grammar; --model names another",
             unknown.text, unknown.n > 1 ? "them" : "it");
}

/* ---------------------------------------------------------------------------------------------- */

static bool is_blank(const struct text *text) {
    for (size_t i = 0; i < text->n; i++)
        if (!strchr(" \t\r\n", text->bytes[i])) return false;
    return true;
}

void hints_make(struct session *session, const qkv_encoding *input, const struct text *text,
                const struct text *pair) {
    const bool may_be_empty = session->command->may_be_empty;
    *session->hint = '\0';
    if (!may_be_empty && (is_blank(text) || (pair && is_blank(pair))))
        add_hint(session, "%s text is empty: the model reads only the tokens around it",
                 !pair            ? "the"
                 : is_blank(text) ? "the first"
                                  : "the second");
    if (!wrong_mask_in(session, text) && !(pair && wrong_mask_in(session, pair)) &&
        session->is_embedded)
        add_unknown(session, input, text, pair);
}

void hints_say(const struct session *session) {
    for (const char *line = session->hint; *line;) {
        const size_t n = strcspn(line, "\n");
        cli_note(false, "qkv: %.*s", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

void hints_say_file(const struct session *session, const char *text) {
    char byte;
    if (session->common->quiet || os_peek(text, &byte, 1) == 0) return;
    char *name = term_escape(text, strlen(text));
    cli_note(false, "qkv: the text is '%s', not what the file of that name holds (%s)",
             name ? name : "",
             args_takes(session->command, "--file") ? "--file F reads a file"
                                                    : "- reads standard input");
    free(name);
}
