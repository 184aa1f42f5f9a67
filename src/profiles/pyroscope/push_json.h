/* SPDX-License-Identifier: Apache-2.0 */
/* A PushRequest in JSON, as Connect's clients may send it, into the same in protobuf. Unknown keys
 * are skipped, as the server does. Pure function; any thread. */
#pragma once

#include "src/base/slice.h"

struct budget;
struct buffer;

enum push_json_verdict {
    PUSH_JSON_READ,
    PUSH_JSON_MALFORMED, /* the reason says why */
    PUSH_JSON_BUSY,      /* no memory; later there may be */
};

/* *ret_request is owned by the caller. */
enum push_json_verdict push_json_read(struct slice json, struct budget *budget,
                                      struct buffer **ret_request, const char **ret_reason);
