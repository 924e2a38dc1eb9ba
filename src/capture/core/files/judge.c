/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/core/files/judge.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capture/core/files/entries.h"

#define LEVELS        3    /* below a directory that holds a checkpoint */
#define CHILDREN_MOST 1024 /* directories that are looked into, of one */
#define NS_OF_S       UINT64_C(1000000000)

/* --- names ---------------------------------------------------------------- */

static bool has_end(const char *name, const char *const *ends)
{
    size_t length = strlen(name);

    for (; *ends; ends++) {
        size_t n = strlen(*ends);

        if (length > n && !strcasecmp(name + length - n, *ends))
            return true;
    }
    return false;
}

static bool is_one_of(const char *name, const char *const *names)
{
    for (; *names; names++)
        if (!strcmp(name, *names))
            return true;
    return false;
}

static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

bool judge_is_checkpoint(const char *path)
{
    static const char *const ends[] = {".pt",     ".pth",     ".bin",
                                       ".ckpt",   ".pth.tar", ".safetensors",
                                       ".distcp", NULL};
    /* .metadata is a distributed checkpoint's; the others say which checkpoint
     * is the last: DeepSpeed's, Megatron's, detectron2's, TensorFlow's, the
     * Trainer's of transformers. */
    static const char *const names[] = {
        ".metadata",  "latest",           "latest_checkpointed_iteration.txt",
        "last_checkpoint", "checkpoint", "trainer_state.json", NULL};
    const char *name = name_of(path);

    return has_end(name, ends) || is_one_of(name, names);
}

bool judge_is_data(const char *path)
{
    static const char *const ends[] = {".npy", ".npz",  ".pkl",  ".pickle",
                                       ".h5",  ".onnx", ".gguf", NULL};

    return has_end(name_of(path), ends) || judge_is_checkpoint(path);
}

/* --- places that are no checkpoints' alone -------------------------------- */

enum rule {
    RULE_WHOLE,  /* a checkpoint here or one level below keeps all */
    RULE_DIRECT, /* only one here does: programs and data lie here, too */
    RULE_NAMES,  /* only checkpoints that exist are kept, one by one */
    RULE_NEVER,
};

/* Either may be NULL, a variable that is not set. */
static bool is_at_or_below(const char *path, const char *directory)
{
    size_t n = directory ? strlen(directory) : 0;

    while (n > 1 && directory[n - 1] == '/')
        n--;
    return path && n > 1 && !strncmp(path, directory, n) &&
           (!path[n] || path[n] == '/');
}

static bool is_same(const char *path, const char *directory)
{
    return is_at_or_below(path, directory) &&
           is_at_or_below(directory, path);
}

static bool is_shared(const char *path)
{
    static const char *const shared[] = {"/tmp", "/var/tmp", "/dev/shm", NULL};

    return is_one_of(path, shared) || is_same(path, getenv("TMPDIR")) ||
           is_same(path, getenv("HOME"));
}

/* What libraries download, and download again. */
static bool is_cache(const char *path)
{
    static const char *const variables[] = {"HF_HOME", "HF_HUB_CACHE",
                                            "TORCH_HOME", "XDG_CACHE_HOME",
                                            NULL};
    const char *home = getenv("HOME");
    size_t n = home ? strlen(home) : 0;

    for (const char *const *v = variables; *v; v++)
        if (is_at_or_below(path, getenv(*v)))
            return true;
    return is_at_or_below(path, home) && is_at_or_below(path + n, "/.cache");
}

static enum rule rule_of(const struct session *s, const char *path)
{
    if (is_at_or_below(path, "/proc") || is_at_or_below(path, "/sys") ||
        (is_at_or_below(path, "/dev") && !is_at_or_below(path, "/dev/shm")))
        return RULE_NEVER;
    if (is_shared(path) || is_cache(path))
        return RULE_NAMES;
    return is_at_or_below(s->start_directory, path) ||
                   is_at_or_below(getenv("HOME"), path)
               ? RULE_DIRECT
               : RULE_WHOLE;
}

/* --- directories ---------------------------------------------------------- */

/* How a directory is looked through. */
struct look {
    int depth; /* levels of directories below it */
    bool first_only; /* only the first entries: it is one of many */
};

static bool look_holds(int fd, struct look look);

static bool child_holds(int fd, const char *name, struct look look)
{
    /* step-10 may have parts, each a directory. */
    int depth = strpbrk(name, "0123456789") && look.depth > 1;
    int child = (int)syscall(SYS_openat, fd, name,
                             O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return child >= 0 &&
           look_holds(child, (struct look){.depth = depth, .first_only = true});
}

/* Whether the directory FD, which it closes, holds a checkpoint. */
static bool look_holds(int fd, struct look look)
{
    struct entries entries;
    const struct entry *e;
    bool found = false;
    int children = 0;

    entries_begin(&entries, fd, look.first_only);
    while (!found && (e = entries_next(&entries)))
        if (e->type == DT_DIR || e->type == DT_UNKNOWN)
            found = look.depth && children++ < CHILDREN_MOST &&
                    child_holds(fd, e->name, look);
        else
            found = judge_is_checkpoint(e->name);
    syscall(SYS_close, fd);
    return found;
}

static uint64_t inode_of(const struct stat *st)
{
    return place_hash_inode(st->st_dev, st->st_ino);
}

/* Whether the directory PATH held a checkpoint at the first look. */
static bool path_held(const char *path, enum rule rule)
{
    struct stat st;

    if (rule >= RULE_NAMES || !place_stat(path, &st) || !S_ISDIR(st.st_mode) ||
        place_known(PLACE_PLAIN, inode_of(&st)))
        return false;
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path,
                          O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 &&
        look_holds(fd, (struct look){.depth = rule == RULE_WHOLE ? 2 : 0}))
        return true;
    place_add(PLACE_PLAIN, inode_of(&st));
    return false;
}

/* --- files ---------------------------------------------------------------- */

bool judge_is_older(const struct session *s, const char *path)
{
    struct statx st;

    if (syscall(SYS_statx, AT_FDCWD, path, AT_SYMLINK_NOFOLLOW, STATX_BTIME,
                &st) ||
        !(st.stx_mask & STATX_BTIME))
        return true;
    return (uint64_t)st.stx_btime.tv_sec * NS_OF_S + st.stx_btime.tv_nsec <
           s->start_unix_ns;
}

/* A file whose content has other names, maybe a checkpoint's. */
static bool has_other_names(const struct session *s, const char *path)
{
    struct stat st;

    return place_stat(path, &st) && S_ISREG(st.st_mode) && st.st_nlink > 1 &&
           judge_is_older(s, path);
}

static bool is_users_checkpoint(const char *path)
{
    struct stat st;

    return judge_is_checkpoint(path) && place_stat(path, &st) &&
           !S_ISDIR(st.st_mode) &&
           !place_known(PLACE_MADE, place_hash_path(path));
}

bool judge_root(const struct session *s, const struct place *p, bool content,
                char root[PATH_MAX])
{
    char above[PATH_MAX];
    bool found = path_held(p->path, rule_of(s, p->path));

    memcpy(root, p->path, PATH_MAX);
    memcpy(above, p->path, sizeof above);
    for (int level = 0; level < LEVELS; level++) {
        *strrchr(above, '/') = '\0';
        enum rule rule = *above ? rule_of(s, above) : RULE_NEVER;
        if (rule == RULE_NAMES && !level && is_users_checkpoint(p->path))
            found = true;
        if (rule >= RULE_NAMES)
            break;
        if (path_held(above, rule)) {
            found = true;
            memcpy(root, above, sizeof above);
        }
    }
    return found || (content && has_other_names(s, p->path));
}
