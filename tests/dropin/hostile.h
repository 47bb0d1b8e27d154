/* What other people's headers define, in front of gpubench.h. */
#ifndef HOSTILE_H
#define HOSTILE_H
#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))
#define CHECK(condition) hostile_check(condition)
#define I hostile_imaginary_unit
#endif
