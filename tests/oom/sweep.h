/*
 * The sweep: a public call is made again and again while its n-th allocation fails, n = 0, 1, …,
 * until it succeeds undisturbed; once with only that one failing, once with all from it on. The
 * same with reading and writing (fail_io.h) for calls that do it. Each time
 *
 *     the status is MEMORY (IO), the message says more than nothing, results are NULL,
 *     no block and no descriptor is lost, and files are as they were before the call (or, where
 *     the last flush of a folder failed, all as after a success);
 *     or the call succeeds regardless, with the bits of an undisturbed call;
 *     and the same call made again, undisturbed, succeeds with those bits.
 */
#ifndef OOM_SWEEP_H
#define OOM_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qkv/qkv.h>

enum {
    OOM_IO = 1u << 0, /* sweep reading and writing, too */
    OOM_SEVERAL =
        1u << 1,        /* writes several files: each is whole, but some may be old, others new */
    OOM_SLOW = 1u << 2, /* made again after every 7th site only */
    /* Libraries fill caches: blocks are lost only if they are lost each time. */
    OOM_CACHES = 1u << 3,
    /* cairo loses blocks of its own when it cannot make or finish an SVG or a PDF. */
    OOM_LEAKY = 1u << 4
};

/*
 * One call, in four parts that share static variables. Only make is disturbed; it should hold
 * nothing but the call.
 */
typedef struct oom_call {
    const char *function; /* its name in the header */
    const char *what;     /* tells two calls of one function apart */
    void (*before)(void); /* nullable */
    qkv_status (*make)(qkv_error *error);
    uint64_t (*take)(void); /* after a success: a hash of the results */
    void (*drop)(void);     /* nullable: frees results and what before made */
    unsigned flags;
    /*
     * 0: every site. For calls of many allocations and some milliseconds: the first `dense` sites
     * and as many others, drawn with the seed that is printed.
     */
    int64_t dense;
} oom_call;

/* Calls that share what setup makes. */
typedef struct oom_group {
    const char *name;
    const oom_call *calls;
    size_t n_calls;
    void (*setup)(void);
    void (*teardown)(void);
} oom_group;

/* Makes the sweeps of one call; fails the running cmocka test at the first thing that is wrong. */
void oom_sweep(const oom_call *call, uint64_t seed);

/* ---- For the parts of a call ----------------------------------------------------------------- */

extern char oom_folder[]; /* an empty folder of this process; what is left in it is removed */

/* FNV-1a: oom_hash(oom_hash(0, …), …) */
uint64_t oom_hash(uint64_t hash, const void *bytes, size_t n);
uint64_t oom_hash_text(uint64_t hash, const char *text); /* NULL is allowed */
/* A file's name and bytes, or 0 if there is none. */
uint64_t oom_hash_file(const char *path);

/* Everything in oom_folder: a hash of name and bytes for each. */
typedef struct oom_files {
    int n;
    uint64_t hashes[64];
} oom_files;

extern const char *oom_unwatched; /* names of files that are not listed, as one text */

oom_files oom_list_files(void);
bool oom_has_file(const oom_files *files, uint64_t hash);
bool oom_same_files(const oom_files *a, const oom_files *b);
/* A file of n bytes, or nothing at path for bytes = NULL; folders and their files are removed. */
void oom_put(const char *path, const void *bytes, size_t n);
/* path within oom_folder */
void oom_path(char path[256], const char *name);
/* Stops the program unless what is so. */
void oom_claim(bool is_so, const char *what);
/* Stops the program unless status is QKV_OK: for setups. */
void oom_must(qkv_status status, const qkv_error *error);

#endif
