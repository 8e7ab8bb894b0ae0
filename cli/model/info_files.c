/* `qkv info` of a file: an array, a list of tensors, or keys and tensors of a GGUF file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rows.h"
#include "model/model.h"
#include "qkv/files.h"

/* ---- An array ------------------------------------------------------------------------------- */

/* "[2,3]" and a line feed */
static void print_shape(const int64_t *shape, int rank) {
    putchar('[');
    for (int i = 0; i < rank; i++) printf(i ? ",%" PRId64 : "%" PRId64, shape[i]);
    puts("]");
}

int info_array(const char *name, const struct cli_common *common) {
    static const char *const types[] = { "f32", "bool", "i64" };
    qkv_array *array = NULL;
    qkv_error error;
    int code = cli_status(array_read(name, common->quiet, QKV_ARRAY_F32, &array, &error), &error);
    if (!code && common->json) {
        code = json_emit(json_set(NULL, "type:s shape:o n_elems:i", types[array->type],
                                  json_ints(array->rank, array->shape), array->n_elems));
    } else if (!code) {
        printf("type      %s, as read\nshape     ", types[array->type]);
        print_shape(array->shape, array->rank);
        printf("elements  %" PRId64 "\n", array->n_elems);
    }
    qkv_array_free(array);
    return code;
}

/* ---- A file of tensors ---------------------------------------------------------------------- */

struct tensor_listing {
    json_t *list; /* NULL: print */
    int64_t n_tensors;
};

static void tell_entry(void *user, const qkv_tensor_entry *entry) {
    struct tensor_listing *listing = user;
    listing->n_tensors++;
    if (listing->list) {
        json_array_append_new(listing->list,
                              json_set(NULL, "name:t type:s shape:o", entry->name, entry->type,
                                       json_ints(entry->rank, entry->shape)));
    } else {
        printf("%-5s %s  ", entry->type, entry->name);
        print_shape(entry->shape, entry->rank);
    }
}

int info_tensors(const char *path, const struct cli_common *common) {
    struct tensor_listing listing = { .list = common->json ? json_array() : NULL };
    qkv_error error;
    if (qkv_tensor_list(path, tell_entry, &listing, &error) != QKV_OK) {
        json_decref(listing.list);
        return cli_fail("%s", error.message);
    }
    if (common->json) return json_emit(json_set(NULL, "tensors:o", listing.list));
    printf("%" PRId64 " tensors\n", listing.n_tensors);
    return EXIT_OK;
}

/* ---- A GGUF file ----------------------------------------------------------------------------- */

/* user: a list of JSON; NULL: print. */
static void tell_key(void *user, const qkv_key_entry *entry) {
    if (user)
        json_array_append_new(user, json_set(NULL, "name:t type:s n:i value:t", entry->name,
                                             entry->type, entry->n, entry->text));
    else if (strncmp(entry->type, "array", 5) == 0)
        printf("%s = %s  (%s, %" PRId64 ")\n", entry->name, entry->text, entry->type, entry->n);
    else
        printf("%s = %s\n", entry->name, entry->text);
}

struct weight_listing {
    struct tensor_listing tensors;
    int64_t n_numbers, opened_bytes; /* of all */
};

static void tell_weight(void *user, const qkv_tensor_entry *entry) {
    struct weight_listing *listing = user;
    int64_t n = 1;
    for (int d = 0; d < entry->rank; d++) n *= entry->shape[d];
    listing->n_numbers += n;
    listing->opened_bytes += entry->opened_bytes;
    tell_entry(&listing->tensors, entry);
}

int info_gguf(const char *name, const struct cli_common *common) {
    json_t *const keys = common->json ? json_array() : NULL;
    struct weight_listing weights = { .tensors.list = common->json ? json_array() : NULL };
    qkv_error error;
    qkv_status status = qkv_key_list(name, tell_key, keys, &error);
    if (status == QKV_OK && !common->json) putchar('\n');
    if (status == QKV_OK) status = qkv_tensor_list(name, tell_weight, &weights, &error);
    if (status != QKV_OK) {
        json_decref(keys);
        json_decref(weights.tensors.list);
        return cli_fail("%s", error.message);
    }
    const int64_t bytes = weights.n_numbers * (int64_t)sizeof(float);
    if (common->json)
        return json_emit(json_set(NULL, "keys:o tensors:o opened_bytes:i opened_f32_bytes:i", keys,
                                  weights.tensors.list, weights.opened_bytes, bytes));
    printf("%" PRId64 " tensors of %" PRId64 " numbers; opened they take %.1f MB, as f32 %.1f MB\n",
           weights.tensors.n_tensors, weights.n_numbers, (double)weights.opened_bytes / 1e6,
           (double)bytes / 1e6);
    return EXIT_OK;
}
