/* Calls of the C library and of the system, between a program and them, so that fault.h
 * can make any of them fail as it fails in the field. The program is linked with --wrap
 * for each of the calls here; what the C library calls inside is not met. */
#define _GNU_SOURCE
#include "faults/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#define CALL(name, type, failure, reason, parameters, arguments)                           \
    type __real_##name parameters;                                                         \
    type __wrap_##name parameters;                                                         \
    type __wrap_##name parameters                                                          \
    {                                                                                      \
        if (!fault_now(#name))                                                             \
            return __real_##name arguments;                                                \
        errno = reason;                                                                    \
        return failure;                                                                    \
    }

/* ---- memory ---- */

CALL(malloc, void *, NULL, ENOMEM, (size_t bytes), (bytes))
CALL(calloc, void *, NULL, ENOMEM, (size_t count, size_t bytes), (count, bytes))
CALL(realloc, void *, NULL, ENOMEM, (void *memory, size_t bytes), (memory, bytes))
CALL(posix_memalign, int, ENOMEM, ENOMEM, (void **memory, size_t alignment, size_t bytes),
     (memory, alignment, bytes))
CALL(mmap, void *, MAP_FAILED, ENOMEM,
     (void *at, size_t bytes, int protection, int flags, int file, off_t offset),
     (at, bytes, protection, flags, file, offset))

/* ---- files ---- */

CALL(fdopen, FILE *, NULL, ENOMEM, (int file, const char *mode), (file, mode))
CALL(open_memstream, FILE *, NULL, ENOMEM, (char **text, size_t *bytes), (text, bytes))
CALL(fmemopen, FILE *, NULL, ENOMEM, (void *text, size_t bytes, const char *mode),
     (text, bytes, mode))
CALL(mkstemp, int, -1, EACCES, (char *path), (path))
CALL(mkdtemp, char *, NULL, EACCES, (char *path), (path))
CALL(write, ssize_t, -1, ENOSPC, (int file, const void *bytes, size_t count), (file, bytes, count))
CALL(pwrite, ssize_t, -1, ENOSPC, (int file, const void *bytes, size_t count, off_t offset),
     (file, bytes, count, offset))
CALL(read, ssize_t, -1, EIO, (int file, void *bytes, size_t count), (file, bytes, count))
CALL(pread, ssize_t, -1, EIO, (int file, void *bytes, size_t count, off_t offset),
     (file, bytes, count, offset))
CALL(rename, int, -1, EACCES, (const char *from, const char *to), (from, to))
CALL(unlink, int, -1, EACCES, (const char *path), (path))
CALL(ftruncate, int, -1, EIO, (int file, off_t bytes), (file, bytes))
CALL(lseek, off_t, -1, ESPIPE, (int file, off_t offset, int from), (file, offset, from))
CALL(flock, int, -1, ENOLCK, (int file, int operation), (file, operation))
CALL(stat, int, -1, EACCES, (const char *path, struct stat *about), (path, about))
CALL(fstat, int, -1, EIO, (int file, struct stat *about), (file, about))
CALL(access, int, -1, EACCES, (const char *path, int mode), (path, mode))
CALL(realpath, char *, NULL, EACCES, (const char *path, char *real), (path, real))

/* ---- processes, threads, time ---- */

CALL(fork, pid_t, -1, EAGAIN, (void), ())
CALL(pipe, int, -1, EMFILE, (int *ends), (ends))
CALL(execve, int, -1, ENOMEM, (const char *path, char *const *arguments, char *const *environment),
     (path, arguments, environment))
CALL(execv, int, -1, ENOMEM, (const char *path, char *const *arguments), (path, arguments))
CALL(waitpid, pid_t, -1, ECHILD, (pid_t child, int *status, int options), (child, status, options))
CALL(pthread_create, int, EAGAIN, EAGAIN,
     (pthread_t *thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument),
     (thread, attributes, function, argument))
CALL(clock_gettime, int, -1, EINVAL, (clockid_t clock, struct timespec *now), (clock, now))

/* A stream remembers that it failed. */
#define ERROR_SEEN 0x20 /* glibc's */

#define STREAM_CALL(name, type, failure, reason, parameters, arguments)                    \
    type __real_##name parameters;                                                         \
    type __wrap_##name parameters;                                                         \
    type __wrap_##name parameters                                                          \
    {                                                                                      \
        if (!fault_now(#name))                                                             \
            return __real_##name arguments;                                                \
        if (file)                                                                          \
            file->_flags |= ERROR_SEEN;                                                    \
        errno = reason;                                                                    \
        return failure;                                                                    \
    }

STREAM_CALL(fread, size_t, 0, EIO, (void *to, size_t bytes, size_t count, FILE *file),
            (to, bytes, count, file))
STREAM_CALL(fwrite, size_t, 0, ENOSPC,
            (const void *from, size_t bytes, size_t count, FILE *file),
            (from, bytes, count, file))
STREAM_CALL(fflush, int, EOF, ENOSPC, (FILE *file), (file))

/* The file is closed, but its last bytes were lost. */
int __real_fclose(FILE *file);
int __wrap_fclose(FILE *file);
int __wrap_fclose(FILE *file)
{
    int fails = fault_now("fclose"), done = __real_fclose(file);
    if (!fails)
        return done;
    errno = ENOSPC;
    return EOF;
}

/* Whether it is about a cache behind the nearest. They are not shown: a sweep of all that a
 * machine has takes up to a second, and of as many programs as it has processors its memory. */
static int is_of_large_cache(const char *path)
{
    static const char folder[] = "/cache/index";
    const char *at = strncmp(path, "/sys/", 5) == 0 ? strstr(path, folder) : NULL;
    return at && at[sizeof folder - 1] > '1';
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode)
{
    int fails = fault_now("fopen");
    if (!fails && !is_of_large_cache(path))
        return __real_fopen(path, mode);
    errno = fails ? EMFILE : ENOENT;
    return NULL;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list more;
    va_start(more, flags);
    if (flags & O_CREAT)
        mode = va_arg(more, mode_t);
    va_end(more);
    if (!fault_now("open"))
        return __real_open(path, flags, mode);
    errno = EMFILE;
    return -1;
}

int __real_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...);
int __wrap_fcntl(int file, int command, ...)
{
    va_list more;
    long argument;
    va_start(more, command);
    argument = va_arg(more, long);
    va_end(more);
    if (!fault_now("fcntl"))
        return __real_fcntl(file, command, argument);
    errno = EMFILE;
    return -1;
}
