/* SPDX-License-Identifier: Apache-2.0
 * A reader of the mangled name in one pass that writes text as it reads. What a
 * substitution (S_) or a template parameter (T_) stands for is kept as its
 * place in the mangled name, and is read again wherever it is referred to. The
 * function's return type comes after its name: it is read without writing. */
#include "common/base/demangle.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/base/text_begins.h"

#define SUBSTITUTIONS_MAX 160
#define ARGUMENTS_MAX     48
#define DEPTH_MAX         96
#define STEPS_MAX         200000 /* names of substitutions can be huge */

struct place {
    const char *from;
    const char *to; /* of a prefix: its end; NULL: a whole type */
};

struct scope { /* the template arguments that T_ stands for */
    const char *arguments[ARGUMENTS_MAX];
    int count;
};

struct demangler {
    const char *at;
    char *out;
    size_t used, size;
    unsigned mute;      /* read without writing */
    unsigned replaying; /* reading again: substitutions are known */
    unsigned depth, steps;
    bool failed;
    bool is_template; /* the name read last ends in template arguments */
    bool is_const;    /* the function read last is a const member */
    struct place places[SUBSTITUTIONS_MAX];
    int place_count;
    struct scope scope;
};

static void read_type(struct demangler *d);
static void read_name(struct demangler *d, bool is_function);
static void read_encoding(struct demangler *d);
static void read_template_arguments(struct demangler *d, bool is_function);

static void demangle_fail(struct demangler *d)
{
    d->failed = true;
}

static void write_text(struct demangler *d, const char *text, size_t length)
{
    if (d->mute || d->failed)
        return;
    if (length >= d->size - d->used) {
        demangle_fail(d);
        return;
    }
    memcpy(d->out + d->used, text, length);
    d->used += length;
    d->out[d->used] = 0;
}

static void write_word(struct demangler *d, const char *text)
{
    write_text(d, text, strlen(text));
}

static bool text_take(struct demangler *d, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(d->at, text, length))
        return false;
    d->at += length;
    return true;
}

static bool go_down(struct demangler *d)
{
    if (++d->depth > DEPTH_MAX || ++d->steps > STEPS_MAX)
        demangle_fail(d);
    return !d->failed;
}

static void remember_text(struct demangler *d, const char *from, const char *to)
{
    if (d->replaying || d->failed)
        return;
    if (d->place_count == SUBSTITUTIONS_MAX) {
        demangle_fail(d);
        return;
    }
    d->places[d->place_count++] = (struct place){from, to};
}

static uint64_t read_number(struct demangler *d)
{
    uint64_t value = 0;

    while (isdigit((unsigned char)*d->at) && value < UINT64_MAX / 20)
        value = 10 * value + (uint64_t)(*d->at++ - '0');
    return value;
}

/* <length><identifier> */
static void read_source_name(struct demangler *d)
{
    uint64_t length = read_number(d);
    const char *name = d->at;

    if (!length || length > strlen(name)) {
        demangle_fail(d);
        return;
    }
    d->at += length;
    if (length > 9 && text_begins(name, "_GLOBAL__N"))
        write_word(d, "(anonymous namespace)");
    else
        write_text(d, name, length);
}

/* "_" is 1, "0_" is 2 and so on. */
static uint64_t read_ordinal(struct demangler *d)
{
    uint64_t number = 1;

    if (isdigit((unsigned char)*d->at))
        number = read_number(d) + 2;
    if (!text_take(d, "_"))
        demangle_fail(d);
    return number;
}

static void write_ordinal(struct demangler *d)
{
    char text[32];

    snprintf(text, sizeof text, "#%llu}", (unsigned long long)read_ordinal(d));
    write_word(d, text);
}

static void read_list(struct demangler *d)
{
    bool first = true;

    if (*d->at == 'v') {
        d->at++;
        return;
    }
    while (!d->failed && *d->at && *d->at != 'E' && *d->at != '.') {
        size_t before = d->used;

        if (!first)
            write_word(d, ", ");
        size_t start = d->used;
        read_type(d);
        if (d->used == start && !d->mute) { /* an empty pack */
            d->used = before;
            d->out[before] = 0;
        } else {
            first = false;
        }
    }
}

static void read_lambda(struct demangler *d)
{
    write_word(d, "{lambda(");
    read_list(d);
    if (!text_take(d, "E"))
        demangle_fail(d);
    write_word(d, ")");
    write_ordinal(d);
}

static void read_operator(struct demangler *d)
{
    static const struct {
        const char *code, *text;
    } operators[] = {{"cl", "operator()"}, {"ix", "operator[]"}};

    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (text_take(d, operators[i].code)) {
            write_word(d, operators[i].text);
            return;
        }
    demangle_fail(d);
}

static void read_unqualified(struct demangler *d)
{
    d->at += *d->at == 'L'; /* internal linkage */
    if (isdigit((unsigned char)*d->at)) {
        read_source_name(d);
    } else if (text_take(d, "Ul")) {
        read_lambda(d);
    } else if (text_take(d, "Ut")) {
        write_word(d, "{unnamed type");
        write_ordinal(d);
    } else {
        read_operator(d);
    }
    while (!d->failed && text_take(d, "B")) { /* an ABI tag */
        d->mute++;
        read_source_name(d);
        d->mute--;
    }
}

static void read_prefix(struct demangler *d, const char *end, bool is_function);

static void replay_place(struct demangler *d, const struct place *place)
{
    const char *at = d->at;

    if (d->mute || !go_down(d)) /* nothing to write */
        return;
    d->replaying++;
    d->at = place->from;
    if (place->to)
        read_prefix(d, place->to, false);
    else
        read_type(d);
    d->replaying--;
    d->depth--;
    d->at = at;
}

/* The digits of S0_ or T0_, base 36 or 10: 0 for "_". */
static int read_index(struct demangler *d, int base)
{
    int index = 0;

    if (text_take(d, "_"))
        return 0;
    for (; *d->at && *d->at != '_' && index < 100000; d->at++) {
        char c = *d->at;
        int digit = isdigit((unsigned char)c) ? c - '0' : c - 'A' + 10;

        if (digit < 0 || digit >= base)
            break;
        index = index * base + digit;
    }
    if (!text_take(d, "_"))
        demangle_fail(d);
    return index + 1;
}

static bool read_standard(struct demangler *d)
{
    static const struct {
        const char *code, *text;
    } names[] = {
        {"Sa", "std::allocator"}, {"Sb", "std::basic_string"},
        {"Ss", "std::string"},    {"Si", "std::istream"},
        {"So", "std::ostream"},   {"Sd", "std::iostream"},
    };

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_take(d, names[i].code)) {
            write_word(d, names[i].text);
            return true;
        }
    return false;
}

static void read_substitution(struct demangler *d)
{
    if (read_standard(d))
        return;
    d->at++; /* S */
    int index = read_index(d, 36);
    if (d->failed || index >= d->place_count)
        demangle_fail(d);
    else
        replay_place(d, &d->places[index]);
}

static void read_argument(struct demangler *d);

static void read_parameter(struct demangler *d)
{
    const char *at;

    d->at++; /* T */
    int index = read_index(d, 10);
    if (d->mute || d->failed)
        return;
    if (index >= d->scope.count) {
        write_word(d, "auto"); /* a generic lambda's */
        return;
    }
    if (!go_down(d))
        return;
    at = d->at;
    d->replaying++;
    d->at = d->scope.arguments[index];
    read_argument(d);
    d->replaying--;
    d->depth--;
    d->at = at;
}

/* Z <function> E <entity>, with what T_ means in the function. */
static void read_local(struct demangler *d, bool is_function)
{
    struct scope outer = d->scope;

    d->at++; /* Z */
    d->scope.count = 0;
    read_encoding(d);
    if (!text_take(d, "E"))
        demangle_fail(d);
    write_word(d, "::");
    if (text_take(d, "s"))
        write_word(d, "string literal");
    else
        read_name(d, is_function);
    d->scope = outer;
}

static void read_prefix_part(struct demangler *d, bool is_function)
{
    d->is_template = false;
    switch (*d->at) {
    case 'S':
        if (text_take(d, "St"))
            write_word(d, "std");
        else
            read_substitution(d);
        break;
    case 'T':
        read_parameter(d);
        break;
    case 'I':
        read_template_arguments(d, is_function);
        d->is_template = true;
        break;
    case 'Z':
        read_local(d, false);
        break;
    default:
        read_unqualified(d);
        break;
    }
}

/* The parts of a nested name up to END, or up to its E where END is NULL. */
static void read_prefix(struct demangler *d, const char *end, bool is_function)
{
    const char *start = d->at;

    while (!d->failed && *d->at && (end ? d->at < end : *d->at != 'E')) {
        bool known = *d->at == 'S';

        if (d->at != start && *d->at != 'I')
            write_word(d, "::");
        read_prefix_part(d, is_function);
        if (!known && (end || *d->at != 'E'))
            remember_text(d, start, d->at);
    }
}

static void read_nested(struct demangler *d, bool is_function)
{
    bool is_const = false;

    d->at++; /* N */
    for (; *d->at && strchr("rVKRO", *d->at); d->at++)
        is_const |= *d->at == 'K';
    read_prefix(d, NULL, is_function);
    if (!text_take(d, "E"))
        demangle_fail(d);
    d->is_const = is_const;
}

/* A name that is not nested, with its template arguments. */
static void read_unscoped(struct demangler *d, bool is_function)
{
    const char *start = d->at;
    bool known = *d->at == 'S' && d->at[1] != 't';

    d->is_template = false;
    if (known) {
        read_substitution(d);
    } else {
        if (text_take(d, "St"))
            write_word(d, "std::");
        read_unqualified(d);
    }
    if (d->failed || *d->at != 'I')
        return;
    if (!known)
        remember_text(d, start, d->at);
    read_template_arguments(d, is_function);
    d->is_template = true;
}

static void skip_discriminator(struct demangler *d)
{
    if (text_take(d, "__")) {
        read_number(d);
        text_take(d, "_");
    } else if (*d->at == '_' && isdigit((unsigned char)d->at[1])) {
        d->at += 2;
    }
}

static void read_name(struct demangler *d, bool is_function)
{
    if (!go_down(d))
        return;
    d->is_const = false;
    if (*d->at == 'N') {
        read_nested(d, is_function);
    } else if (*d->at == 'Z') {
        read_local(d, is_function);
        skip_discriminator(d);
    } else {
        read_unscoped(d, is_function);
    }
    d->depth--;
}

static const char *builtin_name(char code)
{
    static const char *const names[26] = {
        "signed char",
        "bool",
        "char",
        "double",
        "long double",
        "float",
        "__float128",
        "unsigned char",
        "int",
        "unsigned int",
        NULL,
        "long",
        "unsigned long",
        "__int128",
        "unsigned __int128",
        NULL,
        NULL,
        NULL,
        "short",
        "unsigned short",
        NULL,
        "void",
        "wchar_t",
        "long long",
        "unsigned long long",
        "...",
    };

    return code >= 'a' && code <= 'z' ? names[code - 'a'] : NULL;
}

/* L <type> <value> E */
static void read_literal(struct demangler *d)
{
    static const struct {
        char code;
        const char *suffix;
    } suffixes[] = {{'i', ""},   {'j', "u"},  {'l', "l"},
                    {'m', "ul"}, {'x', "ll"}, {'y', "ull"}};
    const char *suffix = NULL;
    char code = *d->at;

    if (code == 'b' && (d->at[1] == '0' || d->at[1] == '1') &&
        d->at[2] == 'E') {
        write_word(d, d->at[1] == '1' ? "true" : "false");
        d->at += 3;
        return;
    }
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (suffixes[i].code == code)
            suffix = suffixes[i].suffix;
    if (suffix) {
        d->at++;
    } else {
        write_word(d, "(");
        read_type(d);
        write_word(d, ")");
    }
    if (text_take(d, "n"))
        write_word(d, "-");
    size_t length = strcspn(d->at, "E");
    write_text(d, d->at, length);
    d->at += length;
    write_word(d, suffix ? suffix : "");
    if (!text_take(d, "E"))
        demangle_fail(d);
}

/* One template argument; a pack gives several, or none. */
static void read_argument(struct demangler *d)
{
    if (text_take(d, "L_Z")) { /* a function, without its parameters */
        read_name(d, true);
        d->mute++;
        read_list(d);
        d->mute--;
        if (!text_take(d, "E"))
            demangle_fail(d);
    } else if (text_take(d, "L")) {
        read_literal(d);
    } else if (text_take(d, "X")) { /* an expression: of one argument only */
        if (text_take(d, "ad"))
            write_word(d, "&");
        read_argument(d);
        if (!text_take(d, "E"))
            demangle_fail(d);
    } else if (text_take(d, "J")) {
        bool first = true;

        for (; !d->failed && *d->at && *d->at != 'E'; first = false) {
            if (!first)
                write_word(d, ", ");
            read_argument(d);
        }
        if (!text_take(d, "E"))
            demangle_fail(d);
    } else {
        read_type(d);
    }
}

/* IS_FUNCTION: they are the function's own, which T_ in its type refers to. */
static void read_template_arguments(struct demangler *d, bool is_function)
{
    struct scope found = {.count = 0};
    bool first = true;

    d->at++; /* I */
    write_word(d, "<");
    while (!d->failed && *d->at && *d->at != 'E') {
        size_t before = d->used;

        if (found.count < ARGUMENTS_MAX)
            found.arguments[found.count++] = d->at;
        if (!first)
            write_word(d, ", ");
        size_t start = d->used;
        read_argument(d);
        if (d->used == start && !d->mute) { /* an empty pack */
            d->used = before;
            d->out[before] = 0;
        } else {
            first = false;
        }
    }
    if (!text_take(d, "E"))
        demangle_fail(d);
    if (!d->mute && !d->failed && d->out[d->used - 1] == '>')
        write_word(d, " ");
    write_word(d, ">");
    if (is_function)
        d->scope = found;
}

static void read_function(struct demangler *d, const char *declarator)
{
    d->at++; /* F */
    text_take(d, "Y");
    read_type(d);
    write_word(d, declarator);
    write_word(d, "(");
    read_list(d);
    write_word(d, ")");
    if (!text_take(d, "E"))
        demangle_fail(d);
}

static void read_pointer(struct demangler *d)
{
    const char *mark = *d->at == 'P' ? "*" : *d->at == 'R' ? "&" : "&&";

    d->at++;
    if (*d->at == 'F') {
        const char *from = d->at;

        read_function(d, mark[0] == '*' ? " (*)" : " (&)");
        remember_text(d, from, NULL);
        return;
    }
    read_type(d);
    write_word(d, mark);
}

static void read_qualified(struct demangler *d)
{
    bool is_const = false, is_volatile = false;

    for (; *d->at && strchr("rVK", *d->at); d->at++) {
        is_const |= *d->at == 'K';
        is_volatile |= *d->at == 'V';
    }
    read_type(d);
    if (is_const)
        write_word(d, " const");
    if (is_volatile)
        write_word(d, " volatile");
}

/* D..: true where the type can be substituted. */
static bool read_extended(struct demangler *d)
{
    static const struct {
        const char *code, *text;
    } names[] = {
        {"Dn", "decltype(nullptr)"}, {"Dh", "half"},      {"Di", "char32_t"},
        {"Ds", "char16_t"},          {"Du", "char8_t"},   {"Da", "auto"},
        {"DF16_", "_Float16"},       {"DF16b", "__bf16"},
    };

    if (text_take(d, "Dp")) {
        read_type(d);
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_take(d, names[i].code)) {
            write_word(d, names[i].text);
            return false;
        }
    demangle_fail(d); /* decltype and the like */
    return false;
}

static void read_array(struct demangler *d)
{
    char text[32];

    d->at++; /* A */
    uint64_t count = read_number(d);
    if (!text_take(d, "_"))
        demangle_fail(d);
    read_type(d);
    snprintf(text, sizeof text, " [%llu]", (unsigned long long)count);
    write_word(d, text);
}

/* A type that begins with a substitution. True where it is more than it. */
static bool read_substituted(struct demangler *d)
{
    if (d->at[1] == 't') {
        read_name(d, false);
        return true;
    }
    read_substitution(d);
    if (d->failed || *d->at != 'I')
        return false;
    read_template_arguments(d, false);
    return true;
}

/* True where the type can be substituted. */
static bool read_type_kind(struct demangler *d)
{
    const char *builtin = builtin_name(*d->at);

    if (builtin) {
        d->at++;
        write_word(d, builtin);
        return false;
    }
    switch (*d->at) {
    case 'P':
    case 'R':
    case 'O':
        read_pointer(d);
        return true;
    case 'r':
    case 'V':
    case 'K':
        read_qualified(d);
        return true;
    case 'D':
        return read_extended(d);
    case 'F':
        read_function(d, " ");
        return true;
    case 'A':
        read_array(d);
        return true;
    case 'S':
        return read_substituted(d);
    case 'T':
        read_parameter(d);
        if (*d->at == 'I')
            read_template_arguments(d, false);
        return true;
    default:
        read_name(d, false);
        return true;
    }
}

static void read_type(struct demangler *d)
{
    const char *from = d->at;

    if (!go_down(d))
        return;
    if (read_type_kind(d))
        remember_text(d, from, NULL);
    d->depth--;
}

/* A function's name and parameters, or the name of something else. */
static void read_encoding(struct demangler *d)
{
    read_name(d, true);
    bool is_const = d->is_const;
    if (d->failed || !*d->at || *d->at == 'E' || *d->at == '.')
        return;
    if (d->is_template) {
        d->mute++;
        read_type(d); /* what it returns */
        d->mute--;
    }
    write_word(d, "(");
    read_list(d);
    write_word(d, ")");
    if (is_const)
        write_word(d, " const");
}

bool demangle(const char *name, char *out, size_t size)
{
    struct demangler d = {.at = name, .out = out, .size = size};

    *out = 0;
    if (!text_begins(name, "_Z")) {
        write_word(&d, name);
        return !d.failed;
    }
    d.at += 2;
    read_encoding(&d);
    return !d.failed && (!*d.at || *d.at == '.');
}
