"""Make `.venv/` with everything that `make demo` and `make test` need. Standard library only; run by `make setup`.

The CPU build of PyTorch is on no ordinary package index under its plain version, so it comes from one of two places:

* a file that this machine's pip is configured to find (find-links): plain pip then installs everything;
* otherwise PyTorch's own CPU index, which uv knows how to reach (`--torch-backend=cpu`).

torchvision, torchaudio and torchcodec are dependencies of vLLM for images and sound only. The index's builds do not fit
a CPU torch; once installed they fail to import ("operator torchvision::nms does not exist", "libc10_cuda.so: cannot open
shared object file") and take every text model of transformers with them. Where that is so they are removed, and it is
said.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
TORCH = "torch==2.13.0"
WANTED = ".[cpu,dev]"


def run(*words: str) -> None:
    print("+", " ".join(words), flush=True)
    if subprocess.run(words, cwd=ROOT, check=False).returncode:
        sys.exit(f"setup: this step failed: {' '.join(words)}\nMend what it says above, then run `make setup` again.")


def has_local_cpu_torch() -> bool:
    """Whether pip finds a CPU build of torch without asking any index."""
    options = ("--quiet", "--dry-run", "--ignore-installed", "--no-deps", "--no-index", "--report", "-")
    words = (str(PYTHON), "-m", "pip", "install", *options, TORCH)
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    if answer.returncode:
        return False
    versions = [item["metadata"]["version"] for item in json.loads(answer.stdout)["install"]]
    return any(version.endswith("+cpu") for version in versions)


def remove_unfit(name: str) -> None:
    """Remove a package that is installed but cannot be imported beside this torch."""
    answer = subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True, text=True, check=False)
    if answer.returncode == 0 or f"No module named '{name}'" in answer.stderr:
        return
    print(f"setup: {name} does not fit this torch and would break every transformers model; text models do not need it: removed")
    run(str(PYTHON), "-m", "pip", "uninstall", "--quiet", "--yes", name)


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python may meet
        sys.exit(f"setup: Python 3.11 or later is needed, this is {sys.version.split()[0]}; try `make setup PYTHON=python3.12`")
    if not PYTHON.exists():
        venv.create(VENV, with_pip=True)
    if has_local_cpu_torch():
        run(str(PYTHON), "-m", "pip", "install", "--quiet", TORCH, "-e", WANTED)
    else:
        run(str(PYTHON), "-m", "pip", "install", "--quiet", "uv")
        run(str(PYTHON), "-m", "uv", "pip", "install", "--python", str(PYTHON), "--torch-backend=cpu", "-e", WANTED)
    for name in ("torchvision", "torchaudio", "torchcodec"):
        remove_unfit(name)
    (VENV / ".ready").touch()


if __name__ == "__main__":
    main()
