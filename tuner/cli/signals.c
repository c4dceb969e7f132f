/* SPDX-License-Identifier: MIT */
#include "tuner/cli/signals.h"

#include <signal.h>
#include <stddef.h>

void dt_signals_catch(void (*handler)(int number))
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction action = {.sa_handler = handler}, before;
        sigemptyset(&action.sa_mask);
        if (sigaction(numbers[i], NULL, &before) != 0 || before.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
    }
}

dt_status dt_signals_status(int number)
{
    return number == SIGTERM ? DT_ETERM : number == SIGHUP ? DT_EHUP : DT_EINTR;
}
