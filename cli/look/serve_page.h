/* A page of `look` in memory: the file that it writes is a pipe, which a thread reads. */
#ifndef QKV_CLI_LOOK_SERVE_PAGE_H
#define QKV_CLI_LOOK_SERVE_PAGE_H

#include <pthread.h>

#include "common/input.h"

enum { PIPE_ROOM = 1024 };

struct page_pipe {
    char folder[PIPE_ROOM], path[PIPE_ROOM + 16]; /* "FOLDER/page.html" */
    int reads, writes;
    pthread_t thread;
    char *bytes; /* what came through */
    size_t n, room;
    bool failed; /* there was no memory for all of it */
};

/* Makes the pipe, in a new folder that only this user may enter. An exit code. */
int page_pipe_make(struct page_pipe *pipe);
void page_pipe_remove(struct page_pipe *pipe);

/* Between the two, what opens the path for writing writes into memory. */
qkv_status page_pipe_begin(struct page_pipe *pipe, qkv_error *error);
qkv_status page_pipe_end(struct page_pipe *pipe, qkv_error *error);

#endif
