/* SPDX-License-Identifier: MIT */
#include "tuner/machine/doctor/doctor.h"

#include "base/cgroup.h"
#include "base/host.h"
#include "base/read.h"
#include "tuner/machine/devices.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#define PCI       "/sys/bus/pci/devices"
#define PROCESSOR "/sys/devices/system/cpu/cpu0/cpufreq"

/* The first line of a small file of the system; "" when it cannot be read. */
static void first_line(const char *path, char line[], size_t room)
{
    (void)dt_read_head(path, line, room);
    line[strcspn(line, "\n")] = '\0';
    dt_text_mend(line);
}

/* Display controllers of NVIDIA (vendor 0x10de, class 0x03....), whether a driver has them or not. */
static int nvidia_on_pci(void)
{
    DIR *folder = opendir(PCI);
    int n = 0;
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[400], vendor[32], class[32];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, PCI "/%.200s/vendor", entry->d_name);
        first_line(path, vendor, sizeof vendor);
        snprintf(path, sizeof path, PCI "/%.200s/class", entry->d_name);
        first_line(path, class, sizeof class);
        n += strcmp(vendor, "0x10de") == 0 && strncmp(class, "0x03", 4) == 0;
    }
    if (folder != NULL)
        closedir(folder);
    return n;
}

static json_t *memlock(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        return json_null();
    return json_integer((json_int_t)limit.rlim_cur);
}

static json_t *shared_memory(void)
{
    struct statvfs info;
    if (statvfs("/dev/shm", &info) != 0)
        return json_null();
    return json_integer((json_int_t)(info.f_blocks * info.f_frsize));
}

static json_t *quota(void)
{
    double cores = dt_cgroup_limits("").cores;
    return isinf(cores) ? json_null() : json_real(cores);
}

static json_t *host_facts(void)
{
    char governor[64], driver[64];
    double load[1] = {0};
    first_line(PROCESSOR "/scaling_governor", governor, sizeof governor);
    first_line(PROCESSOR "/scaling_driver", driver, sizeof driver);
    if (getloadavg(load, 1) != 1)
        load[0] = 0;
    return json_pack("{s:i, s:i, s:o, s:I, s:I, s:o, s:o, s:s, s:s, s:f}", "nvidia_on_pci",
                     nvidia_on_pci(), "cores", dt_host_cores_visible(), "cores_quota", quota(),
                     "memory_bytes", (json_int_t)dt_host_memory_total(), "memory_limit_bytes",
                     (json_int_t)dt_host_memory_limit(), "memlock_bytes", memlock(), "shm_bytes",
                     shared_memory(), "governor", governor, "frequency_driver", driver, "load",
                     load[0]);
}

bool dt_doctor_warns(const char *rule, struct dt_text *what)
{
    json_t *host = host_facts();
    const struct dt_doctor_view view = {.host = host};
    bool found = false;
    for (int i = 0; i < dt_doctor_host.count; i++)
        if (strcmp(dt_doctor_host.rows[i].name, rule) == 0)
            found = dt_doctor_host.rows[i].found(&view, NULL, what);
    json_decref(host);
    return found;
}

dt_status dt_doctor_facts(const char *program, int64_t deadline_ns, json_t **facts)
{
    struct dt_devices_answer answer;
    DT_TRY(dt_machine_devices(program, deadline_ns, &answer));
    *facts = json_pack("{s:{s:s, s:b, s:s}, s:O?, s:o}", "worker", "program", answer.program,
                       "missing", answer.missing, "cause", answer.cause, "devices", answer.devices,
                       "host", host_facts());
    dt_devices_answer_fini(&answer);
    return *facts != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

int64_t dt_doctor_int(const json_t *object, const char *key, int64_t fallback)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) ? json_integer_value(value) : fallback;
}

bool dt_doctor_is(const json_t *object, const char *key, bool value)
{
    const json_t *field = json_object_get(object, key);
    return json_is_boolean(field) && json_is_true(field) == value;
}

const char *dt_doctor_environment(const struct dt_doctor_view *view, const char *name)
{
    return json_string_value(json_object_get(json_object_get(view->devices, "environment"), name));
}

bool dt_doctor_has_infiniband(const struct dt_doctor_view *view)
{
    const json_t *infiniband = json_object_get(view->devices, "infiniband");
    return json_array_size(json_object_get(infiniband, "devices")) > 0 &&
           dt_doctor_is(infiniband, "active", true);
}
