/* Moments that are distributed over ranks, and gathered for checkpoints: see trainer.h. */
#include "train/trainer.h"

float *qkvi_whole_m(const qkvi_trainer *trainer) {
    return trainer->shares_moments ? trainer->grads : trainer->m;
}

/* Several ranks have several slices, and those a sum. */
float *qkvi_whole_v(const qkvi_trainer *trainer) {
    return trainer->shares_moments ? trainer->sum : trainer->v;
}

static qkv_status gather(qkvi_trainer *t, const float *own, float *whole, qkv_error *error) {
    memcpy(whole + qkvi_peers_first(&t->ranks), own, qkvi_peers_n_own(&t->ranks) * sizeof *own);
    return qkvi_peers_share(&t->ranks, whole, error);
}

qkv_status qkvi_moments_gather(qkvi_trainer *trainer, qkv_error *error) {
    if (!trainer->shares_moments) return QKV_OK;
    QKV_TRY(gather(trainer, trainer->m, qkvi_whole_m(trainer), error));
    return gather(trainer, trainer->v, qkvi_whole_v(trainer), error);
}

void qkvi_moments_take(qkvi_trainer *trainer) {
    if (!trainer->shares_moments) return;
    const size_t first = qkvi_peers_first(&trainer->ranks), n = qkvi_peers_n_own(&trainer->ranks);
    memcpy(trainer->m, qkvi_whole_m(trainer) + first, n * sizeof *trainer->m);
    memcpy(trainer->v, qkvi_whole_v(trainer) + first, n * sizeof *trainer->v);
}
