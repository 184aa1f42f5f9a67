/* SPDX-License-Identifier: Apache-2.0 */
/* spanflame: parses the command line and runs the command. */
#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "src/base/core_dumps.h"
#include "src/base/error.h"
#include "src/cli/cli.h"
#include "src/cli/completion.h"
#include "src/cli/components.h"
#include "src/cli/explore/explore_command.h"
#include "src/cli/health_probe.h"
#include "src/cli/journal/journal_command.h"
#include "src/cli/migrate.h"
#include "src/cli/ottl_command.h"
#include "src/cli/profile/profile_command.h"
#include "src/config/config.h"
#include "src/service/supervisor.h"

static int fail(const char *text)
{
    fprintf(stderr, "Error: %s\n", text);
    return 1;
}

int main(int count, char **arguments)
{
    static struct cli cli;
    struct error error = {.text = ""};
    assert(count > 0);
    core_dumps_allow(false); /* configurations hold secrets */
    if (!cli_parse(&cli, count, arguments, &error))
        return fail(error.text);
    switch (cli.command) {
    case CLI_COMPONENTS:
        config_print_components(components, stdout);
        return 0;
    case CLI_CONFIG_REFERENCE:
        config_print_reference(components, stdout);
        return 0;
    case CLI_FEATURE_GATE:
        if (feature_gates_print(&cli.gates, cli.argument, stdout))
            return 0;
        fprintf(stderr, "Error: feature \"%s\" not found\n", cli.argument);
        return 1;
    case CLI_HEALTH_CHECK:
        return health_probe(cli.argument, &error) ? 0 : fail(error.text);
    case CLI_COMPLETION:
        return completion_print(cli.argument, stdout, &error) ? 0 : fail(error.text);
    case CLI_PROFILE:
        return profile_command(cli.program, cli.rest_count, cli.rest);
    case CLI_JOURNAL:
        return journal_command(cli.program, cli.rest_count, cli.rest, stdout, stderr);
    case CLI_OTTL:
        return (int)ottl_command(cli.program, cli.rest_count, cli.rest, stdout, stderr);
    case CLI_TRACES:
        return traces_command(cli.program, cli.rest_count, cli.rest, stdout, stderr);
    case CLI_FLAME:
        return flame_command(cli.program, cli.rest_count, cli.rest, stdout, stderr);
    case CLI_VERSION:
        printf("%s version %s\n", cli.program, SPANFLAME_VERSION);
        return 0;
    case CLI_HELP:
        cli_print_help(&cli);
        return 0;
    case CLI_RUN:
    case CLI_VALIDATE:
    case CLI_PRINT_CONFIG:
    case CLI_MIGRATE:
        break;
    }
    const struct config_request request = {
        .locations = cli.configs,
        .locations_count = cli.configs_count,
        .settings = cli.settings,
        .settings_count = cli.settings_count,
        .factories = components,
        .gates = &cli.gates,
        .skips_unsupported = cli.skips_unsupported,
        .skips_checks = cli.skips_validation,
    };
    if (cli.command == CLI_MIGRATE)
        return (int)migrate_command(&request, cli.argument, cli.output, stdout, stderr);
    if (cli.configs_count == 0 && cli.settings_count == 0)
        return fail("at least one config flag must be provided");
    if (cli.command == CLI_VALIDATE)
        return supervisor_validate(&request);
    if (cli.command == CLI_PRINT_CONFIG) {
        struct config_problems problems = {0};
        if (!cli.skips_validation && supervisor_validate(&request) != 0)
            return 1;
        bool is_printed = config_print(&request, cli.is_unredacted, cli.is_json, stdout, &problems);
        for (size_t i = 0; !is_printed && i < problems.count; i++)
            fail(problems.texts[i]);
        config_problems_clear(&problems);
        return is_printed ? 0 : 1;
    }
    assert(cli.command == CLI_RUN);
    int result = supervisor_run(&request);
    if (result == SUPERVISOR_BEGIN_ANEW) {
        /* Re-executes the running image: the file on disk may have been replaced meanwhile. */
        execv("/proc/self/exe", arguments);
        return fail("cannot restart the process after a reload: /proc/self/exe cannot be executed");
    }
    return result;
}
