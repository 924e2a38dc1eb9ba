/* SPDX-License-Identifier: Apache-2.0
 * Runs a command to which the kernel refuses some system calls with EPERM, as
 * a container's seccomp profile does: deny NAME,NAME... COMMAND... */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct call {
    const char *name;
    unsigned number;
} calls[] = {
    {"ptrace", SYS_ptrace},
    {"process_vm_readv", SYS_process_vm_readv},
    {"memfd_create", SYS_memfd_create},
    {"flock", SYS_flock},
    {"fallocate", SYS_fallocate},
    {"prctl", SYS_prctl},
    {"setsid", SYS_setsid},
    {"fsync", SYS_fsync},
    {"kcmp", SYS_kcmp},
    {"pidfd_open", SYS_pidfd_open},
};

static int deny(unsigned number)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

int main(int argc, char **argv)
{
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return 99;
    for (char *name = strtok(argv[1], ","); name; name = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < sizeof calls / sizeof *calls && strcmp(calls[i].name, name))
            i++;
        if (i == sizeof calls / sizeof *calls || deny(calls[i].number))
            return 99;
    }
    execvp(argv[2], argv + 2);
    return 127;
}
