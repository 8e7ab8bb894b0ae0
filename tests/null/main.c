/*
 * See nulls.h. `null list` prints each function with the number of its pointers, for complete.sh.
 */
#include "null/nulls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_POINTER = -1, ALL_POINTERS = -2 };
enum { OK, REFUSED, REFUSED_SILENTLY, WRONG };

qkv_error null_error;
qkv_ctx *null_ctx;
static int whose_turn = NO_POINTER, n_failed, n_cases;

void *null_or(int index, void *value) {
    return whose_turn == index || whose_turn == ALL_POINTERS ? NULL : value;
}

void null_must(qkv_status status) {
    if (status == QKV_OK) return;
    printf("cannot begin: %s %s\n", qkv_status_name(status), null_error.message);
    exit(1);
}

/* In a process of its own. */
static int attempt(const null_call *call, int turn) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        whose_turn = turn;
        null_error = (qkv_error){ QKV_OK, "" };
        const qkv_status status = call->make();
        const char *const message =
            null_error.message[0] ? null_error.message : qkv_ctx_message(null_ctx);
        if (turn == NO_POINTER && status != QKV_OK)
            printf("%s: %s %s\n", call->function, qkv_status_name(status), message), fflush(stdout);
        _exit(status == QKV_OK             ? OK
              : status != QKV_ERR_ARGUMENT ? WRONG
              : strstr(message, "NULL")    ? REFUSED
                                           : REFUSED_SILENTLY);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static const char *name_of(int outcome) {
    static const char *const names[] = { "succeeds", "is refused", "is refused without a word",
                                         "fails otherwise" };
    return outcome >= 0 && outcome <= WRONG ? names[outcome] : "crashes";
}

static void check(const null_call *call, int turn, int expected) {
    const int got = attempt(call, turn);
    n_cases++;
    if (got == expected) return;
    n_failed++;
    printf("%s, pointer %d NULL: %s, expected: %s\n", call->function, turn, name_of(got),
           name_of(expected));
}

static void run(const null_call *calls) {
    for (const null_call *call = calls; call->function; call++) {
        check(call, NO_POINTER, OK);
        for (int p = 0; call->pointers[p]; p++)
            check(call, p,
                  call->pointers[p] == 'n'   ? OK
                  : call->pointers[p] == 'r' ? REFUSED
                                             : REFUSED_SILENTLY);
        if (attempt(call, ALL_POINTERS) < 0) {
            n_failed++;
            printf("%s, all pointers NULL: crashes\n", call->function);
        }
    }
}

static void list(const null_call *calls) {
    for (; calls->function; calls++)
        if (!strchr(calls->function, ':'))
            printf("%s %zu\n", calls->function, strlen(calls->pointers));
}

int main(int argc, char **argv) {
    static const null_call *const groups[] = { null_core,  null_kv,    null_onnx,  null_layers,
                                               null_model, null_files, null_heads, null_inspect,
                                               null_view,  null_inside };
    const int lists = argc > 1 && strcmp(argv[1], "list") == 0;
    if (!lists) {
        mkdir(NULL_FOLDER, 0777);
        null_core_begin();
        null_model_begin();
    }
    for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) (lists ? list : run)(groups[g]);
    if (!lists) printf("%d cases, %d failed\n", n_cases, n_failed);
    return n_failed > 0;
}
