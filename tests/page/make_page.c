/*
 * Pages for the browser's tests:
 * make_page FOLDER NAME TOKENS DIM LAYERS HEADS [causal|scores|image]. Queries and keys are drawn
 * from a fixed seed, near enough to each other that weights are neither all alike nor all in one
 * key; lse is the library's. Beside FOLDER/NAME.html lie the first head's
 * NAME.q.npy, NAME.k.npy and, up to 512 tokens, NAME.eye.npy, with which `qkv attend` prints its
 * weights; with "scores" also what else makes scores: NAME.mask.npy, NAME.alibi.npy and
 * NAME.sink.npy. With "image" tokens are [CLS], four registers and the patches of a square image.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <qkv/files.h>
#include <qkv/page.h>

static const char *const words[] = { "the",
                                     "door",
                                     "##s",
                                     "opened",
                                     "</script><b>",
                                     "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
                                     "\xE6\xBC\xA2\xE5\xAD\x97",
                                     "\xF0\x9F\x98\x80",
                                     "\xD8\xB3\xD9\x84\xD8\xA7\xD9\x85",
                                     " space",
                                     "line\nbreak",
                                     "\xE2\x80\xA8",
                                     "&lt;",
                                     "\xFF",
                                     "a\"quote'",
                                     "." };
enum { N_WORDS = sizeof words / sizeof *words };

static uint64_t seed = 20261122;

/* About normal: the sum of four uniforms. */
static float normal(void) {
    float sum = 0;
    for (int i = 0; i < 4; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        sum += (float)(seed >> 40) / (float)(1 << 24) - 0.5f;
    }
    return 1.732f * sum;
}

/* Keys near the queries of one to three places before, so that there is something to see. */
static void draw_head(float *q, float *k, int64_t n, int64_t dim, int64_t head) {
    for (int64_t i = 0; i < n * dim; i++) q[i] = normal();
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < dim; c++)
            k[j * dim + c] = 0.9f * normal() + 0.35f * q[((j + head % 3) % n) * dim + c];
}

static int fail(const char *what) {
    fprintf(stderr, "make_page: %s\n", what);
    return 1;
}

/* What makes scores beside the scale; all 0 and NULL if nothing does. */
struct rule {
    int causal;
    int64_t offset, left;
    float softcap, alibi, sink;
    float *added;  /* [n][n]: 0, or -INFINITY where a key is hidden */
    uint8_t *bits; /* the same as a page has it */
};

static int rule_make(struct rule *rule, const char *name, int64_t n) {
    *rule = (struct rule){ .causal = name != NULL && strcmp(name, "image") != 0 };
    if (name == NULL || strcmp(name, "scores") != 0) return 0;
    *rule = (struct rule){ 1, 2, 25, 3, 0.03f, 1.5f, NULL, NULL };
    rule->added = calloc((size_t)(n * n), sizeof *rule->added);
    rule->bits = calloc((size_t)(n * ((n + 7) / 8)), 1);
    if (!rule->added || !rule->bits) return fail("out of memory");
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < n; j++) {
            const int seen = (7 * i + 3 * j) % 5 != 0;
            if (!seen) rule->added[i * n + j] = -INFINITY;
            rule->bits[i * ((n + 7) / 8) + j / 8] |= (uint8_t)(seen << j % 8);
        }
    }
    return 0;
}

/* The part of it that a page has as rules of position. */
static void rule_place(const struct rule *rule, qkv_attention_desc *desc) {
    if (rule->causal) desc->flags |= QKV_SET_CAUSAL;
    if (rule->bits) desc->flags |= QKV_SET_Q_OFFSET | QKV_SET_WINDOW;
    desc->q_offset = rule->offset;
    desc->window_left = rule->left;
    desc->window_right = -1;
}

static void rule_say(const struct rule *rule, qkv_attention_desc *desc, int64_t n) {
    rule_place(rule, desc);
    if (!rule->added) return;
    desc->flags |= QKV_SET_SOFTCAP | QKV_SET_ALIBI | QKV_SET_SINKS | QKV_SET_MASK;
    desc->softcap = rule->softcap;
    desc->alibi_slopes = &rule->alibi;
    desc->sinks = &rule->sink;
    desc->mask = rule->added;
    desc->mask_type = QKV_MASK_F32;
    memset(desc->mask_stride, 0, sizeof desc->mask_stride);
    desc->mask_stride[2] = n;
    desc->mask_stride[3] = 1;
}

static int make_lse(qkv_ctx *ctx, int64_t n, int64_t dim, const struct rule *rule, const float *q,
                    const float *k, float *lse) {
    qkv_attention_desc desc;
    float *const o = malloc((size_t)n * sizeof *o);
    qkv_attention_desc_contiguous(&desc, 1, 1, 1, n, n, dim, 1);
    rule_say(rule, &desc, n);
    const qkv_status status =
        o ? qkv_attention_forward(ctx, &desc, q, k, k, o, lse, NULL) : QKV_ERR_MEMORY;
    free(o);
    return status != QKV_OK;
}

static int write_array(const char *folder, const char *name, const char *what, float *data,
                       int64_t rows, int64_t columns) {
    char path[4096];
    qkv_error error;
    const qkv_array array = { .type = QKV_ARRAY_F32,
                              .rank = columns ? 2 : 1,
                              .shape = { rows, columns },
                              .n_elems = rows * (columns ? columns : 1),
                              .data = data };
    snprintf(path, sizeof path, "%s/%s.%s.npy", folder, name, what);
    return qkv_array_write(path, &array, &error) != QKV_OK && fail(error.message);
}

static int write_rule(const char *folder, const char *name, int64_t n, struct rule *rule) {
    return rule->added && (write_array(folder, name, "mask", rule->added, n, n) ||
                           write_array(folder, name, "alibi", &rule->alibi, 1, 0) ||
                           write_array(folder, name, "sink", &rule->sink, 1, 0));
}

static int write_arrays(const char *folder, const char *name, int64_t n, int64_t dim, float *q,
                        float *k) {
    float *const eye = n <= 512 ? calloc((size_t)(n * n), sizeof *eye) : NULL;
    int failed =
        write_array(folder, name, "q", q, n, dim) || write_array(folder, name, "k", k, n, dim);
    for (int64_t i = 0; eye && i < n; i++) eye[i * n + i] = 1;
    if (eye && !failed) failed = write_array(folder, name, "eye", eye, n, n);
    free(eye);
    return failed;
}

enum { BEFORE = 5, PATCH = 8, NAME_BYTES = 48 };

/* A disc on a ramp, and the names of its patches as tokens; n - BEFORE must be a square. */
static int image_make(qkv_page_image *image, int64_t n, const char **tokens, uint8_t *special) {
    int64_t side = 1;
    while (side * side < n - BEFORE) side++;
    const int64_t width = side * PATCH;
    uint8_t *const pixels = malloc((size_t)(3 * width * width));
    char *const names = calloc((size_t)n, NAME_BYTES);
    if (!pixels || !names || side * side != n - BEFORE) return fail("no square of patches");
    for (int64_t y = 0; y < width; y++) {
        for (int64_t x = 0; x < width; x++) {
            const int64_t dx = x - width / 3, dy = y - width / 2;
            const int in = dx * dx + dy * dy < width * width / 16;
            uint8_t *const to = pixels + 3 * (y * width + x);
            to[0] = (uint8_t)(in ? 230 : 40 + 100 * y / width);
            to[1] = (uint8_t)(in ? 120 : 90 + 100 * x / width);
            to[2] = (uint8_t)(in ? 40 : 160);
        }
    }
    for (int64_t i = 0; i < n; i++) {
        char *const name = names + i * NAME_BYTES;
        const int64_t patch = i - BEFORE;
        if (patch >= 0)
            snprintf(name, NAME_BYTES, "%lld,%lld", (long long)(patch / side),
                     (long long)(patch % side));
        else if (i > 0)
            snprintf(name, NAME_BYTES, "[REG%lld]", (long long)(i - 1));
        else
            snprintf(name, NAME_BYTES, "[CLS]");
        tokens[i] = name;
        special[i] = patch < 0;
    }
    *image = (qkv_page_image){ pixels, width, width, side, side, BEFORE };
    return 0;
}

static int write_page(const char *path, qkv_page *page) {
    qkv_page_result result = qkv_page_result_init();
    qkv_error error;
    if (qkv_page_write(page, path, &result, &error) != QKV_OK) return fail(error.message);
    printf(
        "%s: %lld tokens, %lld heads of %lld, %.2f MB, %lld as f16, weights off by at most %.1e\n",
        path, (long long)page->n, (long long)result.n_heads, (long long)page->head_dim,
        (double)result.n_bytes / 1e6, (long long)result.n_f16, result.max_error);
    return 0;
}

static void set(double *numbers, const char *name, double value) {
    numbers[qkv_head_number_find(name, strlen(name))] = value;
}

static void set_numbers(int64_t layer, int64_t head, double *numbers) {
    set(numbers, "entropy", (double)(layer + 1));
    set(numbers, "confidence", (double)head / 16);
    set(numbers, "entropy_normalized", (double)layer / 16);
}

int main(int argc, char **argv) {
    if (argc < 7) return fail("FOLDER NAME TOKENS DIM LAYERS HEADS [causal|scores|image]");
    const int64_t n = atoll(argv[3]), dim = atoll(argv[4]), layers = atoll(argv[5]),
                  across = atoll(argv[6]), n_heads = layers * across;
    struct rule rule;
    if (rule_make(&rule, argc > 7 ? argv[7] : NULL, n)) return 1;
    qkv_ctx *ctx = NULL;
    const char **tokens = calloc((size_t)n, sizeof *tokens);
    uint8_t *special = calloc((size_t)n, 1), *segments = calloc((size_t)n, 1);
    int32_t *word = calloc((size_t)n, sizeof *word);
    qkv_page_head *heads = calloc((size_t)n_heads, sizeof *heads);
    const int64_t n_numbers = qkv_head_number_count();
    double *stats = calloc((size_t)(n_heads * n_numbers), sizeof *stats);
    double *places =
        n <= 64 || n == 2048 ? calloc((size_t)(8 * n), sizeof *places) : NULL; /* PCA: 0 */
    float *numbers = calloc((size_t)(n_heads * n * (2 * dim + 1)), sizeof *numbers);
    if (!tokens || !special || !segments || !word || !heads || !stats || !numbers ||
        qkv_ctx_create(NULL, &ctx, NULL) != QKV_OK)
        return fail("out of memory");
    for (int64_t i = 0; i < n; i++) {
        tokens[i] = i == 0 ? "[CLS]" : i == n - 1 ? "[SEP]" : words[(i - 1) % N_WORDS];
        special[i] = i == 0 || i == n - 1;
        segments[i] = i > n / 2;
        word[i] = i == 0 ? 0 : word[i - 1] + (strcmp(tokens[i], "##s") != 0);
    }
    qkv_page_image image = { 0 };
    const int has_image = argc > 7 && strcmp(argv[7], "image") == 0;
    if (has_image && image_make(&image, n, tokens, special)) return 1;
    for (int64_t h = 0; h < n_heads; h++) {
        float *const q = numbers + h * n * (2 * dim + 1), *const k = q + n * dim,
                     *const lse = k + n * dim;
        draw_head(q, k, n, dim, h);
        if (make_lse(ctx, n, dim, &rule, q, k, lse)) return fail(qkv_ctx_message(ctx));
        set_numbers(h / across, h % across, stats + h * n_numbers);
        heads[h] = (qkv_page_head){ .layer = h / across,
                                    .head = h % across,
                                    .q = q,
                                    .k = k,
                                    .lse = lse,
                                    .numbers = stats + h * n_numbers,
                                    .label = h % across == 1 ? "prev" : "" };
        if (rule.bits) {
            heads[h].alibi = (double)rule.alibi;
            heads[h].sink = &rule.sink;
            heads[h].mask = rule.bits;
        }
        if (places && h > 0) {
            for (int64_t c = 0; c < 4 * n; c++)
                places[c] = c < 2 * n ? (double)q[c] : (double)k[c - 2 * n];
            heads[h].map = places;
            heads[h].pca = places + 4 * n;
            heads[h].map_note =
                "t-SNE, cosine, perplexity 5; KL 0.203, least of 32 runs; recall 0.91, "
                "rank correlation -0.61";
        }
    }
    float root = 1;
    while (root * root < (float)dim) root += 1;
    qkv_attention_desc rules = { .struct_size = sizeof rules };
    rule_place(&rule, &rules);
    qkv_page page = { .struct_size = sizeof page,
                      .head_bytes = sizeof(qkv_page_head),
                      .n = n,
                      .head_dim = dim,
                      .scale = 1 / root,
                      .rules = &rules,
                      .softcap = (double)rule.softcap,
                      .query = n / 3,
                      .tokens = tokens,
                      .special = special,
                      .segments = has_image ? NULL : segments,
                      .words = has_image ? NULL : word,
                      .image = has_image ? &image : NULL,
                      .n_heads = n_heads,
                      .heads = heads,
                      .title = "A test </title> of tokens",
                      .caption = "Random queries and keys." };
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.html", argv[1], argv[2]);
    const int failed = write_page(path, &page) ||
                       write_arrays(argv[1], argv[2], n, dim, numbers, numbers + n * dim) ||
                       write_rule(argv[1], argv[2], n, &rule);
    qkv_ctx_free(ctx);
    if (has_image) free((void *)(uintptr_t)tokens[0]);
    free((void *)(uintptr_t)image.pixels);
    free(tokens);
    free(special);
    free(segments);
    free(word);
    free(heads);
    free(stats);
    free(numbers);
    free(places);
    free(rule.added);
    free(rule.bits);
    return failed;
}
