/* SPDX-License-Identifier: Apache-2.0 */
/* service: by its option table; our own keys stand beside those of the Go collector. Main thread.
 */
#include "src/config/service_keys.h"

#include <assert.h>

#include "src/base/limits.h"
#include "src/config/decode.h"
#include "src/config/loader.h"
#include "src/config/telemetry_keys.h"

struct service_section {
    uint64_t lanes;
    uint64_t budget_mib;
    uint64_t drain_timeout_ns;
    bool core_dumps;
    struct telemetry_keys telemetry;
    /* Read by pipelines.c, as they refer to components. */
    const struct config_value *extensions;
    const struct config_value *pipelines;
};

static const char *const lanes_words[] = {"auto", NULL};

const struct config_field service_keys_fields[] = {
    CONFIG_VALUE(struct service_section, extensions, "extensions",
                 "The extensions to run, in the order of their start."),
    CONFIG_VALUE(struct service_section, pipelines, "pipelines",
                 "By signal[/name]: lists of receivers, processors and exporters."),
    CONFIG_SECTION(struct service_section, telemetry, struct telemetry_keys, "telemetry",
                   telemetry_keys_fields, NULL, "What the daemon says of itself."),
    CONFIG_COUNT_OR(struct service_section, lanes, "lanes", "1", 1, LANES_MAX, lanes_words,
                    "Threads that do the work; auto is one per core. Not in the Go collector."),
    CONFIG_COUNT(struct service_section, budget_mib, "budget_mib", "0", 0, 1 << 24,
                 "What all requests in flight may take, in MiB; 0 derives it from the machine. Not "
                 "in the Go collector."),
    CONFIG_DURATION(struct service_section, drain_timeout_ns, "drain_timeout", "30s", 0, INT64_MAX,
                    "How long a stop waits for what is on its way. Not in the Go collector."),
    CONFIG_BOOL(struct service_section, core_dumps, "core_dumps", "false",
                "Whether a crash may write the memory, with the secrets in it, to a core file, and "
                "debuggers of the same user may attach. Not in the Go collector."),
    CONFIG_END,
};

void service_keys_load(struct loader *loader, const struct node_entry *service,
                       struct config_service *ret_service)
{
    struct path root = {.parent = NULL};
    struct path path = {.parent = &root, .key = "service"};
    struct path telemetry_path = {.parent = &path, .key = "telemetry"};
    struct config_field section_row = {
        .type = CONFIG_TYPE_SECTION, .presence = CONFIG_ALWAYS, .fields = service_keys_fields};
    struct site site = {.loader = loader, .path = &path};
    struct service_section section = {.lanes = 0};
    assert(loader != NULL);
    assert(ret_service != NULL);
    const struct node *node = service != NULL ? service->value : NULL;
    decode_defaults(loader, service_keys_fields, &section);
    if (service != NULL && node->kind != NODE_BROKEN) {
        site.position = service->position;
        decode_section(&site, &section_row, node, &section);
    }
    ret_service->lanes = section.lanes;
    ret_service->budget_mib = section.budget_mib;
    ret_service->drain_timeout_ns = section.drain_timeout_ns;
    ret_service->core_dumps = section.core_dumps;
    site.path = &telemetry_path;
    telemetry_keys_resolve(&site, node_value(node, "telemetry"), &section.telemetry, ret_service);
}
