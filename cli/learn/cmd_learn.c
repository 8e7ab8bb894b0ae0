/* `qkv learn`: shows the tutorial step by step, and runs its commands. */
#include "learn/learn.h"

#include "common/conflicts.h"
#include "common/number.h"
#include "core/os.h"

#include <string.h>

struct learn_options {
    struct cli_common common;
    bool answer;
    const char *pictures;
};

/* ---- The list -------------------------------------------------------------------------------- */

static int list_steps(const struct learn_options *options) {
    struct term term;
    char title[100];
    term_init(&term, stdout, &options->common);
    term_styled(&term, STYLE_BOLD, "Twelve steps");
    term_newline(&term);
    for (int step = 1; step <= LEARN_STEPS && learn_step(step, title); step++)
        fprintf(term.out, "%3d  %s\n", step, title);
    term_newline(&term);
    term_wrap(&term, "qkv learn 1 shows the first one: its commands are run, and you see what they "
                     "print. --answer has the answer to its question, --pictures DIR draws its "
                     "picture. It is docs/tutorial.md of the source.");
    return EXIT_OK;
}

/* ---- A step ---------------------------------------------------------------------------------- */

static void print_words(struct term *term, const char *text) {
    char *const spelt = term->unicode ? NULL : term_spell_out(text);
    term_wrap(term, spelt ? spelt : text);
    term_newline(term);
    free(spelt);
}

static void print_command(struct term *term, const char *text) {
    term_style(term, STYLE_ACCENT);
    fprintf(term->out, "$ %s", text);
    term_style(term, STYLE_NONE);
    term_newline(term);
}

static int show_picture(const struct learn_options *options, struct term *term, const char *text) {
    print_command(term, text);
    if (options->pictures) return learn_run(&options->common, text, options->pictures);
    return EXIT_OK;
}

static int show_part(const struct learn_options *options, struct term *term, int step,
                     const struct learn_part *part) {
    char hint[120];
    switch (part->kind) {
    case LEARN_WORDS: print_words(term, part->text); break;
    case LEARN_QUESTION:
        term_styled(term, STYLE_BOLD, "Question");
        term_newline(term);
        print_words(term, part->text);
        break;
    case LEARN_ANSWER:
        if (!options->answer) {
            snprintf(hint, sizeof hint, "(qkv learn %d --answer has the answer.)", step);
            term_wrap_styled(term, STYLE_DIM, hint);
            term_newline(term);
            break;
        }
        term_styled(term, STYLE_BOLD, "Answer");
        term_newline(term);
        print_words(term, part->text);
        break;
    case LEARN_PICTURE: return show_picture(options, term, part->text);
    case LEARN_COMMAND: {
        print_command(term, part->text);
        const int code = learn_run(&options->common, part->text, NULL);
        term_newline(term);
        return code;
    }
    }
    return EXIT_OK;
}

static int show_step(const struct learn_options *options, int step) {
    struct term term;
    struct learn_part part;
    char title[100], heading[140];
    const char *at = learn_step(step, title);
    int code = EXIT_OK;
    if (!at) return cli_fail("the tutorial has no step %d", step);
    term_init(&term, stdout, &options->common);
    snprintf(heading, sizeof heading, "%d. %s", step, title);
    term_styled(&term, STYLE_BOLD, heading);
    term_newline(&term);
    term_newline(&term);
    while (code == EXIT_OK && learn_next(&at, &part)) code = show_part(options, &term, step, &part);
    if (code == EXIT_OK && step < LEARN_STEPS) {
        term_newline(&term);
        snprintf(heading, sizeof heading, "Next: qkv learn %d", step + 1);
        term_wrap_styled(&term, STYLE_DIM, heading);
    }
    return code;
}

/* ---------------------------------------------------------------------------------------------- */

static int learn(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct learn_options *options = data;
    qkvi_os_about folder;
    int64_t step = 0;
    if (n_words > 0 && strcmp(words[0], "all") != 0 && !number_int(words[0], 1, LEARN_STEPS, &step))
        return cli_usage(command, "STEP: '%s' is neither a number from 1 to %d nor 'all'", words[0],
                         LEARN_STEPS);
    if (n_words == 0 && (options->answer || options->pictures))
        return cli_usage(command, "%s goes with a STEP",
                         options->answer ? "--answer" : "--pictures");
    if (options->pictures &&
        (qkvi_os_examine(options->pictures, &folder) != 0 || folder.kind != QKVI_OS_FOLDER))
        return cli_usage(command, "--pictures: '%s' is no folder", options->pictures);
    if (n_words == 0) return list_steps(options);
    if (step > 0) return show_step(options, (int)step);
    int code = EXIT_OK;
    for (int i = 1; i <= LEARN_STEPS && code == EXIT_OK; i++) {
        if (i > 1) putchar('\n');
        code = show_step(options, i);
    }
    return code;
}

#define OPTIONS struct learn_options

static const struct cli_option learn_table[] = {
    OPTION_FLAG("--answer", answer),
    OPTION_FILE("--pictures", "DIR", pictures, "/"),
};

const struct cli_command cmd_learn = {
    .name = "learn",
    .summary = "attention in twelve steps, whose commands run as you read",
    .words = "[STEP]",
    .max_words = 1,
    .suggest = "1|2|3|4|5|6|7|8|9|10|11|12|all",
    .takes = TAKES_TERM | TAKES_QUIET,
    COMMAND_OPTIONS(learn_table),
    .run = learn,
};
