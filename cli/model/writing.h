/* What `qkv generate` and `qkv translate` share: options, one text through the model, answers. */
#ifndef QKV_CLI_MODEL_WRITING_H
#define QKV_CLI_MODEL_WRITING_H

#include "common/input.h"
#include "common/term.h"
#include <qkv/generate.h>

struct writing_options {
    struct cli_common common;
    const char *file; /* translate */
    struct arg_int max_new, min_new, beams, sequences, top_k, no_repeat, seed;
    struct arg_real temperature, top_p, min_p, repetition_penalty, length_penalty;
    struct arg_int early_stopping;
    struct arg_texts stop;
    bool sample, plain, show_prompt, align;
};

/* A session that writes. Its job is first: answers get the job. */
struct writing {
    struct text_job job;
    const struct writing_options *options;
    qkv_generate_options generate; /* of the model's files, with what the command line says */
    struct term term;
    double seconds; /* of the last text */
};

/*
 * Opens the model and makes options of its files and of the command line. wants_source: a command for
 * encoder-decoders only. Returns an exit code, having said what is wrong and closed the session, which
 * its job closes otherwise.
 */
int writing_open(struct writing *w, const struct cli_command *command,
                 const struct writing_options *options, bool wants_source);

/* One text through the model. With stream, the text is printed while it is made. */
qkv_status writing_run(struct writing *w, const qkv_encoding *input, bool stream,
                       qkv_generation **made, qkv_error *error);

/* {"sequences": …, "steps", "seconds"} */
json_t *writing_json(const struct writing *w, const qkv_generation *made);

/* Text of a model: on a terminal without what could steer it. */
qkv_status writing_print(struct writing *w, const char *bytes, size_t n, qkv_error *error);
/* All sequences, with a line before each if there are several. */
qkv_status writing_print_all(struct writing *w, const qkv_generation *made, qkv_error *error);

/* What a translation was made from, printed, or as "align" of an object. */
qkv_status translate_align(struct writing *w, const qkv_encoding *source, const qkv_sequence *made,
                           json_t *json, qkv_error *error);

#define WRITING(field) offsetof(struct writing_options, field)

/* The rows of the table of options that both commands have. */
#define WRITING_TABLE                                                                              \
    { .name = "--max-new",                                                                         \
      .argument = "N",                                                                             \
      .kind = ARG_INT,                                                                             \
      .offset = WRITING(max_new),                                                                  \
      .min = 1,                                                                                    \
      .max = INT32_MAX },                                                                          \
        { .name = "--min-new",                                                                     \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(min_new),                                                              \
          .max = INT32_MAX },                                                                      \
        { .name = "--beams",                                                                       \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(beams),                                                                \
          .min = 1,                                                                                \
          .max = 256 },                                                                            \
        { .name = "--length-penalty",                                                              \
          .argument = "X",                                                                         \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(length_penalty) },                                                     \
        { .name = "--early-stopping",                                                              \
          .argument = "likely|always|never",                                                       \
          .kind = ARG_CHOICE,                                                                      \
          .offset = WRITING(early_stopping) },                                                     \
        { .name = "--sequences",                                                                   \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(sequences),                                                            \
          .min = 1,                                                                                \
          .max = 256 },                                                                            \
        { .name = "--sample", .kind = ARG_FLAG, .offset = WRITING(sample) },                       \
        { .name = "--temperature",                                                                 \
          .argument = "X",                                                                         \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(temperature) },                                                        \
        { .name = "--top-k",                                                                       \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(top_k),                                                                \
          .max = INT32_MAX },                                                                      \
        { .name = "--top-p", .argument = "X", .kind = ARG_REAL, .offset = WRITING(top_p) },        \
        { .name = "--min-p", .argument = "X", .kind = ARG_REAL, .offset = WRITING(min_p) },        \
        { .name = "--seed",                                                                        \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(seed),                                                                 \
          .max = INT64_MAX },                                                                      \
        { .name = "--repetition-penalty",                                                          \
          .argument = "X",                                                                         \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(repetition_penalty) },                                                 \
        { .name = "--no-repeat",                                                                   \
          .argument = "N",                                                                         \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(no_repeat),                                                            \
          .max = INT32_MAX },                                                                      \
        { .name = "--stop", .argument = "TEXT", .kind = ARG_TEXTS, .offset = WRITING(stop) }, {    \
        .name = "--plain", .kind = ARG_FLAG, .offset = WRITING(plain)                              \
    }

#endif
