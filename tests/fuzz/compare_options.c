/* The compare tool's command line, a word a line: taken, or refused with a message. */
#define _GNU_SOURCE
#include "../../compare/options.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[options_error_capacity] = "";
    struct options options;
    struct command_line line = command_line_split(data, size);
    bool taken = parse_options(&options, line.count, (const char *const *)line.words, error);
    require(taken == (error[0] == '\0'));
    if (taken && options.mode != MODE_HELP) {
        require(options.baseline.count > 0 && options.settings.metric != NULL);
        require(options.settings.rule.margin > 0.0 || options.settings.rule.margin == 0.0);
        for (size_t i = 0; i < options.baseline.count; i++)
            require(options.baseline.items[i] != NULL);
        for (size_t i = 0; i < options.current.count; i++)
            require(options.current.items[i] != NULL);
    }
    free(line.bytes);
    return 0;
}
