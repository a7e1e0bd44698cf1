"""Where there is too little memory to begin, that is one line."""

import subprocess
import sys

import pytest

BEGUN = """
import resource, sys
from optsched.__main__ import main
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_AS, (most, most))
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory are Linux'")
@pytest.mark.parametrize("megabytes", [1, 2, 3, 4, 6])
def test_a_command_that_cannot_run_says_so_in_one_line(megabytes):
    words = [sys.executable, "-c", BEGUN, str(megabytes << 20), "--version"]
    told = subprocess.run(words, capture_output=True, text=True, check=False)
    assert "Traceback" not in told.stderr
    assert told.returncode == 2
    assert told.stderr.splitlines()[-1].startswith("error: ")
