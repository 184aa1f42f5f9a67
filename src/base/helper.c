/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of works is guarded by a mutex; a lane has few of them, each worth milliseconds. */
#include "src/base/helper.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include "src/base/mem.h"

struct helper {
    struct lane *lane;
    unsigned works; /* on the lane: started, and not done */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct helper_work *first; /* under the lock, as all that follows */
    struct helper_work **last;
    bool is_ending;
};

static void on_done(struct lane_task *task)
{
    struct helper_work *work =
        (struct helper_work *)((char *)task - offsetof(struct helper_work, task));
    assert(work->helper->works > 0);
    work->helper->works--;
    work->done(work);
}

/* NULL: the end. */
static struct helper_work *take(struct helper *helper)
{
    pthread_mutex_lock(&helper->lock);
    while (helper->first == NULL && !helper->is_ending)
        pthread_cond_wait(&helper->changed, &helper->lock);
    struct helper_work *work = helper->first;
    if (work != NULL) {
        helper->first = work->next;
        if (helper->first == NULL)
            helper->last = &helper->first;
    }
    pthread_mutex_unlock(&helper->lock);
    return work;
}

static void *thread_main(void *arg)
{
    struct helper *helper = arg;
    struct helper_work *work;
    while ((work = take(helper)) != NULL) {
        work->run(work);
        lane_post(helper->lane, &work->task);
    }
    return NULL;
}

/* Signals are for the main thread. */
static bool start_thread(struct helper *helper)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_started = pthread_create(&helper->thread, NULL, thread_main, helper) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_started;
}

struct helper *helper_create(struct lane *lane)
{
    assert(lane_is_current(lane));
    struct helper *helper = mem_zalloc(sizeof(*helper));
    helper->lane = lane;
    helper->last = &helper->first;
    pthread_mutex_init(&helper->lock, NULL);
    pthread_cond_init(&helper->changed, NULL);
    if (start_thread(helper))
        return helper;
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
    mem_free(helper);
    return NULL;
}

void helper_destroy(struct helper *helper)
{
    if (helper == NULL)
        return;
    assert(helper->works == 0);
    pthread_mutex_lock(&helper->lock);
    helper->is_ending = true;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
    pthread_join(helper->thread, NULL);
    pthread_cond_destroy(&helper->changed);
    pthread_mutex_destroy(&helper->lock);
    mem_free(helper);
}

void helper_start(struct helper *helper, struct helper_work *work)
{
    assert(lane_is_current(helper->lane));
    assert(work->run != NULL && work->done != NULL);
    work->helper = helper;
    work->next = NULL;
    work->task = (struct lane_task){.fn = on_done};
    helper->works++;
    pthread_mutex_lock(&helper->lock);
    *helper->last = work;
    helper->last = &work->next;
    pthread_cond_signal(&helper->changed);
    pthread_mutex_unlock(&helper->lock);
}

unsigned helper_works(const struct helper *helper)
{
    assert(lane_is_current(helper->lane));
    return helper->works;
}
