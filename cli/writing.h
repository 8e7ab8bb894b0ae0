/* What `qkv generate` and `qkv translate` share: options, one text through the model, answers. */
#ifndef QKV_CLI_WRITING_H
#define QKV_CLI_WRITING_H

#include "input.h"
#include "term.h"
#include <qkv/generate.h>

struct writing_options {
    struct cli_common common;
    const char *file; /* translate */
    struct arg_int max_new, min_new, beams, sequences, top_k, no_repeat, seed;
    struct arg_real temperature, top_p, repetition_penalty, length_penalty;
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
      .help = "at most so many tokens (default: what the model's generation_config.json says, "    \
              "else as many as fit)",                                                              \
      .kind = ARG_INT,                                                                             \
      .offset = WRITING(max_new),                                                                  \
      .min = 1,                                                                                    \
      .max = INT32_MAX },                                                                          \
        { .name = "--min-new",                                                                     \
          .argument = "N",                                                                         \
          .help = "at least so many",                                                              \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(min_new),                                                              \
          .max = INT32_MAX },                                                                      \
        { .name = "--beams",                                                                       \
          .argument = "N",                                                                         \
          .help = "beam search with N beams; 1: the likeliest token each time",                    \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(beams),                                                                \
          .min = 1,                                                                                \
          .max = 256 },                                                                            \
        { .name = "--length-penalty",                                                              \
          .argument = "X",                                                                         \
          .help = "beams: divide scores by (tokens)^X; above 0 favours longer texts",              \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(length_penalty) },                                                     \
        { .name = "--early-stopping",                                                              \
          .argument = "likely|always|never",                                                       \
          .help = "when enough beams are complete, stop if no better one is likely, at once, or "  \
                  "only if none is possible",                                                      \
          .kind = ARG_CHOICE,                                                                      \
          .offset = WRITING(early_stopping) },                                                     \
        { .name = "--sequences",                                                                   \
          .argument = "N",                                                                         \
          .help = "so many texts: the best N beams, or N that are drawn",                          \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(sequences),                                                            \
          .min = 1,                                                                                \
          .max = 256 },                                                                            \
        { .name = "--sample",                                                                      \
          .help = "draw tokens by their probabilities; --temperature, --top-k, --top-p and "       \
                  "--seed imply it",                                                               \
          .kind = ARG_FLAG,                                                                        \
          .offset = WRITING(sample) },                                                             \
        { .name = "--temperature",                                                                 \
          .argument = "X",                                                                         \
          .help = "divide logits by X: below 1 keeps to what is likely",                           \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(temperature) },                                                        \
        { .name = "--top-k",                                                                       \
          .argument = "N",                                                                         \
          .help = "draw from the N likeliest tokens only; 0: from all (default: 50)",              \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(top_k),                                                                \
          .max = INT32_MAX },                                                                      \
        { .name = "--top-p",                                                                       \
          .argument = "X",                                                                         \
          .help = "draw from the fewest tokens whose probabilities reach X",                       \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(top_p) },                                                              \
        { .name = "--seed",                                                                        \
          .argument = "N",                                                                         \
          .help = "seed of what is drawn (default: 0): the same seed, the same text",              \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(seed),                                                                 \
          .max = INT64_MAX },                                                                      \
        { .name = "--repetition-penalty",                                                          \
          .argument = "X",                                                                         \
          .help = "make tokens that are there less likely: above 1; 1: do not",                    \
          .kind = ARG_REAL,                                                                        \
          .offset = WRITING(repetition_penalty) },                                                 \
        { .name = "--no-repeat",                                                                   \
          .argument = "N",                                                                         \
          .help = "no run of N tokens twice; 0: allowed",                                          \
          .kind = ARG_INT,                                                                         \
          .offset = WRITING(no_repeat),                                                            \
          .max = INT32_MAX },                                                                      \
        { .name = "--stop",                                                                        \
          .argument = "TEXT",                                                                      \
          .help = "end before TEXT; may be given several times",                                   \
          .kind = ARG_TEXTS,                                                                       \
          .offset = WRITING(stop) },                                                               \
    {                                                                                              \
        .name = "--plain", .help = "do not take options from the model's generation_config.json",  \
        .kind = ARG_FLAG, .offset = WRITING(plain)                                                 \
    }

#endif
