/** config.json of a model folder: what is honoured, what is refused by name, and what we write. */
#ifndef QKVI_CONFIG_CONFIG_H
#define QKVI_CONFIG_CONFIG_H

#include "files/file.h"
#include "files/json.h"
#include "qkv/model.h"

/**
 * Reads the sizes of a BERT. Fills the numbers of *info (no strings, nothing about heads on top).
 * FORMAT (not JSON, wrong type), SHAPE (sizes that do not fit), LIMIT, UNSUPPORTED (another
 * architecture or option).
 */
qkv_status qkvi_config_read(const char *file, const void *bytes, size_t n_bytes,
                            qkv_model_info *info, qkv_error *error);

/**
 * The same of the tower that reads images. *has: there is one beside that of qkvi_config_read; else
 * *info is zeros.
 */
qkv_status qkvi_config_read_images(const char *file, const void *bytes, size_t n_bytes, bool *has,
                                   qkv_model_info *info, qkv_error *error);

/**
 * Adds config.json to files, with the fields that transformers needs to load the model, and
 * generation_config.json for a model that writes. dropout is what it was trained with. MEMORY, IO.
 */
qkv_status qkvi_config_write(qkvi_files *files, const qkv_model_info *info, double dropout,
                             qkv_error *error);

/**
 * What config.json calls the n classes of a classifier, escaped for printing: names [n], to be
 * freed one by one; NULL where it has no name. MEMORY, FORMAT.
 */
qkv_status qkvi_config_labels(const char *file, const void *bytes, size_t n_bytes, int64_t n,
                              char **names, qkv_error *error);

/* Sets n_labels and label_pooling; 0 labels where `architectures` names another task. */
qkv_status qkvi_config_classes(const qkvi_json_reader *reader, qkv_model_info *info);

enum {
    QKVI_MAX_LABELS = 65536,
    QKVI_MAX_LAYERS = QKV_MAX_LAYERS,
    QKVI_MAX_HIDDEN = 65536,
    QKVI_MAX_INTERMEDIATE = 1 << 20,
    QKVI_MAX_VOCAB = 1 << 24,
    QKVI_MAX_POSITIONS = 1 << 20,
    QKVI_MAX_TYPES = 256 /* qkv_encoding.types are bytes */
};

/* A string, and a switch, that must be `wanted` if they are there: UNSUPPORTED. */
qkv_status qkvi_config_word(const qkvi_json_reader *reader, const char *field, const char *wanted);
qkv_status qkvi_config_switch(const qkvi_json_reader *reader, const char *field, int wanted);

/*
 * UNSUPPORTED, if a field that others take for every model changes what is computed. decodes: there
 * is a decoder; slides: its family has sliding_window.
 */
qkv_status qkvi_config_refuse_others(const qkvi_json_reader *reader, int decodes, int slides);

/*
 * A size from 1 to limit, which must be there, or has *value where it is not: FORMAT, SHAPE, LIMIT.
 */
qkv_status qkvi_config_need_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value);
qkv_status qkvi_config_take_size(const qkvi_json_reader *reader, const char *field, int64_t limit,
                                 int64_t *value);

/* Between 0 and 1. */
qkv_status qkvi_config_take_eps(const qkvi_json_reader *reader, const char *field, double *eps);

/* SHAPE unless info->hidden, from the field of that name, is a multiple of n_heads. */
qkv_status qkvi_config_heads(const qkvi_json_reader *reader, const char *hidden, const char *heads,
                             const qkv_model_info *info, int64_t n_heads);

/*
 * One of the activations that are computed, by its name in transformers; `absent` where it is not,
 * or where field is NULL. UNSUPPORTED.
 */
qkv_status qkvi_config_activation(const qkvi_json_reader *reader, const char *field,
                                  const char *absent, qkv_model_info *info);

/* tie_word_embeddings: false unties these (QKV_UNTIED_…); absent: as ties says. */
qkv_status qkvi_config_ties(const qkvi_json_reader *reader, int ties, int untied,
                            qkv_model_info *info);

#endif
