/* SPDX-License-Identifier: MIT */
/* Measures the time to read, count and list the spaces in files.
 *
 *     bench-space-speed FILE...
 *
 * Prints, of each, the plans, the milliseconds of this thread's processor time from the file's text
 * to the sealed space (the least of five; reading the JSON apart), and the memory of the space.
 */
#include "base/clock.h"
#include "space/json/json.h"
#include "space/space.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { REPEATS = 5 };

struct timing {
    double whole, text; /* milliseconds */
};

static void die(void)
{
    fprintf(stderr, "bench-space-speed: %s\n", dt_message());
    exit(1);
}

static struct dt_space *read_timed(const char *path, struct timing *timing)
{
    struct dt_space *space = NULL;
    json_t *root = NULL;
    int64_t start = dt_clock_thread_ns();
    if (dt_json_read(path, "the space", &root) < 0)
        die();
    int64_t parsed = dt_clock_thread_ns();
    if (dt_space_from_json(root, path, &space) < 0)
        die();
    timing->whole = fmin(timing->whole, (double)(dt_clock_thread_ns() - start) * 1e-6);
    timing->text = fmin(timing->text, (double)(parsed - start) * 1e-6);
    json_decref(root);
    return space;
}

int main(int argc, char *argv[])
{
    double sum = 0;
    printf(
        "| space | product | feasible | ms | of it JSON | memory |\n|---|---|---|---|---|---|\n");
    for (int i = 1; i < argc; i++) {
        struct timing timing = {INFINITY, INFINITY};
        for (int k = 0; k < REPEATS; k++) {
            struct dt_space *space = read_timed(argv[i], &timing);
            if (k == REPEATS - 1) {
                const char *name = argv[i];
                for (const char *c = name; *c != '\0'; c++)
                    name = *c == '/' ? c + 1 : name;
                printf("| %s | %.0f | %lld | %.2f | %.2f | %.2f MB |\n", name,
                       dt_space_cartesian(space), (long long)dt_space_count(space), timing.whole,
                       timing.text, (double)dt_space_bytes(space) * 1e-6);
            }
            dt_space_free(space);
        }
        sum += timing.whole;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("\n%d spaces: %.1f ms; largest memory of the process %.1f MB\n", argc - 1, sum,
           (double)usage.ru_maxrss * 1024e-6);
    return 0;
}
