/* graphdock's interface for devices in C and C++ (docs/write-a-native-device.md).
 *
 * A library exports one function, which returns a table of functions:
 *
 *     #include <graphdock/device.h>
 *     static const gd_device_api api = {GRAPHDOCK_DEVICE_VERSION, sizeof(gd_device_api), count, open_device, ...};
 *     GRAPHDOCK_DEVICE(&api)
 *
 * Each returns a status of kernel.h, GD_OK or what went wrong, with a text of at most GD_MESSAGE_SIZE bytes in `message`, which ends with
 * 0. They are called without Python's lock, from any thread. Calls for one queue do not overlap, but for `record`, `wait` and
 * `synchronize`. Nothing that a call is given outlives it, but for what stands in memory of the device or of `staging`.
 */
#ifndef GRAPHDOCK_DEVICE_H
#define GRAPHDOCK_DEVICE_H

#include <graphdock/kernel.h>

/* Raised whenever a struct below changes; a library of another version is refused when it is loaded. */
#define GRAPHDOCK_DEVICE_VERSION 1

/* begin device declarations: what graphdock itself reads */

enum gd_device_limits { GD_MESSAGE_SIZE = 512 };

/* What the library makes; graphdock keeps pointers to them and looks into none. */
typedef struct gd_device gd_device;
typedef struct gd_queue gd_queue;
typedef struct gd_event gd_event;

/* An argument of a kernel: inputs, outputs, then attributes as arrays of int64 or float64. Row-major without gaps.
 * `on_host`: `data` is host memory that lives for the call alone: attributes, and inputs that the op or kernel wants there. */
typedef struct gd_argument {
    void *data;
    const int64_t *shape;
    int64_t size;
    int32_t dtype;
    int32_t rank;
    int32_t on_host;
    int32_t reserved;
} gd_argument;

typedef struct gd_device_api {
    int32_t version;
    int32_t size; /* sizeof(gd_device_api) */

    /* How many devices are here. Opens none. GD_UNAVAILABLE, with a reason, where there can be none. */
    int32_t (*count)(int32_t *count, char *message);
    /* Opens a device that may take so many bytes of memory; 0: all it has. It stays open as long as the process. */
    int32_t (*open)(int32_t index, int64_t memory, gd_device **device, char *message);

    /* Memory. With a queue, `allocate` may give what work queued there before has freed, and `release` takes the block back when
     * what is queued there has run; with NULL both are at once. GD_RESOURCE_EXHAUSTED: there is none left. */
    int32_t (*allocate)(gd_device *device, gd_queue *queue, int64_t nbytes, int64_t alignment, void **block, char *message);
    int32_t (*release)(gd_device *device, gd_queue *queue, void *block, char *message);

    /* Queues: work in order. `free_queue` lets what is queued run. */
    int32_t (*new_queue)(gd_device *device, gd_queue **queue, char *message);
    void (*free_queue)(gd_queue *queue);
    /* Copies of `nbytes`; they return when queued. `kind` 0: within memory of devices; 1: from staging memory; 2: into it; 3: from
     * host memory that may change as soon as the call returns. */
    int32_t (*copy)(gd_queue *queue, void *target, const void *source, int64_t nbytes, int32_t kind, char *message);
    /* Queues a kernel by name. `tag` is graphdock's, to be given back if its work fails. GD_NOT_FOUND: no such kernel. */
    int32_t (*launch)(gd_queue *queue, const char *name, const gd_argument *arguments, int32_t count, int64_t tag, char *message);
    /* Waits for all work, and returns how the first that failed did, once, with its tag; work after it has run all the same. */
    int32_t (*synchronize)(gd_queue *queue, int64_t *tag, char *message);

    /* Events: points of queues. `wait` means the latest `record` before it; of an event that was never recorded nobody asks. */
    int32_t (*new_event)(gd_device *device, gd_event **event, char *message);
    void (*free_event)(gd_event *event);
    int32_t (*record)(gd_queue *queue, gd_event *event, char *message);
    int32_t (*wait)(gd_queue *queue, gd_event *event, char *message);
    int32_t (*passed)(gd_event *event, int32_t *passed, char *message);
    int32_t (*wait_host)(gd_event *event, char *message);
} gd_device_api;

/* end device declarations */

#ifdef __cplusplus
#define GD_DEVICE_C extern "C"
#else
#define GD_DEVICE_C
#endif

#if defined(_WIN32)
#define GD_DEVICE_EXPORT __declspec(dllexport)
#else
#define GD_DEVICE_EXPORT __attribute__((visibility("default")))
#endif

/* Exports the table; once per library. */
#define GRAPHDOCK_DEVICE(table)                                                                                              \
    GD_DEVICE_C GD_DEVICE_EXPORT const gd_device_api *graphdock_device(void);                                                \
    const gd_device_api *graphdock_device(void) { return (table); }

#endif
