/*
 * `qkv learn`: the steps of docs/tutorial.md, which is embedded in the tool as it is.
 *
 *     ## 3. TITLE        a step; a heading without a number ends it
 *     words              a paragraph, of Markdown: its marks are taken off
 *         qkv ...        a command that is shown and run; with -o FILE it makes the step's picture
 *         ...            below a command, what it printed when the page was written: not shown
 *     **Question.** ...  paragraphs of the question, the answer and the picture
 */
#ifndef QKV_CLI_LEARN_H
#define QKV_CLI_LEARN_H

#include "common/job.h"
#include "common/term.h"

enum { LEARN_STEPS = 12 };

enum learn_kind { LEARN_WORDS, LEARN_COMMAND, LEARN_PICTURE, LEARN_QUESTION, LEARN_ANSWER };

/* A part of a step: words in one line without marks, or a command as it is typed. */
struct learn_part {
    enum learn_kind kind;
    char text[2000];
};

/*
 * Where a step begins in the page, behind its heading; title is a copy. NULL: there is no such
 * step.
 */
const char *learn_step(int step, char title[100]);
/* The next part at *at; false: the step ends. */
bool learn_next(const char **at, struct learn_part *part);

/*
 * Runs a command of the tool, "qkv explain ...", with this program, which inherits standard output.
 * folder: where the file of -o goes; NULL: as it is written. An exit code (run.c).
 */
int learn_run(const struct cli_common *common, const char *line, const char *folder);

#endif
