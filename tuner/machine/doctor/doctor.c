/* SPDX-License-Identifier: MIT */
#include "tuner/machine/doctor/doctor.h"

#include "base/cgroup.h"
#include "base/figures.h"
#include "base/host.h"
#include "base/read.h"
#include "tuner/machine/machine_int.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

/* ---- facts */

#define PCI       "/sys/bus/pci/devices"
#define PROCESSOR "/sys/devices/system/cpu/cpu0/cpufreq"

/* The first line of a small file of the system; "" when it cannot be read. */
static void first_line(const char *path, char line[], size_t room)
{
    (void)dt_read_head(path, line, room);
    line[strcspn(line, "\n")] = '\0';
    dt_text_mend(line);
}

/* Display controllers of NVIDIA (vendor 0x10de, class 0x03....), whether a
 * driver has them or not. */
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

static json_t *host_facts(void)
{
    char governor[64], driver[64];
    double load[1] = {0}, cores = dt_cgroup_limits("").cores;
    struct rlimit memlock;
    struct statvfs shm;
    bool locked = getrlimit(RLIMIT_MEMLOCK, &memlock) == 0 && memlock.rlim_cur != RLIM_INFINITY;
    bool shared = statvfs("/dev/shm", &shm) == 0;
    first_line(PROCESSOR "/scaling_governor", governor, sizeof governor);
    first_line(PROCESSOR "/scaling_driver", driver, sizeof driver);
    if (getloadavg(load, 1) != 1)
        load[0] = 0;
    return json_pack("{s:i, s:i, s:o, s:I, s:I, s:o, s:o, s:s, s:s, s:f}", "nvidia_on_pci",
                     nvidia_on_pci(), "cores", dt_host_cores_visible(), "cores_quota",
                     isinf(cores) ? json_null() : json_real(cores), "memory_bytes",
                     (json_int_t)dt_host_memory_total(), "memory_limit_bytes",
                     (json_int_t)dt_host_memory_limit(), "memlock_bytes",
                     locked ? json_integer((json_int_t)memlock.rlim_cur) : json_null(), "shm_bytes",
                     shared ? json_integer((json_int_t)(shm.f_blocks * shm.f_frsize)) : json_null(),
                     "governor", governor, "frequency_driver", driver, "load", load[0]);
}

bool dt_doctor_warns(const char *rule, struct dt_text *what)
{
    json_auto_t *host = host_facts();
    const struct dt_doctor_view view = {.host = host};
    bool found = false;
    for (int i = 0; i < dt_doctor_rule_count; i++)
        if (strcmp(dt_doctor_rules[i].name, rule) == 0)
            found = dt_doctor_rules[i].found(&view, what);
    return found;
}

dt_status dt_doctor_facts(const char *program, int64_t deadline_ns, json_t **facts)
{
    DT_CLEANUP(dt_devices_answer_fini) struct dt_devices_answer answer = {.devices = NULL};
    DT_TRY(dt_machine_devices(program, deadline_ns, &answer));
    *facts = json_pack("{s:{s:s, s:b, s:s}, s:O?, s:o}", "worker", "program", answer.program,
                       "missing", answer.missing, "cause", answer.cause, "devices", answer.devices,
                       "host", host_facts());
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

/* ---- findings */

static const char *const severities[] = {"note", "warning", "busy", "error"};

static void finding_add(json_t *findings, const char *rule, enum dt_severity severity,
                        int64_t device, const char *what, const char *mend)
{
    json_array_append_new(findings, json_pack("{s:s, s:s, s:o, s:s, s:s}", "rule", rule, "severity",
                                              severities[severity], "device",
                                              device >= 0 ? json_integer(device) : json_null(),
                                              "what", what, "mend", mend));
}

/* Tries a rule on device `index`; -1: on the machine. */
static void try_rule(const struct dt_doctor_view *machine, const struct dt_doctor_rule *rule,
                     int64_t index, json_t *findings)
{
    dt_auto_text what = {0};
    struct dt_doctor_view view = *machine;
    if (index >= 0)
        view.device = json_array_get(json_object_get(view.devices, "devices"), (size_t)index);
    if (rule->found(&view, &what))
        finding_add(findings, rule->name, rule->severity, index, dt_text_at(&what), rule->mend);
}

static bool is_among(const char *value, const char *values)
{
    char word[64];
    snprintf(word, sizeof word, " %.60s ", value);
    return values == NULL || strstr(values, word) != NULL;
}

/* A CPU-only machine's variables about GPUs do nothing. */
static void try_variable(const struct dt_doctor_view *view,
                         const struct dt_doctor_variable *variable, json_t *findings)
{
    dt_auto_text what = {0};
    const char *value = dt_doctor_environment(view, variable->name);
    if (view->count == 0 || value == NULL || !is_among(value, variable->values) ||
        (variable->matters != NULL && !variable->matters(view)))
        return;
    dt_text_add(&what, "%s=%.80s: %s", variable->name, value, variable->what);
    finding_add(findings, variable->rule, variable->severity, -1, dt_text_at(&what),
                variable->mend);
}

static enum dt_severity severity_of(const json_t *finding)
{
    const char *word = dt_json_text_at(finding, "severity");
    for (int i = DT_ERROR; i > DT_NOTE; i--)
        if (strcmp(word, severities[i]) == 0)
            return (enum dt_severity)i;
    return DT_NOTE;
}

enum dt_severity dt_doctor_worst(const json_t *findings)
{
    enum dt_severity worst = DT_NOTE;
    for (size_t i = 0; i < json_array_size(findings); i++) {
        enum dt_severity severity = severity_of(json_array_get(findings, i));
        worst = severity > worst ? severity : worst;
    }
    return worst;
}

static json_t *worst_first(const json_t *found)
{
    json_t *sorted = json_array();
    for (int severity = DT_ERROR; severity >= DT_NOTE; severity--)
        for (size_t i = 0; i < json_array_size(found); i++) {
            json_t *finding = json_array_get(found, i);
            if ((int)severity_of(finding) == severity)
                json_array_append(sorted, finding);
        }
    return sorted;
}

dt_status dt_doctor_judge(const json_t *facts, json_t **findings)
{
    struct dt_doctor_view view = {.worker = json_object_get(facts, "worker"),
                                  .devices = json_object_get(facts, "devices"),
                                  .host = json_object_get(facts, "host")};
    if (!json_is_object(view.host) || !json_is_object(view.worker))
        return dt_fail(DT_EUSAGE, "these are not the facts of a machine: 'host' or 'worker' is "
                                  "missing");
    view.count = (int64_t)json_array_size(json_object_get(view.devices, "devices"));
    json_auto_t *found = json_array();
    for (int i = 0; i < dt_doctor_rule_count; i++) {
        const struct dt_doctor_rule *rule = &dt_doctor_rules[i];
        for (int64_t device = rule->each ? 0 : -1; device < (rule->each ? view.count : 0); device++)
            try_rule(&view, rule, device, found);
    }
    for (int i = 0; i < dt_doctor_variable_count; i++)
        try_variable(&view, &dt_doctor_variables[i], found);
    *findings = worst_first(found);
    return *findings != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

json_t *dt_doctor_names(void)
{
    json_t *names = json_array();
    const char *last = "";
    for (int i = 0; i < dt_doctor_rule_count; i++)
        json_array_append_new(names, json_string(dt_doctor_rules[i].name));
    for (int i = 0; i < dt_doctor_variable_count; i++) {
        if (strcmp(dt_doctor_variables[i].rule, last) != 0)
            json_array_append_new(names, json_string(dt_doctor_variables[i].rule));
        last = dt_doctor_variables[i].rule;
    }
    return names;
}

/* ---- for people */

/* Texts from the driver or a file are escaped for the terminal. */

static void report_versions(const json_t *devices, struct dt_text *out)
{
    static const char *const libraries[][2] = {
        {"driver", "driver"}, {"nccl", "NCCL"}, {"cudnn", "cuDNN"}, {"cublaslt", "cuBLASLt"}};
    int64_t cuda = dt_doctor_int(devices, "cuda", 0);
    if (cuda == 0)
        return;
    dt_text_add(out, "CUDA %lld.%lld", (long long)cuda / 1000, (long long)cuda % 1000 / 10);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        const char *version = dt_json_text_at(devices, libraries[i][0]);
        dt_text_add(out, ", %s ", libraries[i][1]);
        dt_text_show(version[0] != '\0' ? version : "none", out);
    }
    dt_text_add(out, "\n");
}

static void report_machine(const json_t *devices, struct dt_text *out)
{
    const json_t *cards = json_object_get(devices, "devices");
    for (size_t i = 0; i < json_array_size(cards); i++) {
        const json_t *card = json_array_get(cards, i);
        dt_text_add(out, "GPU %zu: ", i);
        dt_text_show(dt_json_text_at(card, "name"), out);
        dt_text_add(out, ", %s, compute capability ",
                    dt_figure_bytes_of(dt_doctor_int(card, "memory_bytes", 0)).text);
        dt_text_show(dt_json_text_at(card, "compute"), out);
        dt_text_add(out, "\n");
    }
    report_versions(devices, out);
}

static void report_finding(const json_t *finding, struct dt_text *out)
{
    int64_t device = dt_doctor_int(finding, "device", -1);
    dt_text_add(out, "%-8s %s: ", dt_json_text_at(finding, "severity"),
                dt_json_text_at(finding, "rule"));
    if (device >= 0)
        dt_text_add(out, "GPU %lld: ", (long long)device);
    dt_text_show(dt_json_text_at(finding, "what"), out);
    dt_text_add(out, "\n         %s\n", dt_json_text_at(finding, "mend"));
}

void dt_doctor_report(const json_t *facts, const json_t *findings, struct dt_text *out)
{
    const json_t *devices = json_object_get(facts, "devices");
    report_machine(devices, out);
    for (size_t i = 0; i < json_array_size(findings); i++)
        report_finding(json_array_get(findings, i), out);
    if (json_array_size(findings) == 0)
        dt_text_add(out, "nothing is wrong\n");
}
