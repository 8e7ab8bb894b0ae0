/**
 * The page as a file: parts with published test vectors (SHA-256, base64, base 85, JSON), and the
 * content of the file: the numbers that were given, bit by bit if they are f32; tokens with any
 * bytes; a policy with the hashes of exactly its script and style; nothing that loads from a
 * network. tests/page/browser.py tests the page in a browser.
 */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include "core/half.h"
#include "files/encode.h"
#include "files/file.h"
#include "make_ctx.h"
#include "page/base85.h"
#include "page/head.h"
#include "page/mask.h"
#include "page/sha256.h"
#include "qkv/page.h"

#define FOLDER QKV_TEST_BUILD "/pages"

enum { MAX_N = 300, MAX_DIM = 16, MAX_HEADS = 6, CODE_LIMIT = 199 * 1024 };

static float q[MAX_HEADS][MAX_N * MAX_DIM], k[MAX_HEADS][MAX_N * MAX_DIM], lse[MAX_HEADS][MAX_N];
static const char *tokens[MAX_N];
static qkv_page_head heads[MAX_HEADS];
static uint32_t chance;

static const char *const odd_tokens[] = { "</script><script>alert(1)</script>",
                                          "<!--",
                                          "]]>",
                                          "&amp;",
                                          "\"quoted\\\"",
                                          "\xE2\x80\xA8",
                                          "\xE2\x80\xA9",
                                          "tab\tline\n",
                                          "\xD7\xA9\xD7\x9C\xD7\x95\xD7\x9D",
                                          "\xE6\xBC\xA2\xE5\xAD\x97",
                                          "\xF0\x9F\x98\x80",
                                          "\xFF\xFE broken",
                                          "\xE2\x80\xAE turned",
                                          "",
                                          "''`${x}`",
                                          "\\u003c" };
enum { N_ODD = sizeof odd_tokens / sizeof *odd_tokens };

static float draw(float reach) {
    chance = chance * 1664525u + 1013904223u;
    return reach * ((float)(chance >> 8) / (float)(1 << 23) - 1);
}

static double score(const qkv_page *page, int h, int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < page->head_dim; c++)
        sum += (double)q[h][i * page->head_dim + c] * (double)k[h][j * page->head_dim + c];
    return sum * (double)page->scale;
}

/* Of the page that was made last. */
static qkv_attention_desc rules;

/* Heads of random numbers below reach, with the lse that follows from them. */
static qkv_page make_page(int64_t n, int64_t dim, int64_t n_heads, float reach, uint32_t flags) {
    qkv_page page = { .struct_size = sizeof page,
                      .n = n,
                      .head_dim = dim,
                      .scale = 0.25f,
                      .rules = &rules,
                      .query = -1,
                      .tokens = tokens,
                      .n_heads = n_heads,
                      .heads = heads,
                      .head_bytes = sizeof *heads,
                      .text_bytes = sizeof(qkv_page_text),
                      .title = "A <title>",
                      .caption = "A & caption" };
    qkv_attention_desc_contiguous(&rules, 1, 1, 1, n, n, 1, 1);
    rules.flags = flags;
    rules.window_left = 3;
    rules.window_right = -1;
    chance = 7;
    for (int i = 0; i < n; i++) tokens[i] = odd_tokens[i % N_ODD];
    for (int h = 0; h < n_heads; h++) {
        for (int64_t i = 0; i < n * dim; i++) {
            q[h][i] = draw(reach);
            k[h][i] = draw(reach);
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t first, end;
            double sum = 0;
            qkvi_page_visible(&page, &(qkv_page_head){ 0 }, i, &first, &end);
            for (int64_t j = first; j < end; j++) sum += exp(score(&page, h, i, j));
            lse[h][i] = (float)log(sum);
        }
        heads[h] =
            (qkv_page_head){ .layer = h / 2, .head = h % 2, .q = q[h], .k = k[h], .lse = lse[h] };
    }
    return page;
}

/* ---- Reading a page -------------------------------------------------------------------------- */

struct file {
    char *bytes; /* with a NUL behind */
    size_t n;
    qkv_page_result result;
};

static struct file write_page(const qkv_page *page) {
    struct file file = { .result = qkv_page_result_init() };
    qkv_error error;
    if (qkv_page_write(page, FOLDER "/a.html", &file.result, &error)) fail_msg("%s", error.message);
    if (qkvi_file_load(FOLDER "/a.html", 1 << 26, &file.bytes, &file.n, &error))
        fail_msg("%s", error.message);
    file.bytes = realloc(file.bytes, file.n + 1);
    assert_non_null(file.bytes);
    file.bytes[file.n] = '\0';
    assert_int_equal(file.n, file.result.n_bytes);
    assert_int_equal(strlen(file.bytes), file.n);
    qkv_text *made; /* the same in memory */
    qkv_page_result of_made = qkv_page_result_init();
    if (qkv_page_make(page, &made, &of_made, &error)) fail_msg("%s", error.message);
    assert_int_equal(made->n, file.n);
    assert_memory_equal(made->bytes, file.bytes, file.n + 1);
    assert_memory_equal(&of_made, &file.result, sizeof of_made);
    qkv_text_free(made);
    return file;
}

/* What stands between two texts, the first time. */
static char *between(const char *text, const char *before, const char *after) {
    const char *const begin = strstr(text, before);
    if (!begin) fail_msg("no %s", before);
    const char *const from = begin + strlen(before), *const end = strstr(from, after);
    assert_non_null(end);
    return strndup(from, (size_t)(end - from));
}

static int count(const char *text, const char *words) {
    int n = 0;
    for (const char *at = text; (at = strstr(at, words)) != NULL; at += strlen(words)) n++;
    return n;
}

/* Of the digits that docs/page.md names; the bytes of whole groups. */
static size_t decode(const char *text, unsigned char *bytes) {
    static const char digits[] = "()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`"
                                 "abcdefghijklmnopqrstuvwxyz{|}~";
    size_t n = 0;
    assert_int_equal(strlen(digits), 85);
    assert_int_equal(strlen(text) % 5, 0);
    for (; *text; text += 5) {
        uint64_t word = 0;
        for (int d = 0; d < 5; d++) {
            const char *const digit = text[d] ? strchr(digits, text[d]) : NULL;
            if (!digit) fail_msg("'%c' in a text of base 85", text[d]);
            word = word * 85 + (uint64_t)(digit - digits);
        }
        assert_true(word <= UINT32_MAX);
        for (int b = 0; b < 4; b++) bytes[n++] = (unsigned char)(word >> 8 * b);
    }
    return n;
}

/* n bytes, and zeros that fill the last group. */
static void decode_all(const char *text, unsigned char *bytes, size_t n) {
    const size_t padded = (n + 3) / 4 * 4;
    unsigned char *const all = malloc(strlen(text) + 1);
    assert_non_null(all);
    assert_int_equal(decode(text, all), padded);
    for (size_t i = n; i < padded; i++) assert_int_equal(all[i], 0);
    memcpy(bytes, all, n);
    free(all);
}

static json_t *manifest_of(const struct file *file) {
    char *const text = between(file->bytes, "id=\"qkv-manifest\">", "</script>");
    json_error_t error;
    json_t *const manifest = json_loads(text, JSON_REJECT_DUPLICATES, &error);
    if (!manifest) fail_msg("manifest: %s at %d", error.text, error.position);
    free(text);
    return manifest;
}

static json_t *head_of(const json_t *manifest, int h) {
    return json_array_get(json_object_get(manifest, "heads"), (size_t)h);
}
static const char *text_of(const json_t *object, const char *key) {
    return json_string_value(json_object_get(object, key));
}

static size_t numbers_of(const struct file *file, int h, unsigned char *bytes) {
    char name[64];
    snprintf(name, sizeof name, "id=\"qkv-head-%d\">", h);
    char *const text = between(file->bytes, name, "</script>");
    const size_t n = decode(text, bytes);
    free(text);
    return n;
}

static void close_page(struct file *file, json_t *manifest) {
    json_decref(manifest);
    free(file->bytes);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static void test_sha256(void **state) {
    (void)state;
    static char many[1000000];
    memset(many, 'a', sizeof many);
    const struct {
        const char *text;
        size_t n;
        const char *digest; /* FIPS 180-4's own examples, and the empty message */
    } cases[] = {
        { "", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { many, sizeof many, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t digest[32];
        char hex[65];
        qkvi_sha256(cases[i].text, cases[i].n, digest);
        for (int b = 0; b < 32; b++) snprintf(hex + 2 * b, 3, "%02x", digest[b]);
        assert_string_equal(hex, cases[i].digest);
    }
}

static void test_base64(void **state) {
    (void)state;
    static const char *const cases[][2] = { { "", "" },
                                            { "f", "Zg==" },
                                            { "fo", "Zm8=" },
                                            { "foo", "Zm9v" },
                                            { "foob", "Zm9vYg==" },
                                            { "fooba", "Zm9vYmE=" },
                                            { "foobar", "Zm9vYmFy" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_bytes bytes = { 0 };
        qkvi_base64_add(&bytes, cases[i][0], strlen(cases[i][0]));
        qkvi_bytes_add(&bytes, "", 1);
        assert_string_equal((char *)bytes.data, cases[i][1]);
        qkvi_bytes_free(&bytes);
    }
}

static void check_base85(const void *data, size_t n, const char *wanted) {
    static unsigned char back[6000];
    qkvi_bytes bytes = { 0 };
    qkvi_base85_add(&bytes, data, n);
    assert_int_equal(bytes.n, qkvi_base85_chars(n));
    qkvi_bytes_add(&bytes, "", 1);
    if (wanted) assert_string_equal((char *)bytes.data, wanted);
    decode_all((char *)bytes.data, back, n);
    if (n) assert_memory_equal(data, back, n);
    qkvi_bytes_free(&bytes);
}

static void test_base85(void **state) {
    (void)state;
    /* By hand: 2^32 - 1 is 82 23 54 12 0 to the base of 85, and 0x04030201 is 1 24 50 60 10. */
    check_base85("", 0, "");
    check_base85("\0\0\0\0", 4, "(((((");
    check_base85("\xFF\xFF\xFF\xFF", 4, "|@`4(");
    check_base85("\1\2\3\4", 4, ")A[f2");
    check_base85("\1\0\0\0\2", 5, "(((()((((*");
    static unsigned char raw[5000];
    for (size_t i = 0; i < sizeof raw; i++) raw[i] = (unsigned char)(i * i * 31 >> 3);
    for (size_t n = 1020; n <= 1030; n++) check_base85(raw, n, NULL);
    check_base85(raw, sizeof raw, NULL);
}

static void test_numbers(void **state) {
    (void)state;
    const struct {
        double x;
        const char *text;
    } cases[] = { { 0.25, "0.25" }, { -1.5e-30, "-1.5e-30" }, { (double)0.1f, "0.100000001" },
                  { NAN, "null" },  { -INFINITY, "null" },    { 1e300, "1e+300" } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        qkvi_bytes bytes = { 0 };
        qkvi_json_real(&bytes, cases[i].x);
        qkvi_bytes_add(&bytes, "", 1);
        assert_string_equal((char *)bytes.data, cases[i].text);
        qkvi_bytes_free(&bytes);
    }
}

/* ---- Pages ----------------------------------------------------------------------------------- */

static void test_hostile_tokens(void **state) {
    (void)state;
    const qkv_page page = make_page(N_ODD, 4, 2, 1, 0);
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const list = json_object_get(manifest, "tokens");
    assert_int_equal(json_array_size(list), N_ODD);
    for (size_t i = 0; i < N_ODD; i++) {
        char *const shown = qkvi_shown_lines(odd_tokens[i]);
        assert_string_equal(json_string_value(json_array_get(list, i)), shown);
        free(shown);
    }
    assert_string_equal(text_of(manifest, "title"), "A <title>");
    /* the manifest, two heads and the script: no token opens or closes an element */
    assert_int_equal(count(file.bytes, "</script>"), 4);
    assert_int_equal(count(file.bytes, "<script"), 4);
    assert_int_equal(count(file.bytes, "<!--"), 0);
    assert_int_equal(count(file.bytes, "<script>alert"), 0);
    assert_int_equal(count(file.bytes, "<title>A &lt;title&gt;</title>"), 1);
    assert_null(strstr(file.bytes, "\xE2\x80\xA8"));
    close_page(&file, manifest);
}

static void test_policy(void **state) {
    (void)state;
    const qkv_page page = make_page(3, 4, 1, 1, 0);
    struct file file = write_page(&page);
    char *const policy =
        between(file.bytes, "http-equiv=\"Content-Security-Policy\" content=\"", "\"");
    char *const style = between(file.bytes, "<style>", "</style>"), *const script = between(
                                                                        file.bytes, "<script>",
                                                                        "</script>");
    const struct {
        const char *name, *text;
    } code[] = { { "script-src", script }, { "style-src", style } };
    for (int i = 0; i < 2; i++) {
        uint8_t digest[32];
        qkvi_bytes wanted = { 0 };
        qkvi_sha256(code[i].text, strlen(code[i].text), digest);
        qkvi_bytes_text(&wanted, code[i].name);
        qkvi_bytes_text(&wanted, " 'sha256-");
        qkvi_base64_add(&wanted, digest, sizeof digest);
        qkvi_bytes_add(&wanted, "';", 3);
        assert_non_null(strstr(policy, (char *)wanted.data));
        qkvi_bytes_free(&wanted);
    }
    assert_int_equal(strncmp(policy, "default-src 'none'; ", 20), 0);
    assert_null(strstr(policy, "unsafe"));
    assert_true(strlen(style) + strlen(script) <= CODE_LIMIT);
    /* what asks the network has an address: only the name of SVG looks like one */
    assert_int_equal(count(file.bytes, "http:") + count(file.bytes, "https:"),
                     count(file.bytes, "http://www.w3.org/2000/svg"));
    assert_int_equal(
        count(file.bytes, " src=") + count(file.bytes, "url(") + count(file.bytes, "@import"), 0);
    free(policy);
    free(style);
    free(script);
    close_page(&file, manifest_of(&file));
}

static void test_floats(void **state) {
    (void)state;
    const qkv_page page = make_page(40, 6, 3, 2, 0);
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file);
    static unsigned char bytes[1 << 16];
    const size_t size = 40 * 6 * sizeof(float);
    for (int h = 0; h < 3; h++) {
        assert_string_equal(text_of(head_of(manifest, h), "type"), "f32");
        assert_int_equal(numbers_of(&file, h, bytes), 2 * size + 40 * sizeof(float));
        assert_memory_equal(bytes, q[h], size);
        assert_memory_equal(bytes + size, k[h], size);
        assert_memory_equal(bytes + 2 * size, lse[h], 40 * sizeof(float));
    }
    assert_int_equal(file.result.n_heads, 3);
    assert_int_equal(file.result.n_f16, 0);
    close_page(&file, manifest);
}

/* What the file holds of a map, against places in a box from 0 to 1. */
static void expect_map(json_t *head, const char *field, const double *boxed) {
    unsigned char bytes[40 * 4 * sizeof(uint16_t)];
    assert_int_equal(decode(text_of(head, field), bytes), sizeof bytes);
    for (int i = 0; i < 160; i++) {
        const int got = bytes[2 * i] + 256 * bytes[2 * i + 1];
        assert_true(fabs(got - 65535 * boxed[i]) <= 0.5 + 1e-6);
    }
}

/* Queries before keys; one scale for both axes; all at one place; too far apart for a double. */
static void test_maps(void **state) {
    (void)state;
    static double map[160], boxed[160], same[160], far[160], far_boxed[160], zeros[160];
    const qkv_page page = make_page(40, 4, 3, 1, 0);
    for (int i = 0; i < 160; i++) {
        map[i] = i % 2 ? 100 + 14.0 * (i - 1) / 158 : 7.0 * i / 158;
        boxed[i] = i % 2 ? (i - 1) / 158.0 : i / 316.0;
        same[i] = -3;
        far[i] = i == 6 ? -DBL_MAX : i % 2 ? 0 : DBL_MAX;
        far_boxed[i] = i != 6 && i % 2 == 0;
    }
    heads[0].map_note = "none";
    heads[1].map = heads[2].pca = map;
    heads[1].pca = same;
    heads[2].map = far;
    heads[1].map_note = "a \"note\" </script>";
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file);
    assert_null(text_of(head_of(manifest, 0), "map"));
    assert_string_equal(text_of(head_of(manifest, 0), "map_note"), heads[0].map_note);
    assert_string_equal(text_of(head_of(manifest, 1), "map_note"), heads[1].map_note);
    assert_null(text_of(head_of(manifest, 2), "map_note"));
    expect_map(head_of(manifest, 1), "map", boxed);
    expect_map(head_of(manifest, 1), "pca", zeros);
    expect_map(head_of(manifest, 2), "map", far_boxed);
    expect_map(head_of(manifest, 2), "pca", boxed);
    close_page(&file, manifest);
}

/* The largest change of a weight by f16, with double sums. */
static double error_of_halves(const qkv_page *page, int h) {
    double largest = 0;
    for (int64_t i = 0; i < page->n; i++) {
        for (int64_t j = 0; j < page->n; j++) {
            double sum = 0;
            for (int64_t c = 0; c < page->head_dim; c++)
                sum += (double)qkvi_f32_of_f16(qkvi_f16_of_f32(q[h][i * page->head_dim + c])) *
                       (double)qkvi_f32_of_f16(qkvi_f16_of_f32(k[h][j * page->head_dim + c]));
            const double off = fabs(exp(sum * (double)page->scale - (double)lse[h][i]) -
                                    exp(score(page, h, i, j) - (double)lse[h][i]));
            if (off > largest) largest = off;
        }
    }
    return largest;
}

static void test_halves(void **state) {
    (void)state;
    static unsigned char bytes[1 << 16];
    for (int large = 0; large < 2; large++) {
        const qkv_page page = make_page(100, 8, 1, large ? 9 : 1, 0);
        struct file file = write_page(&page);
        json_t *const manifest = manifest_of(&file), *const head = head_of(manifest, 0);
        const double error = error_of_halves(&page, 0);
        assert_int_equal(error > 1e-3, large);
        assert_string_equal(text_of(head, "type"), large ? "f32" : "f16");
        if (!large) {
            assert_true(fabs(json_number_value(json_object_get(head, "error")) - error) < 1e-6);
            assert_true(fabs(file.result.max_error - error) < 1e-6);
            assert_int_equal(numbers_of(&file, 0, bytes), 2 * 800 * 2 + 400);
            for (int i = 0; i < 800; i++) {
                const uint16_t wanted = qkvi_f16_of_f32(k[0][i]);
                assert_memory_equal(bytes + 1600 + 2 * i, &wanted, 2);
            }
        }
        assert_int_equal(file.result.n_f16, !large);
        close_page(&file, manifest);
    }
}

/* A NaN and a number that f16 lacks keep a head f32. */
static void test_not_finite(void **state) {
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        const qkv_page page = make_page(70, 4, 1, 1, 0);
        q[0][5] = kind ? NAN : 1e6f;
        struct file file = write_page(&page);
        json_t *const manifest = manifest_of(&file);
        assert_string_equal(text_of(head_of(manifest, 0), "type"), "f32");
        close_page(&file, manifest);
    }
}

static void test_thumbnail(void **state) {
    (void)state;
    static const uint32_t flags[] = { 0, QKV_SET_CAUSAL, QKV_SET_WINDOW,
                                      QKV_SET_CAUSAL | QKV_SET_WINDOW };
    static unsigned char thumb[32 * 32 + 3];
    for (int f = 0; f < 4; f++) {
        for (int64_t n = 11; n <= 100; n += 89) {
            const qkv_page page = make_page(n, 4, 1, 3, flags[f]);
            struct file file = write_page(&page);
            json_t *const manifest = manifest_of(&file), *const head = head_of(manifest, 0);
            const int64_t side = n < 32 ? n : 32;
            assert_int_equal(json_integer_value(json_object_get(head, "side")), side);
            decode_all(text_of(head, "thumb"), thumb, (size_t)(side * side));
            static double peaks[32 * 32];
            memset(peaks, 0, sizeof peaks);
            for (int64_t i = 0; i < n; i++) {
                int64_t first, end;
                qkvi_page_visible(&page, &heads[0], i, &first, &end);
                for (int64_t j = first; j < end; j++) {
                    double *const peak = &peaks[i * side / n * side + j * side / n];
                    *peak = fmax(*peak, exp(score(&page, 0, i, j) - (double)lse[0][i]));
                }
            }
            for (int64_t c = 0; c < side * side; c++) {
                const double level = peaks[c] > 0 ? fmax(0, (log2(peaks[c]) + 24) / 24 * 255) : 0;
                if (fabs(level - thumb[c]) > 0.51)
                    fail_msg("cell %d is %d, not %g", (int)c, thumb[c], level);
            }
            close_page(&file, manifest);
        }
    }
}

/*
 * Causal: j <= i. A window of 3 before, open behind: i - 3 <= j. Closed by hand, not by
 * page/mask.h.
 */
static void test_mask(void **state) {
    (void)state;
    const qkv_page page = make_page(20, 4, 1, 1, QKV_SET_CAUSAL | QKV_SET_WINDOW);
    rules.window_right = 0;
    for (int64_t i = 0; i < 20; i++) {
        int64_t first, end;
        qkvi_page_visible(&page, &heads[0], i, &first, &end);
        for (int64_t j = 0; j < 20; j++)
            assert_int_equal(j >= first && j < end, j <= i && j >= i - 3);
    }
    rules.window_right = INT64_MAX;
    rules.window_left = INT64_MAX;
    rules.flags = QKV_SET_WINDOW;
    int64_t first, end;
    qkvi_page_visible(&page, &heads[0], 7, &first, &end);
    assert_int_equal(first, 0);
    assert_int_equal(end, 20);
}

/* A head's own window is in its entry, and narrows what the rules of the page leave. */
static void test_head_window(void **state) {
    (void)state;
    enum { N = 20 };
    static unsigned char thumb[N * N + 3];
    qkv_page page = make_page(N, 4, 2, 2, QKV_SET_CAUSAL | QKV_SET_Q_OFFSET);
    rules.q_offset = 2;
    heads[1].has_window = 1;
    heads[1].window_left = 4;
    heads[1].window_right = -1;
    for (int64_t i = 0; i < N; i++) {
        int64_t first, end;
        qkvi_page_visible(&page, &heads[1], i, &first, &end);
        for (int64_t j = 0; j < N; j++)
            assert_int_equal(j >= first && j < end, j <= i + 2 && j >= i + 2 - 4);
    }
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const head = head_of(manifest, 1),
                  *const window = json_object_get(head, "window");
    assert_null(json_object_get(head_of(manifest, 0), "window"));
    assert_int_equal(json_array_size(window), 2);
    assert_int_equal(json_integer_value(json_array_get(window, 0)), 4);
    assert_int_equal(json_integer_value(json_array_get(window, 1)), -1);
    decode_all(text_of(head, "thumb"), thumb, N * N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            if (j > i + 2 || j < i - 2) assert_int_equal(thumb[i * N + j], 0);
    close_page(&file, manifest);
    heads[1].window_left = INT64_MAX;
    heads[1].window_right = INT64_MAX;
    rules.q_offset = -3;
    int64_t first, end;
    qkvi_page_visible(&page, &heads[1], 7, &first, &end);
    assert_int_equal(first, 0);
    assert_int_equal(end, 5);
    heads[1].window_right = -2;
    qkv_error error;
    assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "heads[1].window_left"));
    heads[1].has_window = 0;
}

/* What heads are worth: once for the page, a number for each head, null where it is not known. */
static void test_effects(void **state) {
    (void)state;
    qkv_page page = make_page(8, 4, 2, 2, 0);
    heads[0].effect = -0.75;
    heads[1].effect = NAN;
    struct file file = write_page(&page);
    json_t *manifest = manifest_of(&file);
    assert_null(json_object_get(manifest, "effects"));
    assert_null(json_object_get(head_of(manifest, 0), "effect"));
    close_page(&file, manifest);
    page.effect_of = "ln P(<b>) at token 3";
    page.effect_word = "<b>";
    page.effect_query = 3;
    page.effect_log_p = -0.5;
    file = write_page(&page);
    manifest = manifest_of(&file);
    json_t *const effects = json_object_get(manifest, "effects");
    assert_string_equal(text_of(effects, "what"), page.effect_of);
    assert_string_equal(text_of(effects, "word"), "<b>");
    assert_int_equal(json_integer_value(json_object_get(effects, "place")), 3);
    assert_true(json_number_value(json_object_get(effects, "log_p")) == -0.5);
    assert_true(json_number_value(json_object_get(head_of(manifest, 0), "effect")) == -0.75);
    assert_true(json_is_null(json_object_get(head_of(manifest, 1), "effect")));
    assert_null(json_object_get(manifest, "hint"));
    assert_null(json_object_get(manifest, "made_by"));
    assert_null(strstr((const char *)file.bytes, "made_by"));
    close_page(&file, manifest);
    page.hint = "no <mask>\nof this model";
    file = write_page(&page);
    manifest = manifest_of(&file);
    assert_string_equal(text_of(manifest, "hint"), page.hint);
    close_page(&file, manifest);
    page.made_by = "`a </script> call`";
    file = write_page(&page);
    manifest = manifest_of(&file);
    assert_string_equal(text_of(manifest, "made_by"), page.made_by);
    assert_non_null(strstr((const char *)file.bytes, "manifest.made_by"));
    close_page(&file, manifest);
    qkv_error error;
    page.effect_query = 8;
    assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "effect_query = 8"));
    page.effect_query = -1;
    page.effect_log_p = 0.5;
    assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "effect_log_p"));
}

static int64_t of_image(const json_t *image, const char *key) {
    return (int64_t)json_integer_value(json_object_get(image, key));
}

/* The image is in the manifest, and its view in the script; of texts each has its own. */
static void test_image(void **state) {
    (void)state;
    enum { WIDTH = 3, HEIGHT = 2 };
    static uint8_t pixels[2][3 * WIDTH * HEIGHT];
    for (int i = 0; i < 3 * WIDTH * HEIGHT; i++)
        pixels[0][i] = (uint8_t)(7 * i), pixels[1][i] = 255;
    qkv_page page = make_page(8, 4, 2, 1, 0);
    const qkv_page_image image = { pixels[0], WIDTH, HEIGHT, 2, 3, 2 };
    struct file file = write_page(&page);
    json_t *manifest = manifest_of(&file);
    assert_null(json_object_get(manifest, "image"));
    assert_null(strstr((const char *)file.bytes, "tabs.image ="));
    close_page(&file, manifest);
    page.image = &image;
    file = write_page(&page);
    manifest = manifest_of(&file);
    assert_non_null(strstr((const char *)file.bytes, "tabs.image ="));
    json_t *shown = json_object_get(manifest, "image");
    assert_int_equal(of_image(shown, "width"), WIDTH);
    assert_int_equal(of_image(shown, "height"), HEIGHT);
    assert_int_equal(of_image(shown, "rows"), 2);
    assert_int_equal(of_image(shown, "columns"), 3);
    assert_int_equal(of_image(shown, "first"), 2);
    qkvi_bytes text = { 0 };
    qkvi_base85_add(&text, pixels[0], sizeof pixels[0]);
    qkvi_bytes_add(&text, "", 1);
    assert_string_equal(text_of(shown, "pixels"), (const char *)text.data);
    qkvi_bytes_free(&text);
    close_page(&file, manifest);

    const qkv_page_image other = { pixels[1], WIDTH, HEIGHT, 1, 3, 5 };
    qkv_page_text texts[2] = { { .name = "a", .tokens = tokens, .image = &image },
                               { .name = "b", .tokens = tokens, .image = &other } };
    page.texts = texts, page.n_texts = 2, page.text_bytes = sizeof *texts, page.image = NULL;
    file = write_page(&page);
    manifest = manifest_of(&file);
    assert_null(json_object_get(manifest, "image"));
    for (int t = 0; t < 2; t++) {
        shown =
            json_object_get(json_array_get(json_object_get(manifest, "runs"), (size_t)t), "image");
        assert_int_equal(of_image(shown, "first"), t ? 5 : 2);
    }
    close_page(&file, manifest);

    static const struct {
        qkv_page_image image;
        qkv_status status;
        const char *says;
    } wrong[] = {
        { { NULL, 3, 2, 2, 3, 2 }, QKV_ERR_ARGUMENT, "pixels is NULL" },
        { { pixels[0], 0, 2, 2, 3, 2 }, QKV_ERR_SHAPE, "width = 0" },
        { { pixels[0], 3, 4097, 2, 3, 2 }, QKV_ERR_SHAPE, "height = 4097" },
        { { pixels[0], 3, 2, 3, 2, 2 }, QKV_ERR_SHAPE, "rows = 3" },
        { { pixels[0], 3, 2, 2, 3, 1 }, QKV_ERR_SHAPE, "first = 1" },
        { { pixels[0], 3, 2, 2, 3, -2 }, QKV_ERR_SHAPE, "first = -2" },
        { { pixels[0], 3, 2, 2, 0, 8 }, QKV_ERR_SHAPE, "columns = 0" },
    };
    qkv_error error;
    for (size_t w = 0; w < sizeof wrong / sizeof *wrong; w++) {
        texts[1].image = &wrong[w].image;
        assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), wrong[w].status);
        assert_non_null(strstr(error.message, wrong[w].says));
        assert_non_null(strstr(error.message, "image of text 1"));
    }
    texts[1].image = NULL;
    assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), QKV_ERR_ARGUMENT);
    assert_non_null(strstr(error.message, "image of text 1 is NULL, of text 0 it is given"));
    page.texts = NULL, page.n_texts = 0;
    page.queries = &texts[0];
    assert_int_equal(qkv_page_write(&page, FOLDER "/a.html", NULL, &error), QKV_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.message, "image together with queries"));
}

static void test_limit(void **state) {
    (void)state;
    qkv_page page = make_page(MAX_N, MAX_DIM, MAX_HEADS, 1, 0);
    for (int i = 0; i < MAX_N; i++) tokens[i] = "token";
    struct file all = write_page(&page);
    assert_int_equal(all.result.n_heads, MAX_HEADS);
    page.limit_bytes = all.result.n_bytes - 20000;
    struct file some = write_page(&page);
    json_t *const manifest = manifest_of(&some);
    assert_true(some.result.n_heads < MAX_HEADS && some.result.n_heads >= 3);
    assert_true(some.result.n_bytes <= page.limit_bytes);
    assert_int_equal(json_integer_value(json_object_get(manifest, "omitted")),
                     MAX_HEADS - some.result.n_heads);
    assert_int_equal(json_array_size(json_object_get(manifest, "heads")), some.result.n_heads);
    page.limit_bytes = 1;
    struct file one = write_page(&page);
    assert_int_equal(one.result.n_heads, 1);
    close_page(&all, NULL);
    close_page(&one, NULL);
    close_page(&some, manifest);
}

static void test_same_bytes(void **state) {
    (void)state;
    const qkv_page page = make_page(50, 8, 2, 1, QKV_SET_CAUSAL);
    struct file a = write_page(&page), b = write_page(&page);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.bytes, b.bytes, a.n);
    close_page(&a, NULL);
    close_page(&b, NULL);
}

/* By any number of threads and any instruction set. */
static void test_same_bytes_of_contexts(void **state) {
    (void)state;
    const char *isa;
    qkv_page page = make_page(100, 8, MAX_HEADS, 1, QKV_SET_CAUSAL);
    struct file alone = write_page(&page);
    assert_true(alone.result.n_f16 > 0);
    for (int i = 0; (isa = qkv_isa_name(i)); i++) {
        page.ctx = make_ctx(isa, 1 + i % 3);
        struct file other = write_page(&page);
        assert_int_equal(alone.n, other.n);
        assert_memory_equal(alone.bytes, other.bytes, alone.n);
        close_page(&other, NULL);
        qkv_ctx_free(page.ctx);
    }
    close_page(&alone, NULL);
}

/* Keys that no query sees: not in the thumbnail, not in the table; and the badge. */
static void test_dropped(void **state) {
    (void)state;
    static unsigned char thumb[32 * 32 + 3];
    static const uint8_t dropped[11] = { 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1 };
    qkv_page page = make_page(11, 4, 1, 1, 0);
    page.dropped = dropped;
    page.modified = "modified: <all>";
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file);
    assert_string_equal(text_of(manifest, "modified"), page.modified);
    assert_int_equal(count(file.bytes, "<all>"), 0);
    for (size_t j = 0; j < 11; j++)
        assert_int_equal(
            json_integer_value(json_array_get(json_object_get(manifest, "dropped"), j)),
            dropped[j]);
    decode_all(text_of(head_of(manifest, 0), "thumb"), thumb, 121);
    for (int c = 0; c < 121; c++)
        if (dropped[c % 11]) assert_int_equal(thumb[c], 0);
    close_page(&file, manifest);
    page.dropped = NULL;
    page.modified = NULL;
    file = write_page(&page);
    assert_int_equal(count(file.bytes, "\"dropped\":") + count(file.bytes, "\"modified\":"), 0);
    close_page(&file, NULL);
}

/* Every offset, window and causal or not, against the definition. */
static void test_offsets(void **state) {
    (void)state;
    const qkv_page page = make_page(9, 4, 1, 1, 0);
    rules.len_q = 12;
    for (int c = 0; c < 11 * 7 * 7 * 4; c++) {
        rules.q_offset = c % 11 * 3 - 15;
        rules.window_left = c / 11 % 7 - 1;
        rules.window_right = c / 77 % 7 - 1;
        rules.flags = QKV_SET_Q_OFFSET | (c / 539 & 1 ? QKV_SET_CAUSAL : 0u) |
                      (c / 539 & 2 ? QKV_SET_WINDOW : 0u);
        for (int64_t i = 0; i < 12; i++) {
            int64_t first, end;
            qkvi_page_visible(&page, &heads[0], i, &first, &end);
            assert_true(first >= 0 && first <= end && end <= 9);
            for (int64_t j = 0; j < 9; j++) {
                const int64_t off = j - i - rules.q_offset;
                const int window = (rules.flags & QKV_SET_WINDOW) != 0;
                const int seen = !((rules.flags & QKV_SET_CAUSAL) && off > 0) &&
                                 !(window && rules.window_left >= 0 && -off > rules.window_left) &&
                                 !(window && rules.window_right >= 0 && off > rules.window_right);
                assert_int_equal(j >= first && j < end, seen);
            }
        }
    }
}

/* Five queries of their own look at twelve keys: numbers, names, thumbnail, map and table. */
static void test_queries(void **state) {
    (void)state;
    enum { KEYS = 12, QUERIES = 5, DIM = 4 };
    static const char *const names[QUERIES] = { "</script>", "one", "two", "three", NULL };
    static const uint8_t special[QUERIES] = { 1, 0, 0, 0, 0 };
    static unsigned char bytes[4096];
    static double places[2 * (KEYS + QUERIES)];
    const qkv_page_text queries = { NULL, names, special, NULL, NULL, NULL };
    qkv_page page = make_page(KEYS, DIM, 1, 1, 0);
    page.n_queries = QUERIES;
    page.queries = &queries;
    page.query = QUERIES - 1;
    heads[0].map = heads[0].pca = places;
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const list = json_object_get(manifest, "queries");
    assert_int_equal(json_integer_value(json_object_get(list, "n")), QUERIES);
    assert_int_equal(json_array_size(json_object_get(list, "tokens")), QUERIES);
    assert_int_equal(json_array_size(json_object_get(list, "special")), QUERIES);
    assert_int_equal(json_array_size(json_object_get(manifest, "tokens")), KEYS);
    assert_int_equal(numbers_of(&file, 0, bytes), ((QUERIES + KEYS) * DIM + QUERIES) * 4);
    assert_memory_equal(bytes, q[0], QUERIES * DIM * 4);
    assert_memory_equal(bytes + QUERIES * DIM * 4, k[0], KEYS * DIM * 4);
    assert_memory_equal(bytes + (QUERIES + KEYS) * DIM * 4, lse[0], QUERIES * 4);
    json_t *const head = head_of(manifest, 0);
    assert_int_equal(json_integer_value(json_object_get(head, "side")), KEYS);
    assert_int_equal(json_integer_value(json_object_get(head, "rows")), QUERIES);
    decode_all(text_of(head, "thumb"), bytes, KEYS * QUERIES);
    for (int c = 0; c < KEYS * QUERIES; c++) {
        const double p = exp(score(&page, 0, c / KEYS, c % KEYS) - (double)lse[0][c / KEYS]);
        assert_true(fabs((log2(p) + 24) / 24 * 255 - bytes[c]) < 0.51);
    }
    decode_all(text_of(head, "map"), bytes, 2 * (KEYS + QUERIES) * 2);
    assert_int_equal(count(file.bytes, "</script>"), 3);
    assert_int_equal(count(file.bytes, "<tr>"), QUERIES);
    assert_null(json_object_get(manifest, "two_texts"));
    close_page(&file, manifest);
    page.two_texts = 1;
    struct file other = write_page(&page);
    json_t *const crossing = manifest_of(&other);
    assert_true(json_is_true(json_object_get(crossing, "two_texts")));
    close_page(&other, crossing);
}

static int64_t rule_number(json_t *manifest, const char *rule, const char *field) {
    json_t *const found = json_object_get(json_object_get(manifest, "rules"), rule);
    if (!json_is_integer(json_object_get(found, field))) fail_msg("no %s of %s", field, rule);
    return json_integer_value(json_object_get(found, field));
}

/* All rules at once, with lists of one batch: the manifest has each by its name, and no other. */
static void test_rules(void **state) {
    (void)state;
    static const int64_t prefix = 2, kv_len = 8, q_len = 7, offset = -3;
    qkv_page page = make_page(9, 4, 1, 1, 0);
    page.rules = NULL;
    struct file file = write_page(&page);
    json_t *manifest = manifest_of(&file);
    assert_int_equal(json_object_size(json_object_get(manifest, "rules")), 0);
    close_page(&file, manifest);
    page.rules = &rules;
    const qkv_rule *rule;
    int n = 0;
    for (; (rule = qkv_attention_rule(n)); n++) rules.flags |= rule->flag;
    rules.flags &= ~(uint32_t)QKV_SET_SEGMENTS;
    rules.chunk = 4;
    rules.prefix_len = &prefix;
    rules.kv_len = &kv_len;
    rules.q_len = &q_len;
    rules.q_offset = 5;
    rules.q_offsets = &offset;
    file = write_page(&page);
    manifest = manifest_of(&file);
    assert_int_equal(json_object_size(json_object_get(manifest, "rules")), n - 1);
    assert_int_equal(rule_number(manifest, "window", "window_left"), 3);
    assert_int_equal(rule_number(manifest, "window", "window_right"), -1);
    assert_int_equal(rule_number(manifest, "chunk", "chunk"), 4);
    assert_int_equal(rule_number(manifest, "prefix", "prefix_len"), 2);
    assert_int_equal(rule_number(manifest, "kv_len", "kv_len"), 8);
    assert_int_equal(rule_number(manifest, "q_len", "q_len"), 7);
    assert_int_equal(rule_number(manifest, "q_offset", "q_offset"), -3);
    close_page(&file, manifest);
}

/* Softcap, ALiBi, a sink and the bits of a mask: in the file, and in the thumbnail. */
static void test_scores(void **state) {
    (void)state;
    enum { N = 11, BYTES = 2 };
    static const float sink = 0.75f, none = -INFINITY;
    static uint8_t mask[N * BYTES];
    static unsigned char bytes[4096];
    qkv_page page = make_page(N, 4, 2, 2, 0);
    page.softcap = 1.5;
    rules.flags = QKV_SET_Q_OFFSET;
    rules.q_offset = -2;
    for (int i = 0; i < N * BYTES; i++) mask[i] = (uint8_t)(i * 37 + 5);
    heads[0].mask = mask;
    heads[0].alibi = -0.125;
    heads[0].sink = &sink;
    heads[1].sink = &none;
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const head = head_of(manifest, 0);
    assert_true(json_number_value(json_object_get(manifest, "softcap")) == 1.5);
    assert_int_equal(rule_number(manifest, "q_offset", "q_offset"), -2);
    assert_true(json_number_value(json_object_get(head, "alibi")) == -0.125);
    assert_true(json_number_value(json_object_get(head, "sink")) == 0.75);
    assert_true(json_is_null(json_object_get(head_of(manifest, 1), "sink")));
    assert_null(json_object_get(head_of(manifest, 1), "mask"));
    decode_all(text_of(head, "mask"), bytes, sizeof mask);
    assert_memory_equal(bytes, mask, sizeof mask);
    decode_all(text_of(head, "thumb"), bytes, N * N);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) {
            const double s = 1.5 * tanh(score(&page, 0, i, j) / 1.5) - 0.125 * (j - i + 2),
                         level = (log2(exp(s - (double)lse[0][i])) + 24) / 24 * 255;
            const int seen = mask[i * BYTES + j / 8] >> j % 8 & 1;
            if (fabs((seen ? fmin(level, 255) : 0) - bytes[i * N + j]) > 0.51)
                fail_msg("cell %d, %d is %d, not %g", i, j, bytes[i * N + j], seen ? level : 0);
        }
    }
    close_page(&file, manifest);
}

/* Several texts: each head belongs to one, and readers without scripts have the first. */
static void test_runs(void **state) {
    (void)state;
    static const char *const other[5] = { "</script>", "b", NULL, "d", "e" };
    static const uint8_t special[5] = { 1, 0, 0, 0, 1 };
    qkv_page page = make_page(5, 4, 3, 1, 0);
    const qkv_page_text runs[2] = { { "first", page.tokens, NULL, NULL, NULL, NULL },
                                    { "<second>", other, special, NULL, NULL, NULL } };
    page.tokens = NULL;
    page.n_texts = 2;
    page.texts = runs;
    heads[1].text = heads[2].text = 1;
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const list = json_object_get(manifest, "runs");
    assert_int_equal(json_array_size(list), 2);
    assert_string_equal(text_of(json_array_get(list, 1), "name"), "<second>");
    assert_true(json_equal(json_object_get(manifest, "tokens"),
                           json_object_get(json_array_get(list, 0), "tokens")));
    json_t *const second = json_object_get(json_array_get(list, 1), "tokens");
    assert_string_equal(json_string_value(json_array_get(second, 0)), "</script>");
    assert_string_equal(json_string_value(json_array_get(second, 2)), "");
    for (int h = 0; h < 3; h++)
        assert_int_equal(json_integer_value(json_object_get(head_of(manifest, h), "run")), h > 0);
    assert_int_equal(count(file.bytes, "</script>"), 5);
    close_page(&file, manifest);
    page = make_page(5, 4, 1, 1, 0);
    file = write_page(&page);
    assert_int_equal(count(file.bytes, "\"runs\":") + count(file.bytes, "\"run\":"), 0);
    close_page(&file, NULL);
}

/* Sums over all queries, and places to go to: the largest, in order of place. */
static void test_long(void **state) {
    (void)state;
    static float received[MAX_N], distance[MAX_N], peaks[9];
    static unsigned char bytes[4 * MAX_N];
    enum { N = 300 };
    qkv_page page = make_page(N, 4, 1, 1, 0);
    for (int i = 0; i < N; i++) {
        received[i] = (float)(i * 7 % N);
        distance[i] = i < 10 ? (float)(i + 1) : 0;
    }
    for (int c = 0; c < 9; c++) peaks[c] = ldexpf(1, -c);
    heads[0].received = received;
    heads[0].distance = distance;
    heads[0].peaks = peaks;
    heads[0].side = 3;
    struct file file = write_page(&page);
    json_t *const manifest = manifest_of(&file), *const head = head_of(manifest, 0);
    decode_all(text_of(head, "received"), bytes, N * sizeof(float));
    assert_memory_equal(bytes, received, N * sizeof(float));
    assert_int_equal(json_integer_value(json_object_get(head, "peak_side")), 3);
    assert_int_equal(json_integer_value(json_object_get(head, "peak_tile")), 100);
    decode_all(text_of(head, "peaks"), bytes, 9);
    for (int c = 0; c < 9; c++) assert_int_equal(bytes[c], lround((24.0 - c) / 24 * 255));
    assert_null(json_object_get(head, "sinks")); /* all tokens are on the screen */
    close_page(&file, manifest);
    int64_t places[8];
    assert_int_equal(qkvi_page_largest(received, N, 8, places), 8);
    for (int r = 0; r < 8; r++) {
        assert_true(received[places[r]] >= N - 8);
        assert_true(r == 0 || places[r] > places[r - 1]);
    }
    assert_int_equal(qkvi_page_largest(distance, N, 64, (int64_t[64]){ 0 }), 10);
    static const float alike[5] = { 1, 1, NAN, 1, 1 };
    assert_int_equal(qkvi_page_largest(alike, 5, 2, places), 2);
    assert_int_equal(places[0] * 10 + places[1], 1); /* of equal ones the first */
}

/* ---- Refusals -------------------------------------------------------------------------------- */

static void refuse(const qkv_page *page, const char *path, qkv_status status, const char *words) {
    qkv_error error;
    qkv_page_result result = { .struct_size = sizeof result, .n_bytes = -7 };
    assert_int_equal(qkv_page_write(page, path, &result, &error), status);
    if (!strstr(error.message, words)) fail_msg("\"%s\" lacks \"%s\"", error.message, words);
    assert_int_equal(result.n_bytes, -7);
}

#define REFUSE(change, status, words)                                                              \
    do {                                                                                           \
        qkv_page page = make_page(5, 4, 2, 1, 0);                                                  \
        change;                                                                                    \
        refuse(&page, FOLDER "/b.html", status, words);                                            \
    } while (0)

static qkv_page_table make_table(void) {
    static const char *const rows[] = { "0", "</script>" }, *const columns[] = { "a", NULL, "c" };
    static const char *const cells[] = { "x", "<b>", NULL, "y", "\xFF", "" };
    static const double values[] = { 0, 0.5, NAN, -1, 1, 2 };
    static const int64_t queries[] = { 0, -1, 7 }, opens[] = { 0, 1, -1, 0, 1, -1 };
    return (qkv_page_table){ .name = "A & B",
                             .caption = "What it is",
                             .n_rows = 2,
                             .n_cols = 3,
                             .row_names = rows,
                             .col_names = columns,
                             .corner = "layer",
                             .cells = cells,
                             .values = values,
                             .value_name = "p",
                             .high = 2,
                             .is_signed = 1,
                             .queries = queries,
                             .heads = opens,
                             .others = opens };
}

/* A table is what was given; its script is in the page only with one. */
static void test_tables(void **state) {
    (void)state;
    qkv_page page = make_page(8, 4, 2, 2, 0);
    const qkv_page_table tables[] = { make_table(), make_table() };
    struct file file = write_page(&page);
    json_t *manifest = manifest_of(&file);
    assert_null(json_object_get(manifest, "tables"));
    assert_null(strstr((const char *)file.bytes, "tabs.tables ="));
    close_page(&file, manifest);
    page.n_tables = 2;
    page.tables = tables;
    page.table_bytes = sizeof *tables;
    file = write_page(&page);
    assert_non_null(strstr((const char *)file.bytes, "tabs.tables ="));
    manifest = manifest_of(&file);
    assert_int_equal(json_array_size(json_object_get(manifest, "tables")), 2);
    const json_t *const table = json_array_get(json_object_get(manifest, "tables"), 1);
    assert_string_equal(text_of(table, "name"), "A & B");
    assert_string_equal(text_of(table, "caption"), "What it is");
    assert_string_equal(text_of(table, "corner"), "layer");
    assert_string_equal(text_of(table, "value"), "p");
    assert_true(json_is_true(json_object_get(table, "signed")));
    assert_true(json_number_value(json_object_get(table, "high")) == 2);
    assert_string_equal(json_string_value(json_array_get(json_object_get(table, "rows"), 1)),
                        "</script>");
    assert_int_equal(json_array_size(json_object_get(table, "columns")), 3);
    assert_string_equal(json_string_value(json_array_get(json_object_get(table, "cells"), 1)),
                        "<b>");
    assert_int_equal(json_array_size(json_object_get(table, "cells")), 6);
    assert_true(json_is_null(json_array_get(json_object_get(table, "values"), 2)));
    assert_true(json_number_value(json_array_get(json_object_get(table, "values"), 3)) == -1);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(table, "queries"), 2)), 7);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(table, "heads"), 1)), 1);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(table, "others"), 2)), -1);
    close_page(&file, manifest);
}

static void refuse_table(qkv_page_table table, qkv_status status, const char *part) {
    qkv_page page = make_page(8, 4, 2, 2, 0);
    page.n_tables = 1;
    page.tables = &table;
    page.table_bytes = sizeof table;
    refuse(&page, FOLDER "/a.html", status, part);
}

static void test_tables_refused(void **state) {
    (void)state;
    static const int64_t far[] = { 0, -1, 8 }, wrong[] = { 0, 1, -2, 0, 1, -1 };
    qkv_page page = make_page(8, 4, 2, 2, 0);
    qkv_page_table table = make_table();
    page.n_tables = 65;
    refuse(&page, FOLDER "/a.html", QKV_ERR_SHAPE, "n_tables = 65 must be 0 to 64");
    page.n_tables = 1;
    refuse(&page, FOLDER "/a.html", QKV_ERR_ARGUMENT, "tables is NULL");
    table.n_rows = 0;
    refuse_table(table, QKV_ERR_SHAPE, "tables[0] has n_rows = 0 and n_cols = 3");
    table.n_rows = INT64_MAX;
    refuse_table(table, QKV_ERR_SHAPE, "n_rows = 9223372036854775807");
    table.n_rows = table.n_cols = 1 << 10;
    refuse_table(table, QKV_ERR_SHAPE, "their product at most 262144");
    table = make_table();
    table.col_names = NULL;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].col_names is NULL");
    table = make_table();
    table.high = NAN;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].high = nan must be finite and above 0");
    table = make_table();
    table.cells = NULL;
    table.values = NULL;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].cells and values are both NULL");
    table = make_table();
    table.heads = NULL;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].heads is NULL, others is not");
    table.others = NULL;
    table.queries = far;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].queries[2] = 8 is neither -1 nor below 8");
    table = make_table();
    table.others = wrong;
    refuse_table(table, QKV_ERR_ARGUMENT, "tables[0].others[2] = -2 is neither -1 nor below 2");
}

static void test_refusals(void **state) {
    (void)state;
    static const double places[20] = { [7] = NAN };
    refuse(NULL, FOLDER "/b.html", QKV_ERR_ARGUMENT, "page is NULL");
    REFUSE(page.tokens = NULL, QKV_ERR_ARGUMENT, "tokens is NULL");
    REFUSE(page.heads = NULL, QKV_ERR_ARGUMENT, "heads is NULL");
    REFUSE(heads[1].k = NULL, QKV_ERR_ARGUMENT, "heads[1].k is NULL");
    REFUSE(heads[0].lse = NULL, QKV_ERR_ARGUMENT, "heads[0].lse is NULL");
    REFUSE(heads[1].layer = -1, QKV_ERR_ARGUMENT, "heads[1] is layer -1, head 1");
    REFUSE(heads[1].map = places, QKV_ERR_ARGUMENT, "heads[1].pca is NULL, map is not");
    REFUSE(heads[1].map = heads[1].pca = places, QKV_ERR_ARGUMENT, "heads[1].map[7] is not finite");
    REFUSE(page.n = 0, QKV_ERR_SHAPE, "n = 0");
    REFUSE(page.n = (1 << 20) + 1, QKV_ERR_SHAPE, "n = 1048577");
    REFUSE(page.head_dim = 0, QKV_ERR_SHAPE, "head_dim = 0");
    REFUSE(page.n_heads = 0, QKV_ERR_SHAPE, "n_heads = 0");
    REFUSE(page.scale = INFINITY, QKV_ERR_ARGUMENT, "scale");
    REFUSE(rules.flags = QKV_SET_SEGMENTS | QKV_SET_CAUSAL, QKV_ERR_UNSUPPORTED,
           "rules.flags = 0x404: 0x400 are no rules of a page");
    REFUSE(rules.flags = QKV_SET_SCALE, QKV_ERR_UNSUPPORTED, "0x1 are no rules of a page");
    REFUSE(rules.flags = QKV_SET_CHUNK, QKV_ERR_ARGUMENT, "chunk = 0 is not in [1, ");
    REFUSE(rules.flags = QKV_SET_KV_LEN, QKV_ERR_ARGUMENT, "kv_len is NULL");
    REFUSE(rules.struct_size = 4, QKV_ERR_ARGUMENT, "rules.struct_size");
    static const int64_t six[1] = { 6 };
    REFUSE((rules.flags = QKV_SET_KV_LEN, rules.kv_len = six), QKV_ERR_SHAPE,
           "kv_len[0] = 6 is not in [0, 5]");
    REFUSE(page.query = 5, QKV_ERR_ARGUMENT, "query = 5");
    static const float some[9] = { 0 };
    static const qkv_page_text nameless[1] = { { 0 } };
    REFUSE(heads[1].text = 1, QKV_ERR_ARGUMENT, "heads[1].text = 1 is not one of n_texts = 0");
    REFUSE(heads[1].text = -1, QKV_ERR_ARGUMENT, "heads[1].text = -1");
    REFUSE((heads[0].peaks = some, heads[0].side = 0), QKV_ERR_SHAPE, "heads[0].side = 0 must be");
    REFUSE((heads[0].peaks = some, heads[0].side = 1025), QKV_ERR_SHAPE, "side = 1025 must be");
    REFUSE(page.n_texts = -1, QKV_ERR_SHAPE, "n_texts = -1");
    REFUSE(page.n_texts = 1 << 17, QKV_ERR_SHAPE, "n_texts = 131072");
    REFUSE(page.n_texts = 1, QKV_ERR_ARGUMENT, "texts is NULL");
    REFUSE((page.n_texts = 1, page.texts = nameless), QKV_ERR_ARGUMENT, "texts[0].tokens is NULL");
    static const qkv_page_text three = { NULL, tokens, NULL, NULL, NULL, NULL };
    static const float endless[1] = { INFINITY };
    REFUSE(page.n_queries = 3, QKV_ERR_ARGUMENT, "n_queries = 3 is not n = 5: queries is NULL");
    REFUSE(page.two_texts = 1, QKV_ERR_ARGUMENT, "queries of another text");
    REFUSE((page.queries = &three, page.n_queries = 3, page.two_texts = 1,
            rules.flags = QKV_SET_CAUSAL),
           QKV_ERR_ARGUMENT, "queries of another text");
    REFUSE(page.queries = nameless, QKV_ERR_ARGUMENT, "queries->tokens is NULL");
    REFUSE((page.queries = &three, page.n_queries = -1), QKV_ERR_SHAPE, "n_queries = -1");
    REFUSE((page.queries = &three, page.n_queries = 3, page.query = 3), QKV_ERR_ARGUMENT,
           "query = 3 is neither -1 nor below n_queries = 3");
    REFUSE((page.queries = &three, page.n_texts = 1, page.texts = &three), QKV_ERR_UNSUPPORTED,
           "queries together with n_texts = 1");
    REFUSE((rules.flags = QKV_SET_Q_OFFSET, rules.q_offset = (int64_t)1 << 49), QKV_ERR_SHAPE,
           "q_offset = 562949953421312");
    REFUSE(page.softcap = -1, QKV_ERR_ARGUMENT, "softcap = -1");
    REFUSE(page.softcap = (double)NAN, QKV_ERR_ARGUMENT, "softcap");
    REFUSE(heads[1].alibi = (double)NAN, QKV_ERR_ARGUMENT, "heads[1].alibi is not finite");
    REFUSE(heads[1].sink = endless, QKV_ERR_ARGUMENT, "heads[1].sink is neither finite");
    REFUSE((heads[0].peaks = some, heads[0].side = 2, heads[0].tile = 2), QKV_ERR_SHAPE,
           "heads[0].tile = 2");
    REFUSE(page.head_bytes = 0, QKV_ERR_ARGUMENT, "head_bytes = 0 is less than 4");
    REFUSE((page.queries = &three, page.n_queries = 3, page.text_bytes = 0), QKV_ERR_ARGUMENT,
           "text_bytes = 0 is less than 4");
    REFUSE(page.struct_size = 8, QKV_ERR_ARGUMENT, "struct_size");
    qkv_page page = make_page(5, 4, 2, 1, 0);
    refuse(&page, NULL, QKV_ERR_ARGUMENT, "path is NULL");
    refuse(&page, FOLDER "/b.htm", QKV_ERR_ARGUMENT, ".html");
    refuse(&page, FOLDER "/none/b.html", QKV_ERR_IO, "none");
    assert_int_equal(access(FOLDER "/b.html", F_OK), -1);
}

static int make_folder(void **state) {
    (void)state;
    mkdir(FOLDER, 0777);
    return 0;
}

/* Heads as a newer header has them, and as one that ends before the map had them. */
static void test_heads_of_other_sizes(void **state) {
    (void)state;
    qkv_page page = make_page(20, 4, 3, 1, 0);
    const struct file expected = write_page(&page);
    const size_t sizes[] = { sizeof *heads + 24, offsetof(qkv_page_head, map) };
    for (int s = 0; s < 2; s++) {
        char *const other = calloc(3, sizes[s]);
        assert_non_null(other);
        for (size_t h = 0; h < 3; h++)
            memcpy(other + h * sizes[s], &heads[h],
                   sizes[s] < sizeof *heads ? sizes[s] : sizeof *heads);
        page.heads = (const qkv_page_head *)(const void *)other;
        page.head_bytes = sizes[s];
        const struct file got = write_page(&page);
        assert_int_equal(got.n, expected.n);
        assert_memory_equal(got.bytes, expected.bytes, expected.n);
        free(got.bytes);
        if (s == 0) {
            other[3 * sizes[0] - 1] = 1;
            refuse(&page, FOLDER "/a.html", QKV_ERR_VERSION, "heads[2]: byte");
        }
        free(other);
    }
    free(expected.bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sha256),         cmocka_unit_test(test_base64),
        cmocka_unit_test(test_base85),         cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_hostile_tokens), cmocka_unit_test(test_policy),
        cmocka_unit_test(test_floats),         cmocka_unit_test(test_maps),
        cmocka_unit_test(test_halves),         cmocka_unit_test(test_not_finite),
        cmocka_unit_test(test_thumbnail),      cmocka_unit_test(test_mask),
        cmocka_unit_test(test_head_window),    cmocka_unit_test(test_effects),
        cmocka_unit_test(test_image),          cmocka_unit_test(test_limit),
        cmocka_unit_test(test_tables),         cmocka_unit_test(test_tables_refused),
        cmocka_unit_test(test_same_bytes),     cmocka_unit_test(test_same_bytes_of_contexts),
        cmocka_unit_test(test_refusals),       cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_runs),           cmocka_unit_test(test_long),
        cmocka_unit_test(test_offsets),        cmocka_unit_test(test_queries),
        cmocka_unit_test(test_scores),         cmocka_unit_test(test_heads_of_other_sizes),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, make_folder, NULL);
}
