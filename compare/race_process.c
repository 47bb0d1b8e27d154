#define _POSIX_C_SOURCE 200809L

#include "precise.h"

#include "race_process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/prctl.h>
#endif

/* How long a process may take to end when it was asked to. */
static const double grace_s = 5.0;

static sigset_t mask_before;
static sigset_t waited_for; /* what ends a program, and the end of a child */

/* Whoever ignores a signal, as nohup does, wants it ignored. */
static bool is_ignored(int signal_number)
{
    struct sigaction action;
    return sigaction(signal_number, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

void race_hold_signals(sigset_t *before)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigaction(SIGCHLD, &usual, NULL); /* where it is ignored, no child can be waited for */
    sigemptyset(&waited_for);
    sigaddset(&waited_for, SIGCHLD);
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        if (!is_ignored(ending[i]))
            sigaddset(&waited_for, ending[i]);
    sigset_t held = waited_for;
    sigaddset(&held, SIGPIPE); /* of the messages: files are removed first */
    sigprocmask(SIG_BLOCK, &held, before);
    mask_before = *before;
}

void race_release_signals(const sigset_t *before)
{
    sigprocmask(SIG_SETMASK, before, NULL);
}

double race_now_s(void)
{
    static double last_s = NAN;
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0)
        last_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return last_s;
}

/* In the child; what comes back is errno. */
static int become(const struct race_command *command)
{
    int nothing = open("/dev/null", O_RDONLY);
    int log = open(command->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (nothing < 0 || log < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
        dup2(log, STDERR_FILENO) < 0 || setenv("TMPDIR", command->temporary, 1) != 0)
        return errno;
    close(nothing);
    close(log);
    sigprocmask(SIG_SETMASK, &mask_before, NULL);
    execv(command->argv[0], (char *const *)(void *)command->argv);
    return errno;
}

static void live_in_child(const struct race_command *command, pid_t parent, int report)
{
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a parent that was killed leaves no orphan */
    if (getppid() != parent)
        _exit(127);
#else
    (void)parent;
#endif
    int reason = become(command);
    ssize_t written = write(report, &reason, sizeof reason);
    _exit(written == (ssize_t)sizeof reason ? 127 : 126);
}

/* The child, or -1 with errno: also where it could not become the program. */
static pid_t start(const struct race_command *command)
{
    int ends[2];
    int reason = 0;
    pid_t parent = getpid();
    if (pipe(ends) != 0)
        return -1;
    fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    pid_t child = fork();
    if (child == 0)
        live_in_child(command, parent, ends[1]);
    if (child < 0)
        reason = errno;
    else
        setpgid(child, child); /* whoever of the two comes first */
    close(ends[1]);
    while (child > 0 && read(ends[0], &reason, sizeof reason) < 0 && errno == EINTR)
        continue;
    close(ends[0]);
    if (reason == 0)
        return child;
    if (child > 0)
        waitpid(child, NULL, 0);
    errno = reason;
    return -1;
}

/* Waits for the child or for a signal, until a time: the signal, 0 at that time. */
static int wait_until(double until_s)
{
    double left_s = fmax(0.0, until_s - race_now_s());
    struct timespec left = {.tv_sec = (time_t)left_s};
    left.tv_nsec = (long)(1e9 * (left_s - (double)left.tv_sec));
    int signal_number;
    while ((signal_number = sigtimedwait(&waited_for, NULL, &left)) < 0 && errno == EINTR)
        continue;
    return signal_number > 0 ? signal_number : 0;
}

/* Also where nothing can be heard of it, since there is nothing to wait for then: *lost
 * becomes errno. */
static bool has_ended(pid_t child, int *status, int *lost)
{
    pid_t heard = waitpid(child, status, WNOHANG);
    if (heard < 0 && errno != EINTR)
        *lost = errno;
    return heard == child || *lost != 0;
}

/* Asks the group to end, and insists after the grace. */
static void end_group(pid_t child, int signal_number, int *status)
{
    int lost = 0;
    double until_s = race_now_s() + grace_s;
    kill(-child, signal_number);
    while (!has_ended(child, status, &lost)) {
        if (race_now_s() < until_s) {
            wait_until(until_s);
            continue;
        }
        kill(-child, SIGKILL);
        waitpid(child, status, 0);
        break;
    }
}

struct race_ended race_run_process(const struct race_command *command)
{
    double until_s = race_now_s() + command->limit_s;
    int status = 0, lost = 0;
    pid_t child = start(command);
    if (child < 0)
        return (struct race_ended){RACE_NOT_STARTED, errno};
    struct race_ended ended = {RACE_EXITED, 0};
    while (!has_ended(child, &status, &lost)) {
        int signal_number = wait_until(until_s);
        if (signal_number == SIGCHLD)
            continue;
        if (signal_number == 0 && race_now_s() < until_s)
            continue;
        ended =
            (struct race_ended){signal_number ? RACE_INTERRUPTED : RACE_TIMED_OUT, signal_number};
        end_group(child, signal_number ? signal_number : SIGTERM, &status);
        break;
    }
    kill(-child, SIGKILL); /* what it started and left behind */
    if (lost != 0)
        return (struct race_ended){RACE_LOST, lost};
    if (ended.ending != RACE_EXITED)
        return ended;
    if (WIFSIGNALED(status))
        return (struct race_ended){RACE_CRASHED, WTERMSIG(status)};
    return (struct race_ended){RACE_EXITED, WEXITSTATUS(status)};
}
