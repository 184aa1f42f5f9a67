/* SPDX-License-Identifier: Apache-2.0 */
/* The same for each shell: commands where none was given, verbs behind "profile", flags, and for a
 * flag's value either files or its choices. Main thread. */
#include "src/cli/completion.h"

#include <string.h>

#include "src/base/error.h"
#include "src/cli/cli.h"
#include "src/cli/profile/profile_arguments.h"

typedef bool (*word_at)(size_t index, struct command_word *word);

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

static void print_names(word_at at, char separator, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; at(i, &word); i++)
        fprintf(out, "%s%s", i > 0 ? (char[]){separator, '\0'} : "", word.name);
}

static void print_bash_values(word_at at, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; at(i, &word); i++) {
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
    print_names(cli_command_word, '|', out);
    fputs(") command=$word; break ;;\n"
          "        esac\n"
          "    done\n"
          "    COMPREPLY=()\n"
          "    case $prev in\n",
          out);
    print_bash_values(cli_flag_word, out);
    print_bash_values(profile_arguments_flag, out);
    fputs("    esac\n"
          "    case $command in\n"
          "        profile) words='",
          out);
    print_names(profile_arguments_verb, ' ', out);
    fputc(' ', out);
    print_names(profile_arguments_flag, ' ', out);
    fputs("'; [[ $prev == profile ]] || COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
          "        completion) words='bash zsh fish' ;;\n"
          "        '') words='",
          out);
    print_names(cli_command_word, ' ', out);
    fputc(' ', out);
    print_names(cli_flag_word, ' ', out);
    fputs("' ;;\n"
          "        *) words='",
          out);
    print_names(cli_flag_word, ' ', out);
    fputs("' ;;\n"
          "    esac\n"
          "    COMPREPLY+=($(compgen -W \"$words\" -- \"$cur\"))\n"
          "}\n"
          "complete -o filenames -F _spanflame spanflame\n",
          out);
}

/* Words as zsh's _describe takes them: 'name:help'. */
static void print_zsh_words(const char *variable, word_at at, FILE *out)
{
    struct command_word word;
    fprintf(out, "    %s=(\n", variable);
    for (size_t i = 0; at(i, &word); i++) {
        fprintf(out, "        '%s:", word.name);
        print_quoted(word.help, ":\\", "'\\''", out);
        fputs("'\n", out);
    }
    fputs("    )\n", out);
}

/* Flags as _arguments takes them: '*--name=[help]:VALUE:_files'. */
static void print_zsh_flags(const char *variable, word_at at, FILE *out)
{
    struct command_word word;
    fprintf(out, "    %s=(\n", variable);
    for (size_t i = 0; at(i, &word); i++) {
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
          "    local curcontext=$curcontext state line commands verbs flags profile_flags\n",
          out);
    print_zsh_words("commands", cli_command_word, out);
    print_zsh_words("verbs", profile_arguments_verb, out);
    print_zsh_flags("flags", cli_flag_word, out);
    print_zsh_flags("profile_flags", profile_arguments_flag, out);
    fputs(
        "    _arguments -C $flags '1: :->command' '*:: :->rest' && return\n"
        "    case $state in\n"
        "        command) _describe command commands ;;\n"
        "        rest)\n"
        "            case $line[1] in\n"
        "                profile)\n"
        "                    _arguments -C $profile_flags '1: :->verb' '*:file:_files' && return\n"
        "                    [[ $state == verb ]] && _describe verb verbs ;;\n"
        "                completion) _arguments '1:shell:(bash zsh fish)' ;;\n"
        "                *) _arguments $flags ;;\n"
        "            esac ;;\n"
        "    esac\n"
        "}\n"
        "if [[ $funcstack[1] == _spanflame ]]; then _spanflame \"$@\"; else compdef _spanflame "
        "spanflame; fi\n",
        out);
}

static void print_fish_flags(const char *condition, word_at at, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; at(i, &word); i++) {
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

static void print_fish_words(const char *condition, word_at at, FILE *out)
{
    struct command_word word;
    for (size_t i = 0; at(i, &word); i++) {
        fprintf(out, "complete -c spanflame -n '%s' -a %s -d '", condition, word.name);
        print_quoted(word.help, "\\", "\\'", out);
        fputs("'\n", out);
    }
}

static void print_fish(FILE *out)
{
    char no_verb[256] = "__fish_seen_subcommand_from profile; and not __fish_seen_subcommand_from";
    struct command_word word;
    for (size_t i = 0; profile_arguments_verb(i, &word); i++) {
        size_t size = strlen(no_verb);
        snprintf(no_verb + size, sizeof(no_verb) - size, " %s", word.name);
    }
    fputs("# fish completion of spanflame\n"
          "complete -c spanflame -f\n"
          "complete -c spanflame -n '__fish_seen_subcommand_from profile' -F\n"
          "complete -c spanflame -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n",
          out);
    print_fish_words("__fish_use_subcommand", cli_command_word, out);
    print_fish_words(no_verb, profile_arguments_verb, out);
    print_fish_flags("not __fish_seen_subcommand_from profile", cli_flag_word, out);
    print_fish_flags("__fish_seen_subcommand_from profile", profile_arguments_flag, out);
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
