/*
 * Ranks without MPI, for tests of code that uses a transport: threads of this process, in which
 * ThreadSanitizer finds races, or processes that are connected by sockets.
 *
 * Messages are copied as MPI may do it: at any time from when both sides have posted them until the
 * wait.
 */
#ifndef QKV_TESTS_WORLD_H
#define QKV_TESTS_WORLD_H

#include "dist/transport.h"

/* What a rank does. Returns 0; otherwise it has printed what is wrong. */
typedef int rank_main(qkvi_transport *t, void *user);

/* Both return how many ranks did not return 0. A process that dies is one of them. */
int world_of_threads(int size, rank_main *main, void *user);
int world_of_processes(int size, rank_main *main, void *user);

typedef int world_function(int size, rank_main *main, void *user);

/* Collectives of both worlds, made of messages. */
qkv_status world_ibcast(qkvi_transport *t, void *data, size_t bytes, int root,
                        qkvi_request *request, qkv_error *error);
qkv_status world_allgather(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                           qkv_error *error);
/* Are n requests complete? In both worlds word[0] counts messages that are not. */
bool world_all_done(const qkvi_request *requests, int n);

#endif
