#!/bin/bash
# sbatch examples/gpu/slurm.sh my-pair.spec.yaml
# One whole GPU and its cores for one run: what shares the device or the cores is part of the figures.
#SBATCH --job-name=specrun
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --gpus=1
#SBATCH --cpus-per-task=16
#SBATCH --exclusive
#SBATCH --time=02:00:00
#SBATCH --signal=B:TERM@120
set -euo pipefail

spec=${1:?a spec file}
cd "${SLURM_SUBMIT_DIR:-.}"
export HF_HUB_OFFLINE=1   # compute nodes seldom reach a hub; `hf download` on the login node fills the cache

# Slurm says so two minutes before the time ends: the run keeps what it measured, and `specrun run --resume ID` goes on.
.venv/bin/specrun doctor
.venv/bin/specrun run "$spec" --runs runs &
run=$!
trap 'kill -TERM "$run"' TERM
until wait "$run"; status=$?; ! kill -0 "$run" 2>/dev/null; do :; done   # a signal ends `wait` before the run ends
exit "$status"
