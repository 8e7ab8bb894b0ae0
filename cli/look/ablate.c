/* Heads of a text that give 0: what that costs, and what is asked of the library (qkv/effects.h). */
#include "look/text.h"

/* Multiplications of a pass over a text, roughly, up to which one head or several are ablated. */
static const double pass_limit = 1e10, all_limit = 2e9;

/* Multiplications of linear layers over all tokens, which are most of a pass. */
static double work_of_pass(const struct text_seen *t) {
    const qkv_model_info *info = t->text.session->info;
    const double h = (double)info->hidden, n = (double)t->text.input->n;
    const double encoder =
        (double)info->n_layers * (4 * h * h + 2 * h * (double)info->intermediate);
    const double decoder =
        (double)info->n_decoder_layers * (8 * h * h + 2 * h * (double)info->decoder_intermediate);
    const double n_target = t->text.pair.next ? (double)t->text.pair.next->n : 0;
    return n * encoder + n_target * decoder;
}

bool ablation_quick(const struct text_seen *t, int64_t n) {
    const double work = work_of_pass(t);
    return n == 1 ? work <= pass_limit : work * (double)n <= all_limit;
}

qkv_effects ablation_asked(const struct text_seen *t, bool is_next) {
    qkv_effects asked = qkv_effects_init();
    asked.which = t->text.view.which;
    asked.target = t->text.pair.next ? &t->text.pair.inputs : NULL;
    asked.head = is_next ? QKV_HEAD_NEXT : QKV_HEAD_MASKED;
    return asked;
}
