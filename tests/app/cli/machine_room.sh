#!/bin/bash
# SPDX-License-Identifier: GPL-3.0-or-later
# Sweeps in the hands of other programs, as root: tests/app/cli/machine_room.sh RECLAB kills|parallel|slurm|examples. Exit status 77: not here.
# `kills`: 200 cells, 100 SIGKILLs at random, the disk full once. `parallel`: GNU parallel and --retry-failed. `slurm`: Slurm on one node of its
# own, without systemd and without a database: an array of 24 cells, one that is preempted, one that cannot be, slurmd killed once. `examples`:
# those of engine/docs/sweeps.md, where Snakemake and Optuna are. Everything is in a temporary folder, and gone when it ends.
set -euo pipefail
cd "$(dirname "$0")/../../.."
reclab=$(realpath "$1") what=$2
here=$(mktemp -d /tmp/reclab-room-XXXXXX)
own_processes=() runner="" mounted=""
leave() {
  status=$?
  [ $status -eq 0 ] || [ $status -eq 77 ] || tail -n 5 "$here"/*.log 2>/dev/null || true
  for process in $runner "${own_processes[@]}"; do kill -9 "$process" 2>/dev/null || true; done
  [ -z "$mounted" ] || umount "$mounted" || umount --lazy "$mounted" || true
  rm -rf "$here"
}
trap leave EXIT
skip() { echo "skipped: $1"; exit 77; }
fail() { echo "failed: $1" >&2; exit 1; }
needs() {
  command -v "$1" >/dev/null && return
  [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || skip "$1 is not installed, and cannot be by $(id -un)"
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -q -y install --no-install-recommends "${@:2}" >"$here/apt.log" 2>&1 ||
    skip "$1 cannot be installed"
}
table() { "$reclab" sweep collect "$1" | sed 's/,[^,]*$//'; }  # but for the seconds
results() { find "$1/cells" -path "*/cells/[0-9a-f]*/result.json" -printf '%p %T@\n' 2>/dev/null | sort || true; }
counts() { "$reclab" sweep status "$1" --json | tr -d ' ,"' | grep -E "^$2:" | cut -d: -f2; }

small='"base": "reclab train lstm --set width=4 --task adding --length 20 --batch 4 --held-out 8'

kills() {
  [ "$(id -u)" -eq 0 ] || skip "a small disk is mounted by root alone"
  echo "{$small --steps 3000\", \"axes\": {\"seed\": {\"from\": 1, \"to\": 100, \"count\": 100, \"whole\": true}, \"set.width\": [4, 8]}, \"measure\": [\"loss\", \"metric\"]}" >"$here/plan.json"
  "$reclab" sweep "$here/plan.json" --into "$here/straight"
  local begin=$(date +%s.%N)
  "$reclab" sweep run "$here/straight" --jobs 2
  echo "undisturbed: $(echo "$(date +%s.%N) - $begin" | bc 2>/dev/null || echo '?') s"
  mkdir "$here/disk"
  mount -t tmpfs -o size=24m tmpfs "$here/disk" 2>/dev/null || skip "no disk can be mounted here"
  mounted=$here/disk
  local sweep=$here/disk/sweep killed=0 filled=0 runs=0
  "$reclab" sweep "$here/plan.json" --into "$sweep"
  : >"$here/seen"
  while [ "$killed" -lt 100 ]; do
    runs=$((runs + 1))
    [ $runs -lt 400 ] || fail "$killed kills after $runs runs"
    "$reclab" sweep run "$sweep" --jobs 2 >"$here/run.log" 2>&1 &
    runner=$!
    while kill -0 $runner 2>/dev/null && [ "$killed" -lt 100 ]; do
      sleep "0.$((RANDOM % 25 + 5))"
      local all=($(cat "/proc/$runner/task/$runner/children" 2>/dev/null || true)) victim
      [ ${#all[@]} -gt 0 ] || continue
      victim=${all[RANDOM % ${#all[@]}]}
      [ $((RANDOM % 10)) -ne 0 ] || victim=$runner
      kill -9 "$victim" 2>/dev/null && killed=$((killed + 1))
      if [ $filled -eq 0 ] && [ $killed -gt 50 ]; then
        filled=1
        dd if=/dev/zero of="$here/disk/full" bs=64k 2>/dev/null || true
        sleep 2
        rm "$here/disk/full"
      fi
    done
    kill -TERM $runner 2>/dev/null || true
    wait $runner 2>/dev/null || true
    runner=""
    # Those of a killed runner end by themselves.
    while [ "$(counts "$sweep" running)" != 0 ]; do sleep 0.1; done
    results "$sweep" >"$here/now"
    [ -z "$(comm -23 "$here/seen" "$here/now")" ] || fail "a whole result was written again"
    mv "$here/now" "$here/seen"
    [ "$(wc -l <"$here/seen")" -lt 200 ] || break
  done
  echo "$killed processes killed in $runs runs, $(wc -l <"$here/seen") of 200 cells done"
  [ "$killed" -eq 100 ] || fail "the cells were done after $killed kills"
  "$reclab" sweep run "$sweep" --jobs 2
  results "$sweep" >"$here/now"
  [ -z "$(comm -23 "$here/seen" "$here/now")" ] || fail "a whole result was written again"
  cmp <(table "$here/straight") <(table "$sweep") || fail "the tables differ"
  [ -z "$(ls -A "$sweep/work")" ] || fail "work is left"
}

# 24 cells, of which number 7 reads a file that is no table.
twenty_four() {
  local files=""
  for i in $(seq 0 23); do
    { echo x; for t in $(seq 1 200); do echo "0.$(((t * (i + 3)) % 97 + 10))"; done; } >"$here/$i.csv"
    files="$files, \"$here/$i.csv\""
  done
  printf 'x,y\n1,"2\n' >"$here/7.csv"
  echo "{\"base\": \"reclab train lstm --set width=8 --ahead 1 --window 10 --steps $1 --batch 8\", \"axes\": {\"input\": [${files:2}]}, \"measure\": [\"loss\", \"metric\"]}" >"$here/plan.json"
  "$reclab" sweep "$here/plan.json" --into "$here/straight"
  "$reclab" sweep "$here/plan.json" --into "$here/sweep"
  local status=0
  "$reclab" sweep run "$here/straight" >"$here/straight.log" 2>&1 || status=$?
  [ $status -eq 2 ] || fail "a run with a cell that cannot be exits with $status"
}
check_twenty_four() {
  [ "$(counts "$here/sweep" done)" = 23 ] && [ "$(counts "$here/sweep" failed)" = 1 ] || fail "$("$reclab" sweep status "$here/sweep")"
  cmp <(table "$here/straight") <(table "$here/sweep") || fail "the tables differ"
}

with_parallel() {
  needs parallel parallel
  twenty_four 20
  "$reclab" sweep emit "$here/sweep" parallel --jobs 2 >"$here/script"
  local status=0
  sh "$here/script" >"$here/parallel.log" 2>&1 || status=$?
  [ $status -eq 1 ] || fail "parallel exits with $status, not with the number of cells that failed"
  [ "$(awk 'NR > 1 && $7 != 0 {print $7}' "$here/sweep/parallel.txt")" = 2 ] || fail "the job log has another status than 2"
  check_twenty_four
  results "$here/sweep" >"$here/before"
  cp "$here/8.csv" "$here/7.csv"
  status=0
  sh "$here/script" --retry-failed >"$here/parallel.log" 2>&1 || status=$?
  # The file is another one now, which the plan does not know: the cell says so, and alone was tried again.
  [ $status -eq 1 ] && grep -q "has changed since the plan" "$here/parallel.log" || fail "retrying exits with $status: $(cat "$here/parallel.log")"
  [ "$(wc -l <"$here/parallel.log")" -eq 1 ] || fail "more than one cell was tried again"
  "$reclab" sweep "$here/plan.json" --into "$here/sweep"
  sh "$here/script" --retry-failed >"$here/parallel.log" 2>&1 || fail "the last cell: $(cat "$here/parallel.log")"
  [ "$(counts "$here/sweep" done)" = 24 ] || fail "not all are done"
  results "$here/sweep" >"$here/after"
  [ -z "$(comm -23 "$here/before" "$here/after")" ] || fail "a whole result was written again"
}

with_slurm() {
  needs slurmctld slurmctld slurmd slurm-client munge
  for program in slurmd sbatch munged; do command -v $program >/dev/null || needs $program slurmctld slurmd slurm-client munge; done
  [ "$(id -u)" -eq 0 ] || skip "slurmd is root's"
  twenty_four 16000
  local host=$(hostname -s) port=$((20000 + RANDOM % 20000)) etc=$here/slurm
  mkdir -p "$etc"/{state,spool}
  chmod 755 "$here" "$etc"
  dd if=/dev/urandom of="$etc/key" bs=1k count=1 2>/dev/null
  chmod 600 "$etc/key"
  export SLURM_CONF=$etc/slurm.conf
  cat >"$SLURM_CONF" <<CONF
ClusterName=room
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$etc/munge.socket
CredType=cred/munge
SlurmctldPort=$port
SlurmdPort=$((port + 1))
SlurmctldPidFile=$etc/slurmctld.pid
SlurmdPidFile=$etc/slurmd.pid
SlurmctldLogFile=$here/slurmctld.log
SlurmdLogFile=$here/slurmd.log
StateSaveLocation=$etc/state
SlurmdSpoolDir=$etc/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc=$etc/completed
ReturnToService=2
KillWait=20
SlurmdTimeout=30
NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  : >"$etc/completed"
  munged --foreground --force --socket="$etc/munge.socket" --key-file="$etc/key" --pid-file="$etc/munge.pid" --log-file="$here/munge.log" --seed-file="$etc/seed" >"$here/munged.log" 2>&1 &
  own_processes+=($!)
  for i in $(seq 100); do [ -S "$etc/munge.socket" ] && break; sleep 0.1; done
  slurmctld -D >"$here/ctld.log" 2>&1 &
  own_processes+=($!)
  slurmd -D -N "$host" >"$here/d.log" 2>&1 &
  local slurmd=$!
  own_processes+=($slurmd)
  for i in $(seq 300); do [ "$(sinfo -h -o %t 2>/dev/null)" = idle ] && break; sleep 0.1; done
  [ "$(sinfo -h -o %t)" = idle ] || skip "Slurm does not start here: $(tail -n 2 "$here/ctld.log" "$here/d.log" "$here/munged.log" | tr '\n' ' ')"

  "$reclab" sweep emit "$here/sweep" slurm --jobs 2 >"$here/script"
  local begin=$(date +%s)
  sbatch --wait "$here/script" >"$here/sbatch.log" 2>&1 &
  local waiting=$!
  # Preempted while it runs: it keeps a checkpoint, is requeued, and goes on from there.
  local job="" task=""
  for i in $(seq 600); do
    job=$(squeue -h -t RUNNING -o '%A %K' | awk '$2 == 3 {print $1}')
    [ -n "$job" ] && [ "$(counts "$here/sweep" running)" != 0 ] && break
    sleep 0.1
  done
  [ -n "$job" ] || fail "the fourth cell never ran"
  sleep 0.5
  scontrol requeue "$job"
  for i in $(seq 300); do [ "$(counts "$here/sweep" interrupted)" != 0 ] && task=kept && break; sleep 0.1; done
  [ -n "$task" ] || fail "the requeued cell has no checkpoint"
  # slurmd alone dies; its steps go on, and it takes them up again.
  kill -9 $slurmd
  sleep 1
  slurmd -D -N "$host" >>"$here/d.log" 2>&1 &
  own_processes+=($!)
  # Slurm lets a requeued job wait for two minutes.
  for i in $(seq 10); do scontrol update jobid="$job" starttime=now 2>/dev/null || true; sleep 1; done
  local status=0
  wait $waiting || status=$?
  echo "sbatch --wait: exit status $status after $(($(date +%s) - begin)) s; states: $(grep -o 'JobState=[A-Z_]*' "$etc/completed" | sort | uniq -c | tr '\n' ' ')"
  [ $status -eq 2 ] || fail "sbatch --wait exits with $status, not with the 2 of the cell that cannot be; $(cat "$here/sbatch.log")"
  check_twenty_four
  [ "$(grep -o 'JobState=FAILED' "$etc/completed" | wc -l)" -eq 1 ] || fail "more than one task failed: $(cat "$etc/completed")"
}

examples() {
  local ran=0 document=engine/docs/sweeps.md
  cd "$here"
  export PATH="$(dirname "$reclab"):$PATH"
  echo "{$small --steps 5\", \"axes\": {\"seed\": [1, 2, 3]}}" >plan.json
  take() { awk -v begin="\`\`\`$1" '$0 == begin {on = 1; next} /^```/ {on = 0} on' "$OLDPWD/$document"; }
  if command -v snakemake >/dev/null; then
    ran=1
    "$reclab" sweep plan.json --into sweep
    take snakemake >Snakefile
    snakemake --cores 2 all >snakemake.log 2>&1 || fail "$(tail -n 5 snakemake.log)"
    [ "$(counts sweep done)" = 3 ] || fail "Snakemake did not do all"
  fi
  if python3 -c 'import optuna' 2>/dev/null; then
    ran=1
    take python >study.py
    python3 study.py >optuna.log 2>&1 || fail "$(tail -n 5 optuna.log)"
    grep -q width optuna.log || fail "$(tail -n 5 optuna.log)"
  fi
  [ $ran -eq 1 ] || skip "neither Snakemake nor Optuna is here"
}

case $what in
  kills) kills ;;
  parallel) with_parallel ;;
  slurm) with_slurm ;;
  examples) examples ;;
  *) fail "there is no $what" ;;
esac
echo "$what: as it should be"
