#!/bin/bash
# Everything that needs a GPU, in one call of less than 8 minutes, on a machine that has one, CUDA 13, CuPy 14, Triton 3.6 or newer,
# PyTorch (which brings cuDNN) and JAX, and no package index:
#     python scripts/gpu_wheels.py wheels                # where there is an index
#     bash scripts/gpu_check.sh wheels OUT [PARTS]       # where there is a GPU
# PARTS: check, networks and kernels, with commas between; default all of them. One alone has all the time.
# Writes into OUT: doctor.txt, missing.txt, tests.txt and tests_triton.txt (launches, training steps, loops, conditions, examples,
# threads), compliance*.txt and compliance*.json (every op of both plugins against the specs' references), demo.txt, bench.txt (small
# steps, copies, products, training steps), kernels.txt (single kernels). What is only checked runs side by side; what is timed runs
# alone, and gets what the others have left. A part that fails stops no other; one that takes too long is cut off.
set -uo pipefail
wheels=$(realpath "${1:?usage: gpu_check.sh WHEELS OUT [PARTS]}")
out=$(mkdir -p "${2:?usage: gpu_check.sh WHEELS OUT [PARTS]}" && realpath "$2")
parts=",${3:-check,networks,kernels},"
cd "$(dirname "$0")/.."
site=$(mktemp -d)
python3 -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
export PYTHONPATH="$site:$PWD" PYTHONUNBUFFERED=1 GRAPHDOCK_CACHE_DIR="$site/cache"
failed=0
timeout 30 python3 -m graphdock doctor --require cuda | tee "$out/doctor.txt" || exit 3
timeout 30 python3 -m graphdock kernels --missing cuda > "$out/missing.txt" || failed=1

if [[ $parts == *,check,* ]]; then
  tests="python3 -m pytest -q -p no:cacheprovider"
  comply="--graphdock-quick --graphdock-in-process"
  running=()
  timeout 120 $tests -m gpu -k "not conformance" plugins/cuda/tests/gpu > "$out/tests.txt" 2>&1 & running+=($!)
  timeout 120 $tests -m gpu plugins/triton/tests/gpu > "$out/tests_triton.txt" 2>&1 & running+=($!)
  timeout 130 $tests --graphdock-backend cuda $comply --graphdock-report "$out/compliance.json" scripts > "$out/compliance.txt" 2>&1 & running+=($!)
  # Triton compiles each kernel first: a process for every sixth op
  ops=$(python3 -c "from graphdock_triton.operations.table import OPERATIONS; print(*sorted({o.op for o in OPERATIONS}))")
  for share in 0 1 2 3 4 5; do
    mine=$(echo "$ops" | tr ' ' '\n' | awk -v s=$share 'NR % 6 == s {printf "--graphdock-op %s ", $1}')
    timeout 130 $tests --graphdock-backend triton $comply $mine --graphdock-report "$out/compliance_triton_$share.json" scripts \
      > "$out/compliance_triton_$share.txt" 2>&1 & running+=($!)
  done
  for process in "${running[@]}"; do wait "$process" || failed=1; done
  tail -n 4 "$out"/tests*.txt "$out"/compliance*.txt
  timeout 30 python3 -m graphdock demo --backends cuda,cpu --steps 300 --fresh --logdir "$site/demo" 2>&1 | tee "$out/demo.txt" || failed=1
fi

if [[ $parts == *,networks,* ]]; then
  left=$((470 - SECONDS))
  [[ $parts == *,kernels,* ]] && left=$((left * 3 / 5))
  timeout "$left" python3 -m benchmarks.gpu --programs plain,networks --seconds 0.5 --budget $((left - 15)) --out "$out/bench.txt" || failed=1
fi
if [[ $parts == *,kernels,* ]]; then
  left=$((470 - SECONDS))
  timeout "$left" python3 -m benchmarks.gpu --programs "copy on the GPU,product 8192,kernels" --precisions bfloat16 \
    --frameworks graphdock/triton,graphdock/persistent,graphdock/tiles,torch,torch/compile,graphdock --seconds 0.2 --budget $((left - 15)) --out "$out/kernels.txt" || failed=1
fi
exit $failed
