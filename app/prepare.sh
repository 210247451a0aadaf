# SPDX-License-Identifier: GPL-3.0-or-later
# What app/run.sh and tests/run.sh share: packages, configuration, build. Sourced by them, in the root of the source.
# Every step that is up to date is skipped; a step that fails ends the script with one line that names it and its log.

program=${0#./}
step="" log=""

trap 'status=$?; trap - EXIT; [ $status -eq 0 ] || failed $status' EXIT
failed() {
  if [ -n "$log" ] && [ -s "$log" ]; then
    # The compiler's own words where there are any, the end of the log where there are none.
    { grep -m 12 -E 'error:|CMake Error|FAILED:' -A 3 "$log" || tail -n 20 "$log"; } >&2
  fi
  if [ "$1" -gt 128 ]; then
    echo "$program: ended by a signal during ${step:-the start}" >&2
  elif [ -n "$log" ]; then
    echo "$program: $step failed; see $log" >&2
  elif [ -n "$step" ]; then
    echo "$program: $step" >&2
  fi
  exit "$1"
}

# Runs a command as a named step. On a terminal its output is shown, elsewhere it goes to the log alone.
logged() {
  step=$1 log=$2
  shift 2
  mkdir -p "$(dirname "$log")"
  if [ -t 1 ]; then "$@" 2>&1 </dev/null | tee "$log"; else "$@" >"$log" 2>&1 </dev/null; fi
  step="" log=""
}

# packages SECTION...: the names in these sections of app/packages.txt
packages() {
  awk -v wanted=" $* " '/^#/ || !NF {next} /^\[/ {section = substr($1, 2, length($1) - 2); next} index(wanted, " " section " ") {print $1}' app/packages.txt
}

install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    echo "$program: no dpkg here; what app/packages.txt names is taken to be installed"
    return
  fi
  local missing=() package
  for package in $(packages "$@"); do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { step="packages are missing and there is no sudo; as root: apt-get install ${missing[*]}"; exit 1; }
    as_root=(sudo)
  fi
  echo "Installing ${#missing[@]} packages: ${missing[*]}"
  as_root+=(env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y)
  logged "apt-get update" build/packages.log "${as_root[@]}" update
  logged "the installation of packages" build/packages.log "${as_root[@]}" install --no-install-recommends "${missing[@]}"
}

# build PRESET [TARGET...]: configures when that was never done or the presets changed (the build sees to the rest), then builds all or these.
build() {
  local folder=build/$1 targets=()
  [ $# -eq 1 ] || targets=(--target "${@:2}")
  if [ ! -e "$folder/build.ninja" ] || [ CMakePresets.json -nt "$folder/build.ninja" ]; then
    echo "Configuring $folder"
    logged "the configuration" "$folder/configure.log" cmake --preset "$1"
  fi
  echo "Building $folder"
  logged "the build" "$folder/build.log" cmake --build "$folder" --parallel "$(nproc)" "${targets[@]}"
}
