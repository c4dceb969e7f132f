/* SPDX-License-Identifier: MIT */
#include "worker/command/child.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/proc.h"
#include "base/read.h"
#include "worker/command/quote.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* memory - whether a program that failed ran out of memory, by its words and by its end
 *
 * To add a phrase, add a row below.
 */

#define LOOK_BYTES                                                                                 \
    ((size_t)256                                                                                   \
     << 10) /* looked at from the end of an output: a hint at its beginning is no failure */
#define KILLED (128 + SIGKILL)

static const char *const phrases[] = {
    "out of memory",        /* CUDA, HIP, PyTorch, Linux */
    "OutOfMemory",          /* torch.OutOfMemoryError, hipErrorOutOfMemory, java.lang */
    "OUT_OF_MEMORY",        /* CUDA_ERROR_, CL_, ncclSystemError texts */
    "OUT_OF_DEVICE_MEMORY", /* oneAPI Level Zero, Vulkan */
    "OUT_OF_HOST_MEMORY",
    "ErrorMemoryAllocation",         /* cudaErrorMemoryAllocation */
    "STATUS_ALLOC_FAILED",           /* CUBLAS_, CUDNN_, CUSOLVER_ */
    "RESOURCE_EXHAUSTED",            /* XLA, JAX */
    "MEM_OBJECT_ALLOCATION_FAILURE", /* OpenCL */
    "bad_alloc",                     /* std::bad_alloc */
    "bad_array_new_length",
    "MemoryError",            /* Python */
    "Cannot allocate memory", /* ENOMEM */
    "not enough memory",      /* PyTorch's CPU allocator */
    "insufficient memory",
    "No available memory for the cache blocks", /* vLLM */
    "Unable to allocate",                       /* numpy, followed by a size */
    "memory allocation of",                     /* Rust */
    "oom-kill",                                 /* the kernel, Slurm, Kubernetes */
    "oom_kill",
    "OOMKilled",
    "exitcode: -9", /* torchrun, of a rank that SIGKILL ended */
};

bool dt_memory_named(const struct dt_child_output *output)
{
    const struct dt_text *texts[] = {&output->err, &output->out};
    for (size_t i = 0; i < 2 * sizeof phrases / sizeof phrases[0]; i++) {
        const struct dt_text *text = texts[i % 2];
        size_t skipped = text->size > LOOK_BYTES ? text->size - LOOK_BYTES : 0;
        if (strcasestr(dt_text_at(text) + skipped, phrases[i / 2]) != NULL)
            return true;
    }
    return false;
}

int64_t dt_memory_kills(void)
{
    const char *path = getenv("DITTUNE_VMSTAT");
    return dt_read_number(path != NULL ? path : "/proc/vmstat", "oom_kill ");
}

bool dt_memory_killed(int wait_status, int64_t kills)
{
    if (WIFEXITED(wait_status))
        return WEXITSTATUS(wait_status) == KILLED;
    return WTERMSIG(wait_status) == SIGKILL && kills >= 0 && dt_memory_kills() > kills;
}

/* held - memory of GPUs that is still held when all processes of a run have ended
 *
 * A driver frees the memory of an ended process a moment later, and a process out of reach (another
 * container, a daemon of the system) may hold it for longer: then the next plan would not fit. Read
 * by NVML (kernels/nvml.h); without it nothing is held.
 *
 *     dt_held_note(&held);                       -- before a run
 *     held_wait(&wait, &held, &say);          -- after the end of all that it started
 */

#define PATIENCE_NS (5 * DT_NS_PER_SECOND)
#define TICK_NS     (DT_NS_PER_SECOND / 50)
#define SLACK_BYTES ((int64_t)64 << 20) /* free memory varies by itself */

static struct dt_nvml *nvml; /* opened by the first run, for the life of this process */
static bool tried;

static struct dt_nvml_use read_gpu(int gpu)
{
    struct dt_nvml_device *device;
    struct dt_nvml_name name;
    struct dt_nvml_facts facts;
    dt_nvml_facts_clear(&facts);
    if (dt_nvml_at(nvml, gpu, &device, &name) == DT_OK)
        dt_nvml_read(nvml, device, &facts);
    return facts.use;
}

void dt_held_note(struct dt_held *held)
{
    if (!tried && dt_nvml_open(&nvml) < 0)
        nvml = NULL;
    tried = true;
    held->count = nvml != NULL ? dt_nvml_count(nvml) : 0;
    held->count = held->count < DT_HELD_GPUS ? held->count : DT_HELD_GPUS;
    for (int i = 0; i < held->count; i++)
        held->before[i] = read_gpu(i);
}

/* Bytes of a process at that time; -1: it was not there. */
static int64_t bytes_of(const struct dt_nvml_use *use, int64_t pid)
{
    for (int i = 0; i < use->count; i++)
        if (use->processes[i].pid == pid)
            return use->processes[i].bytes > 0 ? use->processes[i].bytes : 0;
    return -1;
}

/* How much less is free than before, beside what processes took that were there before. */
static int64_t missing_bytes(const struct dt_nvml_use *before, const struct dt_nvml_use *now)
{
    int64_t bytes = before->free_bytes - now->free_bytes;
    if (before->free_bytes < 0 || now->free_bytes < 0)
        return 0;
    for (int i = 0; i < now->count; i++) {
        int64_t old = bytes_of(before, now->processes[i].pid);
        if (old >= 0 && now->processes[i].bytes > old)
            bytes -= now->processes[i].bytes - old;
    }
    return bytes > SLACK_BYTES ? bytes : 0;
}

static void name_holders(const struct dt_nvml_use *before, const struct dt_nvml_use *now,
                         struct dt_text *say)
{
    const char *between = " by ";
    for (int i = 0; i < now->count; i++) {
        struct dt_proc proc;
        int64_t pid = now->processes[i].pid;
        if (bytes_of(before, pid) >= 0)
            continue;
        bool known = dt_proc_read((pid_t)pid, &proc);
        dt_text_add(say, "%sprocess %lld (%s)", between, (long long)pid,
                    known ? proc.name : "not visible from here");
        between = ", ";
    }
}

/* Until the GPUs have as much free memory as before, but for what processes that were there before
 * have taken since; at most five seconds. *say: which GPU did not get it back, how much, and who is
 * on it; unchanged when all did. The errors of tick. */
static dt_status held_wait(const struct dt_leftovers_wait *wait, const struct dt_held *held,
                           struct dt_text *say)
{
    int64_t until = dt_clock_machine_ns() + PATIENCE_NS;
    for (int gpu = 0; gpu < held->count; gpu++) {
        struct dt_nvml_use now = read_gpu(gpu);
        while (missing_bytes(&held->before[gpu], &now) > 0 && dt_clock_machine_ns() < until) {
            DT_TRY(wait->tick(wait->context));
            dt_clock_sleep_ns(TICK_NS);
            now = read_gpu(gpu);
        }
        int64_t bytes = missing_bytes(&held->before[gpu], &now);
        if (bytes == 0)
            continue;
        dt_text_add(say, "%s%.1f GB of GPU %d still held after 5 s", say->size > 0 ? "; " : "left ",
                    (double)bytes * 1e-9, gpu);
        name_holders(&held->before[gpu], &now, say);
    }
    return DT_OK;
}

#define KEPT_BYTES                                                                                 \
    ((size_t)64 << 20) /* kept of an output; of a longer one at least the last half of this */
#define LAST_READS 32  /* reads of each output after the end: more than a pipe holds */

struct child {
    struct dt_program_run run;
    struct dt_wire *wire;
    struct dt_child_output *output;
    int process; /* readable when it has ended; -1: the system has no pidfd */
    int64_t began_ns, kills;
};

void dt_child_output_fini(struct dt_child_output *output)
{
    for (int i = 0; i < 2; i++)
        if (output->from[i] >= 0)
            close(output->from[i]);
    output->from[0] = output->from[1] = -1;
    dt_text_fini(&output->out);
    dt_text_fini(&output->err);
}

static void become_command(char *const argv[], int out, int err, int failure)
{
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_DFL);
    if (nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0 &&
        dup2(err, STDERR_FILENO) >= 0)
        execvp(argv[0], argv);
    int error = errno;
    if (write(failure, &error, sizeof error) < 0)
        _exit(126);
    _exit(127);
}

dt_status dt_child_start(char *const argv[], const char *name, int out, int err, pid_t *pid)
{
    int ends[2], error = 0, wait_status;
    *pid = 0;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
    pid_t started = fork();
    if (started == 0)
        become_command(argv, out, err, ends[1]);
    close(ends[1]);
    ssize_t got = started > 0 ? read(ends[0], &error, sizeof error) : -1;
    close(ends[0]);
    if (started < 0)
        return dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
    setpgid(started, started); /* the child does it too: whoever comes first */
    *pid = started;
    if (got <= 0)
        return DT_OK;
    waitpid(started, &wait_status, 0);
    *pid = 0;
    return dt_fail(DT_EUSAGE, "the program '%s' of %s cannot be run: %s", argv[0], name,
                   strerror(error));
}

static dt_status start_child(char *const argv[], const char *name, struct child *child)
{
    int ends[4] = {-1, -1, -1, -1};
    if (pipe2(ends, O_CLOEXEC) != 0 || pipe2(ends + 2, O_CLOEXEC) != 0) {
        if (ends[0] >= 0) {
            close(ends[0]);
            close(ends[1]);
        }
        return dt_fail(DT_ELIB, "cannot start the command: %s", strerror(errno));
    }
    child->began_ns = dt_clock_ns();
    dt_status status = dt_child_start(argv, name, ends[1], ends[3], &child->run.pid);
    close(ends[1]);
    close(ends[3]);
    child->output->from[0] = ends[0];
    child->output->from[1] = ends[2];
    child->process = status == DT_OK ? (int)syscall(SYS_pidfd_open, child->run.pid, 0) : -1;
    return status;
}

/* Reads what has come; closes the descriptor at its end. NUL would end the text for the expressions
 * of --time. Of a long output the end is kept, where the times are. */
static void drain_pipe(int *from, struct dt_text *text, bool *cut)
{
    char block[65536];
    ssize_t got = read(*from, block, sizeof block);
    for (char *nul = block; got > 0 && (nul = memchr(nul, 0, (size_t)(block + got - nul))) != NULL;)
        *nul = ' ';
    if (got > 0 && text->size + (size_t)got > KEPT_BYTES) {
        text->size -= KEPT_BYTES / 2;
        memmove(text->bytes, text->bytes + KEPT_BYTES / 2, text->size);
        *cut = true;
    }
    if (got > 0)
        dt_text_add_bytes(text, block, (size_t)got);
    if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN)) {
        close(*from);
        *from = -1;
    }
}

dt_status dt_child_beat(void *context)
{
    struct dt_wire *wire = context;
    struct pollfd poller = {.fd = wire->in};
    poll(&poller, 1, 0);
    if ((poller.revents & (POLLHUP | POLLERR)) != 0)
        return dt_fail(DT_EDEAD, "the controller has ended");
    if (dt_clock_ns() - wire->last_write_ns < DT_NS_PER_SECOND)
        return DT_OK;
    return dt_wire_send(wire, json_pack("{s:s}", "op", "heartbeat"));
}

/* Reads new output, sends a heartbeat, and asks whether the controller is there. milliseconds: to
 * wait for something. *more: it read anything. */
static dt_status attend_child(const struct child *child, int process, int milliseconds, bool *more)
{
    struct dt_child_output *output = child->output;
    struct pollfd pollers[] = {{.fd = output->from[0], .events = POLLIN},
                               {.fd = output->from[1], .events = POLLIN},
                               {.fd = process, .events = POLLIN}};
    poll(pollers, 3, milliseconds);
    if (pollers[0].revents != 0)
        drain_pipe(&output->from[0], &output->out, &output->cut);
    if (pollers[1].revents != 0)
        drain_pipe(&output->from[1], &output->err, &output->cut);
    *more = pollers[0].revents != 0 || pollers[1].revents != 0;
    return dt_child_beat(child->wire);
}

/* Until the command has ended, also when it has closed its outputs before; then what is left in
 * them, which may be open in processes that it has left behind. */
static dt_status listen_to_child(struct child *child, const struct dt_child_rules *rules)
{
    for (bool more; !child->run.ended;) {
        DT_TRY(attend_child(child, child->process, 100, &more));
        dt_leftovers_reap(&child->run);
        child->output->wall_ns = dt_clock_ns() - child->began_ns;
        if (!child->run.ended && child->output->wall_ns > rules->timeout_ns)
            return dt_fail(DT_FAILED, "%s did not end within %s (--timeout)", rules->name,
                           dt_figure_of((double)rules->timeout_ns * 1e-9).text);
    }
    bool more = true;
    for (int reads = 0; more && reads < LAST_READS; reads++)
        DT_TRY(attend_child(child, -1, 0, &more));
    return DT_OK;
}

/* While processes are being ended: one that waits until its output is read would not end. */
static dt_status attend_end(void *context)
{
    const struct child *child = context;
    bool more;
    return attend_child(child, -1, 0, &more);
}

void dt_child_how(int wait_status, char how[DT_CHILD_HOW])
{
    if (WIFSIGNALED(wait_status))
        snprintf(how, DT_CHILD_HOW, "was killed by signal %d", WTERMSIG(wait_status));
    else
        snprintf(how, DT_CHILD_HOW, "exited with %d", WEXITSTATUS(wait_status));
}

static dt_status judge_child(const struct child *child, const struct dt_child_rules *rules)
{
    int wait_status = child->run.wait_status;
    struct dt_child_output *output = child->output;
    char how[DT_CHILD_HOW], tail[300];
    if (WIFEXITED(wait_status) && rules->accepted[WEXITSTATUS(wait_status)])
        return DT_OK;
    output->exited_badly = true;
    dt_child_how(wait_status, how);
    dt_timing_tail(output, tail, sizeof tail);
    bool memory = dt_memory_named(output) || dt_memory_killed(wait_status, child->kills);
    return dt_fail(memory ? DT_ENOMEM : DT_FAILED, "%s %s%s%s", rules->name, how,
                   tail[0] != 0 ? DT_QUOTES "; its output ends with: " : " and printed nothing",
                   tail);
}

dt_status dt_child_run(char *const argv[], const struct dt_child_rules *rules, struct dt_wire *wire,
                       struct dt_child_output *output)
{
    struct child child = {.wire = wire, .output = output, .kills = dt_memory_kills()};
    const struct dt_leftovers_wait wait = {attend_end, &child, DT_LEFTOVERS_GRACE_NS};
    struct dt_error error = {DT_OK, ""};
    *output = (struct dt_child_output){.from = {-1, -1}};
    DT_TRY(start_child(argv, rules->name, &child));
    dt_status status = listen_to_child(&child, rules);
    dt_error_keep(&error, status);
    if (status < 0)
        dt_error_keep(&error, dt_leftovers_end(&wait, &child.run));
    if (child.process >= 0)
        close(child.process);
    output->peak_bytes = child.run.peak_bytes;
    DT_TRY(dt_error_raise(&error));
    return judge_child(&child, rules);
}

dt_status dt_child_clear(struct dt_child_output *output, struct dt_wire *wire,
                         const struct dt_held *held, struct dt_leftovers *left, struct dt_text *say)
{
    struct child none = {.wire = wire, .output = output};
    const struct dt_leftovers_wait wait = {attend_end, &none, DT_LEFTOVERS_GRACE_NS};
    struct dt_error error = {DT_OK, ""};
    dt_error_keep(&error, dt_leftovers_find(&wait, &none.run, left));
    dt_error_keep(&error, dt_leftovers_end(&wait, &none.run));
    if (error.status == DT_OK)
        dt_error_keep(&error, held_wait(&wait, held, say));
    return dt_error_raise(&error);
}
