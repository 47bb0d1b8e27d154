// The one file that holds the implementation.
#include "hostile.h"
#define GPUBENCH_IMPLEMENTATION
#include "gpubench.h"
