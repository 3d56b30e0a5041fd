"""The intra-op pool as native code over POSIX threads: :mod:`graphdock.contracts.parallel` says what its function does.

A job is published by its *ticket*: the number of the job in the high half, the next part in the low half. Whoever takes a part
reads what the job is, and then raises the ticket by one. That fails if anything of the next job was among what was read: before a
caller writes that, it closes the ticket, by a part that no job has. The caller leaves when all parts are done, so that nobody reads
what a job points at after that.

On a busy machine a thread that has begun a part may lose its core, and the caller waits as long as that takes. So callers count
what sharing gives: the time that a job would have taken them alone, as far as their own parts tell, less what it took. Where that
adds up to a loss, the next jobs are computed alone: 8, then 16, up to 1024, as long as the tries between end in losses.
"""

from __future__ import annotations

import os
import platform
import sys

from graphdock.contracts import intra_op_pool
from graphdock.locks import new_lock

__all__ = ["pool_address"]

#: How often a thread looks for the next job before it sleeps, some 20 us; and a caller for the last part before it gives its turn.
_LOOKS, _WAITS = 400, 1000
#: Gains that are remembered, and losses at which jobs are computed alone, in ns; how many jobs at first and at most.
_GAIN, _LOSS, _ALONE = 2_000_000, 300_000, (8, 1024)
#: Bytes that hold a mutex, a condition or a set of signals on any system.
_ROOM = 256
_PAUSES = {
    "x86_64": "llvm.x86.sse2.pause()",
    "aarch64": "llvm.aarch64.hint(i32 1)",
    "arm64": "llvm.aarch64.hint(i32 1)",
}

_TEXT = """
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(ptr)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @sched_yield()
declare i32 @clock_gettime(i32, ptr)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
DECLARE
@mutex = internal global [ROOM x i8] zeroinitializer, align 64
@cond = internal global [ROOM x i8] zeroinitializer, align 64
@ticket = internal global i64 0, align 64
@function = internal global ptr null, align 64
@argument = internal global ptr null
@limit = internal global i64 0
@seats = internal global i64 0
@done = internal global i64 0, align 64
@busy = internal global i64 0, align 64
@sleepers = internal global i64 0
@workers = internal global i64 0
; of the one that is busy: what sharing has given, jobs that are left to be computed alone, and how many there were last
@balance = internal global i64 0
@skip = internal global i64 0
@alone.last = internal global i64 0

; what a child of a fork does: nobody is at work but the thread that forked
define void @reset() {
  %1 = call i32 @pthread_mutex_init(ptr @mutex, ptr null)
  %2 = call i32 @pthread_cond_init(ptr @cond, ptr null)
  %3 = atomicrmw or ptr @ticket, i64 4294967295 seq_cst ; what the parent had at work stays the parent's
  store i64 0, ptr @busy
  store i64 0, ptr @sleepers
  store i64 0, ptr @workers
  store i64 0, ptr @balance
  store i64 0, ptr @skip
  store i64 0, ptr @alone.last
  ret void
}

define internal i64 @now() {
entry:
  %time = alloca [2 x i64]
  %1 = call i32 @clock_gettime(i32 MONOTONIC, ptr %time)
  %seconds = load i64, ptr %time
  %rest.at = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %rest.at
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}

; what sharing has given with a job that would have taken so long alone
define internal void @count(i64 %alone, i64 %took) {
entry:
  %gain = sub i64 %alone, %took
  %before = load i64, ptr @balance
  %sum = add i64 %before, %gain
  %balance = call i64 @llvm.smin.i64(i64 %sum, i64 GAIN)
  %last = load i64, ptr @alone.last
  %lost = icmp slt i64 %balance, LOSS
  br i1 %lost, label %alone.now, label %goes.on
alone.now:
  %double = shl i64 %last, 1
  %some = call i64 @llvm.smax.i64(i64 %double, i64 FEWEST)
  %next = call i64 @llvm.smin.i64(i64 %some, i64 MOST)
  store i64 %next, ptr @alone.last
  store i64 %next, ptr @skip
  store i64 0, ptr @balance
  ret void
goes.on:
  store i64 %balance, ptr @balance
  %less = sub i64 %last, 1
  %left = call i64 @llvm.smax.i64(i64 %less, i64 0)
  store i64 %left, ptr @alone.last
  ret void
}

; take parts of the job until none is left: how many
define internal i64 @work(i64 %job) {
entry:
  br label %look
look:
  %mine = phi i64 [ 0, %entry ], [ %mine, %take ], [ %mine.next, %run ]
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %now = lshr i64 %ticket, 32
  %same = icmp eq i64 %now, %job
  br i1 %same, label %read, label %end
read:
  %part = and i64 %ticket, 4294967295
  %limit = load atomic i64, ptr @limit acquire, align 8
  %function = load atomic ptr, ptr @function acquire, align 8
  %argument = load atomic ptr, ptr @argument acquire, align 8
  %left = icmp ult i64 %part, %limit
  br i1 %left, label %take, label %end
take:
  %next = add i64 %ticket, 1
  %pair = cmpxchg ptr @ticket, i64 %ticket, i64 %next acq_rel acquire
  %taken = extractvalue { i64, i1 } %pair, 1
  br i1 %taken, label %run, label %look
run:
  call void %function(ptr %argument, i64 %part)
  %before = atomicrmw add ptr @done, i64 1 release
  %mine.next = add i64 %mine, 1
  br label %look
end:
  ret i64 %mine
}

define internal ptr @serve(ptr %given) {
entry:
  %index = ptrtoint ptr %given to i64
  br label %look
look:
  %seen = phi i64 [ -1, %entry ], [ %seen, %again ], [ %seen, %woken ], [ %job, %worked ]
  %looks = phi i64 [ 0, %entry ], [ %more, %again ], [ 0, %woken ], [ 0, %worked ]
  %ticket = load atomic i64, ptr @ticket acquire, align 8
  %job = lshr i64 %ticket, 32
  %old = icmp eq i64 %job, %seen
  br i1 %old, label %idle, label %fresh
fresh:
  %seats = load atomic i64, ptr @seats monotonic, align 8
  %mine = icmp ult i64 %index, %seats
  br i1 %mine, label %help, label %worked
help:
  %parts = call i64 @work(i64 %job)
  br label %worked
worked:
  br label %look
idle:
  %more = add i64 %looks, 1
  %tired = icmp ugt i64 %more, LOOKS
  br i1 %tired, label %sleep, label %again
again:
  PAUSE
  br label %look
sleep:
  %1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %2 = atomicrmw add ptr @sleepers, i64 1 seq_cst
  br label %check
check:
  %waiting = load atomic i64, ptr @ticket seq_cst, align 8
  %number = lshr i64 %waiting, 32
  %still = icmp eq i64 %number, %seen
  br i1 %still, label %wait, label %rise
wait:
  %3 = call i32 @pthread_cond_wait(ptr @cond, ptr @mutex)
  br label %check
rise:
  %4 = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  %5 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %woken
woken:
  br label %look
}

; begin threads until there are so many; they take no signals, which are for Python's threads
define internal void @begin(i64 %wanted) {
entry:
  %all = alloca [ROOM x i8], align 64
  %mask = alloca [ROOM x i8], align 64
  %thread = alloca ptr
  call void @llvm.memset.p0.i64(ptr %all, i8 -1, i64 ROOM, i1 false)
  %1 = call i32 @pthread_sigmask(i32 SETMASK, ptr %all, ptr %mask)
  br label %look
look:
  %there = load i64, ptr @workers
  %enough = icmp uge i64 %there, %wanted
  br i1 %enough, label %end, label %make
make:
  %index = inttoptr i64 %there to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @serve, ptr %index)
  %good = icmp eq i32 %failed, 0
  br i1 %good, label %made, label %end
made:
  %id = load ptr, ptr %thread
  %2 = call i32 @pthread_detach(ptr %id)
  %more = add i64 %there, 1
  store i64 %more, ptr @workers
  br label %look
end:
  %3 = call i32 @pthread_sigmask(i32 SETMASK, ptr %mask, ptr null)
  ret void
}

define internal void @alone(ptr %function, ptr %argument, i64 %parts) {
entry:
  %any = icmp ugt i64 %parts, 0
  br i1 %any, label %loop, label %end
loop:
  %part = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %function(ptr %argument, i64 %part)
  %next = add i64 %part, 1
  %more = icmp ult i64 %next, %parts
  br i1 %more, label %loop, label %end
end:
  ret void
}

define void @region(ptr %function, ptr %argument, i64 %parts, i64 %threads) {
entry:
  %several = icmp ugt i64 %parts, 1
  %shared = icmp ugt i64 %threads, 1
  %both = and i1 %several, %shared
  br i1 %both, label %ask, label %single
ask:
  %pair = cmpxchg ptr @busy, i64 0, i64 1 acq_rel acquire
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %judge, label %single
judge:
  %skip = load i64, ptr @skip
  %tries = icmp eq i64 %skip, 0
  br i1 %tries, label %publish, label %keep
keep:
  %skip.less = sub i64 %skip, 1
  store i64 %skip.less, ptr @skip
  store atomic i64 0, ptr @busy release, align 8
  br label %single
single:
  call void @alone(ptr %function, ptr %argument, i64 %parts)
  ret void
publish:
  %last = atomicrmw or ptr @ticket, i64 4294967295 seq_cst
  %others = sub i64 %threads, 1
  %there = load i64, ptr @workers
  %fewer = icmp ult i64 %there, %others
  br i1 %fewer, label %start, label %ready
start:
  call void @begin(i64 %others)
  br label %ready
ready:
  store atomic i64 %parts, ptr @limit release, align 8
  store atomic ptr %function, ptr @function release, align 8
  store atomic ptr %argument, ptr @argument release, align 8
  store atomic i64 %others, ptr @seats monotonic, align 8
  store atomic i64 0, ptr @done monotonic, align 8
  %number = lshr i64 %last, 32
  %job.more = add i64 %number, 1
  %job = and i64 %job.more, 4294967295
  %ticket = shl i64 %job, 32
  store atomic i64 %ticket, ptr @ticket seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %any = icmp ugt i64 %asleep, 0
  br i1 %any, label %wake, label %take
wake:
  %1 = call i32 @pthread_mutex_lock(ptr @mutex)
  %2 = call i32 @pthread_cond_broadcast(ptr @cond)
  %3 = call i32 @pthread_mutex_unlock(ptr @mutex)
  br label %take
take:
  %begun = call i64 @now()
  %mine.parts = call i64 @work(i64 %job)
  %ended = call i64 @now()
  br label %await
await:
  %looks = phi i64 [ 0, %take ], [ %more, %pause ], [ 0, %yield ]
  %finished = load atomic i64, ptr @done acquire, align 8
  %all = icmp eq i64 %finished, %parts
  br i1 %all, label %end, label %hold
hold:
  %more = add i64 %looks, 1
  %long = icmp ugt i64 %more, WAITS
  br i1 %long, label %yield, label %pause
pause:
  PAUSE
  br label %await
yield:
  %4 = call i32 @sched_yield()
  br label %await
end:
  %left = call i64 @now()
  %took = sub i64 %left, %begun
  %its.time = sub i64 %ended, %begun
  %its.parts = call i64 @llvm.smax.i64(i64 %mine.parts, i64 1)
  %all.time = mul i64 %its.time, %parts
  %alone.time = sdiv i64 %all.time, %its.parts
  %none = icmp eq i64 %mine.parts, 0
  %guess = select i1 %none, i64 %took, i64 %alone.time
  call void @count(i64 %guess, i64 %took)
  store atomic i64 0, ptr @busy release, align 8
  ret void
}
"""

_LOCK = new_lock()
_MADE: list[int] = []


def pool_address() -> int:
    """Address of the process's ``run``; 0 where there are no POSIX threads: kernels then compute all their parts themselves."""
    if not _MADE:
        with _LOCK:
            _MADE[:] = [0 if sys.platform == "win32" else intra_op_pool("llvm", _make).run]
    return _MADE[0]


def _make() -> int:
    from graphdock_llvm.native import interface
    from graphdock_llvm.target import functions

    pause = _PAUSES.get(platform.machine())
    words = {
        "DECLARE": f"declare void @{pause.partition('(')[0]}({'i32' if 'i32' in pause else ''})" if pause else "",
        "PAUSE": f"call void @{pause}" if pause else "",
        "SETMASK": "2" if sys.platform.startswith("linux") else "3",
        "ROOM": str(_ROOM),
        "LOOKS": str(_LOOKS),
        "WAITS": str(_WAITS),
        "GAIN": str(_GAIN),
        "LOSS": str(-_LOSS),
        "FEWEST": str(_ALONE[0]),
        "MOST": str(_ALONE[1]),
        "MONOTONIC": "1" if sys.platform.startswith("linux") else "6",
    }
    text = _TEXT + "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
    for word, value in words.items():
        text = text.replace(word, value)
    run, reset = functions(text, ("region", "reset"))
    forked = interface().cast("void (*)(void)", reset)
    forked()
    os.register_at_fork(after_in_child=forked)
    return run
