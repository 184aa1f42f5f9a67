/* SPDX-License-Identifier: Apache-2.0 */
/* The service and the process that a Resource, of spans or of profiles, describes. Pure functions;
 * any thread. */
#pragma once

#include <stdint.h>

#include "src/base/slice.h"

enum resource_key {
    RESOURCE_SERVICE_NAME,
    RESOURCE_SERVICE_NAMESPACE,
    RESOURCE_SERVICE_INSTANCE,
    RESOURCE_ENVIRONMENT,
    RESOURCE_ENVIRONMENT_NAME,
    RESOURCE_IDENTITY_KEYS, /* those above are the identity of a service */
    RESOURCE_CONTAINER = RESOURCE_IDENTITY_KEYS,
    RESOURCE_POD,
    RESOURCE_POD_CONTAINER,
    RESOURCE_HOST_ID,
    RESOURCE_HOST_NAME,
    RESOURCE_PID,
    RESOURCE_KEYS,
};

/* Names of a process, the most certain one first. The last is of an instance of a service, so it
 * cannot tell which service that is. */
enum { RESOURCE_PROCESS_NAMES = 4, RESOURCE_NAMES };

struct url_values;

struct resource_facts {
    struct slice values[RESOURCE_KEYS];              /* content of AnyValue; no data: absent */
    struct slice key_values[RESOURCE_IDENTITY_KEYS]; /* encoded KeyValue */
    uint64_t service;                                /* a hash; 0: no service.name */
    bool has_service;                                /* not an SDK's default name */
    uint64_t processes[RESOURCE_NAMES];              /* hashes; 0: not named that way */
    uint64_t pod;                                    /* hash of k8s.pod.uid alone; 0: none */
    uint64_t pod_container;                          /* of k8s.container.name alone; 0: none */
    uint32_t hash;                                   /* of all bytes: equal within a process */
};

/* content: of an encoded Resource whose attributes are inline, without references. */
struct resource_facts resource_facts_of(struct slice content);
/* The part of a service's identity that has that key; RESOURCE_IDENTITY_KEYS: none. */
enum resource_key resource_identity_key(struct slice key);
/* Whether the resource has no useful value for the key: no attribute, no string, or the default
 * name of SDKs for a service. */
bool resource_lacks(const struct resource_facts *facts, enum resource_key key);

/* The service's name and namespace, for URLs; the other values are missing. */
struct url_values resource_url_values(const struct resource_facts *facts);

/* The string for an attribute value (an encoded AnyValue) that is a scalar or a list of one; in
 * room unless it is a string already. False: it is neither. */
enum { VALUE_TEXT_BYTES = 32 };
bool value_text_of(struct slice encoded, char room[VALUE_TEXT_BYTES], struct slice *ret_text);
/* Empty if the value is no string or there is none. */
struct slice value_text_or_empty(struct slice encoded);
