/* SPDX-License-Identifier: Apache-2.0
 * By Python's stable functions, found where the program has them. */
#include "capture/core/torch/python_line.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "capture/core/base/lock.h"

#define FRAMES_MAX   100
#define SAVING_BYTES 4096 /* of the innermost frames */

/* Pointers to objects of Python's are void here. */
static struct {
    int (*is_initialized)(void);
    int (*is_finalizing)(void);
    void *(*thread)(void); /* of this thread; NULL: Python does not know it */
    int (*ensure)(void);
    void (*release)(int state);
    void *(*frame)(void); /* borrowed */
    void *(*back)(void *frame);
    void *(*code)(void *frame);
    int (*line)(void *frame);
    void *(*attribute)(void *object, const char *name);
    const char *(*utf8)(void *text);
    void (*drop)(void *object);
    void (*hold)(void *object);
    void (*clear)(void);
} python;

static void *symbol_find(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

static bool python_find(void)
{
    static const struct {
        void **function;
        const char *name;
    } wanted[] = {
        {(void **)&python.is_initialized, "Py_IsInitialized"},
        {(void **)&python.is_finalizing, "Py_IsFinalizing"},
        {(void **)&python.thread, "PyGILState_GetThisThreadState"},
        {(void **)&python.ensure, "PyGILState_Ensure"},
        {(void **)&python.release, "PyGILState_Release"},
        {(void **)&python.frame, "PyEval_GetFrame"},
        {(void **)&python.back, "PyFrame_GetBack"},
        {(void **)&python.code, "PyFrame_GetCode"},
        {(void **)&python.line, "PyFrame_GetLineNumber"},
        {(void **)&python.attribute, "PyObject_GetAttrString"},
        {(void **)&python.utf8, "PyUnicode_AsUTF8"},
        {(void **)&python.drop, "Py_DecRef"},
        {(void **)&python.hold, "Py_IncRef"},
        {(void **)&python.clear, "PyErr_Clear"},
    };
    static _Atomic int state; /* 1: found, 2: not */
    bool found = true;

    if (state)
        return state == 1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        *wanted[i].function = symbol_find(wanted[i].name);
    if (!python.is_finalizing) /* its name before 3.13 */
        *(void **)&python.is_finalizing = symbol_find("_Py_IsFinalizing");
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        found = found && *wanted[i].function;
    state = found ? 1 : 2;
    return found;
}

static bool is_package(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           strstr(file, "/lib/python3") || file[0] == '<';
}

/* Writes FRAME's place to TEXT. Returns whether it is the program's own. */
static bool frame_write(void *frame, char *text, size_t size)
{
    void *code = python.code(frame);
    void *name = python.attribute(code, "co_filename");
    const char *file = name ? python.utf8(name) : NULL;
    bool own = false;

    if (file) {
        const char *slash = strrchr(file, '/');

        own = !is_package(file);
        snprintf(text, size, "%.*s:%d", (int)size - 16,
                 slash ? slash + 1 : file, python.line(frame));
    } else {
        python.clear();
    }
    if (name)
        python.drop(name);
    python.drop(code);
    return own;
}

static void frames_write(char *text, size_t size)
{
    void *frame = python.frame();
    char other[128];

    if (!frame)
        return;
    python.hold(frame);
    bool own = frame_write(frame, text, size);
    for (int i = 0; frame && !own && i < FRAMES_MAX; i++) {
        void *back = python.back(frame);

        python.drop(frame);
        frame = back;
        own = frame && frame_write(frame, other, sizeof other);
        if (own)
            snprintf(text, size, "%s", other);
    }
    if (frame)
        python.drop(frame);
}

/* torch.nn.Module calls each forward through functions of its own, and
 * memsim's hooks may lie between. */
static bool is_plumbing(const char *file, const char *name)
{
    return (strstr(file, "/torch/nn/modules/module.py") &&
            (strstr(name, "_call_impl") || !strcmp(name, "inner"))) ||
           strstr(file, "/memsim/py/");
}

/* Appends a line for FRAME to TEXT, which has USED bytes. Returns how many it
 * has then; SIZE: it is full. */
static size_t frame_append(void *frame, char *text, size_t size, size_t used)
{
    void *code = python.code(frame);
    void *file = python.attribute(code, "co_filename");
    void *name = python.attribute(code, "co_name");
    const char *path = file ? python.utf8(file) : NULL;
    const char *called = name ? python.utf8(name) : NULL;

    if (!path || !called)
        python.clear();
    else if (!is_plumbing(path, called)) {
        int n = snprintf(text + used, size - used, "%s%s:%d %s",
                         used ? "\n" : "", path, python.line(frame), called);
        if (n < 0 || (size_t)n >= size - used) {
            text[used] = '\0';
            used = size;
        } else {
            used += (size_t)n;
        }
    }
    if (file)
        python.drop(file);
    if (name)
        python.drop(name);
    python.drop(code);
    return used;
}

static void stack_write(char *text, size_t size)
{
    void *frame = python.frame();
    size_t used = 0;

    if (frame)
        python.hold(frame);
    for (int i = 0; frame && i < FRAMES_MAX && used < size; i++) {
        used = frame_append(frame, text, size, used);
        void *back = python.back(frame);
        python.drop(frame);
        frame = back;
    }
    if (frame)
        python.drop(frame);
}

/* Whether this thread is one of Python's, and may ask it. */
static bool may_ask(void)
{
    return !core_locks_held && python_find() && python.is_initialized() &&
           !python.is_finalizing() && python.thread();
}

static void at_interpreter(void (*write)(char *, size_t), char *text,
                           size_t size)
{
    text[0] = '\0';
    if (!may_ask())
        return;
    int state = python.ensure();
    write(text, size);
    python.release(state);
}

void python_line(char *text, size_t size)
{
    at_interpreter(frames_write, text, size);
}

void python_stack(char *text, size_t size)
{
    at_interpreter(stack_write, text, size);
}

static int (*check_ask)(void); /* py/checks.py's */

void memsim_check_follow(int (*ask)(void))
{
    check_ask = ask;
}

int python_check(void)
{
    return check_ask && may_ask() ? check_ask() : -1;
}

/* Functions that copy tensors to the host in order to write a file. */
static bool is_saving(const char *stack)
{
    static const char *const savers[] = {
        "/torch/serialization.py:",
        "/safetensors/torch.py:",
        "/torch/distributed/checkpoint/",
    };

    for (size_t i = 0; i < sizeof savers / sizeof *savers; i++)
        if (strstr(stack, savers[i]))
            return true;
    return false;
}

bool python_is_saving(void)
{
    char stack[SAVING_BYTES];

    python_stack(stack, sizeof stack);
    return is_saving(stack);
}
