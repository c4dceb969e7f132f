/* SPDX-License-Identifier: MIT */
/* An honest worker with real work (docs/protocol.md): a matrix product and two MiB of stores a
 * step. Its parameter `dummy` does nothing, so all its plans are equal. Its buffers begin wherever
 * malloc puts them, at multiples of 16 bytes, and a product may take half as long again in one
 * place as in another, for as long as the plan is resident. With HONEST=aligned they begin at
 * multiples of 64 bytes. */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROWS = 160, ELEMENTS = ROWS * ROWS, STORES = 2 << 20, PLANS = 64, PROJECTIONS = 64 };

struct plan {
    float *a, *b, *c;
    char *stores;
};

static const char *const hello =
    "{\"op\":\"hello\",\"protocol\":1,\"name\":\"honest\",\"version\":\"1\",\"launch\":\"self\","
    "\"workload\":\"a product and stores\","
    "\"parameters\":[{\"name\":\"dummy\",\"values\":[0,1,2,3],\"default\":0}]}";

static struct plan plans[PLANS];
static int count, aligned;

static void *take(size_t bytes)
{
    void *p = aligned ? aligned_alloc(64, bytes) : malloc(bytes);
    if (p == NULL)
        exit(1);
    return p;
}

static void step(const struct plan *plan)
{
    memset(plan->c, 0, ELEMENTS * sizeof *plan->c);
    for (int i = 0; i < ROWS; i++)
        for (int k = 0; k < ROWS; k++) {
            float x = plan->a[i * ROWS + k], *c = plan->c + i * ROWS;
            const float *b = plan->b + k * ROWS;
            for (int j = 0; j < ROWS; j++)
                c[j] += x * b[j];
        }
    memset(plan->stores, (int)plan->c[0], STORES);
}

static json_int_t timed(const struct plan *plan)
{
    struct timespec t[2];
    clock_gettime(CLOCK_MONOTONIC, &t[0]);
    step(plan);
    clock_gettime(CLOCK_MONOTONIC, &t[1]);
    return (t[1].tv_sec - t[0].tv_sec) * 1000000000LL + t[1].tv_nsec - t[0].tv_nsec;
}

static unsigned next(unsigned long long *state)
{
    *state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(*state >> 33);
}

/* Norm of the product, and its projections on seeded vectors of +1 and -1. */
static json_t *verification(const struct plan *plan, int projections, unsigned long long seed)
{
    double squares = 0;
    json_t *sums = json_array();
    for (int e = 0; e < ELEMENTS; e++)
        squares += (double)plan->c[e] * plan->c[e];
    for (int k = 0; k < projections; k++) {
        unsigned long long state = seed * 1000 + (unsigned)k;
        double sum = 0;
        for (int e = 0; e < ELEMENTS; e++)
            sum += next(&state) & 1 ? plan->c[e] : -plan->c[e];
        json_array_append_new(sums, json_real(sum));
    }
    return json_pack("{s:[f], s:[o]}", "norm", sqrt(squares), "projections", sums);
}

static json_t *refuse(const char *kind, const char *why)
{
    return json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", kind, "say", why);
}

static json_t *prepare(const json_t *request)
{
    if (count == PLANS)
        return json_pack("{s:s, s:s, s:s}", "op", "failed", "kind", "error", "say",
                         "too many plans");
    struct plan *plan = &plans[count++];
    unsigned long long state =
        (unsigned long long)json_integer_value(json_object_get(request, "seed"));
    *plan = (struct plan){take(ELEMENTS * sizeof(float)), take(ELEMENTS * sizeof(float)),
                          take(ELEMENTS * sizeof(float)), take(STORES)};
    for (int e = 0; e < ELEMENTS; e++) {
        plan->a[e] = (float)next(&state) * 0x1p-31F - 0.5F;
        plan->b[e] = (float)next(&state) * 0x1p-31F - 0.5F;
    }
    json_int_t cold = timed(plan);
    step(plan);
    const json_t *verify = json_object_get(request, "verify");
    int projections = (int)json_integer_value(json_object_get(verify, "projections"));
    if (projections > PROJECTIONS)
        projections = PROJECTIONS;
    return json_pack(
        "{s:s, s:i, s:[i], s:i, s:[I], s:o}", "op", "prepared", "handle", count, "peak_bytes",
        STORES, "resident_bytes", count * STORES, "cold_ns", cold, "verify",
        verification(plan, projections,
                     (unsigned long long)json_integer_value(json_object_get(verify, "seed"))));
}

static json_t *run(const json_t *request, const struct plan *plan)
{
    json_t *rows = json_array();
    for (json_int_t n = json_integer_value(json_object_get(request, "n")); n > 0; n--)
        json_array_append_new(rows, json_pack("[I]", timed(plan)));
    return json_pack("{s:s, s:O, s:o}", "op", "samples", "handle",
                     json_object_get(request, "handle"), "ns", rows);
}

static json_t *release(const json_t *request, struct plan *plan)
{
    free(plan->a);
    free(plan->b);
    free(plan->c);
    free(plan->stores);
    *plan = (struct plan){0};
    return json_pack("{s:s, s:O}", "op", "released", "handle", json_object_get(request, "handle"));
}

static json_t *answer(const json_t *request)
{
    const char *op = json_string_value(json_object_get(request, "op"));
    json_int_t handle = json_integer_value(json_object_get(request, "handle"));
    if (strcmp(op, "prepare") == 0)
        return prepare(request);
    if (handle >= 1 && handle <= count && plans[handle - 1].a != NULL && strcmp(op, "run") == 0)
        return run(request, &plans[handle - 1]);
    if (handle >= 1 && handle <= count && plans[handle - 1].a != NULL && strcmp(op, "release") == 0)
        return release(request, &plans[handle - 1]);
    return refuse("error", "there is no such request or handle");
}

static void say(json_t *message)
{
    json_dumpf(message, stdout, JSON_COMPACT);
    putchar('\n');
    fflush(stdout);
    json_decref(message);
}

int main(void)
{
    char *line = NULL;
    size_t room = 0;
    const char *how = getenv("HONEST");
    aligned = how != NULL && strcmp(how, "aligned") == 0;
    while (getline(&line, &room, stdin) > 0) {
        json_t *request = json_loads(line, 0, NULL);
        const char *op = json_string_value(json_object_get(request, "op"));
        if (op == NULL || strcmp(op, "quit") == 0)
            break;
        if (strcmp(op, "hello") == 0) {
            puts(hello);
            say(json_pack("{s:s, s:s, s:[{s:i, s:i, s:s, s:s}]}", "op", "ready", "comm", "self",
                          "ranks", "rank", 0, "pid", (int)getpid(), "host", "here", "device",
                          "cpu"));
        } else {
            say(answer(request));
        }
        json_decref(request);
    }
    free(line);
    return 0;
}
