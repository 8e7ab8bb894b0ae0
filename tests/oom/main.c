/*
 * oom GROUP [SEED]: sweeps the calls of a group, each as one cmocka test. oom list: the names of
 * all functions that are swept.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "limits/temporary.h"
#include "oom/calls.h"
#include "oom/fail_alloc.h"

enum { MAX_CALLS = 96 };

static const oom_group *const groups[] = { &oom_attention, &oom_columns,  &oom_kv,    &oom_onnx,
                                           &oom_layers,    &oom_text,     &oom_store, &oom_model,
                                           &oom_pairs,     &oom_generate, &oom_heads, &oom_inspect,
                                           &oom_patterns,  &oom_train,    &oom_view,  &oom_rotary,
                                           &oom_eval,      &oom_image,    &oom_vision };
static const oom_group *group;
static uint64_t seed = 1;

static void test_sweep(void **state) { oom_sweep(*state, seed); }

static int list(void) {
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++)
        for (size_t c = 0; c < groups[g]->n_calls; c++) puts(groups[g]->calls[c].function);
    return 0;
}

static int set_up(void **state) {
    (void)state;
    const char *const memory = getenv("QKV_TEST_SHM"); /* there a flush takes no time */
    if (!mkdtemp(temporary_in(memory ? memory : "/dev/shm", "qkv-oom", oom_folder)) &&
        !mkdtemp(temporary("qkv-oom", oom_folder)))
        return -1;
    if (group->setup) group->setup();
    fail_alloc_start();
    print_message("seed %llu\n", (unsigned long long)seed);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (group->teardown) group->teardown();
    oom_put(oom_folder, NULL, 0);
    return 0;
}

int main(int argc, char **argv) {
    static char names[MAX_CALLS][128];
    static struct CMUnitTest tests[MAX_CALLS];
    if (argc == 2 && !strcmp(argv[1], "list")) return list();
    for (size_t g = 0; argc > 1 && g < sizeof groups / sizeof *groups; g++)
        if (!strcmp(groups[g]->name, argv[1])) group = groups[g];
    if (!group || group->n_calls > MAX_CALLS) {
        fprintf(stderr, "usage: oom GROUP [SEED], oom list\n");
        return 2;
    }
    if (argc > 2) seed = strtoull(argv[2], NULL, 10);
    for (size_t c = 0; c < group->n_calls; c++) {
        const oom_call *const call = &group->calls[c];
        snprintf(names[c], sizeof names[c], "%s: %s", call->function, call->what);
        tests[c] = (struct CMUnitTest){ .name = names[c],
                                        .test_func = test_sweep,
                                        .initial_state = (void *)(uintptr_t)call };
    }
    return _cmocka_run_group_tests(group->name, tests, group->n_calls, set_up, tear_down);
}
