/* What the table of parameters, the structs bound to it and their packed weights share. */
#ifndef QKVI_ARCH_NET_PARAMS_H
#define QKVI_ARCH_NET_PARAMS_H

#include "model/arch/family.h"
#include "model/arch/net.h"

/* Where pointers come from while a struct is bound. */
typedef struct qkvi_binder {
    const qkv_model_info *info;
    const qkvi_param_table *table;
    float *arena;
    const qkvi_model_family *family;
    qkvi_act act;
} qkvi_binder;

/* Values of NAME + WHAT, if they are floats in the arena; NULL: there are none, or no name. */
float *qkvi_bind_at(const qkvi_binder *b, const char *name, const char *what);
/* A layer, without and with its bias; a norm. */
qkvi_linear qkvi_bind_weight(const qkvi_binder *b, const char *name, int64_t n_out, int64_t n_in);
qkvi_linear qkvi_bind_linear(const qkvi_binder *b, const char *name, int64_t n_out, int64_t n_in);
qkvi_layernorm qkvi_bind_norm(const qkvi_binder *b, const char *name, int64_t n);

/* Everything about a stack that needs no parameters. */
qkvi_stack qkvi_stack_sizes(const qkv_model_info *info, int stack);

/* Whether sizes make a model: LIMIT, SHAPE, FORMAT. */
qkv_status qkvi_net_check_sizes(const qkv_model_info *info, const qkvi_model_family *family,
                                qkv_error *error);

/* Of models that read images: what is before the blocks, and the heads (image_params.c). */
qkv_status qkvi_images_table(const qkv_model_info *info, const qkvi_model_family *family,
                             qkvi_param_table *table, qkv_error *error);
qkv_status qkvi_images_heads_table(const qkv_model_info *info, const qkvi_model_family *family,
                                   qkvi_param_table *table, qkv_error *error);
/* Pointers to them: of the stack's patches, and of the net's heads. */
void qkvi_images_bind(const qkvi_binder *binder, qkvi_stack *stack);
void qkvi_images_bind_heads(const qkvi_binder *binder, qkvi_net *net);

/* Rows of a layer's weights, of a layer, and of a norm. */
qkv_status qkvi_add_weight(qkvi_param_table *table, const char *name, int64_t n_out, int64_t n_in,
                           qkv_error *error);
qkv_status qkvi_add_linear(qkvi_param_table *table, const char *name, int64_t n_out, int64_t n_in,
                           qkv_error *error);
qkv_status qkvi_add_norm(qkvi_param_table *table, const qkvi_model_family *family, const char *name,
                         int64_t n, qkv_error *error);

/* What the classifier of a model that reads texts stands on. */
qkvi_below_classes qkvi_net_below_classes(const qkv_model_info *info);
/* Whether there is a transform: below the words of the MLM head, or below the classifier. */
bool qkvi_net_transforms(const qkv_model_info *info);

/* What a block's part is called, in name. */
const char *qkvi_block_name(char name[96], const qkvi_stack_names *names, int64_t l,
                            const char *part);

/*
 * The table of a stack's words, and that which the head for words multiplies with: one for all, or
 * their own.
 */
const char *qkvi_word_name(const qkv_model_info *info, const qkvi_model_family *family, int stack);
const char *qkvi_head_name(const qkv_model_info *info, const qkvi_model_family *family);

/* Memory for the packed forms that are asked for, none if forms is 0. */
qkv_status qkvi_net_make_packed(qkvi_net *net, unsigned forms, qkv_error *error);

#endif
