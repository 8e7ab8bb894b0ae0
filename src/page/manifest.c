/**
 * The manifest of a page, as JSON: rules of visibility, tokens, statistics of heads, thumbnails,
 * and the colours of weights, so that they are those of pictures.
 */

#include "files/encode.h"
#include "inspect/colors.h"
#include "page/base85.h"
#include "page/mask.h"
#include "page/parts.h"

static void add_key(qkvi_bytes *file, const char *key) {
    qkvi_bytes_text(file, "\"");
    qkvi_bytes_text(file, key);
    qkvi_bytes_text(file, "\":");
}

static void add_int_last(qkvi_bytes *file, const char *key, int64_t value) {
    add_key(file, key);
    qkvi_json_int(file, value);
}
static void add_int(qkvi_bytes *file, const char *key, int64_t value) {
    add_int_last(file, key, value);
    qkvi_bytes_text(file, ",");
}

static void add_real(qkvi_bytes *file, const char *key, double value) {
    add_key(file, key);
    qkvi_json_real(file, value);
    qkvi_bytes_text(file, ",");
}

static void add_text(qkvi_bytes *file, const char *key, const char *value) {
    add_key(file, key);
    qkvi_json_text(file, value);
    qkvi_bytes_text(file, ",");
}

/* "key":[...], of bytes or of 32-bit integers; nothing for NULL. */
static void add_array(qkvi_bytes *file, const char *key, const uint8_t *small, const int32_t *wide,
                      int64_t n) {
    if (small == NULL && wide == NULL) return;
    add_key(file, key);
    for (int64_t i = 0; i < n; i++) {
        qkvi_bytes_text(file, i ? "," : "[");
        qkvi_json_int(file, small ? small[i] : wide[i]);
    }
    qkvi_bytes_text(file, "],");
}

static size_t pixels_bytes(const qkv_page_image *image) {
    return image ? (size_t)(3 * image->width * image->height) : 0;
}

static void add_image(qkvi_bytes *file, const qkv_page_image *image) {
    if (image == NULL) return;
    add_key(file, "image");
    qkvi_bytes_text(file, "{");
    add_int(file, "width", image->width);
    add_int(file, "height", image->height);
    add_int(file, "rows", image->rows);
    add_int(file, "columns", image->columns);
    add_int(file, "first", image->first);
    qkvi_bytes_text(file, "\"pixels\":\"");
    qkvi_base85_add(file, image->pixels, pixels_bytes(image));
    qkvi_bytes_text(file, "\"},");
}

static void add_tokens(qkvi_bytes *file, const qkv_page_text *text, int64_t n) {
    add_key(file, "tokens");
    for (int64_t i = 0; i < n; i++) {
        qkvi_bytes_text(file, i ? "," : "[");
        qkvi_json_text(file, text->tokens[i]);
    }
    qkvi_bytes_text(file, "],");
    add_array(file, "special", text->special, NULL, n);
    add_array(file, "segment", text->segments, NULL, n);
    add_array(file, "word", NULL, text->words, n);
    add_image(file, text->image);
}

/* The text, and all of several with their names. */
static void add_texts(qkvi_bytes *file, const qkv_page *page) {
    qkv_page_text only = qkvi_page_keys(page);
    if (page->n_texts > 0) only.image = NULL; /* it is large, and each text has its own below */
    add_tokens(file, &only, page->n);
    if (page->n_texts > 0) add_key(file, "runs");
    for (int64_t r = 0; r < page->n_texts; r++) {
        qkvi_bytes_text(file, r ? ",{" : "[{");
        add_tokens(file, &page->texts[r], page->n);
        add_key(file, "name");
        qkvi_json_text(file, page->texts[r].name);
        qkvi_bytes_text(file, "}");
    }
    if (page->n_texts > 0) qkvi_bytes_text(file, "],");
    if (page->queries) {
        add_key(file, "queries");
        qkvi_bytes_text(file, "{");
        add_tokens(file, page->queries, page->n_queries);
        add_int_last(file, "n", page->n_queries);
        qkvi_bytes_text(file, "},");
    }
    add_array(file, "dropped", page->dropped, NULL, page->n);
}

/* Of a list the entry of the only batch; none of a list that is not there (page.c). */
static void add_field(qkvi_bytes *file, const qkv_attention_desc *rules,
                      const qkv_rule_field *field) {
    const void *const slot = (const char *)rules + field->offset;
    const int64_t *const value = field->per_batch ? *(const int64_t *const *)slot : slot;
    if (value) add_int(file, field->name, *value);
}

/* Each rule that is set, by its name: its fields, and when a query sees a key. */
void qkvi_page_add_rules(qkvi_bytes *file, const qkv_page *page) {
    const qkv_rule *rule;
    const char *before = "{";
    add_key(file, "rules");
    for (int r = 0; page->rules && (rule = qkv_attention_rule(r)); r++) {
        if (!(page->rules->flags & rule->flag)) continue;
        qkvi_bytes_text(file, before);
        add_key(file, rule->name);
        qkvi_bytes_text(file, "{");
        for (int f = 0; f < rule->n_fields; f++) add_field(file, page->rules, &rule->fields[f]);
        add_key(file, "definition");
        qkvi_json_text(file, rule->definition);
        qkvi_bytes_text(file, "}");
        before = ",";
    }
    qkvi_bytes_text(file, *before == '{' ? "{}," : "},");
}

static void add_ramps(qkvi_bytes *file) {
    enum { N_SAMPLES = 17 };
    add_key(file, "ramps");
    for (int theme = 0; theme < 2; theme++) {
        qkvi_bytes_text(file, theme ? "],[" : "[[");
        for (int i = 0; i < N_SAMPLES; i++) {
            const qkvi_rgb rgb = qkvi_weight_color((double)i / (N_SAMPLES - 1), theme);
            qkvi_bytes_text(file, i ? "," : "");
            qkvi_json_int(file, (int64_t)rgb.r << 16 | (int64_t)rgb.g << 8 | rgb.b);
        }
    }
    qkvi_bytes_text(file, "]],");
}

/*
 * The numbers that a page has columns for: name, title and definition once, then values for each
 * head.
 */
static void add_numbers(qkvi_bytes *file) {
    const qkv_head_number *number;
    const char *before = "[[";
    add_key(file, "numbers");
    for (int i = 0; (number = qkv_head_number_at(i)); i++) {
        if (!number->page_title) continue;
        qkvi_bytes_text(file, before);
        qkvi_json_text(file, number->name);
        qkvi_bytes_text(file, ",");
        qkvi_json_text(file, number->page_title);
        qkvi_bytes_text(file, ",");
        qkvi_json_text(file, number->formula);
        qkvi_bytes_text(file, "]");
        before = ",[";
    }
    qkvi_bytes_text(file, "],");
}

static void add_stats(qkvi_bytes *file, const double *numbers, const char *label) {
    const double key = qkv_head_number_value(numbers, "received_key");
    const char *before = "[";
    add_text(file, "label", label ? label : "");
    add_int(file, "received_key", key >= 0 ? (int64_t)key : -1);
    add_key(file, "stats");
    for (int i = 0; qkv_head_number_at(i); i++) {
        if (!qkv_head_number_at(i)->page_title) continue;
        qkvi_bytes_text(file, before);
        qkvi_json_real(file, numbers[i]);
        before = ",";
    }
    qkvi_bytes_text(file, "],");
}

static void add_map(qkvi_bytes *file, const qkv_page *page, const qkv_page_head *head) {
    const double *const places[] = { head->map, head->pca };
    for (int kind = 0; kind < 2; kind++) {
        qkvi_bytes_text(file, kind ? "\"pca\":\"" : "\"map\":\"");
        qkvi_page_map_add(file, page, places[kind]);
        qkvi_bytes_text(file, "\",");
    }
}

static void add_places(qkvi_bytes *file, const char *key, const int64_t *places, int n) {
    if (n == 0) return;
    add_key(file, key);
    for (int i = 0; i < n; i++) {
        qkvi_bytes_text(file, i ? "," : "[");
        qkvi_json_int(file, places[i]);
    }
    qkvi_bytes_text(file, "],");
}

/* Of a long text: sums over all queries, and a map that is pooled from all weights. */
static void add_long(qkvi_bytes *file, const qkv_page *page, const qkv_page_head *head) {
    if (head->received) {
        qkvi_bytes_text(file, "\"received\":\"");
        qkvi_base85_add(file, head->received, (size_t)page->n * sizeof(float));
        qkvi_bytes_text(file, "\",");
    }
    if (head->peaks == NULL) return;
    const size_t n = (size_t)qkvi_page_tiles(page, head);
    uint8_t *const levels = qkvi_malloc_array(n, 1);
    if (levels == NULL) {
        file->failed = 1;
        return;
    }
    for (size_t c = 0; c < n; c++) levels[c] = qkvi_page_level(head->peaks[c]);
    add_int(file, "peak_side", head->side);
    add_int(file, "peak_tile", qkvi_page_tile(page, head));
    qkvi_bytes_text(file, "\"peaks\":\"");
    qkvi_base85_add(file, levels, n);
    qkvi_bytes_text(file, "\",");
    free(levels);
}

/* What makes the head's scores, beside the page's own rule. */
static void add_scores(qkvi_bytes *file, const qkv_page *page, const qkv_page_head *head) {
    if (head->scale != 0) add_real(file, "scale", (double)head->scale);
    if (head->alibi != 0) add_real(file, "alibi", head->alibi);
    if (head->distance_bias) {
        const int64_t n = head->distance_before + 1 + head->distance_after;
        add_int(file, "before", head->distance_before);
        qkvi_bytes_text(file, "\"distances\":\"");
        qkvi_base85_add(file, head->distance_bias, (size_t)n * sizeof(float));
        qkvi_bytes_text(file, "\",");
    }
    if (head->sink) add_real(file, "sink", (double)*head->sink);
    if (head->has_window) {
        qkvi_bytes_text(file, "\"window\":[");
        qkvi_json_int(file, head->window_left);
        qkvi_bytes_text(file, ",");
        qkvi_json_int(file, head->window_right);
        qkvi_bytes_text(file, "],");
    }
    if (head->mask == NULL) return;
    qkvi_bytes_text(file, "\"mask\":\"");
    qkvi_base85_add(file, head->mask, (size_t)page->n_queries * qkvi_page_mask_row_bytes(page));
    qkvi_bytes_text(file, "\",");
}

static void add_effects(qkvi_bytes *file, const qkv_page *page) {
    qkvi_bytes_text(file, "\"effects\":{");
    add_text(file, "what", page->effect_of);
    if (page->effect_word) add_text(file, "word", page->effect_word);
    add_real(file, "log_p", page->effect_log_p);
    add_int_last(file, "place", page->effect_query);
    qkvi_bytes_text(file, "},");
}

static void add_head(qkvi_bytes *file, const qkv_page *page, const qkv_page_head *head,
                     const qkvi_page_measure *measure) {
    qkvi_bytes_text(file, "\n{");
    add_int(file, "layer", head->layer);
    add_int(file, "head", head->head);
    if (page->n_texts > 0) add_int(file, "run", head->text);
    add_text(file, "type", measure->half ? "f16" : "f32");
    add_real(file, "error", measure->half ? measure->error : 0);
    if (head->numbers) add_stats(file, head->numbers, head->label);
    if (head->map) add_map(file, page, head);
    if (head->map_note) add_text(file, "map_note", head->map_note);
    add_places(file, "sinks", measure->places.sinks, measure->places.n_sinks);
    add_places(file, "far", measure->places.far, measure->places.n_far);
    add_long(file, page, head);
    add_scores(file, page, head);
    if (page->effect_of) add_real(file, "effect", head->effect);
    add_int(file, "side", measure->side);
    add_int(file, "rows", measure->rows);
    qkvi_bytes_text(file, "\"thumb\":\"");
    qkvi_base85_add(file, measure->thumb, (size_t)(measure->rows * measure->side));
    qkvi_bytes_text(file, "\"}");
}

void qkvi_page_add_manifest(qkvi_bytes *file, const qkv_page *page,
                            const qkvi_page_measure *measures, int64_t n_heads) {
    qkvi_bytes_text(file, "<script type=\"application/json\" id=\"qkv-manifest\">{");
    add_text(file, "format", "qkv-page-2");
    add_text(file, "title", page->title);
    add_text(file, "caption", page->caption);
    if (page->modified) add_text(file, "modified", page->modified);
    if (page->hint) add_text(file, "hint", page->hint);
    if (page->made_by) add_text(file, "made_by", page->made_by);
    add_int(file, "n", page->n);
    add_int(file, "head_dim", page->head_dim);
    add_real(file, "scale", (double)page->scale);
    qkvi_page_add_rules(file, page);
    if (page->two_texts) qkvi_bytes_text(file, "\"two_texts\":true,");
    if (page->softcap > 0) add_real(file, "softcap", page->softcap);
    add_int(file, "query", page->query);
    if (page->effect_of) add_effects(file, page);
    if (page->n_tables > 0) qkvi_page_add_tables(file, page);
    add_texts(file, page);
    add_ramps(file);
    add_numbers(file);
    add_int(file, "omitted", page->n_heads - n_heads);
    add_key(file, "heads");
    qkvi_bytes_text(file, "[");
    for (int64_t i = 0; i < n_heads; i++) {
        if (i) qkvi_bytes_text(file, ",");
        add_head(file, page, &page->heads[i], &measures[i]);
    }
    qkvi_bytes_text(file, "]}</script>\n");
}

enum { A_TOKEN = 32, ESCAPED = 6 };

static size_t text_bytes(const qkv_page_text *text, int64_t n) {
    size_t used = (size_t)n * A_TOKEN + (text->name ? ESCAPED * strlen(text->name) : 0) +
                  qkvi_base85_chars(pixels_bytes(text->image)) + A_TOKEN;
    for (int64_t i = 0; i < n; i++)
        if (text->tokens[i]) used += ESCAPED * strlen(text->tokens[i]);
    return used;
}

size_t qkvi_page_fixed_bytes(const qkv_page *page) {
    enum { SHELL = 40000, A_ROW = 256 }; /* with the drawing */
    size_t used = SHELL + (size_t)page->n * A_TOKEN + QKVI_PAGE_PLAIN_ROWS * A_ROW;
    for (int64_t i = 0; i < page->n; i++)
        if (page->tokens[i])
            used += ESCAPED * strlen(page->tokens[i]) * (i < QKVI_PAGE_SIDE ? 3 : 1);
    for (int64_t r = 0; r < page->n_texts; r++) used += text_bytes(&page->texts[r], page->n);
    if (page->hint) used += ESCAPED * strlen(page->hint);
    if (page->made_by) used += ESCAPED * strlen(page->made_by);
    if (page->effect_of) used += ESCAPED * strlen(page->effect_of);
    if (page->effect_word) used += ESCAPED * strlen(page->effect_word);
    used += qkvi_base85_chars(pixels_bytes(page->n_texts > 0 ? NULL : page->image));
    used += qkvi_page_tables_bytes(page);
    return used + (page->queries ? 3 * text_bytes(page->queries, page->n_queries) : 0);
}
