/* A stand-in for libnvidia-ml.so.1: two GPUs with fixed figures. What a driver of some age
 * lacks is left out by macros: OLD (before 2022), LONG_PROCESS (the first 535 drivers), and
 * INIT_CODE, LOST (GPU 1 does not answer), COUNT, HANG (a call that never returns), and
 * MEMORY_FILE (rows "index, used MiB" that are read anew at each question). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef INIT_CODE
#define INIT_CODE 0
#endif
#ifndef COUNT
#define COUNT 2
#endif

#define MIB 1048576ULL
#define NOT_SUPPORTED 3
#define INSUFFICIENT_SIZE 7
#define GPU_IS_LOST 15

typedef void *device;
typedef unsigned long long u64;

static char gpus[2];

static int number(device gpu) { return (int)((char *)gpu - gpus); }

const char *nvmlErrorString(int code) {
    switch (code) {
    case 9: return "Driver Not Loaded";
    case 15: return "GPU is lost";
    case 18: return "Driver/library version mismatch";
    default: return "Unknown Error";
    }
}

#ifdef OLD
int nvmlInit(void) { return INIT_CODE; }
#else
int nvmlInit_v2(void) { return INIT_CODE; }
#endif
int nvmlShutdown(void) { return 0; }

int nvmlSystemGetDriverVersion(char *text, unsigned length) {
    strncpy(text, "580.159.04", length);
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
#ifdef HANG
    for (;;) sleep(60);
#endif
    *count = COUNT;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, device *gpu) {
#ifdef LOST
    if (index == 1) return GPU_IS_LOST;
#endif
    *gpu = gpus + index;
    return 0;
}

int nvmlDeviceGetUUID(device gpu, char *text, unsigned length) {
    strncpy(text, number(gpu) ? "GPU-00000000-1" : "GPU-00000000-0", length);
    return 0;
}

int nvmlDeviceGetName(device gpu, char *text, unsigned length) {
    strncpy(text, "NVIDIA H200", length);
    return 0;
}

#ifndef OLD
int nvmlDeviceGetMinorNumber(device gpu, unsigned *minor) {
    *minor = number(gpu) + 3;
    return 0;
}

struct pci { char legacy[16]; unsigned domain, bus, slot, id, subsystem; char bus_id[32]; };
int nvmlDeviceGetPciInfo_v3(device gpu, struct pci *pci) {
    strcpy(pci->bus_id, number(gpu) ? "00000000:00:07.0" : "00000000:00:06.0");
    return 0;
}

struct memory_v2 { unsigned version; u64 total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(device gpu, struct memory_v2 *memory) {
    if (memory->version != (sizeof *memory | 2 << 24)) return 25; /* argument version mismatch */
    memory->total = 143771 * MIB;
    memory->reserved = 616 * MIB;
    memory->used = (21959 + number(gpu)) * MIB + 5;
#ifdef MEMORY_FILE
    unsigned index;
    FILE *rows = fopen(MEMORY_FILE, "r");
    for (int n = 0; n <= number(gpu); n++) fscanf(rows, "%u, %llu", &index, &memory->used);
    memory->used *= MIB;
    fclose(rows);
#endif
    memory->free = memory->total - memory->reserved - memory->used;
    return 0;
}
#endif

#ifndef NO_MEMORY
struct memory { u64 total, free, used; };
int nvmlDeviceGetMemoryInfo(device gpu, struct memory *memory) {
    memory->total = 143771 * MIB;
    memory->used = 22575 * MIB;
    memory->free = memory->total - memory->used;
    return 0;
}
#endif

int nvmlDeviceGetTemperature(device gpu, int sensor, unsigned *celsius) {
    *celsius = sensor == 0 ? 40 + number(gpu) : 999;
    return 0;
}

int nvmlDeviceGetPowerUsage(device gpu, unsigned *milliwatts) {
    *milliwatts = 132540;
    return 0;
}

int nvmlDeviceGetPowerManagementLimit(device gpu, unsigned *milliwatts) {
    return NOT_SUPPORTED;
}

int nvmlDeviceGetClockInfo(device gpu, int clock, unsigned *mhz) {
    *mhz = clock == 1 ? 1980 : clock == 2 ? 3201 : 999;
    return 0;
}

struct rates { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(device gpu, struct rates *rates) {
    rates->gpu = 38;
    rates->memory = 11;
    return 0;
}

#ifdef OLD
int nvmlDeviceGetCurrentClocksThrottleReasons(device gpu, u64 *mask)
#else
int nvmlDeviceGetCurrentClocksEventReasons(device gpu, u64 *mask)
#endif
{
    *mask = 0x4 | 0x40;
    return 0;
}

int nvmlDeviceGetCurrPcieLinkGeneration(device gpu, unsigned *generation) {
    *generation = 5;
    return 0;
}

int nvmlDeviceGetCurrPcieLinkWidth(device gpu, unsigned *width) {
    *width = 16;
    return 0;
}

struct process {
    unsigned pid;
    u64 used;
#ifndef OLD
    unsigned gpu_instance, compute_instance;
#endif
#ifdef LONG_PROCESS
    u64 protected_memory;
#endif
};

#ifdef LONG_PROCESS
int nvmlDeviceGetConfComputeMemSizeInfo(device gpu, void *info) { return NOT_SUPPORTED; }
#endif

/* 40 processes on GPU 0, more than fit into the first buffer; one on GPU 1. */
static int list(device gpu, unsigned *count, struct process *processes, unsigned first, u64 used) {
    unsigned have = number(gpu) ? 1 : 40;
    if (*count < have) {
        *count = have;
        return INSUFFICIENT_SIZE;
    }
    for (unsigned n = 0; n < have; n++) {
        memset(&processes[n], 0x55, sizeof processes[n]);
        processes[n].pid = first + n;
        processes[n].used = used;
    }
    *count = have;
    return 0;
}

#ifdef OLD
int nvmlDeviceGetComputeRunningProcesses
#else
int nvmlDeviceGetComputeRunningProcesses_v3
#endif
(device gpu, unsigned *count, struct process *processes) {
    return list(gpu, count, processes, 1006, 21950 * MIB);
}

#ifdef OLD
int nvmlDeviceGetGraphicsRunningProcesses
#else
int nvmlDeviceGetGraphicsRunningProcesses_v3
#endif
(device gpu, unsigned *count, struct process *processes) {
    if (!number(gpu)) return NOT_SUPPORTED;
    return list(gpu, count, processes, 2000, ~0ULL);
}
