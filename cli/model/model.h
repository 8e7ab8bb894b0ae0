/*
 * What commands about one model share. `qkv generate` and `qkv translate`: options, one text
 * through the model, answers.
 */
#ifndef QKV_CLI_MODEL_H
#define QKV_CLI_MODEL_H

#include "common/job.h"
#include "common/term.h"
#include <qkv/generate.h>

struct writing_options {
    struct cli_common common;
    const char *file;    /* an answer for each of its lines */
    const char *journal; /* where they are kept, to go on from */
    struct arg_int max_new, min_new, beams, sequences, top_k, no_repeat, seed;
    struct arg_real temperature, top_p, min_p, repetition_penalty, length_penalty;
    struct arg_int early_stopping;
    struct arg_texts stop;
    struct arg_int template; /* of --chat-template */
    bool sample, plain, chat, show_prompt, align;
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
 * Opens the model and makes options of its files and of the command line. wants_source: a command
 * for encoder-decoders only. Returns an exit code, having said what is wrong and closed the
 * session, which its job closes otherwise.
 */
int writing_open(struct writing *w, const struct cli_command *command,
                 const struct writing_options *options, bool wants_source);

/* One text through the model. With stream, the text is printed while it is made. */
qkv_status writing_run(struct writing *w, const qkv_encoding *input, bool stream,
                       qkv_generation **made, qkv_error *error);

/*
 * --file (writing_file.c): is it possible with what else is given, and are ranks there? Then an
 * answer for each line, "12 lines" and then `told`; closes the session. Exit codes.
 */
int writing_begin_file(const struct cli_command *command, const struct writing_options *options,
                       int n_words);
int writing_run_file(struct writing *w, const char *told);

/* {"sequences": …, "steps", "seconds"} */
json_t *writing_json(const struct writing *w, const qkv_generation *made);

/* Text of a model: on a terminal without what could steer it. */
qkv_status writing_print(struct writing *w, const char *bytes, size_t n, qkv_error *error);
/* All sequences, with a line before each if there are several. */
qkv_status writing_print_all(struct writing *w, const qkv_generation *made, qkv_error *error);

/* What a translation was made from, printed, or as "align" of an object. */
qkv_status translate_align(struct writing *w, const qkv_encoding *source, const qkv_sequence *made,
                           json_t *json, qkv_error *error);

/* What `qkv info --json` says of a model. */
json_t *info_model_json(const qkv_model *model);
/* How weights are kept: by --weights, not as the file has them. */
const char *info_weights(const qkv_model_info *info);
const char *info_rope(qkv_rope_type type);
bool info_has_prompts(const qkv_model *model);

/* `qkv info` of an array, of a file of tensors, and of a GGUF file. Return an exit code. */
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
