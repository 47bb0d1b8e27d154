/* An option of the program's own, which --help lists and a wrong value of which is refused
 * by name.  cc -o options -I. examples/options.c && ./options --bytes 4096 */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
static uint64_t bytes = 1 << 20;
static void *memory;

static int setup(void *context, gpubench *bench) {
    (void)context;
    memory = gpubench_alloc(bench, bytes, GPUBENCH_OUTPUT);
    return gpubench_allocated(bench);
}
static int run(void *context, gpubench_stream stream) {
    (void)context, (void)stream;
    memset(memory, 0, bytes);
    return 0;
}
int main(int argc, char **argv) {
    const char *text = NULL;
    const gpubench_option own = {"--bytes", "N", "how many are cleared (1048576)", &text};
    gpubench *bench = gpubench_open_with("options", &own, 1, argc, argv);
    gpubench_case c = gpubench_case_init("clear", run, NULL);
    if (text && (gpubench_parse_count(text, &bytes) != 0 || bytes == 0))
        gpubench_usage_error(bench, "--bytes '%s': wants a whole number above 0", text);
    c.setup = setup, c.bytes = bytes;
    c.params = gpubench_text(bench, "bytes=%llu", (unsigned long long)bytes);
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
