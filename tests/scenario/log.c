/* SPDX-License-Identifier: MIT */
/* The log tells tests what was asked and answered, and processes how many
 * there were before them. */
#include "tests/scenario/scenario.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define STRIKE "{\"op\":\"fault\",\"row\":"

/* Number of lines of the log with this beginning. */
static int count_lines(const char *path, const char *begin)
{
    char *line = NULL;
    size_t room = 0;
    int count = 0;
    FILE *log = fopen(path, "re");
    while (log != NULL && getline(&line, &room, log) > 0)
        count += strncmp(line, begin, strlen(begin)) == 0;
    free(line);
    if (log != NULL)
        fclose(log);
    return count;
}

/* NULL: none is wanted. */
static const char *log_path(const json_t *root, const char *scenario_path)
{
    static char path[4096];
    const json_t *log = json_object_get(root, "log");
    if (json_is_false(log))
        return NULL;
    if (json_is_string(log))
        return json_string_value(log);
    if ((size_t)snprintf(path, sizeof path, "%s.log", scenario_path) >= sizeof path)
        die("the path is too long:", scenario_path);
    return path;
}

int log_open(struct worker *worker, const char *scenario_path)
{
    worker->log = -1;
    worker->log_path = log_path(worker->scenario.root, scenario_path);
    if (worker->log_path == NULL)
        return 0;
    worker->log = open(worker->log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (worker->log < 0 || flock(worker->log, LOCK_EX) != 0)
        die("cannot open the log", worker->log_path);
    int process = count_lines(worker->log_path, "#");
    dprintf(worker->log, "# process %d\n", process);
    flock(worker->log, LOCK_UN);
    return process;
}

void log_note(const struct worker *worker, json_t *line)
{
    if (worker->log >= 0 && line != NULL) {
        char *text = json_dumps(line, JSON_COMPACT);
        if (text == NULL || dprintf(worker->log, "%s\n", text) < 0)
            die("cannot write the log", worker->log_path);
        free(text);
    }
    json_decref(line);
}

int log_strikes(const struct worker *worker, int row)
{
    char begin[64];
    snprintf(begin, sizeof begin, STRIKE "%d,", row);
    return worker->log_path != NULL ? count_lines(worker->log_path, begin) : 0;
}
