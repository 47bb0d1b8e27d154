/* Numbers of a case's own, in the table, in --csv and --json, and as
 * gpubench-compare --metric tokens/s: tokens per second, and of what they are. */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

enum { TOKENS = 1 << 16, WORDS = 50257 };
static unsigned counts[WORDS];
static unsigned *tokens;

static int setup(void *context, gpubench *bench)
{
    uint64_t state = gpubench_seed(bench);
    (void)context;
    tokens = gpubench_alloc(bench, TOKENS * sizeof *tokens, GPUBENCH_DEVICE);
    for (int i = 0; tokens && i < TOKENS; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        tokens[i] = (unsigned)(state >> 33) % WORDS;
    }
    gpubench_rate(bench, "tokens", TOKENS); /* of one run: the row has them per second */
    return tokens ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int run(void *context, gpubench_stream stream)
{
    (void)context, (void)stream;
    memset(counts, 0, sizeof counts);
    for (int i = 0; i < TOKENS; i++)
        counts[tokens[i]]++;
    return 0;
}

static int verify(void *context, gpubench *bench)
{
    unsigned sum = 0, different = 0;
    (void)context;
    for (int i = 0; i < WORDS; i++) {
        sum += counts[i];
        different += counts[i] > 0;
    }
    gpubench_counter(bench, "different", different); /* what the run left behind */
    return gpubench_check(bench, sum != TOKENS, 0);
}

int main(int argc, char **argv)
{
    gpubench *bench = gpubench_open("counters", argc, argv);
    gpubench_case c = gpubench_case_init("histogram", run, NULL);
    c.setup = setup;
    c.verify = verify;
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
