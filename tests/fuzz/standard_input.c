/* Gives a fuzz target what AFL++ writes to standard input. */
#define _GNU_SOURCE
#include "fuzz.h"

int main(void)
{
    static uint8_t bytes[1 << 20];
    size_t size = fread(bytes, 1, sizeof bytes, stdin);
    return LLVMFuzzerTestOneInput(bytes, size);
}
