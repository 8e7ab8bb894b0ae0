/* Ctrl-C, and other signals that end a process: see say.h. */
#include <signal.h>
#include <stddef.h>

#include "common/say.h"

static volatile sig_atomic_t signal_met;

static void on_signal(int number) {
    signal_met = number;
    __atomic_store_n(&cli_cancelled, 1, __ATOMIC_RELAXED);
}

/*
 * Reset on the first signal, so that the second one ends the process. A SIGHUP comes when a
 * terminal is closed; nohup has it ignored.
 */
void cli_catch_interrupts(void) {
    struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND }, before;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
}

int cli_signal(void) { return signal_met; }
