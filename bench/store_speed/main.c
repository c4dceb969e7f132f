/* SPDX-License-Identifier: MIT */
/* Measures the cost of a commit beside the least that is safe, and the cost of reading the file.
 *
 *     bench-store-speed DIRECTORY ENTRIES ROUNDS        JSON: nanoseconds of each round, and the least of the readings
 *
 * A round is a commit (dt_store_put of one entry: lock, read, check, splice, temporary file, fsync,
 * rename, fsync of the directory) and a plain one (a temporary file of the same bytes, fsync,
 * rename), in turn, A B, B A. By the clock, as most of it is the disk's; the processor's time
 * stands beside it. Readings are processor time of one thread.
 */
#include "bench/lookup_speed/store.h"
#include "db/store.h"

#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { READINGS = 20 };

struct bench {
    const char *directory;
    struct dt_machine *machine;
    struct dt_text bytes; /* the text of best.json */
    json_t *entry;        /* one that is there, to be put again */
};

static int64_t thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * DT_NS_PER_SECOND + now.tv_nsec;
}

static dt_status write_plainly(const struct bench *bench)
{
    char temp[512], path[512];
    snprintf(temp, sizeof temp, "%s/plain.tmp", bench->directory);
    snprintf(path, sizeof path, "%s/plain", bench->directory);
    int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    size_t done = 0;
    while (fd >= 0 && done < bench->bytes.size) {
        ssize_t put = write(fd, bench->bytes.bytes + done, bench->bytes.size - done);
        if (put <= 0)
            break;
        done += (size_t)put;
    }
    if (fd < 0 || done < bench->bytes.size || fsync(fd) != 0 || close(fd) != 0 ||
        rename(temp, path) != 0)
        return dt_fail(DT_EIO, "cannot write %s", temp);
    return DT_OK;
}

static dt_status commit(struct bench *bench, int round)
{
    json_t *gain = json_object_get(bench->entry, "gain");
    if (json_object_set_new(gain, "pairs", json_integer(round)) != 0)
        return DT_ENOMEM;
    return dt_store_put(bench->directory, bench->entry);
}

/* One visit of a side; its times to wall and processor. */
static dt_status visit(struct bench *bench, bool plain, int round, json_t *wall, json_t *processor)
{
    int64_t start = dt_clock_ns(), start_thread = thread_ns();
    DT_TRY(plain ? write_plainly(bench) : commit(bench, round));
    json_array_append_new(wall, json_integer(dt_clock_ns() - start));
    json_array_append_new(processor, json_integer(thread_ns() - start_thread));
    return DT_OK;
}

static dt_status make(struct bench *bench, size_t n)
{
    char path[512];
    struct dt_query *query = NULL;
    DT_TRY(dt_machine_parse(MADE_MACHINE, strlen(MADE_MACHINE), "the machine", &bench->machine));
    DT_TRY(made_store(n, &bench->bytes));
    snprintf(path, sizeof path, "%s/best.json", bench->directory);
    FILE *file = fopen(path, "wx");
    if (file == NULL || fwrite(bench->bytes.bytes, 1, bench->bytes.size, file) != bench->bytes.size)
        return dt_fail(DT_EIO, "cannot write %s", path);
    fclose(file);
    DT_TRY(made_query(bench->machine, n / 2, &query));
    bench->entry = made_entry(dt_query_key(query), dt_query_hard(query), n / 2);
    dt_query_free(query);
    return bench->entry != NULL ? DT_OK : DT_ENOMEM;
}

/* The least of some readings: of a snapshot from the file, and of the checksum alone. */
static dt_status readings(const struct bench *bench, int64_t *open_ns, int64_t *checksum_ns)
{
    volatile uint32_t sink = 0;
    *open_ns = *checksum_ns = INT64_MAX;
    for (int i = 0; i < READINGS; i++) {
        struct dt_snapshot *snapshot = NULL;
        int64_t start = thread_ns();
        DT_TRY(dt_snapshot_open(bench->directory, &snapshot));
        int64_t opened = thread_ns() - start;
        dt_snapshot_close(snapshot);
        start = thread_ns();
        sink = dt_crc32c(bench->bytes.bytes, bench->bytes.size);
        int64_t summed = thread_ns() - start;
        *open_ns = opened < *open_ns ? opened : *open_ns;
        *checksum_ns = summed < *checksum_ns ? summed : *checksum_ns;
    }
    (void)sink;
    return DT_OK;
}

static dt_status run(struct bench *bench, size_t n, int rounds, json_t *out)
{
    static const char *const names[] = {"commit", "plain"};
    json_t *wall[2], *processor[2];
    int64_t open_ns, checksum_ns;
    DT_TRY(make(bench, n));
    for (int side = 0; side < 2; side++) {
        wall[side] = json_array();
        processor[side] = json_array();
        json_object_set_new(
            out, names[side],
            json_pack("{s:o, s:o}", "wall_ns", wall[side], "processor_ns", processor[side]));
    }
    for (int round = 0; round < rounds; round++)
        for (int turn = 0; turn < 2; turn++) {
            int side = (round + turn) % 2;
            DT_TRY(visit(bench, side == 1, round, wall[side], processor[side]));
        }
    DT_TRY(readings(bench, &open_ns, &checksum_ns));
    json_object_set_new(out, "bytes", json_integer((json_int_t)bench->bytes.size));
    json_object_set_new(out, "open_ns", json_integer(open_ns));
    json_object_set_new(out, "checksum_ns", json_integer(checksum_ns));
    return DT_OK;
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct dt_text text = {0};
    json_t *out = json_object();
    if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > MADE_MOST || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: bench-store-speed DIRECTORY ENTRIES ROUNDS\n");
        return 2;
    }
    bench.directory = argv[1];
    dt_status status = run(&bench, (size_t)atoi(argv[2]), atoi(argv[3]), out);
    if (status == DT_OK)
        status = dt_json_text(out, &text);
    if (status == DT_OK)
        puts(dt_text_at(&text));
    else
        fprintf(stderr, "bench-store-speed: %s\n", dt_message());
    json_decref(out);
    json_decref(bench.entry);
    dt_machine_free(bench.machine);
    dt_text_fini(&bench.bytes);
    dt_text_fini(&text);
    return status == DT_OK ? 0 : 1;
}
