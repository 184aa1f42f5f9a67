/* SPDX-License-Identifier: Apache-2.0 */
/* Flags may appear anywhere behind the verb; each verb has its own. Main thread. */
#include "src/cli/arguments/verbs.h"

#include <assert.h>
#include <string.h>

#include "src/base/error.h"

enum { LIST_BYTES_MAX = 256, VALUE_WIDTH_MIN = 9 };

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* False: error lists the verbs. */
static bool find_verb(const struct verb_table *table, const char *word, unsigned *ret_verb,
                      struct error *error)
{
    char known[LIST_BYTES_MAX] = "";
    if (is_help(word))
        word = table->verbs[0].name;
    for (size_t i = 0; i < table->verbs_count; i++)
        if (strcmp(table->verbs[i].name, word) == 0) {
            *ret_verb = (unsigned)i;
            return true;
        }
    for (size_t i = 1; i < table->verbs_count; i++) {
        size_t size = strlen(known);
        snprintf(known + size, sizeof(known) - size, "%s, ", table->verbs[i].name);
    }
    size_t size = strlen(known);
    assert(size > 2 && size + 1 < sizeof(known));
    known[size - 2] = '\0';
    return error_set(error, "unknown verb \"%s\" for \"%s\": expected %s or %s", word,
                     table->command, known, table->verbs[0].name);
}

/* Parses the flag at *index, which it moves past a separate value. */
static bool parse_flag(const struct verb_table *table, unsigned verb, int count, char **arguments,
                       int *index, size_t *ret_flag, const char **ret_value, struct error *error)
{
    const char *argument = arguments[*index];
    const char *equals = strchr(argument, '=');
    size_t size = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    const char *value = equals != NULL ? equals + 1 : NULL;
    const struct verb_flag *flag = NULL;
    assert(argument[0] == '-' && verb < table->verbs_count);
    for (size_t i = 0; flag == NULL && i < table->flags_count; i++)
        if (strlen(table->flags[i].word.name) == size &&
            strncmp(table->flags[i].word.name, argument, size) == 0)
            flag = &table->flags[i];
    if (flag == NULL)
        return error_set(error, "unknown flag: %.*s; \"%s help\" lists them", (int)size, argument,
                         table->command);
    if ((flag->verbs & 1u << verb) == 0)
        return error_set(error, "%s has no meaning for \"%s %s\"", flag->word.name, table->command,
                         table->verbs[verb].name);
    if (flag->word.value == NULL && value != NULL)
        return error_set(error, "%s takes no value", flag->word.name);
    if (flag->word.value != NULL && value == NULL && *index + 1 < count)
        value = arguments[++*index];
    if (flag->word.value != NULL && value == NULL)
        return error_set(error, "flag needs an argument: %s", argument);
    *ret_flag = (size_t)(flag - table->flags);
    *ret_value = value;
    return true;
}

bool verb_parse(const struct verb_table *table, int count, char **arguments, verb_flag_fn take_flag,
                void *parsed, unsigned *ret_verb, size_t *ret_words, struct error *error)
{
    assert(count >= 0);
    *ret_verb = 0;
    *ret_words = 0;
    if (count == 0)
        return true;
    if (!find_verb(table, arguments[0], ret_verb, error))
        return false;
    for (int i = 1; i < count; i++) {
        size_t flag = 0;
        const char *value = NULL;
        if (is_help(arguments[i])) {
            *ret_verb = 0;
            *ret_words = 0;
            return true;
        }
        if (arguments[i][0] != '-' || arguments[i][1] == '\0')
            arguments[(*ret_words)++] = arguments[i];
        else if (!parse_flag(table, *ret_verb, count, arguments, &i, &flag, &value, error) ||
                 !take_flag(parsed, flag, value, error))
            return false;
    }
    return true;
}

void verb_print_help(const struct verb_table *table, const char *program, const char *about,
                     FILE *out)
{
    fprintf(out, "Usage:\n  %s %s VERB [flags]\n\n%s\nVerbs:\n", program, table->command, about);
    for (size_t i = 0; i < table->verbs_count; i++)
        fprintf(out, "  %-22s %s\n", table->verbs[i].usage, table->verbs[i].help);
    int width = VALUE_WIDTH_MIN;
    for (size_t i = 0; i < table->flags_count; i++) {
        const char *value = table->flags[i].word.value;
        width = value != NULL && (int)strlen(value) > width ? (int)strlen(value) : width;
    }
    fputs("\nFlags:\n", out);
    for (size_t i = 0; i < table->flags_count; i++) {
        const struct command_word *word = &table->flags[i].word;
        fprintf(out, "  %-12s %-*s %s\n", word->name, width, word->value != NULL ? word->value : "",
                word->help);
    }
}

bool verb_word(const struct verb_table *table, size_t index, struct command_word *word)
{
    if (index >= table->verbs_count)
        return false;
    *word =
        (struct command_word){.name = table->verbs[index].name, .help = table->verbs[index].help};
    return true;
}

bool verb_flag_word(const struct verb_table *table, size_t index, struct command_word *word)
{
    if (index >= table->flags_count)
        return false;
    *word = table->flags[index].word;
    return true;
}
