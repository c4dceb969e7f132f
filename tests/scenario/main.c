/* SPDX-License-Identifier: MIT */
#include "tests/scenario/scenario.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    static struct worker worker;
    const char *path = getenv("SCENARIO"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (rank != NULL && strcmp(rank, "0") != 0)
        return 0; /* mpirun starts one of us a rank, and the first speaks for all */
    if (path == NULL)
        die("set SCENARIO to", "the scenario's file");
    scenario_read(path, &worker.scenario);
    faults_check(worker.scenario.root);
    clock_open(text_of(worker.scenario.root, "say", ""));
    worker.process = log_open(&worker, path);
    stream_start(&worker.scenario, worker.process, &worker.stream);
    worker.out = dup(STDOUT_FILENO);
    if (worker.out < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return 1;
    serve(&worker);
    for (int i = 0; i < worker.count; i++)
        json_decref(worker.handles[i].plan);
    free(worker.handles);
    scenario_fini(&worker.scenario);
    return 0;
}
