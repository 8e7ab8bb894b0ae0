/* Ctrl-C, and other signals that end a process: see say.h. */
#include "common/os.h"
#include "common/say.h"

static int signal_met;

static void on_signal(int number) {
    __atomic_store_n(&signal_met, number, __ATOMIC_RELAXED);
    __atomic_store_n(&cli_cancelled, 1, __ATOMIC_RELAXED);
}

void cli_catch_interrupts(void) { os_catch_interrupts(on_signal); }

int cli_signal(void) { return __atomic_load_n(&signal_met, __ATOMIC_RELAXED); }
