#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Fuzzes what reads files: tests/fuzz/run.sh [TARGET [SECONDS]]. Without a target all of them, a minute each. It goes on after a failure;
# inputs that fail stay in build/fuzz/found, and the exit status is 1. A malloc of 1 GiB, 2 GiB in all and 5 s an input are failures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
. app/prepare.sh
root=$PWD
targets=(table npy npz safetensors sequence sound preset weights state cache session lesson answers settings)
if [ $# -gt 0 ]; then
  [[ " ${targets[*]} " == *" $1 "* ]] || { echo "there is no target $1; there are ${targets[*]}" >&2; exit 2; }
  targets=("$1")
fi
seconds=${2:-60}

if [ -z "${RECLAB_FUZZ_BUILT:-}" ]; then
  install_packages engine fuzz
  build fuzz fuzz
fi
python3 tests/fuzz/seeds.py build/fuzz/bin/reclab build/fuzz/seeds

failed=0
fuzz() {
  local target=$1 end=$((SECONDS + seconds)) start=$SECONDS inputs=0 failures=0 peak=0 more log
  local corpus=$root/build/fuzz/corpus/$target found=$root/build/fuzz/found/$target
  mkdir -p "$corpus" "$found"
  log=$found/log
  while ((SECONDS < end)); do
    # In the folder where it leaves what fails.
    if ! (cd "$found" && RECLAB_FUZZ_TARGET=$target UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1 nice -n 10 \
      "$root/build/fuzz/bin/reclab-fuzz" -max_total_time=$((end - SECONDS)) -max_len=20000 -timeout=5 -malloc_limit_mb=1024 -rss_limit_mb=2048 \
      -print_final_stats=1 "$corpus" "$root/build/fuzz/seeds/$target") >"$log" 2>&1; then
      failures=$((failures + 1))
      grep -m 3 -E "ERROR|runtime error|#[1-6] .*reclab" "$log" || tail -n 5 "$log"
      ((failures < 20)) || break
    fi
    inputs=$((inputs + $(grep -oP 'number_of_executed_units: \K\d+' "$log" || echo 1)))
    more=$(grep -oP 'peak_rss_mb: *\K\d+' "$log" || echo 0)
    ((more > peak)) && peak=$more
  done
  echo "$target: $inputs inputs, $failures failures, peak $peak MB, $((SECONDS - start)) s"
  ((failures == 0)) || failed=1
}

for target in "${targets[@]}"; do
  if [ "$target" != settings ]; then
    fuzz "$target"
  elif [ -x build/release/bin/recurrence-lab ]; then
    python3 tests/fuzz/settings.py build/release/bin/recurrence-lab "$seconds" || failed=1
  else
    echo "settings: skipped, build/release/bin/recurrence-lab is not built"
    [ ${#targets[@]} -gt 1 ] || exit 77
  fi
done
exit $failed
