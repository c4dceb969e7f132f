/* SPDX-License-Identifier: MIT */
#include "tuner/runner/hosts.h"

#include "base/clock.h"
#include "base/host.h"
#include "tuner/runner/runner.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (30 * DT_NS_PER_SECOND)

/* ---- a Slurm allocation, as its variables name it (the manual page of salloc, "OUTPUT
 * ENVIRONMENT VARIABLES") */

/* Numbers for each node, in their order: "4(x2),1" is 4, 4, 1. Sets slots of the hosts; false: it
 * is not such a list, or for another number of nodes. */
static bool set_slots(const char *text, struct dt_hosts *hosts)
{
    int n = 0;
    for (const char *at = text; *at != '\0';) {
        char *end;
        long slots = strtol(at, &end, 10), times = 1;
        if (end == at || slots < 1 || slots > DT_SLOTS_MOST)
            return false;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            if (*end++ != ')')
                return false;
        }
        for (; times > 0; times--) {
            if (n == hosts->count)
                return false;
            hosts->at[n++].slots = (int)slots;
        }
        if (*end != ',' && *end != '\0')
            return false;
        at = end + (*end == ',');
    }
    return n == hosts->count;
}

/* Slurm's own program spells the names out. */
static dt_status read_names(struct dt_hosts *hosts)
{
    char *const words[] = {(char[]){"scontrol"}, (char[]){"show"}, (char[]){"hostnames"}, NULL};
    char path[4096];
    struct dt_output DT_CLEANUP(dt_output_fini) output = {.how = ""};
    if (!dt_host_program("scontrol", path, sizeof path))
        return dt_fail(DT_EUSAGE, "--hosts slurm: scontrol, Slurm's program, was not found");
    DT_TRY(dt_output_read(path, words, dt_clock_machine_ns() + PATIENCE_NS, &output));
    if (output.how[0] != '\0')
        return dt_fail(DT_EUSAGE, "--hosts slurm: scontrol show hostnames %s", output.how);
    dt_auto_text list = {0};
    const char *at = dt_text_at(&output.out);
    while (*at != '\0') {
        size_t size = strcspn(at, "\n");
        dt_text_add(&list, "%s%.*s", list.size > 0 && size > 0 ? "," : "", (int)size, at);
        at += size + (at[size] == '\n');
    }
    return dt_hosts_parse(dt_text_at(&list), hosts);
}

dt_status dt_hosts_slurm(struct dt_hosts *hosts)
{
    const char *tasks = getenv("SLURM_TASKS_PER_NODE"), *cpus = getenv("SLURM_JOB_CPUS_PER_NODE");
    if (getenv("SLURM_JOB_NODELIST") == NULL)
        return dt_fail(DT_EUSAGE,
                       "--hosts slurm is for a Slurm job, and this is none: start dittune "
                       "by salloc or sbatch, or name the hosts");
    DT_TRY(read_names(hosts));
    const char *slots = tasks != NULL ? tasks : cpus;
    if (slots != NULL && !set_slots(slots, hosts))
        return dt_fail(DT_EUSAGE, "--hosts slurm: %s is '%.100s', which does not fit the %d hosts",
                       tasks != NULL ? "SLURM_TASKS_PER_NODE" : "SLURM_JOB_CPUS_PER_NODE", slots,
                       hosts->count);
    return DT_OK;
}

/* ---- lists and files of hosts */

enum { LINE_ROOM = 1024 };

/* Letters, digits, and what else host names and addresses have; nothing that a launcher
 * takes for an option. */
static bool is_name(const char *name, size_t size)
{
    if (size == 0 || size >= sizeof(struct dt_host){.slots = 0}.name || name[0] == '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)name[i]) && strchr("._-", name[i]) == NULL)
            return false;
    return true;
}

static struct dt_host *host_find(struct dt_hosts *hosts, const char *name)
{
    for (int i = 0; i < hosts->count; i++)
        if (strcmp(hosts->at[i].name, name) == 0)
            return &hosts->at[i];
    return NULL;
}

/* DT_EUSAGE without the place, which the caller puts before it. */
static dt_status host_add(struct dt_hosts *hosts, const char *name, size_t size, int slots,
                          bool again)
{
    if (!is_name(name, size))
        return dt_fail(DT_EUSAGE, "'%.*s' is no name of a host", (int)(size < 64 ? size : 64),
                       name);
    struct dt_host host = {.slots = slots};
    memcpy(host.name, name, size);
    struct dt_host *known = host_find(hosts, host.name);
    if (known != NULL && !again)
        return dt_fail(DT_EUSAGE, "the host %s is there twice", host.name);
    if (known == NULL && hosts->count == DT_HOSTS_MOST)
        return dt_fail(DT_EUSAGE, "there are more than %d hosts", DT_HOSTS_MOST);
    if (known != NULL)
        known->slots += slots;
    else
        hosts->at[hosts->count++] = host;
    return DT_OK;
}

/* A number of slots at the beginning of text, which ends there. */
static bool read_slots(const char *text, size_t size, int *slots)
{
    int value = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || value > DT_SLOTS_MOST)
            return false;
        value = 10 * value + text[i] - '0';
    }
    *slots = value;
    return size > 0 && value >= 1 && value <= DT_SLOTS_MOST;
}

dt_status dt_hosts_parse(const char *text, struct dt_hosts *hosts)
{
    for (const char *at = text;; at++) {
        size_t size = strcspn(at, ","), name = strcspn(at, ":,");
        int slots = 1;
        if (name < size && !read_slots(at + name + 1, size - name - 1, &slots))
            return dt_fail(DT_EUSAGE,
                           "--hosts '%s': '%.*s' is not of the form HOST:SLOTS with 1 to %d slots",
                           text, (int)size, at, DT_SLOTS_MOST);
        dt_status status = host_add(hosts, at, name, slots, false);
        if (status < 0)
            return dt_fail(status, "--hosts '%s': %s", text, dt_message());
        at += size;
        if (*at == '\0')
            return DT_OK;
    }
}

static dt_status read_line(char *line, struct dt_hosts *hosts)
{
    const char *blanks = " \t";
    line[strcspn(line, "#\r\n")] = '\0';
    char *name = line + strspn(line, blanks), *rest = name + strcspn(name, blanks);
    int slots = 1;
    if (*name == '\0')
        return DT_OK;
    size_t size = (size_t)(rest - name);
    rest += strspn(rest, blanks);
    if (strncmp(rest, "slots=", 6) == 0) {
        size_t digits = strcspn(rest + 6, blanks);
        if (!read_slots(rest + 6, digits, &slots))
            return dt_fail(DT_EUSAGE, "'%.*s' is not a number of slots from 1 to %d", (int)digits,
                           rest + 6, DT_SLOTS_MOST);
        rest += 6 + digits;
        rest += strspn(rest, blanks);
    }
    if (strncmp(rest, "max_slots=", 10) == 0 || strncmp(rest, "max-slots=", 10) == 0)
        rest += strcspn(rest, blanks);
    rest += strspn(rest, blanks);
    if (*rest != '\0')
        return dt_fail(DT_EUSAGE, "'%.40s' is not understood, expected HOST slots=N", rest);
    return host_add(hosts, name, size, slots, true);
}

dt_status dt_hosts_read(const char *path, struct dt_hosts *hosts)
{
    FILE *file = fopen(path, "re");
    char line[LINE_ROOM];
    dt_status status = DT_OK;
    if (file == NULL)
        return dt_fail(DT_EIO, "cannot read the hostfile %s: %s", path, strerror(errno));
    for (int number = 1; status == DT_OK && fgets(line, sizeof line, file) != NULL; number++) {
        bool complete = strchr(line, '\n') != NULL || feof(file);
        status = complete ? read_line(line, hosts) : dt_fail(DT_EUSAGE, "the line is too long");
        if (status < 0)
            status = dt_fail(status, "the hostfile %s, line %d: %s", path, number, dt_message());
    }
    bool failed = ferror(file) != 0;
    int why = errno;
    fclose(file);
    if (status == DT_OK && failed)
        return dt_fail(DT_EIO, "cannot read the hostfile %s: %s", path, strerror(why));
    if (status == DT_OK && hosts->count == 0)
        return dt_fail(DT_EUSAGE, "the hostfile %s names no host", path);
    return status;
}

int dt_hosts_slots(const struct dt_hosts *hosts)
{
    int slots = 0;
    for (int i = 0; i < hosts->count; i++)
        slots += hosts->at[i].slots;
    return slots;
}

int dt_hosts_least_slots(const struct dt_hosts *hosts)
{
    int least = hosts->count > 0 ? hosts->at[0].slots : 0;
    for (int i = 1; i < hosts->count; i++)
        least = hosts->at[i].slots < least ? hosts->at[i].slots : least;
    return least;
}

void dt_hosts_text(const struct dt_hosts *hosts, int count, int slots, struct dt_text *out)
{
    for (int i = 0; i < count && i < hosts->count; i++)
        dt_text_add(out, "%s%s:%d", i > 0 ? "," : "", hosts->at[i].name,
                    hosts->at[i].slots < slots ? hosts->at[i].slots : slots);
}

bool dt_hosts_drop(struct dt_hosts *hosts, const char *name)
{
    struct dt_host *host = host_find(hosts, name);
    if (host == NULL)
        return false;
    memmove(host, host + 1, (size_t)(hosts->at + hosts->count - (host + 1)) * sizeof *host);
    hosts->count--;
    return true;
}
