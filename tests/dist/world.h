/*
 * Ranks without MPI, to test what runs on a transport: as threads of this process, where a
 * sanitizer sees who touches what, and as processes of their own, joined by sockets.
 *
 * Buffers are handed over as MPI may do it: a message is copied when both sides have posted it, at
 * any time until the wait.
 */
#ifndef QKV_TESTS_WORLD_H
#define QKV_TESTS_WORLD_H

#include "dist/transport.h"

/* What a rank does; returns 0, or what is wrong is already written to stderr. */
typedef int rank_main(qkvi_transport *t, void *user);

/* Both return how many ranks did not return 0. A process that dies is one of them. */
int world_of_threads(int size, rank_main *main, void *user);
int world_of_processes(int size, rank_main *main, void *user);

typedef int world_function(int size, rank_main *main, void *user);

/* Collectives that are made of messages: all ranks, root after root. */
qkv_status world_ibcast(qkvi_transport *t, void *data, size_t bytes, int root,
                        qkvi_request *request, qkv_error *error);
qkv_status world_allgather(qkvi_transport *t, const void *mine, size_t bytes, void *all,
                           qkv_error *error);
/* Whether each of n requests is over: of both worlds, word[0] counts what is under way. */
bool world_all_done(const qkvi_request *requests, int n);

#endif
