/* Functions of nanoseconds, whose result is said to be used: without gpubench_keep the
 * compiler removes the call, and the case fails.  cc -O2 -o keep -I. examples/keep.c */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

static int find(void *context, gpubench_stream stream) {
    const char *text = (const char *)context;
    (void)stream;
    gpubench_keep(strchr(text, '!')); /* a value */
    return 0;
}
static int fill(void *context, gpubench_stream stream) {
    char line[80];
    (void)context, (void)stream;
    memset(line, '-', sizeof line);
    gpubench_keep(line); /* all memory that was written */
    return 0;
}
int main(int argc, char **argv) {
    char text[] = "the exclamation mark stands at the end!";
    gpubench *bench = gpubench_open("keep", argc, argv);
    gpubench_case c = gpubench_case_init("strchr", find, text);
    c.bytes = sizeof text; /* so few that it is measured hot, without --mode */
    gpubench_measure(bench, &c);
    c = gpubench_case_init("memset", fill, NULL);
    c.bytes = 80;
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
