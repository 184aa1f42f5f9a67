/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer that doubles up to its limit. One owner, one thread at a time. */
#include "src/net/client/response_body.h"

#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#include <assert.h>
#include <string.h>

enum { CAPACITY_FIRST = 512 };

bool response_charge_growth(struct response_charge *charge, size_t before, size_t bytes)
{
    assert(bytes >= before);
    size_t known = before > RESPONSE_FREE_BYTES ? before : RESPONSE_FREE_BYTES;
    if (charge->budget == NULL || bytes <= known)
        return true;
    if (!budget_try_take(charge->budget, bytes - known))
        return false;
    charge->bytes += bytes - known;
    return true;
}

void response_charge_return(struct response_charge *charge)
{
    if (charge->bytes > 0)
        budget_return(charge->budget, charge->bytes);
    charge->bytes = 0;
}

bool response_body_add(struct response_body *body, struct slice bytes, size_t max)
{
    assert(body->size <= body->capacity);
    if (body->sink.take != NULL) {
        body->is_cut |= !body->sink.take(bytes, body->sink.arg);
        return !body->is_cut;
    }
    assert(body->size <= max);
    size_t room = max - body->size;
    size_t kept = body->is_cut ? 0 : bytes.size < room ? bytes.size : room;
    if (body->size + kept > body->capacity) {
        size_t capacity = body->capacity == 0 ? CAPACITY_FIRST : body->capacity;
        while (capacity < body->size + kept)
            capacity *= 2;
        capacity = capacity < max ? capacity : max;
        uint8_t *data = response_charge_growth(&body->charge, body->capacity, capacity)
                            ? mem_try_resize(body->data, capacity)
                            : NULL;
        if (data != NULL) {
            body->data = data;
            body->capacity = capacity;
        } else {
            kept = 0;
        }
    }
    if (kept > 0)
        memcpy(body->data + body->size, bytes.data, kept);
    body->size += kept;
    body->is_cut |= kept < bytes.size;
    body->seen += bytes.size;
    return body->seen <= RESPONSE_DRAIN_BYTES_MAX;
}

void response_body_fini(struct response_body *body)
{
    mem_free(body->data);
    response_charge_return(&body->charge);
    *body = (struct response_body){.charge.budget = body->charge.budget};
}
