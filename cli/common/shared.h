/* Files that come with the tool: tables, texts and models of the examples in help and tutorial. */
#ifndef QKV_CLI_COMMON_SHARED_H
#define QKV_CLI_COMMON_SHARED_H

#include <stdbool.h>
#include <stddef.h>

enum { SHARED_ROOM = 4096 };

/*
 * A file or folder by a relative name that is not there: the one of that name in PREFIX/share/qkv
 * beside the tool's PREFIX/bin, or of a tool that lies in its source (build/release/qkv) the one
 * there, if it is there. Otherwise the name as it is. So examples run anywhere, and what a user has
 * comes first.
 */
const char *shared_path(const char *name, char room[SHARED_ROOM]);
/* The same in new memory, for as long as the tool runs; NULL of NULL. */
const char *shared_copy(const char *name);
/* Is it the name of something that comes with the tool: examples/… or models/…? */
bool shared_is_ours(const char *name);

#endif
