/* What `qkv generate` and `qkv translate` share, and the parts of `qkv info`. */
#ifndef QKV_CLI_MODEL_H
#define QKV_CLI_MODEL_H

#include "common/job.h"
#include "common/term.h"
#include <qkv/generate.h>

struct writing_options {
    struct cli_common common;
    const char *file;    /* --file: an answer for each of its lines */
    const char *journal; /* keeps the answers to lines (common/journal.h) */
    struct arg_int max_new, min_new, beams, sequences, top_k, no_repeat, seed;
    struct arg_real temperature, top_p, min_p, repetition_penalty, length_penalty;
    struct arg_int early_stopping;
    struct arg_texts stop;
    struct arg_int template; /* --chat-template */
    bool sample, plain, chat, show_prompt, align;
};

/* A job that generates. The text_job is the first member, since its functions get that. */
struct writing {
    struct text_job job;
    const struct writing_options *options;
    qkv_generate_options generate; /* of the model's files, and of the command line */
    struct term term;
    double seconds; /* of the last text */
};

/*
 * Opens the model, and makes the options from its files and the command line. wants_source: refuses
 * a model that is no encoder-decoder. Returns an exit code; after a failure the message is said and
 * the session closed, otherwise the job closes it.
 */
int writing_open(struct writing *w, const struct cli_command *command,
                 const struct writing_options *options, bool wants_source);

/* Generates from one input. stream: prints the text while it is generated. */
qkv_status writing_run(struct writing *w, const qkv_encoding *input, bool stream,
                       qkv_generation **made, qkv_error *error);

/*
 * --file (writing_file.c). writing_begin_file checks that other options allow it, and begins MPI.
 * writing_run_file answers each line, with progress "12 lines" and then `told`, and closes the
 * session. Return exit codes.
 */
int writing_begin_file(const struct cli_command *command, const struct writing_options *options,
                       int n_words);
int writing_run_file(struct writing *w, const char *told);

/* {"sequences": …, "steps", "seconds"} */
json_t *writing_json(const struct writing *w, const qkv_generation *made);

/* Prints text of a model; on a terminal, control characters are escaped. */
qkv_status writing_print(struct writing *w, const char *bytes, size_t n, qkv_error *error);
/* Prints all sequences, with a line before each if there are several. */
qkv_status writing_print_all(struct writing *w, const qkv_generation *made, qkv_error *error);

/* Prints which source tokens a translation looks at, or adds them as "align" to json. */
qkv_status translate_align(struct writing *w, const qkv_encoding *source, const qkv_sequence *made,
                           json_t *json, qkv_error *error);

/* The object of `qkv info --json` for a model. */
json_t *info_model_json(const qkv_model *model);
/* The name of the form of weights in memory, by --weights. */
const char *info_weights(const qkv_model_info *info);
const char *info_rope(qkv_rope_type type);
bool info_has_prompts(const qkv_model *model);

/* `qkv info` of an array, of a file of tensors, and of a GGUF file. Return exit codes. */
int info_array(const char *name, const struct cli_common *common);
int info_tensors(const char *path, const struct cli_common *common);
int info_gguf(const char *name, const struct cli_common *common);

/* `qkv info --strict`: the findings of an audit. Returns an exit code. */
int info_strict(const struct cli_command *command, const char *path,
                const struct cli_common *common);

/* The rows of the table of options that generate and translate share. */
#define WRITING_TABLE                                                                              \
    OPTION_INT_INTO("--max-new", max_new, 1, INT32_MAX, max_new),                                  \
        OPTION_INT_INTO("--min-new", min_new, 0, INT32_MAX, min_new),                              \
        OPTION_INT_INTO("--beams", beams, 1, 256, n_beams),                                        \
        OPTION_REAL_INTO("--length-penalty", length_penalty, length_penalty),                      \
        OPTION_CHOICE("--early-stopping", "likely|always|never", early_stopping),                  \
        OPTION_INT_INTO("--sequences", sequences, 1, 256, n_return),                               \
        OPTION_FLAG("--sample", sample),                                                           \
        OPTION_REAL_INTO("--temperature", temperature, temperature),                               \
        OPTION_INT_INTO("--top-k", top_k, 0, INT32_MAX, top_k),                                    \
        OPTION_REAL_INTO("--top-p", top_p, top_p), OPTION_REAL_INTO("--min-p", min_p, min_p),      \
        OPTION_INT_INTO("--seed", seed, 0, INT64_MAX, seed),                                       \
        OPTION_REAL_INTO("--repetition-penalty", repetition_penalty, repetition_penalty),          \
        OPTION_INT_INTO("--no-repeat", no_repeat, 0, INT32_MAX, no_repeat_ngram),                  \
        OPTION_TEXTS("--stop", "TEXT", stop), OPTION_FLAG("--plain", plain)

#endif
