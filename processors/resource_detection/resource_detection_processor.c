/* SPDX-License-Identifier: Apache-2.0 */
/* resource_detection: adds what detectors find out about the process's environment and its host to
 * every Resource. They run once, when the pipelines are built. */
#include <assert.h>
#include <string.h>

#include "processors/resource_detection/detector.h"
#include "processors/shared/resource_stage.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/config/field.h"

enum { TIMEOUT_S_MAX = 30 };

struct attribute_config {
    bool enabled;
};

struct system_attributes_config {
    struct attribute_config attributes[SYSTEM_ATTRIBUTES];
};

struct system_config {
    struct config_texts hostname_sources;
    struct system_attributes_config attributes;
};

struct docker_attributes_config {
    struct attribute_config attributes[DOCKER_ATTRIBUTES];
};

struct docker_config {
    struct docker_attributes_config attributes;
};

struct resource_detection_config {
    struct config_texts detectors;
    bool override;
    uint64_t timeout_ns;
    struct system_config system;
    struct docker_config docker;
};

static const struct config_field off_fields[] = {
    CONFIG_BOOL(struct attribute_config, enabled, "enabled", "false", "Add it."),
    CONFIG_END,
};
static const struct config_field on_fields[] = {
    CONFIG_BOOL(struct attribute_config, enabled, "enabled", "true", "Add it."),
    CONFIG_END,
};

#define ATTRIBUTE_OF(owner, place, name, standard, text)                                           \
    CONFIG_SECTION(owner, attributes[place], struct attribute_config, name, standard, NULL, text)
#define ATTRIBUTE(place, name, standard, text)                                                     \
    ATTRIBUTE_OF(struct system_attributes_config, place, name, standard, text)
#define OF_DOCKER(place, name, standard, text)                                                     \
    ATTRIBUTE_OF(struct docker_attributes_config, place, name, standard, text)
#define ON  on_fields
#define OFF off_fields
static const struct config_field system_attributes_fields[] = {
    ATTRIBUTE(SYSTEM_HOST_NAME, "host.name", ON, "The host's name."),
    ATTRIBUTE(SYSTEM_OS_TYPE, "os.type", ON, "linux."),
    ATTRIBUTE(SYSTEM_OS_VERSION, "os.version", OFF, "Version of the distribution."),
    ATTRIBUTE(SYSTEM_HOST_ID, "host.id", OFF, "/etc/machine-id."),
    ATTRIBUTE(SYSTEM_HOST_ARCH, "host.arch", OFF, "amd64, arm64 and the like."),
    ATTRIBUTE(SYSTEM_HOST_IP, "host.ip", OFF, "Addresses, but for loopback ones."),
    ATTRIBUTE(SYSTEM_HOST_MAC, "host.mac", OFF,
              "Hardware addresses, but for that of the loopback."),
    ATTRIBUTE(SYSTEM_HOST_INTERFACE, "host.interface", OFF, "Network interfaces."),
    ATTRIBUTE(SYSTEM_OS_DESCRIPTION, "os.description", OFF, "Distribution, version and kernel."),
    ATTRIBUTE(SYSTEM_OS_NAME, "os.name", OFF, "Name of the distribution."),
    ATTRIBUTE(SYSTEM_OS_BUILD_ID, "os.build.id", OFF,
              "BUILD_ID of the distribution, else the kernel's release."),
    ATTRIBUTE(SYSTEM_CPU_VENDOR, "host.cpu.vendor.id", OFF, "Of the first processor."),
    ATTRIBUTE(SYSTEM_CPU_FAMILY, "host.cpu.family", OFF, "Of the first processor."),
    ATTRIBUTE(SYSTEM_CPU_MODEL, "host.cpu.model.id", OFF, "Of the first processor."),
    ATTRIBUTE(SYSTEM_CPU_MODEL_NAME, "host.cpu.model.name", OFF, "Of the first processor."),
    ATTRIBUTE(SYSTEM_CPU_STEPPING, "host.cpu.stepping", OFF, "Of the first processor."),
    ATTRIBUTE(SYSTEM_CPU_CACHE, "host.cpu.cache.l2.size", OFF, "Of the first processor, in KiB."),
    CONFIG_END,
};

static const struct config_field system_fields[] = {
    CONFIG_TEXTS(struct system_config, hostname_sources, "hostname_sources", NULL,
                 "Where the host's name comes from, the first that has one: dns (full, from "
                 "/etc/hosts or name servers), os, cname, lookup (of its address). Default: dns, "
                 "os."),
    CONFIG_SECTION(struct system_config, attributes, struct system_attributes_config,
                   "resource_attributes", system_attributes_fields, NULL, "Which are added."),
    CONFIG_END,
};

static const struct config_field docker_attributes_fields[] = {
    OF_DOCKER(DOCKER_HOST_NAME, "host.name", ON, "Name of the daemon's host."),
    OF_DOCKER(DOCKER_OS_TYPE, "os.type", ON, "Of the daemon's host: linux."),
    OF_DOCKER(DOCKER_CONTAINER_NAME, "container.name", OFF,
              "Name of the container that this process is in, with the slash before it."),
    OF_DOCKER(DOCKER_IMAGE_NAME, "container.image.name", OFF, "Digest of its image, as in Go."),
    CONFIG_END,
};

static const struct config_field docker_fields[] = {
    CONFIG_SECTION(struct docker_config, attributes, struct docker_attributes_config,
                   "resource_attributes", docker_attributes_fields, NULL, "Which are added."),
    CONFIG_END,
};

static const char *const clouds[] = {
    "akamai",
    "aks",
    "alibaba_ecs",
    "azure",
    "digitalocean",
    "ec2",
    "ecs",
    "eks",
    "elastic_beanstalk", /* its section is elasticbeanstalk */
    "gcp",
    "heroku",
    "hetzner",
    "ibmcloud_classic",
    "ibmcloud_vpc",
    "lambda",
    "nova",
    "oraclecloud",
    "scaleway",
    "tencent_cvm",
    "upcloud",
    "vultr",
};
static const char *const missing[] = {
    "consul", "k8s_api", "k8snode", "kubeadm", "openshift",
};
static const char *const ours[] = {"env", "system", "docker", "dynatrace"};
static const char *const hostname_sources[] = {"os", "dns", "cname", "lookup"};

static bool is_one_of(const char *const *names, size_t count, struct slice name)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal_text(name, names[i]))
            return true;
    return false;
}
#define IS_ONE_OF(names, name) is_one_of(names, sizeof(names) / sizeof(names[0]), name)

static const char *warn_of_cloud(const char *text)
{
    return IS_ONE_OF(clouds, slice_trim(slice_of_text(text)))
               ? "adds nothing, as in the Go collector outside of that cloud: set its attributes "
                 "in OTEL_RESOURCE_ATTRIBUTES and use env"
               : NULL;
}

#define OF_DETECTOR "Of a detector that spanflame does not have."
#define OF_CLIENT   "Of detectors that ask over HTTP."
#define OWNER       struct resource_detection_config
static const struct config_field resource_detection_fields[] = {
    CONFIG_TEXTS_WARNED(
        OWNER, detectors, "detectors", "env", warn_of_cloud,
        "env (OTEL_RESOURCE_ATTRIBUTES), system (the host), docker (its daemon) and "
        "dynatrace (what OneAgent wrote), in order: the first that has an attribute counts. Those "
        "of clouds add nothing."),
    CONFIG_BOOL(OWNER, override, "override", "true",
                "Replace attributes that a Resource has already."),
    CONFIG_DURATION(
        OWNER, timeout_ns, "timeout", "5s", 0, INT64_MAX,
        "For each question to a name server, in whole seconds, and for Docker's daemon."),
    CONFIG_SECTION(OWNER, system, struct system_config, "system", system_fields, NULL, "The host."),
    CONFIG_SECTION(OWNER, docker, struct docker_config, "docker", docker_fields, NULL,
                   "What the Docker daemon says."),
    CONFIG_IGNORED_DURATION("refresh_interval", "Detectors run once."),
    CONFIG_IGNORED_MAP("akamai", OF_DETECTOR),
    CONFIG_IGNORED_MAP("aks", OF_DETECTOR),
    CONFIG_IGNORED_MAP("alibaba_ecs", OF_DETECTOR),
    CONFIG_IGNORED_MAP("azure", OF_DETECTOR),
    CONFIG_IGNORED_MAP("consul", OF_DETECTOR),
    CONFIG_IGNORED_MAP("digitalocean", OF_DETECTOR),
    CONFIG_IGNORED_MAP("ec2", OF_DETECTOR),
    CONFIG_IGNORED_MAP("ecs", OF_DETECTOR),
    CONFIG_IGNORED_MAP("eks", OF_DETECTOR),
    CONFIG_IGNORED_MAP("elasticbeanstalk", OF_DETECTOR),
    CONFIG_IGNORED_MAP("gcp", OF_DETECTOR),
    CONFIG_IGNORED_MAP("heroku", OF_DETECTOR),
    CONFIG_IGNORED_MAP("hetzner", OF_DETECTOR),
    CONFIG_IGNORED_MAP("ibmcloud_classic", OF_DETECTOR),
    CONFIG_IGNORED_MAP("ibmcloud_vpc", OF_DETECTOR),
    CONFIG_IGNORED_MAP("k8s_api", OF_DETECTOR),
    CONFIG_IGNORED_MAP("k8snode", OF_DETECTOR),
    CONFIG_IGNORED_MAP("kubeadm", OF_DETECTOR),
    CONFIG_IGNORED_MAP("lambda", OF_DETECTOR),
    CONFIG_IGNORED_MAP("nova", OF_DETECTOR),
    CONFIG_IGNORED_MAP("openshift", OF_DETECTOR),
    CONFIG_IGNORED_MAP("oraclecloud", OF_DETECTOR),
    CONFIG_IGNORED_MAP("scaleway", OF_DETECTOR),
    CONFIG_IGNORED_MAP("tencent_cvm", OF_DETECTOR),
    CONFIG_IGNORED_MAP("upcloud", OF_DETECTOR),
    CONFIG_IGNORED_MAP("vultr", OF_DETECTOR),
    CONFIG_IGNORED_TEXT("endpoint", OF_CLIENT),
    CONFIG_IGNORED_TEXT("proxy_url", OF_CLIENT),
    CONFIG_IGNORED_MAP("tls", OF_CLIENT),
    CONFIG_IGNORED_SIZE("read_buffer_size", OF_CLIENT),
    CONFIG_IGNORED_SIZE("write_buffer_size", OF_CLIENT),
    CONFIG_IGNORED_MAP("headers", OF_CLIENT),
    CONFIG_IGNORED_MAP("auth", OF_CLIENT),
    CONFIG_IGNORED_TEXT("compression", OF_CLIENT),
    CONFIG_IGNORED_MAP("compression_params", OF_CLIENT),
    CONFIG_IGNORED_INT("max_idle_conns", OF_CLIENT),
    CONFIG_IGNORED_INT("max_idle_conns_per_host", OF_CLIENT),
    CONFIG_IGNORED_INT("max_conns_per_host", OF_CLIENT),
    CONFIG_IGNORED_DURATION("idle_conn_timeout", OF_CLIENT),
    CONFIG_IGNORED_BOOL("disable_keep_alives", OF_CLIENT),
    CONFIG_IGNORED_DURATION("http2_read_idle_timeout", OF_CLIENT),
    CONFIG_IGNORED_DURATION("http2_ping_timeout", OF_CLIENT),
    CONFIG_IGNORED_MAP("cookies", OF_CLIENT),
    CONFIG_IGNORED_BOOL("force_attempt_http2", OF_CLIENT),
    CONFIG_IGNORED_LIST("middlewares", OF_CLIENT),
    CONFIG_END,
};
#undef OWNER

static struct slice detector_name(const struct resource_detection_config *config, size_t i)
{
    return slice_trim(slice_of_text(config->detectors.texts[i]));
}

static bool resource_detection_check(const void *section, struct error *error)
{
    const struct resource_detection_config *config = section;
    const struct config_texts *sources = &config->system.hostname_sources;
    for (size_t i = 0; i < sources->count; i++)
        if (!IS_ONE_OF(hostname_sources, slice_of_text(sources->texts[i])))
            return error_set(error, "unknown source \"%s\": expected os, dns, cname or lookup",
                             sources->texts[i]) ||
                   error_at_index(error, i) || error_at(error, "hostname_sources") ||
                   error_at(error, "system");
    if (config->detectors.count == 0)
        return error_set(error, "no detectors: expected a list, such as [env, system]") ||
               error_at(error, "detectors");
    for (size_t i = 0; i < config->detectors.count; i++) {
        struct slice name = detector_name(config, i);
        if (IS_ONE_OF(ours, name) || IS_ONE_OF(clouds, name))
            continue;
        bool is_missing = IS_ONE_OF(missing, name);
        error_set(error, "%s detector \"%.*s\": expected env, system, docker or dynatrace%s",
                  is_missing ? "spanflame does not have the" : "unknown", (int)name.size,
                  (const char *)name.data,
                  is_missing ? ". Set its attributes in OTEL_RESOURCE_ATTRIBUTES and use env" : "");
        if (is_missing)
            error_unsupported(error);
        return error_at_index(error, i) || error_at(error, "detectors");
    }
    return true;
}

/* Of all lanes and pipelines. */
struct detection {
    struct detected detected;
    struct resource_merge merge;
};

static void resource_detection_unshare(void *shared)
{
    struct detection *detection = shared;
    detected_fini(&detection->detected);
    mem_free(detection);
}

static bool detect(const struct resource_detection_config *config, struct slice name,
                   struct detected *detected, struct error *error)
{
    static const char *const standard[] = {"dns", "os"};
    const struct config_texts *sources = &config->system.hostname_sources;
    uint64_t timeout_s = (config->timeout_ns + NS_PER_S - 1) / NS_PER_S;
    bool wanted[SYSTEM_ATTRIBUTES];
    if (slice_equal_text(name, "env"))
        return detect_env(detected, error);
    if (slice_equal_text(name, "dynatrace"))
        return detect_dynatrace(detected, DYNATRACE_PROPERTIES, error);
    if (slice_equal_text(name, "docker")) {
        bool of_docker[DOCKER_ATTRIBUTES];
        for (size_t i = 0; i < DOCKER_ATTRIBUTES; i++)
            of_docker[i] = config->docker.attributes.attributes[i].enabled;
        return detect_docker(detected, of_docker, config->timeout_ns, error);
    }
    if (!slice_equal_text(name, "system"))
        return true;
    for (size_t i = 0; i < SYSTEM_ATTRIBUTES; i++)
        wanted[i] = config->system.attributes.attributes[i].enabled;
    timeout_s = timeout_s == 0 ? 1 : timeout_s;
    return detect_system(detected, wanted, sources->count > 0 ? sources->texts : standard,
                         sources->count > 0 ? sources->count : 2,
                         timeout_s < TIMEOUT_S_MAX ? (unsigned)timeout_s : TIMEOUT_S_MAX, error);
}

static void *resource_detection_share(const struct component *first, unsigned lanes,
                                      struct error *error)
{
    const struct resource_detection_config *config = first->config;
    struct detection *detection = mem_zalloc(sizeof(*detection));
    (void)lanes;
    detection->detected.schema_url = "";
    for (size_t i = 0; i < config->detectors.count && !component_is_rehearsed(first); i++) {
        struct detected found = {.schema_url = ""};
        bool has_worked = detect(config, detector_name(config, i), &found, error);
        if (has_worked)
            detected_merge(&detection->detected, &found);
        detected_fini(&found);
        if (!has_worked) {
            error_at(error, "detectors");
            resource_detection_unshare(detection);
            return NULL;
        }
    }
    detection->merge = (struct resource_merge){
        .attributes = detection->detected.attributes,
        .count = detection->detected.count,
        .overrides = config->override,
        .schema_url = slice_of_text(detection->detected.schema_url),
    };
    return detection;
}

static bool resource_detection_create(struct component *component, struct error *error)
{
    const struct detection *detection = component->shared;
    (void)error;
    assert(detection != NULL);
    resource_stage_init((struct resource_stage *)component, NULL, &detection->merge);
    return true;
}

static const char *const resource_detection_aliases[] = {"resourcedetection", NULL};

const struct component_factory resource_detection_processor_factory = {
    .type = "resource_detection",
    .aliases = resource_detection_aliases,
    .kind = PROCESSOR,
    .stability = "beta",
    .signals = RESOURCE_STAGE_SIGNALS,
    .instance_size = sizeof(struct resource_stage),
    .config_size = sizeof(struct resource_detection_config),
    .fields = resource_detection_fields,
    .counters_size = sizeof(struct edit_stage_counters),
    .counters = resource_stage_rows,
    .check = resource_detection_check,
    .share = resource_detection_share,
    .unshare = resource_detection_unshare,
    .create = resource_detection_create,
    .consume = edit_stage_consume,
    .stop = edit_stage_stop,
    .destroy = resource_stage_destroy,
};
