/* Pictures and the page of an image: see image.h. */

#include <stdlib.h>
#include <string.h>

#include "look/image.h"
#include "sinks/page.h"

/* ---- Pictures -------------------------------------------------------------------------------- */

static void make_title(const struct image_seen *t, struct caption *title) {
    char name[48];
    const char *const query = image_query(t, name);
    if (t->options->rollout)
        caption_add(title, "Rollout: what %s is made of after all layers", query);
    else if (t->seen.by_name)
        caption_add(title, "%s: what %s looks at", t->seen.name, query);
    else
        caption_add(title, "What %s looks at: %s", query, t->seen.all);
}

static void make_caption(const struct image_seen *t, struct caption *caption) {
    char name[48];
    const char *const query = image_query(t, name);
    caption_add(caption, "%s", t->seen.about[0].text);
    if (t->options->rollout)
        caption_add(caption,
                    " A patch has its share of %s after all layers, if each layer is half the mean "
                    "of its heads and half what was there (Abnar and Zuidema 2020).",
                    query);
    else
        caption_add(caption, " A patch has the weight with which %s looks%s at it.", query,
                    t->query < 0 ? ", on average," : "");
    if (t->tokens->n_prefix > 0)
        caption_add(caption, " [CLS] and its like, which have no place, have the rest.");
}

qkv_status image_draw(const struct seen *seen, const char *path, qkv_error *error) {
    const struct image_seen *const t = image_of(seen);
    const qkv_image_tokens *const tokens = t->tokens;
    const bool all = !seen->by_name && !t->options->rollout;
    struct caption title = { "" }, caption = { "" };
    make_title(t, &title);
    make_caption(t, &caption);
    const qkv_image_maps maps = {
        .struct_size = sizeof maps,
        .rgb = tokens->rgb,
        .height = tokens->height,
        .width = tokens->width,
        .rows = tokens->rows,
        .columns = tokens->columns,
        .cell_height = tokens->patch_height,
        .cell_width = tokens->patch_width,
        .n_layers = all ? seen->info->n_layers : 1,
        .n_heads = all ? seen->info->n_heads : 1,
        .weights =
            t->options->rollout ? t->rollout : t->maps + (all ? 0 : seen->head) * image_patches(t),
        .title = title.text,
        .caption = caption.text,
        .theme = (qkv_theme)seen->common->theme.value,
        .opacity = t->options->opacity.value,
        .smooth = t->options->smooth,
        .quantity = t->options->rollout ? "share" : NULL,
    };
    return picture_image(&seen->sink->picture, maps, path, error);
}

/* ---- The page -------------------------------------------------------------------------------- */

qkv_status image_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct image_seen *const t = image_of(seen);
    const qkv_image_tokens *const tokens = t->tokens;
    qkv_page *const p = &page->desc;
    qkv_page_image *const image = page_room(page, 1, sizeof *image);
    if (!image) return text_no_memory(error);
    *image = (qkv_page_image){ .pixels = tokens->rgb,
                               .width = tokens->width,
                               .height = tokens->height,
                               .rows = tokens->rows,
                               .columns = tokens->columns,
                               .first = tokens->n_prefix };
    p->tokens = (const char *const *)t->text.labels;
    p->special = t->input->special;
    p->image = image;
    char *const file = term_escape(t->options->image, strlen(t->options->image));
    text_append(page->title.text, PAGE_TITLE, "%.180s", file ? file : "");
    free(file);
    caption_add(&page->caption, "%s", seen->about[0].text);
    return page_heads(page, seen, seen->head, 0, error);
}
