/* SPDX-License-Identifier: Apache-2.0 */
/* google.rpc.Status in its forms; protobuf-c reads back what was written. */
#include "src/net/syntax/rpc_status.h"

#include "src/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <google/rpc/error_details.pb-c.h>
#include <google/rpc/status.pb-c.h>

static void protobuf_holds_code_message_and_delay(void **state)
{
    static const struct rpc_status status = {
        .code = STATUS_UNAVAILABLE, .retry_after_ns = 2500000001, .message = "come back"};
    uint8_t room[RPC_STATUS_BYTES_MAX];
    (void)state;
    size_t size = rpc_status_to_protobuf(&status, room);
    Google__Rpc__Status *read = google__rpc__status__unpack(NULL, size, room);
    assert_non_null(read);
    assert_int_equal(read->code, 14);
    assert_string_equal(read->message, "come back");
    assert_int_equal(read->n_details, 1);
    assert_string_equal(read->details[0]->type_url, "type.googleapis.com/google.rpc.RetryInfo");
    Google__Rpc__RetryInfo *info = google__rpc__retry_info__unpack(
        NULL, read->details[0]->value.len, read->details[0]->value.data);
    assert_non_null(info);
    assert_int_equal(info->retry_delay->seconds, 2);
    assert_int_equal(info->retry_delay->nanos, 500000001);
    google__rpc__retry_info__free_unpacked(info, NULL);
    google__rpc__status__free_unpacked(read, NULL);
}

static void details_that_are_given_stand_instead(void **state)
{
    static const uint8_t encoded[] = {0x1a, 3, 0x0a, 1, 'u', 0x1a, 0};
    static const uint8_t too_many[RPC_DETAILS_MAX + 1];
    struct rpc_status status = {.code = STATUS_UNAVAILABLE,
                                .retry_after_ns = 1,
                                .message = "words",
                                .details = slice_of(encoded, sizeof(encoded))};
    uint8_t room[RPC_STATUS_BYTES_MAX];
    (void)state;
    size_t size = rpc_status_to_protobuf(&status, room);
    Google__Rpc__Status *read = google__rpc__status__unpack(NULL, size, room);
    assert_non_null(read);
    assert_int_equal(read->n_details, 2);
    assert_string_equal(read->details[0]->type_url, "u");
    google__rpc__status__free_unpacked(read, NULL);
    status.details = slice_of(too_many, sizeof(too_many));
    size = rpc_status_to_protobuf(&status, room);
    read = google__rpc__status__unpack(NULL, size, room);
    assert_non_null(read);
    assert_int_equal(read->n_details, 1);
    assert_string_equal(read->details[0]->type_url, "type.googleapis.com/google.rpc.RetryInfo");
    google__rpc__status__free_unpacked(read, NULL);
}

static void messages_are_cut_and_cleaned(void **state)
{
    static char longest[3 * RPC_MESSAGE_MAX];
    uint8_t room[RPC_STATUS_BYTES_MAX];
    char json[RPC_STATUS_JSON_MAX];
    char base64[RPC_STATUS_BASE64_MAX];
    char grpc[GRPC_MESSAGE_MAX];
    (void)state;
    memset(longest, 0xff, sizeof(longest) - 1);
    const struct rpc_status status = {
        .code = STATUS_INTERNAL, .retry_after_ns = UINT64_MAX, .message = longest};
    size_t size = rpc_status_to_protobuf(&status, room);
    Google__Rpc__Status *read = google__rpc__status__unpack(NULL, size, room);
    assert_int_equal(strspn(read->message, "?"), RPC_MESSAGE_MAX);
    google__rpc__status__free_unpacked(read, NULL);
    rpc_status_to_json(&status, json);
    rpc_status_to_base64(&status, base64);
    rpc_message_to_grpc(longest, grpc);
    assert_int_equal(strlen(grpc), GRPC_MESSAGE_MAX - 1);
}

static void json_is_protojson(void **state)
{
    static const struct {
        struct rpc_status status;
        const char *json;
    } rows[] = {
        {{.code = STATUS_INVALID_ARGUMENT, .message = "a \"b\" \\ \n\xc3"},
         "{\"code\":3,\"message\":\"a \\\"b\\\" \\\\ ??\"}"},
        {{.code = STATUS_UNKNOWN, .message = "zu gro\xc3\x9f \xe2\x82\xac\x7f"},
         "{\"code\":2,\"message\":\"zu gro\xc3\x9f \xe2\x82\xac?\"}"},
        {{.code = STATUS_UNAVAILABLE, .message = "", .retry_after_ns = 1500 * (uint64_t)NS_PER_MS},
         "{\"code\":14,\"message\":\"\",\"details\":[{\"@type\":"
         "\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"1.5s\"}]}"},
    };
    char room[RPC_STATUS_JSON_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(rpc_status_to_json(&rows[i].status, room), strlen(rows[i].json));
        assert_string_equal(room, rows[i].json);
    }
}

static void base64_is_not_padded(void **state)
{
    static const struct {
        const char *message;
        const char *text;
    } rows[] = {{"", "CAM"}, {"a", "CAMSAWE"}, {"ab", "CAMSAmFi"}, {"abc", "CAMSA2FiYw"}};
    char room[RPC_STATUS_BASE64_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rpc_status_to_base64(
            &(struct rpc_status){.code = STATUS_INVALID_ARGUMENT, .message = rows[i].message},
            room);
        assert_string_equal(room, rows[i].text);
    }
}

static void grpc_messages_are_percent_encoded(void **state)
{
    char room[GRPC_MESSAGE_MAX];
    (void)state;
    rpc_message_to_grpc("plain ~ 100% \n\x7f\xc3\xa9", room);
    assert_string_equal(room, "plain ~ 100%25 %0A%7F%C3%A9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(protobuf_holds_code_message_and_delay),
        cmocka_unit_test(details_that_are_given_stand_instead),
        cmocka_unit_test(messages_are_cut_and_cleaned),
        cmocka_unit_test(json_is_protojson),
        cmocka_unit_test(base64_is_not_padded),
        cmocka_unit_test(grpc_messages_are_percent_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
