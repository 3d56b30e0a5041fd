/* A device in C: each queue is a thread, which does its work one after another. Put the driver's streams in their place. */
#include <graphdock/device.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SAY(status, ...) (snprintf(message, GD_MESSAGE_SIZE, __VA_ARGS__), (status))

/* -- memory: blocks with their size before them, out of a budget */

struct gd_device {
    pthread_mutex_t lock;
    int64_t memory, used;
};

typedef struct header {
    void *base;
    int64_t nbytes;
} header;

static void give_back(gd_device *device, void *block) {
    header h = ((header *)block)[-1];
    free(h.base);
    pthread_mutex_lock(&device->lock);
    device->used -= h.nbytes;
    pthread_mutex_unlock(&device->lock);
}

static int32_t count(int32_t *number, char *message) {
    (void)message;
    *number = 1;
    return GD_OK;
}

static int32_t open_device(int32_t index, int64_t memory, gd_device **device, char *message) {
    if (index != 0) return SAY(GD_NOT_FOUND, "there is no slate %d", index);
    gd_device *made = calloc(1, sizeof(gd_device));
    if (!made) return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
    pthread_mutex_init(&made->lock, NULL);
    made->memory = memory ? memory : (int64_t)1 << 30;
    *device = made;
    return GD_OK;
}

/* Blocks are not kept for later, so that those of a queue are like others. */
static int32_t allocate(gd_device *device, gd_queue *queue, int64_t nbytes, int64_t alignment, void **block, char *message) {
    (void)queue;
    pthread_mutex_lock(&device->lock);
    int fits = nbytes <= device->memory - device->used;
    int64_t used = device->used;
    if (fits) device->used += nbytes;
    pthread_mutex_unlock(&device->lock);
    if (!fits)
        return SAY(GD_RESOURCE_EXHAUSTED, "slate has no %lld bytes left: %lld of %lld are in use", (long long)nbytes,
                   (long long)used, (long long)device->memory);
    char *base = malloc((size_t)(nbytes + alignment + (int64_t)sizeof(header)));
    if (!base) {
        pthread_mutex_lock(&device->lock);
        device->used -= nbytes;
        pthread_mutex_unlock(&device->lock);
        return SAY(GD_RESOURCE_EXHAUSTED, "the host has no %lld bytes left", (long long)nbytes);
    }
    uintptr_t at = (uintptr_t)base + sizeof(header);
    at = (at + (uintptr_t)alignment - 1) / (uintptr_t)alignment * (uintptr_t)alignment;
    ((header *)at)[-1] = (header){base, nbytes};
    *block = (void *)at;
    return GD_OK;
}

/* -- events: numbered points. An event lives until nobody holds it and no queued work does. */

struct gd_event {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t recorded, done;
    int holders;
};

static int32_t new_event(gd_device *device, gd_event **event, char *message) {
    (void)device;
    gd_event *made = calloc(1, sizeof(gd_event));
    if (!made) return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    made->holders = 1;
    *event = made;
    return GD_OK;
}

static void drop(gd_event *event) {
    pthread_mutex_lock(&event->lock);
    int left = --event->holders;
    pthread_mutex_unlock(&event->lock);
    if (left) return;
    pthread_mutex_destroy(&event->lock);
    pthread_cond_destroy(&event->changed);
    free(event);
}

static void wait_for(gd_event *event, int64_t point) {
    pthread_mutex_lock(&event->lock);
    while (event->done < point) pthread_cond_wait(&event->changed, &event->lock);
    pthread_mutex_unlock(&event->lock);
}

/* -- queues */

typedef int32_t (*kernel)(const gd_argument *arguments, int32_t count, char *message);

typedef struct work {
    struct work *next;
    enum { COPY, KERNEL, RECORD, WAIT, RELEASE, STOP } what;
    void *target, *source; /* of a copy, and the block of a release */
    int64_t nbytes;
    void *own; /* memory that goes with the work */
    kernel function;
    gd_argument *arguments;
    int32_t count;
    int64_t tag, point;
    gd_event *event;
} work;

struct gd_queue {
    gd_device *device;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    work *first, *last;
    int64_t queued, finished;
    int32_t status; /* of the first work that failed since the last fence */
    int64_t tag;
    char failed[GD_MESSAGE_SIZE];
};

static void done(work *w) {
    free(w->own);
    free(w->arguments);
    free(w);
}

static void run(gd_queue *queue, work *w) {
    char message[GD_MESSAGE_SIZE] = "";
    int32_t status = GD_OK;
    switch (w->what) {
    case COPY: memmove(w->target, w->source, (size_t)w->nbytes); break;
    case KERNEL: status = w->function(w->arguments, w->count, message); break;
    case RECORD:
        pthread_mutex_lock(&w->event->lock);
        if (w->event->done < w->point) w->event->done = w->point;
        pthread_cond_broadcast(&w->event->changed);
        pthread_mutex_unlock(&w->event->lock);
        drop(w->event);
        break;
    case WAIT:
        wait_for(w->event, w->point);
        drop(w->event);
        break;
    case RELEASE: give_back(queue->device, w->target); break;
    case STOP: break;
    }
    if (status != GD_OK && queue->status == GD_OK) {
        queue->status = status;
        queue->tag = w->tag;
        memcpy(queue->failed, message, sizeof message);
    }
}

static void *serve(void *argument) {
    gd_queue *queue = argument;
    for (;;) {
        pthread_mutex_lock(&queue->lock);
        while (!queue->first) pthread_cond_wait(&queue->changed, &queue->lock);
        work *w = queue->first;
        queue->first = w->next;
        pthread_mutex_unlock(&queue->lock);
        int stop = w->what == STOP;
        run(queue, w);
        done(w);
        pthread_mutex_lock(&queue->lock);
        queue->finished++;
        pthread_cond_broadcast(&queue->changed);
        pthread_mutex_unlock(&queue->lock);
        if (stop) break;
    }
    pthread_mutex_destroy(&queue->lock);
    pthread_cond_destroy(&queue->changed);
    free(queue);
    return NULL;
}

static int32_t give(gd_queue *queue, work given, char *message) {
    work *w = malloc(sizeof(work));
    if (!w) {
        free(given.own);
        free(given.arguments);
        return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
    }
    *w = given;
    w->next = NULL;
    pthread_mutex_lock(&queue->lock);
    if (queue->first) queue->last->next = w;
    else queue->first = w;
    queue->last = w;
    queue->queued++;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return GD_OK;
}

static int32_t new_queue(gd_device *device, gd_queue **queue, char *message) {
    gd_queue *made = calloc(1, sizeof(gd_queue));
    pthread_t thread;
    if (!made) return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
    made->device = device;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    if (pthread_create(&thread, NULL, serve, made)) {
        free(made);
        return SAY(GD_RESOURCE_EXHAUSTED, "the system has no thread left");
    }
    pthread_detach(thread);
    *queue = made;
    return GD_OK;
}

static void free_queue(gd_queue *queue) {
    char message[GD_MESSAGE_SIZE];
    give(queue, (work){.what = STOP}, message);
}

static int32_t release(gd_device *device, gd_queue *queue, void *block, char *message) {
    if (queue) return give(queue, (work){.what = RELEASE, .target = block}, message);
    give_back(device, block);
    return GD_OK;
}

static int32_t copy(gd_queue *queue, void *target, const void *source, int64_t nbytes, int32_t kind, char *message) {
    void *own = NULL;
    if (kind == 3) { /* the source may change as soon as this returns */
        own = malloc((size_t)nbytes + 1);
        if (!own) return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
        memcpy(own, source, (size_t)nbytes);
        source = own;
    }
    return give(queue, (work){.what = COPY, .target = target, .source = (void *)source, .nbytes = nbytes, .own = own}, message);
}

static int32_t synchronize(gd_queue *queue, int64_t *tag, char *message) {
    pthread_mutex_lock(&queue->lock);
    int64_t all = queue->queued;
    while (queue->finished < all) pthread_cond_wait(&queue->changed, &queue->lock);
    int32_t status = queue->status;
    *tag = queue->tag;
    memcpy(message, queue->failed, GD_MESSAGE_SIZE);
    queue->status = GD_OK;
    pthread_mutex_unlock(&queue->lock);
    return status;
}

static int32_t record(gd_queue *queue, gd_event *event, char *message) {
    pthread_mutex_lock(&event->lock);
    int64_t point = ++event->recorded;
    event->holders++;
    pthread_mutex_unlock(&event->lock);
    return give(queue, (work){.what = RECORD, .event = event, .point = point}, message);
}

static int32_t wait_event(gd_queue *queue, gd_event *event, char *message) {
    pthread_mutex_lock(&event->lock);
    int64_t point = event->recorded; /* a later record does not count */
    event->holders++;
    pthread_mutex_unlock(&event->lock);
    return give(queue, (work){.what = WAIT, .event = event, .point = point}, message);
}

static int32_t passed(gd_event *event, int32_t *whether, char *message) {
    (void)message;
    pthread_mutex_lock(&event->lock);
    *whether = event->done >= event->recorded;
    pthread_mutex_unlock(&event->lock);
    return GD_OK;
}

static int32_t wait_host(gd_event *event, char *message) {
    (void)message;
    pthread_mutex_lock(&event->lock);
    int64_t point = event->recorded;
    pthread_mutex_unlock(&event->lock);
    wait_for(event, point);
    return GD_OK;
}

/* -- kernels of float32 */

/* Where element i of an output lies in an argument that is broadcast to it. */
static int64_t place(const gd_argument *out, const gd_argument *in, int64_t i) {
    int64_t at = 0, step = 1;
    for (int32_t d = out->rank - 1, k = in->rank - 1; k >= 0; d--, k--) {
        if (in->shape[k] != 1) at += i % out->shape[d] * step;
        step *= in->shape[k];
        i /= out->shape[d];
    }
    return at;
}

#define BINARY(name, expression)                                                                                        \
    static int32_t name(const gd_argument *a, int32_t count, char *message) {                                           \
        (void)count, (void)message;                                                                                     \
        const float *p = a[0].data, *q = a[1].data;                                                                     \
        float *z = a[2].data;                                                                                           \
        for (int64_t i = 0; i < a[2].size; i++) {                                                                       \
            float x = p[place(&a[2], &a[0], i)], y = q[place(&a[2], &a[1], i)];                                         \
            z[i] = expression;                                                                                          \
        }                                                                                                               \
        return GD_OK;                                                                                                   \
    }
BINARY(add, x + y)
BINARY(sub, x - y)
BINARY(mul, x *y)

static int32_t relu(const gd_argument *a, int32_t count, char *message) {
    (void)count, (void)message;
    for (int64_t i = 0; i < a[1].size; i++) {
        float x = ((const float *)a[0].data)[i];
        ((float *)a[1].data)[i] = x > 0 || isnan(x) ? x : 0;
    }
    return GD_OK;
}

/* The last two dims, one product for each place of those before; then transpose_a and transpose_b. */
static int32_t mat_mul(const gd_argument *a, int32_t count, char *message) {
    (void)count;
    const gd_argument *p = &a[0], *q = &a[1], *z = &a[2];
    if (p->rank != 2 || q->rank != 2) return SAY(GD_UNIMPLEMENTED, "slate multiplies matrices, not stacks of them");
    int64_t ta = *(const int64_t *)a[3].data, tb = *(const int64_t *)a[4].data;
    int64_t m = z->shape[0], n = z->shape[1], k = p->shape[ta ? 0 : 1];
    const float *x = p->data, *y = q->data;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t l = 0; l < k; l++)
                sum += (double)x[ta ? l * m + i : i * k + l] * (double)y[tb ? j * k + l : l * n + j];
            ((float *)z->data)[i * n + j] = (float)sum;
        }
    return GD_OK;
}

static const struct {
    const char *name;
    kernel function;
} kernels[] = {{"add", add}, {"sub", sub}, {"mul", mul}, {"relu", relu}, {"mat_mul", mat_mul}};

/* Shapes and host arguments live for the call alone: the work gets copies, all in one piece. */
static int32_t launch(gd_queue *queue, const char *name, const gd_argument *given, int32_t number, int64_t tag, char *message) {
    kernel function = NULL;
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (!strcmp(kernels[i].name, name)) function = kernels[i].function;
    if (!function) return SAY(GD_NOT_FOUND, "slate has no kernel %s", name);
    size_t bytes = 0;
    for (int32_t i = 0; i < number; i++)
        bytes += (size_t)given[i].rank * sizeof(int64_t) + (given[i].on_host ? (size_t)given[i].size * sizeof(int64_t) : 0);
    gd_argument *arguments = malloc((size_t)(number + 1) * sizeof(gd_argument));
    char *own = malloc(bytes + 1), *at = own;
    if (!arguments || !own) {
        free(arguments);
        free(own);
        return SAY(GD_RESOURCE_EXHAUSTED, "the host has no memory left");
    }
    for (int32_t i = 0; i < number; i++) {
        gd_argument *one = &arguments[i];
        *one = given[i];
        one->shape = memcpy(at, given[i].shape, (size_t)one->rank * sizeof(int64_t));
        at += (size_t)one->rank * sizeof(int64_t);
        if (one->on_host) { /* attributes: int64 and float64 */
            one->data = memcpy(at, given[i].data, (size_t)one->size * sizeof(int64_t));
            at += (size_t)one->size * sizeof(int64_t);
        }
    }
    work w = {.what = KERNEL, .function = function, .arguments = arguments, .count = number, .own = own, .tag = tag};
    return give(queue, w, message);
}

static const gd_device_api api = {
    GRAPHDOCK_DEVICE_VERSION, sizeof(gd_device_api), count, open_device, allocate, release, new_queue, free_queue, copy, launch,
    synchronize, new_event, drop, record, wait_event, passed, wait_host};
GRAPHDOCK_DEVICE(&api)
