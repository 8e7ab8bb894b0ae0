/*
 * Hostile sets of files (ST40 of docs/hostile-inputs.md): the index of each row, beside shards that
 * are valid, invalid, missing, or no regular files. one.safetensors has the tensors a and b,
 * two.safetensors c, again.safetensors a; spare.safetensors has d and e, which a map may leave out.
 */
#include "hostile/cage.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file.h"
#include "files/shards.h"
#include "model/model_impl.h"
#include "model/weights/resolver.h"
#include "qkv/files.h"

#define OLD   QKV_TEST_DATA "/golden/bert_old"
#define INDEX "model.safetensors.index.json"

/* ---- Rows ------------------------------------------------------------------------------------ */

#define MAP(pairs)    HOSTILE_WHOLE("{\"metadata\":{\"total_size\":12},\"weight_map\":{" pairs "}}")
#define REPEATED      HOSTILE_REPEATED
#define A             "\"a\":\"one.safetensors\""
#define SHARD(name)   MAP("\"a\":\"" name "\"")
#define NO_PLAIN_NAME "is not the plain name of a .safetensors file in the same folder"

static const hostile_file cases[] = {
    { "ST40", "one shard", QKV_OK, "", MAP(A ",\"b\":\"one.safetensors\"") },
    { "ST40", "two shards", QKV_OK, "", MAP(A ",\"c\":\"two.safetensors\"") },
    { "ST40", "no metadata, other keys", QKV_OK, "",
      HOSTILE_WHOLE("{\"x\":[1.5,null],\"weight_map\":{" A "}}") },
    { "ST40", "tensors that the map does not know", QKV_OK, "",
      MAP(A ",\"d\":\"spare.safetensors\"") },
    { "ST40", "a size that is a lie", QKV_OK, "",
      HOSTILE_WHOLE("{\"metadata\":{\"total_size\":1e99},\"weight_map\":{" A "}}") },

    { "ST40", "one tensor in two shards", QKV_ERR_FORMAT,
      "tensor 'a' is in two shards, again.safetensors and one.safetensors",
      MAP(A ",\"b\":\"again.safetensors\"") },
    { "ST40", "one tensor in two shards, though the map uses other tensors", QKV_ERR_FORMAT,
      "tensor 'a' is in two shards", MAP("\"b\":\"one.safetensors\",\"a\":\"again.safetensors\"") },
    { "ST40", "a shard under two names", QKV_ERR_FORMAT,
      "tensor 'a' is in two shards, link.safetensors and one.safetensors",
      MAP(A ",\"b\":\"link.safetensors\"") },
    { "ST40", "a tensor that is nowhere", QKV_ERR_FORMAT,
      "tensor 'z' is not in one.safetensors as weight_map says",
      MAP(A ",\"z\":\"one.safetensors\"") },
    { "ST40", "a tensor in another shard", QKV_ERR_FORMAT,
      "tensor 'c' is not in one.safetensors as weight_map says, but in two.safetensors",
      MAP("\"c\":\"one.safetensors\",\"a\":\"two.safetensors\"") },
    { "ST40", "a tensor in another shard, escaped", QKV_ERR_FORMAT, "tensor 'z\\x0a' is not in",
      MAP(A ",\"z\\n\":\"one.safetensors\"") },
    { "ST40", "a tensor twice in the map", QKV_ERR_FORMAT, "duplicate",
      MAP(A ",\"\\u0061\":\"two.safetensors\"") },
    { "ST40", "a missing shard", QKV_ERR_IO, "none.safetensors: cannot open",
      MAP(A ",\"b\":\"none.safetensors\"") },

    { "ST40", "an absolute path", QKV_ERR_FORMAT, "weight_map['a'] = '/etc/x.safetensors' is not",
      SHARD("/etc/x.safetensors") },
    { "ST40", "a path upwards", QKV_ERR_FORMAT, "'../one.safetensors' " NO_PLAIN_NAME,
      SHARD("../one.safetensors") },
    { "ST40", "a path downwards", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("sub/one.safetensors") },
    { "ST40", "the folder's own name", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("./one.safetensors") },
    { "ST40", "two dots", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("..safetensors") },
    { "ST40", "a hidden file", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD(".safetensors") },
    { "ST40", "a backslash", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("..\\\\one.safetensors") },
    { "ST40", "no name", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("") },
    { "ST40", "a control character", QKV_ERR_FORMAT, "'\\x1b[2J.safetensors' " NO_PLAIN_NAME,
      SHARD("\\u001b[2J.safetensors") },
    { "ST40", "a zero byte", QKV_ERR_FORMAT, "line 1", SHARD("one.safetensors\\u0000x") },
    { "ST40", "another kind of file", QKV_ERR_FORMAT, NO_PLAIN_NAME, SHARD("pytorch_model.bin") },
    { "ST40", "itself", QKV_ERR_FORMAT, "'" INDEX "' " NO_PLAIN_NAME, SHARD(INDEX) },
    { "ST40", "another index behind the name of a shard", QKV_ERR_FORMAT,
      "index.safetensors: header length", SHARD("index.safetensors") },
    { "ST40", "a name of 256 bytes", QKV_ERR_FORMAT, NO_PLAIN_NAME,
      REPEATED("{\"weight_map\":{\"a\":\"", "x", ".safetensors\"}}", 244) },
    { "ST40", "a name of 255 bytes", QKV_ERR_IO, "cannot open",
      REPEATED("{\"weight_map\":{\"a\":\"", "x", ".safetensors\"}}", 243) },

    { "ST40", "a loop of links", QKV_ERR_IO, "loop.safetensors: cannot open",
      SHARD("loop.safetensors") },
    { "ST40", "a folder", QKV_ERR_IO, "folder.safetensors: cannot read",
      SHARD("folder.safetensors") },
    { "ST40", "a pipe", QKV_ERR_IO, "pipe.safetensors: is not a regular file",
      SHARD("pipe.safetensors") },
    { "ST40", "a device", QKV_ERR_IO, "device.safetensors: is not a regular file",
      SHARD("device.safetensors") },
    { "ST40", "an empty shard", QKV_ERR_FORMAT, "empty.safetensors: 0 bytes are too few",
      SHARD("empty.safetensors") },
    { "ST40", "a broken shard", QKV_ERR_FORMAT, "broken.safetensors: header length",
      SHARD("broken.safetensors") },

    { "ST40", "no map", QKV_ERR_FORMAT, "weight_map is missing", HOSTILE_WHOLE("{}") },
    { "ST40", "a map that is a list", QKV_ERR_FORMAT, "weight_map is not an object",
      HOSTILE_WHOLE("{\"weight_map\":[]}") },
    { "ST40", "an empty map", QKV_ERR_FORMAT, "weight_map is empty", MAP("") },
    { "ST40", "two maps", QKV_ERR_FORMAT, "duplicate",
      HOSTILE_WHOLE("{\"weight_map\":{" A "},\"weight_map\":{" A "}}") },
    { "ST40", "a shard that is a number", QKV_ERR_FORMAT, "weight_map['a'] is not a string",
      MAP("\"a\":1") },
    { "ST40", "a shard that is a list", QKV_ERR_FORMAT, "weight_map['a'] is not a string",
      MAP("\"a\":[\"one.safetensors\"]") },
    { "ST40", "no JSON", QKV_ERR_FORMAT, "line 1", HOSTILE_WHOLE("weights") },
    { "ST40", "no bytes", QKV_ERR_FORMAT, INDEX, HOSTILE_WHOLE("") },
    { "ST40", "a list", QKV_ERR_FORMAT, "is not an object", HOSTILE_WHOLE("[1]") },
    { "ST40", "a million '['", QKV_ERR_FORMAT, "deeper than 16 levels",
      REPEATED("{\"weight_map\":", "[", "}", 1000000) },
    { "ST40", "a million values", QKV_ERR_LIMIT, "more than 300000 values",
      REPEATED("{\"weight_map\":[", "1,", "1]}", 1000000) },
    { "ST40", "an index of 17 MB", QKV_ERR_LIMIT, "the limit is 16777216",
      REPEATED("{\"x\":\"", "1234567890", "\"}", 1700000) },
};

/* ---- The folder ------------------------------------------------------------------------------ */

static void put_tensors(const char *name, const char *const *tensors, int64_t n,
                        const char *metadata) {
    static const float value[] = { 1 };
    qkvi_stored_out out[4];
    qkv_error error;
    char path[512];
    for (int64_t t = 0; t < n; t++)
        out[t] = (qkvi_stored_out){ tensors[t], QKVI_F32, 1, { 1 }, value };
    if (qkvi_safetensors_write(hostile_path(path, name), out, n, metadata ? "alias" : NULL,
                               metadata, &error))
        fail_msg("%s", error.message);
}

static void put_text(const char *name, const char *text) {
    char path[512];
    qkv_error error;
    assert_int_equal(qkvi_file_save(hostile_path(path, name), text, strlen(text), &error), QKV_OK);
}

static const char *const all[] = { "a", "b", "c", "d", "e" };

static void put_shards(void) {
    char path[512];
    put_tensors("one.safetensors", all, 2, "a");
    put_tensors("two.safetensors", all + 2, 1, "b");
    put_tensors("again.safetensors", all, 1, NULL);
    put_tensors("spare.safetensors", all + 3, 2, NULL);
    put_text("empty.safetensors", "");
    put_text("broken.safetensors", "12345678");
    put_text("index.safetensors", "{\"weight_map\":{" A "}}");
    assert_int_equal(symlink("one.safetensors", hostile_path(path, "link.safetensors")), 0);
    assert_int_equal(symlink("loop.safetensors", hostile_path(path, "loop.safetensors")), 0);
    assert_int_equal(symlink("/dev/zero", hostile_path(path, "device.safetensors")), 0);
    assert_int_equal(mkdir(hostile_path(path, "folder.safetensors"), 0700), 0);
    assert_int_equal(mkfifo(hostile_path(path, "pipe.safetensors"), 0600), 0);
}

static void remove_shards(void) {
    static const char *const names[] = { "one",   "two",  "again", "spare",  "empty",  "broken",
                                         "index", "link", "loop",  "device", "folder", "pipe" };
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        char path[512], name[64];
        snprintf(name, sizeof name, "%s.safetensors", names[n]);
        remove(hostile_path(path, name));
    }
}

static void count(void *user, const qkv_tensor_entry *entry) {
    *(int64_t *)user += entry->name[0] != '\0';
}

static qkv_status read_index(const char *path, qkv_error *error) {
    int64_t n = 0;
    const qkv_status status = qkv_tensor_list(path, count, &n, error);
    return (status == QKV_OK) == (n > 0) ? status : HOSTILE_BROKEN;
}

static qkv_status read_path(const void *path, qkv_error *error) { return read_index(path, error); }

/* ---- Sets as models -------------------------------------------------------------------------- */

enum { MOST = 100 };

/* The tensors of the small BERT, and in which of n shards each is put. */
typedef struct split {
    qkvi_stored_out tensors[MOST];
    void *raw[MOST];
    qkvi_safetensors *file;
    int64_t n;
} split;

static split *load_split(void) {
    split *const s = calloc(1, sizeof *s);
    qkv_error error;
    if (qkvi_safetensors_open(OLD "/model.safetensors", &s->file, &error))
        fail_msg("%s", error.message);
    for (s->n = 0; s->n < s->file->n_tensors; s->n++) {
        const qkvi_stored *const from = &s->file->tensors[s->n];
        s->raw[s->n] = malloc((size_t)(from->end - from->begin) + 1);
        assert_int_equal(qkvi_safetensors_read_raw(s->file, from, s->raw[s->n], &error), QKV_OK);
        s->tensors[s->n] =
            (qkvi_stored_out){ from->name, from->type, from->rank, { 0 }, s->raw[s->n] };
        memcpy(s->tensors[s->n].shape, from->shape, sizeof from->shape);
    }
    return s;
}

static void free_split(split *s) {
    for (int64_t t = 0; t < s->n; t++) free(s->raw[t]);
    qkvi_safetensors_close(s->file);
    free(s);
}

static void copy_beside(const char *name) {
    char path[512], *bytes;
    size_t n;
    qkv_error error;
    snprintf(path, sizeof path, OLD "/%s", name);
    assert_int_equal(qkvi_file_load(path, 1 << 20, &bytes, &n, &error), QKV_OK);
    assert_int_equal(qkvi_file_save(hostile_path(path, name), bytes, n, &error), QKV_OK);
    free(bytes);
}

/* Writes the tensors t with t * 7 % n_shards == s to shard s, and the index. */
static void put_split(const split *s, int n_shards, const char *const metadata[2]) {
    char path[512], name[64];
    qkv_error error;
    FILE *const index = fopen(hostile_path(path, INDEX), "wb");
    assert_non_null(index);
    fprintf(index, "{\"weight_map\":{");
    for (int shard = 0, first = 1; shard < n_shards; shard++) {
        static qkvi_stored_out out[MOST];
        int64_t n = 0;
        snprintf(name, sizeof name, "part-%d.safetensors", shard);
        for (int64_t t = 0; t < s->n; t++) {
            if (t * 7 % n_shards != shard) continue;
            out[n++] = s->tensors[t];
            if (s->tensors[t].type == QKVI_U8) continue; /* the map does not know it */
            fprintf(index, "%s\"%s\":\"%s\"", first ? "" : ",", s->tensors[t].name, name);
            first = 0;
        }
        if (qkvi_safetensors_write(hostile_path(path, name), out, n, metadata ? metadata[0] : NULL,
                                   metadata ? metadata[1] : NULL, &error))
            fail_msg("%s", error.message);
    }
    fprintf(index, "}}");
    fclose(index);
    copy_beside("config.json");
    copy_beside("vocab.txt");
}

static void remove_split(int n_shards) {
    char path[512], name[64];
    for (int shard = 0; shard < n_shards; shard++) {
        snprintf(name, sizeof name, "part-%d.safetensors", shard);
        unlink(hostile_path(path, name));
    }
    unlink(hostile_path(path, INDEX));
    unlink(hostile_path(path, "model.safetensors"));
    unlink(hostile_path(path, "config.json"));
    unlink(hostile_path(path, "vocab.txt"));
}

static void test_as_one_file(void **state) {
    static const int shards[] = { 1, 2, 5, 43 };
    split *const s = load_split();
    qkv_model *plain, *model;
    qkv_error error;
    assert_int_equal(qkv_model_open(OLD, NULL, &plain, &error), QKV_OK);
    for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
        put_split(s, shards[i], NULL);
        if (qkv_model_open(*state, NULL, &model, &error)) fail_msg("%s", error.message);
        assert_memory_equal(model->arena, plain->arena, plain->params.n_elems * sizeof(float));
        for (int64_t f = 0; f < shards[i]; f++) assert_non_null(qkv_model_file(model, f));
        assert_null(qkv_model_file(model, shards[i]));
        qkv_model_free(model);
        remove_split(shards[i]);
    }
    qkv_model_free(plain);
    free_split(s);
}

static qkv_status open_model(const void *folder, qkv_error *error) {
    qkv_model *model = (qkv_model *)1;
    const qkv_status status = qkv_model_open(folder, NULL, &model, error);
    if (status != QKV_OK) return model ? HOSTILE_BROKEN : status;
    qkv_model_free(model);
    return QKV_OK;
}

/* What is missing is missing from the set, what is wrong is wrong in its shard. */
static void test_wrong_tensors(void **state) {
    split *const s = load_split();
    int64_t wanted = 0;
    while (strncmp(s->tensors[wanted].name, "bert.encoder.layer.1", 20) != 0) wanted++;
    s->tensors[wanted].name = "strange";
    put_split(s, 3, NULL);
    hostile_expect("ST40 missing", open_model, *state, QKV_ERR_FORMAT,
                   INDEX ": tensor 'bert.encoder.layer.1");
    remove_split(3);
    s->tensors[wanted].name = s->file->tensors[wanted].name;
    int64_t at = 0;
    while (s->tensors[at].rank != 2 || s->tensors[at].shape[0] == s->tensors[at].shape[1]) at++;
    const int64_t rows = s->tensors[at].shape[0];
    s->tensors[at].shape[0] = s->tensors[at].shape[1];
    s->tensors[at].shape[1] = rows;
    char says[64];
    snprintf(says, sizeof says, "part-%d.safetensors: tensor '", (int)(at * 7 % 3));
    put_split(s, 3, NULL);
    hostile_expect("ST40 wrong shape", open_model, *state, QKV_ERR_SHAPE, says);
    remove_split(3);
    free_split(s);
}

static void test_unused_and_single(void **state) {
    split *const s = load_split();
    qkv_model *model;
    qkv_error error;
    char path[512];
    static const uint8_t bytes[3];
    s->tensors[s->n] = (qkvi_stored_out){ "strange\n", QKVI_U8, 1, { 3 }, bytes };
    s->raw[s->n] = NULL;
    s->n++;
    put_split(s, 2, NULL);
    if (qkv_model_open(*state, NULL, &model, &error)) fail_msg("%s", error.message);
    snprintf(path, sizeof path, "strange\\x0a in part-%d.safetensors", (int)((s->n - 1) * 7 % 2));
    assert_string_equal(qkv_model_unused(model, 0), path);
    assert_null(qkv_model_unused(model, 1));
    qkv_model_free(model);
    copy_beside("model.safetensors"); /* one file is read, and the index is not looked at */
    assert_int_equal(qkvi_file_save(hostile_path(path, INDEX), "x", 1, &error), QKV_OK);
    if (qkv_model_open(*state, NULL, &model, &error)) fail_msg("%s", error.message);
    assert_string_equal(qkv_model_file(model, 0), "model.safetensors");
    assert_null(qkv_model_file(model, 1));
    qkv_model_free(model);
    remove_split(2);
    free_split(s);
}

/* An alias of one shard names a tensor of another; of two that disagree none is believed. */
static void test_aliases(void **state) {
    static const qkvi_spelling spelling = { .prefix = "bert." };
    char path[512];
    qkvi_safetensors *set;
    qkvi_resolver resolver;
    qkv_error error;
    (void)state;
    put_text(INDEX, "{\"weight_map\":{" A ",\"d\":\"spare.safetensors\"}}");
    if (qkvi_weights_open(hostile_path(path, INDEX), &set, &error)) fail_msg("%s", error.message);
    assert_int_equal(qkvi_resolver_make(set, &spelling, &resolver, &error), QKV_OK);
    assert_ptr_equal(qkvi_resolve(&resolver, "alias"), qkvi_safetensors_find(set, "a"));
    qkvi_resolver_free(&resolver);
    qkvi_safetensors_close(set);
    put_text(INDEX, "{\"weight_map\":{" A ",\"c\":\"two.safetensors\"}}");
    if (qkvi_weights_open(path, &set, &error)) fail_msg("%s", error.message);
    assert_int_equal(qkvi_resolver_make(set, &spelling, &resolver, &error), QKV_OK);
    assert_null(qkvi_resolve(&resolver, "alias"));
    qkvi_resolver_free(&resolver);
    qkvi_safetensors_close(set);
    unlink(path);
}

static void test_number_of_shards(void **state) {
    (void)state;
    static const struct {
        int n;
        qkv_status status;
        const char *says;
    } rows[] = { { 512, QKV_ERR_IO, "s00000.safetensors: cannot open" },
                 { 513, QKV_ERR_LIMIT, "513 shards, the limit is 512" } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char path[512];
        FILE *const index = fopen(hostile_path(path, INDEX), "wb");
        assert_non_null(index);
        fprintf(index, "{\"weight_map\":{");
        for (int i = 0; i < rows[r].n; i++)
            fprintf(index, "%s\"%d\":\"s%05d.safetensors\"", i ? "," : "", i, i);
        fprintf(index, "}}");
        fclose(index);
        hostile_expect("ST40 shards", read_path, path, rows[r].status, rows[r].says);
        unlink(path);
    }
}

int main(void) {
    const hostile_family family = {
        "hostile_shards", INDEX,        read_index, cases, sizeof cases / sizeof *cases,
        put_shards,       remove_shards
    };
    const struct CMUnitTest others[] = {
        { "ST40 a set is as one file", test_as_one_file, NULL, NULL, NULL },
        { "ST40 wrong tensors", test_wrong_tensors, NULL, NULL, NULL },
        { "ST40 unused tensors, one file before several", test_unused_and_single, NULL, NULL,
          NULL },
        { "ST40 number of shards", test_number_of_shards, NULL, NULL, NULL },
        { "ST40 aliases", test_aliases, NULL, NULL, NULL },
    };
    return hostile_main(&family, others, sizeof others / sizeof *others);
}
