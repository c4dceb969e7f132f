/* SPDX-License-Identifier: MIT */
/* Compares the kernels with the libraries and the memory of this machine, side by side in one run.
 *
 *     bench-kernels [linear|attention|passes]... [--threads N] [--turns N]      (default: all, 2 threads, 7 turns)
 *
 * A line is a ratio: median of the turns' ratios [least, greatest], and both median rates.
 */
#include "bench/kernels/side.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int refuse(void)
{
    fprintf(stderr,
            "usage: bench-kernels [linear|attention|passes]... [--threads 1..] [--turns 1..%d]\n",
            DT_BENCH_TURNS);
    return 2;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"linear", dt_bench_linear},
                 {"attention", dt_bench_attention},
                 {"passes", dt_bench_passes}};
    enum { PARTS = sizeof parts / sizeof parts[0] };
    unsigned wanted = 0;
    for (int i = 1; i < argc; i++) {
        unsigned found = 0;
        for (unsigned k = 0; k < PARTS; k++)
            found |= strcmp(argv[i], parts[k].name) == 0 ? 1u << k : 0;
        wanted |= found;
        if (found == 0 && i + 1 < argc && strcmp(argv[i], "--threads") == 0)
            dt_bench_threads = atoi(argv[++i]);
        else if (found == 0 && i + 1 < argc && strcmp(argv[i], "--turns") == 0)
            dt_bench_turns = atoi(argv[++i]);
        else if (found == 0)
            return refuse();
    }
    if (dt_bench_threads < 1 || dt_bench_turns < 1 || dt_bench_turns > DT_BENCH_TURNS)
        return refuse();
    dt_compute_cpu.threads(NULL, dt_bench_threads);
    for (unsigned k = 0; k < PARTS; k++)
        if (wanted == 0 || (wanted >> k & 1) != 0)
            parts[k].run();
    return 0;
}
