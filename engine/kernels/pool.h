/* A thread pool for loops of microseconds: `parallel_for(threads, body, argument, count)` calls body(argument, i) for
 * every i < count, in any order, on the caller and on the workers that happen to be awake.
 *
 * The caller never waits for a worker that has not begun: on a machine with other work (an editor's servers, a build) a
 * fixed share for a thread that is not running would hold up every loop for a time slice. Between loops workers spin for
 * about a tenth of a millisecond, then sleep. A second caller at the same time runs its loop alone.
 */
#ifndef SPECD_POOL_H
#define SPECD_POOL_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>

typedef void (*pool_body)(void *argument, int64_t index);

enum { POOL_MOST = 64, POOL_SPIN = 4000 };

static struct {
    pthread_mutex_t caller, lock;
    pthread_cond_t wake;
    atomic_int workers, asleep, inside, is_open;
    atomic_uint loop;     /* number of the newest loop */
    atomic_llong next;    /* its next index */
    pool_body body;
    void *argument;
    int64_t count;
} pool = {.caller = PTHREAD_MUTEX_INITIALIZER, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static inline void pool_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void pool_work(void) {
    for (long long i; (i = atomic_fetch_add(&pool.next, 1)) < pool.count;) pool.body(pool.argument, i);
}

static void *pool_worker(void *unused) {
    unsigned seen = 0;
    (void)unused;
    for (;;) {
        for (int spin = 0; spin < POOL_SPIN && atomic_load(&pool.loop) == seen; spin++) pool_pause();
        if (atomic_load(&pool.loop) == seen) {
            pthread_mutex_lock(&pool.lock);
            atomic_fetch_add(&pool.asleep, 1);
            while (atomic_load(&pool.loop) == seen) pthread_cond_wait(&pool.wake, &pool.lock);
            atomic_fetch_sub(&pool.asleep, 1);
            pthread_mutex_unlock(&pool.lock);
        }
        seen = atomic_load(&pool.loop);
        /* Counted before it looks whether the loop is open: the caller closes it first and then waits for the count. */
        atomic_fetch_add(&pool.inside, 1);
        if (atomic_load(&pool.is_open)) pool_work();
        atomic_fetch_sub(&pool.inside, 1);
    }
    return NULL;
}

/* A forked child has no workers; it starts its own when it needs them. */
static void pool_in_child(void) {
    pthread_mutex_init(&pool.caller, NULL);
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.wake, NULL);
    atomic_store(&pool.workers, 0);
    atomic_store(&pool.asleep, 0);
    atomic_store(&pool.inside, 0);
    atomic_store(&pool.is_open, 0);
}

static void pool_start(int workers) {
    static int is_first = 1;
    if (is_first) pthread_atfork(NULL, NULL, pool_in_child);
    is_first = 0;
    for (; atomic_load(&pool.workers) < workers; atomic_fetch_add(&pool.workers, 1)) {
        pthread_t thread;
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &detached, pool_worker, NULL);
        pthread_attr_destroy(&detached);
        if (failed) break; /* fewer threads: slower, nothing else */
    }
}

static void parallel_for(int threads, pool_body body, void *argument, int64_t count) {
    int workers = (threads < POOL_MOST ? threads : POOL_MOST) - 1;
    if (workers < 1 || count < 2 || pthread_mutex_trylock(&pool.caller)) {
        for (int64_t i = 0; i < count; i++) body(argument, i);
        return;
    }
    if (atomic_load(&pool.workers) < workers) pool_start(workers);
    pool.body = body, pool.argument = argument, pool.count = count;
    atomic_store(&pool.next, 0);
    atomic_store(&pool.is_open, 1);
    atomic_fetch_add(&pool.loop, 1);
    if (atomic_load(&pool.asleep)) {
        pthread_mutex_lock(&pool.lock);
        pthread_cond_broadcast(&pool.wake);
        pthread_mutex_unlock(&pool.lock);
    }
    pool_work();
    atomic_store(&pool.is_open, 0);
    for (int spin = 0; atomic_load(&pool.inside); spin++) {
        pool_pause();
        if (spin > POOL_SPIN) sched_yield();
    }
    pthread_mutex_unlock(&pool.caller);
}

#endif
