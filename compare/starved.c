#include "starved.h"

static bool starved;

void *noted(void *memory)
{
    starved = starved || memory == NULL;
    return memory;
}

bool is_starved(void)
{
    return starved;
}

void end_memory(FILE *stream)
{
    bool failed = ferror(stream) != 0;
    starved = fclose(stream) != 0 || failed || starved;
}
