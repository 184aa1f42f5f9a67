/* SPDX-License-Identifier: Apache-2.0 */
/* What detectors find: the environment variable in all its forms, and this host beside what other
 * programs say of it. */
#include "processors/resource_detection/detector.h"
#include "src/base/error.h"
#include "src/otlp/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include <cmocka.h>

enum { ROOM = 8192 };

/* AnyValue: 1 string, 3 int, 5 array of values. */
static void print_value(FILE *out, struct slice value)
{
    struct wire_reader reader = wire_reader_of(value);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        if (field.number == 1)
            fprintf(out, "%.*s", (int)field.bytes.size, (const char *)field.bytes.data);
        else if (field.number == 3)
            fprintf(out, "%lld", (long long)field.number_value);
        else
            fprintf(out, "?");
    }
}

/* "key=value;key=value" */
static void print_all(const struct detected *detected, char text[static ROOM])
{
    FILE *out = fmemopen(text, ROOM, "w");
    assert_non_null(out);
    for (size_t i = 0; i < detected->count; i++) {
        struct slice key = detected->attributes[i].key;
        struct wire_reader reader = wire_reader_of(detected->attributes[i].value);
        struct wire_field field;
        fprintf(out, "%s%.*s=", i > 0 ? ";" : "", (int)key.size, (const char *)key.data);
        assert_true(wire_read_field(&reader, &field));
        if (field.number != 5) {
            print_value(out, detected->attributes[i].value);
            continue;
        }
        struct wire_reader values = wire_reader_of(field.bytes);
        while (wire_read_field(&values, &field)) {
            fprintf(out, "[");
            print_value(out, field.bytes);
            fprintf(out, "]");
        }
    }
    fclose(out);
}

static void the_environment_is_read_as_the_go_collector_reads_it(void **state)
{
    static const struct {
        const char *value;
        const char *expected; /* NULL: malformed */
    } rows[] = {
        {"", ""},
        {"  ", ""},
        {"a=b", "a=b"},
        {" a = b , c = d ", "a=b;c=d"},
        {"a=b,", "a=b"},
        {"a=", "a="},
        {"a=b=c", "a=b=c"},
        {"a,b=c", "a,b=c"},
        {"example.org/x/y=z%20%2C+q", "example.org/x/y=z , q"},
        {"a=1,b=2,a=3", "a=3;b=2"},
        {"a", NULL},
        {"=b", NULL},
        {"a=b,c", NULL},
        {"a=%zz", NULL},
        {"a=%2", NULL},
        {"a=\xc3\xa4", NULL},
        {"\xc3\xa4=a", NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct detected detected = {.schema_url = ""};
        struct error error = {.text = ""};
        char text[ROOM] = "";
        setenv("OTEL_RESOURCE_ATTRIBUTES", rows[i].value, 1);
        setenv("OTEL_RESOURCE", "", 1);
        bool has_worked = detect_env(&detected, &error);
        if (has_worked != (rows[i].expected != NULL))
            fail_msg("\"%s\": %s", rows[i].value, error.text);
        if (has_worked) {
            print_all(&detected, text);
            assert_string_equal(text, rows[i].expected);
        } else {
            assert_non_null(strstr(error.text, "OTEL_RESOURCE_ATTRIBUTES"));
        }
        detected_fini(&detected);
    }
    /* The older name counts where the newer has nothing. */
    struct detected detected = {.schema_url = ""};
    struct error error = {.text = ""};
    char text[ROOM] = "";
    setenv("OTEL_RESOURCE_ATTRIBUTES", " ", 1);
    setenv("OTEL_RESOURCE", "old=1", 1);
    assert_true(detect_env(&detected, &error));
    print_all(&detected, text);
    assert_string_equal(text, "old=1");
    detected_fini(&detected);
}

static void parts_are_of_256_characters_at_most(void **state)
{
    enum { MOST = 256 };
    (void)state;
    for (size_t size = MOST; size <= MOST + 1; size++)
        for (int is_value = 0; is_value < 2; is_value++) {
            char value[2 * MOST];
            struct detected detected = {.schema_url = ""};
            struct error error = {.text = ""};
            char part[MOST + 2] = "";
            memset(part, 'x', size);
            snprintf(value, sizeof(value), "%s=%s", is_value ? "k" : part, is_value ? part : "v");
            setenv("OTEL_RESOURCE_ATTRIBUTES", value, 1);
            assert_int_equal(detect_env(&detected, &error), size == MOST);
            detected_fini(&detected);
        }
}

/* The first line that a command prints. */
static void run(const char *command, char line[static ROOM])
{
    FILE *out = popen(command, "r");
    assert_non_null(out);
    line[0] = '\0';
    if (fgets(line, ROOM, out) != NULL)
        line[strcspn(line, "\n")] = '\0';
    pclose(out);
}

static const struct {
    enum system_attribute attribute;
    const char *name;
    const char *command; /* that says the same */
} facts[] = {
    {SYSTEM_HOST_NAME, "host.name", "uname -n"},
    {SYSTEM_OS_TYPE, "os.type", "echo linux"},
    {SYSTEM_HOST_ID, "host.id", "cat /etc/machine-id /var/lib/dbus/machine-id 2>/dev/null"},
    {SYSTEM_OS_BUILD_ID, "os.build.id",
     "grep -q ^BUILD_ID= /etc/os-release && sed -n 's/^BUILD_ID=//p' /etc/os-release | tr -d '\"' "
     "|| uname -r"},
    {SYSTEM_OS_DESCRIPTION, "os.description",
     ". /etc/os-release; echo \"$NAME ${VERSION:-$VERSION_ID} ($(uname -snrvm))\""},
    {SYSTEM_HOST_INTERFACE, "host.interface",
     "for i in /sys/class/net/*; do echo $(cat $i/ifindex) $(basename $i); done | sort -n | sed "
     "'s/.* //; s/.*/[&]/' | tr -d '\\n'"},
    {SYSTEM_CPU_MODEL_NAME, "host.cpu.model.name",
     "sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1"},
};

static void the_host_is_seen_as_other_programs_see_it(void **state)
{
    static const char *const sources[] = {"os"};
    (void)state;
    for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
        bool wanted[SYSTEM_ATTRIBUTES] = {false};
        struct detected detected = {.schema_url = ""};
        struct error error = {.text = ""};
        char found[ROOM] = "";
        char said[ROOM];
        char expected[ROOM + 64];
        wanted[facts[i].attribute] = true;
        assert_true(detect_system(&detected, wanted, sources, 1, 1, &error));
        assert_string_equal(detected.schema_url, "https://opentelemetry.io/schemas/1.40.0");
        print_all(&detected, found);
        run(facts[i].command, said);
        snprintf(expected, sizeof(expected), "%s=%s", facts[i].name, said);
        /* A machine without that file has no such attribute. */
        if (facts[i].attribute == SYSTEM_HOST_ID && said[0] == '\0')
            expected[0] = '\0';
        assert_string_equal(found, expected);
        detected_fini(&detected);
    }
}

static void only_what_is_wanted_is_there_in_order(void **state)
{
    static const char *const sources[] = {"os"};
    static const char *const names[] = {"host.name=",
                                        ";os.type=linux",
                                        ";os.version=",
                                        ";host.arch=",
                                        ";host.ip=",
                                        ";host.mac=",
                                        ";host.interface=",
                                        ";os.description=",
                                        ";os.name=",
                                        ";os.build.id=",
                                        ";host.cpu.vendor.id=",
                                        ";host.cpu.family=",
                                        ";host.cpu.model.id=",
                                        ";host.cpu.model.name=",
                                        ";host.cpu.stepping=",
                                        ";host.cpu.cache.l2.size="};
    bool wanted[SYSTEM_ATTRIBUTES];
    struct detected detected = {.schema_url = ""};
    struct error error = {.text = ""};
    char text[ROOM] = "";
    (void)state;
    memset(wanted, true, sizeof(wanted));
    assert_true(detect_system(&detected, wanted, sources, 1, 1, &error));
    print_all(&detected, text);
    const char *at = text;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *found = strstr(at, names[i]);
        if (found == NULL)
            fail_msg("no %s in %s", names[i], at);
        at = found;
    }
    detected_fini(&detected);
    memset(wanted, false, sizeof(wanted));
    assert_true(detect_system(&detected, wanted, sources, 1, 1, &error));
    assert_int_equal(detected.count, 0);
    detected_fini(&detected);
}

static void the_first_detector_counts(void **state)
{
    struct detected first = {.schema_url = ""};
    struct detected second = {.schema_url = "url"};
    char text[ROOM] = "";
    (void)state;
    detected_put_text(&first, "a", slice_of_text("1"));
    detected_put_text(&second, "a", slice_of_text("2"));
    detected_put_integer(&second, "b", -3);
    detected_put_texts(&second, "c", "x\0y", 2);
    detected_merge(&first, &second);
    print_all(&first, text);
    assert_string_equal(text, "a=1;b=-3;c=[x][y]");
    assert_string_equal(first.schema_url, "url");
    detected_fini(&first);
    detected_fini(&second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_read_as_the_go_collector_reads_it),
        cmocka_unit_test(parts_are_of_256_characters_at_most),
        cmocka_unit_test(the_host_is_seen_as_other_programs_see_it),
        cmocka_unit_test(only_what_is_wanted_is_there_in_order),
        cmocka_unit_test(the_first_detector_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
