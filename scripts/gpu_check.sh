#!/bin/bash
# Everything that needs a GPU, on a machine that has one, CUDA 13, CuPy 14, Triton 3.6 or newer, PyTorch (which brings cuDNN) and JAX,
# and no package index:
#     python scripts/gpu_wheels.py wheels                       # where there is an index
#     bash scripts/gpu_check.sh wheels OUT [PARTS [SECONDS]]    # where there is a GPU
# PARTS: names of below with commas between, or `all`. SECONDS: after so many no part begins, 470 by default. What has passed is not
# run again: call it with the same OUT until all has. OUT/table.txt says of each part how it went, how long it took, and its last line;
# OUT/PART.txt is what it wrote. A part that fails stops no other; one that takes too long is cut off, and begins anew next time,
# with the code that it has compiled so far.
# `-` for the wheels: with what is installed. EMULATED_GPU=1: on an emulated GPU, small, to try the parts out.
set -uo pipefail
usage="usage: gpu_check.sh WHEELS OUT [PARTS [SECONDS]]"
wheels=$(realpath -m "${1:?$usage}")
out=$(mkdir -p "${2:?$usage}" && realpath "$2")
wanted=",${3:-all},"
budget=${4:-470}
export python=${PYTHON:-python3}
cd "$(dirname "$0")/.."
export PYTHONPATH="$PWD" PYTHONUNBUFFERED=1 GRAPHDOCK_CACHE_DIR="$out/cache"
if [[ $1 != - ]]; then
  site=$(mktemp -d)
  "$python" -m pip install --quiet --no-index --no-deps --no-compile --target "$site" "$wheels"/*.whl || exit 2
  export PYTHONPATH="$site:$PYTHONPATH"
fi
[[ ${EMULATED_GPU:-} == 1 ]] && export PYTHONPATH="$PWD/plugins/cuda/tests/gpu/emulated:$PYTHONPATH"

tests="$python -m pytest -q -rs -p no:cacheprovider"
truths="$tests -s -m gpu plugins/cuda/tests/gpu/test_truths.py -k test_"
comply="--graphdock-quick --graphdock-in-process scripts"
sanitize="compute-sanitizer --error-exitcode 9 --target-processes all"
# every sixth op of a list, as options
share() { "$python" -c "$1; print(*(f'--graphdock-op {o}' for o in ops[$2::6]))"; }
export -f share
cuda_ops="from graphdock_cuda.testing import kernels; ops = sorted({k.op for k in kernels()})"
triton_ops="from graphdock_triton.operations.table import OPERATIONS; ops = sorted({o.op for o in OPERATIONS})"

names=()
# part NAME LIMIT COMMAND: runs it, unless it has passed or is not wanted; 5 of pytest says that nothing ran
part() {
  local name=$1 limit=$2 command=$3 begin=$SECONDS left=$((budget - SECONDS)) code state
  names+=("$name")
  [[ $wanted == ,all, || $wanted == *,$name,* ]] || return 0
  [[ $(cut -d' ' -f1 "$out/$name.state" 2>/dev/null) == passed ]] && return 0
  ((left > 10)) || { echo "left 0" > "$out/$name.state"; return 0; }
  echo "cut-off 0" > "$out/$name.state"
  timeout $((limit < left ? limit : left)) bash -c "$command" > "$out/$name.txt" 2>&1
  code=$?
  [[ $code == 0 ]] && tail -n 1 "$out/$name.txt" | grep -q '^[0-9]* skipped' && code=5  # all of them
  case $code in 0) state=passed ;; 5) state=nothing-ran ;; 124) state=cut-off ;; 127) state=not-installed ;; *) state=failed-$code ;; esac
  echo "$state $((SECONDS - begin))" > "$out/$name.state"
}

part doctor 60 "$python -m graphdock doctor --require cuda"
part missing 60 "$python -m graphdock kernels --missing cuda"
part bindings 120 "$tests plugins/cuda/tests/driver"
for truth in driver threads overlap capture shared large lost memory epilogues leaks bitwise; do
  part $truth 180 "$truths$truth"
done
for tool in memcheck racecheck initcheck synccheck; do
  part $tool 300 "$sanitize --tool $tool ${truths}sanitized"
done
part training 180 "$tests -m gpu -k 'not conformance' plugins/cuda/tests/gpu/test_gpu.py"
part training-triton 180 "$tests -m gpu plugins/triton/tests/gpu"
# what is only checked runs side by side: a GPU has time for six, and compilers have cores of their own
for share in 0 1 2 3 4 5; do
  for backend in cuda triton; do
    name=conformance-$backend-$share list=${backend}_ops
    names+=("$name")
    part "$name" 400 "$tests --graphdock-backend $backend $comply --graphdock-report $out/$name.json \$(share '${!list}' $share)" &
  done
done
wait
part demo 60 "$python -m graphdock demo --backends cuda,cpu --steps 1000 --fresh --logdir $out/demo"
# what is timed runs alone
part networks 300 "$python -m benchmarks.gpu --programs plain,networks --seconds 0.5 --budget 280 --out $out/bench.txt"
part kernels 300 "$python -m benchmarks.gpu --programs 'copy on the GPU,product 8192,kernels' --precisions bfloat16 \
  --frameworks graphdock/triton,graphdock/persistent,graphdock/tiles,torch,torch/compile,graphdock --seconds 0.2 --budget 280 --out $out/kernels.txt"

failed=0
{
  printf '%-24s %-14s %8s  %s\n' part state seconds 'last line'
  for name in "${names[@]}"; do
    read -r state seconds < <(cat "$out/$name.state" 2>/dev/null || echo "not-run 0")
    printf '%-24s %-14s %8s  %s\n' "$name" "$state" "$seconds" "$(grep -v '^ *$' "$out/$name.txt" 2>/dev/null | tail -n 1 | cut -c1-100)"
    [[ $state == passed || $state == not-run ]] || failed=1
  done
} > "$out/table.txt"
cat "$out/table.txt"
exit $failed
