/* Names and labels around maps: see panels.h. */
#include "view/panels.h"

#include <math.h>
#include <stdlib.h>

double qkvi_panels_left(const qkvi_frame *frame, int64_t n_layers) {
    const qkvi_line name = { .size = 20 };
    char last[32];
    snprintf(last, sizeof last, "layer %lld", (long long)(n_layers - 1));
    return ceil(qkvi_line_width(&frame->type, last, &name)) + 20;
}

void qkvi_panels_names(const qkvi_frame *frame, const qkvi_panels *panels, double x, double y) {
    char name[32];
    qkvi_line style = { .size = 20, .color = frame->palette->faint, .align = 1 };
    for (int64_t layer = 0; layer < panels->n_layers; layer++) {
        snprintf(name, sizeof name, "layer %lld", (long long)layer);
        qkvi_line_draw(&frame->type, frame->cr, name, &style, x - 20,
                       y + (double)layer * panels->step_y + panels->height / 2);
    }
    style.align = 0.5;
    for (int64_t head = 0; head < panels->n_heads; head++) {
        snprintf(name, sizeof name, "head %lld", (long long)head);
        qkvi_line_draw(&frame->type, frame->cr, name, &style,
                       x + (double)head * panels->step_x + panels->width / 2, y - 22);
    }
}

qkv_status qkvi_panels_label(const qkvi_frame *frame, const qkvi_panels *panels, const char *label,
                             double left, double top, qkv_error *error) {
    const qkvi_line style = {
        .size = 19, .max_width = panels->label_width, .color = frame->palette->text, .align = 0.5
    };
    char *const shown = qkvi_shown(label);
    if (!shown) return qkvi_error_set(error, QKV_ERR_MEMORY, "no memory for a label");
    qkvi_line_draw(&frame->type, frame->cr, shown, &style, left + panels->width / 2,
                   top + panels->height + panels->label_band / 2);
    free(shown);
    return QKV_OK;
}
