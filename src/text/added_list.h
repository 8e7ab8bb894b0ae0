/**
 * The added tokens of a folder, and their ids, as transformers 5 finds them:
 *
 *     base    added_tokens of a tokenizer.json that is taken as it is
 *     listed  added_tokens_decoder of tokenizer_config.json; without it added_tokens.json, then
 *             added_tokens of tokenizer.json; in the order of their ids
 *     named   special tokens that are in neither; then extra_special_tokens
 *
 * They are added in this order. A token of the vocabulary keeps its id; any other one gets the next
 * id, counted from the number of tokens of the vocabulary (which may be in use, if the ids of the
 * vocabulary have gaps). A later entry replaces the switches of an earlier one, but a special token
 * stays special. If a file gives a token another id than these rules, it is refused; only Marian's
 * class takes ids as they are listed.
 *
 * added_list.c reads base and listed; added_names.c reads named, and adds all tokens.
 */
#ifndef QKVI_TEXT_ADDED_LIST_H
#define QKVI_TEXT_ADDED_LIST_H

#include "text/settings.h"

enum { QKVI_FROM_BASE, QKVI_FROM_LIST, QKVI_FROM_NAMES };

/* Flags beside those of added.h: `normalized` is not given; the token is of added_tokens.json. */
enum { QKVI_ENTRY_IS_DEFAULT = 0x40, QKVI_ENTRY_IS_OLDER = 0x80 };

/** A token as some file has it. */
typedef struct qkvi_added_entry {
    const char *content;
    size_t n_bytes;
    const char *file, *path; /* for messages */
    int64_t id;              /* in the file; -1: it has none */
    unsigned flags;
    int from;
    uint32_t at;    /* its index in the list */
    uint32_t first; /* the index of the first entry with the same content */
    int32_t given;  /* the id that it gets */
} qkvi_added_entry;

typedef struct qkvi_added_list {
    const qkvi_settings *settings;
    qkv_tokenizer *tokenizer;
    qkvi_added_entry *entries;
    uint32_t n;
    size_t capacity;
    uint32_t *sorted, n_sorted; /* indices of base and listed, sorted by content */
    int is_marian;
    int older_stay;             /* entries of added_tokens.json keep their switches */
    int64_t n_names;            /* named tokens so far */
    char (*sentinels)[24];      /* names that the class gives itself (T5's extra ids) */
    const qkvi_text_file *file; /* of the vocabulary, for messages */
    qkv_error *error;
} qkvi_added_list;

/** Reads base and listed, in the order of their ids. root: of tokenizer.json, or NULL. */
qkv_status qkvi_added_list_read(qkvi_added_list *list, const json_t *root);
/** Fills `sorted`, which qkvi_added_list_place searches. */
qkv_status qkvi_added_list_sort(qkvi_added_list *list);

/* ---- Parts ----------------------------------------------------------------------------------- */

qkv_status qkvi_added_no_memory(const qkvi_added_list *list);
qkv_status qkvi_added_list_put(qkvi_added_list *list, const qkvi_added_entry *entry);
/** FORMAT or LIMIT for a token that is empty, too long, or has an invalid id. */
qkv_status qkvi_added_list_check(const qkvi_added_list *list, const qkvi_added_entry *entry);
/** The first index in sorted whose content is not less than content. */
uint32_t qkvi_added_list_place(const qkvi_added_list *list, const char *content, size_t n_bytes);
int qkvi_added_is_same(const qkvi_added_entry *a, const qkvi_added_entry *b);

#endif
