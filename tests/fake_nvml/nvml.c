/* A substitute for NVML, of our own making: the functions that gpubench.h looks
 * up, for a card whose state the test says in fake_nvml. Its energy counter
 * follows the time that the substitute for the CUDA runtime has executed, in
 * steps of a tenth of a second as the real one. */
#include "nvml.h"

#include <string.h>
#include <time.h>

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

enum { FINE = 0, NOT_SUPPORTED = 3 };

/* A program may define it: what a function is to answer; 0: as it would. */
int faulty_call(const char *call) __attribute__((weak));

static int answer(const char *call, int code)
{
    int fault = faulty_call ? faulty_call(call) : 0;
    return fault != 0 ? fault : code;
}

int nvmlInit_v2(void)
{
    return answer(__func__, fake_nvml.present ? FINE : NOT_SUPPORTED);
}

int nvmlShutdown(void)
{
    return answer(__func__, FINE);
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    *device = &fake_nvml;
    return answer(__func__, strncmp(uuid, "GPU-", 4) == 0 ? FINE : NOT_SUPPORTED);
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    (void)device;
    *mhz = which == 1 ? 1980 : 2619;
    return answer(__func__, FINE);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *mw)
{
    (void)device;
    *mw = 100000; /* as a mean over the last second, before the load is that old */
    return answer(__func__, FINE);
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *mw)
{
    (void)device;
    *mw = 700000;
    return answer(__func__, FINE);
}

int nvmlDeviceGetCurrentClocksThrottleReasons(void *device, unsigned long long *reasons)
{
    (void)device;
    *reasons = 0;
    return answer(__func__, FINE);
}

/* Millijoules: fake_nvml.watts for each microsecond, seen every tenth of a second. */
int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj)
{
    static double seen_s;
    static unsigned long long seen_mj;
    (void)device;
    if (now_s() - seen_s > 0.1) {
        seen_s = now_s();
        seen_mj = (unsigned long long)(fake_nvml.watts * fake_executed_us() / 1e3);
    }
    *mj = seen_mj;
    return answer(__func__, FINE);
}

/* A reading holds for a while, as the next one may follow at once. */
static int is_hot_from_work(void)
{
    static double read_us, hot_s;
    double since_us = fake_executed_us() - read_us;
    read_us += since_us;
    if (fake_nvml.hot_after_us > 0 && since_us >= fake_nvml.hot_after_us)
        hot_s = now_s();
    return fake_nvml.hot_after_us > 0 && now_s() - hot_s < 0.02;
}

static unsigned watts_now(void)
{
    int from_work = is_hot_from_work();
    uint64_t read = ++fake_nvml.reads;
    if (from_work || now_s() < fake_nvml.hot_until_s ||
        (fake_nvml.hot_from_read > 0 && read >= fake_nvml.hot_from_read))
        return FAKE_HOT_WATTS;
    return fake_nvml.watts_now;
}

int nvmlDeviceGetFieldValues(void *device, int count, void *values)
{
    struct fake_field *field = values;
    (void)device;
    field->type = 1;
    field->value = watts_now() * 1000;
    field->code = count == 1 && field->field == 186 ? FINE : NOT_SUPPORTED;
    return answer(__func__, FINE);
}
