/* SPDX-License-Identifier: MIT */
/* machine - the fake machine for the fake CUDA and the fake NVML: settings, state shared by its
 * processes, complaints
 *
 * Needs no header of NVIDIA's, so that the fake NVML is built everywhere.
 */
#ifndef DT_TESTS_FAKE_CUDA_MACHINE_H
#define DT_TESTS_FAKE_CUDA_MACHINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES 16
#define FAKE_FAULTS  16

/* ---- settings.c */

struct fake_fault {
    char what[48]; /* a function, or launch, exchange */
    char act[16];  /* fail, delay, drop, error, hang, corrupt */
    int at;        /* from the at-th on, counted from 1; 0: each */
    int rank;      /* -1: any; of CUDA calls the device */
    int code, ms;
    bool once, always; /* once: in one process only (needs a box); always: also after the at-th */
    atomic_int seen;
};

struct fake_settings {
    int devices, multiprocessors, major, minor, delay_us, peers, init_ms;
    int driver; /* version; below 0: that of the headers */
    int64_t memory, context;
    int64_t poison; /* bytes of a block that begin as NaN, at most: pages cost time */
    uint64_t seed;
    char name[64], box[256], host[64], nvml[256], lt[64];
    int fault_count;
    struct fake_fault faults[FAKE_FAULTS];
};

extern struct fake_settings fake_settings;

void fake_settings_read(const char *text, struct fake_settings *settings);

/* The fault planted for this call of `what`, or NULL; counts. rank: the device,
 * or the rank of a comm. */
const struct fake_fault *fake_fault(const char *what, int rank);
void fake_sleep_ms(int ms);
void fake_complaints_clear(void);
void fake_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- box.c: what the processes of a machine share */

struct fake_share {
    _Atomic int pid;
    _Atomic int64_t bytes;
};

struct fake_box {
    struct fake_share use[FAKE_DEVICES][64];
    _Atomic uint32_t fired; /* faults with once */
};

struct fake_box *fake_box_open(const char *path); /* a private one for "" */
void fake_box_close(struct fake_box *box);        /* this process holds no memory any more */
int64_t fake_box_used(struct fake_box *box, int device, int not_pid);
_Atomic int64_t *fake_box_mine(struct fake_box *box, int device);
extern struct fake_box *fake_box;

#endif
