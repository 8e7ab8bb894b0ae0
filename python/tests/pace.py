"""Time: what is taken for hung, and what a piece of work costs here and now."""
import os
import time

# Seconds by the clock. The runner says how many times slower than usual this machine is.
PATIENCE = 240 * float(os.environ.get("QKV_TEST_PACE") or 4)


def cpu_of(work):
    """CPU seconds of this process, of all its threads."""
    began = time.process_time()
    work()
    return time.process_time() - began
