"""Small files of workloads as PAL's authors publish them."""

NAMES = "abcdefgh"


def workloads_csv(count):
    """Some workloads of few jobs, in one file."""
    lines = ["workload,job_id,num_gpus,submit_time,iterations,model"]
    for name in NAMES[:count]:
        lines += [f"{name},{n},{gpus},{60 * n},{1000 * (n + 1)},{model}"
                  for n, (gpus, model) in enumerate([(1, "vgg19"), (8, "resnet50"), (48, "GPT2"),
                                                     (24, "resnet50")])]  # fmt: skip
    return "\n".join(lines) + "\n"
