#include "common/head_json.h"

#include <math.h>

#include "common/json.h"
#include <qkv/heads.h>

json_t *head_json(int64_t layer, int64_t head, const char *label, const double *numbers) {
    const qkv_head_number *number;
    json_t *object = json_set(NULL, "layer:i head:i label:t", layer, head, label);
    for (int i = 0; (number = qkv_heads_number(i)); i++) {
        const double value = numbers[i];
        if (!number->title || number->needs & QKV_NEEDS_PROBES) continue;
        json_object_set_new(object, number->name,
                            number->kind == QKV_NUMBER_PLACE && !isnan(value)
                                ? json_integer((json_int_t)value)
                                : json_number(value));
    }
    return object;
}
