/* Numbers of the command line and of the environment. */
#ifndef QKV_CLI_COMMON_NUMBER_H
#define QKV_CLI_COMMON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The whole text must be the number: no spaces, no hexadecimal, no "inf". False if it is not, or is
 * out of range.
 */
bool number_int(const char *text, int64_t min, int64_t max, int64_t *value);
bool number_real(const char *text, double *value);

/*
 * Reads numbers separated by commas, "3,-1,7", into a new array of *n; NULL with *n = 0 if the text
 * is no such list.
 */
int64_t *number_list(const char *text, int64_t min, int64_t max, int *n);

/* Stable ascending sort by key, NaN last. */
struct sort_key {
    double key;
    int64_t index;
};

void sort_keys(struct sort_key *list, int64_t n);

#endif
