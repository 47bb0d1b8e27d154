/* What a test says of the card that the substitute for NVML describes. */
#ifndef FAKE_NVML_H
#define FAKE_NVML_H

#include <stdint.h>

enum { FAKE_HOT_WATTS = 690 };

struct fake_nvml {
    int present;
    double watts;       /* what a microsecond of execution draws */
    unsigned watts_now; /* what the power sensor says */
    double hot_until_s; /* before this moment (CLOCK_MONOTONIC) it says FAKE_HOT_WATTS: another load's */
    double hot_after_us; /* and where so much was executed since it was read last; 0: never */
    uint64_t reads, hot_from_read; /* or from so many times on that it was read; 0: never */
};
extern struct fake_nvml fake_nvml; /* the test program's */

/* nvmlFieldValue_t, as documented. */
struct fake_field {
    unsigned field, scope;
    long long timestamp, latency_us;
    int type, code;
    unsigned long long value;
};

double fake_executed_us(void); /* of all streams, by the substitute for the CUDA runtime */

#endif
