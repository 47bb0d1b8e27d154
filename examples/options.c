/* Options of a program's own: a switch, one with a value, an argument, and another
 * default of a standard option. Counts a word in random letters.
 *   ./options --letters 3 --backwards cab */
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"

enum { BYTES = 1 << 20 };

struct search {
    char *text;
    const char *word;
    uint64_t letters;
    int step; /* -1: from the end */
    size_t found;
};

static int setup(void *context, gpubench *bench)
{
    struct search *s = context;
    uint64_t state = gpubench_seed(bench);
    s->text = gpubench_alloc(bench, BYTES, GPUBENCH_DEVICE);
    for (size_t i = 0; s->text && i < BYTES; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        s->text[i] = (char)('a' + (state >> 33) % s->letters);
    }
    return s->text ? GPUBENCH_OK : GPUBENCH_OOM;
}

static int run(void *context, gpubench_stream stream)
{
    struct search *s = context;
    size_t length = strlen(s->word), last = BYTES - length;
    (void)stream;
    s->found = 0;
    for (size_t i = 0; i <= last; i++)
        s->found += !memcmp(s->text + (s->step > 0 ? i : last - i), s->word, length);
    return 0;
}

int main(int argc, char **argv)
{
    const char *letters = "2", *backwards = NULL, *word = "aab", *precision = "2";
    const gpubench_option options[] = {
        {"--letters", "N", "of the alphabet, 1 to 26", &letters},
        {"--backwards", NULL, "from the end", &backwards},
        {"--precision", NULL, NULL, &precision}, /* 2 instead of 0.5 % */
        {"WORD", NULL, "what to count", &word}};
    gpubench *bench = gpubench_open_with("options", options, 4, argc, argv);
    struct search s = {.word = word, .step = backwards ? -1 : 1};
    gpubench_case c = gpubench_case_init("search", run, &s);
    if (gpubench_parse_count(letters, &s.letters) != 0 || s.letters < 1 || s.letters > 26)
        gpubench_usage_error(bench, "--letters '%s': wants a number from 1 to 26", letters);
    if (strlen(word) > BYTES)
        gpubench_usage_error(bench, "WORD is longer than the text");
    c.setup = setup;
    c.bytes = BYTES;
    gpubench_measure(bench, &c);
    return gpubench_close(bench);
}
