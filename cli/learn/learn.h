/*
 * `qkv learn`: the steps of docs/tutorial.md, which is embedded unchanged.
 *
 *     ## 3. TITLE        a step; a heading without a number ends it
 *     words              a paragraph of Markdown, whose marks are removed
 *         qkv ...        a command that is shown and run; with -o FILE it makes the step's picture
 *         ...            below a command: its output when the page was written, not shown
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

/* The text of a step after its heading, which is copied to title. NULL: there is no such step. */
const char *learn_step(int step, char title[100]);
/* Reads the next part at *at, and moves *at; false at the end of the step. */
bool learn_next(const char **at, struct learn_part *part);

/*
 * Runs a command line of the tool, "qkv explain ...", in a new process of this program. folder: of
 * the file of -o; NULL: the path is used as it is. Returns an exit code (run.c).
 */
int learn_run(const struct cli_common *common, const char *line, const char *folder);

#endif
