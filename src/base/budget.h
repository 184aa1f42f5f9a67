/* SPDX-License-Identifier: Apache-2.0 */
/* A shared allowance: bytes of the whole process, units of a sending queue, slots of its consumers.
 * Taking and returning are lock-free and may be done on any thread; waiting is per lane and touches
 * a mutex only while there are waiters. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <pthread.h>

#include "src/base/clock.h"

struct lane;

struct budget_ticket;

/* A party that was refused and wants a callback, on its own lane, once something is returned.
 * Embedded by its user. */
struct budget_waiter {
    struct lane *lane;
    void (*fn)(void *arg);
    void *arg;
    struct budget_ticket *ticket; /* while it waits */
};

/* The margin: what goes beyond a budget's limit is at most so large a part of it at a time. Work on
 * what clients were told is accepted has it, since it shall end rather than wait for what comes
 * after it: stages ask batch_has_room (src/core/batch.h), and those that take piece by piece lie
 * between budget_begin_late and _end_late. Heads of requests have it, too, and a few bytes more. */
enum { BUDGET_MARGIN_PART = 16 };

/* What waits in front of exporters may fill the budget, and none of it comes free before it has
 * been encoded and sent. So while exporters hold more than half of the budget, BUDGET_LEAVING_PART
 * of it is left to them: others take no more than the rest. And once an export has found no room
 * for BUDGET_EXPORT_WAIT_NS, though no back-end was away meanwhile, exports may take
 * BUDGET_EXPORT_PART of the limit beyond it, in all: for BUDGET_EXPORT_SPELL_NS from the first that
 * does, BUDGET_EXPORT_NEED_NS after the refusal at most. */
enum { BUDGET_LEAVING_PART = 8, BUDGET_EXPORT_PART = 4 };
#define BUDGET_EXPORT_WAIT_NS  ((uint64_t)10 * NS_PER_S)
#define BUDGET_EXPORT_SPELL_NS ((uint64_t)5 * NS_PER_S)
#define BUDGET_EXPORT_NEED_NS  ((uint64_t)60 * NS_PER_S)

struct budget {
    _Atomic uint64_t used;
    _Atomic uint64_t limit;
    _Atomic uint64_t high_water; /* the highest use so far */
    _Atomic uint64_t refusals;
    _Atomic uint64_t leaving; /* bytes that exporters hold; where several have a batch,
                                 each counts it */
    _Atomic unsigned waiting;
    /* When an export found no room, on clock_now_ns's scale, if none has gone beyond the margin
     * since; 0: none. */
    _Atomic uint64_t export_refused_ns;
    /* Until when exports were put off for another reason than memory; 0: none was. */
    _Atomic uint64_t put_off_ns;
    struct budget *whole;     /* of an allowance, where its bytes count; NULL: it is none */
    bool is_memory;           /* counts bytes of memory (budget_count_memory) */
    _Atomic uint64_t retired; /* bytes freed, which the allocator may still keep resident */
    _Atomic bool is_tight;    /* the allocator keeps no freed pages */
    pthread_mutex_t lock;     /* guards tickets, and changes of is_tight */
    struct budget_ticket *tickets;
};

/* Nothing is taken. limit: in the budget's unit; UINT64_MAX never refuses. */
void budget_init(struct budget *budget, uint64_t limit);
/* Makes the budget one of memory. The allocator keeps freed pages for a while; once they and the
 * bytes in use exceed the limit together, they are returned to the system, and when half of the
 * limit is in use it keeps none, so that resident memory follows the budget. Before lanes run. */
void budget_count_memory(struct budget *budget);
/* An allowance on whole, for those that must go on when it is exhausted. All that is taken here is
 * taken from whole: up to so many bytes beyond its limit if need be, and what exceeds them as whole
 * permits. Nobody reserves or waits here. whole outlives it. */
void budget_init_allowance(struct budget *allowance, struct budget *whole, uint64_t bytes);
/* No waiter may be left. */
void budget_fini(struct budget *budget);
/* All or nothing; a refusal is counted. */
bool budget_try_take(struct budget *budget, uint64_t amount) __attribute__((warn_unused_result));
/* The same with the margin and a few bytes beyond it: for heads of requests and their bookkeeping,
 * so that requests refused for lack of budget still get a response. */
bool budget_try_take_margin(struct budget *budget, uint64_t amount)
    __attribute__((warn_unused_result));
/* The most that one piece of work can have when nothing else is in use but what connections hold
 * and the like; with the margin, if it is late. UINT64_MAX / 2: the budget is NULL. */
uint64_t budget_room_max(const struct budget *budget, bool is_late);
/* Between these, budget_try_take on this thread may use the margin, and budget_has_room knows. May
 * nest. */
void budget_begin_late(void);
void budget_end_late(void);
/* The encoding of what an exporter holds, see BUDGET_EXPORT_PART. On one thread; may nest. */
void budget_begin_export(void);
void budget_end_export(void);
/* Takes even beyond the limit: for the few bytes that finish work already charged. */
void budget_take(struct budget *budget, uint64_t amount);
/* Returns what was taken before, and calls the waiters. */
void budget_return(struct budget *budget, uint64_t amount);
/* Notes freed bytes whose charge moved to another block, as when memory is moved. */
void budget_note_freed(struct budget *budget, uint64_t amount);
/* Exporters have taken a batch of so many bytes, which were charged before and come free once it is
 * exported or lost; and that has happened. Any thread. */
void budget_note_leaving(struct budget *budget, uint64_t bytes);
void budget_note_left(struct budget *budget, uint64_t bytes);
/* Whether exporters hold more than the margin. If they do not, what waits for memory waits for what
 * other stages hold. */
bool budget_is_leaving(const struct budget *budget);
/* Whether they hold more than a quarter of the budget. If they do not, what they hold is not what
 * keeps others waiting for long. */
bool budget_is_largely_leaving(const struct budget *budget);
/* An export has failed, for another reason than memory, and is tried again at that time at the
 * earliest: it keeps what it holds for as long as its back-end is away. Any thread. */
void budget_note_put_off(struct budget *budget, uint64_t until_ns);
/* The last of those times, on clock_now_ns's scale; 0: there was none. */
uint64_t budget_put_off_ns(const struct budget *budget);
/* Lowers the limit if it is above; what is in use stays in use. Before lanes run. */
void budget_lower(struct budget *budget, uint64_t limit);

/* Whether this much is free: for work that takes beyond the limit piece by piece and can still be
 * refused as a whole. A NULL budget has room. */
bool budget_has_room(const struct budget *budget, uint64_t amount);

/* Whether more is taken than the limit and the margin. False for NULL. */
bool budget_is_overdrawn(const struct budget *budget);

/* A part of a budget reserved for one piece of work before it begins, because its size follows from
 * its input. Until _release, what this thread takes from the budget comes out of the reserve first,
 * and what it returns goes back there; so work that takes "beyond the limit if need be" stays
 * within it. Lies on the stack; may nest. */
struct budget_reserve {
    struct budget *budget;
    uint64_t size;
    uint64_t left;
    struct budget_reserve *outer;
};

enum budget_result {
    BUDGET_GIVEN,
    BUDGET_FULL,      /* there may be room later */
    BUDGET_TOO_SMALL, /* there never will be: more than the limit */
};

/* A NULL budget grants everything. Nothing is held unless BUDGET_GIVEN. */
enum budget_result budget_reserve(struct budget_reserve *reserve, struct budget *budget,
                                  uint64_t amount) __attribute__((warn_unused_result));
/* Enlarges the innermost reserve. False: there is no room, and nothing has changed. */
bool budget_reserve_more(struct budget_reserve *reserve, uint64_t amount)
    __attribute__((warn_unused_result));
/* Returns the rest. On the thread of _reserve, innermost first. */
void budget_release(struct budget_reserve *reserve);

/* Snapshots; the limit of an allowance is that of the whole. */
uint64_t budget_used(const struct budget *budget);
uint64_t budget_limit(const struct budget *budget);

/* Calls waiter->fn(arg) once, on waiter->lane and never from inside this call, after the next
 * budget_return, or soon when amount is free by now. Waiting twice is once. On the waiter's lane.
 */
void budget_wait(struct budget *budget, struct budget_waiter *waiter, uint64_t amount);
/* After this returns, fn will not be called. On the waiter's lane. */
void budget_wait_cancel(struct budget *budget, struct budget_waiter *waiter);
