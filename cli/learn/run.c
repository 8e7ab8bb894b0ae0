/*
 * Runs the commands of steps: split into words as by a shell, with double quotes, and run by this
 * program.
 */
#include "learn/learn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/os.h"
#include "common/shared.h"
#include "core/os.h"

enum { MOST_WORDS = 40, ROOM = 4200 };

/* Words of a command, in one room. */
struct words {
    char room[ROOM];
    size_t n_room;
    char *list[MOST_WORDS + 1];
    int n;
};

static bool add(struct words *words, const char *bytes, size_t n) {
    if (words->n == MOST_WORDS || words->n_room + n + 1 > ROOM) return false;
    char *const word = words->room + words->n_room;
    memcpy(word, bytes, n);
    word[n] = '\0';
    words->n_room += n + 1;
    words->list[words->n++] = word;
    words->list[words->n] = NULL;
    return true;
}

static bool split(struct words *words, const char *line) {
    for (;;) {
        line += strspn(line, " ");
        if (*line == '\0') return true;
        const bool quoted = *line == '"';
        line += quoted;
        const size_t n = strcspn(line, quoted ? "\"" : " ");
        if (!add(words, line, n)) return false;
        line += n + (quoted && line[n] == '"');
    }
}

/* The file of -o, in a folder. */
static bool move_file(struct words *words, const char *folder) {
    char path[ROOM];
    for (int i = 0; i + 1 < words->n; i++) {
        if (strcmp(words->list[i], "-o") != 0) continue;
        const int n = snprintf(path, sizeof path, "%s/%s", folder, words->list[i + 1]);
        if (n < 0 || (size_t)n >= sizeof path || words->n_room + (size_t)n + 1 > ROOM) return false;
        words->list[i + 1] = words->room + words->n_room;
        memcpy(words->list[i + 1], path, (size_t)n + 1);
        words->n_room += (size_t)n + 1;
    }
    return true;
}

/* How this command was told to draw, the other one draws, too. */
static bool pass_on(struct words *words, const struct cli_common *common) {
    static const char *const colors[] = { "auto", "always", "never" };
    const struct cli_command *const command = cli_command_find(words->list[1]);
    if (!command || !(command->takes & TAKES_TERM)) return true;
    if (common->ascii && !add(words, "--ascii", 7)) return false;
    if (common->color.set &&
        !(add(words, "--color", 7) &&
          add(words, colors[common->color.value], strlen(colors[common->color.value]))))
        return false;
    const char *const theme = common->theme.value == QKV_THEME_DARK ? "dark" : "light";
    return !common->theme.set || (add(words, "--theme", 7) && add(words, theme, strlen(theme)));
}

/* A file or folder of the command that comes with the tool, but is not here; NULL: all are. */
static const char *missing(const struct words *words) {
    char room[SHARED_ROOM];
    for (int i = 2; i < words->n; i++) {
        const char *const word = words->list[i];
        qkvi_os_about about;
        if (shared_is_ours(word) && qkvi_os_examine(word, &about) != 0 &&
            shared_path(word, room) == word)
            return word;
    }
    return NULL;
}

/* The step goes on without it: the page has what the command prints. */
static void say_missing(const struct cli_common *common, const char *name) {
    struct term term;
    char text[400];
    term_init(&term, stdout, common);
    snprintf(text, sizeof text,
             "(Not run: there is no %s here. It comes with an installed qkv, and is in the source; "
             "docs/tutorial.md shows what the command prints.)",
             name);
    term_wrap_styled(&term, STYLE_DIM, text);
}

int learn_run(const struct cli_common *common, const char *line, const char *folder) {
    static struct words words;
    int code, signal;
    words.n = 0;
    words.n_room = 0;
    if (!split(&words, line) || words.n < 2 || (folder && !move_file(&words, folder)) ||
        !pass_on(&words, common) || (common->quiet && !add(&words, "--quiet", 7)))
        return cli_fail("%s: too long", line);
    const char *const lacks = missing(&words);
    if (lacks) say_missing(common, lacks);
    if (!cli_flush()) return EXIT_FAILED;
    if (lacks) return EXIT_OK;
    if (os_run_self(words.list, &code, &signal) != 0)
        return cli_fail("%s: %s", line, strerror(errno));
    if (signal) return cli_fail("%s: ended by signal %d", line, signal);
    if (!code) return EXIT_OK;
    putchar('\n'); /* fails if the reader has gone, which is why the command failed, and no error */
    return cli_flush() ? cli_fail("%s: exit code %d", line, code) : EXIT_FAILED;
}
