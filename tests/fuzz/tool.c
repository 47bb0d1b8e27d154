/* The whole compare tool: a byte that chooses how it is called, then up to two files with a
 * form feed between them, for libFuzzer and, from standard input, for AFL++. It is given no
 * path to write to and no program to race. */
#define _GNU_SOURCE
#define main tool_main
#include "../../compare/main.c"
#undef main
#include "fuzz.h"

#include <fcntl.h>

/* "1" and "2" stand for the files. */
static const char *const calls[][9] = {
    {"1", "2"},
    {"--ignore-device", "--all", "--limit", "0", "1", "2"},
    {"--format", "json", "--keep-constant", "--ignore-device", "1", "2"},
    {"--format", "csv", "--subset", "--sort", "name", "--ignore-device", "1", "2"},
    {"--format", "markdown", "--screen", "2", "--ignore-device", "1", "2"},
    {"--format", "github", "--ignore-device", "1", "2"},
    {"--metric", "gb_per_s", "--ignore-device", "1", "2"},
    {"--metric", "steps", "--ignore-device", "--filter", "^s c", "1", "2"},
    {"--variants", "1", "--format", "json"},
    {"--variants", "1", "2"},
    {"--self", "1"},
    {"--self", "1", "--format", "json"},
    {"--check", "1", "2"},
    {"--cards", "1", "2", "--ignore-device"},
    {"--cards", "1", "--format", "json"},
    {"--history", "1", "2", "--ignore-device", "--all"},
    {"--history", "1", "--format", "csv"},
    {"--kernels", "1", "2", "--limit", "0"},
    {"--kernels", "1", "1", "--filter", "a"},
    {"--baseline", "1", "2", "--current", "1"},
};

static int call(size_t which, const char *const files[2])
{
    char *words[16] = {"gpubench-compare"};
    int count = 1;
    for (const char *const *word = calls[which]; count < 10 && *word; word++) {
        bool is_file = strcmp(*word, "1") == 0 || (strcmp(*word, "2") == 0 && strcmp(word[-1], "--screen") != 0);
        words[count++] = (char *)(uintptr_t)(is_file ? files[**word - '1'] : *word);
    }
    return tool_main(count, words);
}

/* What it prints goes nowhere meanwhile. */
static int call_quietly(size_t which, const char *const files[2])
{
    int kept[2], nowhere = open("/dev/null", O_WRONLY), status;
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        kept[i] = dup(i + 1);
        dup2(nowhere, i + 1);
    }
    status = call(which, files);
    for (int i = 0; i < 2; i++) {
        fflush(i ? stderr : stdout);
        dup2(kept[i], i + 1);
        close(kept[i]);
    }
    close(nowhere);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t call_count = sizeof calls / sizeof calls[0];
    if (size == 0)
        return 0;
    const uint8_t *bytes = data + 1, *end = data + size;
    const uint8_t *cut = end > bytes ? memchr(bytes, '\f', (size_t)(end - bytes)) : NULL;
    size_t first = (size_t)((cut ? cut : end) - bytes);
    struct memory_file one = memory_file_open(bytes, first);
    struct memory_file two = cut ? memory_file_open(cut + 1, (size_t)(end - cut) - 1) : memory_file_open(bytes, first);
    int status = call_quietly(data[0] % call_count, (const char *const[2]){one.path, two.path});
    require(status >= 0 && status <= 2);
    memory_file_close(&one);
    memory_file_close(&two);
    return 0;
}
