/* `qkv info`: this binary and this machine; a model; or an array in a file. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/job.h"
#include "common/shared.h"
#include "common/term.h"
#include "model/model.h"
#include <qkv/vision.h>

struct info_options {
    struct cli_common common;
    bool strict;
};

static const char *yes(int flag) { return flag ? "yes" : "no"; }

/* ---- A model -------------------------------------------------------------------------------- */

static void print_token(const char *name, int64_t id) {
    if (id >= 0) printf(" %s %" PRId64, name, id);
}

/* Lines of models with a decoder. */
static void print_decoder(const qkv_model_info *info) {
    if (info->kind == QKV_MODEL_DECODER)
        puts("attention     causal: a token sees itself and those before it");
    if (info->kind == QKV_MODEL_PAIR) {
        printf("decoder       %" PRId64 " layers of %" PRId64 " heads of %" PRId64
               ", feed-forward %" PRId64 "\n",
               info->n_decoder_layers, info->n_decoder_heads,
               info->max_distance > 0 ? info->head_dim : info->hidden / info->n_decoder_heads,
               info->decoder_intermediate);
        printf("words         %s, scaled %s\n",
               info->separate_words || info->untied & (QKV_UNTIED_ENCODER | QKV_UNTIED_DECODER)
                   ? "separate"
                   : "shared by both sides",
               yes(info->scales_words));
    }
    if (info->target_vocab_size != info->vocab_size || info->separate_words)
        printf("writes        vocabulary of %" PRId64 "\n", info->target_vocab_size);
    if (info->unscaled || info->scales_by_layer)
        printf("scores        %s%s\n",
               info->unscaled ? "not divided by the root of the head's size" : "",
               !info->scales_by_layer ? ""
               : info->unscaled       ? ", divided by the layer's number"
                                      : "divided by the layer's number, too");
    printf("activation    %s\ntokens       ", info->activation);
    print_token("bos", info->bos_id);
    print_token("eos", info->eos_id);
    print_token("pad", info->pad_id);
    print_token("start", info->start_id);
    putchar('\n');
}

/* Of a classifier; those without a name by their number. */
static void print_labels(const qkv_model *model) {
    const int64_t n = qkv_model_get_info(model)->n_labels;
    static const char *const of[] = { "", " of tokens", ", where an answer begins and ends" };
    printf("classifier    %" PRId64 " label%s%s:", n, n == 1 ? "" : "s",
           of[qkv_model_get_info(model)->label_task]);
    for (int64_t l = 0; l < n; l++) {
        const char *const name = qkv_model_label(model, l);
        printf("%s ", l ? " |" : "");
        if (name)
            fputs(name, stdout);
        else
            printf("%" PRId64, l);
    }
    putchar('\n');
}

/* Of models that were made for vectors of sentences. */
static void print_sentences(const qkv_model *model) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    const qkv_prompt *prompt;
    if (info->sentence_dim != info->hidden || info->sentence_layers > 0 ||
        info->sentence_len != info->max_len)
        printf("sentences     vectors of %" PRId64 ", texts of at most %" PRId64 " tokens\n",
               info->sentence_dim, info->sentence_len);
    for (int64_t p = 0; info_has_prompts(model) && (prompt = qkv_model_prompt(model, p)); p++) {
        char *const name = term_escape(prompt->name, strlen(prompt->name));
        char *const text = term_escape(prompt->text, strlen(prompt->text));
        printf("%-13s %s '%s'%s\n", p > 0 ? "" : "prompts", name ? name : "", text ? text : "",
               prompt->is_default ? ", before every text" : "");
        free(name);
        free(text);
    }
}

/* Of models that answer turns. */
static void print_chat(const qkv_model *model) {
    const char *const chat = qkv_tokenizer_chat(qkv_model_tokenizer(model, QKV_SOURCE));
    if (chat) printf("turns         %s\n", *chat ? chat : "a chat template that is not known");
}

static int64_t count_layers(const qkv_model_info *info, int kind) {
    int64_t n = 0;
    for (int64_t l = 0; l < info->n_layers; l++) n += (info->layer_kinds[l] & kind) != 0;
    return n;
}

/* Lines of models with rotary positions. */
static void print_rotary(const qkv_model_info *info) {
    const int64_t n_sliding = count_layers(info, QKV_LAYER_SLIDES);
    const qkv_rope *const rope = info->rope;
    printf("positions     theta %g", rope[0].theta);
    if (rope[0].type != QKV_ROPE_DEFAULT)
        printf(", %s by %g", info_rope(rope[0].type), rope[0].factor);
    if (info->rotary_dim != info->head_dim)
        printf(", in the first %" PRId64 " channels of a head", info->rotary_dim);
    if (info->rotary_neighbours) printf(", by neighbours");
    if (n_sliding > 0 && rope[1].theta != rope[0].theta)
        printf("; theta %g in layers with a window", rope[1].theta);
    if (count_layers(info, QKV_LAYER_UNROTATED) > 0)
        printf("; none in %" PRId64 " layers", count_layers(info, QKV_LAYER_UNROTATED));
    putchar('\n');
    if (info->n_kv_heads != info->n_heads)
        printf("keys, values  %" PRId64 " heads\n", info->n_kv_heads);
    if (n_sliding > 0 && info->window_right == 0)
        printf("window        %" PRId64 " tokens in %" PRId64 " of %" PRId64 " layers\n",
               info->window_left + 1, n_sliding, info->n_layers);
    if (n_sliding > 0 && info->window_right > 0)
        printf("window        %" PRId64 " tokens to each side in %" PRId64 " of %" PRId64
               " layers\n",
               info->window_left, n_sliding, info->n_layers);
    if (info->score_cap > 0 || info->logit_cap > 0)
        printf("soft caps     %g of scores, %g of logits; 0: none\n", info->score_cap,
               info->logit_cap);
}

/* Lines of models that read images, before or beside texts. */
static void print_images(const qkv_model *model) {
    const qkv_model *const sees = qkv_model_images(model);
    if (!sees) return;
    const qkv_model_info *const info = qkv_model_get_info(sees);
    printf("images        %" PRId64 " by %" PRId64 " pixels, patches of %" PRId64 " by %" PRId64
           ", %" PRId64 " by %" PRId64 " of them\n",
           info->image_height, info->image_width, info->patch_height, info->patch_width,
           info->image_height / info->patch_height, info->image_width / info->patch_width);
    printf("before them   %" PRId64 " token%s", info->n_prefix, info->n_prefix == 1 ? "" : "s");
    if (info->n_registers > 0) printf(", of which %" PRId64 " registers", info->n_registers);
    putchar('\n');
    if (sees != model)
        printf("their tower   %" PRId64 " layers of %" PRId64 " heads of %" PRId64
               ", hidden %" PRId64 ", feed-forward %" PRId64 "\n",
               info->n_layers, info->n_heads, info->head_dim, info->hidden, info->intermediate);
    if (info->joint_dim > 0)
        printf("joint space   %" PRId64 " channels; match %g cos%s%g\n", info->joint_dim,
               info->match_scale, info->match_bias < 0 ? " - " : " + ", fabs(info->match_bias));
}

/* Lines of models that read words. */
static void print_words(const qkv_model *model) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    printf("vocabulary    %" PRId64 "\n", info->vocab_size);
    if (info->embedding_size != info->hidden)
        printf("word vectors  %" PRId64 "\n", info->embedding_size);
    printf("longest text  %" PRId64 " tokens, %" PRId64 " segment%s, %s positions\n", info->max_len,
           info->n_types, info->n_types == 1 ? "" : "s",
           info->rope[0].type != QKV_ROPE_NONE ? "rotary"
           : info->max_distance > 0            ? "no"
           : info->alibi                       ? "no"
           : info->sinusoidal_positions        ? "sinusoidal"
                                               : "learned");
    if (info->rope[0].type != QKV_ROPE_NONE) print_rotary(info);
    if (info->max_distance > 0)
        printf("distances     a bias of scores, %" PRId64 " numbers a head up to %" PRId64
               " tokens apart\n",
               info->distance_buckets, info->max_distance);
    if (info->alibi) printf("distances     ALiBi: a slope for each head\n");
    print_sentences(model);
    print_chat(model);
}

static void print_model(const qkv_model *model, bool verbose) {
    const qkv_model_info *info = qkv_model_get_info(model);
    int64_t n_unused = 0;
    while (qkv_model_unused(model, n_unused)) n_unused++;
    printf("model         %s (%s)\n", info->source, info->architecture);
    for (int64_t i = 0; qkv_model_file(model, 1) && qkv_model_file(model, i); i++)
        printf("%-13s %s\n", i ? "" : "files", qkv_model_file(model, i));
    printf("parameters    %" PRId64 "\n", info->n_parameters);
    printf("weights       %s, %.1f MB\n", info_weights(info), (double)info->weights_bytes / 1e6);
    printf("layers        %" PRId64 " of %" PRId64 " heads of %" PRId64 "\n", info->n_layers,
           info->n_heads, info->head_dim);
    printf("sizes         hidden %" PRId64 ", feed-forward %" PRId64 "\n", info->hidden,
           info->intermediate);
    print_images(model);
    if (info->vocab_size > 0) print_words(model);
    if (info->patch_height > 0)
        printf("heads for     pooler %s\n", yes(info->has_pooler));
    else if (info->has_lm)
        printf("heads for     the next token\n");
    else
        printf("heads for     MLM %s, NSP %s, pooler %s%s\n", yes(info->has_mlm),
               yes(info->has_nsp), yes(info->has_pooler),
               info->has_discriminator ? ", replaced tokens yes" : "");
    if (info->n_labels > 0) print_labels(model);
    if (info->untied)
        printf("untied       %s%s%s\n", info->untied & QKV_UNTIED_HEAD ? " head" : "",
               info->untied & QKV_UNTIED_ENCODER ? " encoder" : "",
               info->untied & QKV_UNTIED_DECODER ? " decoder" : "");
    if (info->has_lm)
        print_decoder(info);
    else if (strcmp(info->activation, "gelu") != 0)
        printf("activation    %s\n", info->activation);
    if (info->post_norm)
        printf("blocks        norms are of sums, and none ends the stack\n");
    else if (info->no_last_norm)
        printf("blocks        no norm ends the stack\n");
    if (info->parallel) printf("blocks        both parts read the block's input\n");
    if (info->adds_to_norm) printf("blocks        parts are added to the norms that they read\n");
    printf("%-13s eps %g\n", info->rms_norm ? "RMSNorm" : "layer norm", info->layer_norm_eps);
    if (n_unused) printf("unused        %" PRId64 " tensors\n", n_unused);
    for (int64_t i = 0; verbose && i < n_unused; i++)
        printf("              %s\n", qkv_model_unused(model, i));
}

static int tell_model(const char *name, const struct cli_common *common) {
    qkv_model *model = NULL;
    qkv_error error;
    const qkv_model_open_options options = session_weights(common);
    qkv_status status = QKV_OK;
    if (!session_names_embedded(name) || !embedded_model(&options, &model, &status, &error))
        status = qkv_model_open(name, &options, &model, &error);
    if (status != QKV_OK) return cli_fail("%s", error.message);
    int code = EXIT_OK;
    session_warn(model, common);
    if (common->json)
        code = json_emit(info_model_json(model));
    else
        print_model(model, common->verbose);
    qkv_model_free(model);
    return code;
}

/* ---- This binary ---------------------------------------------------------------------------- */

static int tell_self(qkv_ctx *ctx, const struct cli_common *common) {
    qkv_model *model = NULL;
    qkv_status status = QKV_OK;
    qkv_error error;
    const qkv_model_open_options options = session_weights(common);
    if (!embedded_model(&options, &model, &status, &error)) model = NULL;
    if (status != QKV_OK) return cli_fail("the embedded model: %s", error.message);
    if (model) session_warn(model, common);
    int code = EXIT_OK;
    if (common->json) {
        json_t *names = json_array();
        for (int i = 0; qkv_isa_name(i); i++)
            json_array_append_new(names, json_string(qkv_isa_name(i)));
        code = json_emit(json_set(NULL, "version:s isas:o isa:s threads:d embedded:o",
                                  qkv_version(), names, qkv_ctx_isa(ctx), qkv_ctx_threads(ctx),
                                  model ? info_model_json(model) : json_null()));
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

/* A file of tensors, or the index of several. */
static bool lists_tensors(const char *path) {
    return text_ends(path, ".safetensors") || text_ends(path, ".npz") ||
           text_ends(path, ".safetensors.index.json");
}

/* Files of other names are opened as models, and may turn out to be GGUF files. */
static bool lists_keys(const char *name) {
    return text_ends(name, ".gguf") || strncmp(name, "ollama:", 7) == 0;
}

static int info(const struct cli_command *command, const void *data, int n_words, char **words) {
    const struct info_options *options = data;
    if (n_words > 0) {
        if (options->strict) return info_strict(command, words[0], &options->common);
        const bool is_array = strcmp(words[0], "-") == 0 || text_ends(words[0], ".npy") ||
                              strstr(words[0], ".safetensors:") || strstr(words[0], ".npz:");
        const bool is_gguf = lists_keys(words[0]);
        char room[SHARED_ROOM];
        if (!is_array && !is_gguf && !lists_tensors(words[0]))
            return tell_model(shared_path(words[0], room), &options->common);
        if (options->common.check_finite)
            return cli_usage(command, "--check-finite looks at models, not at %s",
                             is_gguf ? "GGUF files" : "arrays");
        if (is_gguf) return info_gguf(words[0], &options->common);
        return is_array ? info_array(words[0], &options->common)
                        : info_tensors(words[0], &options->common);
    }
    if (options->strict) return cli_usage(command, "--strict needs a .safetensors file");
    qkv_ctx *ctx = NULL;
    int code = session_context(command, &options->common, &ctx);
    if (!code) code = tell_self(ctx, &options->common);
    qkv_ctx_free(ctx);
    return code;
}

#define OPTIONS struct info_options

static const struct cli_option info_table[] = {
    OPTION_FLAG("--strict", strict),
};

const struct cli_command cmd_info = {
    .name = "info",
    .summary = "about a model, an array, or this binary and machine",
    .words = "[MODEL|FILE]",
    .max_words = 1,
    .suggest = "/ .safetensors .gguf .npy .npz",
    .takes = TAKES_FINITE | TAKES_WEIGHTS | TAKES_COMPUTE | TAKES_JSON | TAKES_VERBOSE,
    COMMAND_OPTIONS(info_table),
    .run = info,
};
