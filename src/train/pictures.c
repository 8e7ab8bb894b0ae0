/* Pictures with labels: see pictures.h. */
#include "train/pictures.h"

#include "core/os.h"
#include "core/rng.h"
#include "files/file.h"
#include "image/prepare.h"
#include "train/corpus.h"
#include "train/run_fields.h"
#include "train/shapes.h"

enum { PURPOSE_PICTURES = 0x70696374 /* "pict" */, MOST_LABELS = 65536, HELD_OUT_EVERY = 10 };

static const int64_t most_bytes = (int64_t)1 << 31; /* of all pictures of a folder */

struct qkvi_pictures {
    int64_t side, n_labels, n; /* n: pictures of a folder; 0: they are drawn */
    char **labels;
    uint8_t *rgb;      /* [n][side][side][3] */
    int32_t *label_of; /* [n] */
    uint64_t hash;
};

void qkvi_pictures_free(qkvi_pictures *p) {
    if (!p) return;
    for (int64_t l = 0; p->labels && l < p->n_labels; l++) free(p->labels[l]);
    free(p->labels);
    free(p->rgb);
    free(p->label_of);
    free(p);
}

/* ---- Drawn ----------------------------------------------------------------------------------- */

static qkv_status name_shapes(qkvi_pictures *p, qkv_error *error) {
    p->labels = calloc(QKVI_SHAPES_LABELS, sizeof *p->labels);
    if (!p->labels) return qkvi_no_memory(error, "names of labels");
    p->n_labels = QKVI_SHAPES_LABELS;
    for (int32_t l = 0; l < QKVI_SHAPES_LABELS; l++) {
        char name[QKVI_SHAPES_NAME];
        qkvi_shapes_name(l, name);
        if (!(p->labels[l] = strdup(name))) return qkvi_no_memory(error, "names of labels");
    }
    p->hash = qkvi_hash(QKVI_HASH_START, "shapes 1", strlen("shapes 1"));
    return QKV_OK;
}

/* ---- Of a folder ----------------------------------------------------------------------------- */

/* The number of a label, which is new if none is like it. */
static qkv_status find_label(qkvi_pictures *p, const char *name, size_t n, int32_t *label,
                             qkv_error *error) {
    for (int64_t l = 0; l < p->n_labels; l++)
        if (strlen(p->labels[l]) == n && memcmp(p->labels[l], name, n) == 0) {
            *label = (int32_t)l;
            return QKV_OK;
        }
    if (p->n_labels == MOST_LABELS)
        return qkvi_error_set(error, QKV_ERR_LIMIT, "labels.tsv has more than %d labels",
                              MOST_LABELS);
    char **const labels = realloc(p->labels, (size_t)(p->n_labels + 1) * sizeof *labels);
    if (!labels) return qkvi_no_memory(error, "names of labels");
    p->labels = labels;
    if (!(labels[p->n_labels] = strndup(name, n))) return qkvi_no_memory(error, "names of labels");
    *label = (int32_t)p->n_labels++;
    return QKV_OK;
}

/* A file of the folder, not of another one. */
static qkv_status read_picture(const char *folder, const char *file, size_t n_file, int64_t side,
                               uint8_t *rgb, qkv_error *error) {
    const qkvi_image_rules rules = { .height = side, .width = side, .filter = QKVI_IMAGE_BILINEAR };
    char *const name = strndup(file, n_file);
    char *const path = name ? qkvi_path_join(folder, name) : NULL;
    qkv_image *image = NULL;
    qkv_status status = path ? QKV_OK : qkvi_no_memory(error, "a path");
    if (status == QKV_OK && (strstr(name, "..") || qkvi_os_is_absolute(name)))
        status = qkvi_error_set(error, QKV_ERR_ARGUMENT, "labels.tsv names '%s', not in its folder",
                                QKVI_PRINTABLE(128, name));
    if (status == QKV_OK) status = qkv_image_read(path, &image, error);
    if (status == QKV_OK) status = qkvi_image_prepare(&rules, image, NULL, rgb, error);
    qkv_image_free(image);
    free(path);
    free(name);
    return status;
}

static qkv_status read_all(const char *folder, const qkvi_text *text, qkvi_pictures *p,
                           qkv_error *error) {
    const size_t bytes = (size_t)(3 * p->side * p->side);
    const int64_t n = qkvi_text_n_lines(text);
    if (n > most_bytes / (int64_t)bytes)
        return qkvi_error_set(error, QKV_ERR_LIMIT,
                              "%lld pictures of %lld by %lld pixels are more than 2^31 bytes",
                              (long long)n, (long long)p->side, (long long)p->side);
    p->rgb = qkvi_malloc_array((size_t)n, bytes);
    p->label_of = qkvi_calloc_array((size_t)n, sizeof *p->label_of);
    if (!p->rgb || !p->label_of) return qkvi_no_memory(error, "pictures");
    for (p->n = 0; p->n < n; p->n++) {
        int64_t bytes_of_line;
        const char *const line = qkvi_text_line(text, p->n, &bytes_of_line);
        const char *const tab = memchr(line, '\t', (size_t)bytes_of_line);
        const size_t n_file = tab ? (size_t)(tab - line) : 0;
        const size_t n_label = tab ? (size_t)bytes_of_line - n_file - 1 : 0;
        if (n_file == 0 || n_label == 0)
            return qkvi_error_set(error, QKV_ERR_FORMAT,
                                  "labels.tsv: line %lld, blank ones not counted, is not FILE TAB "
                                  "LABEL",
                                  (long long)p->n + 1);
        QKV_TRY(find_label(p, tab + 1, n_label, &p->label_of[p->n], error));
        QKV_TRY(read_picture(folder, line, n_file, p->side, p->rgb + (size_t)p->n * bytes, error));
    }
    p->hash = qkvi_hash(qkvi_text_hash(text), p->rgb, (size_t)n * bytes);
    return QKV_OK;
}

static qkv_status read_folder(const char *folder, qkvi_pictures *p, qkv_error *error) {
    qkvi_text *text = NULL;
    char *const path = qkvi_path_join(folder, "labels.tsv");
    qkv_status status = path ? qkvi_text_open(path, &text, error) : qkvi_no_memory(error, "a path");
    if (status == QKV_OK) status = read_all(folder, text, p, error);
    qkvi_text_free(text);
    free(path);
    if (status == QKV_OK && p->n_labels < 2)
        return qkvi_error_set(error, QKV_ERR_ARGUMENT, "labels.tsv has one label: two are needed");
    return status;
}

qkv_status qkvi_pictures_open(const char *folder, int64_t side, qkvi_pictures **pictures,
                              qkv_error *error) {
    qkvi_pictures *const p = calloc(1, sizeof *p);
    *pictures = NULL;
    if (!p) return qkvi_no_memory(error, "pictures");
    p->side = side;
    const qkv_status status = folder ? read_folder(folder, p, error) : name_shapes(p, error);
    if (status == QKV_OK)
        *pictures = p;
    else
        qkvi_pictures_free(p);
    return status;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

int64_t qkvi_pictures_n_labels(const qkvi_pictures *p) { return p->n_labels; }
const char *qkvi_pictures_label(const qkvi_pictures *p, int64_t label) { return p->labels[label]; }
uint64_t qkvi_pictures_hash(const qkvi_pictures *p) { return p->hash; }

int64_t qkvi_pictures_n_held_out(const qkvi_pictures *p) {
    return p->n == 0 ? QKVI_SHAPES_HELD_OUT : p->n / HELD_OUT_EVERY;
}

/* Picture 9, 19, … of the file is held out; the others are trained on. */
static int64_t place_of(const qkvi_pictures *p, qkvi_split split, int64_t index, uint64_t seed) {
    const int64_t n_held = p->n / HELD_OUT_EVERY;
    if (split == QKVI_SPLIT_HELD_OUT && n_held > 0)
        return index % n_held * HELD_OUT_EVERY + HELD_OUT_EVERY - 1;
    qkvi_rng rng = qkvi_rng_make(seed, PURPOSE_PICTURES, (uint64_t)index);
    const int64_t drawn = (int64_t)qkvi_rng_below(&rng, (uint32_t)(p->n - n_held));
    return drawn + drawn / (HELD_OUT_EVERY - 1); /* without every tenth */
}

int32_t qkvi_pictures_draw(const qkvi_pictures *p, qkvi_split split, int64_t index, uint64_t seed,
                           uint8_t *rgb) {
    const size_t bytes = (size_t)(3 * p->side * p->side);
    if (p->n == 0) return qkvi_shapes_draw(seed, split, index, p->side, rgb);
    const int64_t place = place_of(p, split, index, seed);
    memcpy(rgb, p->rgb + (size_t)place * bytes, bytes);
    return p->label_of[place];
}
