/* SPDX-License-Identifier: Apache-2.0
 * The library's function is another's code in this process. While it runs, the
 * signals of a crash come to us, and end the call alone. */
#include "playback/delay_library.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "playback/memsim_delay.h"

static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

#define CRASHES (sizeof crashes / sizeof *crashes)

static uint64_t (*asked)(const struct memsim_delay_call *call);
static char crash[256];
/* Of each thread that asks. */
static __thread sigjmp_buf back;
static __thread volatile sig_atomic_t inside;
static struct sigaction before[CRASHES];

static void on_crash(int number, siginfo_t *info, void *context)
{
    if (inside)
        siglongjmp(back, number);
    for (size_t i = 0; i < CRASHES; i++) /* another thread's own */
        if (crashes[i] == number)
            sigaction(number, &before[i], NULL);
    (void)info;
    (void)context;
    raise(number);
}

static void handlers_set(void)
{
    struct sigaction own = {.sa_sigaction = on_crash,
                            .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};

    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &own, &before[i]);
}

static void handlers_restore(void)
{
    for (size_t i = 0; i < CRASHES; i++)
        sigaction(crashes[i], &before[i], NULL);
}

/* The answer for RANK, on a node of LOCAL ranks. */
static uint64_t ask_of(struct memsim_delay_call *call, uint32_t rank,
                       uint32_t local)
{
    call->rank = rank;
    call->node = local ? rank / local : 0;
    return asked(call);
}

/* The most of RANKS' answers. */
static uint64_t ask_all(struct memsim_delay_call *call,
                        const struct delay_ranks *ranks)
{
    uint64_t most = 0;

    if (!ranks->members.count)
        return ask_of(call, ranks->rank, ranks->local);
    for (uint32_t r = 0; rank_set_next(&ranks->members, r, &r); r++) {
        uint64_t ns = ask_of(call, r, ranks->local);
        most = ns > most ? ns : most;
    }
    return most;
}

/* The library's answer; where it crashes, none from then on. */
static uint64_t ask_library(struct memsim_delay_call *call,
                            const struct delay_ranks *ranks)
{
    volatile uint64_t ns = 0;

    if (*crash)
        return 0;
    handlers_set();
    int number = sigsetjmp(back, 1);
    if (!number) {
        inside = 1;
        ns = ask_all(call, ranks);
    } else {
        snprintf(crash, sizeof crash,
                 "memsim_delay() crashed (%s) when it was asked for call "
                 "%llu, %.64s, of rank %u",
                 strsignal(number), (unsigned long long)call->number,
                 call->name, call->rank);
    }
    inside = 0;
    handlers_restore();
    return ns;
}

int delay_library_open(const char *path, delay_function **function,
                       struct err *err)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!library)
        return err_set(err, "--delay-lib: %s cannot be loaded: %s", path,
                       dlerror());
    const unsigned *version = dlsym(library, "memsim_delay_version");
    *(void **)&asked = dlsym(library, "memsim_delay");
    if (!asked || !version)
        return err_set(err,
                       "--delay-lib: %s has no %s; memsim_delay.h says what "
                       "it needs",
                       path,
                       asked ? "memsim_delay_version"
                             : "function memsim_delay");
    if (*version != MEMSIM_DELAY_VERSION)
        return err_set(err,
                       "--delay-lib: %s is for version %u of memsim_delay.h, "
                       "and this memsim has version %d; build it again",
                       path, *version, MEMSIM_DELAY_VERSION);
    *function = ask_library;
    return 0;
}

const char *delay_library_crash(void)
{
    return *crash ? crash : NULL;
}
