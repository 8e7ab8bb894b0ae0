/* What the table of heads on a terminal and the lines below it share. */
#ifndef QKV_CLI_HEADS_TEXT_H
#define QKV_CLI_HEADS_TEXT_H

#include "heads/heads.h"

/* What is shown, in the order of the columns. */
struct layout {
    bool shown[MAX_COLUMNS];
    double largest[MAX_COLUMNS]; /* of the rows: what has the full colour */
    bool empty[MAX_COLUMNS];     /* no row has a number */
    int label_width, n_hidden;
};

/* What the columns are, the rules of the labels that occur, and what probes were run. */
void heads_legend(struct term *term, const struct heads *heads, const struct layout *layout);

#endif
