/*
 * Where what `qkv look` knows goes: the terminal, an object, or a file by its ending. Here alone sinks
 * are chosen.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "common/given.h"
#include "common/named.h"
#include "look/look.h"

static qkv_status write_page(const struct look *look, const char *path, qkv_error *error) {
    if (look->windows) return windows_page(look, path, error);
    qkv_page_head *heads = calloc((size_t)look_n_heads(look) + 1, sizeof *heads);
    if (!heads) return text_no_memory(error);
    const qkv_status status =
        (look->arrays ? arrays_page : look_text_page)(look, heads, path, error);
    free(heads);
    return status;
}

static qkv_status to_json(const struct look *look, json_t **json, qkv_error *error) {
    return (look->arrays ? arrays_json : look_json)(look, json, error);
}

static qkv_status write_json(const struct look *look, const char *path, qkv_error *error) {
    json_t *object = NULL;
    const qkv_status status = to_json(look, &object, error);
    if (status == QKV_OK && !look_writes()) json_decref(object);
    return status == QKV_OK && look_writes() ? json_write_file(path, object, error) : status;
}

/* In the order of ENDINGS. */
static qkv_status (*const writers[])(const struct look *look, const char *path,
                                     qkv_error *error) = { write_page,   look_picture, look_picture,
                                                           look_picture, write_json,   look_csv,
                                                           look_npy };

/* One line about what was written, and how to see one head. */
static void tell_written(const struct look *look, const char *path) {
    const qkv_heads_choice *choice = &look->choice;
    const struct look_options *options = look->options;
    if (options->common.quiet) return;
    fputs("qkv: wrote ", stderr);
    term_print(stderr, path);
    if (look->arrays || look->given)
        ; /* the head was named, or is the sharpest */
    else if (options->plot.set)
        fprintf(stderr, ", head %" PRId64 ".%" PRId64 ": %s; --head names another", choice->layer,
                choice->head, choice->rule);
    else if (!look->alignment && given_ending(options->out, PICTURES) >= 0)
        fprintf(stderr, ", all heads; try --head %" PRId64 ".%" PRId64 ": %s", choice->layer,
                choice->head, choice->rule);
    fputc('\n', stderr);
}

/* "look-3.0", "look", "align-1", "received-3.0": what a file has, for its name. */
static void name_content(const struct look *look, char what[64]) {
    static const char *const plots[] = { "queries", "received", "offsets" };
    const struct look_options *o = look->options;
    const char *const kind = o->plot.set       ? plots[o->plot.value]
                             : look->alignment ? "align"
                                               : "look";
    int64_t layer, head;
    look_place(look, look_chosen(look), &layer, &head);
    if (look->alignment)
        snprintf(what, 64, "%s-%" PRId64, kind, look->alignment->layer);
    else if ((look->given || o->plot.set) && layer >= 0)
        snprintf(what, 64, "%s-%" PRId64 ".%" PRId64, kind, layer, head);
    else
        snprintf(what, 64, "%s", kind);
}

qkv_status look_show(const struct look *look, json_t **json, qkv_error *error) {
    const char *out = look->options->out;
    if (json) return to_json(look, json, error);
    if (!out) return (look->arrays ? arrays_print : look_print)(look, error);
    char what[64], room[NAMED_ROOM];
    name_content(look, what);
    out = named_file(out, what, look->said, room);
    const bool is_alignment = look->alignment && given_ending(out, PICTURES) >= 0;
    const qkv_status status =
        (look->options->plot.set ? look_plot
         : is_alignment          ? look_align_picture
                                 : writers[given_ending(out, ENDINGS)])(look, out, error);
    if (status == QKV_OK && look_writes()) tell_written(look, out);
    return status;
}
