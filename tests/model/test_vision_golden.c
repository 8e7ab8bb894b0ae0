/*
 * Models that read images against transformers in float64 (tools/vision_cases.py): hidden states,
 * weights of every head, what is pooled, the joint space of CLIP, logits of classes, and of models
 * with a classifier the loss and every gradient, each within the bound of golden_model.h.
 *
 *     golden_vision [FOLDER...]     other folders than those of tests/golden/vision
 */
#include "golden/golden_model.h"
#include "image/prepare.h"
#include "model/arch/net.h"
#include "qkv/effects.h"
#include "qkv/inspect.h"
#include "qkv/vision.h"

enum { MAX_IMAGES = 8 };

typedef struct pictures {
    int64_t n, n_tokens;
    qkv_encoding *tokens[MAX_IMAGES];
    bool own_size[MAX_IMAGES];
} pictures;

static const char *const default_names[] = { "vit_1",    "vit_2",       "deit_1",   "dinov2_1",
                                             "dinov2_2", "registers_1", "dinov3_1", "siglip_1",
                                             "siglip_2", "clip_1" };

static bool stored(const golden *g, const char *name) {
    return qkvi_safetensors_find(g->expected, name) != NULL;
}

static void open_folder(golden *g, const char *folder) {
    char path[1024];
    qkv_error error;
    *g = (golden){ .name = folder };
    if (qkv_model_open(folder, NULL, &g->model, &error) != QKV_OK) fail_msg("%s", error.message);
    if (qkvi_model_open_to_train(folder, &g->trained, &error) != QKV_OK)
        fail_msg("%s", error.message);
    snprintf(path, sizeof path, "%s/expected.safetensors", folder);
    if (qkvi_safetensors_open(path, &g->expected, &error) != QKV_OK) fail_msg("%s", error.message);
    assert_int_equal(qkv_ctx_create(NULL, &g->ctx, NULL), QKV_OK);
}

/* The images, encoded for a model. */
static void encode(const golden *g, const qkv_model *model, pictures *p) {
    qkv_error error;
    *p = (pictures){ 0 };
    int32_t *const any_size = read_ints(g, "any_size", &p->n);
    assert_true(p->n <= MAX_IMAGES);
    for (int64_t i = 0; i < p->n; i++) {
        char name[32];
        snprintf(name, sizeof name, "image.%d", (int)i);
        const qkvi_stored *const image = find(g, name);
        float *const pixels = read_floats(g, name, image->n_elems);
        if (qkv_image_encode(model, image->shape[1], image->shape[2], pixels,
                             any_size[i] ? QKV_IMAGE_ANY_SIZE : 0, &p->tokens[i], &error) != QKV_OK)
            fail_msg("%s: %s", g->name, error.message);
        free(pixels);
        p->own_size[i] = !any_size[i];
        p->n_tokens += p->tokens[i]->n;
    }
    free(any_size);
}

static void pictures_free(pictures *p) {
    for (int64_t i = 0; i < p->n; i++) qkv_encoding_free(p->tokens[i]);
}

/* ---- What runs ------------------------------------------------------------------------------- */

static void check_hidden(golden *g, const qkv_model *model, const qkv_run *run, const char *kind,
                         int64_t n, const int64_t *lengths) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    int64_t n_tokens = 0;
    for (int64_t b = 0; b < n; b++) n_tokens += lengths[b];
    float *const x = malloc((size_t)(n_tokens * info->hidden) * sizeof *x);
    for (int64_t l = 0; l <= info->n_layers; l++) {
        char name[80];
        float *at = x;
        for (int64_t b = 0; b < n; at += lengths[b++] * info->hidden)
            memcpy(at, qkv_run_hidden(run, QKV_SELF, b, l),
                   (size_t)(lengths[b] * info->hidden) * sizeof *x);
        snprintf(name, sizeof name, "%s.%d", kind, (int)l);
        compare(g, name, x, (size_t)(n_tokens * info->hidden), 0);
    }
    free(x);
}

static void check_weights(golden *g, const qkv_model *model, const qkv_run *run, const char *kind,
                          int64_t n, const int64_t *lengths) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    int64_t n_weights = 0;
    for (int64_t b = 0; b < n; b++) n_weights += info->n_heads * lengths[b] * lengths[b];
    float *const x = malloc((size_t)n_weights * sizeof *x);
    for (int64_t l = 0; l < info->n_layers; l++) {
        char name[80];
        float *at = x;
        for (int64_t b = 0; b < n; b++)
            for (int64_t h = 0; h < info->n_heads; h++, at += lengths[b] * lengths[b])
                assert_int_equal(qkv_run_weights(run, QKV_SELF, b, l, h, at, NULL), QKV_OK);
        snprintf(name, sizeof name, "%s.%d", kind, (int)l);
        compare(g, name, x, (size_t)n_weights, 1);
    }
    free(x);
}

typedef qkv_status vector_call(qkv_ctx *, const qkv_model *, const qkv_run *, int64_t, float *,
                               qkv_error *);

/* vectors [n][dim] of a head, against the tensor of that name; NULL: there is none. */
static float *check_vectors(golden *g, const qkv_model *model, const qkv_run *run, int64_t n,
                            int64_t dim, const char *name, vector_call *call) {
    qkv_error error;
    if (!stored(g, name)) return NULL;
    float *const x = malloc((size_t)(n * dim) * sizeof *x);
    for (int64_t b = 0; b < n; b++)
        if (call(g->ctx, model, run, b, x + b * dim, &error) != QKV_OK)
            fail_msg("%s: %s: %s", g->name, name, error.message);
    compare(g, name, x, (size_t)(n * dim), 0);
    return x;
}

/* The steps of queries before the patches and among them, against what the run computed. */
static void check_steps(const golden *g, const qkv_model *model, const qkv_run *run, int64_t n,
                        const qkv_encoding *const *inputs) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    for (int64_t b = 0; b < n; b++)
        for (int64_t layer = 0; layer < info->n_layers; layer++) {
            const int64_t queries[] = { 0, info->n_prefix, inputs[b]->n - 1 };
            for (int i = 0; i < 3; i++) {
                qkv_steps *s;
                qkv_error error;
                double most = 1;
                if (qkv_inspect_steps(model, run, b, inputs[b], layer, b % info->n_heads,
                                      queries[i], &s, &error) != QKV_OK)
                    fail_msg("%s: %s", g->name, error.message);
                for (int64_t c = 0; c < s->n * s->hidden; c++) most = fmax(most, fabs(s->x[c]));
                const double errors[] = { s->embedded_error, s->q_error,       s->k_error,
                                          s->lse_error,      s->weights_error, s->y_error };
                for (int e = 0; e < 6; e++)
                    if (!(errors[e] <= 2e-5 * most))
                        fail_msg("%s: image %d, layer %d, query %d: step %d is off by %g", g->name,
                                 (int)b, (int)layer, (int)queries[i], e, errors[e]);
                qkv_steps_free(s);
            }
        }
}

static float *check_run(golden *g, const qkv_model *model, int64_t n,
                        const qkv_encoding *const *inputs, const char *prefix) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    int64_t lengths[MAX_IMAGES];
    char names[4][48];
    qkv_error error;
    qkv_run *run;
    if (qkv_model_run(g->ctx, model, n, inputs, QKV_RUN_CAPTURE | QKV_RUN_HIDDEN, NULL, &run,
                      &error) != QKV_OK)
        fail_msg("%s: %s", g->name, error.message);
    static const char *const kinds[] = { "hidden", "weights", "pooled", "joint" };
    for (int i = 0; i < 4; i++) snprintf(names[i], sizeof names[i], "%s%s", prefix, kinds[i]);
    for (int64_t b = 0; b < n; b++) lengths[b] = inputs[b]->n;
    check_hidden(g, model, run, names[0], n, lengths);
    check_weights(g, model, run, names[1], n, lengths);
    free(check_vectors(g, model, run, n, info->hidden, names[2], qkv_model_pool));
    free(check_vectors(g, model, run, n, info->n_labels, "logits", qkv_model_classify));
    if (info->patch_height > 0) check_steps(g, model, run, n, inputs);
    float *const joint =
        check_vectors(g, model, run, n, info->joint_dim, names[3], qkv_model_joint);
    qkv_run_free(run);
    return joint;
}

/* Texts of CLIP or SigLIP, and how well they match the images. */
static void check_texts(golden *g, int64_t n_images, const float *images) {
    const qkv_model_info *const info = qkv_model_get_info(g->model);
    const qkv_encoding *inputs[MAX_IMAGES];
    qkv_encoding texts[MAX_IMAGES] = { 0 };
    int64_t n, n_tokens, at = 0;
    int32_t *const lengths = read_ints(g, "text_lengths", &n);
    int32_t *const ids = read_ints(g, "text_ids", &n_tokens);
    for (int64_t b = 0; b < n; at += lengths[b++]) {
        texts[b] = (qkv_encoding){ .n = lengths[b], .ids = ids + at };
        inputs[b] = &texts[b];
    }
    float *const joint = check_run(g, g->model, n, inputs, "text_");
    float *const match = malloc((size_t)(n * n_images) * sizeof *match);
    for (int64_t i = 0; i < n_images; i++) {
        double logits[MAX_IMAGES], shares[MAX_IMAGES], sum = 0;
        assert_int_equal(
            qkv_image_match(g->model, images + i * info->joint_dim, n, joint, logits, shares, NULL),
            QKV_OK);
        for (int64_t b = 0; b < n; b++) {
            match[i * n + b] = (float)logits[b];
            const double wanted = info->match_each ? 1 / (1 + exp(-logits[b]))
                                                   : shares[0] * exp(logits[b] - logits[0]);
            assert_true(fabs(shares[b] - wanted) < 1e-12 * wanted);
            sum += shares[b];
        }
        assert_true(info->match_each || fabs(sum - 1) < 1e-12);
    }
    compare(g, "match", match, (size_t)(n * n_images), 0);
    free(match);
    free(joint);
    free(ids);
    free(lengths);
}

/* ---- Ablated heads --------------------------------------------------------------------------- */

/* Each head, all heads of layer 0, the first and the last head. */
static int64_t make_sets(const qkv_model_info *info, int64_t **ends, int64_t **heads) {
    const int64_t n_all = info->n_layers * info->n_heads, n_sets = n_all + 2;
    int64_t n = 0;
    *ends = calloc((size_t)n_sets, sizeof **ends);
    *heads = calloc((size_t)(n_all + info->n_heads + 2), sizeof **heads);
    assert_true(*ends && *heads);
    for (int64_t s = 0; s < n_all; s++) (*heads)[n] = s, (*ends)[s] = ++n;
    for (int64_t h = 0; h < info->n_heads; h++) (*heads)[n++] = h;
    (*ends)[n_all] = n;
    (*heads)[n++] = 0, (*heads)[n++] = n_all - 1;
    (*ends)[n_all + 1] = n;
    return n_sets;
}

/* ln p of every class, for each set on its own and several at a time. */
static void check_effects(golden *g, const qkv_model *model, const qkv_encoding *input) {
    const qkv_model_info *const info = qkv_model_get_info(model);
    const int64_t n = info->n_labels;
    int64_t *ends, *heads;
    qkv_effects asked = qkv_effects_init();
    qkv_error error;
    int32_t labels[16];
    assert_true(n <= 16);
    for (int64_t c = 0; c < n; c++) labels[c] = (int32_t)c;
    asked.head = QKV_HEAD_LABEL;
    asked.n_places = n;
    asked.words = labels;
    asked.n_sets = make_sets(info, &ends, &heads);
    asked.ends = ends;
    asked.heads = heads;
    const size_t n_rows = (size_t)asked.n_sets + 1, n_found = n_rows * (size_t)n;
    double *const log_p = calloc(n_found, sizeof *log_p), *const again = calloc(n_found, 8);
    float *const found = calloc(n_found, sizeof *found);
    asked.logits = calloc(n_found, sizeof *asked.logits);
    assert_true(log_p && again && found && asked.logits);
    if (qkv_inspect_effects(g->ctx, model, input, &asked, log_p, NULL, &error) != QKV_OK)
        fail_msg("%s: %s", g->name, error.message);
    for (size_t i = 0; i < n_found; i++) found[i] = (float)log_p[i];
    compare(g, "effects", found, n_found, 0);
    for (size_t i = 0; i < n_found && info->label_kind == QKV_LABELS_ONE; i++) {
        const size_t first = i - i % (size_t)n;
        const double apart = (double)asked.logits[i] - (double)asked.logits[first];
        assert_true(fabs(log_p[i] - log_p[first] - apart) <= 1e-12 * (1 + fabs(apart)));
    }
    asked.max_tokens = 1;
    assert_int_equal(qkv_inspect_effects(g->ctx, model, input, &asked, again, NULL, &error),
                     QKV_OK);
    assert_memory_equal(log_p, again, n_found * sizeof *log_p);
    labels[0] = (int32_t)n;
    assert_int_equal(qkv_inspect_effects(g->ctx, model, input, &asked, again, NULL, &error),
                     QKV_ERR_ARGUMENT);
    free(asked.logits);
    free(found);
    free(again);
    free(log_p);
    free(ends);
    free(heads);
}

/* ---- What learns ----------------------------------------------------------------------------- */

/* A stored gradient, in the row's own layout. */
static void check_gradient(golden *g, const qkvi_param *row, const float *grads, float kind) {
    char name[128];
    float *const wanted = expected_gradient(g, row);
    snprintf(name, sizeof name, "grad.%s", row->name);
    compare_arrays(g, name, grads + row->offset, wanted, row->n_elems, kind);
    free(wanted);
}

static float largest_gradient(const golden *g, const qkvi_param_table *table) {
    float most = 0;
    for (int64_t r = 0; r < table->n_rows; r++) {
        float *const x = expected_gradient(g, &table->rows[r]);
        most = fmaxf(most, largest(x, table->rows[r].n_elems));
        free(x);
    }
    return most;
}

static void check_gradients(golden *g, const pictures *p) {
    const qkv_model *const model = g->trained;
    qkvi_net *net, *grads;
    qkvi_net_pass *pass;
    qkvi_net_losses losses;
    qkvi_pixels images[MAX_IMAGES];
    int64_t lengths[MAX_IMAGES], n = 0, n_labels;
    qkv_error error = { 0 };
    int32_t *const labels = read_ints(g, "labels", &n_labels);
    for (int64_t i = 0; i < p->n; i++) {
        const qkv_image_tokens *const image = p->tokens[i]->image;
        if (!p->own_size[i]) continue;
        images[n] = (qkvi_pixels){ image->pixels, image->height, image->width };
        lengths[n++] = p->tokens[i]->n;
    }
    assert_int_equal(n, n_labels);
    float *const arena = qkvi_params_arena(&model->params);
    for (size_t i = 0; i < model->params.n_elems; i++) arena[i] = 7; /* gradients are stored */
    assert_int_equal(qkvi_net_bind(&model->info, &model->params, model->arena,
                                   QKVI_NET_FORWARD | QKVI_NET_BACKWARD, &net, &error),
                     QKV_OK);
    assert_int_equal(qkvi_net_bind(&model->info, &model->params, arena, 0, &grads, &error), QKV_OK);
    assert_int_equal(qkvi_net_pass_create(&pass, &error), QKV_OK);
    qkvi_net_pack(g->ctx, net);
    const qkvi_net_batch batch = {
        .n_sequences = n, .lengths = lengths, .images = images, .labels = labels
    };
    if (qkvi_net_loss(g->ctx, net, &batch, pass, grads, &losses, &error) != QKV_OK)
        fail_msg("%s: %s", g->name, error.message);
    const float loss = (float)losses.label;
    compare(g, "loss", &loss, 1, 0);
    /*
     * Terms of the largest gradients may cancel, as those of two images with other classes do, and
     * each is a rounding away: the floor of the bound is four of the largest gradient, 2^-21 of it.
     */
    const float kind = 4.8f * largest_gradient(g, &model->params);
    for (int64_t r = 0; r < model->params.n_rows; r++)
        check_gradient(g, &model->params.rows[r], arena, kind);
    qkvi_net_pass_free(pass);
    qkvi_net_free(net);
    qkvi_net_free(grads);
    free(arena);
    free(labels);
}

static void test_model(void **state) {
    golden g;
    pictures p;
    open_folder(&g, *state);
    const qkv_model *const sees = qkv_model_images(g.model);
    assert_non_null(sees);
    encode(&g, sees, &p);
    float *const joint = check_run(&g, sees, p.n, (const qkv_encoding *const *)p.tokens, "");
    if (stored(&g, "text_ids")) check_texts(&g, p.n, joint);
    if (stored(&g, "effects")) check_effects(&g, sees, p.tokens[0]);
    if (stored(&g, "labels")) check_gradients(&g, &p);
    free(joint);
    pictures_free(&p);
    close_golden(&g);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static void test_tokens(void **state) {
    golden g;
    pictures p;
    char name[32];
    open_folder(&g, *state);
    encode(&g, g.model, &p);
    const qkv_image_tokens *const image = p.tokens[2]->image;
    const int64_t n_classes = image->n_prefix - image->n_registers;
    assert_int_equal(p.tokens[2]->n, image->n_prefix + image->rows * image->columns);
    for (int64_t i = 0; i < p.tokens[2]->n; i++) {
        char wanted[32];
        const int64_t at = i - image->n_prefix;
        snprintf(wanted, sizeof wanted, "%d,%d", (int)(at / image->columns),
                 (int)(at % image->columns));
        if (at < 0) snprintf(wanted, sizeof wanted, "[REG%d]", (int)(i - n_classes));
        if (i < n_classes) snprintf(wanted, sizeof wanted, i == 0 ? "[CLS]" : "[DIST]");
        qkv_image_token(p.tokens[2], i, name);
        assert_string_equal(name, wanted);
        assert_int_equal(p.tokens[2]->special[i], at < 0);
    }
    qkv_image_token(p.tokens[2], p.tokens[2]->n, name);
    assert_string_equal(name, "");
    pictures_free(&p);
    close_golden(&g);
}

/* An image as it is: what the model's file says is done with it, and it is told what was. */
static void test_see(void **state) {
    enum { HEIGHT = 20, WIDTH = 31 };
    static uint8_t rgb[HEIGHT * WIDTH * 3];
    static float pixels[3 * 40 * 40];
    golden g;
    qkv_image *image;
    qkv_encoding *tokens;
    qkv_error error;
    qkv_see_options options = qkv_see_options_init();
    open_folder(&g, *state);
    const qkv_model *const sees = qkv_model_images(g.model);
    for (size_t i = 0; i < sizeof rgb; i++) rgb[i] = (uint8_t)(i * 37 % 251);
    assert_int_equal(qkv_image_from_rgb(rgb, HEIGHT, WIDTH, &image, &error), QKV_OK);
    const int64_t own = sees->info.image_height;
    for (int64_t size = 0; size <= 40; size += 40) {
        qkvi_image_rules rules = sees->image_rules;
        options.size = size;
        if (size && rules.crop_height)
            rules.shortest_edge = rules.crop_height = rules.crop_width = size;
        else if (size)
            rules.height = rules.width = size;
        if (qkv_image_see(sees, image, &options, &tokens, &error) != QKV_OK)
            fail_msg("%s", error.message);
        const qkv_image_tokens *const t = tokens->image;
        const int64_t side = size ? size : own;
        assert_int_equal(t->height, side);
        assert_int_equal(t->width, side);
        assert_int_equal(t->rows, side / 4);
        assert_int_equal(qkvi_image_prepare(&rules, image, pixels, NULL, &error), QKV_OK);
        assert_memory_equal(t->pixels, pixels, (size_t)(3 * side * side) * sizeof *pixels);
        assert_non_null(t->rgb);
        assert_true(t->y0 == 0 && t->y1 == HEIGHT);
        assert_true(rules.crop_height ? t->x0 > 5 && t->x1 < 26 : t->x0 == 0 && t->x1 == WIDTH);
        qkv_encoding_free(tokens);
    }
    options.size = -1;
    assert_int_equal(qkv_image_see(sees, image, &options, &tokens, &error), QKV_ERR_ARGUMENT);
    assert_null(tokens);
    options.size = 4097;
    assert_int_equal(qkv_image_see(sees, image, &options, &tokens, &error), QKV_ERR_LIMIT);
    qkv_image_free(image);
    qkvi_safetensors_close(g.expected);
    qkv_model_free(g.model);
    qkv_model_free(g.trained);
    qkv_ctx_free(g.ctx);
}

static void expect(qkv_status wanted, qkv_status status, const qkv_error *error, const char *text) {
    if (status != wanted || !strstr(error->message, text))
        fail_msg("status %d, message '%s', not %d with '%s'", (int)status, error->message,
                 (int)wanted, text);
}

static void test_refusals(void **state) {
    golden g;
    pictures p;
    qkv_error error;
    qkv_encoding *tokens;
    qkv_run *run;
    int32_t id = 0;
    const float pixel = 0;
    const qkv_encoding text = { .n = 1, .ids = &id }, *const texts[] = { &text };
    open_folder(&g, *state);
    encode(&g, g.model, &p);
    const qkv_model_info *const info = qkv_model_get_info(g.model);
    const int64_t h = info->image_height, w = info->image_width;
    expect(QKV_ERR_SHAPE, qkv_image_encode(g.model, h + 4, w, &pixel, 0, &tokens, &error), &error,
           "the model 16 by 16");
    expect(QKV_ERR_SHAPE,
           qkv_image_encode(g.model, 3, w, &pixel, QKV_IMAGE_ANY_SIZE, &tokens, &error), &error,
           "has no patch of 4 by 4");
    expect(QKV_ERR_LIMIT,
           qkv_image_encode(g.model, 1 << 14, 1 << 13, &pixel, QKV_IMAGE_ANY_SIZE, &tokens, &error),
           &error, "more than 67108864");
    expect(QKV_ERR_ARGUMENT, qkv_image_encode(g.model, h, w, &pixel, 2, &tokens, &error), &error,
           "unknown bits");
    assert_null(tokens);
    expect(QKV_ERR_UNSUPPORTED, qkv_model_run(g.ctx, g.model, 1, texts, 0, NULL, &run, &error),
           &error, "inputs[0] is a text, and the model reads images");
    p.tokens[0]->image->height -= 4;
    expect(QKV_ERR_SHAPE,
           qkv_model_run(g.ctx, g.model, 1, (const qkv_encoding *const *)p.tokens, 0, NULL, &run,
                         &error),
           &error, "input 0 has 17 tokens, but an image of 12 by 16");
    p.tokens[0]->image->height += 4;
    assert_null(qkv_model_tokenizer(g.model, QKV_SOURCE));
    pictures_free(&p);
    close_golden(&g);
}

int main(int argc, char **argv) {
    enum { N_DEFAULT = sizeof default_names / sizeof *default_names, MOST = 512 };
    static char folders[N_DEFAULT][512];
    static struct CMUnitTest tests[MOST];
    int n = 0;
    for (int i = 0; i < N_DEFAULT; i++)
        snprintf(folders[i], sizeof folders[i], "%s/golden/vision/%s", QKV_TEST_DATA,
                 default_names[i]);
    for (int i = 0; argc < 2 && i < N_DEFAULT; i++)
        tests[n++] = (struct CMUnitTest){ folders[i], test_model, NULL, NULL, folders[i] };
    for (int i = 1; i < argc && n < MOST; i++)
        tests[n++] = (struct CMUnitTest){ argv[i], test_model, NULL, NULL, argv[i] };
    if (argc < 2) {
        tests[n++] = (struct CMUnitTest){ "tokens", test_tokens, NULL, NULL, folders[5] };
        tests[n++] = (struct CMUnitTest){ "see", test_see, NULL, NULL, folders[0] };
        tests[n++] = (struct CMUnitTest){ "see, cropped", test_see, NULL, NULL, folders[9] };
        tests[n++] = (struct CMUnitTest){ "refusals", test_refusals, NULL, NULL, folders[0] };
    }
    struct CMUnitTest *const all = tests;
    return _cmocka_run_group_tests("golden_vision", all, (size_t)n, NULL, NULL);
}
