/*
 * A GGUF file: its container listed, and a model in it opened: every tensor is read whole and in
 * two parts, which have the same bits, and its tokenizer encodes a sample.
 */
#include <stdlib.h>
#include <string.h>

#include "files/gguf_keys.h"
#include "files/gguf_parts.h"
#include "fuzz/fuzz.h"
#include "gguf/gguf.h"
#include "text/tokenizer_json.h"

/* What opens as a container has tensors within its bytes, and keys that can be shown. */
static bool list(const uint8_t *bytes, size_t n_bytes) {
    qkvi_gguf_parts parts;
    qkv_error error;
    if (!fuzz_accepted(qkvi_gguf_parts_memory("x", bytes, n_bytes, &parts, &error), &error)) {
        FUZZ_CHECK(parts.n_tensors == 0);
        return false;
    }
    const qkvi_gguf_file *const file = parts.files[0];
    for (int64_t k = 0; k < file->n_keys; k++) {
        char text[400];
        qkvi_gguf_show(file, &file->keys[k], text, sizeof text);
        for (const char *c = text; *c; c++) FUZZ_CHECK((unsigned char)*c >= ' ' && *c != 0x7f);
    }
    for (int64_t t = 0; t < parts.n_tensors; t++) {
        const qkvi_gguf_tensor *const tensor = parts.tensors[t];
        FUZZ_CHECK(tensor->begin <= n_bytes && tensor->n_bytes <= n_bytes - tensor->begin);
        FUZZ_CHECK(tensor->n_elems / (uint64_t)tensor->type->n_elems *
                       (uint64_t)tensor->type->n_bytes ==
                   tensor->n_bytes);
        FUZZ_CHECK(qkvi_gguf_tensor_of(&parts, tensor->name) == tensor);
    }
    qkvi_gguf_parts_close(&parts);
    return true;
}

/* Blocks of rows, as layers multiply by them, are the numbers of the tensor. */
static void read_rows(const qkvi_safetensors *file, const qkvi_stored *tensor, const float *whole,
                      float *values) {
    const qkvi_gguf_type *const type = tensor->blocks;
    const size_t n = tensor->n_elems / (size_t)type->n_elems;
    uint8_t *const blocks = fuzz_alloc(n * (size_t)type->n_bytes);
    qkv_error error;
    FUZZ_CHECK(tensor->rank == 2 && tensor->n_elems % (size_t)type->n_elems == 0);
    FUZZ_CHECK(qkvi_safetensors_read_rows(file, tensor, 0, tensor->shape[0], blocks, &error) ==
               QKV_OK);
    qkvi_gguf_to_f32(type, blocks, n, values);
    FUZZ_CHECK(memcmp(whole, values, tensor->n_elems * sizeof *whole) == 0);
    free(blocks);
}

static void read_tensor(const qkvi_safetensors *file, const qkvi_stored *tensor) {
    const size_t n = tensor->n_elems, half = n / 3;
    size_t n_elems = 1;
    qkv_error error;
    for (int d = 0; d < tensor->rank; d++) n_elems *= (size_t)tensor->shape[d];
    FUZZ_CHECK(n_elems == n);
    float *const whole = fuzz_alloc(n * sizeof *whole), *const parts =
                                                            fuzz_alloc(n * sizeof *parts);
    FUZZ_CHECK(qkvi_safetensors_read_f32(file, tensor, whole, &error) == QKV_OK);
    FUZZ_CHECK(qkvi_safetensors_read_part(file, tensor, 0, half, parts, &error) == QKV_OK);
    FUZZ_CHECK(qkvi_safetensors_read_part(file, tensor, half, n - half, parts + half, &error) ==
               QKV_OK);
    FUZZ_CHECK(memcmp(whole, parts, n * sizeof *whole) == 0);
    if (tensor->blocks) read_rows(file, tensor, whole, parts);
    free(whole);
    free(parts);
}

static void encode(const qkvi_gguf *gguf) {
    static const char sample[] = "he said: \xc3\xa9 <user> 12";
    qkv_tokenizer *tokenizer;
    qkv_error error;
    const qkv_status status = qkvi_tokenizer_read_json(&gguf->tokenizer, &tokenizer, &error);
    if (!fuzz_accepted(status, &error)) return;
    fuzz_encode(tokenizer, sample, sizeof sample - 1, NULL, 0);
    qkv_tokenizer_free(tokenizer);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkvi_gguf *gguf;
    qkv_error error;
    const bool is_container = list(bytes, n_bytes);
    if (!fuzz_accepted(qkvi_gguf_open_memory("x", bytes, n_bytes, &gguf, &error), &error)) {
        FUZZ_CHECK(!gguf);
        return 0;
    }
    FUZZ_CHECK(is_container);
    for (int64_t t = 0; t < gguf->weights->n_tensors; t++)
        read_tensor(gguf->weights, &gguf->weights->tensors[t]);
    encode(gguf);
    qkvi_gguf_close(gguf);
    return 0;
}
