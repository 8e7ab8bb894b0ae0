/** Which name was meant. */
#ifndef QKVI_STORE_NEAREST_H
#define QKVI_STORE_NEAREST_H

enum { QKVI_NEAREST_BYTES = 160 };

/** Levenshtein's distance; INT32_MAX if a name is longer than QKVI_NEAREST_BYTES. */
int qkvi_edit_distance(const char *a, const char *b);

#endif
