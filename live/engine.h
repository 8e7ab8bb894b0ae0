/* The engine of a live page: see engine.c. */
#ifndef QKV_LIVE_ENGINE_H
#define QKV_LIVE_ENGINE_H

#include "common/json.h"
#include "look/job.h"

/* ---- What a page calls ----------------------------------------------------------------------- */

#define EXPORT(name) __attribute__((export_name(#name))) name

/* Room for a text or a name of n bytes, or NULL; what it had before is gone. */
char *EXPORT(live_room)(size_t n);
/* Room for a file of the model of the page: 0, config.json; 1, vocab.txt; 2, model.safetensors. */
char *EXPORT(live_file)(unsigned which, size_t n);

/* 0, or -1: the answer is the reason. */
int EXPORT(live_open)(void);
int EXPORT(live_words)(void);
/* image: what was written is the path of an image, not a text. */
int EXPORT(live_look)(int image);
int EXPORT(live_page)(int image, int maps);
int EXPORT(live_both)(int image);
int EXPORT(live_seen)(void);

const char *EXPORT(live_answer)(void);
size_t EXPORT(live_bytes)(void);

#undef EXPORT

/* ---- Parts (words.c) ------------------------------------------------------------------------- */

/* The mask token of the model as JSON; null if it predicts no masked words. */
json_t *live_mask(const struct look_service *service);

/*
 * {"n": tokens of the text, "words": [[begin, end, state], …]}: the bytes of each word, and whether
 * the model has it: 2, as one token; 1, as several; 0, not at all ([UNK]). Special tokens that are
 * written in the text are words with state 3. Longer texts than the model takes are no error here.
 */
qkv_status live_words_json(const struct look_service *service, const struct text *text,
                           json_t **object, qkv_error *error);

#endif
