"""What is known of the reasons in table 7 of ATC'19, beside how often they are met."""

from __future__ import annotations

ON_ONE_GPU = {
    "CPU out of memory": (False, "the host's memory is that of all GPUs' processes together"),
    "Incorrect inputs": (True, "data and paths are the same for every process"),
    "Semantic error": (True, "the program's own logic, before it is distributed"),
    "Core dump": (True, "a crash of the program itself"),
    "Invalid mem access": (True, "a fault of the program itself"),
    "Model ckpt error": (False, "storage that fails when a checkpoint is written, hours later"),
    "CUDA failure": (False, "78 % of its trials are on 2 to 4 GPUs: peers and their links"),
    "Syntax error": (True, "found when the program is read"),
    "Traceback from crash": (True, "an exception of the program itself"),
    "MPI error": (False, "one process has nobody to talk to"),
    "GPU out of memory": (True, "a GPU holds the model and its own part of a batch either way"),
    "MPI runtime failure": (False, "one process has nobody to talk to"),
    "Permission error": (True, "rights are the same for every process"),
    "Import error": (True, "found when the program starts"),
    "Job preempted": (False, "done by the scheduler, not by the job"),
    "CUDA init failed": (False, "9 of 10 of its trials are on several GPUs: it is theirs together"),
    "Model diverged": (False, "hangs on the batch of all GPUs together"),
    "CUDA ver. mismatch": (True, "library and driver are the same on one GPU"),
    "GPU ECC error": (False, "a fault of one device, hardly the one of the trial"),
    "Output node error": (True, "the program's own graph"),
    "Cannot load libs": (True, "found when the program starts"),
    "No signature": (False, "nobody knows what it was"),
}
"""By reason: whether a trial on one GPU of a gang's job can show it, and why."""

SHOWN_BY_ONE_GPU = frozenset(name for name, (shown, _) in ON_ONE_GPU.items() if shown)
"""Reasons that a trial on one GPU can show, if it runs long enough."""
