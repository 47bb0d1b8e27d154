/* interrupt LOG SIGNAL SECONDS TO COMMAND...  starts a command in a session of its own, with
 * signals as a terminal's shell hands them on and its output in LOG, and sends it a signal
 * after so many seconds: to the process or to its whole group (TO is `process` or `group`, as
 * `kill` or Ctrl-C sends it). Prints how the command ended and after how many seconds: `status
 * N S`, `signal N S`, or `before N S` if the signal came too late. Exit status: 1, after a line
 * for each, if processes that it started go on, or if it does not end. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What takes longer to end hangs, also on a host that lets all wait for a minute. What the
 * command leaves may end too: there is no clock to that, as a busy host stops this as well. */
enum { END_S = 120, LOOKS = 2500 }; /* 5 s: where many wait for a processor, dying takes its time */

static sigset_t child_ends;

static int signal_of(const char *name)
{
    static const struct {
        const char *name;
        int number;
    } signals[] = {{"INT", SIGINT},   {"TERM", SIGTERM}, {"HUP", SIGHUP},
                   {"PIPE", SIGPIPE}, {"KILL", SIGKILL}, {"QUIT", SIGQUIT}};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (!strcmp(name, signals[i].name))
            return signals[i].number;
    fprintf(stderr, "interrupt: no signal '%s'\n", name);
    exit(2);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What a shell without job control ignores for what it starts in the background would be
 * ignored here too. */
static void become(const char *log, char **command)
{
    static const int usual[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGPIPE};
    int file = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600), nothing = open("/dev/null", O_RDONLY);
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        signal(usual[i], SIG_DFL);
    sigprocmask(SIG_UNBLOCK, &child_ends, NULL);
    if (setsid() < 0 || dup2(nothing, 0) < 0 || dup2(file, 1) < 0 || dup2(file, 2) < 0)
        _exit(126);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
}

/* Whether the child ended until then. Others that end are orphans that were handed on. */
static int ends_until(pid_t child, double until_s, int *status)
{
    for (;;) {
        int other;
        pid_t ended;
        while ((ended = waitpid(-1, &other, WNOHANG)) > 0)
            if (ended == child) {
                *status = other;
                return 1;
            }
        double left_s = until_s - now_s();
        if (left_s <= 0)
            return 0;
        struct timespec left = {.tv_sec = (time_t)left_s};
        left.tv_nsec = (long)(1e9 * (left_s - (double)left.tv_sec));
        sigtimedwait(&child_ends, NULL, &left);
    }
}

/* Orphans become this process's children: each is named and ended. */
static void end_orphans(void)
{
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    while (processes && (entry = readdir(processes))) {
        char path[300], text[400] = "";
        int parent = 0;
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "r");
        size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
        const char *behind = strrchr(text, ')');
        if (file)
            fclose(file);
        if (size == 0 || !behind || sscanf(behind, ") %*c %d", &parent) != 1 || parent != getpid())
            continue;
        printf("goes on: %.*s\n", (int)(behind + 1 - text), text);
        kill((pid_t)atoi(entry->d_name), SIGKILL);
    }
    if (processes)
        closedir(processes);
}

/* Whether all that the command started ends as well. */
static int is_alone(void)
{
    static const struct timespec pause = {.tv_nsec = 2000000};
    for (int look = 0; look < LOOKS; look++) {
        pid_t ended = waitpid(-1, NULL, WNOHANG);
        if (ended < 0)
            return 1;
        if (ended == 0)
            nanosleep(&pause, NULL);
    }
    end_orphans();
    return 0;
}

int main(int argc, char **argv)
{
    int status = 0, number;
    if (argc < 6)
        return 2;
    number = signal_of(argv[2]);
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ends, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    double began_s = now_s();
    pid_t child = fork();
    if (child == 0)
        become(argv[1], argv + 5);
    int before = ends_until(child, began_s + strtod(argv[3], NULL), &status);
    if (!before) {
        kill(strcmp(argv[4], "group") ? child : -child, number);
        if (!ends_until(child, now_s() + END_S, &status)) {
            printf("hangs after SIG%s\n", argv[2]);
            kill(-child, SIGKILL);
            return 1;
        }
    }
    printf("%s %d %.3f\n", before ? "before" : WIFSIGNALED(status) ? "signal" : "status",
           WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), now_s() - began_s);
    return !is_alone();
}
