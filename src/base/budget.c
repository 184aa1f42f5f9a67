/* SPDX-License-Identifier: Apache-2.0 */
/* Shared allowances. Counting is lock-free; only waiting takes the mutex. Any thread. */
#include "src/base/budget.h"

#include <assert.h>
#include <stddef.h>

#include "src/base/clock.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/base/mem_stats.h"

void budget_init(struct budget *budget, uint64_t limit)
{
    *budget = (struct budget){0};
    atomic_init(&budget->limit, limit);
    pthread_mutex_init(&budget->lock, NULL);
}

void budget_init_allowance(struct budget *allowance, struct budget *whole, uint64_t bytes)
{
    assert(whole->whole == NULL);
    budget_init(allowance, bytes);
    allowance->whole = whole;
}

void budget_count_memory(struct budget *budget)
{
    assert(atomic_load(&budget->used) == 0);
    assert(budget->whole == NULL);
    budget->is_memory = true;
}

void budget_fini(struct budget *budget)
{
    assert(budget->tickets == NULL);
    pthread_mutex_destroy(&budget->lock);
}

/* The innermost reserve of this thread's current work. */
static _Thread_local struct budget_reserve *reserves;

static struct budget_reserve *reserve_of(const struct budget *budget)
{
    struct budget_reserve *reserve = reserves;
    while (reserve != NULL && reserve->budget != budget)
        reserve = reserve->outer;
    return reserve;
}

/* How much of the amount comes out of the reserve. */
static uint64_t draw(const struct budget *budget, uint64_t amount)
{
    struct budget_reserve *reserve = reserve_of(budget);
    if (reserve == NULL)
        return 0;
    uint64_t drawn = amount < reserve->left ? amount : reserve->left;
    reserve->left -= drawn;
    return drawn;
}

/* How much of the amount goes back into the reserve. */
static uint64_t refill(const struct budget *budget, uint64_t amount)
{
    struct budget_reserve *reserve = reserve_of(budget);
    if (reserve == NULL)
        return 0;
    uint64_t missing = reserve->size - reserve->left;
    uint64_t filled = amount < missing ? amount : missing;
    reserve->left += filled;
    return filled;
}

static void raise_high_water(struct budget *budget, uint64_t used)
{
    uint64_t high = atomic_load_explicit(&budget->high_water, memory_order_relaxed);
    while (used > high &&
           !atomic_compare_exchange_weak_explicit(&budget->high_water, &high, used,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* For heads of requests, beside the margin. */
enum { HEADS_BYTES = 256 * 1024 };

/* Smaller blocks share pages with others, which are used again soon. */
enum { RETIRED_BYTES_MIN = 4096, SLACK_PART = 64 };

void budget_note_freed(struct budget *budget, uint64_t amount)
{
    if (budget->whole != NULL)
        budget = budget->whole;
    if (budget->is_memory && amount >= RETIRED_BYTES_MIN)
        atomic_fetch_add_explicit(&budget->retired, amount, memory_order_relaxed);
}

/* Freed pages are mostly reused, which saves system calls: so `retired` is an upper bound, and the
 * allocator is asked only when it matters. */
static void __attribute__((noinline)) return_retired(struct budget *budget, uint64_t used)
{
    uint64_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
    uint64_t dirty = mem_stats_dirty_bytes();
    assert(budget->is_memory);
    if (used + dirty > limit + limit / SLACK_PART) {
        mem_stats_purge();
        dirty = 0;
    }
    atomic_store_explicit(&budget->retired, dirty, memory_order_relaxed);
}

/* Parts of the limit. The allocator rounds sizes up, and nobody is charged for what lies between:
 * it is resident only in pages that were used before. So above the first part it keeps no freed
 * pages; below the second it keeps them again, which saves system calls. */
enum { TIGHT_EIGHTHS = 4, EASED_EIGHTHS = 3 };

static void __attribute__((noinline)) set_tight(struct budget *budget, bool is_tight)
{
    if (pthread_mutex_trylock(&budget->lock) != 0)
        return; /* the next one does it */
    if (atomic_load_explicit(&budget->is_tight, memory_order_relaxed) != is_tight) {
        mem_stats_keep_freed(!is_tight);
        atomic_store_explicit(&budget->is_tight, is_tight, memory_order_relaxed);
    }
    pthread_mutex_unlock(&budget->lock);
}

static inline void follow_use(struct budget *budget, uint64_t used, uint64_t limit)
{
    bool is_tight = atomic_load_explicit(&budget->is_tight, memory_order_relaxed);
    if (is_tight ? used < limit / 8 * EASED_EIGHTHS : used > limit / 8 * TIGHT_EIGHTHS)
        set_tight(budget, !is_tight);
}

/* Call before allocating memory that has just been taken, or drawn from a reserve. */
static inline void make_room(struct budget *budget, uint64_t amount)
{
    if (!budget->is_memory || amount < RETIRED_BYTES_MIN)
        return;
    follow_use(budget, budget_used(budget), budget_limit(budget));
    uint64_t retired = atomic_load_explicit(&budget->retired, memory_order_relaxed);
    if (retired == 0)
        return;
    uint64_t used = budget_used(budget);
    uint64_t limit = budget_limit(budget);
    if (used + retired > limit + limit / SLACK_PART)
        return_retired(budget, used);
}

static bool try_take_within(struct budget *budget, uint64_t amount, uint64_t limit)
{
    uint64_t used = atomic_load_explicit(&budget->used, memory_order_relaxed);
    do {
        if (amount > limit || used > limit - amount) {
            atomic_fetch_add_explicit(&budget->refusals, 1, memory_order_relaxed);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&budget->used, &used, used + amount,
                                                    memory_order_acquire, memory_order_relaxed));
    raise_high_water(budget, used + amount);
    return true;
}

/* Of this thread: how many budget_begin_late have not ended. */
static _Thread_local unsigned late_levels;

void budget_begin_late(void)
{
    late_levels++;
}

void budget_end_late(void)
{
    assert(late_levels > 0);
    late_levels--;
}

/* The same of budget_begin_export. */
static _Thread_local unsigned export_levels;

void budget_begin_export(void)
{
    export_levels++;
}

void budget_end_export(void)
{
    assert(export_levels > 0);
    export_levels--;
}

/* How long ago an export found no room; UINT64_MAX: that is over. */
static uint64_t since_refused_export(const struct budget *budget)
{
    uint64_t refused_ns = atomic_load_explicit(&budget->export_refused_ns, memory_order_relaxed);
    if (refused_ns == 0)
        return UINT64_MAX;
    uint64_t since_ns = clock_now_ns() - refused_ns;
    return since_ns <= BUDGET_EXPORT_NEED_NS ? since_ns : UINT64_MAX;
}

static void note_refused_export(struct budget *budget)
{
    if (since_refused_export(budget) == UINT64_MAX)
        atomic_store_explicit(&budget->export_refused_ns, clock_now_ns(), memory_order_relaxed);
}

/* The first begins the spell, which ends in time. */
static void note_export_beyond(struct budget *budget)
{
    const uint64_t last_ns = BUDGET_EXPORT_NEED_NS - BUDGET_EXPORT_SPELL_NS;
    const uint64_t since_ns = since_refused_export(budget);
    if (since_ns >= BUDGET_EXPORT_WAIT_NS && since_ns < last_ns)
        atomic_store_explicit(&budget->export_refused_ns, clock_now_ns() - last_ns,
                              memory_order_relaxed);
}

static bool exports_may_exceed(const struct budget *budget)
{
    const uint64_t since_ns = since_refused_export(budget);
    const uint64_t put_off_ns = budget_put_off_ns(budget);
    return since_ns >= BUDGET_EXPORT_WAIT_NS && since_ns != UINT64_MAX &&
           (put_off_ns == 0 || clock_now_ns() >= put_off_ns + BUDGET_EXPORT_WAIT_NS);
}

/* Whether exporters hold so much that some of the budget is left to them. */
static inline bool is_mostly_leaving(uint64_t leaving, uint64_t limit)
{
    return leaving > limit / 2;
}

/* The limit for what this thread is about. */
static inline uint64_t limit_at_hand(const struct budget *budget)
{
    const uint64_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
    const uint64_t leaving = atomic_load_explicit(&budget->leaving, memory_order_relaxed);
    uint64_t beyond = late_levels > 0 ? limit / BUDGET_MARGIN_PART : 0;
    if (export_levels > 0 && exports_may_exceed(budget))
        beyond = limit / BUDGET_EXPORT_PART;
    if (late_levels == 0 && export_levels == 0 && is_mostly_leaving(leaving, limit))
        return limit - limit / BUDGET_LEAVING_PART;
    return limit < UINT64_MAX - beyond ? limit + beyond : limit;
}

static bool try_take(struct budget *budget, uint64_t amount)
{
    bool is_taken = try_take_within(budget, amount, limit_at_hand(budget));
    if (export_levels == 0)
        return is_taken;
    if (!is_taken)
        note_refused_export(budget);
    else if (budget_used(budget) > atomic_load_explicit(&budget->limit, memory_order_relaxed))
        note_export_beyond(budget);
    return is_taken;
}

/* From an allowance; take asks the whole for what exceeds it. */
static bool try_take_allowed(struct budget *allowance, uint64_t amount,
                             bool (*take)(struct budget *whole, uint64_t amount))
{
    uint64_t used = atomic_fetch_add_explicit(&allowance->used, amount, memory_order_relaxed);
    if (used <= UINT64_MAX - amount && used + amount <= atomic_load(&allowance->limit)) {
        budget_take(allowance->whole, amount);
        return true;
    }
    if (take(allowance->whole, amount))
        return true;
    atomic_fetch_sub_explicit(&allowance->used, amount, memory_order_relaxed);
    return false;
}

bool budget_try_take(struct budget *budget, uint64_t amount)
{
    if (budget->whole != NULL)
        return try_take_allowed(budget, amount, budget_try_take);
    uint64_t drawn = draw(budget, amount);
    if ((drawn == 0 || drawn < amount) && !try_take(budget, amount - drawn)) {
        (void)refill(budget, drawn);
        return false;
    }
    make_room(budget, amount);
    return true;
}

bool budget_try_take_margin(struct budget *budget, uint64_t amount)
{
    if (budget->whole != NULL)
        return try_take_allowed(budget, amount, budget_try_take_margin);
    uint64_t limit = atomic_load_explicit(&budget->limit, memory_order_relaxed);
    uint64_t margin = limit / BUDGET_MARGIN_PART + HEADS_BYTES;
    if (!try_take_within(budget, amount, limit < UINT64_MAX - margin ? limit + margin : limit))
        return false;
    make_room(budget, amount);
    return true;
}

void budget_take(struct budget *budget, uint64_t amount)
{
    const uint64_t asked = amount;
    if (budget->whole != NULL) {
        atomic_fetch_add_explicit(&budget->used, amount, memory_order_relaxed);
        budget_take(budget->whole, amount);
        return;
    }
    amount -= draw(budget, amount);
    if (amount == 0) {
        make_room(budget, asked);
        return;
    }
    uint64_t used = atomic_fetch_add_explicit(&budget->used, amount, memory_order_acquire);
    assert(used + amount >= used);
    raise_high_water(budget, used + amount);
    make_room(budget, asked);
}

/* One wait. Owned by the budget's list until it is called, then by the task that carries the call
 * to the waiter's lane. */
struct budget_ticket {
    struct lane_task task; /* first: the task is the ticket */
    struct lane *lane;
    struct budget_waiter *waiter; /* NULL: cancelled; touched on the waiter's lane only */
    struct budget_ticket *next;
    bool is_posted; /* guarded by the budget's lock */
};

static void on_wake(struct lane_task *task)
{
    struct budget_ticket *ticket = (struct budget_ticket *)task;
    assert(ticket->is_posted);
    struct budget_waiter *waiter = ticket->waiter;
    mem_free(ticket);
    if (waiter == NULL)
        return;
    waiter->ticket = NULL;
    waiter->fn(waiter->arg);
}

static void wake_waiters(struct budget *budget)
{
    pthread_mutex_lock(&budget->lock);
    struct budget_ticket *ticket = budget->tickets;
    budget->tickets = NULL;
    atomic_store(&budget->waiting, 0);
    while (ticket != NULL) {
        struct budget_ticket *next = ticket->next;
        ticket->is_posted = true;
        lane_post(ticket->lane, &ticket->task);
        ticket = next;
    }
    pthread_mutex_unlock(&budget->lock);
}

void budget_wait(struct budget *budget, struct budget_waiter *waiter, uint64_t amount)
{
    assert(lane_is_current(waiter->lane));
    assert(budget->whole == NULL);
    if (waiter->ticket == NULL) {
        struct budget_ticket *ticket = mem_zalloc(sizeof(*ticket));
        ticket->task.fn = on_wake;
        ticket->lane = waiter->lane;
        ticket->waiter = waiter;
        waiter->ticket = ticket;
        pthread_mutex_lock(&budget->lock);
        ticket->next = budget->tickets;
        budget->tickets = ticket;
        atomic_fetch_add(&budget->waiting, 1);
        pthread_mutex_unlock(&budget->lock);
    }
    /* Something may have been returned between the refusal and this call, with no waiter to call:
     * check once more. */
    uint64_t limit = limit_at_hand(budget);
    if (amount <= limit && atomic_load(&budget->used) <= limit - amount)
        wake_waiters(budget);
}

void budget_wait_cancel(struct budget *budget, struct budget_waiter *waiter)
{
    struct budget_ticket *ticket = waiter->ticket;
    if (ticket == NULL)
        return;
    assert(lane_is_current(waiter->lane));
    waiter->ticket = NULL;
    ticket->waiter = NULL;
    pthread_mutex_lock(&budget->lock);
    bool is_listed = !ticket->is_posted;
    if (is_listed) {
        struct budget_ticket **link = &budget->tickets;
        while (*link != ticket)
            link = &(*link)->next;
        *link = ticket->next;
        atomic_fetch_sub(&budget->waiting, 1);
    }
    pthread_mutex_unlock(&budget->lock);
    if (is_listed)
        mem_free(ticket);
}

void budget_return(struct budget *budget, uint64_t amount)
{
    if (budget->whole != NULL) {
        uint64_t held = atomic_fetch_sub_explicit(&budget->used, amount, memory_order_relaxed);
        assert(held >= amount);
        budget = budget->whole;
    }
    if (amount >= RETIRED_BYTES_MIN)
        budget_note_freed(budget, amount);
    uint64_t rest = amount - refill(budget, amount);
    if (rest > 0 || amount == 0) {
        uint64_t used = atomic_fetch_sub(&budget->used, rest);
        assert(used >= rest);
        if (atomic_load(&budget->waiting) > 0)
            wake_waiters(budget);
    }
}

enum budget_result budget_reserve(struct budget_reserve *reserve, struct budget *budget,
                                  uint64_t amount)
{
    assert(budget == NULL || budget->whole == NULL);
    *reserve = (struct budget_reserve){.budget = budget, .outer = reserves};
    if (budget != NULL && !budget_try_take(budget, amount))
        return amount > budget_limit(budget) ? BUDGET_TOO_SMALL : BUDGET_FULL;
    if (budget != NULL)
        reserve->size = reserve->left = amount;
    reserves = reserve;
    return BUDGET_GIVEN;
}

bool budget_reserve_more(struct budget_reserve *reserve, uint64_t amount)
{
    assert(reserves == reserve);
    if (reserve->budget == NULL)
        return true;
    if (!try_take(reserve->budget, amount))
        return false;
    reserve->size += amount;
    reserve->left += amount;
    return true;
}

void budget_release(struct budget_reserve *reserve)
{
    assert(reserves == reserve);
    assert(reserve->left <= reserve->size);
    reserves = reserve->outer;
    if (reserve->left > 0)
        budget_return(reserve->budget, reserve->left);
}

bool budget_has_room(const struct budget *budget, uint64_t amount)
{
    if (budget == NULL)
        return true;
    assert(budget->whole == NULL);
    const struct budget_reserve *reserve = reserve_of(budget);
    uint64_t held = reserve != NULL ? reserve->left : 0;
    uint64_t limit = limit_at_hand(budget);
    const bool has_room = amount <= held || (amount - held <= limit &&
                                             budget_used(budget) <= limit - (amount - held));
    if (!has_room && export_levels > 0) /* the one thing that a question may note */
        note_refused_export((struct budget *)(uintptr_t)budget);
    return has_room;
}

uint64_t budget_room_max(const struct budget *budget, bool is_late)
{
    enum { OTHERS_PART = 64 };
    if (budget == NULL)
        return UINT64_MAX / 2;
    const uint64_t limit = budget_limit(budget);
    return is_late ? limit + limit / BUDGET_MARGIN_PART : limit - limit / OTHERS_PART;
}

bool budget_is_overdrawn(const struct budget *budget)
{
    if (budget == NULL)
        return false;
    uint64_t limit = budget_limit(budget);
    uint64_t used = budget_used(budget);
    return used > limit && used - limit > limit / BUDGET_MARGIN_PART;
}

void budget_note_leaving(struct budget *budget, uint64_t bytes)
{
    atomic_fetch_add_explicit(&budget->leaving, bytes, memory_order_relaxed);
}

void budget_note_left(struct budget *budget, uint64_t bytes)
{
    const uint64_t limit = budget_limit(budget);
    uint64_t before = atomic_fetch_sub(&budget->leaving, bytes);
    assert(before >= bytes);
    if (is_mostly_leaving(before, limit) && !is_mostly_leaving(before - bytes, limit) &&
        atomic_load(&budget->waiting) > 0)
        wake_waiters(budget);
}

bool budget_is_leaving(const struct budget *budget)
{
    return atomic_load_explicit(&budget->leaving, memory_order_relaxed) >
           budget_limit(budget) / BUDGET_MARGIN_PART;
}

bool budget_is_largely_leaving(const struct budget *budget)
{
    enum { LARGE_PART = 4 };
    return atomic_load_explicit(&budget->leaving, memory_order_relaxed) >
           budget_limit(budget) / LARGE_PART;
}

void budget_note_put_off(struct budget *budget, uint64_t until_ns)
{
    uint64_t last_ns = atomic_load_explicit(&budget->put_off_ns, memory_order_relaxed);
    while (until_ns > last_ns &&
           !atomic_compare_exchange_weak_explicit(&budget->put_off_ns, &last_ns, until_ns,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

uint64_t budget_put_off_ns(const struct budget *budget)
{
    return atomic_load_explicit(&budget->put_off_ns, memory_order_relaxed);
}

void budget_lower(struct budget *budget, uint64_t limit)
{
    assert(limit > 0);
    if (limit < atomic_load(&budget->limit))
        atomic_store(&budget->limit, limit);
}

uint64_t budget_used(const struct budget *budget)
{
    return atomic_load_explicit(&budget->used, memory_order_relaxed);
}

uint64_t budget_limit(const struct budget *budget)
{
    if (budget->whole != NULL)
        budget = budget->whole;
    return atomic_load_explicit(&budget->limit, memory_order_relaxed);
}
