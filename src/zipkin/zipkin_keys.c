/* SPDX-License-Identifier: Apache-2.0 */
/* One table of keys, searched by halves. Pure functions; any thread. */
#include "src/zipkin/zipkin_keys.h"

#include <assert.h>
#include <stddef.h>

struct key_row {
    const char *key;
    enum zipkin_role role;
};

/* In the order of slice_compare. Which keys are those of a resource is the Go collector's choice
 * from several versions of the semantic conventions. */
static const struct key_row rows[] = {
    {"aws.ecs.cluster.arn", ROLE_RESOURCE},
    {"aws.ecs.container.arn", ROLE_RESOURCE},
    {"aws.ecs.launchtype", ROLE_RESOURCE},
    {"aws.ecs.task.arn", ROLE_RESOURCE},
    {"aws.ecs.task.family", ROLE_RESOURCE},
    {"aws.ecs.task.revision", ROLE_RESOURCE},
    {"aws.eks.cluster.arn", ROLE_RESOURCE},
    {"aws.log.group.arns", ROLE_RESOURCE},
    {"aws.log.group.names", ROLE_RESOURCE},
    {"aws.log.stream.arns", ROLE_RESOURCE},
    {"aws.log.stream.names", ROLE_RESOURCE},
    {"cloud.account.id", ROLE_RESOURCE},
    {"cloud.availability_zone", ROLE_RESOURCE},
    {"cloud.platform", ROLE_RESOURCE},
    {"cloud.provider", ROLE_RESOURCE},
    {"cloud.region", ROLE_RESOURCE},
    {"cloud.resource_id", ROLE_RESOURCE},
    {"container.id", ROLE_RESOURCE},
    {"container.image.name", ROLE_RESOURCE},
    {"container.image.tag", ROLE_RESOURCE},
    {"container.name", ROLE_RESOURCE},
    {"container.runtime", ROLE_RESOURCE},
    {"deployment.environment", ROLE_RESOURCE},
    {"device.id", ROLE_RESOURCE},
    {"device.manufacturer", ROLE_RESOURCE},
    {"device.model.identifier", ROLE_RESOURCE},
    {"device.model.name", ROLE_RESOURCE},
    {"error", ROLE_ERROR},
    {"faas.id", ROLE_RESOURCE},
    {"faas.instance", ROLE_RESOURCE},
    {"faas.max_memory", ROLE_RESOURCE},
    {"faas.name", ROLE_RESOURCE},
    {"faas.version", ROLE_RESOURCE},
    {"host.arch", ROLE_RESOURCE},
    {"host.id", ROLE_RESOURCE},
    {"host.image.id", ROLE_RESOURCE},
    {"host.image.name", ROLE_RESOURCE},
    {"host.image.version", ROLE_RESOURCE},
    {"host.name", ROLE_RESOURCE},
    {"host.type", ROLE_RESOURCE},
    {"k8s.cluster.name", ROLE_RESOURCE},
    {"k8s.container.name", ROLE_RESOURCE},
    {"k8s.container.restart_count", ROLE_RESOURCE},
    {"k8s.cronjob.name", ROLE_RESOURCE},
    {"k8s.cronjob.uid", ROLE_RESOURCE},
    {"k8s.daemonset.name", ROLE_RESOURCE},
    {"k8s.daemonset.uid", ROLE_RESOURCE},
    {"k8s.deployment.name", ROLE_RESOURCE},
    {"k8s.deployment.uid", ROLE_RESOURCE},
    {"k8s.job.name", ROLE_RESOURCE},
    {"k8s.job.uid", ROLE_RESOURCE},
    {"k8s.namespace.name", ROLE_RESOURCE},
    {"k8s.node.name", ROLE_RESOURCE},
    {"k8s.node.uid", ROLE_RESOURCE},
    {"k8s.pod.name", ROLE_RESOURCE},
    {"k8s.pod.uid", ROLE_RESOURCE},
    {"k8s.replicaset.name", ROLE_RESOURCE},
    {"k8s.replicaset.uid", ROLE_RESOURCE},
    {"k8s.statefulset.name", ROLE_RESOURCE},
    {"k8s.statefulset.uid", ROLE_RESOURCE},
    {"net.host.port", ROLE_LOCAL_PORT},
    {"net.peer.port", ROLE_PEER_PORT},
    {"network.local.address", ROLE_LOCAL_ADDRESS},
    {"network.peer.address", ROLE_PEER_ADDRESS},
    {"opencensus.exporterversion", ROLE_RESOURCE},
    {"opencensus.resourcetype", ROLE_RESOURCE},
    {"opencensus.starttime", ROLE_RESOURCE},
    {"os.description", ROLE_RESOURCE},
    {"os.name", ROLE_RESOURCE},
    {"os.type", ROLE_RESOURCE},
    {"os.version", ROLE_RESOURCE},
    {"otel.library.name", ROLE_LIBRARY_NAME},
    {"otel.library.version", ROLE_LIBRARY_VERSION},
    {"otel.scope.name", ROLE_SCOPE_NAME},
    {"otel.scope.version", ROLE_SCOPE_VERSION},
    {"otel.status_code", ROLE_STATUS_CODE},
    {"otel.status_description", ROLE_STATUS_DESCRIPTION},
    {"otel.zipkin.absentField.startTime", ROLE_START_ABSENT},
    {"otlp.service.name.source", ROLE_SERVICE_SOURCE},
    {"process.command", ROLE_RESOURCE},
    {"process.command_args", ROLE_RESOURCE},
    {"process.command_line", ROLE_RESOURCE},
    {"process.executable.name", ROLE_RESOURCE},
    {"process.executable.path", ROLE_RESOURCE},
    {"process.owner", ROLE_RESOURCE},
    {"process.pid", ROLE_RESOURCE},
    {"process.runtime.description", ROLE_RESOURCE},
    {"process.runtime.name", ROLE_RESOURCE},
    {"process.runtime.version", ROLE_RESOURCE},
    {"service.instance.id", ROLE_RESOURCE},
    {"service.name", ROLE_RESOURCE},
    {"service.namespace", ROLE_RESOURCE},
    {"service.peer.name", ROLE_PEER_NAME},
    {"service.version", ROLE_RESOURCE},
    {"span.kind", ROLE_SPAN_KIND},
    {"telemetry.auto.version", ROLE_RESOURCE},
    {"telemetry.sdk.language", ROLE_RESOURCE},
    {"telemetry.sdk.name", ROLE_RESOURCE},
    {"telemetry.sdk.version", ROLE_RESOURCE},
    {"w3c.tracestate", ROLE_TRACE_STATE},
    {"webengine.description", ROLE_RESOURCE},
    {"webengine.name", ROLE_RESOURCE},
    {"webengine.version", ROLE_RESOURCE},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

/* A number as Go prints it: without leading zeros. False: it is none of those below the limit. */
static bool link_number(struct slice digits, unsigned *ret_link)
{
    enum { DIGITS_MAX = 3 };
    unsigned number = 0;
    if (digits.size == 0 || digits.size > DIGITS_MAX || (digits.size > 1 && digits.data[0] == '0'))
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        unsigned digit = (unsigned)digits.data[i] - '0';
        if (digit > 9)
            return false;
        number = number * 10 + digit;
    }
    *ret_link = number;
    return number < ZIPKIN_LINKS_MAX;
}

enum zipkin_role zipkin_role_of(struct slice key, unsigned *ret_link)
{
    static const char link[] = "otlp.link.";
    size_t low = 0;
    size_t high = ROWS;
    while (low < high) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(key, slice_of_text(rows[middle].key));
        if (order == 0)
            return rows[middle].role;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    if (!slice_begins_with(key, link))
        return ROLE_PLAIN;
    const size_t begin = sizeof(link) - 1;
    return link_number(slice_of(key.data + begin, key.size - begin), ret_link) ? ROLE_LINK
                                                                               : ROLE_PLAIN;
}

const char *zipkin_key_of(enum zipkin_role role)
{
    size_t row = 0;
    assert(role > ROLE_LINK && role < ROLES);
    while (row < ROWS && rows[row].role != role)
        row++;
    assert(row < ROWS);
    return rows[row].key;
}
