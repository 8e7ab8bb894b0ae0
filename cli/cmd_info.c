/* `qkv info`: this binary and this machine; a model; or an array in a file. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "info.h"
#include "input.h"
#include "session.h"

struct info_options {
    struct cli_common common;
    bool strict;
};

static const char *yes(int flag) { return flag ? "yes" : "no"; }

static int emit(json_t *object) { return json_print(stdout, object) ? EXIT_OK : EXIT_FAILED; }

/* ---- A model -------------------------------------------------------------------------------- */

static json_t *model_json(const qkv_model *model) {
    const qkv_model_info *info = qkv_model_get_info(model);
    json_t *unused = json_array(), *warnings = json_array();
    for (int64_t i = 0; qkv_model_warning(model, i); i++)
        json_array_append_new(warnings, json_text(qkv_model_warning(model, i)));
    for (int64_t i = 0; qkv_model_unused(model, i); i++)
        json_array_append_new(unused, json_text(qkv_model_unused(model, i)));
    return json_pack(
        "{s:s,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:f,s:b,s:b,s:b,s:b,s:b,s:I,s:I,s:o,s:o}",
        "architecture", info->architecture, "source", json_text(info->source), "n_layers",
        (json_int_t)info->n_layers, "n_heads", (json_int_t)info->n_heads, "hidden",
        (json_int_t)info->hidden, "head_dim", (json_int_t)info->head_dim, "intermediate",
        (json_int_t)info->intermediate, "vocab_size", (json_int_t)info->vocab_size, "max_len",
        (json_int_t)info->max_len, "n_types", (json_int_t)info->n_types, "n_parameters",
        (json_int_t)info->n_parameters, "layer_norm_eps", info->layer_norm_eps, "has_mlm",
        info->has_mlm, "has_nsp", info->has_nsp, "has_pooler", info->has_pooler, "has_judge",
        info->has_judge, "sinusoidal_positions", info->sinusoidal_positions, "embedding_size",
        (json_int_t)info->embedding_size, "sentence_len", (json_int_t)info->sentence_len, "unused",
        unused, "warnings", warnings);
}

static void print_model(const qkv_model *model, bool verbose) {
    const qkv_model_info *info = qkv_model_get_info(model);
    int64_t n_unused = 0;
    while (qkv_model_unused(model, n_unused)) n_unused++;
    printf("model         %s (%s)\n", info->source, info->architecture);
    printf("parameters    %" PRId64 "\n", info->n_parameters);
    printf("layers        %" PRId64 " of %" PRId64 " heads of %" PRId64 "\n", info->n_layers,
           info->n_heads, info->head_dim);
    printf("sizes         hidden %" PRId64 ", feed-forward %" PRId64 "\n", info->hidden,
           info->intermediate);
    printf("vocabulary    %" PRId64 "\n", info->vocab_size);
    if (info->embedding_size != info->hidden)
        printf("word vectors  %" PRId64 "\n", info->embedding_size);
    printf("longest text  %" PRId64 " tokens, %" PRId64 " segment%s, %s positions\n", info->max_len,
           info->n_types, info->n_types == 1 ? "" : "s",
           info->sinusoidal_positions ? "sinusoidal" : "learned");
    printf("heads for     MLM %s, NSP %s, pooler %s%s\n", yes(info->has_mlm), yes(info->has_nsp),
           yes(info->has_pooler), info->has_judge ? ", replaced tokens yes" : "");
    printf("layer norm    eps %g\n", info->layer_norm_eps);
    if (n_unused) printf("unused        %" PRId64 " tensors\n", n_unused);
    for (int64_t i = 0; verbose && i < n_unused; i++)
        printf("              %s\n", qkv_model_unused(model, i));
}

static int tell_model(const char *name, const struct cli_common *common) {
    qkv_model *model = NULL;
    qkv_error error;
    if (qkv_model_open(name, &model, &error) != QKV_OK) return cli_fail("%s", error.message);
    int code = EXIT_OK;
    session_warn(model, common);
    if (common->json)
        code = emit(model_json(model));
    else
        print_model(model, common->verbose);
    qkv_model_free(model);
    return code;
}

/* ---- An array ------------------------------------------------------------------------------- */

static int tell_array(const char *name, const struct cli_common *common) {
    static const char *const types[] = { "f32", "bool", "i64" };
    qkv_array *array = NULL;
    qkv_error error;
    if (qkv_array_read(name, &array, &error) != QKV_OK) return cli_fail("%s", error.message);
    json_t *shape = json_array();
    for (int i = 0; i < array->rank; i++)
        json_array_append_new(shape, json_integer(array->shape[i]));
    int code = EXIT_OK;
    if (common->json) {
        code = emit(json_pack("{s:s,s:O,s:I}", "type", types[array->type], "shape", shape,
                              "n_elems", (json_int_t)array->n_elems));
    } else {
        printf("type      %s, as read\nshape     [", types[array->type]);
        for (int i = 0; i < array->rank; i++) printf(i ? ",%" PRId64 : "%" PRId64, array->shape[i]);
        printf("]\nelements  %" PRId64 "\n", array->n_elems);
    }
    json_decref(shape);
    qkv_array_free(array);
    return code;
}

/* ---- A file of tensors ---------------------------------------------------------------------- */

struct tensor_listing {
    json_t *list; /* NULL: print */
    int64_t n_tensors;
};

static void tell_entry(void *user, const qkv_tensor_entry *entry) {
    struct tensor_listing *listing = user;
    listing->n_tensors++;
    json_t *shape = json_array();
    if (!listing->list) printf("%-5s %s  [", entry->type, entry->name);
    for (int i = 0; i < entry->rank; i++) {
        if (!listing->list) printf(i ? ",%" PRId64 : "%" PRId64, entry->shape[i]);
        json_array_append_new(shape, json_integer(entry->shape[i]));
    }
    if (listing->list)
        json_array_append_new(listing->list,
                              json_pack("{s:o,s:s,s:O}", "name", json_text(entry->name), "type",
                                        entry->type, "shape", shape));
    else
        puts("]");
    json_decref(shape);
}

static int tell_tensors(const char *path, const struct cli_common *common) {
    struct tensor_listing listing = { .list = common->json ? json_array() : NULL };
    qkv_error error;
    if (qkv_tensor_list(path, tell_entry, &listing, &error) != QKV_OK) {
        json_decref(listing.list);
        return cli_fail("%s", error.message);
    }
    if (common->json) return emit(json_pack("{s:o}", "tensors", listing.list));
    printf("%" PRId64 " tensors\n", listing.n_tensors);
    return EXIT_OK;
}

/* ---- This binary ---------------------------------------------------------------------------- */

static int tell_self(qkv_ctx *ctx, const struct cli_common *common) {
    qkv_model *model = NULL;
    qkv_status status = QKV_OK;
    qkv_error error;
    if (!embedded_model(&model, &status, &error)) model = NULL;
    if (status != QKV_OK) return cli_fail("the embedded model: %s", error.message);
    if (model) session_warn(model, common);
    int code = EXIT_OK;
    if (common->json) {
        json_t *names = json_array();
        for (int i = 0; qkv_isa_name(i); i++)
            json_array_append_new(names, json_string(qkv_isa_name(i)));
        code = emit(json_pack("{s:s,s:o,s:s,s:i,s:o}", "version", qkv_version(), "isas", names,
                              "isa", qkv_ctx_isa(ctx), "threads", qkv_ctx_threads(ctx), "embedded",
                              model ? model_json(model) : json_null()));
    } else {
        printf("version       %s\ninstructions ", qkv_version());
        for (int i = 0; qkv_isa_name(i); i++) printf(" %s", qkv_isa_name(i));
        printf(" (used: %s)\nthreads       %d\n\n", qkv_ctx_isa(ctx), qkv_ctx_threads(ctx));
        if (model)
            print_model(model, common->verbose);
        else
            puts("model         none is embedded in this build");
    }
    qkv_model_free(model);
    return code;
}

static int info(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct info_options *options = data;
    if (n_words > 0) {
        if (options->strict) return info_strict(command, words[0], &options->common);
        const bool is_array = info_ends_in(words[0], ".npy") || strstr(words[0], ".safetensors:");
        if (!is_array && !info_ends_in(words[0], ".safetensors"))
            return tell_model(words[0], &options->common);
        if (options->common.check_finite)
            return cli_usage(command, "--check-finite looks at models, not at arrays");
        return is_array ? tell_array(words[0], &options->common)
                        : tell_tensors(words[0], &options->common);
    }
    if (options->strict) return cli_usage(command, "--strict needs a .safetensors file");
    qkv_ctx *ctx = NULL;
    int code = session_context(command, &options->common, &ctx);
    if (!code) code = tell_self(ctx, &options->common);
    qkv_ctx_destroy(ctx);
    return code;
}

static const struct cli_option info_table[] = {
    { .name = "--strict",
      .help = "audit a .safetensors file: list all that a strict reader minds about it",
      .kind = ARG_FLAG,
      .offset = offsetof(struct info_options, strict) },
};

const struct cli_command cmd_info = {
    .name = "info",
    .summary = "about a model, an array, or this binary and machine",
    .words = "[MODEL|FILE]",
    .details = "Without an argument: version, instruction sets, threads, and the embedded model. "
               "With a model (a folder, or a name in the Hugging Face cache): its sizes and "
               "parameters, and with -v the tensors that are not used. With F.safetensors: the "
               "tensors in it. With F.npy or F.safetensors:NAME: type and shape.\n\n"
               "With --strict and F.safetensors: everything about the file that a strict reader "
               "minds, though others may load it: keys that are there twice, holes, overlaps, "
               "bytes that no tensor has, names that do not look like what they are, fields that "
               "nobody knows, data that is not aligned, NaN and infinity. A line each, with the "
               "rule and the byte where it shows; exit code 1 if there is any.",
    .max_words = 1,
    .suggest = "/ .safetensors .npy",
    .takes = TAKES_FINITE | TAKES_COMPUTE | TAKES_JSON | TAKES_VERBOSE,
    .options = info_table,
    .n_options = CLI_COUNT(info_table),
    .options_bytes = sizeof(struct info_options),
    .run = info,
};
