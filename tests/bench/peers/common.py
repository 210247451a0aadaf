# SPDX-License-Identifier: GPL-3.0-or-later
"""Packages, threads, the list of a row's peers, and the answers to reclab-bench."""
import contextlib
import importlib
import json
import os
import sys
import time

# As many threads for everyone as this process may run on processors; reclab-bench has restricted it where it was asked to.
threads = len(os.sched_getaffinity(0))
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[variable] = str(threads)
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"  # in this process: others' threads do not survive a fork
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import numpy as np  # noqa: E402

cuda = False  # whether the row is a device's


def package(name):
    """The package, or None, which standard error says."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        say(f"no {name}: {error}")
        return None


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def version(name):
    from importlib import metadata
    return metadata.version(name)


torch, jax = package("torch"), package("jax")
if torch is not None:
    torch.set_num_threads(threads)


def to_the_end(run):
    """The value of a call, and the call with a wait until the device has made its value."""
    value = run()
    if jax is not None and any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        return jax.block_until_ready(value), lambda: jax.block_until_ready(run())
    if not cuda:
        return value, run

    def and_wait():
        run()
        torch.cuda.synchronize()

    torch.cuda.synchronize()
    return value, and_wait


def as_numpy(value):
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().cpu().numpy()
    return np.asarray(value)


def reason(problem):
    return str(problem).strip().splitlines()[0] if str(problem).strip() else type(problem).__name__


@contextlib.contextmanager
def trying(name):
    """Says why what is to be made for a peer cannot be made; the other peers go on."""
    try:
        yield
    except Exception as problem:
        say(f"{name}: not made: {reason(problem)}")


def on_torch(array):
    return torch.from_numpy(np.ascontiguousarray(array)).to("cuda" if cuda else "cpu")


def compiled(function, **options):
    """torch.compile, of one function as often as there are shapes and modes."""
    import torch._dynamo
    torch._dynamo.config.recompile_limit = 256
    return torch.compile(function, dynamic=False, **options)


peers = []  # of the row that was prepared last: (part, what is said of it, its function)


def peer(part, name, version, run, exact, pick=lambda value: value, allowed=1e-3):
    """Adds run() to the peers of a part if pick(its value) is the exact arrays; more than the usual error is allowed to what multiplies with
    fewer bits. The calls before it is timed compile it and warm it."""
    try:
        value, call = to_the_end(run)
        values = pick(value)
        values = values if isinstance(values, (list, tuple)) else [values]
        error = max(float(np.abs(as_numpy(v)[: len(e)].reshape(e.shape) - e).max() / np.abs(e).max()) for v, e in zip(values, exact, strict=True))
        value = values = None
        if not error < allowed:
            say(f"{name}, {part}: computes something else (error {error:.1e}) and is left out")
            return
        call()
        begin = time.perf_counter()
        call()
        seconds = time.perf_counter() - begin
    except Exception as problem:  # a peer that cannot run this row is left out, by name
        say(f"{name}, {part}: did not run: {reason(problem)}")
        return
    peers.append((part, {"name": name, "version": version, "error": error, "seconds": seconds}, call))


def rest():
    """Waits until no thread of this process computes: some packages' threads go on spinning for a while after a call, on a processor that the
    next competitor needs."""
    end = time.monotonic() + 2.0
    while True:
        before = time.process_time()
        time.sleep(0.001)
        if time.process_time() - before < 0.0003:
            return
        if time.monotonic() > end:
            say("threads of this process do not come to rest")
            return


def timed(number, calls):
    """The mean seconds of so many calls."""
    call = peers[number][2]
    begin = time.perf_counter()
    for _ in range(calls):
        call()
    seconds = (time.perf_counter() - begin) / calls
    rest()
    return seconds


def prepare(rows, row, path):
    global cuda
    cuda = row[0] == "G"
    peers.clear()
    if torch is not None and torch.cuda.is_available():
        torch.cuda.empty_cache()
    if row in rows:
        with np.load(path) as file:
            inputs = {key: file[key] for key in file.files}
        inputs["folder"] = os.path.dirname(path)
        with trying(f"the other peers of {row}"):
            rows[row](inputs)
    else:
        say(f"no peer of {row}")
    rest()
    found = {}
    for number, (part, about, _) in enumerate(peers):
        found.setdefault(part, []).append(about | {"number": number})
    return found


def serve(rows):
    """Answers each line of standard input by a line of JSON on standard output. "prepare ROW INPUTS.npz": the row's peers, compiled, checked
    against float64 and warmed, as {"part": [{"name", "version", "error", "seconds", "number"}]}. "time NUMBER CALLS": the mean seconds of so
    many calls of one of them, or {"failed": "why"}."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what packages print is no answer
    for line in sys.stdin:
        request, first, second = line.rstrip("\n").split(" ", 2)
        if request == "prepare":
            answer = prepare(rows, first, second)
        else:
            try:
                answer = timed(int(first), int(second))
            except Exception as problem:
                answer = {"failed": reason(problem)}
        print(json.dumps(answer), file=answers, flush=True)
