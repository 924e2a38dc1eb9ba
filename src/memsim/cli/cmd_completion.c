/* SPDX-License-Identifier: Apache-2.0
 * memsim completion: what a shell needs to complete memsim's command line, made
 * from the tables of options. */
#include <stdio.h>
#include <string.h>

#include "common/base/text_begins.h"
#include "memsim/cli/cmd.h"
#include "memsim/cli/commands.h"

/* How an option's argument, or an operand, is completed. */
enum kind {
    KIND_NONE,
    KIND_FILE,
    KIND_DIRECTORY,
    KIND_CHOICE,
    KIND_GPU,
    KIND_CLUSTER
};

struct shell {
    const char *name;
    void (*begin)(void);
    void (*option)(const char *command, const struct option_row *row,
                   enum kind kind);
    void (*command)(const struct command *command, bool runs);
    void (*end)(void);
};

static enum kind kind_of(const struct option_row *row)
{
    const char *a = row->argument;

    if (row->type == OPTION_CHOICE)
        return KIND_CHOICE;
    if (row->type != OPTION_STRING || !a)
        return KIND_NONE;
    if (!strcmp(row->name, "gpu"))
        return KIND_GPU;
    if (!strcmp(row->name, "cluster"))
        return KIND_CLUSTER;
    if (!strcmp(a, "DIR"))
        return KIND_DIRECTORY;
    return strstr(a, "FILE") || strstr(a, ".json") ? KIND_FILE : KIND_NONE;
}

/* The first sentence of the help in one line, without what a quoted word of a
 * shell cannot have. */
static void write_help(const char *help)
{
    for (; *help && *help != ';' && !text_begins(help, " (default"); help++)
        putchar(*help == '\n'                 ? ' '
                : strchr("'`\"\\[]:$", *help) ? ' '
                                              : *help);
}

/* "auto|always|never" with spaces. */
static void write_choices(const char *argument)
{
    for (; *argument; argument++)
        putchar(*argument == '|' ? ' ' : *argument);
}

/* --- bash ----------------------------------------------------------------- */

static void bash_begin(void)
{
    fputs("# bash completion of memsim; made by `memsim completion bash'\n"
          "_memsim_names() { memsim \"$1\" 2>/dev/null | "
          "awk 'NR > 1 { print $1 }'; }\n"
          "_memsim() {\n"
          "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS["
          "COMP_CWORD-1]}\n"
          "    local command=${COMP_WORDS[1]} i options= names=\n"
          "    COMPREPLY=()\n"
          "    for ((i = 2; i < COMP_CWORD; i++)); do\n"
          "        if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
          "            if declare -F _command_offset >/dev/null; then "
          "_command_offset $((i + 1))\n"
          "            else COMPREPLY=($(compgen -c -f -- \"$word\")); fi\n"
          "            return\n"
          "        fi\n"
          "    done\n"
          "    case $command,$before in\n",
          stdout);
}

static void bash_option(const char *command, const struct option_row *row,
                        enum kind kind)
{
    static const char *const actions[] = {
        [KIND_FILE] = "-f",
        [KIND_DIRECTORY] = "-d",
        [KIND_GPU] = "-f -W \"$(_memsim_names gpus)\"",
        [KIND_CLUSTER] = "-f -W \"$(_memsim_names clusters)\"",
    };

    if (kind == KIND_NONE)
        return;
    printf("    %s,--%s", command, row->name);
    if (row->letter)
        printf(" | %s,-%c", command, row->letter);
    if (kind == KIND_CHOICE) {
        fputs(") COMPREPLY=($(compgen -W '", stdout);
        write_choices(row->argument);
        fputs("' -- \"$word\")); return ;;\n", stdout);
    } else {
        printf(") COMPREPLY=($(compgen %s -- \"$word\")); return ;;\n",
               actions[kind]);
    }
}

static void bash_command(const struct command *command, bool runs)
{
    (void)command, (void)runs;
}

static void write_long_options(const struct option_row *row)
{
    for (; row && row->name; row++)
        printf(" --%s", row->name);
    fputs(" --help", stdout);
}

static void bash_words_visit(const struct options *options, void *context)
{
    const struct command *c = context;

    printf("    %s) options='", c->name);
    write_long_options(options->rows);
    fputs("' ;;\n", stdout);
}

static void bash_end(void)
{
    struct cmd_visitor visitor = {.visit = bash_words_visit};
    char *words[] = {NULL, NULL};

    fputs("    esac\n    case $command in\n", stdout);
    for (const struct command *c = commands; c->name; c++) {
        visitor.context = (void *)c;
        words[0] = (char *)c->name;
        cmd_visitor = &visitor;
        c->run(1, words);
    }
    cmd_visitor = NULL;
    fputs("    esac\n    if ((COMP_CWORD == 1)); then\n        names='",
          stdout);
    for (const struct command *c = commands; c->name; c++)
        printf("%s ", c->name);
    fputs(
        "--help --version'\n        COMPREPLY=($(compgen -W \"$names\" -- "
        "\"$word\"))\n"
        "    elif [[ $word == -* ]]; then COMPREPLY=($(compgen -W \"$options\" "
        "-- \"$word\"))\n"
        "    elif [[ $command == gpus ]]; then COMPREPLY=($(compgen -f -W "
        "\"$(_memsim_names gpus)\" -- \"$word\"))\n"
        "    else COMPREPLY=($(compgen -c -f -- \"$word\")); fi\n"
        "}\ncomplete -o filenames -F _memsim memsim\n"
        "_commfit() {\n"
        "    local words='predict --help' help=--help\n"
        "    ((COMP_CWORD > 1)) && words=--help\n"
        "    [[ ${COMP_WORDS[1]} == predict ]] && help='predict --help'\n"
        "    words+=\" $(commfit $help 2>/dev/null | grep -oE -e "
        "'--[a-z][a-z-]+' | sort -u)\"\n"
        "    COMPREPLY=($(compgen -f -W \"$words\" -- "
        "\"${COMP_WORDS[COMP_CWORD]}\"))\n"
        "}\ncomplete -o filenames -F _commfit commfit\n",
        stdout);
}

/* --- zsh ------------------------------------------------------------------ */

static void zsh_begin(void)
{
    fputs("#compdef memsim\n"
          "# zsh completion of memsim; made by `memsim completion zsh'\n"
          "_memsim_names() { local -a names; names=(${(f)\"$(memsim $1 "
          "2>/dev/null | awk 'NR > 1 { print $1 }')\"}); compadd -a names; "
          "_files }\n"
          "_memsim() {\n"
          "    local -a commands\n    commands=(\n",
          stdout);
    for (const struct command *c = commands; c->name; c++) {
        printf("        '%s:", c->name);
        write_help(c->summary);
        fputs("'\n", stdout);
    }
    fputs("    )\n"
          "    if (( CURRENT == 2 )); then _describe command commands; return; "
          "fi\n"
          "    local command=$words[2]\n"
          "    shift words; (( CURRENT-- ))\n"
          "    case $command in\n",
          stdout);
}

static void zsh_option(const char *command, const struct option_row *row,
                       enum kind kind)
{
    static const char *const actions[] = {
        [KIND_NONE] = "",
        [KIND_FILE] = "_files",
        [KIND_DIRECTORY] = "_files -/",
        [KIND_GPU] = "_memsim_names gpus",
        [KIND_CLUSTER] = "_memsim_names clusters",
    };

    (void)command;
    printf(" \\\n            '--%s%s[", row->name,
           row->type == OPTION_FLAG ? "" : "=");
    write_help(row->help);
    fputc(']', stdout);
    if (row->type != OPTION_FLAG) {
        printf(":%s:", kind == KIND_CHOICE ? "choice" : "argument");
        if (kind == KIND_CHOICE) {
            fputs("(", stdout);
            write_choices(row->argument);
            fputs(")", stdout);
        } else {
            fputs(actions[kind], stdout);
        }
    }
    fputc('\'', stdout);
}

static void zsh_command(const struct command *command, bool runs)
{
    (void)runs;
    if (command)
        printf("    %s) _arguments", command->name);
}

static void zsh_end(void)
{
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _memsim ]]; then _memsim \"$@\"; "
          "else compdef _memsim memsim; compdef _gnu_generic commfit; fi\n",
          stdout);
}

/* --- fish ----------------------------------------------------------------- */

static void fish_begin(void)
{
    fputs("# fish completion of memsim; made by `memsim completion fish'\n"
          "function __memsim_names\n"
          "    memsim $argv[1] 2>/dev/null | awk 'NR > 1 { print $1 }'\n"
          "end\n"
          "complete -c commfit -a '(commfit --help | string match -r -a -- "
          "\"--[a-z][a-z-]+\")'\n",
          stdout);
    for (const struct command *c = commands; c->name; c++) {
        printf("complete -c memsim -n __fish_use_subcommand -f -a %s -d '",
               c->name);
        write_help(c->summary);
        fputs("'\n", stdout);
    }
}

static void fish_option(const char *command, const struct option_row *row,
                        enum kind kind)
{
    printf("complete -c memsim -n '__fish_seen_subcommand_from %s' -l %s",
           command, row->name);
    if (row->letter)
        printf(" -s %c", row->letter);
    if (kind == KIND_FILE)
        fputs(" -r -F", stdout);
    else if (kind == KIND_DIRECTORY)
        fputs(" -x -a '(__fish_complete_directories)'", stdout);
    else if (kind == KIND_GPU)
        fputs(" -r -F -a '(__memsim_names gpus)'", stdout);
    else if (kind == KIND_CLUSTER)
        fputs(" -r -F -a '(__memsim_names clusters)'", stdout);
    else if (kind == KIND_CHOICE) {
        fputs(" -x -a '", stdout);
        write_choices(row->argument);
        fputc('\'', stdout);
    } else if (row->type != OPTION_FLAG) {
        fputs(" -x", stdout);
    }
    fputs(" -d '", stdout);
    write_help(row->help);
    fputs("'\n", stdout);
}

static void fish_command(const struct command *command, bool runs)
{
    if (command && runs)
        printf("complete -c memsim -n '__fish_seen_subcommand_from %s' -x -a "
               "'(__fish_complete_subcommand)'\n",
               command->name);
}

static void complete_nothing(void)
{
}

/* -------------------------------------------------------------------------- */

static const struct shell shells[] = {
    {"bash", bash_begin, bash_option, bash_command, bash_end},
    {"zsh", zsh_begin, zsh_option, zsh_command, zsh_end},
    {"fish", fish_begin, fish_option, fish_command, complete_nothing},
};

struct visit {
    const struct shell *shell;
    const struct command *command;
};

static void command_visit(const struct options *options, void *context)
{
    const struct visit *v = context;
    bool zsh = v->shell->option == zsh_option;

    v->shell->command(v->command, options->command_follows);
    for (const struct option_row *row = options->rows; row && row->name; row++)
        v->shell->option(v->command->name, row, kind_of(row));
    if (zsh)
        printf(" \\\n            '--help[print the help]' %s ;;\n",
               options->command_follows ? "'*::command:_normal'"
                                        : "'*:file:_files'");
}

static void print_shell(const struct shell *shell)
{
    struct visit visit = {.shell = shell};
    const struct cmd_visitor visitor = {command_visit, &visit};
    char *words[] = {NULL, NULL};

    shell->begin();
    cmd_visitor = &visitor;
    for (visit.command = commands; visit.command->name; visit.command++) {
        words[0] = (char *)visit.command->name;
        visit.command->run(1, words);
    }
    cmd_visitor = NULL;
    shell->end();
}

static const struct option_row rows[] = {{0}};

static const struct options options = {
    .command = "memsim completion",
    .operands = "bash|zsh|fish",
    .summary = "Prints the completions of memsim's commands and options for a "
               "shell.",
    .examples = "  source <(memsim completion bash)\n"
                "  memsim completion fish >~/.config/fish/completions/"
                "memsim.fish",
    .rows = rows,
    .wanted = "give a shell: bash, zsh or fish",
    .operands_min = 1,
    .operands_max = 1,
};

int cmd_completion(int argc, char **argv)
{
    struct operands operands;
    struct err err = {""};
    int status = cmd_start(&options, argc, argv, NULL, &operands, CMD_USAGE);

    if (status >= 0)
        return status;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (!strcmp(operands.values[0], shells[i].name)) {
            print_shell(&shells[i]);
            return CMD_OK;
        }
    err_set(&err, "%s: %s", operands.values[0], options.wanted);
    return cmd_usage(&options, CMD_USAGE, &err);
}
