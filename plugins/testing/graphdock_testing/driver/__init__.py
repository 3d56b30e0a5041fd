"""A fake asynchronous driver: what a real one does, made visible.

    driver = Driver(seed=7)
    device = DriverDevice(DeviceInfo("queued"), driver)
    queue = device.new_queue()

device: the driver and its devices. queue: queues, events, launches. scheduler: work that runs late, interleaved by a seed. memory,
staging: blocks, addresses, poison. capture: recordings. faults: injected ones. races, clocks, shadow: the race checker, which
works for other devices too.

Modelled: nothing runs until somebody waits, queries or steps; ``wait`` means the event's latest record, and an event that was never
recorded is reported; while a segment is recorded nothing runs, arguments freeze, and fences, queries, allocation, the private
queue, outside events and unjoined branches are refused; pinned memory is read when a copy runs; memory is poisoned before and
after; one current queue per thread, and a launch on another is refused; a freed block is the next allocation's at once; a lost
device stays lost, and any later call says so.
"""
