/* SPDX-License-Identifier: Apache-2.0 */
/* Fake files and components. */
#include "tests/unit/config/support.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "src/base/error.h"
#include "src/base/fileops.h"
#include "src/base/mem.h"
#include "src/core/component.h"

enum { FILES_MAX = 8, FIRST_FD = 1000 };

struct memory_file {
    const char *name;
    const char *bytes;
    size_t size;
    size_t offset;
};

static struct memory_file files[FILES_MAX];

static struct memory_file *find_file(const char *path)
{
    for (size_t i = 0; i < FILES_MAX && files[i].name != NULL; i++)
        if (strcmp(files[i].name, path) == 0)
            return &files[i];
    return NULL;
}

static int memory_open(const char *path, int flags, mode_t mode)
{
    struct memory_file *file = find_file(path);
    (void)flags;
    (void)mode;
    if (file == NULL)
        return -ENOENT;
    file->offset = 0;
    return FIRST_FD + (int)(file - files);
}

static int memory_close(int fd)
{
    (void)fd;
    return 0;
}

static ssize_t memory_read(int fd, void *data, size_t size)
{
    struct memory_file *file = &files[fd - FIRST_FD];
    size_t left = file->size - file->offset;
    size_t taken = left < size ? left : size;
    if (taken > 0)
        memcpy(data, file->bytes + file->offset, taken);
    file->offset += taken;
    return (ssize_t)taken;
}

static int memory_stat(const char *path, struct stat *ret_stat)
{
    struct memory_file *file = find_file(path);
    if (file == NULL)
        return -ENOENT;
    *ret_stat = (struct stat){.st_mode = S_IFREG | 0600, .st_size = (off_t)file->size};
    return 0;
}

static const struct fileops memory_ops = {
    .open = memory_open, .close = memory_close, .read = memory_read, .stat = memory_stat};

void memory_files_set(const char *const *names_and_texts)
{
    memset(files, 0, sizeof(files));
    fileops_replace(names_and_texts != NULL ? &memory_ops : NULL);
    for (size_t i = 0; names_and_texts != NULL && names_and_texts[2 * i] != NULL; i++)
        files[i] = (struct memory_file){.name = names_and_texts[2 * i],
                                        .bytes = names_and_texts[2 * i + 1],
                                        .size = strlen(names_and_texts[2 * i + 1])};
}

void memory_files_set_bytes(const void *bytes, size_t size)
{
    memset(files, 0, sizeof(files));
    fileops_replace(&memory_ops);
    files[0] = (struct memory_file){.name = "otel.yaml", .bytes = bytes, .size = size};
}

struct fake_otlp_endpoint {
    const char *endpoint;
};

struct fake_otlp_config {
    bool has_grpc;
    struct fake_otlp_endpoint grpc;
    bool has_http;
    struct fake_otlp_endpoint http;
};

static const struct config_field endpoint_fields[] = {
    CONFIG_TEXT(struct fake_otlp_endpoint, endpoint, "endpoint", "localhost:4317",
                "Where to listen."),
    CONFIG_END,
};

struct fake_otlp_protocols {
    struct fake_otlp_config protocols;
};

static const struct config_field protocols_fields[] = {
    CONFIG_OPTIONAL(struct fake_otlp_config, grpc, struct fake_otlp_endpoint, has_grpc,
                    CONFIG_NULL_ENABLES, "grpc", endpoint_fields, NULL, "OTLP over gRPC."),
    CONFIG_OPTIONAL(struct fake_otlp_config, http, struct fake_otlp_endpoint, has_http,
                    CONFIG_NULL_ENABLES, "http", endpoint_fields, NULL, "OTLP over HTTP."),
    CONFIG_END,
};

static bool protocols_check(const void *section, struct error *error)
{
    const struct fake_otlp_config *protocols = section;
    if (protocols->has_grpc || protocols->has_http)
        return true;
    return error_set(error, "must specify at least one protocol");
}

static const struct config_field otlp_fields[] = {
    CONFIG_SECTION(struct fake_otlp_protocols, protocols, struct fake_otlp_config, "protocols",
                   protocols_fields, protocols_check, "What is spoken."),
    CONFIG_END,
};

static const char *const choices[] = {"gzip", "none", "", NULL};
static const char *const count_words[] = {"auto", NULL};

static bool part_check(const void *section, struct error *error)
{
    const struct probe_part *part = section;
    return part->size != 13 || error_set(error, "found size 13, expected a luckier one");
}

static const struct config_field part_fields[] = {
    CONFIG_TEXT(struct probe_part, name, "name", "standard", "Its name."),
    CONFIG_COUNT(struct probe_part, size, "size", "7", 1, 100, "Its size."),
    CONFIG_END,
};

static const struct config_field probe_fields[] = {
    CONFIG_BOOL(struct probe_config, flag, "flag", "true", "A flag."),
    CONFIG_COUNT_OR(struct probe_config, count, "count", "8192", 0, 65535, count_words, "A count."),
    CONFIG_INT(struct probe_config, number, "number", "-5", -100, 5000000000, "A number."),
    CONFIG_INT(struct probe_config, number, "amount", "-5", -100, 5000000000,
               "The old name of number."),
    CONFIG_DOUBLE(struct probe_config, ratio, "ratio", "0.5", "A ratio."),
    CONFIG_DURATION(struct probe_config, timeout_ns, "timeout", "200ms", 0, 3600000000000,
                    "A time."),
    CONFIG_TEXT(struct probe_config, text, "text", "1.0", "A string | with a bar."),
    CONFIG_SECRET(struct probe_config, secret, "secret", "A secret."),
    CONFIG_CHOICE(struct probe_config, choice, "choice", "none", choices, "A choice."),
    CONFIG_TEXTS(struct probe_config, texts, "texts", "a,b", "Texts."),
    CONFIG_SECRETS(struct probe_config, secrets, "secrets", "Secrets."),
    CONFIG_HEADERS(struct probe_config, headers, "headers", "Headers."),
    CONFIG_VALUE(struct probe_config, value, "value", "Any value."),
    CONFIG_SECTION(struct probe_config, always, struct probe_part, "always", part_fields,
                   part_check, "Always there."),
    CONFIG_OPTIONAL(struct probe_config, on, struct probe_part, has_on, CONFIG_DEFAULT_ON, "on",
                    part_fields, part_check, "On by default."),
    CONFIG_OPTIONAL(struct probe_config, enabling, struct probe_part, has_enabling,
                    CONFIG_NULL_ENABLES, "enabling", part_fields, part_check,
                    "Null switches it on."),
    CONFIG_OPTIONAL(struct probe_config, off, struct probe_part, has_off, CONFIG_NULL_IS_OFF, "off",
                    part_fields, part_check, "Off when null."),
    CONFIG_OPTIONAL(struct probe_config, retry, struct probe_part, has_retry,
                    CONFIG_ON_UNLESS_UNSET, "retry", part_fields, part_check, "As retries are."),
    CONFIG_SECTIONS(struct probe_config, parts, struct probe_part, "parts", part_fields, part_check,
                    "A list of sections."),
    CONFIG_IGNORED("old", "Has no effect."),
    CONFIG_IGNORED_BOOL("old_flag", "Has no effect."),
    CONFIG_IGNORED_INT("old_number", "Has no effect."),
    CONFIG_IGNORED_DURATION("old_timeout", "Has no effect."),
    CONFIG_IGNORED_TEXT("old_text", "Has no effect."),
    CONFIG_IGNORED_TEXTS("old_texts", "Has no effect."),
    CONFIG_IGNORED_MAP("old_map", "Has no effect."),
    CONFIG_IGNORED_LIST("old_list", "Has no effect."),
    CONFIG_END,
};

static bool probe_check(const void *config, struct error *error)
{
    const struct probe_config *probe = config;
    return probe->count != 666 || error_set(error, "found count 666, expected another");
}

enum {
    THREE = SIGNAL_TRACES | SIGNAL_METRICS | SIGNAL_LOGS,
    FOUR = THREE | SIGNAL_PROFILES,
};

static const char *const otlp_http_aliases[] = {"otlphttp", NULL};
static const char *const debug_aliases[] = {"logging", NULL};

struct fake_http_config {
    const char *endpoint;
    struct config_pairs headers;
};

static const struct config_field http_fields[] = {
    CONFIG_TEXT(struct fake_http_config, endpoint, "endpoint", NULL, "Where to send."),
    CONFIG_HEADERS(struct fake_http_config, headers, "headers", "Sent with each request."),
    CONFIG_CHOICE(struct probe_config, choice, "compression", "gzip", choices, "How to squeeze."),
    CONFIG_END,
};

struct fake_resource_config {
    const struct config_value *attributes;
};

static const struct config_field resource_fields[] = {
    CONFIG_VALUE(struct fake_resource_config, attributes, "attributes", "What to do."),
    CONFIG_END,
};

static const struct config_field batch_fields[] = {
    CONFIG_DURATION(struct probe_config, timeout_ns, "timeout", "200ms", 0, INT64_MAX,
                    "Send after this long."),
    CONFIG_COUNT(struct probe_config, count, "send_batch_size", "8192", 0, INT64_MAX,
                 "Send this many."),
    CONFIG_TEXTS(struct probe_config, texts, "metadata_keys", NULL, "Batches by client."),
    CONFIG_END,
};

static const struct component_factory otlp = {.type = "otlp",
                                              .kind = RECEIVER,
                                              .stability = "stable",
                                              .signals = FOUR,
                                              .config_size = sizeof(struct fake_otlp_protocols),
                                              .fields = otlp_fields};
static const struct component_factory nop_receiver = {
    .type = "nop", .kind = RECEIVER, .stability = "beta", .signals = FOUR};
static const struct component_factory probe = {.type = "probe",
                                               .kind = PROCESSOR,
                                               .stability = "alpha",
                                               .signals = FOUR,
                                               .config_size = sizeof(struct probe_config),
                                               .fields = probe_fields,
                                               .check = probe_check};
static const struct component_factory batch = {.type = "batch",
                                               .later_name = "batch_up",
                                               .kind = PROCESSOR,
                                               .stability = "beta",
                                               .signals = FOUR,
                                               .config_size = sizeof(struct probe_config),
                                               .fields = batch_fields};
static const struct component_factory resource = {.type = "resource",
                                                  .kind = PROCESSOR,
                                                  .stability = "beta",
                                                  .signals = FOUR,
                                                  .config_size =
                                                      sizeof(struct fake_resource_config),
                                                  .fields = resource_fields};
static const struct component_factory nop_processor = {
    .type = "nop", .kind = PROCESSOR, .stability = "beta", .signals = FOUR};
static const struct component_factory otlp_http = {.type = "otlp_http",
                                                   .aliases = otlp_http_aliases,
                                                   .kind = EXPORTER,
                                                   .stability = "stable",
                                                   .signals = FOUR,
                                                   .config_size = sizeof(struct probe_config),
                                                   .fields = http_fields};
/* The one that does not know profiles. */
static const struct component_factory debug = {.type = "debug",
                                               .aliases = debug_aliases,
                                               .kind = EXPORTER,
                                               .stability = "alpha",
                                               .signals = THREE};
static const struct component_factory nop_exporter = {
    .type = "nop", .kind = EXPORTER, .stability = "beta", .signals = FOUR};
static const struct component_factory forward = {.type = "forward",
                                                 .kind = CONNECTOR,
                                                 .stability = "beta",
                                                 .connects = {[TRACES] = SIGNAL_TRACES,
                                                              [METRICS] = SIGNAL_METRICS,
                                                              [LOGS] = SIGNAL_LOGS,
                                                              [PROFILES] = SIGNAL_PROFILES},
                                                 .passes_on = true};
/* Where items end. */
static const struct component_factory count_connector = {
    .type = "count",
    .kind = CONNECTOR,
    .stability = "alpha",
    .connects = {[TRACES] = SIGNAL_METRICS, [LOGS] = SIGNAL_METRICS | SIGNAL_LOGS}};
static const struct component_factory health_check = {
    .type = "health_check", .kind = EXTENSION, .stability = "beta"};

const struct component_factory *const fake_factories[] = {
    &otlp,  &nop_receiver, &probe,   &batch,           &resource,     &nop_processor, &otlp_http,
    &debug, &nop_exporter, &forward, &count_connector, &health_check, NULL,
};

struct load_result load_text(const char *text)
{
    static const char *const location = "otel.yaml";
    struct load_result result;
    struct config_request request = {
        .locations = &location, .locations_count = 1, .factories = fake_factories};
    memory_files_set((const char *const[]){location, text, NULL});
    result.config = config_load(&request, &result.problems);
    memory_files_set(NULL);
    return result;
}

struct load_result load_probe(const char *probe_text)
{
    static const char form[] = "receivers: {nop: }\n"
                               "exporters: {nop: }\n"
                               "service: {pipelines: {traces: {receivers: [nop], processors: "
                               "[probe], exporters: [nop]}}}\n"
                               "processors:\n"
                               "    probe:\n"
                               "      %s\n";
    size_t size = sizeof(form) + strlen(probe_text);
    char *text = mem_alloc(size);
    snprintf(text, size, form, probe_text);
    struct load_result result = load_text(text);
    mem_free(text);
    return result;
}

const struct probe_config *probe_of(const struct load_result *result)
{
    assert_loaded(result);
    for (size_t i = 0; i < result->config->components_count; i++)
        if (strcmp(result->config->components[i].factory->type, "probe") == 0)
            return result->config->components[i].config;
    fail_msg("there is no probe");
    return NULL;
}

void load_result_clear(struct load_result *result)
{
    config_destroy(result->config);
    config_problems_clear(&result->problems);
    result->config = NULL;
}

char *problems_to_text(const struct config_problems *problems)
{
    size_t size = 1;
    for (size_t i = 0; i < problems->count + problems->warnings_count; i++)
        size += 10 + strlen(i < problems->count ? problems->texts[i]
                                                : problems->warnings[i - problems->count]);
    char *text = mem_alloc(size);
    char *to = text;
    for (size_t i = 0; i < problems->count; i++)
        to += sprintf(to, "%s\n", problems->texts[i]);
    for (size_t i = 0; i < problems->warnings_count; i++)
        to += sprintf(to, "warning: %s\n", problems->warnings[i]);
    *to = '\0';
    return text;
}

static void assert_some(const struct load_result *result, char *const *texts, size_t count,
                        const char *part)
{
    for (size_t i = 0; i < count; i++)
        if (strstr(texts[i], part) != NULL)
            return;
    print_error("expected: %s\nfound:\n%s", part, problems_to_text(&result->problems));
    fail();
}

void assert_problem(const struct load_result *result, const char *part)
{
    assert_some(result, result->problems.texts, result->problems.count, part);
    assert_null(result->config);
}

void assert_warning(const struct load_result *result, const char *part)
{
    assert_some(result, result->problems.warnings, result->problems.warnings_count, part);
}

void assert_loaded(const struct load_result *result)
{
    if (result->config != NULL)
        return;
    print_error("%s", problems_to_text(&result->problems));
    fail();
}
