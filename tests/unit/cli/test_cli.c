/* SPDX-License-Identifier: Apache-2.0 */
/* The command line as a table: the command found, or the error. */
#include "src/cli/cli.h"

#include "src/base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ARGUMENTS_MAX = 8 };

static struct cli cli;

static bool parse(const char *const *arguments, struct error *error)
{
    static char texts[ARGUMENTS_MAX + 1][64];
    char *pointers[ARGUMENTS_MAX + 1] = {texts[0]};
    int count = 1;
    snprintf(texts[0], sizeof(texts[0]), "/usr/bin/spanflame");
    for (; count <= ARGUMENTS_MAX && arguments[count - 1] != NULL; count++) {
        snprintf(texts[count], sizeof(texts[count]), "%s", arguments[count - 1]);
        pointers[count] = texts[count];
    }
    return cli_parse(&cli, count, pointers, error);
}

struct accepted_row {
    const char *arguments[ARGUMENTS_MAX];
    enum cli_command command;
    size_t configs;
    size_t settings;
    const char *argument;
};

static const struct accepted_row accepted_rows[] = {
    {{"--config", "a.yaml"}, CLI_RUN, 1, 0, NULL},
    {{"--config=a.yaml", "--config", "yaml:b: c=d"}, CLI_RUN, 2, 0, NULL},
    {{"--set=a.b=2s", "--config=x"}, CLI_RUN, 1, 1, NULL},
    {{"--set", "a=b=c"}, CLI_RUN, 0, 1, NULL},
    {{NULL}, CLI_RUN, 0, 0, NULL},
    {{"validate", "--config", "x"}, CLI_VALIDATE, 1, 0, NULL},
    {{"--config", "x", "validate"}, CLI_VALIDATE, 1, 0, NULL},
    {{"components"}, CLI_COMPONENTS, 0, 0, NULL},
    {{"print-config", "--config=x"}, CLI_PRINT_CONFIG, 1, 0, NULL},
    {{"print-initial-config", "--config=x"}, CLI_PRINT_CONFIG, 1, 0, NULL},
    {{"config-reference"}, CLI_CONFIG_REFERENCE, 0, 0, NULL},
    {{"featuregate"}, CLI_FEATURE_GATE, 0, 0, NULL},
    {{"featuregate", "some.gate"}, CLI_FEATURE_GATE, 0, 0, "some.gate"},
    {{"healthcheck", "http://x/"}, CLI_HEALTH_CHECK, 0, 0, "http://x/"},
    {{"healthcheck", "validate"}, CLI_HEALTH_CHECK, 0, 0, "validate"},
    {{"profile", "show", "--json", "x"}, CLI_PROFILE, 0, 0, NULL},
    {{"journal", "list", "--json", "x"}, CLI_JOURNAL, 0, 0, NULL},
    {{"--version"}, CLI_VERSION, 0, 0, NULL},
    {{"-v", "--nonsense"}, CLI_VERSION, 0, 0, NULL},
    {{"validate", "--help"}, CLI_HELP, 0, 0, NULL},
    {{"-h"}, CLI_HELP, 0, 0, NULL},
    {{"help", "validate"}, CLI_HELP, 0, 0, NULL},
    {{"--feature-gates=service.profilesSupport", "--config=x"}, CLI_RUN, 1, 0, NULL},
};

static void what_is_asked_for_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(accepted_rows) / sizeof(accepted_rows[0]); i++) {
        const struct accepted_row *row = &accepted_rows[i];
        struct error error = {.text = ""};
        if (!parse(row->arguments, &error))
            fail_msg("row %zu: %s", i, error.text);
        assert_string_equal(cli.program, "spanflame");
        assert_int_equal(cli.command, row->command);
        assert_int_equal(cli.configs_count, row->configs);
        assert_int_equal(cli.settings_count, row->settings);
        if (row->argument == NULL)
            assert_null(cli.argument);
        else
            assert_string_equal(cli.argument, row->argument);
    }
}

static void values_are_kept_as_they_are(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    assert_true(
        parse((const char *const[]){"--config=", "--config=a=b", "--set", "k=", NULL}, &error));
    assert_string_equal(cli.configs[0], "");
    assert_string_equal(cli.configs[1], "a=b");
    assert_string_equal(cli.settings[0], "k=");
}

static void flags_of_print_config_are_read(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    assert_true(parse((const char *const[]){"print-config", "--mode=unredacted", "--format", "json",
                                            "--validate=false", NULL},
                      &error));
    assert_true(cli.is_unredacted && cli.is_json && cli.skips_validation);
    assert_true(parse(
        (const char *const[]){"print-config", "--mode", "redacted", "--validate", NULL}, &error));
    assert_false(cli.is_unredacted || cli.is_json || cli.skips_validation);
}

static void a_gate_is_switched(void **state)
{
    (void)state;
    struct error error = {.text = ""};
    assert_true(
        parse((const char *const[]){"--feature-gates", "-service.profilesSupport", NULL}, &error));
    assert_false(feature_gate_is_enabled(&cli.gates, GATE_PROFILES_SUPPORT));
}

struct refused_row {
    const char *arguments[ARGUMENTS_MAX];
    const char *error;
};

static const struct refused_row refused_rows[] = {
    {{"--confg=x"}, "unknown flag: --confg"},
    {{"-x"}, "unknown shorthand flag: 'x' in -x"},
    {{"--config"}, "flag needs an argument: --config"},
    {{"--set", "novalue"}, "invalid argument \"novalue\" for \"--set\" flag: missing equal sign"},
    {{"frobnicate"}, "unknown command \"frobnicate\" for \"spanflame\""},
    {{"validate", "x"}, "unknown command \"x\" for \"spanflame\""},
    {{"validate", "components"}, "unknown command \"components\" for \"spanflame\""},
    {{"healthcheck", "a", "b"}, "unknown command \"b\" for \"spanflame\""},
    {{""}, "unknown command \"\" for \"spanflame\""},
    {{"-"}, "unknown command \"-\" for \"spanflame\""},
    {{"--mode=open"}, "invalid mode \"open\": expected redacted or unredacted"},
    {{"--format=xml"}, "invalid format \"xml\": expected yaml or json"},
    {{"--validate=no"}, "invalid argument \"no\" for \"--validate\" flag: expected true or false"},
};

static void mistakes_are_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refused_rows) / sizeof(refused_rows[0]); i++) {
        struct error error = {.text = ""};
        assert_false(parse(refused_rows[i].arguments, &error));
        assert_string_equal(error.text, refused_rows[i].error);
    }
    struct error error = {.text = ""};
    assert_false(parse((const char *const[]){"--feature-gates=no.such", NULL}, &error));
    assert_non_null(strstr(error.text, "no.such"));
}

static void more_values_than_fit_are_refused(void **state)
{
    (void)state;
    static char flag[] = "--config=x";
    static char *arguments[CLI_VALUES_MAX + 2];
    struct error error = {.text = ""};
    for (size_t i = 0; i < CLI_VALUES_MAX + 2; i++)
        arguments[i] = flag;
    assert_true(cli_parse(&cli, CLI_VALUES_MAX + 1, arguments, &error));
    assert_int_equal(cli.configs_count, CLI_VALUES_MAX);
    assert_false(cli_parse(&cli, CLI_VALUES_MAX + 2, arguments, &error));
    assert_string_equal(error.text, "more than 256 --config flags");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_for_is_found),
        cmocka_unit_test(values_are_kept_as_they_are),
        cmocka_unit_test(flags_of_print_config_are_read),
        cmocka_unit_test(a_gate_is_switched),
        cmocka_unit_test(mistakes_are_reported),
        cmocka_unit_test(more_values_than_fit_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
