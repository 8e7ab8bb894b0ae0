/* The page of `qkv look -o FILE.html`: the chosen head first, then those with the sharpest queries. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "look.h"

void look_tokens_free(struct look_tokens *tokens, int64_t n) {
    for (int64_t i = 0; tokens->texts && i < n; i++) free(tokens->texts[i]);
    free(tokens->texts);
    free(tokens->words);
}

/* Pieces that begin with ## belong to the word before them. */
qkv_status look_tokens_make(struct look_tokens *tokens, const struct look *look, qkv_error *error) {
    const int64_t n = look->input->n;
    tokens->texts = calloc((size_t)n + 1, sizeof *tokens->texts);
    tokens->words = calloc((size_t)n + 1, sizeof *tokens->words);
    bool made = tokens->texts && tokens->words;
    for (int64_t i = 0; made && i < n; i++) {
        size_t bytes = 0;
        const char *token =
            qkv_tokenizer_token(look->session->tokenizer, look->input->ids[i], &bytes);
        tokens->texts[i] = strndup(token ? token : "", bytes);
        made = tokens->texts[i] != NULL;
        const bool piece = bytes > 2 && token[0] == '#' && token[1] == '#';
        if (i > 0) tokens->words[i] = tokens->words[i - 1] + (piece ? 0 : 1);
    }
    return made ? QKV_OK : text_error(error, QKV_ERR_MEMORY, "out of memory");
}

/* In the order in which heads are kept: the chosen one, then by confidence. */
static int by_confidence(const void *a, const void *b) {
    const qkv_head_stats *x = ((const qkv_page_head *)a)->stats,
                         *y = ((const qkv_page_head *)b)->stats;
    if (x->confidence != y->confidence) return x->confidence < y->confidence ? 1 : -1;
    if (x->layer != y->layer) return x->layer < y->layer ? -1 : 1;
    return x->head < y->head ? -1 : x->head > y->head;
}

/* The heads of --heads, in their order, from all layer by layer. */
static qkv_status take_listed(const struct look *look, qkv_page_head *heads, qkv_error *error) {
    qkv_page_head *listed = calloc((size_t)look->n_list, sizeof *listed);
    if (!listed) return text_error(error, QKV_ERR_MEMORY, "out of memory");
    for (int i = 0; i < look->n_list; i++)
        listed[i] = heads[look->list[i].layer * look->session->info->n_heads + look->list[i].head];
    memcpy(heads, listed, (size_t)look->n_list * sizeof *listed);
    free(listed);
    return QKV_OK;
}

qkv_status look_page_heads(const struct look *look, qkv_page_head *heads, float *scale,
                           qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    const int64_t n = info->n_layers * info->n_heads;
    int64_t chosen = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t layer = i / info->n_heads, head = i % info->n_heads;
        qkv_capture seen;
        const qkv_status status = qkv_run_capture(look->run, 0, layer, &seen, error);
        if (status != QKV_OK) return status;
        const int64_t elems = head * seen.n * seen.head_dim;
        heads[i] = (qkv_page_head){ .layer = layer,
                                    .head = head,
                                    .q = seen.q + elems,
                                    .k = seen.k + elems,
                                    .lse = seen.lse + head * seen.n,
                                    .stats = &look->stats[i] };
        *scale = seen.scale;
    }
    if (look->list) return take_listed(look, heads, error);
    qsort(heads, (size_t)n, sizeof *heads, by_confidence);
    while (heads[chosen].layer != look->choice.layer || heads[chosen].head != look->choice.head)
        chosen++;
    const qkv_page_head first = heads[chosen];
    memmove(heads + 1, heads, (size_t)chosen * sizeof *heads);
    heads[0] = first;
    return QKV_OK;
}

/* Adds to a text of a fixed size; what does not fit is left out. */
static void add(char *text, size_t bytes, const char *before, const char *more) {
    const size_t used = strlen(text);
    if (used + strlen(before) + strlen(more) < bytes)
        memcpy(stpcpy(text + used, before), more, strlen(more) + 1);
}

/* The text, from its tokens; specials that nobody wrote are left out. */
static void make_title(const struct look *look, char *const *tokens, char *title, size_t bytes) {
    title[0] = '\0';
    for (int64_t i = 0; i < look->input->n; i++) {
        const bool inserted =
            look->input->special[i] && look->input->begin[i] == look->input->end[i];
        const bool piece = strncmp(tokens[i], "##", 2) == 0 && tokens[i][2];
        if (!inserted) add(title, bytes, piece || !*title ? "" : " ", tokens[i] + (piece ? 2 : 0));
    }
}

static void make_caption(const struct look *look, char *caption, size_t bytes) {
    const qkv_model_info *info = look->session->info;
    const struct predictions *blanks = &look->predictions;
    caption[0] = '\0';
    if (look->what_if.any)
        text_append(caption, bytes, "MODIFIED: not what the model computed (%s). ",
                    look->what_if.words);
    text_append(caption, bytes, "Model %s (%s), %" PRId64 " layers of %" PRId64 " heads.",
                info->source, info->architecture, info->n_layers, info->n_heads);
    for (int64_t m = 0; m < blanks->n_masks; m++) {
        char line[160] = "";
        const qkv_candidate *best = &blanks->candidates[m * blanks->top];
        char *word = session_token(look->session, best->id);
        text_append(line, sizeof line, "The model fills [MASK] at place %" PRId64 " with %s (%.2f)",
                    blanks->positions[m], word ? word : "", (double)best->probability);
        free(word);
        if (look->before.n_masks > m) {
            best = &look->before.candidates[m * look->before.top];
            word = session_token(look->session, best->id);
            text_append(line, sizeof line, ", unmodified %s (%.2f)", word ? word : "",
                        (double)best->probability);
            free(word);
        }
        text_append(line, sizeof line, ".");
        add(caption, bytes, " ", line);
    }
}

void look_page_tell(const qkv_page_result *result, int64_t n) {
    fprintf(stderr, "qkv: %" PRId64 " of %" PRId64 " heads, %.2f MB", result->n_heads, n,
            (double)result->n_bytes / 1e6);
    if (result->n_f16)
        fprintf(stderr, ", %" PRId64 " of them as f16: weights off by at most %.1e", result->n_f16,
                result->max_error);
    if (result->n_heads < n)
        fprintf(stderr, "; more than %d MB is not written: name one with --head",
                LOOK_PAGE_BYTES / 1000000);
    fputc('\n', stderr);
}

static qkv_status page_write(const struct look *look, const struct look_tokens *tokens,
                             qkv_page_head *heads, const char *path, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    char title[200], caption[600 + WHAT_IF_WORDS];
    qkv_page page = { .struct_size = sizeof page,
                      .n = look->input->n,
                      .head_dim = info->head_dim,
                      .query = look->choice.query,
                      .tokens = (const char *const *)tokens->texts,
                      .special = look->input->special,
                      .segments = look->input->types,
                      .words = tokens->words,
                      .n_heads = look->list    ? look->n_list
                                 : look->given ? 1
                                               : info->n_layers * info->n_heads,
                      .heads = heads,
                      .title = title,
                      .caption = caption,
                      .limit_bytes = LOOK_PAGE_BYTES };
    qkv_page_result result;
    struct look_maps maps = { 0 };
    char modified[WHAT_IF_WORDS + 60];
    snprintf(modified, sizeof modified, WHAT_IF_BADGE " (%s)", look->what_if.words);
    if (look->what_if.any) page.modified = modified;
    page.dropped = look->what_if.dropped;
    if (look->what_if.asked.causal) page.flags |= QKV_PAGE_CAUSAL;
    qkv_status status = look_page_heads(look, heads, &page.scale, error);
    if (status != QKV_OK) return status;
    make_title(look, tokens->texts, title, sizeof title);
    make_caption(look, caption, sizeof caption);
    const struct look_maps_job job = { look->session->ctx, page.n, page.n, page.head_dim,
                                       look->options };
    status = look_maps_make(&job, heads, page.n_heads, &maps, error);
    if (status == QKV_OK) status = qkv_view_page_write(&page, path, &result, error);
    if (status == QKV_OK && !look->options->common.quiet) look_page_tell(&result, page.n_heads);
    look_maps_free(&maps);
    return status;
}

qkv_status look_page(const struct look *look, const char *path, qkv_error *error) {
    const qkv_model_info *info = look->session->info;
    struct look_tokens tokens = { 0 };
    if (look->slide) return slide_page(look, path, error);
    qkv_page_head *heads = calloc((size_t)(info->n_layers * info->n_heads) + 1, sizeof *heads);
    qkv_status status = heads ? look_tokens_make(&tokens, look, error)
                              : text_error(error, QKV_ERR_MEMORY, "out of memory");
    if (status == QKV_OK) status = page_write(look, &tokens, heads, path, error);
    look_tokens_free(&tokens, look->input->n);
    free(heads);
    return status;
}
