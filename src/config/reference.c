/* SPDX-License-Identifier: Apache-2.0 */
/* Writes config/reference.md and the output of `components`, from the factories. Main thread. */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "src/config/byte_size.h"
#include "src/config/component_set.h"
#include "src/config/config.h"
#include "src/config/duration.h"
#include "src/config/service_keys.h"
#include "src/core/component.h"

enum { KEY_PATH_MAX = 256, DEPTH_MAX = 16 };

static const char *const type_names[] = {
    [CONFIG_TYPE_BOOL] = "true or false",
    [CONFIG_TYPE_COUNT] = "whole number",
    [CONFIG_TYPE_INT] = "whole number",
    [CONFIG_TYPE_DOUBLE] = "number",
    [CONFIG_TYPE_BYTES] = "bytes",
    [CONFIG_TYPE_DURATION] = "duration",
    [CONFIG_TYPE_TEXT] = "string",
    [CONFIG_TYPE_SECRET] = "string (secret)",
    [CONFIG_TYPE_CHOICE] = "one of",
    [CONFIG_TYPE_TEXTS] = "list of strings",
    [CONFIG_TYPE_SECRETS] = "list of strings (secret)",
    [CONFIG_TYPE_HEADERS] = "map of strings (secret)",
    [CONFIG_TYPE_PAIRS] = "map of strings",
    [CONFIG_TYPE_VALUE] = "any",
    [CONFIG_TYPE_SECTION] = "section",
    [CONFIG_TYPE_SECTIONS] = "list of sections",
    [CONFIG_TYPE_IGNORED] = "accepted, no effect",
};
static const char *const presences[] = {
    [CONFIG_ALWAYS] = "",
    [CONFIG_DEFAULT_ON] = "on",
    [CONFIG_NULL_ENABLES] = "off; the bare key turns it on",
    [CONFIG_NULL_IS_OFF] = "off",
    [CONFIG_ON_UNLESS_UNSET] = "on",
};

/* Escapes the text for a cell of a table. */
static void write_cell(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void write_bound(const struct config_field *field, int64_t bound, FILE *out)
{
    if (field->type == CONFIG_TYPE_DURATION)
        fputs(duration_to_text(bound > 0 ? bound : 0).text, out);
    else if (field->type == CONFIG_TYPE_BYTES)
        fputs(bytes_to_text((uint64_t)bound).text, out);
    else
        fprintf(out, "%" PRIi64, bound);
}

static void write_rows(const struct config_field *fields, const char *prefix, unsigned depth,
                       FILE *out)
{
    char key[KEY_PATH_MAX];
    assert(depth < DEPTH_MAX);
    for (; fields != NULL && fields->key != NULL; fields++) {
        bool is_list = fields->type == CONFIG_TYPE_SECTIONS;
        const char *element = !is_list ? "" : fields->is_map ? "::NAME" : "[]";
        snprintf(key, sizeof(key), "%s%s%s", prefix, fields->key, element);
        assert((size_t)fields->type < sizeof(type_names) / sizeof(type_names[0]));
        assert((size_t)fields->presence < sizeof(presences) / sizeof(presences[0]));
        fprintf(out, "| `%s` | %s | ", key,
                fields->is_map ? "map of sections" : type_names[fields->type]);
        if (fields->type == CONFIG_TYPE_SECTION) {
            fputs(presences[fields->presence], out);
        } else if (fields->default_text != NULL && fields->default_text[0] != '\0') {
            fputc('`', out);
            write_cell(fields->default_text, out);
            fputc('`', out);
        }
        fputs(" | ", out);
        bool has_range = fields->type == CONFIG_TYPE_COUNT || fields->type == CONFIG_TYPE_INT ||
                         fields->type == CONFIG_TYPE_DURATION || fields->type == CONFIG_TYPE_BYTES;
        for (size_t i = 0; fields->choices != NULL && fields->choices[i] != NULL; i++)
            fprintf(out, "%s`%s`", i > 0 ? ", " : "",
                    fields->choices[i][0] != '\0' ? fields->choices[i] : "\"\"");
        if (has_range) {
            if (fields->choices != NULL)
                fputs(", ", out);
            write_bound(fields, fields->min, out);
            if (fields->max == INT64_MAX) {
                fputs(" or more", out);
            } else {
                fputs(" to ", out);
                write_bound(fields, fields->max, out);
            }
        }
        fputs(" | ", out);
        write_cell(fields->help != NULL ? fields->help : "", out);
        fputs(" |\n", out);
        snprintf(key, sizeof(key), "%s%s%s::", prefix, fields->key, element);
        if (fields->fields != NULL)
            write_rows(fields->fields, key, depth + 1, out);
    }
}

static void write_table(const struct config_field *fields, FILE *out)
{
    if (fields == NULL || fields->key == NULL) {
        fputs("No keys.\n\n", out);
        return;
    }
    fputs("| key | type | default | allowed | |\n| --- | --- | --- | --- | --- |\n", out);
    write_rows(fields, "", 0, out);
    fputc('\n', out);
}

static void write_factory(const struct component_factory *factory, FILE *out)
{
    fprintf(out, "### %s: `%s`\n\nStability: %s.", component_kind_name(factory->kind),
            factory->type, factory->stability != NULL ? factory->stability : "development");
    assert(factory->kind <= EXTENSION);
    bool is_first = true;
    if (factory->kind != EXTENSION) {
        fputs(" Signals: ", out);
        for (unsigned i = 0; i < SIGNAL_KINDS; i++)
            for (unsigned j = 0; j < SIGNAL_KINDS; j++) {
                if ((factory->connects[i] & 1u << j) == 0)
                    continue;
                fprintf(out, "%s%s to %s", is_first ? "" : ", ", signal_name((enum signal_kind)i),
                        signal_name((enum signal_kind)j));
                is_first = false;
            }
        for (unsigned i = 0; i < SIGNAL_KINDS; i++) {
            if ((factory->signals & 1u << i) == 0)
                continue;
            fprintf(out, "%s%s", is_first ? "" : ", ", signal_name((enum signal_kind)i));
            is_first = false;
        }
        fputc('.', out);
    }
    for (size_t i = 0; factory->aliases != NULL && factory->aliases[i] != NULL; i++)
        fprintf(out, " Deprecated alias: `%s`.", factory->aliases[i]);
    if (factory->later_name != NULL)
        fprintf(out, " Later collectors call it `%s`; both names work.", factory->later_name);
    fputs("\n\n", out);
    write_table(factory->fields, out);
}

void config_print_reference(const struct component_factory *const *factories, FILE *out)
{
    fputs(
        "# Configuration reference\n\nPrinted from the option tables by `spanflame "
        "config-reference`; do not edit.\n\nNested keys are written with `::`. Every section that "
        "is not always on takes `enabled: true` or `enabled: false`.\n\n",
        out);
    for (unsigned kind = 0; kind < COMPONENT_KINDS; kind++) {
        fprintf(out, "## %s\n\n", component_kind_section((enum component_kind)kind));
        for (size_t i = 0; factories[i] != NULL; i++)
            if (factories[i]->kind == (enum component_kind)kind)
                write_factory(factories[i], out);
    }
    fputs("## service\n\n", out);
    write_table(service_keys_fields, out);
}

static void write_kind(const struct component_factory *const *factories, enum component_kind kind,
                       FILE *out)
{
    bool is_empty = true;
    for (size_t i = 0; factories[i] != NULL; i++) {
        if (factories[i]->kind != kind)
            continue;
        if (is_empty)
            fprintf(out, "%s:\n", component_kind_section(kind));
        is_empty = false;
        fprintf(out, "    - name: %s\n      module: spanflame v%s\n", factories[i]->type,
                SPANFLAME_VERSION);
        const struct component_factory *factory = factories[i];
        assert(factory->kind <= EXTENSION);
        const char *stability = factory->stability != NULL ? factory->stability : "development";
        fputs("      stability:\n", out);
        if (factory->kind == EXTENSION)
            fprintf(out, "        extension: %c%s\n", toupper((unsigned char)stability[0]),
                    stability + 1);
        /* In the order of their names, as the Go collector prints them. */
        static const enum signal_kind order[] = {LOGS, METRICS, PROFILES, TRACES};
        for (size_t j = 0; factory->kind == CONNECTOR && j < SIGNAL_KINDS * SIGNAL_KINDS; j++) {
            enum signal_kind in = order[j / SIGNAL_KINDS];
            enum signal_kind to = order[j % SIGNAL_KINDS];
            bool is_supported = (factory->connects[in] & 1u << to) != 0;
            /* It lists unsupported pairs as well, except those with profiles. */
            if (is_supported || (in != PROFILES && to != PROFILES))
                fprintf(out, "        %s-to-%s: %c%s\n", signal_name(in), signal_name(to),
                        is_supported ? toupper((unsigned char)stability[0]) : 'U',
                        is_supported ? stability + 1 : "ndefined");
        }
        for (size_t j = 0; factory->kind != EXTENSION && j < SIGNAL_KINDS; j++) {
            if ((factory->signals & 1u << order[j]) != 0)
                fprintf(out, "        %s: %c%s\n", signal_name(order[j]),
                        toupper((unsigned char)stability[0]), stability + 1);
        }
    }
    if (is_empty)
        fprintf(out, "%s: []\n", component_kind_section(kind));
}

void config_print_components(const struct component_factory *const *factories, FILE *out)
{
    fprintf(out,
            "buildinfo:\n    command: spanflame\n    description: OpenTelemetry pipeline daemon\n"
            "    version: %s\n",
            SPANFLAME_VERSION);
    write_kind(factories, RECEIVER, out);
    write_kind(factories, PROCESSOR, out);
    write_kind(factories, EXPORTER, out);
    write_kind(factories, CONNECTOR, out);
    write_kind(factories, EXTENSION, out);
    fputs("providers:\n", out);
    static const char *const schemes[] = {"env", "file", "yaml"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
        fprintf(out, "    - scheme: %s\n      module: spanflame v%s\n", schemes[i],
                SPANFLAME_VERSION);
    fputs("converters: []\n", out);
}
