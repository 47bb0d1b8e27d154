/*
 * faults.cu - cases to which the worst happens, in each phase of their lives, on a true GPU:
 * its memory runs out at each of their allocations, the context is lost, a kernel never ends.
 * Between them are healthy ones. tests/gpu/faults.sh knows how each has to end. With
 * --hold MIB it is what takes the memory that another one lacks.
 */
#define GPUBENCH_IMPLEMENTATION
#include "../../gpubench.h"

#include <vector>

enum phase { NOWHERE, SETUP, RESET, FIRST_RUN, LATER_RUN, VERIFY, TEARDOWN, PHASES };
enum fault { NOTHING, STARVED, LOST, ENDLESS };

constexpr int LATER = 20;                  /* runs: warming up is over by then */
constexpr int ALLOCATIONS = 4;
constexpr size_t EACH = size_t(1) << 30;   /* more than the runtime keeps in reserve */
constexpr unsigned COUNT = 256;

struct work {
    fault what;
    phase where;
    int starved; /* which of the allocations finds no memory, from 1 */
    int runs;
    float *data;
    void *ballast; /* leaves too little of the device's memory */
};

__global__ void fill_kernel(float *data)
{
    data[threadIdx.x] = 1.5f;
}

__global__ void lose_kernel(float *nowhere)
{
    *nowhere = 1.0f;
}

__global__ void endless_kernel(const volatile float *data)
{
    while (data[0] != -1.0f) {}
}

/* What happens in a phase, if it is the one. */
static int strike(const work *w, phase now, gpubench_stream stream)
{
    if (w->where != now) return 0;
    if (w->what == LOST) lose_kernel<<<1, 1, 0, stream>>>(nullptr);
    if (w->what == ENDLESS) endless_kernel<<<1, 1, 0, stream>>>(w->data);
    return cudaGetLastError();
}

/* All memory but for what the allocations before that one take, and half of its own. */
static int take_ballast(work *w)
{
    size_t available, total, left = (w->starved - 1) * EACH + EACH / 2;
    GPUBENCH_TRY(cudaMemGetInfo(&available, &total), cudaGetErrorString);
    GPUBENCH_TRY(cudaMalloc(&w->ballast, available - left), cudaGetErrorString);
    return 0;
}

static int setup(void *context, gpubench *bench)
{
    work *w = static_cast<work *>(context);
    int code = w->what == STARVED ? take_ballast(w) : 0;
    if (code != 0) return code;
    w->runs = 0;
    for (int i = 0; i < ALLOCATIONS && w->what == STARVED; i++)
        if (!gpubench_alloc(bench, EACH, GPUBENCH_DEVICE)) return GPUBENCH_OOM;
    w->data = static_cast<float *>(
        gpubench_alloc(bench, COUNT * sizeof(float), GPUBENCH_DEVICE | GPUBENCH_OUTPUT));
    return w->data ? strike(w, SETUP, nullptr) : GPUBENCH_OOM;
}

static int reset(void *context, gpubench_stream stream)
{
    return strike(static_cast<const work *>(context), RESET, stream);
}

static int run(void *context, gpubench_stream stream)
{
    work *w = static_cast<work *>(context);
    int code = ++w->runs == 1 ? strike(w, FIRST_RUN, stream) : 0;
    if (code == 0 && w->runs == LATER) code = strike(w, LATER_RUN, stream);
    if (code != 0) return code;
    fill_kernel<<<1, COUNT, 0, stream>>>(w->data);
    return cudaGetLastError();
}

static int verify(void *context, gpubench *bench)
{
    const work *w = static_cast<const work *>(context);
    float values[COUNT];
    int code = strike(w, VERIFY, nullptr);
    if (code == 0) code = gpubench_copy(bench, values, w->data, sizeof values);
    if (code != 0) return code;
    double wrong = 0;
    for (float value : values) wrong += value != 1.5f;
    return gpubench_check(bench, wrong, 0);
}

static void teardown(void *context)
{
    work *w = static_cast<work *>(context);
    (void)strike(w, TEARDOWN, nullptr);
    if (w->ballast) (void)cudaFree(w->ballast);
    w->ballast = nullptr;
}

static void queue(gpubench *bench, work *w, const char *name)
{
    gpubench_case one = gpubench_case_init(name, run, w);
    one.setup = setup;
    one.reset = w->where == RESET ? reset : nullptr; /* some modes take no reset */
    one.verify = verify;
    one.teardown = teardown;
    gpubench_measure(bench, &one);
}

/* In pieces, because the last of the memory is not to be had in one. */
static void hold_all_but(size_t left, std::vector<void *> *pieces)
{
    size_t available, total;
    for (size_t piece = size_t(1) << 40; piece >= size_t(1) << 20;) {
        void *held = nullptr;
        if (cudaMemGetInfo(&available, &total) == cudaSuccess && available >= left + piece &&
            cudaMalloc(&held, piece) == cudaSuccess)
            pieces->push_back(held);
        else
            piece /= 2;
    }
    (void)cudaGetLastError();
}

/* Holds all of the device's memory but for some. Says how much is free then, and again at each
 * line of standard input, until it ends. */
static int hold(const char *left_mib)
{
    std::vector<void *> pieces;
    size_t available, total;
    hold_all_but(strtoull(left_mib, nullptr, 10) << 20, &pieces);
    do {
        if (cudaMemGetInfo(&available, &total) != cudaSuccess) return 2;
        printf("%zu\n", available >> 20);
        fflush(stdout);
        while (getchar() != '\n' && !feof(stdin)) {}
    } while (!feof(stdin));
    int code = 0;
    for (void *piece : pieces) code |= cudaFree(piece) != cudaSuccess;
    return code;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--hold")) return hold(argv[2]);
    static const char *const phases[] = {"", "setup", "reset", "first_run", "later_run", "verify",
                                         "teardown"};
    static work works[2 + 2 * (ALLOCATIONS + 2 * PHASES)];
    work *next = works;
    gpubench *bench = gpubench_open("faults", argc, argv);
    auto queue_between = [&](const work &one, const char *name) {
        *next = one;
        queue(bench, next++, name);
        queue(bench, next, gpubench_text(bench, "healthy_after_%s", name));
        next++;
    };
    for (int i = 1; i <= ALLOCATIONS; i++)
        queue_between({STARVED, NOWHERE, i}, gpubench_text(bench, "starved_%d", i));
    for (int i = SETUP; i < PHASES; i++) {
        queue_between({LOST, static_cast<phase>(i)}, gpubench_text(bench, "lost_in_%s", phases[i]));
        queue_between({ENDLESS, static_cast<phase>(i)},
                      gpubench_text(bench, "endless_in_%s", phases[i]));
    }
    return gpubench_close(bench);
}
