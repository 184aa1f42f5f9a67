/* SPDX-License-Identifier: Apache-2.0 */
/* A body of Zipkin in one form, for its fuzz target. Byte 0 chooses the settings and a budget. What
 * is read passes otlp_check; nothing stays charged. */
#pragma once

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/zipkin/zipkin_read.h"

static inline void fuzz_zipkin(enum zipkin_form form, const uint8_t *data, size_t size)
{
    enum { SMALL_BUDGET = 20000 };
    struct budget budget;
    struct converted_spans batch;
    struct otlp_figures figures;
    const char *why;
    char reason[CONVERSION_REASON_BYTES_MAX] = "";
    if (size == 0)
        return;
    const struct zipkin_source source = {
        .form = form,
        .parses_strings = (data[0] & 1) != 0,
        .now_ns = 1,
    };
    uint8_t *body = mem_copy(data + 1, size - 1);
    budget_init(&budget, (data[0] & 2) != 0 ? SMALL_BUDGET : UINT64_MAX);
    enum conversion verdict =
        zipkin_read(&source, slice_of(body, size - 1), &budget, &batch, reason);
    if (verdict == CONVERTED) {
        bool is_fine = otlp_check(TRACES, buffer_slice(batch.request), &figures, &why);
        assert(is_fine);
        assert(figures.items == batch.spans && figures.messages <= batch.messages);
        buffer_unref(batch.request);
    } else if (verdict == CONVERSION_MALFORMED) {
        assert(reason[0] != '\0');
    }
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    mem_free(body);
}
