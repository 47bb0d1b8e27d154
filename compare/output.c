#define _XOPEN_SOURCE 700

#include "output.h"

#include "complain.h"
#include "number.h"
#include "starved.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
    FILE *stream;
    char path[PATH_MAX];           /* links followed */
    char temporary[PATH_MAX + 32]; /* empty where the path itself is written */
};

/* The descriptor that the path names, or -1. What is behind it may be a file that
 * someone appends to: it must not be replaced by name. */
static int named_descriptor(const char *path)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};
    uint64_t number = 0;
    if (strcmp(path, "/dev/stdout") == 0)
        return STDOUT_FILENO;
    if (strcmp(path, "/dev/stderr") == 0)
        return STDERR_FILENO;
    for (size_t i = 0; i < 2; i++) {
        size_t size = strlen(folders[i]);
        if (strncmp(path, folders[i], size) == 0 && parse_whole(path + size, &number) && number <= INT_MAX)
            return (int)number;
    }
    return -1;
}

static bool is_one_of(const struct stat *found, const struct paths *inputs)
{
    struct stat input;
    for (size_t i = 0; i < inputs->count; i++)
        if (stat(inputs->items[i], &input) == 0 && input.st_dev == found->st_dev && input.st_ino == found->st_ino)
            return true;
    return false;
}

/* Follows links, and says by errno why the path cannot be written. */
static bool resolve(const struct options *options, struct output *output)
{
    struct stat found, link;
    bool exists = stat(options->output, &found) == 0;
    if (!exists && lstat(options->output, &link) == 0)
        return false; /* a link that leads nowhere */
    if (exists && (is_one_of(&found, &options->baseline) || is_one_of(&found, &options->current))) {
        errno = EINVAL;
        return false;
    }
    bool regular = exists && S_ISREG(found.st_mode);
    if (exists && access(options->output, W_OK) != 0)
        return false;
    if (!regular || !realpath(options->output, output->path))
        snprintf(output->path, sizeof output->path, "%s", options->output);
    if (!exists || regular)
        snprintf(output->temporary, sizeof output->temporary, "%s.%ld.tmp", output->path, (long)getpid());
    return true;
}

static bool open_output(const struct options *options, struct output *output)
{
    if (!options->output) {
        output->stream = stdout;
        return true;
    }
    int descriptor = named_descriptor(options->output);
    if (descriptor >= 0) {
        descriptor = dup(descriptor);
        output->stream = descriptor >= 0 ? fdopen(descriptor, "a") : NULL;
    } else if (resolve(options, output)) {
        output->stream = fopen(*output->temporary ? output->temporary : output->path, "w");
    }
    return output->stream != NULL;
}

/* Ends the report; false where not all of it could be written, or told. */
static bool close_output(struct output *output)
{
    bool complete = !ferror(output->stream) && fflush(output->stream) == 0;
    if (is_starved()) {
        complete = false;
        errno = ENOMEM;
    }
    if (output->stream != stdout)
        complete = fclose(output->stream) == 0 && complete;
    if (!*output->temporary)
        return complete;
    complete = complete && rename(output->temporary, output->path) == 0;
    int reason = errno;
    if (!complete)
        remove(output->temporary);
    errno = reason;
    return complete;
}

int write_output(const struct options *options, int status, void (*write)(FILE *, const void *), const void *what)
{
    struct output output = {0};
    bool complete = open_output(options, &output);
    if (complete) {
        write(output.stream, what);
        complete = close_output(&output);
    }
    if (complete)
        return status;
    complain("cannot write %s: %s", options->output ? options->output : "the report",
             errno == EINVAL ? "it is one of the inputs" : strerror(errno));
    return EXIT_CANNOT_JUDGE;
}
