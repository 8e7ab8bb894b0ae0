/** Rules of labels with their numbers looked up once, for those who label many heads. */
#ifndef QKVI_INSPECT_LABELS_H
#define QKVI_INSPECT_LABELS_H

enum { QKVI_MOST_RULES = 16 };

/** Indices of numbers. */
typedef struct qkvi_rule_places {
    int entropy, n_keys;
    int number[QKVI_MOST_RULES], queries[QKVI_MOST_RULES];
} qkvi_rule_places;

void qkvi_rule_places_find(qkvi_rule_places *places);

/** The index of the first rule that holds; -1: none does. */
int qkvi_rule_that_holds(const qkvi_rule_places *places, const double *numbers);

#endif
