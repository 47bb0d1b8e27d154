/* See fault.h. What is called here must not be what is made to fail: files are opened by
 * the system call itself. */
#define _GNU_SOURCE
#include "fault.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct {
    int known; /* whether the environment was read */
    char call[64], kind[8];
    long number;
    const char *mark;
    fault_uses *uses; /* to count in, or NULL */
} fault;

static long uses, counted[FAULT_CALLS];
static int counts = 1, happened; /* happened: in this process */

static int is_kind(const char *kind)
{
    return !strcmp(fault.kind, kind);
}

/* ---- counting ---- */

static fault_uses *map_uses(const char *path)
{
    const int access = PROT_READ | PROT_WRITE;
    long file = path ? syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC) : -1, at;
    if (file < 0)
        return NULL;
    at = syscall(SYS_mmap, NULL, sizeof(fault_uses), access, MAP_SHARED, file, 0L);
    syscall(SYS_close, file);
    return at < 0 && at > -4096 ? NULL : (fault_uses *)at;
}

/* Of the processes of an execution each counts for itself, and the most uses are told. */
static void count_use(const char *call)
{
    fault_uses *shared = fault.uses;
    size_t i = 0;
    while (__atomic_exchange_n(&shared->taken, 1, __ATOMIC_ACQUIRE))
        ;
    while (i < FAULT_CALLS - 1 && shared->of[i].call[0] && strcmp(shared->of[i].call, call) != 0)
        i++;
    strncpy(shared->of[i].call, call, sizeof shared->of[i].call - 1);
    if (++counted[i] > shared->of[i].most)
        shared->of[i].most = counted[i];
    __atomic_store_n(&shared->taken, 0, __ATOMIC_RELEASE);
}

/* ---- failing ---- */

/* "CALL N KIND" into its parts. */
static void read_environment(void)
{
    const char *text = getenv("FAULT"), *from = getenv("FAULT_FROM");
    size_t length = text ? strcspn(text, " ") : 0;
    char *end;
    fault.known = 1;
    fault.mark = getenv("FAULT_MARK");
    fault.uses = map_uses(getenv("FAULT_USES"));
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
    if (fault.uses && counts)
        count_use(call);
    if (!counts || strcmp(call, fault.call) != 0)
        return 0;
    use = __atomic_add_fetch(&uses, 1, __ATOMIC_SEQ_CST);
    if (use != fault.number && !(use > fault.number && is_kind("on")))
        return 0;
    happened = 1;
    file = syscall(SYS_openat, AT_FDCWD, fault.mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        syscall(SYS_close, (int)file);
    if (!is_kind("signal"))
        return 1;
    raise(SIGTERM);
    return 0;
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
