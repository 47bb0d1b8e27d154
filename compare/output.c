#define _XOPEN_SOURCE 700

#include "output.h"

#include "complain.h"
#include "number.h"
#include "starved.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEMPORARY_CAPACITY = PATH_MAX + 48, MOST_NAMES = 100 };

struct output {
    FILE *stream;
    char path[PATH_MAX];                /* links followed */
    char temporary[TEMPORARY_CAPACITY]; /* empty where the path itself is written */
};

/* ---- a signal that ends the program takes the unfinished file with it ---- */

static const int ends[] = {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM, SIGXFSZ};
enum { END_COUNT = sizeof ends / sizeof ends[0] };
static struct sigaction before[END_COUNT];
static char unfinished[TEMPORARY_CAPACITY];

static void remove_unfinished(int signal_number)
{
    unlink(unfinished);
    raise(signal_number); /* by its default, as the handler is gone and the signal waits */
}

/* Until it can be removed, the file is not there for a signal either. */
static void hold_signals(sigset_t *usual)
{
    sigset_t held;
    sigemptyset(&held);
    for (size_t i = 0; i < END_COUNT; i++)
        sigaddset(&held, ends[i]);
    sigprocmask(SIG_BLOCK, &held, usual);
}

/* Whoever ignores a signal, as nohup does, wants it ignored. */
static void watch_signals(const char *temporary)
{
    struct sigaction action = {.sa_handler = remove_unfinished, .sa_flags = (int)SA_RESETHAND};
    snprintf(unfinished, sizeof unfinished, "%s", temporary);
    for (size_t i = 0; i < END_COUNT; i++)
        if (sigaction(ends[i], NULL, &before[i]) == 0 && before[i].sa_handler == SIG_DFL)
            sigaction(ends[i], &action, NULL);
}

static void unwatch_signals(void)
{
    for (size_t i = 0; i < END_COUNT && *unfinished; i++)
        if (before[i].sa_handler == SIG_DFL)
            sigaction(ends[i], &before[i], NULL);
    unfinished[0] = '\0';
}

/* ---- opening ---- */

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

/* A file of its own beside the path: whatever lies under its name, a link too, is somebody
 * else's and gone around. */
static FILE *open_temporary(struct output *output)
{
    sigset_t usual;
    int file = -1;
    hold_signals(&usual);
    for (int i = 0; file < 0 && i < MOST_NAMES && (i == 0 || errno == EEXIST); i++) {
        if (i > 0)
            snprintf(output->temporary, sizeof output->temporary, "%s.%ld-%d.tmp", output->path, (long)getpid(), i);
        file = open(output->temporary, O_WRONLY | O_CREAT | O_EXCL, 0666);
    }
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    int reason = errno;
    if (stream)
        watch_signals(output->temporary);
    if (file >= 0 && !stream) {
        close(file);
        unlink(output->temporary);
    }
    sigprocmask(SIG_SETMASK, &usual, NULL);
    errno = reason;
    return stream;
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
        output->stream = *output->temporary ? open_temporary(output) : fopen(output->path, "w");
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
    unwatch_signals();
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
