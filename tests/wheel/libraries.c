/*
 * The libraries of a wheel as the package for Python uses them: loaded by their paths, functions
 * found by name. It looks up each name of standard input, computes, and prints what other systems
 * are to compute, too, bit for bit: attention by the best instruction set and by scalar code, and
 * the hidden states of the model.
 *
 *     libraries LIBQKV LIBQKVMODEL MODEL <NAMES
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/model.h>
#include <qkv/qkv.h>

#if defined(_WIN32)
#include <windows.h>

#include <shellapi.h>
/* As ctypes.CDLL does: a library is also looked for beside the one that needs it. */
static void *load(const char *path) {
    wchar_t name[MAX_PATH], whole[MAX_PATH];
    if (!MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, path, -1, name, MAX_PATH) ||
        !GetFullPathNameW(name, MAX_PATH, whole, NULL))
        return NULL;
    return LoadLibraryExW(whole, NULL,
                          LOAD_LIBRARY_SEARCH_DEFAULT_DIRS | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR);
}
static void *find(void *library, const char *name) { return (void *)GetProcAddress(library, name); }
static void print_reason(const char *path) {
    fprintf(stderr, "%s: error %lu\n", path, (unsigned long)GetLastError());
}
/* In UTF-8: those of main are in the code page of the system. */
static void take_words(int n_args, char **args) {
    int n = 0;
    wchar_t **const words = CommandLineToArgvW(GetCommandLineW(), &n);
    for (int i = 0; words && i < n && i < n_args; i++) {
        const int room = 3 * (int)wcslen(words[i]) + 1;
        args[i] = malloc((size_t)room);
        if (!args[i] || !WideCharToMultiByte(CP_UTF8, 0, words[i], -1, args[i], room, NULL, NULL))
            exit(1);
    }
}
#else
#include <dlfcn.h>
static void *load(const char *path) { return dlopen(path, RTLD_NOW | RTLD_GLOBAL); }
static void *find(void *library, const char *name) { return dlsym(library, name); }
static void take_words(int n_args, char **args) { (void)n_args, (void)args; }
static void print_reason(const char *path) { fprintf(stderr, "%s: %s\n", path, dlerror()); }
#endif

static void *libraries[2];

static void *lookup(const char *name) {
    void *const found = find(libraries[0], name);
    return found ? found : find(libraries[1], name);
}
static void *needed(const char *name) {
    void *const found = lookup(name);
    if (found) return found;
    fprintf(stderr, "no library has %s\n", name);
    exit(1);
}
/* A function of the libraries, with the type that the headers give it. */
#define CALL(name) ((__typeof__(name) *)needed(#name))

static void check(qkv_status status, const char *message) {
    if (status == QKV_OK) return;
    fprintf(stderr, "%s\n", message);
    exit(1);
}

/* FNV-1a of bytes. */
static uint64_t digest(const void *bytes, size_t n) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

/* Numbers in [-1, 1), the same everywhere. */
static void fill(float *x, size_t n, uint32_t seed) {
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(int32_t)seed * 0x1p-31f;
    }
}

enum { HEADS = 3, LEN = 70, DIM = 40, N = HEADS * LEN * DIM };

static void attend(const char *isa) {
    static float q[N], k[N], v[N], o[N];
    qkv_ctx_options options = qkv_ctx_options_init();
    qkv_error error;
    qkv_ctx *ctx = NULL;
    options.isa = isa;
    options.n_threads = 2;
    check(CALL(qkv_ctx_create)(&options, &ctx, &error), error.message);
    fill(q, N, 1);
    fill(k, N, 2);
    fill(v, N, 3);
    const qkv_status status =
        CALL(qkv_attention)(ctx, 1, HEADS, LEN, LEN, DIM, QKV_CAUSAL, q, k, v, o);
    check(status, CALL(qkv_ctx_message)(ctx));
    printf("attention %s: %016" PRIx64 "\n", CALL(qkv_ctx_isa)(ctx), digest(o, sizeof o));
    CALL(qkv_ctx_free)(ctx);
}

static void run_model(const char *folder) {
    static const char text[] = "I was watching the [MASK] when it opened.";
    qkv_error error;
    qkv_ctx *ctx = NULL;
    qkv_model *model = NULL;
    qkv_encoding *tokens = NULL;
    qkv_run *run = NULL;
    check(CALL(qkv_ctx_create)(NULL, &ctx, &error), error.message);
    check(CALL(qkv_model_open)(folder, NULL, &model, &error), error.message);
    check(CALL(qkv_tokenizer_encode)(CALL(qkv_model_tokenizer)(model, QKV_SOURCE), text,
                                     sizeof text - 1, NULL, 0, &tokens, &error),
          error.message);
    check(CALL(qkv_model_run)(ctx, model, 1, (const qkv_encoding *const *)&tokens, 0, NULL, &run,
                              &error),
          error.message);
    const qkv_model_info *const info = CALL(qkv_model_get_info)(model);
    const int64_t hidden = info->hidden;
    const float *const states = CALL(qkv_run_hidden)(run, QKV_SELF, 0, info->n_layers);
    printf("model of %" PRId64 " channels, %" PRId64 " tokens: %016" PRIx64 "\n", hidden, tokens->n,
           digest(states, (size_t)(tokens->n * hidden) * sizeof *states));
    CALL(qkv_run_free)(run);
    CALL(qkv_encoding_free)(tokens);
    CALL(qkv_model_free)(model);
    CALL(qkv_ctx_free)(ctx);
}

/* The names, of which each ends a line; how many. */
static int find_all(void) {
    char name[200];
    int n = 0;
    for (; fgets(name, sizeof name, stdin); n++) {
        name[strcspn(name, "\r\n")] = '\0';
        needed(name);
    }
    return n;
}

int main(int n_args, char **args) {
    if (n_args != 4) return fprintf(stderr, "usage: libraries LIBQKV LIBQKVMODEL MODEL\n"), 2;
    take_words(n_args, args);
    for (int i = 0; i < 2; i++) {
        libraries[i] = load(args[1 + i]);
        if (!libraries[i]) return print_reason(args[1 + i]), 1;
    }
    printf("%d functions, version %s\n", find_all(), CALL(qkv_version)());
    attend(NULL);
    attend("scalar");
    run_model(args[3]);
    return 0;
}
