/*
 * Kernels of the map of many points: sparse rows of affinities, and the walk down a quadtree
 * (Barnes and Hut 1986; for t-SNE van der Maaten 2014). kernels/tsne.h says what each computes.
 *
 * Neighbours in the order of the tree walk it together, a lane each. Where some are near a node and
 * others far, those that are far take it as one point and wait at the node after it for the others.
 * So each lane adds what its point alone would add, in the same order.
 */
#ifndef QKVI_TMPL_TSNE_TREE_H
#define QKVI_TMPL_TSNE_TREE_H

#include "kernels/tsne.h"
#include "kernels/vec/vec_double.h"

static void tsne_pull(int64_t n, int64_t i, const double *p, const int32_t *to, const double *xy,
                      double attract[2]) {
    const vd xi = vd_set1(xy[2 * i]), yi = vd_set1(xy[2 * i + 1]), one = vd_set1(1);
    double lanes[2][VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        vd sum_x = vd_set1(0), sum_y = vd_set1(0);
        for (int64_t j = lane; j < n + lane; j += VD_LANES) {
            const vd dx = xi - vd_gather2(xy, to + j), dy = yi - vd_gather2(xy + 1, to + j);
            const vd pw = vd_load(p + j) * (one / (one + (dx * dx + dy * dy)));
            sum_x = sum_x + pw * dx;
            sum_y = sum_y + pw * dy;
        }
        vd_store(lanes[0] + lane, sum_x);
        vd_store(lanes[1] + lane, sum_y);
    }
    attract[0] = vd_tree(lanes[0]);
    attract[1] = vd_tree(lanes[1]);
}

static double tsne_pull_cost(int64_t n, int64_t i, const double *p, const int32_t *to,
                             const double *xy) {
    const vd xi = vd_set1(xy[2 * i]), yi = vd_set1(xy[2 * i + 1]), one = vd_set1(1);
    double lanes[VD_LANES];
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        vd sum = vd_set1(0);
        for (int64_t j = lane; j < n + lane; j += VD_LANES) {
            const vd dx = xi - vd_gather2(xy, to + j), dy = yi - vd_gather2(xy + 1, to + j);
            sum = sum + vd_load(p + j) * vd_log(one + (dx * dx + dy * dy));
        }
        vd_store(lanes + lane, sum);
    }
    return vd_tree(lanes);
}

/* What has been added up for the points of some lanes. */
struct tsne_walk {
    vd x, y; /* where they are */
    vl self; /* which they are */
    vd repel_x, repel_y, w;
};

/* m points at a distance of dx, dy, for the lanes that are true in `who`. */
VD_INLINE void tsne_push_away(struct tsne_walk *walk, vl who, vd m, vd dx, vd dy, vd d2) {
    const vd w = vd_keep(who, vd_set1(1) / (vd_set1(1) + d2));
    const vd mw = m * w, push = mw * w;
    walk->repel_x = walk->repel_x + push * dx;
    walk->repel_y = walk->repel_y + push * dy;
    walk->w = walk->w + mw;
}

VD_INLINE void tsne_push_leaf(const qkvi_tsne_tree *tree, const qkvi_tsne_node *node, vl who,
                              struct tsne_walk *walk) {
    for (int64_t j = node->first; j < node->end; j++) {
        const vd dx = walk->x - vd_set1(tree->x[j]), dy = walk->y - vd_set1(tree->y[j]);
        const vl others = who & (walk->self != vl_set1(j));
        tsne_push_away(walk, others, vd_set1(1), dx, dy, dx * dx + dy * dy);
    }
}

/* A point is not among those that push it. */
VD_INLINE vd tsne_others_alike(const qkvi_tsne_node *node, vl self) {
    const vl among = (self >= vl_set1(node->first)) & (self < vl_set1(node->end));
    return vd_set1(node->n) - vd_keep(among, vd_set1(1));
}

VD_INLINE void tsne_walk_down(const qkvi_tsne_tree *tree, struct tsne_walk *walk) {
    vl from = vl_set1(0); /* the node where a lane goes on */
    for (int64_t at = 0; at < tree->n_nodes;) {
        const qkvi_tsne_node *const node = tree->nodes + at;
        const vl here = from <= vl_set1(at);
        const vd dx = walk->x - vd_set1(node->x), dy = walk->y - vd_set1(node->y);
        const vd d2 = dx * dx + dy * dy;
        const vl far = here & (d2 > vd_set1(node->near2)), near = here & ~far;
        const int any_near = vl_any(near);
        if (node->kind == QKVI_TSNE_ALIKE)
            tsne_push_away(walk, here, tsne_others_alike(node, walk->self), dx, dy, d2);
        else if (vl_any(far))
            tsne_push_away(walk, far, vd_set1(node->n), dx, dy, d2);
        if (any_near && node->kind == QKVI_TSNE_INNER) {
            from = (vl)vd_select(far, (vd)vl_set1(node->next), (vd)from);
            at++;
            continue;
        }
        if (any_near && node->kind == QKVI_TSNE_FEW) tsne_push_leaf(tree, node, near, walk);
        at = node->next;
    }
}

static void tsne_push(const qkvi_tsne_tree *tree, int64_t first, qkvi_tsne_force force[8]) {
    const vd zero = vd_set1(0);
    for (int64_t lane = 0; lane < VD_LANES; lane += VD_WIDTH) {
        struct tsne_walk walk = { vd_load(tree->x + first + lane),
                                  vd_load(tree->y + first + lane),
                                  vl_from(first + lane),
                                  zero,
                                  zero,
                                  zero };
        tsne_walk_down(tree, &walk);
        for (int l = 0; l < VD_WIDTH; l++) {
            force[lane + l].repel[0] = walk.repel_x[l];
            force[lane + l].repel[1] = walk.repel_y[l];
            force[lane + l].sum_w = walk.w[l];
        }
    }
}

#define TSNE_TREE_KERNELS tsne_pull, tsne_pull_cost, tsne_push

#endif
