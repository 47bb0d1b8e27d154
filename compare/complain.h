/* What the tool says on standard error. */
#ifndef GPUBENCH_COMPARE_COMPLAIN_H
#define GPUBENCH_COMPARE_COMPLAIN_H

/* A line behind the tool's name. What is in it of files and their names is shown, never
 * obeyed: see print_plain. Cut where it is longer than some paths together can be. */
__attribute__((format(printf, 1, 2))) void complain(const char *format, ...);

#endif
