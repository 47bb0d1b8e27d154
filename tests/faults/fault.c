/* See fault.h. What is called here must not be what is made to fail: files are opened by
 * the system call itself. */
#define _GNU_SOURCE
#include "fault.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int known; /* whether the environment was read */
    char call[64], kind[8];
    long number;
    const char *mark;
} fault;

static long uses;
static int counts = 1, happened; /* happened: in this process */

static int is_kind(const char *kind)
{
    return !strcmp(fault.kind, kind);
}

/* "CALL N KIND" into its parts. */
static void read_environment(void)
{
    const char *text = getenv("FAULT"), *from = getenv("FAULT_FROM");
    size_t length = text ? strcspn(text, " ") : 0;
    char *end;
    fault.known = 1;
    fault.mark = getenv("FAULT_MARK");
    counts = !from || strcmp(from, "cases") != 0;
    if (length == 0 || length >= sizeof fault.call || !fault.mark)
        return;
    memcpy(fault.call, text, length);
    fault.number = strtol(text + length, &end, 10);
    end += *end == ' ';
    strncpy(fault.kind, end, sizeof fault.kind - 1);
    if (!is_kind("on") && syscall(SYS_faccessat, AT_FDCWD, fault.mark, F_OK) == 0)
        fault.call[0] = '\0'; /* an earlier process had it */
}

int fault_now(const char *call)
{
    long use, file;
    if (!fault.known)
        read_environment();
    if (!counts || strcmp(call, fault.call) != 0)
        return 0;
    use = __atomic_add_fetch(&uses, 1, __ATOMIC_SEQ_CST);
    if (use != fault.number && !(use > fault.number && is_kind("on")))
        return 0;
    happened = 1;
    file = syscall(SYS_openat, AT_FDCWD, fault.mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        syscall(SYS_close, (int)file);
    return 1;
}

int fault_is_loss(void)
{
    return happened && is_kind("lost");
}

int fault_lasts(void)
{
    return happened && !is_kind("once");
}

void fault_count_cases(void)
{
    counts = 1;
}
