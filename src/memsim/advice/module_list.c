/* SPDX-License-Identifier: Apache-2.0 */
#include "memsim/advice/module_list.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/xmalloc.h"

/* What is found out of each module on the way. */
struct module_note {
    size_t parts;       /* all below it */
    bool is_member;     /* its name is a number, and it has parts */
    size_t members;     /* of it as a list */
    size_t parts_voted; /* that most members have */
    size_t votes, agreeing;
};

static bool is_number(const char *text)
{
    if (!*text)
        return false;
    while (isdigit((unsigned char)*text))
        text++;
    return !*text;
}

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot ? dot + 1 : path;
}

/* Is ID its parent's path and a number? */
static bool is_numbered(const struct module_table *t, uint32_t id)
{
    const struct module_row *row = &t->rows[id];

    if (!row->named || !row->parent || !is_number(last_name(row->path)))
        return false;
    const struct module_row *parent = &t->rows[row->parent];
    const char *above = row->parent == row->root ? "" : parent->path;
    size_t length = strlen(above);

    return !strncmp(row->path, above, length) &&
           row->path + length + (length > 0) == last_name(row->path);
}

/* Boyer's and Moore's vote. */
static void vote_on_parts(struct module_note *list, size_t parts)
{
    list->members++;
    if (!list->votes)
        list->parts_voted = parts;
    if (list->parts_voted == parts)
        list->votes++;
    else
        list->votes--;
}

static struct module_note *notes_make(const struct module_table *t)
{
    struct module_note *notes = xcalloc(t->count + 1, sizeof *notes);

    for (uint32_t id = 1; id < t->count; id++)
        for (uint32_t up = t->rows[id].parent; up; up = t->rows[up].parent)
            notes[up].parts++;
    for (uint32_t id = 1; id < t->count; id++) {
        notes[id].is_member = notes[id].parts && is_numbered(t, id);
        if (notes[id].is_member)
            vote_on_parts(&notes[t->rows[id].parent], notes[id].parts);
    }
    for (uint32_t id = 1; id < t->count; id++) {
        struct module_note *list = &notes[t->rows[id].parent];

        list->agreeing +=
            notes[id].is_member && notes[id].parts == list->parts_voted;
    }
    return notes;
}

static bool is_list(const struct module_note *n)
{
    return n->agreeing >= 2 && n->agreeing * 2 >= n->members;
}

/* The outermost module above ID, or itself, that is a member of a list. */
static uint32_t member_find(const struct module_table *t,
                            const struct module_note *notes, uint32_t id)
{
    uint32_t found = 0;

    for (; id; id = t->rows[id].parent)
        if (notes[id].is_member && is_list(&notes[t->rows[id].parent]))
            found = id;
    return found;
}

/* The name of MEMBER's list. */
static char *list_name(const struct module_table *t, uint32_t member)
{
    char *title = module_table_title(t, member);
    size_t length = (size_t)(last_name(title) - title);

    if (!length) {
        free(title);
        return module_table_title(t, t->rows[member].parent);
    }
    title[length - 1] = '\0';
    return title;
}

static uint32_t list_row(struct module_lists *lists,
                         const struct module_table *t, uint32_t member)
{
    uint32_t parent = t->rows[member].parent;

    if (!lists->list_of[parent]) {
        lists->rows =
            xreallocarray(lists->rows, lists->count + 1, sizeof *lists->rows);
        lists->rows[lists->count++] = (struct module_list){
            .parent = parent, .name = list_name(t, member)};
        lists->list_of[parent] = (uint32_t)lists->count;
    }
    return lists->list_of[parent];
}

void module_lists_find(struct module_lists *lists,
                       const struct module_table *modules)
{
    struct module_note *notes = notes_make(modules);

    *lists = (struct module_lists){
        .member_of = xcalloc(modules->count + 1, sizeof *lists->member_of),
        .list_of = xcalloc(modules->count + 1, sizeof *lists->list_of),
        .modules = modules->count,
    };
    for (uint32_t id = 1; id < modules->count; id++) {
        uint32_t member = member_find(modules, notes, id);

        if (!member)
            continue;
        uint32_t row = list_row(lists, modules, member);
        lists->member_of[id] = member;
        lists->list_of[id] = row;
        lists->rows[row - 1].members += id == member;
    }
    free(notes);
}

void module_lists_fini(struct module_lists *lists)
{
    for (size_t i = 0; i < lists->count; i++)
        free(lists->rows[i].name);
    free(lists->rows);
    free(lists->member_of);
    free(lists->list_of);
}
