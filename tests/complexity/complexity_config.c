/* SPDX-License-Identifier: Apache-2.0 */
/* Loading configurations, right ones and wrong ones. A reload does it on lane 0. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "src/base/mem.h"
#include "src/base/signal_kind.h"
#include "src/config/config.h"
#include "src/core/component.h"
#include "tests/complexity/work.h"

enum { LINE_BYTES_MAX = 96, REFERENCES_PER_PIPELINE = 500 };

/* A YAML text being written. */
struct yaml {
    char *text;
    size_t size;
};

static void run_load(struct slice input)
{
    static const struct component_factory receiver = {
        .type = "nop", .kind = RECEIVER, .stability = "beta", .signals = SIGNAL_TRACES};
    static const struct component_factory exporter = {
        .type = "nop", .kind = EXPORTER, .stability = "beta", .signals = SIGNAL_TRACES};
    static const struct component_factory *const factories[] = {&receiver, &exporter, NULL};
    const char *location = (const char *)input.data;
    struct config_problems problems;
    work_begin();
    struct config *config = config_load(&(struct config_request){.locations = &location,
                                                                 .locations_count = 1,
                                                                 .factories = factories},
                                        &problems);
    work_end();
    config_destroy(config);
    config_problems_clear(&problems);
}

static struct yaml begin(size_t lines)
{
    struct yaml yaml = {.text = mem_zalloc((lines + 8) * LINE_BYTES_MAX)};
    yaml.size = (size_t)sprintf(yaml.text, "yaml:exporters: {nop: }\nreceivers:\n  nop:\n");
    return yaml;
}

__attribute__((format(printf, 2, 3))) static void add(struct yaml *yaml, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    yaml->size += (size_t)vsprintf(yaml->text + yaml->size, format, arguments);
    va_end(arguments);
}

static struct slice end(const struct yaml *yaml)
{
    return slice_of((const uint8_t *)yaml->text, yaml->size);
}

static void add_pipelines(struct yaml *yaml, size_t n)
{
    add(yaml, "service:\n  pipelines:\n");
    for (size_t i = 0; i < n; i++)
        add(yaml, "    traces/%zu: {receivers: [nop], exporters: [nop]}\n", i);
}

static void add_receivers(struct yaml *yaml, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add(yaml, "  nop/a_receiver_with_a_name_%zu:\n", i);
}

static struct slice receivers(size_t n)
{
    struct yaml yaml = begin(n);
    add_receivers(&yaml, n);
    add_pipelines(&yaml, 1);
    return end(&yaml);
}

static struct slice pipelines(size_t n)
{
    struct yaml yaml = begin(n);
    add_pipelines(&yaml, n);
    return end(&yaml);
}

/* None of the references is right, and each is like all receivers. */
static struct slice wrong_references(size_t n)
{
    struct yaml yaml = begin(2 * n + 3 * (n / REFERENCES_PER_PIPELINE + 1));
    add_receivers(&yaml, n);
    add(&yaml, "service:\n  pipelines:\n");
    for (size_t i = 0; i < n; i++) {
        if (i % REFERENCES_PER_PIPELINE == 0)
            add(&yaml, "    traces/%zu:\n      exporters: [nop]\n      receivers:\n", i);
        add(&yaml, "      - nop/another_with_a_name_%zu\n", i);
    }
    return end(&yaml);
}

static struct slice unknown_keys(size_t n)
{
    struct yaml yaml = begin(n);
    add_pipelines(&yaml, 1);
    for (size_t i = 0; i < n; i++)
        add(&yaml, "receiver_%zu: {}\n", i);
    return end(&yaml);
}

int main(int argc, char **argv)
{
    /* Most is for the names that the problems shown suggest. */
    static const struct work_stage stages[] = {
        {.name = "load", .run = run_load, .per_byte_max = 1700},
    };
    static const struct work_shape shapes[] = {
        {"receivers", receivers},
        {"pipelines", pipelines},
        {"references to receivers that there are not", wrong_references},
        {"unknown keys", unknown_keys},
    };
    return work_check(stages, 1, shapes, sizeof(shapes) / sizeof(shapes[0]), argc, argv) > 0;
}
