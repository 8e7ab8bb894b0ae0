/*
 * Valid files with a few bytes changed, removed or added: readers refuse them with a message or
 * read what is there, and under sanitizers never touch what is not theirs. A failure prints its
 * number; each mutation is a function of it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/rng.h"
#include "files/file.h"
#include "files/npy.h"
#include "files/safetensors.h"
#include "model/config/config.h"

#define STORE  QKV_TEST_DATA "/files/store_data/"
#define GOLDEN QKV_TEST_DATA "/golden/"

enum { N_MUTATIONS = 3000, PURPOSE = 77 };

typedef struct bytes {
    char *at;
    size_t n;
} bytes;

static bytes load(const char *path) {
    bytes file;
    qkv_error error;
    if (qkvi_file_load(path, 1 << 22, &file.at, &file.n, &error) != QKV_OK)
        fail_msg("%s", error.message);
    return file;
}

/* Bytes that mean something to one of the parsers are likelier than the rest. */
static char interesting(qkvi_rng *rng) {
    static const char pool[] = "{}[](),:\"'\\ \n0123456789-.eEtfnul\x00\xff\x80LO<>|";
    return qkvi_rng_below(rng, 2) ? pool[qkvi_rng_below(rng, sizeof pool - 1)]
                                  : (char)qkvi_rng_below(rng, 256);
}

/* One to four changes among the first n_head bytes, where the structure is. */
static bytes mutate(const bytes *file, size_t n_head, int number) {
    qkvi_rng rng = qkvi_rng_make(1, PURPOSE, (uint64_t)number);
    bytes copy = { malloc(file->n + 8), file->n };
    assert_non_null(copy.at);
    memcpy(copy.at, file->at, file->n);
    for (uint32_t change = 1 + qkvi_rng_below(&rng, 4); change > 0 && copy.n > 0; change--) {
        const size_t head = n_head < copy.n ? n_head : copy.n;
        const size_t at = qkvi_rng_below(&rng, (uint32_t)head);
        switch (qkvi_rng_below(&rng, 8)) {
        case 0: /* remove */ memmove(copy.at + at, copy.at + at + 1, --copy.n - at); break;
        case 1: /* add */
            memmove(copy.at + at + 1, copy.at + at, copy.n - at);
            copy.at[at] = interesting(&rng);
            copy.n++;
            break;
        case 2: /* cut */ copy.n -= qkvi_rng_below(&rng, (uint32_t)copy.n) / 8; break;
        default: copy.at[at] = interesting(&rng);
        }
    }
    /* Exactly as long as it is, so that a sanitizer sees the first byte beyond. */
    char *const exact = malloc(copy.n + !copy.n);
    assert_non_null(exact);
    memcpy(exact, copy.at, copy.n);
    free(copy.at);
    return (bytes){ exact, copy.n };
}

/* QKV_OK or an error that says something. Returns 1 if it was accepted. */
static int check_outcome(int number, qkv_status status, const qkv_error *error) {
    if (status == QKV_OK) return 1;
    if (status != QKV_ERR_FORMAT && status != QKV_ERR_LIMIT && status != QKV_ERR_UNSUPPORTED &&
        status != QKV_ERR_SHAPE)
        fail_msg("mutation %d: %s \"%s\"", number, qkv_status_name(status), error->message);
    if (strlen(error->message) < 10) fail_msg("mutation %d: \"%s\"", number, error->message);
    return 0;
}

static void read_everything(const qkvi_safetensors *file) {
    for (int64_t t = 0; t < file->n_tensors; t++) {
        const qkvi_stored *const tensor = &file->tensors[t];
        float *const values = malloc(tensor->n_elems * sizeof *values + 1);
        qkv_error error;
        assert_non_null(values);
        const qkv_status status = qkvi_safetensors_read_f32(file, tensor, values, &error);
        assert_true(status == QKV_OK || status == QKV_ERR_UNSUPPORTED);
        free(values);
    }
}

static void test_safetensors(void **state) {
    (void)state;
    static const char *const names[] = { STORE "mixed.safetensors", STORE "metadata.safetensors" };
    int n_accepted = 0;
    for (int f = 0; f < 2; f++) {
        bytes file = load(names[f]);
        for (int number = 0; number < N_MUTATIONS; number++) {
            bytes mutant = mutate(&file, f == 0 ? 1000 : 200, number);
            qkvi_safetensors *opened;
            qkv_error error;
            const qkv_status status =
                qkvi_safetensors_open_memory("m", mutant.at, mutant.n, &opened, &error);
            if (check_outcome(number, status, &error)) {
                read_everything(opened);
                n_accepted++;
            }
            qkvi_safetensors_close(opened);
            free(mutant.at);
        }
        free(file.at);
    }
    /* Names may change freely, so some are valid: the test reaches the data. Most are not. */
    assert_true(n_accepted > 20 && n_accepted < N_MUTATIONS);
}

static void test_npy(void **state) {
    (void)state;
    static const char *const names[] = { STORE "f4.npy", STORE "version2.npy", STORE "i1.npy" };
    int n_accepted = 0;
    for (int f = 0; f < 3; f++) {
        bytes file = load(names[f]);
        for (int number = 0; number < N_MUTATIONS; number++) {
            bytes mutant = mutate(&file, 80, number);
            qkvi_source source;
            qkvi_npy npy;
            qkv_error error;
            assert_int_equal(qkvi_source_memory("m", mutant.at, mutant.n, &source, &error), QKV_OK);
            if (check_outcome(number, qkvi_npy_read_header(&source, &npy, &error), &error)) {
                assert_int_equal(npy.data_begin + npy.n_elems * qkvi_elem_bytes(npy.type),
                                 mutant.n);
                n_accepted++;
            }
            qkvi_source_close(&source);
            free(mutant.at);
        }
        free(file.at);
    }
    assert_true(n_accepted > 20 && n_accepted < N_MUTATIONS);
}

static void test_config(void **state) {
    (void)state;
    bytes file = load(GOLDEN "bert_old/config.json");
    int n_accepted = 0;
    for (int number = 0; number < N_MUTATIONS; number++) {
        bytes mutant = mutate(&file, file.n, number);
        qkv_model_info info;
        qkv_error error;
        if (check_outcome(number, qkvi_config_read("m", mutant.at, mutant.n, &info, &error),
                          &error)) {
            assert_true(info.hidden > 0 && info.n_heads > 0 && info.hidden % info.n_heads == 0);
            n_accepted++;
        }
        free(mutant.at);
    }
    assert_true(n_accepted > 20 && n_accepted < N_MUTATIONS);
    free(file.at);
}

/* A whole model with a mutated header: every tensor is resolved and checked against config.json. */
static void test_model(void **state) {
    (void)state;
    bytes config = load(GOLDEN "bert_old/config.json"), vocab = load(GOLDEN "bert_old/vocab.txt");
    bytes weights = load(GOLDEN "bert_old/model.safetensors");
    int n_accepted = 0;
    for (int number = 0; number < N_MUTATIONS / 10; number++) {
        bytes mutant = mutate(&weights, 5000, number);
        qkv_model *model;
        qkv_error error;
        const qkv_status status = qkv_model_open_memory(config.at, config.n, vocab.at, vocab.n,
                                                        mutant.at, mutant.n, NULL, &model, &error);
        n_accepted += check_outcome(number, status, &error);
        qkv_model_free(model);
        free(mutant.at);
    }
    assert_true(n_accepted < N_MUTATIONS / 10);
    free(config.at);
    free(vocab.at);
    free(weights.at);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_npy),
        cmocka_unit_test(test_config),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
