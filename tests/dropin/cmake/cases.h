#pragma once
#include "hostile.h"

#include "gpubench.h"

void measure_sort(gpubench *bench);
void measure_find(gpubench *bench);
