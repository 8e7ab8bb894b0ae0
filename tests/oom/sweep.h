/*
 * The sweep: a public call is repeated with its n-th allocation failing, n = 0, 1, …, until there
 * is no n-th one; once with only that allocation failing, once with it and all after it. The same
 * with reading and writing (fail_io.h) for calls that do it. Each time
 *
 *     the status is MEMORY (or IO), there is a message, results are NULL, no block and no file
 *     descriptor is lost, and files are as they were before the call (or, if the last flush of a
 *     folder failed, all as after a success);
 *     or the call succeeds nevertheless, with the bits of an undisturbed call;
 *     and the same call made again without failures succeeds with those bits.
 */
#ifndef OOM_SWEEP_H
#define OOM_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <qkv/qkv.h>

enum {
    OOM_IO = 1u << 0, /* sweep reading and writing, too */
    /* Writes several files: each must be complete, but some may be old and others new. */
    OOM_SEVERAL = 1u << 1,
    OOM_SLOW = 1u << 2, /* the call is made again only after every 7th n */
    /* Other libraries fill caches: a block counts as lost only if one is lost each time. */
    OOM_CACHES = 1u << 3,
    /* cairo itself loses blocks when it cannot make or finish an SVG or a PDF. */
    OOM_LEAKY = 1u << 4
};

/*
 * One call, in four functions that share static variables. Only make is disturbed; it should have
 * nothing but the call.
 */
typedef struct oom_call {
    const char *function; /* its name in the header */
    const char *what;     /* distinguishes calls of one function */
    void (*before)(void); /* nullable */
    qkv_status (*make)(qkv_error *error);
    uint64_t (*take)(void); /* after a success: a hash of the results */
    void (*drop)(void);     /* nullable: frees results and what before made */
    unsigned flags;
    /*
     * 0: every n. Else, for slow calls with many allocations: the first `dense` n, and as many
     * others, drawn with the seed that is printed.
     */
    int64_t dense;
} oom_call;

/* Calls with a common setup. */
typedef struct oom_group {
    const char *name;
    const oom_call *calls;
    size_t n_calls;
    void (*setup)(void);
    void (*teardown)(void);
} oom_group;

/* Makes the sweeps of one call; fails the running cmocka test at the first mistake. */
void oom_sweep(const oom_call *call, uint64_t seed);

/* ---- For the parts of a call ----------------------------------------------------------------- */

extern char oom_folder[]; /* an empty folder of this process; files left in it are removed */

/* FNV-1a: oom_hash(oom_hash(0, …), …) */
uint64_t oom_hash(uint64_t hash, const void *bytes, size_t n);
uint64_t oom_hash_text(uint64_t hash, const char *text); /* NULL is allowed */
/* A hash of a file's name and bytes; 0 if there is no file. */
uint64_t oom_hash_file(const char *path);

/* The files in oom_folder: a hash of name and bytes of each. */
typedef struct oom_files {
    int n;
    uint64_t hashes[64];
} oom_files;

extern const char *oom_unwatched; /* names of files that are not listed, in one string */

oom_files oom_list_files(void);
bool oom_has_file(const oom_files *files, uint64_t hash);
bool oom_same_files(const oom_files *a, const oom_files *b);
/* Writes a file of n bytes; bytes NULL: removes the file or folder at path. */
void oom_put(const char *path, const void *bytes, size_t n);
/* The path of a name in oom_folder. */
void oom_path(char path[256], const char *name);
/* Stops the program with `what` unless is_so. */
void oom_claim(bool is_so, const char *what);
/* Stops the program unless status is QKV_OK: for setups. */
void oom_must(qkv_status status, const qkv_error *error);

#endif
