/* SPDX-License-Identifier: Apache-2.0 */
/* The same for each shell: commands where none was given, verbs and files behind a command that has
 * verbs, flags, and for a flag's value either files or its choices. Main thread. */
#include "src/cli/completion.h"

#include <string.h>

#include "src/base/error.h"
#include "src/cli/cli.h"
#include "src/cli/explore/explore_arguments.h"
#include "src/cli/journal/journal_arguments.h"
#include "src/cli/profile/profile_arguments.h"

/* Commands with verbs. */
enum { TABLES = 4 };
static const struct verb_table *const tables[TABLES] = {&profile_verbs, &journal_verbs,
                                                        &traces_verbs, &flame_verbs};

/* Words of a list: commands or flags of the program, or of a command with verbs. */
struct words {
    bool (*at)(size_t index, struct command_word *word);
    bool (*at_of)(const struct verb_table *table, size_t index, struct command_word *word);
    const struct verb_table *table;
};

static const struct words commands = {.at = cli_command_word};
static const struct words flags = {.at = cli_flag_word};

static struct words verbs_of(const struct verb_table *table)
{
    return (struct words){.at_of = verb_word, .table = table};
}

static struct words flags_of(const struct verb_table *table)
{
    return (struct words){.at_of = verb_flag_word, .table = table};
}

static bool word_of(struct words words, size_t index, struct command_word *word)
{
    return words.at != NULL ? words.at(index, word) : words.at_of(words.table, index, word);
}

/* The choices of "yaml|json" with another separator. */
static void print_choices(const char *value, char separator, FILE *out)
{
    for (; *value != '\0'; value++)
        fputc(*value == '|' ? separator : *value, out);
}

/* Inside single quotes: special characters get a backslash, and the quote is written as this. */
static void print_quoted(const char *text, const char *special, const char *quote, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            fputs(quote, out);
            continue;
        }
        if (strchr(special, *text) != NULL)
            fputc('\\', out);
        fputc(*text, out);
    }
}

static void print_names(struct words words, char separator, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; word_of(words, i, &word); i++)
        fprintf(out, "%s%s", i > 0 ? (char[]){separator, '\0'} : "", word.name);
}

static void print_bash_values(struct words words, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; word_of(words, i, &word); i++) {
        if (word.value == NULL)
            continue;
        fprintf(out, "        %s) ", word.name);
        if (strcmp(word.value, "FILE") == 0) {
            fputs("COMPREPLY=($(compgen -f -- \"$cur\")); ", out);
        } else if (strchr(word.value, '|') != NULL) {
            fputs("COMPREPLY=($(compgen -W '", out);
            print_choices(word.value, ' ', out);
            fputs("' -- \"$cur\")); ", out);
        }
        fputs("return ;;\n", out);
    }
}

static void print_bash(FILE *out)
{
    fputs("# bash completion of spanflame\n"
          "_spanflame() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} word command= "
          "words\n"
          "    [[ $cur == = ]] && cur=\n" /* --flag=value is three words */
          "    [[ $prev == = ]] && prev=${COMP_WORDS[COMP_CWORD-2]}\n"
          "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
          "        case $word in\n            ",
          out);
    print_names(commands, '|', out);
    fputs(") command=$word; break ;;\n"
          "        esac\n"
          "    done\n"
          "    COMPREPLY=()\n"
          "    case $prev in\n",
          out);
    print_bash_values(flags, out);
    for (size_t i = 0; i < TABLES; i++)
        print_bash_values(flags_of(tables[i]), out);
    fputs("    esac\n"
          "    case $command in\n",
          out);
    for (size_t i = 0; i < TABLES; i++) {
        fprintf(out, "        %s) words='", tables[i]->command);
        print_names(verbs_of(tables[i]), ' ', out);
        fputc(' ', out);
        print_names(flags_of(tables[i]), ' ', out);
        fprintf(out, "'; [[ $prev == %s ]] || COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n",
                tables[i]->command);
    }
    fputs("        completion) words='bash zsh fish' ;;\n"
          "        '') words='",
          out);
    print_names(commands, ' ', out);
    fputc(' ', out);
    print_names(flags, ' ', out);
    fputs("' ;;\n"
          "        *) words='",
          out);
    print_names(flags, ' ', out);
    fputs("' ;;\n"
          "    esac\n"
          "    COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o filenames -F _spanflame spanflame\n",
          out);
}

/* Words as zsh's _describe takes them: 'name:help'. */
static void print_zsh_words(const char *variable, struct words words, FILE *out)
{
    struct command_word word;
    fprintf(out, "    %s=(\n", variable);
    for (size_t i = 0; word_of(words, i, &word); i++) {
        fprintf(out, "        '%s:", word.name);
        print_quoted(word.help, ":\\", "'\\''", out);
        fputs("'\n", out);
    }
    fputs("    )\n", out);
}

/* Flags as _arguments takes them: '*--name=[help]:VALUE:_files'. */
static void print_zsh_flags(const char *variable, struct words words, FILE *out)
{
    struct command_word word;
    fprintf(out, "    %s=(\n", variable);
    for (size_t i = 0; word_of(words, i, &word); i++) {
        bool is_long = word.name[1] == '-';
        fprintf(out, "        '*%s%s[", word.name, word.value == NULL ? "" : is_long ? "=" : "+");
        print_quoted(word.help, "[]\\", "'\\''", out);
        fputc(']', out);
        if (word.value != NULL && strchr(word.value, '|') != NULL) {
            fputs(":value:(", out);
            print_choices(word.value, ' ', out);
            fputc(')', out);
        } else if (word.value != NULL) {
            fprintf(out, ":%s:%s", word.value, strcmp(word.value, "FILE") == 0 ? "_files" : " ");
        }
        fputs("'\n", out);
    }
    fputs("    )\n", out);
}

static void print_zsh(FILE *out)
{
    fputs("#compdef spanflame\n"
          "_spanflame() {\n"
          "    local curcontext=$curcontext state line commands verbs flags verb_flags\n",
          out);
    print_zsh_words("commands", commands, out);
    print_zsh_flags("flags", flags, out);
    fputs("    _arguments -C $flags '1: :->command' '*:: :->rest' && return\n"
          "    case $state in\n"
          "        command) _describe command commands; return ;;\n"
          "    esac\n"
          "    case $line[1] in\n"
          "        completion) _arguments '1:shell:(bash zsh fish)'; return ;;\n",
          out);
    for (size_t i = 0; i < TABLES; i++) {
        fprintf(out, "        %s)\n", tables[i]->command);
        print_zsh_words("verbs", verbs_of(tables[i]), out);
        print_zsh_flags("verb_flags", flags_of(tables[i]), out);
        fputs("            ;;\n", out);
    }
    fputs("        *) _arguments $flags; return ;;\n"
          "    esac\n"
          "    _arguments -C $verb_flags '1: :->verb' '*:file:_files' && return\n"
          "    [[ $state == verb ]] && _describe verb verbs\n"
          "}\n"
          "if [[ $funcstack[1] == _spanflame ]]; then _spanflame \"$@\"; else compdef _spanflame "
          "spanflame; fi\n",
          out);
}

static void print_fish_flags(const char *condition, struct words words, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; word_of(words, i, &word); i++) {
        bool is_long = word.name[1] == '-';
        fprintf(out, "complete -c spanflame -n '%s' %s %s", condition, is_long ? "-l" : "-s",
                word.name + (is_long ? 2 : 1));
        if (word.value != NULL && strcmp(word.value, "FILE") == 0) {
            fputs(" -r -F", out);
        } else if (word.value != NULL && strchr(word.value, '|') != NULL) {
            fputs(" -x -a '", out);
            print_choices(word.value, ' ', out);
            fputc('\'', out);
        } else if (word.value != NULL) {
            fputs(" -x", out);
        }
        fputs(" -d '", out);
        print_quoted(word.help, "\\", "\\'", out);
        fputs("'\n", out);
    }
}

static void print_fish_words(const char *condition, struct words words, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; word_of(words, i, &word); i++) {
        fprintf(out, "complete -c spanflame -n '%s' -a %s -d '", condition, word.name);
        print_quoted(word.help, "\\", "\\'", out);
        fputs("'\n", out);
    }
}

enum { CONDITION_BYTES_MAX = 256 };

static void append(char text[static CONDITION_BYTES_MAX], const char *word)
{
    size_t size = strlen(text);
    snprintf(text + size, CONDITION_BYTES_MAX - size, " %s", word);
}

static void print_fish(FILE *out)
{
    char seen[CONDITION_BYTES_MAX] = "__fish_seen_subcommand_from";
    fputs("# fish completion of spanflame\n"
          "complete -c spanflame -f\n"
          "complete -c spanflame -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n",
          out);
    print_fish_words("__fish_use_subcommand", commands, out);
    for (size_t i = 0; i < TABLES; i++) {
        char condition[CONDITION_BYTES_MAX];
        char no_verb[CONDITION_BYTES_MAX];
        struct command_word word;
        append(seen, tables[i]->command);
        snprintf(condition, sizeof(condition), "__fish_seen_subcommand_from %s",
                 tables[i]->command);
        snprintf(no_verb, sizeof(no_verb),
                 "__fish_seen_subcommand_from %s; and not __fish_seen_subcommand_from",
                 tables[i]->command);
        for (size_t k = 0; verb_word(tables[i], k, &word); k++)
            append(no_verb, word.name);
        fprintf(out, "complete -c spanflame -n '%s' -F\n", condition);
        print_fish_words(no_verb, verbs_of(tables[i]), out);
        print_fish_flags(condition, flags_of(tables[i]), out);
    }
    char condition[CONDITION_BYTES_MAX + 4];
    snprintf(condition, sizeof(condition), "not %s", seen);
    print_fish_flags(condition, flags, out);
}

bool completion_print(const char *shell, FILE *out, struct error *error)
{
    static const struct {
        const char *shell;
        void (*print)(FILE *out);
    } scripts[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
    for (size_t i = 0; shell != NULL && i < sizeof(scripts) / sizeof(scripts[0]); i++)
        if (strcmp(shell, scripts[i].shell) == 0) {
            scripts[i].print(out);
            return true;
        }
    return error_set(error, "completion: found %s%s%s, expected bash, zsh or fish",
                     shell != NULL ? "\"" : "", shell != NULL ? shell : "no shell",
                     shell != NULL ? "\"" : "");
}
