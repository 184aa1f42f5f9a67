/* SPDX-License-Identifier: Apache-2.0 */
/* Spans leave tail_sampling: as messages to the next stage, or dropped. Traces that go on at the
 * same time share a message. Runs on the instance's lane. */
#include "processors/tail_sampling/tail_instance.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/mem.h"
#include "src/base/ring.h"
#include "src/core/batch.h"
#include "src/core/ledger.h"
#include "src/core/receipt.h"

/* A message that has so many goes on. One trace alone may have more, up to TAIL_MESSAGE_…. */
enum { MESSAGE_SPANS = 256, MESSAGE_BYTES = 256 * 1024 };

/* A message on its way to the next stage. Without a batch: what is left of a large trace, of which
 * messages are made one at a time, as the next stage takes them. */
struct tail_output {
    struct downstream_batch offered;
    struct tail_output *next; /* of one trace, until it is offered */
    struct tail_spans left;
    struct tail_mark mark; /* of them, with has_mark */
    bool has_mark;
    size_t requests_count;
    struct tail_request *requests[]; /* one for each fragment, with a journal */
};

void tail_request_done(struct tail_request *request, const struct outcome *outcome)
{
    if (request == NULL)
        return;
    struct receipt *receipt = request->receipt;
    assert(request->refs > 0);
    if (--request->refs == 0)
        mem_free(request);
    receipt_resolve(receipt, outcome);
}

/* A fragment of it is kept. */
struct tail_request *tail_request_keep(struct tail_request *request)
{
    if (request == NULL)
        return NULL;
    receipt_expect(request->receipt, 1);
    request->refs++;
    return request;
}

static unsigned exporters_of(const struct tail *self, const struct tail_request *request)
{
    unsigned skipped = request != NULL ? request->skipped : 0;
    assert(skipped < self->base.exporters);
    return self->base.exporters - skipped;
}

void tail_lose(struct tail *self, uint64_t items, const struct tail_request *request,
               enum loss_reason reason)
{
    ledger_lose(self->base.ledger, TRACES, items * exporters_of(self, request), reason, false);
}

struct drop {
    struct tail *self;
    enum loss_reason reason;
};

static void drop_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                          void *arg)
{
    const struct drop *drop = arg;
    assert(slabs == &drop->self->slabs);
    tail_lose(drop->self, fragment->items, fragment->request, drop->reason);
    tail_request_done(fragment->request, &outcome_accepted);
}

void tail_drop_spans(struct tail *self, struct tail_spans *spans, enum loss_reason reason)
{
    struct drop drop = {.self = self, .reason = reason};
    if (tail_spans_are_none(spans))
        return;
    if (!self->base.is_journaled) {
        tail_lose(self, tail_spans_clear(&self->slabs, spans), NULL, reason);
        return;
    }
    tail_spans_each(&self->slabs, spans, drop_fragment, &drop);
    tail_spans_clear(&self->slabs, spans);
}

static size_t output_bytes(size_t requests)
{
    return sizeof(struct tail_output) + requests * sizeof(struct tail_request *);
}

static struct tail_output *output_create(struct tail *self, size_t requests)
{
    budget_take(self->base.budget, output_bytes(requests) + sizeof(struct batch));
    return mem_zalloc(output_bytes(requests));
}

static void output_destroy(struct tail *self, struct tail_output *output)
{
    const size_t bytes = output_bytes(output->requests_count) + sizeof(struct batch);
    batch_unref(output->offered.batch);
    mem_free(output);
    budget_return(self->base.budget, bytes);
}

void tail_on_output_end(struct downstream_batch *offered, const struct outcome *outcome)
{
    struct tail_output *output = (struct tail_output *)offered;
    assert(outcome->verdict != REFUSED);
    for (size_t i = 0; i < output->requests_count; i++)
        tail_request_done(output->requests[i], outcome);
    output_destroy(tail_of(offered->owner->component), output);
}

static void offer(struct tail *self, struct tail_output *output)
{
    if (ring_depth(self->outputs) > 0 || downstream_is_blocked(&self->downstream))
        ring_push(self->outputs, output);
    else
        downstream_offer(&self->downstream, &output->offered);
}

/* What fragments of a trace have in common, so that they go on together. */
struct gather {
    uint32_t skips;   /* of those that go on next: the lowest that is left */
    bool has_last;    /* last is set */
    uint32_t last;    /* skips of those that have gone on */
    size_t fragments; /* with these skips */
    struct batch *batch;
    struct tail_output *output;
    bool is_joint;
    uint32_t skipped;
};

static void count_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                           void *arg)
{
    struct gather *gather = arg;
    const struct tail_request *request = fragment->request;
    uint32_t skips = request != NULL ? request->skips : 0;
    assert(slabs != NULL);
    if ((gather->has_last && skips <= gather->last) ||
        (gather->fragments > 0 && skips > gather->skips))
        return;
    if (gather->fragments == 0 || skips < gather->skips) {
        gather->skips = skips;
        gather->skipped = request != NULL ? request->skipped : 0;
        gather->is_joint = false;
        gather->fragments = 0;
    }
    gather->fragments++;
    gather->is_joint |= request != NULL && request->is_joint;
}

static void gather_fragment(const struct tail_slabs *slabs, const struct tail_fragment *fragment,
                            void *arg)
{
    struct gather *gather = arg;
    struct tail_output *output = gather->output;
    if ((fragment->request != NULL ? fragment->request->skips : 0) != gather->skips)
        return;
    tail_fragment_append(slabs, fragment, gather->batch);
    gather->batch->items += fragment->items;
    if (fragment->request != NULL)
        output->requests[output->requests_count++] = fragment->request;
}

/* One message for each set of destinations. */
static struct tail_output *gather_alone(struct tail *self, struct tail_spans *spans,
                                        const struct tail_mark *mark)
{
    struct gather gather = {.has_last = false};
    struct tail_output *first = NULL;
    struct tail_output **end = &first;
    for (;;) {
        gather.fragments = 0;
        tail_spans_each(&self->slabs, spans, count_fragment, &gather);
        if (gather.fragments == 0)
            break;
        gather.output = output_create(self, self->base.is_journaled ? gather.fragments : 0);
        gather.batch = batch_create(TRACES, 1);
        gather.batch->is_acknowledged = true;
        gather.batch->is_joint = gather.is_joint;
        gather.batch->skips = gather.skips;
        gather.batch->skipped = gather.skipped;
        tail_spans_each(&self->slabs, spans, gather_fragment, &gather);
        gather.output->offered.batch = gather.batch;
        if (mark != NULL && self->records_policy) {
            gather.output->offered.batch = tail_mark_write(gather.batch, mark, self->base.budget);
            batch_unref(gather.batch);
        }
        *end = gather.output;
        end = &gather.output->next;
        gather.last = gather.skips;
        gather.has_last = true;
    }
    tail_spans_clear(&self->slabs, spans);
    return first;
}

static void begin_message(struct tail *self)
{
    struct batch *batch = batch_create(TRACES, 1);
    batch->is_acknowledged = true;
    tail_message_begin(&self->slabs, batch);
    self->output = output_create(self, 0);
}

static struct tail_output *end_message(struct tail *self)
{
    struct tail_output *output = self->output;
    output->offered.batch = tail_message_end(&self->slabs);
    self->output = NULL;
    return output;
}

void tail_flush(struct tail *self)
{
    if (self->output != NULL)
        offer(self, end_message(self));
}

static bool goes_alone(const struct tail *self, const struct tail_mark *mark)
{
    return self->base.is_journaled || (mark != NULL && self->records_policy);
}

/* As many of the spans as a message has, out of them: as messages of their own, by `next`. */
static struct tail_output *take_some(struct tail *self, struct tail_spans *spans,
                                     const struct tail_mark *mark)
{
    assert(self->output == NULL);
    if (goes_alone(self, mark)) {
        struct tail_spans some = tail_spans_cut(&self->slabs, spans);
        return gather_alone(self, &some, mark);
    }
    begin_message(self);
    tail_message_take(&self->slabs, spans);
    return end_message(self);
}

/* The rest of a large trace goes on from tail_release_due. */
static void keep_left(struct tail *self, struct tail_spans *spans, const struct tail_mark *mark)
{
    struct tail_output *output = output_create(self, 0);
    output->left = *spans;
    output->has_mark = mark != NULL;
    if (mark != NULL)
        output->mark = *mark;
    spans->last = (struct tail_place){.slab = 0};
    ring_push(self->outputs, output);
}

/* A message that is offered may end at once, and its requests with it: so all were made before. */
static void offer_all(struct tail *self, struct tail_output *first)
{
    while (first != NULL) {
        struct tail_output *output = first;
        first = output->next;
        offer(self, output);
    }
}

void tail_release(struct tail *self, struct tail_spans *spans, const struct tail_mark *mark)
{
    if (tail_spans_are_none(spans))
        return;
    if (goes_alone(self, mark)) {
        tail_flush(self);
        offer_all(self, take_some(self, spans, mark));
    } else {
        if (self->output == NULL)
            begin_message(self);
        tail_message_take(&self->slabs, spans);
        const struct batch *batch = self->slabs.message.batch;
        if (batch->items >= MESSAGE_SPANS || batch->bytes >= MESSAGE_BYTES)
            tail_flush(self);
    }
    if (!tail_spans_are_none(spans)) {
        tail_flush(self);
        keep_left(self, spans, mark);
    }
}

bool tail_may_release(const struct tail *self)
{
    return self->ready.first == 0 && ring_depth(self->outputs) == 0 &&
           !downstream_is_blocked(&self->downstream);
}

/* What is left of a large trace keeps its place until nothing is. */
static void release_left(struct tail *self, struct tail_output *trace)
{
    tail_flush(self);
    struct tail_output *first =
        take_some(self, &trace->left, trace->has_mark ? &trace->mark : NULL);
    if (tail_spans_are_none(&trace->left)) {
        ring_pop(self->outputs);
        output_destroy(self, trace);
    }
    while (first != NULL && !downstream_is_blocked(&self->downstream)) {
        struct tail_output *output = first;
        first = output->next;
        downstream_offer(&self->downstream, &output->offered);
    }
    offer_all(self, first);
}

void tail_release_due(struct tail *self)
{
    while (!downstream_is_blocked(&self->downstream)) {
        struct tail_output *output = ring_first(self->outputs);
        if (output != NULL && output->offered.batch == NULL) {
            release_left(self, output);
        } else if (output != NULL) {
            ring_pop(self->outputs);
            downstream_offer(&self->downstream, &output->offered);
        } else if (self->ready.first != 0) {
            tail_release_ready(self, tail_traces_at(&self->traces, self->ready.first));
        } else {
            break;
        }
    }
}
