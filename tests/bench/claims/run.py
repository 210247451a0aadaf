#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Trains what the claims of the literature are about, and says which of them hold here.

    tests/bench/claims/run.py [ID ...] [--reclab build/engine-only/bin/reclab] [--results NAME]

Each run is one `reclab train` command of claims.json, with its seeds fixed, so it can be repeated by hand. A table goes to standard output; with --results
the table and the curves of what was held out go to NAME.txt and NAME.csv. The status is 1 where a claim does not hold."""
import argparse
import csv
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import time

here = pathlib.Path(__file__).resolve().parent
root = here.parents[2]


def trained(reclab, arguments, folder):
    """One run: what training.json says of it, its curve, and how long it took."""
    begin = time.monotonic()
    done = subprocess.run([reclab, "train", *arguments.split(), "--export", folder], capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begin
    if done.returncode != 0:
        sys.exit(f"reclab train {arguments}: {done.stderr.strip()}")
    folder = pathlib.Path(folder)
    found = json.loads((folder / "training.json").read_text())
    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.reader(file))
    curve = [(row[0], row[-2], row[-1]) for row in rows[1:] if row[-1]]
    return {"run": found, "curve": curve, "seconds": seconds, "metric": found["last"]["metric"]}


def bound(limit, runs):
    """A number, or a factor and whose metric it is of: another run's, the baseline's or the linear predictor's."""
    if not isinstance(limit, list):
        return limit, f"{limit:g}"
    factor, whose = limit
    any_run = next(iter(runs.values()))["run"]
    of = {"baseline": lambda: any_run["baseline"]["metric"], "linear predictor": lambda: any_run["linear_predictor"]["metric"]}.get(whose, lambda: runs[whose]["metric"])()
    return factor * of, f"{factor:g} times that of {'the ' if whose not in runs else ''}{whose}, {factor * of:.4g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--reclab", default=root / "build/engine-only/bin/reclab")
    parser.add_argument("--results")
    options = parser.parse_args()
    claims = json.loads((here / "claims.json").read_text())
    known = [claim["id"] for claim in claims]
    for name in options.ids:
        if name not in known:
            parser.error(f"there is no claim {name}; give {', '.join(known)}")
    lines, curves, failed = [], [], False

    def say(line=""):
        print(line, flush=True)
        lines.append(line)

    say(f"{datetime.date.today()}, tests/bench/claims/run.py {' '.join(options.ids)}".rstrip())
    for claim in claims:
        if options.ids and claim["id"] not in options.ids:
            continue
        say()
        say(f"{claim['id']}: {claim['claim']} ({claim['source']})")
        runs = {}
        for name, arguments in claim["runs"].items():
            with tempfile.TemporaryDirectory() as folder:
                runs[name] = result = trained(options.reclab, arguments, folder + "/run")
            found = result["run"]
            say(f"  {name:<22} {found['metric']} {result['metric']:<10.4g} {found['device']}, {result['seconds']:5.0f} s   reclab train {arguments}")
            curves += [(claim["id"], name, *row) for row in result["curve"]]
        found = next(iter(runs.values()))["run"]
        say(f"  {'baseline':<22} {found['metric']} {found['baseline']['metric']:<10.4g} {found['baseline']['text']}")
        if "linear_predictor" in found:
            say(f"  {'linear predictor':<22} {found['metric']} {found['linear_predictor']['metric']:<10.4g} {found['linear_predictor']['text']}")
        for name, relation, limit in claim["holds"]:
            value, text = bound(limit, runs)
            holds = runs[name]["metric"] < value if relation == "below" else runs[name]["metric"] > value
            failed |= not holds
            say(f"  {'holds' if holds else 'DOES NOT HOLD'}: {name} is {relation} {text}")
    if options.results:
        pathlib.Path(options.results + ".txt").write_text("\n".join(lines) + "\n")
        with open(options.results + ".csv", "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["claim", "run", "step", "held_out_loss", "held_out_metric"])
            writer.writerows(curves)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
