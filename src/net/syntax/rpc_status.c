/* SPDX-License-Identifier: Apache-2.0 */
/* google.rpc.Status in its four forms. Pure functions, any thread. */
#include "src/net/syntax/rpc_status.h"

#include "src/base/base64.h"
#include "src/base/clock.h"
#include "src/base/utf8.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include <google/rpc/error_details.pb-c.h>
#include <google/rpc/status.pb-c.h>

static const char retry_info_url[] = "type.googleapis.com/google.rpc.RetryInfo";

/* Protobuf and JSON need UTF-8; messages may contain bytes from a peer. */
static void copy_plain(const char *message, char *room)
{
    size_t size = strnlen(message, RPC_MESSAGE_MAX);
    for (size_t at = 0; at < size;) {
        size_t step = utf8_size(slice_of(message + at, size - at));
        bool is_text = step > 1 || (step == 1 && message[at] >= ' ' && message[at] != 0x7f);
        step = step > 0 ? step : 1;
        memcpy(room + at, is_text ? message + at : "?", step);
        at += step;
    }
    room[size] = '\0';
}

size_t rpc_status_to_protobuf(const struct rpc_status *status, uint8_t *room)
{
    char message[RPC_MESSAGE_MAX + 1];
    uint8_t packed[32];
    char url[sizeof(retry_info_url)];
    Google__Protobuf__Duration delay;
    Google__Rpc__RetryInfo info;
    Google__Protobuf__Any detail;
    Google__Protobuf__Any *details[] = {&detail};
    Google__Rpc__Status row;
    google__protobuf__duration__init(&delay);
    google__rpc__retry_info__init(&info);
    google__protobuf__any__init(&detail);
    google__rpc__status__init(&row);
    copy_plain(status->message, message);
    row.code = (int32_t)status->code;
    row.message = message;
    bool has_details = status->details.size > 0 && status->details.size <= RPC_DETAILS_MAX;
    if (status->retry_after_ns > 0 && !has_details) {
        delay.seconds = (int64_t)(status->retry_after_ns / NS_PER_S);
        delay.nanos = (int32_t)(status->retry_after_ns % NS_PER_S);
        info.retry_delay = &delay;
        assert(google__rpc__retry_info__get_packed_size(&info) <= sizeof(packed));
        memcpy(url, retry_info_url, sizeof(url));
        detail.type_url = url;
        detail.value.data = packed;
        detail.value.len = google__rpc__retry_info__pack(&info, packed);
        row.details = details;
        row.n_details = 1;
    }
    assert(google__rpc__status__get_packed_size(&row) <= RPC_STATUS_BYTES_MAX - RPC_DETAILS_MAX);
    size_t size = google__rpc__status__pack(&row, room);
    if (!has_details)
        return size;
    memcpy(room + size, status->details.data, status->details.size);
    return size + status->details.size;
}

size_t rpc_status_to_json(const struct rpc_status *status, char *room)
{
    char message[RPC_MESSAGE_MAX + 1];
    copy_plain(status->message, message);
    size_t used = (size_t)sprintf(room, "{\"code\":%d,\"message\":\"", (int)status->code);
    for (const char *at = message; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            room[used++] = '\\';
        room[used++] = *at;
    }
    room[used++] = '"';
    if (status->retry_after_ns > 0)
        used += (size_t)sprintf(room + used,
                                ",\"details\":[{\"@type\":\"%s\",\"retryDelay\":\"%.9gs\"}]",
                                retry_info_url, (double)status->retry_after_ns / NS_PER_S);
    room[used++] = '}';
    room[used] = '\0';
    assert(used < RPC_STATUS_JSON_MAX);
    return used;
}

void rpc_status_to_base64(const struct rpc_status *status, char *room)
{
    uint8_t bytes[RPC_STATUS_BYTES_MAX];
    size_t size = rpc_status_to_protobuf(status, bytes);
    size_t used = base64_size(size);
    assert(used < RPC_STATUS_BASE64_MAX);
    base64_encode(slice_of(bytes, size), room);
    while (used > 0 && room[used - 1] == '=')
        used--;
    room[used] = '\0';
}

void rpc_message_to_grpc(const char *message, char *room)
{
    size_t size = strnlen(message, RPC_MESSAGE_MAX);
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)message[i];
        if (byte >= ' ' && byte <= '~' && byte != '%')
            *room++ = (char)byte;
        else
            room += sprintf(room, "%%%02X", byte);
    }
    *room = '\0';
}

unsigned rpc_code_to_http(enum status_code code)
{
    switch (code) {
    case STATUS_OK:
        return 200;
    case STATUS_CANCELLED:
    case STATUS_DEADLINE_EXCEEDED:
    case STATUS_ABORTED:
    case STATUS_OUT_OF_RANGE:
    case STATUS_UNAVAILABLE:
    case STATUS_DATA_LOSS:
        return 503;
    case STATUS_RESOURCE_EXHAUSTED:
        return 429;
    case STATUS_INVALID_ARGUMENT:
        return 400;
    case STATUS_UNAUTHENTICATED:
        return 401;
    case STATUS_PERMISSION_DENIED:
        return 403;
    case STATUS_UNIMPLEMENTED:
        return 404;
    case STATUS_UNKNOWN:
    case STATUS_NOT_FOUND:
    case STATUS_ALREADY_EXISTS:
    case STATUS_FAILED_PRECONDITION:
    case STATUS_INTERNAL:
        return 500;
    }
    return 500;
}
