/** Drawing a chart, after its checks (chart_check.c). */
#ifndef QKVI_VIEW_CHART_H
#define QKVI_VIEW_CHART_H

#include "view/frame.h"

enum { QKVI_MAX_PANELS = 4 };

/** Draws a chart that has been checked, and writes its file. */
qkv_status qkvi_chart_draw(qkvi_frame *frame, const qkv_chart *chart, qkv_error *error);
/** Does the path end in .csv? NULL is allowed. */
int qkvi_chart_is_table(const char *path);

#endif
