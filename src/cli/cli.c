/* SPDX-License-Identifier: Apache-2.0 */
/* Parses GNU-style flags and one command. Main thread. */
#include "src/cli/cli.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/error.h"
#include "src/cli/arguments/verbs.h"

enum flag_id {
    FLAG_CONFIG,
    FLAG_SET,
    FLAG_GATES,
    FLAG_MODE,
    FLAG_FORMAT,
    FLAG_VALIDATE,
    FLAG_SKIP,
    FLAG_WRITE,
    FLAG_VERSION,
    FLAG_HELP
};

struct flag {
    const char *name;
    enum flag_id id;
    bool is_switch;    /* takes no separate value: "--flag", "--flag=false" */
    const char *value; /* for shell completion: "FILE", "yaml|json"; NULL: none */
    const char *help;
};

static const struct flag flags[] = {
    {"--config", FLAG_CONFIG, false, "FILE",
     "Location of a config file (path, file:, env:, yaml:); may be repeated, later ones win"},
    {"--set", FLAG_SET, false, "KEY=VALUE",
     "Set one property: --set=processors.batch.timeout=2s; applied after all config files"},
    {"--feature-gates", FLAG_GATES, false, "GATES",
     "Comma-separated list of feature gate identifiers; prefix '-' disables"},
    {"--mode", FLAG_MODE, false, "redacted|unredacted",
     "print-config: redacted (default) or unredacted"},
    {"--format", FLAG_FORMAT, false, "yaml|json", "print-config: yaml (default) or json"},
    {"--validate", FLAG_VALIDATE, true, NULL,
     "print-config: validate before printing (default true)"},
    {"--skip-unsupported", FLAG_SKIP, true, NULL,
     "Leave out what this build lacks and the pipelines that cannot run without it"},
    {"--write", FLAG_WRITE, false, "FILE",
     "migrate: write a file that runs here, with the comments of the original; \"-\" is stdout"},
    {"-o", FLAG_WRITE, false, "FILE", "migrate: same as --write"},
    {"--version", FLAG_VERSION, true, NULL, "Print the version"},
    {"-v", FLAG_VERSION, true, NULL, "Print the version"},
    {"--help", FLAG_HELP, true, NULL, "Print this text"},
    {"-h", FLAG_HELP, true, NULL, "Print this text"},
};

static const struct {
    const char *name;
    enum cli_command command;
    const char *help;
} commands[] = {
    {"validate", CLI_VALIDATE, "Check the configuration without running"},
    {"components", CLI_COMPONENTS, "List the components of this build, as YAML"},
    {"print-config", CLI_PRINT_CONFIG, "Print the resolved configuration"},
    {"print-initial-config", CLI_PRINT_CONFIG, "Same as print-config"},
    {"config-reference", CLI_CONFIG_REFERENCE, "Print every configuration key, as Markdown"},
    {"featuregate", CLI_FEATURE_GATE, "List the feature gates, or show one"},
    {"help", CLI_HELP, "Print this text"},
    {"healthcheck", CLI_HEALTH_CHECK,
     "Query a running daemon's health_check; argument: its URL (http://localhost:13133/)"},
    {"profile", CLI_PROFILE,
     "Inspect profile files: show, convert, merge, diff; see \"profile help\""},
    {"journal", CLI_JOURNAL,
     "Look into journals on disk: list, verify, export; see \"journal help\""},
    {"migrate", CLI_MIGRATE,
     "Show what of a Go collector's configuration runs here; argument: its FILE, or --config for "
     "each of several; --write FILE"},
    {"ottl", CLI_OTTL,
     "Run OTTL statements over a file of OTLP/JSON, to try them; see \"ottl --help\""},
    {"traces", CLI_TRACES,
     "Traces that a running daemon's explore extension keeps; see \"traces help\""},
    {"flame", CLI_FLAME,
     "Flame graphs of what it keeps, and their differences; see \"flame help\""},
    {"completion", CLI_COMPLETION, "Print completions for a shell; argument: bash, zsh or fish"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

void cli_print_help(const struct cli *cli)
{
    printf("Usage:\n  %s --config FILE [flags]\n  %s COMMAND [flags]\n\nCommands:\n", cli->program,
           cli->program);
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-22s %s\n", commands[i].name, commands[i].help);
    printf("\nFlags:\n");
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        printf("  %-22s %s\n", flags[i].name, flags[i].help);
}

bool cli_command_word(size_t index, struct command_word *word)
{
    if (index >= COMMANDS)
        return false;
    *word = (struct command_word){.name = commands[index].name, .help = commands[index].help};
    return true;
}

bool cli_flag_word(size_t index, struct command_word *word)
{
    if (index >= sizeof(flags) / sizeof(flags[0]))
        return false;
    *word = (struct command_word){flags[index].name, flags[index].value, flags[index].help};
    return true;
}

/* Parses "--flag=value" or "--flag value"; advances *index past a separate value. */
static bool parse_flag(struct cli *cli, int count, char **arguments, int *index,
                       struct error *error)
{
    assert(*index < count);
    assert(arguments[*index][0] == '-');
    const char *argument = arguments[*index];
    const char *equals = strchr(argument, '=');
    size_t size = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    const struct flag *flag = NULL;
    for (size_t i = 0; flag == NULL && i < sizeof(flags) / sizeof(flags[0]); i++)
        if (strlen(flags[i].name) == size && strncmp(flags[i].name, argument, size) == 0)
            flag = &flags[i];
    if (flag == NULL && argument[1] == '-')
        return error_set(error, "unknown flag: %.*s", (int)size, argument);
    if (flag == NULL)
        return error_set(error, "unknown shorthand flag: '%c' in %s", argument[1], argument);
    if (equals == NULL && !flag->is_switch && *index + 1 >= count)
        return error_set(error, "flag needs an argument: %s", argument);
    const char *value = "true";
    if (equals != NULL)
        value = equals + 1;
    else if (!flag->is_switch)
        value = arguments[++*index];
    switch (flag->id) {
    case FLAG_CONFIG:
        if (cli->configs_count == CLI_VALUES_MAX)
            return error_set(error, "more than %d --config flags", CLI_VALUES_MAX);
        cli->configs[cli->configs_count++] = value;
        return true;
    case FLAG_SET:
        if (strchr(value, '=') == NULL)
            return error_set(
                error, "invalid argument \"%s\" for \"--set\" flag: missing equal sign", value);
        if (cli->settings_count == CLI_VALUES_MAX)
            return error_set(error, "more than %d --set flags", CLI_VALUES_MAX);
        cli->settings[cli->settings_count++] = value;
        return true;
    case FLAG_GATES:
        return feature_gates_parse(&cli->gates, value, error) ||
               error_prefix(error, "invalid argument \"%s\" for \"--feature-gates\" flag", value);
    case FLAG_MODE:
        cli->is_unredacted = strcmp(value, "unredacted") == 0;
        return cli->is_unredacted || strcmp(value, "redacted") == 0 ||
               error_set(error, "invalid mode \"%s\": expected redacted or unredacted", value);
    case FLAG_FORMAT:
        cli->is_json = strcmp(value, "json") == 0;
        return cli->is_json || strcmp(value, "yaml") == 0 ||
               error_set(error, "invalid format \"%s\": expected yaml or json", value);
    case FLAG_VALIDATE:
        cli->skips_validation = strcmp(value, "false") == 0;
        return cli->skips_validation || strcmp(value, "true") == 0 ||
               error_set(error,
                         "invalid argument \"%s\" for \"--validate\" flag: expected true or false",
                         value);
    case FLAG_SKIP:
        cli->skips_unsupported = strcmp(value, "true") == 0;
        return cli->skips_unsupported || strcmp(value, "false") == 0 ||
               error_set(error,
                         "invalid argument \"%s\" for \"--skip-unsupported\" flag: expected true "
                         "or false",
                         value);
    case FLAG_WRITE:
        cli->output = value;
        return true;
    case FLAG_VERSION:
        cli->command = CLI_VERSION;
        return true;
    case FLAG_HELP:
        cli->command = CLI_HELP;
        return true;
    }
    return false;
}

bool cli_parse(struct cli *cli, int count, char **arguments, struct error *error)
{
    assert(count > 0);
    const char *slash = strrchr(arguments[0], '/');
    *cli = (struct cli){.program = slash != NULL ? slash + 1 : arguments[0]};
    cli->gates = feature_gates_default();
    for (int i = 1; i < count; i++) {
        const char *word = arguments[i];
        bool is_flag = word[0] == '-' && word[1] != '\0';
        bool takes_argument = cli->command == CLI_FEATURE_GATE ||
                              cli->command == CLI_HEALTH_CHECK || cli->command == CLI_COMPLETION ||
                              cli->command == CLI_MIGRATE;
        if (is_flag) {
            if (!parse_flag(cli, count, arguments, &i, error))
                return false;
        } else if (takes_argument && cli->argument == NULL) {
            cli->argument = word;
        } else {
            size_t place = 0;
            while (place < COMMANDS && strcmp(commands[place].name, word) != 0)
                place++;
            if (cli->command != CLI_RUN || place == COMMANDS)
                return error_set(error, "unknown command \"%s\" for \"%s\"", word, cli->program);
            cli->command = commands[place].command;
        }
        cli->rest = &arguments[i + 1];
        cli->rest_count = count - i - 1;
        if (cli->command == CLI_VERSION || cli->command == CLI_HELP ||
            cli->command == CLI_PROFILE || cli->command == CLI_JOURNAL ||
            cli->command == CLI_OTTL || cli->command == CLI_TRACES || cli->command == CLI_FLAME)
            break;
    }
    return true;
}
