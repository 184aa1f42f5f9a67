/* SPDX-License-Identifier: Apache-2.0 */
/* What detectors find out about the process's environment and host: attributes, in order. Filled
 * once, on the main thread, then read by all lanes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/otlp/attributes/attribute_list.h"

struct error;

enum { DETECTED_ATTRIBUTES_MAX = 1024 };

struct detected {
    struct attribute *attributes; /* keys and encoded values, each one block; owned */
    size_t count;
    const char *schema_url; /* a constant; "": none */
};

void detected_fini(struct detected *detected);
/* Of equal keys the last counts, in the place of the first. Beyond DETECTED_ATTRIBUTES_MAX nothing
 * is added. */
void detected_put_text(struct detected *detected, const char *key, struct slice text);
void detected_put_integer(struct detected *detected, const char *key, int64_t value);
/* A list of strings; texts is one after the other, each with its NUL. */
void detected_put_texts(struct detected *detected, const char *key, const char *texts,
                        size_t count);
/* Adds what `to` has no key for. */
void detected_merge(struct detected *to, const struct detected *from);

/* env: OTEL_RESOURCE_ATTRIBUTES, else OTEL_RESOURCE: key=value,…, values percent-encoded. False: it
 * is malformed. */
bool detect_env(struct detected *detected, struct error *error);

/* dynatrace: the properties in the file that OneAgent writes, if there is one. */
#define DYNATRACE_PROPERTIES "/var/lib/dynatrace/enrichment/dt_host_metadata.properties"
bool detect_dynatrace(struct detected *detected, const char *path, struct error *error);

/* Which attributes of the host are wanted, by enum system_attribute. */
enum system_attribute {
    SYSTEM_HOST_NAME,
    SYSTEM_OS_TYPE,
    SYSTEM_OS_VERSION,
    SYSTEM_HOST_ID,
    SYSTEM_HOST_ARCH,
    SYSTEM_HOST_IP,
    SYSTEM_HOST_MAC,
    SYSTEM_HOST_INTERFACE,
    SYSTEM_OS_DESCRIPTION,
    SYSTEM_OS_NAME,
    SYSTEM_OS_BUILD_ID,
    SYSTEM_CPU_VENDOR,
    SYSTEM_CPU_FAMILY,
    SYSTEM_CPU_MODEL,
    SYSTEM_CPU_MODEL_NAME,
    SYSTEM_CPU_STEPPING,
    SYSTEM_CPU_CACHE,
    SYSTEM_ATTRIBUTES,
};

/* system: of the host, from /etc, /proc, the kernel and the resolver. sources: of its name, in
 * order: "os", "dns", "cname", "lookup". timeout_s: of one question to a name server. False: none
 * has a name. */
bool detect_system(struct detected *detected, const bool wanted[SYSTEM_ATTRIBUTES],
                   const char *const *sources, size_t sources_count, unsigned timeout_s,
                   struct error *error);

/* Which attributes of Docker's are wanted, by enum docker_attribute. */
enum docker_attribute {
    DOCKER_HOST_NAME,
    DOCKER_OS_TYPE,
    DOCKER_CONTAINER_NAME,
    DOCKER_IMAGE_NAME,
    DOCKER_ATTRIBUTES,
};

/* docker: what the daemon at DOCKER_HOST, or at its usual socket, says of its host, and, if such an
 * attribute is wanted, of the container that we run in. timeout_ns: of all of it. False: there is
 * no answer. */
bool detect_docker(struct detected *detected, const bool wanted[DOCKER_ATTRIBUTES],
                   uint64_t timeout_ns, struct error *error);
/* The members of a JSON object with these names that are strings; others are "". Names match
 * whatever their case, as in Go. False: it is no such object. The caller frees all texts with
 * mem_free, in both cases. */
bool docker_read_members(struct slice json, const char *const *names, size_t count, char **texts);
