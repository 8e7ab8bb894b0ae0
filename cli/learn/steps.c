/* Reading the steps of the tutorial: see learn.h. */
#include "learn/learn.h"

#include <string.h>

extern const char learn_text[];

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

static bool begins(const char *line, const char *with) {
    return strncmp(line, with, strlen(with)) == 0;
}

const char *learn_step(int step, char title[100]) {
    char heading[16];
    snprintf(heading, sizeof heading, "## %d. ", step);
    for (const char *line = learn_text; *line; line = next_line(line)) {
        if (!begins(line, heading)) continue;
        const char *const from = line + strlen(heading);
        snprintf(title, 100, "%.*s", (int)strcspn(from, "\n"), from);
        return next_line(line);
    }
    return NULL;
}

/* ---- Markdown to words ----------------------------------------------------------------------- */

/* One mark at *at is taken off, or one character is added. */
static void add_character(const char **at, char *text, size_t room) {
    const char *from = *at;
    const size_t n = strlen(text);
    const char *const close = *from == '[' ? strstr(from, "](") : NULL;
    if (close && close < from + strcspn(from, "]") + 1) { /* [words](where) */
        snprintf(text + n, room - n, "%.*s", (int)(close - from - 1), from + 1);
        *at = close + strcspn(close, ")") + 1;
        return;
    }
    if (*from != '*' && *from != '`' && n + 1 < room) {
        text[n] = *from == '\n' ? ' ' : *from;
        text[n + 1] = '\0';
    }
    *at = from + 1;
}

/* A paragraph from *at to an empty line, in one line. */
static void read_words(const char **at, struct learn_part *part) {
    static const struct {
        const char *mark;
        enum learn_kind kind;
    } marks[] = { { "**Question.** ", LEARN_QUESTION },
                  { "**Answer.** ", LEARN_ANSWER },
                  { "**Picture.**", LEARN_WORDS } };
    part->kind = LEARN_WORDS;
    part->text[0] = '\0';
    for (int i = 0; i < CLI_COUNT(marks); i++) {
        if (!begins(*at, marks[i].mark)) continue;
        part->kind = marks[i].kind;
        if (i < 2) *at += strlen(marks[i].mark);
    }
    while (**at && !(**at == '\n' && (*at)[1] == '\n'))
        add_character(at, part->text, sizeof part->text);
    if (**at) *at += 2;
}

/* A command, and past what it printed. */
static void read_command(const char **at, struct learn_part *part) {
    snprintf(part->text, sizeof part->text, "%.*s", (int)strcspn(*at + 4, "\n"), *at + 4);
    part->kind = strstr(part->text, " -o ") ? LEARN_PICTURE : LEARN_COMMAND;
    *at = next_line(*at);
    while (begins(*at, "    ") || **at == '\n') {
        if (begins(*at, "    qkv ")) return;
        *at = next_line(*at);
    }
}

/* Past lines that show a picture in the page. */
static bool skip_markup(const char **at) {
    if (!begins(*at, "<picture>")) return false;
    while (**at && !begins(*at, "</picture>")) *at = next_line(*at);
    *at = next_line(*at);
    return true;
}

bool learn_next(const char **at, struct learn_part *part) {
    for (;;) {
        if (**at == '\0' || begins(*at, "## ")) return false;
        if (**at == '\n') {
            ++*at;
        } else if (begins(*at, "    qkv ")) {
            read_command(at, part);
            return true;
        } else if (begins(*at, "    ")) {
            *at = next_line(*at);
        } else if (!skip_markup(at)) {
            read_words(at, part);
            return true;
        }
    }
}
