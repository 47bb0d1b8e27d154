/* A substitute for CUPTI: between enable and flush it has seen what stands
 * below, which the test knows by hand. FAKE_CUPTI makes it refuse
 * ("denied"), lose records ("drops"), or take another time each time ("varies"); see
 * besides a graph that was launched twice ("graph"), a kernel that begins before the one
 * in front of it ends ("overlaps"), one whose name is none ("names"), twelve of 1 us
 * ("small"), or one ("alone"), two ("gap"), 100,000 launches
 * ("many") and 5,000,000 ("endless") of 1 us instead. Beside that the program may say of
 * any call that it fails. */
#include <cupti.h>
#include <stdlib.h>
#include <string.h>

/* See fake_cuda/faulty.h. */
int faulty_call(const char *call) __attribute__((weak));

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static uint64_t enabled; /* a set of bits by kind */
static int asked;        /* how often for the time since flushing */
static int flushed;      /* how often since enabling: before and after each execution */

/* To stand in front of what a function does. */
#define MAY_FAIL()                                                                         \
    if (faulty_call && faulty_call(__func__))                                                  \
    return CUPTI_ERROR_UNKNOWN

static int fault(const char *name)
{
    const char *wanted = getenv("FAKE_CUPTI");
    return wanted && !strcmp(wanted, name);
}

static CUpti_ActivityKernel10 kernel(const char *name, uint64_t start, uint64_t end, int blocks,
                                     int threads, int registers, uint32_t stream, uint32_t id)
{
    CUpti_ActivityKernel10 record;
    memset(&record, 0, sizeof record);
    record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
    record.name = name;
    record.start = start;
    record.end = end;
    record.gridX = blocks;
    record.gridY = record.gridZ = 1;
    record.blockX = threads;
    record.blockY = record.blockZ = 1;
    record.registersPerThread = (uint16_t)registers;
    record.streamId = stream;
    record.correlationId = id;
    return record;
}

static uint8_t *put(uint8_t *at, const void *record, size_t bytes, CUpti_ActivityKind kind)
{
    if (!(enabled & (uint64_t)1 << kind))
        return at;
    memcpy(at, record, bytes);
    return at + bytes;
}

static uint8_t *put_kernels(uint8_t *at)
{
    CUpti_ActivityKernel10 records[3];
    static const uint64_t longer[] = {0, 3000, 1000, 2000};
    uint64_t ns = fault("varies") ? longer[flushed / 2 % 4] : 0;
    size_t i;
    records[0] = kernel("_Z5scaleIfLi4EEvPT_i", 1000, 11000 + ns, 264, 256, 32, 7, 1);
    records[1] = kernel("_ZN12_GLOBAL__N_13addEPfi", 6000, 26000, 528, 256, 128, 8, 2);
    records[1].dynamicSharedMemory = 4096;
    records[2] = kernel("_Z5scaleIfLi4EEvPT_i", 21000, 31000, 132, 256, 32, 7, 3);
    for (i = 0; i < 3; i++)
        at = put(at, &records[i], sizeof records[i], CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    return at;
}

static uint8_t *put_copies(uint8_t *at)
{
    CUpti_ActivityMemcpy6 copy;
    CUpti_ActivityMemset4 set;
    memset(&copy, 0, sizeof copy);
    memset(&set, 0, sizeof set);
    copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
    copy.bytes = 500000;
    copy.start = 41000;
    copy.end = 51000;
    copy.streamId = 7;
    copy.correlationId = 4;
    set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
    set.bytes = 1000;
    set.start = 50000;
    set.end = 51000;
    set.streamId = 8;
    set.correlationId = 5;
    at = put(at, &copy, sizeof copy, CUPTI_ACTIVITY_KIND_MEMCPY);
    return put(at, &set, sizeof set, CUPTI_ACTIVITY_KIND_MEMSET);
}

/* Two launches of a graph of two kernels on two streams, and a copy, from 100 us on; each
 * takes 10 us, the copy 5. */
static uint8_t *put_graph(uint8_t *at)
{
    uint32_t id;
    for (id = 11; id <= 12; id++) {
        uint64_t from = 100000 + (id - 11) * 100000;
        CUpti_ActivityKernel10 records[2];
        CUpti_ActivityMemcpy6 copy;
        records[0] = kernel("first", from, from + 10000, 1, 32, 8, 7, id);
        records[1] = kernel("second", from + 5000, from + 15000, 1, 32, 8, 9, id);
        records[0].graphId = records[1].graphId = 3;
        at = put(at, &records[0], sizeof records[0], CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        at = put(at, &records[1], sizeof records[1], CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
        memset(&copy, 0, sizeof copy);
        copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
        copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOD;
        copy.bytes = 64;
        copy.start = from + 15000;
        copy.end = from + 20000;
        copy.streamId = 7;
        copy.correlationId = id;
        copy.graphId = 3;
        at = put(at, &copy, sizeof copy, CUPTI_ACTIVITY_KIND_MEMCPY);
    }
    return at;
}

static uint8_t *put_one(uint8_t *at, const char *name, uint64_t start, uint64_t end)
{
    CUpti_ActivityKernel10 record = kernel(name, start, end, 1, 32, 8, 7, 20);
    return put(at, &record, sizeof record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
}

/* What else there is. */
static uint8_t *put_more(uint8_t *at)
{
    if (fault("graph"))
        at = put_graph(at);
    if (fault("overlaps"))
        at = put_one(at, "early", 28000, 33000);
    if (fault("small")) {
        uint64_t i;
        for (i = 0; i < 12; i++)
            at = put_one(at, "tiny", 60000 + 2000 * i, 61000 + 2000 * i);
    }
    if (fault("names")) {
        at = put_one(at, "operator \"\" _k\\n\t</script>%s", 60000, 61000);
        at = put_one(at, "k\xff\xc0\x80\xe2\x82", 62000, 63000);
        at = put_one(at, NULL, 64000, 65000);
    }
    return at;
}

/* In place of everything: 100 us, with "gap" twice with as much between them. Of 2112
 * blocks of 256 threads with 32 registers 132 multiprocessors hold 1056. */
static uint8_t *put_instead(uint8_t *at)
{
    CUpti_ActivityKernel10 record = kernel("alone", 1000, 101000, 2112, 256, 32, 7, 1);
    at = put(at, &record, sizeof record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    record.start += 200000;
    record.end += 200000;
    return fault("gap") ? put(at, &record, sizeof record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) : at;
}

static size_t lost; /* since they were asked for */

/* So many launches, in as many buffers as there are. */
static CUptiResult put_many(size_t launches)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used = 0, i;
    for (i = 0; i < launches; i++) {
        CUpti_ActivityKernel10 record =
            kernel("_Z4tinyv", 1000 * i + 1000, 1000 * i + 2000, 1, 32, 8, 7, (uint32_t)i + 1);
        if (buffer && used + sizeof record > size) {
            complete(NULL, 0, buffer, size, used);
            buffer = NULL;
        }
        if (!buffer) {
            request(&buffer, &size, &most);
            used = 0;
        }
        if (buffer) {
            memcpy(buffer + used, &record, sizeof record);
            used += sizeof record;
        } else {
            lost += launches - i;
            break;
        }
    }
    if (buffer)
        complete(NULL, 0, buffer, size, used);
    else /* what was lost is told with some buffer */
        complete(NULL, 0, NULL, 0, 0);
    return CUPTI_SUCCESS;
}

/* Call i enqueued what has its correlation: 100 ns each, one after the other. */
static uint8_t *put_calls(uint8_t *at)
{
    uint32_t id;
    for (id = 1; id <= 5; id++) {
        CUpti_ActivityAPI call;
        memset(&call, 0, sizeof call);
        call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
        call.start = 100 * id;
        call.end = 100 * id + 90;
        call.correlationId = id;
        at = put(at, &call, sizeof call, CUPTI_ACTIVITY_KIND_RUNTIME);
    }
    return at;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed)
{
    MAY_FAIL();
    request = requested;
    complete = completed;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
    MAY_FAIL();
    if (fault("denied"))
        return CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
    enabled |= (uint64_t)1 << kind;
    flushed = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
    MAY_FAIL();
    enabled &= ~((uint64_t)1 << kind);
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(uint32_t flag)
{
    uint8_t *buffer = NULL;
    size_t size = 0, most = 0, used;
    (void)flag;
    MAY_FAIL();
    asked = 0;
    flushed++;
    if (fault("many") || fault("endless"))
        return put_many(flushed % 2 == 1 ? 1 : fault("many") ? 100000 : 5000000);
    request(&buffer, &size, &most);
    if (!buffer)
        return CUPTI_ERROR_OUT_OF_MEMORY;
    if (fault("alone") || fault("gap"))
        used = (size_t)(put_instead(buffer) - buffer);
    else
        used = (size_t)(put_more(put_calls(put_copies(put_kernels(buffer)))) - buffer);
    complete(NULL, 0, buffer, size, used);
    return CUPTI_SUCCESS;
}

static size_t bytes_of(const CUpti_Activity *record)
{
    switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: return sizeof(CUpti_ActivityAPI);
    }
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
    uint8_t *next = *record ? (uint8_t *)*record + bytes_of(*record) : buffer;
    MAY_FAIL();
    if (next >= buffer + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)(void *)next;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
    (void)context;
    (void)stream;
    MAY_FAIL();
    *dropped = fault("drops") && flushed % 2 == 0 ? 3 : lost; /* of the execution itself */
    lost = 0;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetResultString(CUptiResult result, const char **text)
{
    *text = result == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
                                                          : "another";
    return CUPTI_SUCCESS;
}

/* Twice before the first call, then after the last, of each execution. */
CUptiResult cuptiGetTimestamp(uint64_t *timestamp)
{
    MAY_FAIL();
    *timestamp = asked++ < 2 ? 50 : 700;
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
    (void)domain;
    (void)id;
    MAY_FAIL();
    *name = "cudaLaunchKernel_v7000";
    return CUPTI_SUCCESS;
}

CUptiResult cuptiGetVersion(uint32_t *version)
{
    MAY_FAIL();
    *version = CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}
