/* A page in memory: see serve_page.h. */
#include "look/serve_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int page_pipe_make(struct page_pipe *pipe) {
    const char *const given = getenv("TMPDIR"), *const place = given && *given ? given : "/tmp";
    pipe->reads = pipe->writes = -1;
    const int n = snprintf(pipe->folder, sizeof pipe->folder, "%s/qkv-XXXXXX", place);
    const bool fits = n > 0 && (size_t)n < sizeof pipe->folder;
    if (!fits) errno = ENAMETOOLONG;
    if (!fits || !mkdtemp(pipe->folder)) {
        *pipe->folder = '\0';
        return cli_fail("--serve: %s: cannot make a folder there: %s", place, strerror(errno));
    }
    snprintf(pipe->path, sizeof pipe->path, "%s/page.html", pipe->folder);
    if (mkfifo(pipe->path, 0600) == 0) return EXIT_OK;
    const int code = cli_fail("--serve: %s: cannot make a pipe: %s", pipe->path, strerror(errno));
    page_pipe_remove(pipe);
    return code;
}

void page_pipe_remove(struct page_pipe *pipe) {
    free(pipe->bytes);
    pipe->bytes = NULL;
    if (!*pipe->folder) return;
    unlink(pipe->path);
    rmdir(pipe->folder);
    *pipe->folder = '\0';
}

/* False: no memory. What does not fit is read all the same, so that the writer comes to an end. */
static bool make_room(struct page_pipe *pipe) {
    enum { PART = 1 << 16 };
    if (pipe->room - pipe->n >= PART) return true;
    const size_t room = 2 * pipe->room + 2 * PART;
    char *const more = realloc(pipe->bytes, room);
    if (!more) return false;
    pipe->bytes = more;
    pipe->room = room;
    return true;
}

static void *read_all(void *data) {
    struct page_pipe *const pipe = data;
    char dropped[4096];
    for (;;) {
        pipe->failed = pipe->failed || !make_room(pipe);
        char *const at = pipe->failed ? dropped : pipe->bytes + pipe->n;
        const ssize_t n =
            read(pipe->reads, at, pipe->failed ? sizeof dropped : pipe->room - pipe->n);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        if (!pipe->failed) pipe->n += (size_t)n;
    }
    return NULL;
}

static void close_both(struct page_pipe *pipe) {
    if (pipe->reads >= 0) close(pipe->reads);
    if (pipe->writes >= 0) close(pipe->writes);
    pipe->reads = pipe->writes = -1;
}

/* A reader is there before the first writer, and a writer before the thread reads an end. */
qkv_status page_pipe_begin(struct page_pipe *pipe, qkv_error *error) {
    pipe->n = pipe->room = 0;
    free(pipe->bytes);
    pipe->bytes = NULL;
    pipe->failed = false;
    pipe->reads = open(pipe->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (pipe->reads >= 0) pipe->writes = open(pipe->path, O_WRONLY | O_CLOEXEC);
    if (pipe->writes >= 0 && fcntl(pipe->reads, F_SETFL, 0) == 0 &&
        pthread_create(&pipe->thread, NULL, read_all, pipe) == 0)
        return QKV_OK;
    close_both(pipe);
    return text_error(error, QKV_ERR_IO, "%s: cannot be read", pipe->path);
}

qkv_status page_pipe_end(struct page_pipe *pipe, qkv_error *error) {
    close(pipe->writes);
    pipe->writes = -1;
    pthread_join(pipe->thread, NULL);
    close_both(pipe);
    return pipe->failed ? text_no_memory(error) : QKV_OK;
}
