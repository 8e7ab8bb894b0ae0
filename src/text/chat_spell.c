/*
 * The canonical spelling of a chat template: no white space between the words of a tag, single
 * quotes, message['role'] for message.role, added literals joined to one, no comments. Text outside
 * of tags is unchanged. Time is linear in the template.
 */
#include "text/chat.h"

#include "files/base.h"

typedef struct spelling {
    const char *text;
    size_t n, at;
    qkvi_growing out;
    size_t closed; /* of the last literal, behind its quote */
    qkv_status status;
} spelling;

static void put(spelling *s, const char *bytes, size_t n) {
    if (s->status == QKV_OK) s->status = qkvi_growing_put(&s->out, bytes, n);
}

bool qkvi_chat_is_white(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

/* A literal, in single quotes; added to another literal, it becomes the end of that. */
static void put_literal(spelling *s) {
    const char quote = s->text[s->at++];
    const bool joins = s->closed > 0 && s->out.n == s->closed + 1 && s->out.bytes[s->closed] == '+';
    if (joins)
        s->out.n = s->closed - 1;
    else
        put(s, "'", 1);
    for (; s->at < s->n && s->text[s->at] != quote; s->at++) {
        const char c = s->text[s->at];
        if (c == '\n')
            put(s, "\\n", 2);
        else if (c == '\'')
            put(s, "\\'", 2);
        else
            put(s, &c, 1);
        if (c != '\\' || s->at + 1 == s->n) continue;
        s->at++;
        put(s, &s->text[s->at], 1);
    }
    if (s->at < s->n) s->at++;
    put(s, "'", 1);
    s->closed = s->out.n;
}

/* ".role" as "['role']". */
static bool put_field(spelling *s) {
    static const char *const fields[] = { "role", "content" };
    for (int f = 0; f < 2; f++) {
        const size_t n = strlen(fields[f]), end = s->at + 1 + n;
        if (s->n - s->at < n + 1 || memcmp(s->text + s->at + 1, fields[f], n) != 0) continue;
        if (end < s->n && (s->text[end] == '_' || s->text[end] == '(')) continue;
        put(s, "['", 2);
        put(s, fields[f], n);
        put(s, "']", 2);
        s->at = end;
        return true;
    }
    return false;
}

/* From "{{" or "{%" to the end of the tag. */
static void put_tag(spelling *s) {
    const char end = s->text[s->at + 1] == '{' ? '}' : '%';
    put(s, s->text + s->at, 2);
    s->at += 2;
    while (s->at < s->n) {
        const char c = s->text[s->at];
        if (c == end && s->at + 1 < s->n && s->text[s->at + 1] == '}') break;
        if (c == '\'' || c == '"') {
            put_literal(s);
            continue;
        }
        if (c == '.' && put_field(s)) continue;
        if (!qkvi_chat_is_white(c)) put(s, &c, 1);
        s->at++;
    }
    const size_t left = s->n - s->at;
    put(s, s->text + s->at, left < 2 ? left : 2);
    s->at += left < 2 ? left : 2;
}

/* Blanks at the end of what is there: all, or those of a line that has nothing else. */
static void drop_blanks(spelling *s, bool all) {
    size_t n = s->out.n;
    while (n > 0 && qkvi_chat_is_white(s->out.bytes[n - 1]) && (all || s->out.bytes[n - 1] != '\n'))
        n--;
    if (all || n == 0 || s->out.bytes[n - 1] == '\n') s->out.n = n;
}

/* With the blanks that Jinja leaves out around it. */
static void skip_comment(spelling *s) {
    const char *const begin = s->text + s->at, *const last = s->text + s->n;
    const char *end = begin + 2;
    while (end < last && !(*end == '#' && end + 1 < last && end[1] == '}')) end++;
    drop_blanks(s, begin + 2 < last && begin[2] == '-');
    const bool cuts = end > begin + 2 && end[-1] == '-';
    end = last - end < 2 ? last : end + 2;
    if (!cuts && end < last && *end == '\n') end++;
    while (cuts && end < last && qkvi_chat_is_white(*end)) end++;
    s->at = (size_t)(end - s->text);
}

qkv_status qkvi_chat_spell(const char *template, size_t n, char **text) {
    spelling s = { .text = template, .n = n, .status = QKV_OK };
    while (s.at < n) {
        const char c = template[s.at], next = s.at + 1 < n ? template[s.at + 1] : 0;
        if (c == '{' && next == '#') {
            skip_comment(&s);
        } else if (c == '{' && (next == '{' || next == '%')) {
            put_tag(&s);
        } else {
            put(&s, &c, 1);
            s.at++;
        }
    }
    put(&s, "", 1);
    *text = s.out.bytes;
    if (s.status == QKV_OK) return QKV_OK;
    free(s.out.bytes);
    *text = NULL;
    return s.status;
}
