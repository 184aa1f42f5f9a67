/* SPDX-License-Identifier: Apache-2.0 */
/* The command line, compatible with the Go collector's. Main thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "src/config/feature_gates.h"

enum cli_command {
    CLI_RUN,
    CLI_VALIDATE,
    CLI_COMPONENTS,
    CLI_PRINT_CONFIG,
    CLI_CONFIG_REFERENCE,
    CLI_FEATURE_GATE,
    CLI_HEALTH_CHECK,
    CLI_PROFILE,
    CLI_JOURNAL,
    CLI_MIGRATE,
    CLI_OTTL,
    CLI_TRACES,
    CLI_FLAME,
    CLI_COMPLETION,
    CLI_VERSION,
    CLI_HELP,
};

enum { CLI_VALUES_MAX = 256 };

struct cli {
    enum cli_command command;
    const char *program;
    const char *configs[CLI_VALUES_MAX];
    size_t configs_count;
    const char *settings[CLI_VALUES_MAX];
    size_t settings_count;
    struct feature_gates gates;
    bool is_unredacted;     /* print-config --mode=unredacted */
    bool is_json;           /* print-config --format=json */
    bool skips_unsupported; /* --skip-unsupported */
    const char *output;     /* migrate -o FILE; NULL: none */
    bool skips_validation;  /* print-config --validate=false */
    const char
        *argument; /* featuregate ID, healthcheck URL, completion SHELL, migrate FILE; NULL: none */
    /* profile, journal, ottl, traces, flame: the arguments after it, which they parse themselves */
    char **rest;
    int rest_count;
};

struct error;

/* False: error describes the invalid argument. Keeps pointers into arguments. */
bool cli_parse(struct cli *cli, int count, char **arguments, struct error *error);
void cli_print_help(const struct cli *cli);

struct command_word;

/* The command or flag at an index of its table, for shell completion; false beyond the last. */
bool cli_command_word(size_t index, struct command_word *word);
bool cli_flag_word(size_t index, struct command_word *word);
