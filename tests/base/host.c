/* SPDX-License-Identifier: MIT */
/* Tests the real machine and hwloc's synthetic ones (HWLOC_SYNTHETIC), each in a child process: the
 * topology is read once per process, and binding cannot be undone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/host.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Runs check(argument) in a child: 0 is success, 1..100 the number of the failed step. */
static int in_child(int (*check)(int argument), int argument)
{
    int outcome = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(check(argument));
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFEXITED(outcome));
    return WEXITSTATUS(outcome);
}

static int plain_facts(int argument)
{
    (void)argument;
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) != 0)
        return 77;
    if (dt_host_cores() < 1 || dt_host_cores() > CPU_COUNT(&mine))
        return 1;
    if (dt_host_memory_total() < 1 || dt_host_memory_available() < 1)
        return 2;
    if (dt_host_memory_available() > dt_host_memory_total())
        return 3;
    if (dt_host_name()[0] == '\0' || dt_host_cpu()[0] == '\0')
        return 4;
    if (dt_host_topology() != dt_host_topology())
        return 5;
    return strchr(dt_host_hwloc_version(), '.') != NULL ? 0 : 6;
}

static void reports_plausible_facts(void **state)
{
    (void)state;
    assert_int_equal(in_child(plain_facts, 0), 0);
}

/* Binds every rank in a child of its own; the masks the kernel reports must share out the
 * processors of the parent. */
static int bound_mask(int rank, int ranks, cpu_set_t *mask)
{
    int ends[2], outcome = 0, cores[1024], n = 0;
    if (pipe(ends) != 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        cpu_set_t mine;
        if (dt_host_bind(rank, ranks, 1024, cores, &n) != DT_OK || n < 1)
            _exit(2);
        if (sched_getaffinity(0, sizeof mine, &mine) != 0)
            _exit(3);
        _exit(write(ends[1], &mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 4);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], mask, sizeof *mask);
    close(ends[0]);
    waitpid(child, &outcome, 0);
    return outcome != 0 || got != (ssize_t)sizeof *mask;
}

static void bound_as_the_kernel_says(void **state)
{
    (void)state;
    cpu_set_t all;
    int cores = 0;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int ranks = 1; ranks <= 8 && (cores == 0 || ranks <= cores); ranks++) {
        cpu_set_t together;
        int count = 0;
        CPU_ZERO(&together);
        for (int rank = 0; rank < ranks; rank++) {
            cpu_set_t mask;
            CPU_ZERO(&mask);
            assert_int_equal(bound_mask(rank, ranks, &mask), 0);
            count += CPU_COUNT(&mask);
            CPU_OR(&together, &together, &mask);
        }
        if (cores == 0)
            cores = dt_host_cores(); /* after the first child, which had to read it by itself */
        assert_int_equal(count, CPU_COUNT(&all));
        assert_true(CPU_EQUAL(&together, &all));
    }
}

/* More ranks than cores: one core each, and each core has its turn. */
static void oversubscribed_ranks_take_turns(void **state)
{
    (void)state;
    int ranks = dt_host_cores() + 1;
    cpu_set_t first, last;
    assert_int_equal(bound_mask(0, ranks, &first), 0);
    assert_int_equal(bound_mask(ranks - 1, ranks, &last), 0);
    assert_true(CPU_EQUAL(&first, &last)); /* rank n of n cores is core 0 again */
}

static int one_processor(int argument)
{
    (void)argument;
    cpu_set_t mine, one;
    int cores[8], n = 0;
    size_t first = 0;
    sched_getaffinity(0, sizeof mine, &mine);
    while (!CPU_ISSET(first, &mine))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    DIR *threads = opendir("/proc/self/task"); /* a sanitizer may have threads of its own */
    for (struct dirent *entry; threads != NULL && (entry = readdir(threads)) != NULL;)
        if (entry->d_name[0] != '.' &&
            sched_setaffinity((pid_t)atoi(entry->d_name), sizeof one, &one) != 0)
            return 77;
    if (threads != NULL)
        closedir(threads);
    if (dt_host_cores() != 1)
        return 1;
    if (dt_host_bind(1, 3, 8, cores, &n) != DT_OK || n != 1 || cores[0] != 0)
        return 2;
    sched_getaffinity(0, sizeof mine, &mine);
    return CPU_EQUAL(&mine, &one) ? 0 : 3;
}

/* Cores are those of the affinity mask, not those of the machine. */
static void counts_cores_of_the_affinity_mask(void **state)
{
    (void)state;
    assert_int_equal(in_child(one_processor, 0), 0);
}

static int share_out(int ranks)
{
    int owner[64], all = dt_host_cores(), least = 64, most = 0;
    memset(owner, -1, sizeof owner);
    for (int rank = 0; rank < ranks; rank++) {
        int cores[64], n = 0;
        if (dt_host_bind(rank, ranks, 64, cores, &n) != DT_OK || n < 1)
            return 1;
        for (int i = 0; i < n; i++) {
            if (cores[i] < 0 || cores[i] >= all || owner[cores[i]] != -1)
                return 2;
            owner[cores[i]] = rank;
        }
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    for (int core = 0; core < all; core++)
        if (owner[core] == -1 || (core > 0 && owner[core] < owner[core - 1]))
            return 3;
    return most - least <= 1 ? 0 : 4;
}

/* 2 packages of 6 cores of 2 processors: every number of ranks shares out 12 cores, in order,
 * as evenly as can be. */
static int twelve_cores(int ranks)
{
    setenv("HWLOC_SYNTHETIC", "pack:2 core:6 pu:2", 1);
    return dt_host_cores() == 12 ? share_out(ranks) : 10;
}

static void shares_are_a_partition(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= 12; ranks++)
        assert_int_equal(in_child(twelve_cores, ranks), 0);
}

static int many_ranks(int ranks)
{
    int count[12] = {0};
    setenv("HWLOC_SYNTHETIC", "pack:2 core:6 pu:2", 1);
    for (int rank = 0; rank < ranks; rank++) {
        int cores[4], n = 0;
        if (dt_host_bind(rank, ranks, 4, cores, &n) != DT_OK || n != 1 || cores[0] != rank % 12)
            return 1;
        count[cores[0]]++;
    }
    for (int core = 0; core < 12; core++)
        if (count[core] < ranks / 12 || count[core] > ranks / 12 + 1)
            return 2;
    return 0;
}

static void more_ranks_than_cores(void **state)
{
    (void)state;
    assert_int_equal(in_child(many_ranks, 13), 0);
    assert_int_equal(in_child(many_ranks, 31), 0);
}

static int room_is_kept(int argument)
{
    (void)argument;
    int cores[4] = {-5, -5, -5, -5}, n = 0;
    setenv("HWLOC_SYNTHETIC", "core:12 pu:1", 1);
    if (dt_host_bind(0, 1, 2, cores, &n) != DT_OK || n != 2)
        return 1;
    return cores[1] == 1 && cores[2] == -5 ? 0 : 2;
}

static void writes_no_more_cores_than_room(void **state)
{
    (void)state;
    assert_int_equal(in_child(room_is_kept, 0), 0);
}

/* Writes the hash of a made-up machine; the low byte is enough to tell three apart. */
static int hash_of(int which)
{
    static const char *const machines[] = {"pack:1 core:8 pu:1", "pack:2 core:4 pu:1",
                                           "pack:1 core:8 pu:2"};
    setenv("HWLOC_SYNTHETIC", machines[which], 1);
    return (int)(dt_host_topology() % 251);
}

static void topology_tells_machines_apart(void **state)
{
    (void)state;
    int a = in_child(hash_of, 0), b = in_child(hash_of, 1), c = in_child(hash_of, 2);
    assert_int_equal(a, in_child(hash_of, 0));
    assert_true(a != b && a != c && b != c);
}

static int bind_thread(int argument)
{
    (void)argument;
    cpu_set_t mine;
    if (dt_host_bind_thread(-1) != DT_OK || dt_host_bind_thread(1 << 20) != DT_OK)
        return 1;
    if (dt_host_bind_thread(dt_host_cores() - 1) != DT_OK)
        return 2;
    sched_getaffinity(0, sizeof mine, &mine);
    return dt_host_cores() == 1 || CPU_COUNT(&mine) < sysconf(_SC_NPROCESSORS_ONLN) ? 0 : 3;
}

static void threads_are_bound(void **state)
{
    (void)state;
    assert_int_equal(in_child(bind_thread, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reports_plausible_facts),
        cmocka_unit_test(counts_cores_of_the_affinity_mask),
        cmocka_unit_test(shares_are_a_partition),
        cmocka_unit_test(more_ranks_than_cores),
        cmocka_unit_test(writes_no_more_cores_than_room),
        cmocka_unit_test(topology_tells_machines_apart),
        cmocka_unit_test(threads_are_bound),
        cmocka_unit_test(
            bound_as_the_kernel_says), /* the parent reads its own topology from here on */
        cmocka_unit_test(oversubscribed_ranks_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
