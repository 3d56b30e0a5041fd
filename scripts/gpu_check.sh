#!/bin/bash
# Everything that needs a GPU, in one call of some minutes, on a machine that has one, CUDA 13, CuPy 14, PyTorch (which brings cuDNN)
# and JAX, and no package index:
#     python scripts/gpu_wheels.py wheels          # where there is an index
#     bash scripts/gpu_check.sh wheels OUT         # where there is a GPU
# Writes into OUT: doctor.txt, missing.txt, tests.txt (training steps, loops, conditions, examples, threads), compliance.txt and
# compliance.json (every op against the specs' references), demo.txt, bench.txt. Parts that take too long are cut off, and the last,
# the benchmark, gets what the others have left: 470 s in all. A part that fails stops no other.
set -uo pipefail
wheels=$(realpath "${1:?usage: gpu_check.sh WHEELS OUT}")
out=$(mkdir -p "${2:?usage: gpu_check.sh WHEELS OUT}" && realpath "$2")
cd "$(dirname "$0")/.."
site=$(mktemp -d)
python3 -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
export PYTHONPATH="$site" PYTHONUNBUFFERED=1 GRAPHDOCK_CACHE_DIR="$site/cache"
failed=0
timeout 30 python3 -m graphdock doctor --require cuda | tee "$out/doctor.txt" || exit 3
timeout 30 python3 -m graphdock kernels --missing cuda > "$out/missing.txt" || failed=1
tests="python3 -m pytest -q -p no:cacheprovider"
timeout 80 $tests -m gpu -k "not conformance" plugins/cuda/tests/gpu 2>&1 | tee "$out/tests.txt" || failed=1
timeout 130 $tests --graphdock-backend cuda --graphdock-quick --graphdock-in-process --graphdock-report "$out/compliance.json" \
  scripts 2>&1 | tee "$out/compliance.txt" || failed=1
timeout 30 python3 -m graphdock demo --backends cuda,cpu --steps 300 --fresh --logdir "$site/demo" 2>&1 | tee "$out/demo.txt" || failed=1
left=$((470 - SECONDS))
timeout "$left" python3 -m benchmarks.gpu --seconds 0.5 --budget $((left - 15)) --out "$out/bench.txt" || failed=1
exit $failed
