/*
 * What the check asks of the operating system: pages without access around arrays, and a process of
 * its own for each case. On Windows a case has a thread of its own. WASI has neither: there
 * canaries alone find what is written beside an array, and the engine ends the program at an access
 * outside of its memory. Only os_*.c know systems.
 */
#ifndef CHECK_SYSTEM_H
#define CHECK_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>

/* Memory of whole pages between two without access; NULL: errno says why. */
size_t system_page_bytes(void);
void *system_pages(size_t bytes);
void system_pages_free(void *pages, size_t bytes);
bool system_pages_read_only(void *pages, size_t bytes);

/* Zeros that a child shares with its parent; NULL: no memory. */
void *system_shared(size_t bytes);
void system_shared_free(void *shared, size_t bytes);

/* Runs a function in a child. NULL if it returned, else what became of it. */
const char *system_in_child(void (*run)(void *argument), void *argument);

#endif
