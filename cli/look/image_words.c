/* Words about an image: on the terminal above its heads, captions, members of a JSON object. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/predict.h"
#include "look/image.h"
#include "look/image_term.h"

const char *image_query(const struct image_seen *t, char name[48]) {
    if (t->query < 0) return "all patches";
    const char *const label = t->text.labels[t->query];
    snprintf(name, 48, "%s%.32s", t->query < t->tokens->n_prefix ? "" : "patch ", label);
    return name;
}

int64_t image_peak(const struct image_seen *t, const float *map, double *sum) {
    int64_t peak = 0;
    *sum = 0;
    for (int64_t j = 0; j < image_patches(t); j++) {
        if (map[j] > map[peak]) peak = j;
        *sum += (double)map[j];
    }
    return peak;
}

static const char *patch_name(const struct image_seen *t, int64_t patch) {
    return t->text.labels[t->tokens->n_prefix + patch];
}

/* "top left", "middle": in which ninth of the picture a patch is. */
static const char *part_of(const struct image_seen *t, int64_t patch) {
    static const char *const parts[3][3] = { { "top left", "top", "top right" },
                                             { "left", "middle", "right" },
                                             { "bottom left", "bottom", "bottom right" } };
    const int64_t row = patch / t->tokens->columns, column = patch % t->tokens->columns;
    return parts[(2 * row + 1) * 3 / (2 * t->tokens->rows)]
                [(2 * column + 1) * 3 / (2 * t->tokens->columns)];
}

/* ---- Captions -------------------------------------------------------------------------------- */

static void describe_image(struct image_seen *t, struct caption *caption) {
    const qkv_image_tokens *const tokens = t->tokens;
    what_if_caption(&t->text.what_if, caption);
    caption_add(caption, "Image ");
    caption_add_path(caption, t->path);
    caption_add(caption,
                ", of which the model sees %" PRId64 " by %" PRId64 " pixels as %" PRId64
                " by %" PRId64 " patches (width by height). Model %s (%s), layers and heads "
                "counted from 0.",
                tokens->width, tokens->height, tokens->columns, tokens->rows,
                t->session->info->source, t->session->info->architecture);
}

void image_describe(struct image_seen *t) {
    struct seen *const seen = &t->seen;
    snprintf(seen->name, HEAD_NAME, "Layer %" PRId64 ", head %" PRId64, seen->choice.layer,
             seen->choice.head);
    snprintf(seen->all, sizeof seen->all, "%" PRId64 " layer%s of %" PRId64 " heads",
             seen->info->n_layers, seen->info->n_layers == 1 ? "" : "s", seen->info->n_heads);
    seen->of_heads = "";
    for (int64_t h = 0; h < seen->n_heads; h++) seen->labels[h] = ""; /* their rules are of texts */
    describe_image(t, &seen->about[0]);
    describe_image(t, &seen->about[1]);
    seen->legend = seen->about[1];
}

/* ---- The terminal ---------------------------------------------------------------------------- */

/* How many of the largest values have half of the sum. */
static int64_t count_half(const struct image_seen *t, const float *map, double sum) {
    const int64_t n = image_patches(t);
    uint8_t *const taken = calloc((size_t)n, 1);
    int64_t count = 0;
    double of = 0;
    while (taken && of < sum / 2 && count < n) {
        int64_t best = -1;
        for (int64_t j = 0; j < n; j++)
            if (!taken[j] && (best < 0 || map[j] > map[best])) best = j;
        taken[best] = 1;
        of += (double)map[best];
        count++;
    }
    free(taken);
    return count;
}

static void print_file(const struct image_seen *t, struct term *term) {
    struct caption line = { "" };
    caption_add(&line,
                "%" PRId64 " by %" PRId64 " pixels; the model sees %" PRId64 " by %" PRId64
                " of them, resized, as %" PRId64 " by %" PRId64 " patches.",
                t->image->width, t->image->height, t->tokens->width, t->tokens->height,
                t->tokens->columns, t->tokens->rows);
    term_wrap(term, line.text);
}

static void print_facts(const struct image_seen *t, struct term *term) {
    const struct seen *const seen = &t->seen;
    const float *const map = t->maps + seen->head * image_patches(t);
    struct caption head = { "" }, all = { "" };
    char name[48];
    double sum, whole;
    const int64_t peak = image_peak(t, map, &sum), most = image_peak(t, t->rollout, &whole);
    const char *const query = image_query(t, name);
    if (!t->options->rollout)
        caption_add(
            &head,
            "In head %" PRId64 ".%" PRId64 " %s looks most at the %s: patch %s has %.3f, all "
            "patches %.3f, and half of that is on %" PRId64 " of %" PRId64 ".%s",
            seen->choice.layer, seen->choice.head, query, part_of(t, peak), patch_name(t, peak),
            (double)map[peak], sum, count_half(t, map, sum), image_patches(t),
            seen->by_name ? "" : " No head of the last layer looks at a patch more.");
    caption_add(&all,
                "Through all layers (rollout%s%s) %s is made most of the %s: patch %s has %.4f, "
                "all patches %.3f, and half of that is in %" PRId64 ".",
                t->options->fuse.value ? " by " : "",
                t->options->fuse.value ? look_fused(t->options) : "", query, part_of(t, most),
                patch_name(t, most), (double)t->rollout[most], whole,
                count_half(t, t->rollout, whole));
    if (*head.text) term_wrap(term, head.text);
    term_wrap(term, all.text);
}

static void print_map(const struct image_seen *t, struct term *term) {
    const struct seen *const seen = &t->seen;
    const bool rollout = t->options->rollout;
    char name[48];
    struct caption title = { "" };
    caption_add(&title, "%s: what %s %s", rollout ? "Rollout" : seen->name, image_query(t, name),
                rollout ? "is made of after all layers" : "looks at");
    term_newline(term);
    term_styled(term, STYLE_BOLD, title.text);
    term_newline(term);
    image_draw_map(term, t, rollout ? t->rollout : t->maps + seen->head * image_patches(t));
    term_wrap_styled(term, STYLE_DIM, seen->legend.text);
}

/* With --what-if the labels of the unchanged model come first. */
static void print_labels(const struct image_seen *t, struct term *term) {
    char text[WHAT_IF_WORDS + 80] = "";
    if (t->before) {
        term_newline(term);
        term_styled(term, STYLE_BOLD, "Before");
        term_newline(term);
        labels_print(t->session, t->before, look_top(t->options), term);
    }
    if (t->text.what_if.any) {
        term_newline(term);
        text_append(text, sizeof text, "[" WHAT_IF_BADGE ": %s]", t->text.what_if.words);
        term_wrap_styled(term, STYLE_ACCENT, text);
    }
    if (!t->labels) return;
    term_newline(term);
    labels_print(t->session, t->labels, look_top(t->options), term);
}

void image_print(const struct seen *seen, struct term *term) {
    const struct image_seen *const t = image_of(seen);
    print_file(t, term);
    print_labels(t, term);
    term_newline(term);
    print_facts(t, term);
    if (!seen->by_name && !t->options->rollout) image_draw_grid(term, t);
    print_map(t, term);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A row for each row of patches. */
static json_t *map_json(const struct image_seen *t, const float *map) {
    json_t *const rows = json_array();
    for (int64_t r = 0; r < t->tokens->rows; r++)
        json_array_append_new(rows, json_floats(t->tokens->columns, map + r * t->tokens->columns));
    return rows;
}

void image_add_json(const struct seen *seen, bool behind, json_t *object) {
    const struct image_seen *const t = image_of(seen);
    const qkv_image_tokens *const tokens = t->tokens;
    char name[48];
    if (behind) {
        json_set(object, "map:o rollout:o fuse:s",
                 map_json(t, t->maps + seen->head * image_patches(t)), map_json(t, t->rollout),
                 look_fuse(t->options));
        return;
    }
    json_set(object, "image:o tokens:o query:s",
             json_set(NULL, "height:i width:i seen_height:i seen_width:i rows:i columns:i",
                      t->image->height, t->image->width, tokens->height, tokens->width,
                      tokens->rows, tokens->columns),
             json_texts(t->input->n, t->text.labels), t->query < 0 ? "all" : image_query(t, name));
    what_if_json(&t->text.what_if, object);
    if (t->labels) json_set(object, "classes:o", labels_json(t->session, t->labels));
    if (t->before) json_set(object, "classes_before:o", labels_json(t->session, t->before));
    json_set(object, "shown:o",
             json_set(NULL, "layer:i head:i", seen->choice.layer, seen->choice.head));
}
