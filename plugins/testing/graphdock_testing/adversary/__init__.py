"""An adversary of any device with queues: its work is made late on purpose, so that what nobody waits for is found in every run.

load: work that keeps a queue busy, measured once per device. events: waits, records, pools, arguments and threads behind such work.
late_case: kernels behind it: host arguments that are read late, launches that block, blocks that leak.
"""
