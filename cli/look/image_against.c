/* Two images, or one image and two models: see image_against.h. */
#include "look/image_against.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/predict.h"
#include "common/shared.h"
#include "core/os.h"
#include "look/image_term.h"
#include "sinks/page.h"

static const struct image_against *against_of(const struct seen *seen) {
    return (const struct image_against *)(const void *)seen;
}

/* What A or B is called: a file, or a model. */
static void add_name(const struct image_against *a, int m, struct caption *caption) {
    const struct image_seen *const t = &a->of[m];
    if (a->models)
        caption_add(caption, "%.200s", t->session->info->source);
    else
        caption_add_path(caption, t->path);
}

static void add_both(const struct image_against *a, struct caption *caption) {
    const struct image_seen *const t = &a->of[0];
    caption_add(caption, "A is ");
    add_name(a, 0, caption);
    caption_add(caption, ", B is ");
    add_name(a, 1, caption);
    if (a->models) {
        caption_add(caption, ", on the image ");
        caption_add_path(caption, t->path);
    } else {
        caption_add(caption, ", by %.200s", t->session->info->source);
    }
    caption_add(caption, ", %" PRId64 " tokens each", t->input->n);
}

static const char *kind_of(const struct image_against *a) {
    return a->models ? "two models" : "two images";
}

/* ---- The terminal ---------------------------------------------------------------------------- */

static char *label_of(const void *of, bool is_key, int64_t i) {
    (void)is_key;
    return strdup(((const struct image_against *)of)->of[0].text.labels[i]);
}

static void print_one(const struct image_against *a, int m, struct term *term) {
    const struct image_seen *const t = &a->of[m];
    struct caption title = { "" };
    caption_add(&title, "%c: ", m ? 'B' : 'A');
    add_name(a, m, &title);
    term_newline(term);
    term_wrap_styled(term, STYLE_BOLD, title.text);
    if (t->labels)
        labels_print(t->session, t->labels, t->options->top.set ? t->options->top.value : 3, term);
    if (t->seen.by_name) image_draw_map(term, t, t->maps + t->seen.head * image_patches(t));
}

static void print_both(const struct seen *seen, struct term *term) {
    const struct image_against *const a = against_of(seen);
    struct caption line = { "" };
    caption_add(&line, "%" PRId64 " heads on %s", a->d.n_all, kind_of(a));
    term_wrap_styled(term, STYLE_BOLD, line.text);
    line.text[0] = 0;
    what_if_caption(&a->of[0].text.what_if, &line);
    add_both(a, &line);
    term_wrap(term, line.text);
    for (int m = 0; m < 2; m++) print_one(a, m, term);
    term_newline(term);
    distances_print(&a->d, term, label_of, a);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *key_json(const void *of, int64_t key) {
    return json_text(((const struct image_against *)of)->of[0].text.labels[key]);
}

static json_t *side_json(const struct image_against *a, int m) {
    const struct image_seen *const t = &a->of[m];
    json_t *const object = json_set(NULL, "image:t model:t", t->path, t->session->info->source);
    if (t->labels) json_set(object, "classes:o", labels_json(t->session, t->labels));
    return object;
}

static void add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct image_against *const a = against_of(seen);
    if (behind) return;
    json_set(object, "a:o b:o tokens:o", side_json(a, 0), side_json(a, 1),
             tokens_json(NULL, a->of[0].input));
    what_if_json(&a->of[0].text.what_if, object);
    json_set(object, "heads:o note:s", distances_json(&a->d, key_json, a), distances_what);
}

/* ---- Pictures -------------------------------------------------------------------------------- */

static qkv_status draw_all(const struct image_against *a, const char *path, qkv_error *error) {
    struct caption title = { "" }, caption = { "" };
    caption_add(&title, "Which heads differ between %s", kind_of(a));
    what_if_caption(&a->of[0].text.what_if, &caption);
    add_both(a, &caption);
    caption_add(&caption, ". A cell is the JS of one head. %s", distances_what);
    return distances_picture(&a->d, a->of[0].options, title.text, caption.text, path, error);
}

/* The map of one head over each of both. */
static qkv_status draw_one(const struct image_against *a, const char *path, qkv_error *error) {
    const struct image_seen *const t = &a->of[0];
    const size_t n = (size_t)image_patches(t);
    struct caption title = { "" }, caption = { "" }, names[2] = { { "A: " }, { "B: " } };
    char name[48];
    float *const maps = malloc(2 * n * sizeof *maps + 1);
    if (!maps) return text_no_memory(error);
    for (int m = 0; m < 2; m++) {
        memcpy(maps + (size_t)m * n, a->of[m].maps + (size_t)t->seen.head * n, n * sizeof *maps);
        add_name(a, m, &names[m]);
    }
    const uint8_t *const images[2] = { t->tokens->rgb, a->of[1].tokens->rgb };
    const char *const labels[2] = { names[0].text, names[1].text };
    caption_add(&title, "%s: what %s looks at", t->seen.name, image_query(t, name));
    what_if_caption(&t->text.what_if, &caption);
    add_both(a, &caption);
    caption_add(&caption, ". The heads have a divergence of %.4f. %s", a->d.list[t->seen.head].mean,
                distances_what);
    qkv_image_maps picture = image_picture(t);
    picture.n_layers = 1;
    picture.n_heads = 2;
    picture.weights = maps;
    picture.labels = labels;
    picture.title = title.text;
    picture.caption = caption.text;
    picture.images = images;
    const qkv_status status = picture_image(&t->options->sink.picture, picture, path, error);
    free(maps);
    return status;
}

static qkv_status draw_heads(const struct seen *seen, const char *path, qkv_error *error) {
    return (seen->by_name ? draw_one : draw_all)(against_of(seen), path, error);
}

/* ---- The page -------------------------------------------------------------------------------- */

/* Both as texts from which a reader chooses, each with its image. */
static qkv_status add_runs(const struct image_against *a, struct page *page, qkv_error *error) {
    qkv_page_text *const runs = page_room(page, 2, sizeof *runs);
    qkv_page_image *const images = page_room(page, 2, sizeof *images);
    struct caption *const names = page_room(page, 2, sizeof *names);
    if (!runs || !images || !names) return text_no_memory(error);
    for (int m = 0; m < 2; m++) {
        const struct image_seen *const t = &a->of[m];
        caption_add(&names[m], "%s: ", m ? "B" : "A");
        add_name(a, m, &names[m]);
        images[m] = image_of_page(t);
        runs[m] = (qkv_page_text){ .name = names[m].text,
                                   .tokens = (const char *const *)t->text.labels,
                                   .special = t->input->special,
                                   .image = &images[m] };
    }
    page->desc.n_texts = 2;
    page->desc.texts = runs;
    return QKV_OK;
}

static qkv_status make_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct image_against *const a = against_of(seen);
    const qkv_heads_info *const x = a->of[0].seen.info, *const y = a->of[1].seen.info;
    const struct seen *const both[2] = { &a->of[0].seen, &a->of[1].seen };
    struct caption sources = { "" };
    if (x->head_dim != y->head_dim)
        return text_error(error, QKV_ERR_UNSUPPORTED,
                          "--against: heads have %" PRId64 " and %" PRId64
                          " channels, and those of a page as many: a picture has both",
                          x->head_dim, y->head_dim);
    add_both(a, &sources);
    what_if_caption(&a->of[0].text.what_if, &page->caption);
    caption_add(&page->caption, "%s. %s. ", a->models ? "Two models on one image" : "Two images",
                sources.text);
    caption_add_path(&page->title, a->of[0].path);
    if (!a->models) caption_add(&page->title, " and ");
    if (!a->models) caption_add_path(&page->title, a->of[1].path);
    page_rules(page, seen, &a->of[0].text.what_if);
    const qkv_status status = add_runs(a, page, error);
    return status == QKV_OK
               ? distances_page(&a->d, both, kind_of(a), sources.text, label_of, a, page, error)
               : status;
}

/* ---- Both ------------------------------------------------------------------------------------ */

/* A file that is no model in the format GGUF. */
static bool is_image_file(const char *name) {
    char room[SHARED_ROOM];
    qkvi_os_about about;
    return qkvi_os_examine(shared_path(name, room), &about) == 0 && about.kind == QKVI_OS_FILE &&
           !text_ends(name, ".gguf");
}

static int open_other(struct image_against *a, const struct session *session,
                      const struct look_options *options) {
    struct cli_common common = options->common;
    common.model = options->against;
    a->models = true;
    const int code = session_open(&a->other, session->command, &common);
    a->other.common = session->common; /* that of the caller stays */
    return code ? code : session_images(&a->other);
}

int image_against_begin(struct image_against *a, const struct session *session,
                        const struct look_options *options) {
    const bool two = is_image_file(options->against);
    int code = image_begin(&a->of[0], session, options, options->image);
    if (!code && !two) code = open_other(a, session, options);
    if (!code)
        code = image_begin(&a->of[1], two ? session : &a->other, options,
                           two ? options->against : options->image);
    if (code) return code;
    struct seen *const seen = &a->of[0].seen;
    seen->own_object = true;
    seen->print = print_both;
    seen->add_json = add_json;
    seen->draw = draw_heads;
    seen->make_page = make_page;
    return EXIT_OK;
}

static qkv_status check_shapes(const struct image_against *a, qkv_error *error) {
    const qkv_heads_info *const x = a->of[0].seen.info, *const y = a->of[1].seen.info;
    const qkv_image_tokens *const s = a->of[0].tokens, *const t = a->of[1].tokens;
    const struct session *const of[2] = { a->of[0].session, a->of[1].session };
    const int64_t n_layers[2] = { x->n_layers, y->n_layers },
                  n_heads[2] = { x->n_heads, y->n_heads };
    const qkv_status status = distances_check(of, n_layers, n_heads, error);
    if (status != QKV_OK) return status;
    if (s->rows == t->rows && s->columns == t->columns && s->n_prefix == t->n_prefix &&
        s->height == t->height && s->width == t->width)
        return QKV_OK;
    return text_error(error, QKV_ERR_SHAPE,
                      "--against: one has %" PRId64 " by %" PRId64 " patches behind %" PRId64
                      " tokens, the other %" PRId64 " by %" PRId64 " behind %" PRId64
                      ": weights are compared token by token",
                      s->rows, s->columns, s->n_prefix, t->rows, t->columns, t->n_prefix);
}

qkv_status image_against_look(struct image_against *a, qkv_error *error) {
    qkv_status status = image_look(&a->of[0], error);
    if (status == QKV_OK) status = image_look(&a->of[1], error);
    if (status == QKV_OK) status = check_shapes(a, error);
    qkv_heads *const heads[2] = { a->of[0].seen.heads, a->of[1].seen.heads };
    return status == QKV_OK
               ? distances_make(a->of[0].seen.ctx, heads, &a->of[0].options->top, &a->d, error)
               : status;
}

void image_against_free(struct image_against *a) {
    for (int m = 0; m < 2; m++) image_free(&a->of[m]);
    distances_free(&a->d);
    session_close(&a->other);
}
