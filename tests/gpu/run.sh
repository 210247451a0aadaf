#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-3.0-or-later
# For a machine with a CUDA device: builds the engine and reclab without Qt, runs what is labelled gpu, compares every preset on both
# devices, lets compute-sanitizer look for stray reads and writes, and times long sequences, and products and convolutions by our own kernels
# and by cuBLAS and cuFFT. Libraries that the machine lacks are taken from the folder .deps beside this checkout's files, where
# `tests/gpu/run.sh fetch` unpacks them from Debian packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
deps=$PWD/.deps
out=${OUT:-$PWD/build/gpu-report}

if [[ ${1:-} == fetch ]]; then
  mkdir -p "$deps"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cd "$folder"
  apt-get download libeigen3-dev nlohmann-json3-dev libcli11-dev libfftw3-dev libfftw3-double3 zlib1g-dev zlib1g
  for package in *.deb; do dpkg -x "$package" "$deps"; done
  # Debian's link to zlib is absolute; here it stays inside the folder.
  for link in "$deps"/usr/lib/*/libz.so; do ln -sf "../../../lib/$(uname -m)-linux-gnu/$(basename "$(readlink "$link")")" "$link"; done
  # Only what is compiled against: documents and the other precisions stay out.
  rm -rf "$deps"/usr/share/doc "$deps"/usr/share/man "$deps"/usr/share/info "$deps"/usr/bin
  find "$deps" -name 'libfftw3f*' -delete -o -name 'libfftw3l*' -delete -o -name 'libfftw3q*' -delete
  exit
fi

mkdir -p "$out" build/gpu
export PATH=$PATH:/usr/local/cuda/bin LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/cuda/lib64
prefix=()
[[ -d $deps ]] && prefix=(-DCMAKE_PREFIX_PATH="$deps/usr" -DCMAKE_INCLUDE_PATH="$deps/usr/include"
  -DCMAKE_LIBRARY_PATH="$deps/usr/lib/$(uname -m)-linux-gnu;$deps/lib/$(uname -m)-linux-gnu")
generator=(); command -v ninja > /dev/null && generator=(-G Ninja)
cmake -S . -B build/gpu "${generator[@]}" -DRECLAB_DESKTOP=OFF -DRECLAB_WERROR=OFF "${prefix[@]}" > "$out/configure.log"
grep -q 'CUDA compiler identification' "$out/configure.log" || { echo "no CUDA compiler was found; put nvcc on the PATH" >&2; exit 1; }
cmake --build build/gpu -j "$(nproc)" --target reclab gpu_test_backends engine_test_kernels > "$out/build.log" 2>&1 ||
  { grep -n -A5 'error' "$out/build.log" | head -60; exit 1; }
status=0
part() {  # part NAME COMMAND...: runs it to the end, shows its last lines, remembers a failure
  local name=$1; shift
  echo "== $name"
  "$@" > "$out/$name.log" 2>&1 || { status=1; echo "$name failed"; }
  tail -n "${lines:-25}" "$out/$name.log"
}
part kernels-on-the-host build/gpu/bin/engine_test_kernels
part parity build/gpu/bin/gpu_test_backends
if ! grep -q 'SKIP' "$out/parity.log"; then
  grep '^device' "$out/parity.log" || true
  # Products and transforms by our own kernels alone, and by cuBLAS and cuFFT wherever they can; then what each takes.
  part parity-own env RECLAB_CUDA_PRODUCTS=own RECLAB_CUDA_TRANSFORMS=own build/gpu/bin/gpu_test_backends
  part parity-libraries env RECLAB_CUDA_PRODUCTS=cublas RECLAB_CUDA_TRANSFORMS=cufft build/gpu/bin/gpu_test_backends
  if grep -q 'SKIP' "$out/parity-libraries.log"; then
    echo "cuBLAS or cuFFT was not found: $(grep -m 1 'SKIP' "$out/parity-libraries.log")"
  else
    for products in own cublas; do
      part "bench-products-$products" env RECLAB_CUDA_PRODUCTS=$products timeout 60 build/gpu/bin/reclab bench transformer --device cuda --lengths 1024,4096
    done
    for transforms in own cufft; do
      part "bench-transforms-$transforms" env RECLAB_CUDA_TRANSFORMS=$transforms timeout 60 build/gpu/bin/reclab bench s4d --device cuda --forms convolution --lengths 1024,4096
    done
  fi
  lines=40 part check-device timeout 200 build/gpu/bin/reclab check-device
  for form in sequential scan convolution; do
    part "bench-$form" timeout 60 build/gpu/bin/reclab bench s4d --device cuda --forms "$form" --lengths 1024,4096,16384
  done
  if command -v compute-sanitizer > /dev/null; then
    lines=8 part memcheck timeout 200 compute-sanitizer --tool memcheck --error-exitcode 9 build/gpu/bin/gpu_test_backends
    lines=8 part racecheck timeout 200 compute-sanitizer --tool racecheck --error-exitcode 9 build/gpu/bin/gpu_test_backends
  fi
fi
exit $status
