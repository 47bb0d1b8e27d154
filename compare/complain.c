#include "complain.h"

#include "label.h"

#include <stdarg.h>
#include <stdio.h>

void complain(const char *format, ...)
{
    char line[1 << 14];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    fputs("gpubench-compare: ", stderr);
    print_plain(stderr, line);
    putc('\n', stderr);
}
