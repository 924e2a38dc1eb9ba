/* SPDX-License-Identifier: Apache-2.0
 * memsim doctor: what memsim finds on this machine, and what would go wrong. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/temporary.h"
#include "common/base/text_clean.h"
#include "common/base/text_begins.h"
#include "common/base/units.h"
#include "common/base/version.h"
#include "common/base/xmalloc.h"
#include "memsim/cli/cmd.h"
#include "memsim/run/spawn.h"
#include "memsim/run/target.h"

#define TRACES_BYTES (UINT64_C(1) << 30)   /* of a short run of a large model */
#define SHM_BYTES    (UINT64_C(256) << 20) /* Docker gives 64 MiB unasked */
#define OPEN_FILES   1024
#define TEXT         1024
#define SIZE         16

static const struct option_row rows[] = {{0}};

static const struct options options = {
    .command = "memsim doctor",
    .operands = "[PYTHON]",
    .summary = "Prints what memsim finds on this machine, and for each thing "
               "that would go wrong\nwhat to do. PYTHON is the interpreter "
               "that the job uses (default: python, or\npython3, in PATH). "
               "PyTorch is not imported.\n"
               "\nExit status:\n"
               "    0  nothing is wrong\n"
               "    1  something is wrong",
    .examples = "  memsim doctor .venv/bin/python",
    .rows = rows,
    .operands_max = 1,
};

enum finding { FOUND_OK, FOUND_NOTE, FOUND_WRONG };

/* Prints a finding, with what would be typed at a terminal quoted. */
static enum finding finding_tell(enum finding finding, const char *subject,
                                 const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum finding finding_tell(enum finding finding, const char *subject,
                                 const char *format, ...)
{
    static const char *const words[] = {"ok", "note", "wrong"};
    char text[TEXT], shown[TEXT];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_quote(shown, sizeof shown, text);
    printf("  %-5s  %-9s  %s\n", words[finding], subject, shown);
    return finding;
}

static void tell_remedy(const char *remedy)
{
    printf("%20s-> %s\n", "", remedy);
}

static bool has_library(const char *dir, const char *name)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", dir, name) < PATH_MAX &&
           !access(path, R_OK);
}

static enum finding check_libraries(void)
{
    char dir[PATH_MAX], pattern[PATH_MAX + 8];
    struct err err = {""};
    glob_t found = {0};

    if (spawn_library_dir(getenv("MEMSIM_LIBDIR"), dir, sizeof dir, &err))
        return finding_tell(FOUND_WRONG, "libraries", "%s", err.text);
    snprintf(pattern, sizeof pattern, "%s/*.so*", dir);
    size_t count = glob(pattern, 0, NULL, &found) ? 0 : found.gl_pathc;
    globfree(&found);
    bool both = has_library(dir, "libcudart.so.12") &&
                has_library(dir, "libcudart.so.13");
    enum finding finding = finding_tell(
        both ? FOUND_OK : FOUND_WRONG, "libraries", "%zu in %s%s", count, dir,
        both ? ", CUDA 12 and 13" : ", without libcudart.so.12 or 13");
    if (!both)
        tell_remedy("build with `make', or install memsim again");
    return finding;
}

/* What an interpreter says of itself. No torch: ""; a build for the CPU has
 * the CUDA version None. */
struct python {
    char path[256], version[32], torch[64], cuda[32];
};

/* torch/version.py is read as text, so torch is not imported. */
static const char script[] =
    "import re, sys\n"
    "from importlib import metadata\n"
    "torch = cuda = ''\n"
    "try:\n"
    "    d = metadata.distribution('torch')\n"
    "    torch = d.version\n"
    "    text = open(d.locate_file('torch/version.py')).read()\n"
    "    torch = re.search(r\"^__version__ = '(.*)'\", text, re.M)[1]\n"
    "    cuda = re.search(r\"^cuda\\b.*= *'?([\\w.]+)\", text, re.M)[1]\n"
    "except (metadata.PackageNotFoundError, OSError, TypeError):\n"
    "    pass\n"
    "print('found', sys.executable, sys.version.split()[0], torch, cuda,\n"
    "      sep='\\t')\n";

static bool parse_python(char *text, struct python *python)
{
    char *at = strstr(text, "found\t");
    char *const to[] = {python->path, python->version, python->torch,
                        python->cuda};
    const size_t sizes[] = {sizeof python->path, sizeof python->version,
                            sizeof python->torch, sizeof python->cuda};

    if (!at)
        return false;
    at[strcspn(at, "\n")] = '\0';
    strsep(&at, "\t");
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        const char *field = strsep(&at, "\t");
        snprintf(to[i], sizes[i], "%s", field ? field : "");
    }
    return true;
}

static bool ask_python(const char *name, struct python *python)
{
    char *argv[] = {xstrdup(name), xstrdup("-c"), xstrdup(script), NULL};
    char text[4 * TEXT + 1];
    FILE *out = tmpfile();
    bool answered = false;
    int status = 1;
    pid_t pid;

    if (out) {
        const struct spawn spawn = {
            .argv = argv, .environment = environ, .output = fileno(out)};
        if (!spawn_run(&spawn, &pid, &status) && !status) {
            ssize_t n = pread(fileno(out), text, sizeof text - 1, 0);
            text[n > 0 ? n : 0] = '\0';
            answered = parse_python(text, python);
        }
        fclose(out);
    }
    for (size_t i = 0; argv[i]; i++)
        free(argv[i]);
    return answered;
}

static bool is_for_served_cuda(const char *cuda)
{
    return text_begins(cuda, "12") || text_begins(cuda, "13");
}

static enum finding tell_torch(const struct python *python)
{
    const char *torch = python->torch, *cuda = python->cuda;

    if (!*torch) {
        finding_tell(FOUND_WRONG, "torch", "this python has no PyTorch");
        tell_remedy(
            "activate the job's environment, or `memsim doctor PYTHON'");
        return FOUND_WRONG;
    }
    if (!*cuda)
        return finding_tell(FOUND_NOTE, "torch",
                            "%s; its CUDA version is not known", torch);
    if (is_for_served_cuda(cuda))
        return finding_tell(FOUND_OK, "torch", "%s, built for CUDA %s", torch,
                            cuda);
    if (!strcmp(cuda, "None"))
        finding_tell(FOUND_WRONG, "torch", "%s is a build for the CPU", torch);
    else
        finding_tell(FOUND_WRONG, "torch", "%s is built for CUDA %s", torch,
                     cuda);
    tell_remedy("install a build for CUDA 12 or 13");
    return FOUND_WRONG;
}

static enum finding check_python(const char *name)
{
    const char *search = getenv("PATH");
    struct python python = {.path = ""};
    struct err err = {""};

    if (!name)
        name = target_check("python", search, &err) == TARGET_NOT_FOUND
                   ? "python3"
                   : "python";
    err.text[0] = '\0';
    if (target_check(name, search, &err) != TARGET_OK)
        return finding_tell(FOUND_WRONG, "python", "%s", err.text);
    if (!ask_python(name, &python)) {
        finding_tell(FOUND_WRONG, "python",
                     "%s: does not run a script of Python 3.8", name);
        tell_remedy("give the interpreter of the job: `memsim doctor PYTHON'");
        return FOUND_WRONG;
    }
    finding_tell(FOUND_OK, "python", "%s, %s", python.version, python.path);
    return tell_torch(&python);
}

/* Does a lock of one open file keep another out? FD is an open file PATH. */
static bool locks_hold(int fd, const char *path)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int other = open(path, O_RDWR | O_CLOEXEC);
    bool hold = other >= 0 && !flock(fd, LOCK_EX | LOCK_NB) &&
                flock(other, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK &&
                !fcntl(fd, F_OFD_SETLK, &lock) &&
                fcntl(other, F_OFD_SETLK, &lock) &&
                (errno == EAGAIN || errno == EACCES);

    if (other >= 0)
        close(other);
    return hold;
}

static enum finding check_locks(const char *dir)
{
    char *base = xasprintf("%s/memsim-doctor", dir), path[PATH_MAX];
    int fd = temporary_file(base, path);
    enum finding finding = FOUND_WRONG;

    free(base);
    if (fd < 0) {
        finding_tell(finding, "locks", "no file can be made in %s: %s", dir,
                     strerror(errno));
        tell_remedy("set TMPDIR to a directory that you may write");
        return finding;
    }
    if (locks_hold(fd, path)) {
        finding = finding_tell(FOUND_OK, "locks", "file locks work in %s", dir);
    } else {
        finding_tell(finding, "locks", "file locks do not work in %s", dir);
        tell_remedy("set TMPDIR to a local disk");
    }
    unlink(path);
    temporary_forget(path);
    close(fd);
    return finding;
}

/* The free space of the file system DIR is on, of which WANTED is enough. */
static enum finding check_space(const char *subject, const char *dir,
                                uint64_t wanted, const char *remedy)
{
    struct statvfs fs;
    char size[SIZE];
    enum finding finding = FOUND_WRONG;

    if (statvfs(dir, &fs)) {
        finding_tell(finding, subject, "%s: %s", dir, strerror(errno));
    } else {
        uint64_t bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
        finding = bytes < wanted ? FOUND_WRONG : FOUND_OK;
        finding_tell(finding, subject, "%s free in %s",
                     units_format_bytes(bytes, size, sizeof size), dir);
    }
    if (finding != FOUND_OK)
        tell_remedy(remedy);
    return finding;
}

static enum finding check_limits(void)
{
    static const struct {
        int resource;
        rlim_t enough;
        const char *text, *remedy;
    } limits[] = {
        {RLIMIT_AS, RLIM_INFINITY, "address space is limited (ulimit -v)",
         "ulimit -v unlimited"},
        {RLIMIT_FSIZE, RLIM_INFINITY, "file size is limited (ulimit -f)",
         "ulimit -f unlimited; a trace ends at the limit"},
        {RLIMIT_NOFILE, OPEN_FILES, "few files may be open (ulimit -n)",
         "ulimit -n 4096"},
    };
    enum finding worst = FOUND_OK;

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        struct rlimit limit;
        if (getrlimit(limits[i].resource, &limit) ||
            limit.rlim_cur >= limits[i].enough)
            continue;
        worst = finding_tell(FOUND_WRONG, "limits", "%s", limits[i].text);
        tell_remedy(limits[i].remedy);
    }
    if (worst == FOUND_OK)
        finding_tell(FOUND_OK, "limits",
                     "address space, file size and open files");
    return worst;
}

static enum finding check_preload(void)
{
    const char *preload = getenv("LD_PRELOAD");

    if (!preload || !*preload)
        return finding_tell(FOUND_OK, "preload", "LD_PRELOAD is not set");
    return finding_tell(FOUND_NOTE, "preload",
                        "LD_PRELOAD is set; memsim's libraries come before %s",
                        preload);
}

int cmd_doctor(int argc, char **argv)
{
    struct operands operands;
    int status = cmd_start(&options, argc, argv, NULL, &operands, CMD_USAGE);
    const char *traces = getenv("TMPDIR");

    if (status >= 0)
        return status;
    if (!traces || !*traces)
        traces = "/tmp";
    printf("memsim %s\n", version_text());
    const enum finding findings[] = {
        check_libraries(),
        check_python(operands.count ? operands.values[0] : NULL),
        check_space("traces", traces, TRACES_BYTES,
                    "set TMPDIR to a larger disk, or use `memsim run -o DIR'"),
        check_locks(traces),
        check_space("shm", "/dev/shm", SHM_BYTES,
                    "DataLoader workers need it: `docker run --shm-size=1g'"),
        check_limits(),
        check_preload(),
    };
    for (size_t i = 0; i < sizeof findings / sizeof *findings; i++)
        if (findings[i] == FOUND_WRONG)
            status = CMD_FAILED;
    return status < 0 ? CMD_OK : status;
}
