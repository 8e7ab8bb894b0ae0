/* What the table of parameters, the structs bound to it and their packed weights share. */
#ifndef QKVI_ARCH_NET_PARAMS_H
#define QKVI_ARCH_NET_PARAMS_H

#include "model/arch/family.h"
#include "model/arch/net.h"

/* Everything about a stack that needs no parameters. */
qkvi_stack qkvi_stack_sizes(const qkv_model_info *info, int stack);

/* Whether sizes make a model: LIMIT, SHAPE, FORMAT. */
qkv_status qkvi_net_check_sizes(const qkv_model_info *info, const qkvi_model_family *family,
                                qkv_error *error);

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
