/* Files that are installed with the tool: what the examples in help and tutorial read. */
#ifndef QKV_CLI_COMMON_SHARED_H
#define QKV_CLI_COMMON_SHARED_H

#include <stdbool.h>
#include <stddef.h>

enum { SHARED_ROOM = 4096 };

/*
 * Finds a file or folder by a relative name, in this order: in the working directory; in
 * PREFIX/share/qkv, of a tool in PREFIX/bin; in the source tree, of a tool that was built within it
 * (there only examples/… and models/…). Returns the name itself if it is nowhere. So examples run
 * anywhere, and a user's own file comes first.
 */
const char *shared_path(const char *name, char room[SHARED_ROOM]);
/* The same in memory that stays until the tool ends; NULL for NULL. */
const char *shared_copy(const char *name);
/* Is it a name in the folders that are installed with the tool: examples/… or models/…? */
bool shared_is_ours(const char *name);

#endif
