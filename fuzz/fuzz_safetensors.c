/*
 * A .safetensors file: opened, every tensor found by its name and read, every parameter name of a
 * small BERT resolved. What opens must tile its data section without hole or overlap.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "model/arch/family.h"

static void read_tensor(const qkvi_safetensors *file, const qkvi_stored *tensor) {
    const size_t stored_bytes = (size_t)(tensor->end - tensor->begin);
    size_t n_elems = 1;
    qkv_error error;
    FUZZ_CHECK(tensor->rank >= 0 && tensor->rank <= QKVI_MAX_RANK);
    for (int d = 0; d < tensor->rank; d++) n_elems *= (size_t)tensor->shape[d];
    FUZZ_CHECK(n_elems == tensor->n_elems);
    FUZZ_CHECK(stored_bytes == n_elems * qkvi_elem_bytes(tensor->type));
    FUZZ_CHECK(qkvi_safetensors_find(file, tensor->name) == tensor);

    void *const raw = fuzz_alloc(stored_bytes);
    FUZZ_CHECK(qkvi_safetensors_read_raw(file, tensor, raw, &error) == QKV_OK);
    FUZZ_CHECK(memcmp(raw, file->source.bytes + tensor->begin, stored_bytes) == 0);
    free(raw);

    float *const floats = fuzz_alloc(n_elems * sizeof *floats);
    const qkv_status status = qkvi_safetensors_read_f32(file, tensor, floats, &error);
    FUZZ_CHECK(fuzz_accepted(status, &error) == (qkvi_elem_is_float(tensor->type) != 0));
    free(floats);
}

static void resolve(const qkvi_safetensors *file) {
    static const char *const names[] = { "bert.embeddings.word_embeddings.weight",
                                         "bert.encoder.layer.0.attention.output.LayerNorm.bias",
                                         "cls.predictions.decoder.weight", "cls.predictions.bias",
                                         "cls.seq_relationship.weight" };
    qkvi_resolver resolver;
    qkv_error error;
    char **unused;
    int64_t n_unused;
    FUZZ_CHECK(qkvi_resolver_make(file, &qkvi_family_of("bert")->spelling, &resolver, &error) ==
               QKV_OK);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const qkvi_stored *const tensor = qkvi_resolve(&resolver, names[i]);
        FUZZ_CHECK(!tensor ||
                   (tensor >= file->tensors && tensor < file->tensors + file->n_tensors));
        qkvi_resolver_skip(&resolver, tensor);
    }
    FUZZ_CHECK(qkvi_resolver_unused(&resolver, &unused, &n_unused, &error) == QKV_OK);
    for (int64_t i = 0; i < n_unused; i++) free(unused[i]);
    free(unused);
    qkvi_resolver_free(&resolver);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes) {
    qkvi_safetensors *file;
    qkv_error error;
    const qkv_status status = qkvi_safetensors_open_memory("x", bytes, n_bytes, &file, &error);
    if (!fuzz_accepted(status, &error)) {
        FUZZ_CHECK(!file);
        return 0;
    }
    uint64_t data_bytes = 0, header_bytes = 0;
    memcpy(&header_bytes, bytes, sizeof header_bytes);
    for (int64_t i = 0; i < file->n_tensors; i++) {
        data_bytes += file->tensors[i].end - file->tensors[i].begin;
        read_tensor(file, &file->tensors[i]);
    }
    FUZZ_CHECK(8 + header_bytes + data_bytes == n_bytes);
    resolve(file);
    qkvi_safetensors_close(file);
    return 0;
}
