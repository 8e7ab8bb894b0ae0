/*
 * The help of commands and options, from the texts beside this file (cli/texts.S embeds them):
 *
 *     # lookup             a command, then what it does: paragraphs, and lines that begin with
 *     ...                  spaces, which stay as they are
 *     ## --metric          one of its options; those of several commands are in common.txt
 *     ...
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <qkv/heads.h>

#include "help/formats.h"

extern const char help_texts[];

enum { MOST = 8192 };

static const char *next_line(const char *line) {
    line += strcspn(line, "\n");
    return *line ? line + 1 : line;
}

/*
 * What stands below the line "# name" (or "## name", before the next "# "); NULL if it is not
 * there.
 */
static const char *below(const char *text, const char *sign, const char *name) {
    const size_t n_sign = strlen(sign), n_name = strlen(name);
    for (; *text; text = next_line(text)) {
        if (strncmp(text, sign, n_sign) == 0 && strncmp(text + n_sign, name, n_name) == 0 &&
            text[n_sign + n_name] == '\n')
            return next_line(text);
        if (n_sign == 3 && strncmp(text, "# ", 2) == 0) return NULL;
    }
    return NULL;
}

/* The text up to the next heading. Within a paragraph, the end of a line is a space. */
static const char *paragraphs(const char *from) {
    static char text[MOST];
    size_t n = 0;
    from += strspn(from, "\n");
    for (const char *at = from;
         *at && !(*at == '#' && (at == from || at[-1] == '\n')) && n < sizeof text - 1; at++) {
        const bool joins = *at == '\n' && at > from && at[-1] != '\n' && !strchr("\n #", at[1]);
        text[n++] = joins ? ' ' : *at;
    }
    while (n > 0 && text[n - 1] == '\n') n--;
    text[n] = '\0';
    return text;
}

const char *help_details(const struct cli_command *command) {
    const char *text = below(help_texts, "# ", command->name);
    return text ? paragraphs(text) : "";
}

/* The columns of the table of heads behind the text of --sort: "entropy (H), ...". */
static const char *with_numbers(const char *text) {
    static char whole[MOST];
    const qkv_head_number *number;
    int used = snprintf(whole, sizeof whole, "%s: head, label", text);
    for (int i = 0; (number = qkv_head_number_at(i)); i++)
        if (number->title)
            used += snprintf(whole + used, sizeof whole - (size_t)used, ", %s (%s)", number->name,
                             number->title);
    return whole;
}

const char *help_of(const struct cli_command *command, const struct cli_option *option) {
    const char *const names[] = { command->name, "common" };
    for (int i = 0; i < CLI_COUNT(names); i++) {
        const char *text = below(help_texts, "# ", names[i]);
        if (text) text = below(text, "## ", option->name);
        if (!text) continue;
        text = paragraphs(text);
        const bool numbers = option->suggest && strcmp(option->suggest, "@numbers") == 0;
        return numbers ? with_numbers(text) : text;
    }
    return "";
}
