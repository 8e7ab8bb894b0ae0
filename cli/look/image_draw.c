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
                    " A patch has its share of %s after all layers, if each layer is half %s "
                    "and half what was there (Abnar and Zuidema 2020).",
                    query, look_fused(t->options));
    else
        caption_add(caption, " A patch has the weight with which %s looks%s at it.", query,
                    t->query < 0 ? ", on average," : "");
    if (t->tokens->n_prefix > 0)
        caption_add(caption, " [CLS] and its like, which have no place, have the rest.");
}

qkv_image_maps image_picture(const struct image_seen *t) {
    const qkv_image_tokens *const tokens = t->tokens;
    return (qkv_image_maps){ .struct_size = sizeof(qkv_image_maps),
                             .rgb = tokens->rgb,
                             .height = tokens->height,
                             .width = tokens->width,
                             .rows = tokens->rows,
                             .columns = tokens->columns,
                             .cell_height = tokens->patch_height,
                             .cell_width = tokens->patch_width,
                             .theme = (qkv_theme)t->options->common.theme.value,
                             .opacity = t->options->opacity.value,
                             .smooth = t->options->smooth };
}

qkv_status image_draw(const struct seen *seen, const char *path, qkv_error *error) {
    const struct image_seen *const t = image_of(seen);
    const bool all = !seen->by_name && !t->options->rollout;
    struct caption title = { "" }, caption = { "" };
    make_title(t, &title);
    make_caption(t, &caption);
    qkv_image_maps maps = image_picture(t);
    maps.n_layers = all ? seen->info->n_layers : 1;
    maps.n_heads = all ? seen->info->n_heads : 1;
    maps.weights =
        t->options->rollout ? t->rollout : t->maps + (all ? 0 : seen->head) * image_patches(t);
    maps.title = title.text;
    maps.caption = caption.text;
    maps.quantity = t->options->rollout ? "share" : NULL;
    return picture_image(&seen->sink->picture, maps, path, error);
}

/* ---- The page -------------------------------------------------------------------------------- */

qkv_page_image image_of_page(const struct image_seen *t) {
    const qkv_image_tokens *const tokens = t->tokens;
    return (qkv_page_image){ .pixels = tokens->rgb,
                             .width = tokens->width,
                             .height = tokens->height,
                             .rows = tokens->rows,
                             .columns = tokens->columns,
                             .first = tokens->n_prefix };
}

qkv_status image_page(const struct seen *seen, struct page *page, qkv_error *error) {
    const struct image_seen *const t = image_of(seen);
    qkv_page_image *const image = page_room(page, 1, sizeof *image);
    if (!image) return text_no_memory(error);
    *image = image_of_page(t);
    page->desc.tokens = (const char *const *)t->text.labels;
    page->desc.special = t->input->special;
    page->desc.image = image;
    page_rules(page, seen, &t->text.what_if);
    caption_add_path(&page->title, t->path);
    caption_add(&page->caption, "%s", seen->about[0].text);
    const qkv_status status = page_heads(page, seen, seen->head, 0, error);
    return status == QKV_OK ? image_effects(t, page, error) : status;
}
