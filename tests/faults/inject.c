/* SPDX-License-Identifier: Apache-2.0
 * Runs a command and lets one system call of it fail, in whichever process:
 *
 *   inject LIST 0 none COMMAND...     writes "NAME [PATH]" of each, in order
 *   inject LIST N FAULT COMMAND...    the Nth of them fails, and is written;
 *                                     "crash FILE" where a process crashes
 *
 * FAULT is an error's number, or `short': of a write, half is written. Only
 * calls that can fail for want of something are counted, see `calls'. By
 * ptrace, so that calls from within libc and the dynamic linker count too. Ends
 * as the command does, a signal as 128 + its number. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/ptrace.h>

#define PROCESSES 256

static const struct call {
    unsigned long number;
    const char *name;
} calls[] = {
    {SYS_open, "open"},           {SYS_openat, "open"},
    {SYS_creat, "open"},          {SYS_read, "read"},
    {SYS_pread64, "read"},        {SYS_write, "write"},
    {SYS_pwrite64, "write"},      {SYS_writev, "write"},
    {SYS_mmap, "mmap"},           {SYS_ftruncate, "ftruncate"},
    {SYS_fallocate, "fallocate"}, {SYS_rename, "rename"},
    {SYS_renameat, "rename"},     {SYS_renameat2, "rename"},
    {SYS_fork, "fork"},           {SYS_vfork, "fork"},
    {SYS_clone, "fork"},          {SYS_clone3, "fork"},
    {SYS_mkdir, "mkdir"},         {SYS_mkdirat, "mkdir"},
    {SYS_pipe2, "pipe"},          {SYS_flock, "flock"},
    {SYS_fsync, "fsync"},         {SYS_fchmod, "fchmod"},
    {SYS_getdents64, "getdents"}, {SYS_memfd_create, "memfd"},
    {SYS_wait4, "wait"},
};

static const char *name_of(unsigned long number)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

static long wanted, seen;
static const char *fault;
static FILE *list;
static pid_t failing; /* whose call is failing: its result is replaced */
static pid_t known[PROCESSES];

static int is_known(pid_t pid)
{
    size_t i = 0;

    while (i < PROCESSES && known[i] && known[i] != pid)
        i++;
    if (i < PROCESSES && known[i] == pid)
        return 1;
    if (i < PROCESSES)
        known[i] = pid;
    return 0;
}

/* "NAME" or, of what opens a file, "NAME PATH". */
static void write_call(pid_t pid, const char *name,
                       const struct ptrace_syscall_info *info)
{
    char path[256] = "";
    struct iovec to = {path, sizeof path - 1};
    struct iovec from = {(void *)info->entry.args[info->entry.nr == SYS_openat],
                         sizeof path - 1};

    if (!strcmp(name, "open"))
        process_vm_readv(pid, &to, 1, &from, 1, 0);
    path[strcspn(path, "\n")] = '\0';
    fprintf(list, "%s %s\n", name, path);
}

static void enter(pid_t pid, const struct ptrace_syscall_info *info)
{
    const char *name = name_of(info->entry.nr);
    struct user_regs_struct regs;

    if (!name)
        return;
    seen++;
    if (!wanted || seen == wanted)
        write_call(pid, name, info);
    if (seen != wanted || ptrace(PTRACE_GETREGS, pid, NULL, &regs))
        return;
    if (!strcmp(fault, "short")) {
        regs.rdx = regs.rdx > 1 ? regs.rdx / 2 : regs.rdx;
    } else {
        regs.orig_rax = (unsigned long long)-1; /* no call at all */
        failing = pid;
    }
    ptrace(PTRACE_SETREGS, pid, NULL, &regs);
}

static void leave(pid_t pid)
{
    struct user_regs_struct regs;

    if (failing != pid || ptrace(PTRACE_GETREGS, pid, NULL, &regs))
        return;
    regs.rax = (unsigned long long)-atol(fault);
    ptrace(PTRACE_SETREGS, pid, NULL, &regs);
    failing = 0;
}

static void stop_at_call(pid_t pid)
{
    struct ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof info, &info) <= 0)
        return;
    if (info.op == PTRACE_SYSCALL_INFO_ENTRY)
        enter(pid, &info);
    else if (info.op == PTRACE_SYSCALL_INFO_EXIT)
        leave(pid);
}

/* "crash FILE": whose code it was. */
static void write_crash(pid_t pid)
{
    struct user_regs_struct regs;
    char path[64], line[512], file[256] = "?";
    unsigned long from, to;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "re");
    if (!maps || ptrace(PTRACE_GETREGS, pid, NULL, &regs))
        return;
    while (fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %255s", &from, &to, file) ==
                3 &&
            regs.rip >= from && regs.rip < to)
            break;
    fclose(maps);
    fprintf(list, "crash %s\n", file);
}

/* The signal to go on with. */
static long stopped(pid_t pid, int status)
{
    int signal = WSTOPSIG(status);

    if (signal == (SIGTRAP | 0x80)) {
        stop_at_call(pid);
        return 0;
    }
    if (status >> 16)
        return 0; /* an event of ptrace's */
    if (signal == SIGSTOP && !is_known(pid))
        return 0; /* a new process */
    if (signal == SIGSEGV || signal == SIGBUS || signal == SIGABRT)
        write_crash(pid);
    return signal;
}

static int trace(pid_t command)
{
    int status, result = 0;
    pid_t pid;

    while ((pid = waitpid(-1, &status, __WALL)) > 0 || errno == EINTR) {
        if (pid < 0)
            continue;
        if (WIFSTOPPED(status)) {
            long signal = stopped(pid, status);
            is_known(pid);
            ptrace(PTRACE_SYSCALL, pid, NULL, (void *)signal);
        } else if (pid == command) {
            result = WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                         : WEXITSTATUS(status);
        }
    }
    return result;
}

int main(int argc, char **argv)
{
    int status;

    if (argc < 5)
        return 99;
    wanted = atol(argv[2]);
    fault = argv[3];
    pid_t pid = fork();
    if (!pid) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        execvp(argv[4], argv + 4);
        _exit(127);
    }
    list = fopen(argv[1], "we");
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status) ||
        ptrace(PTRACE_SETOPTIONS, pid, NULL,
               (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK |
                        PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE |
                        PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)))
        return 99;
    is_known(pid);
    ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    status = trace(pid);
    if (list && fclose(list))
        return 99;
    return status;
}
