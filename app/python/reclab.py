# SPDX-License-Identifier: GPL-3.0-or-later
"""Recurrence Lab from Python: runs, trainings, evaluations and sweeps of `reclab`, with arrays in and out.

    import numpy, reclab
    run = reclab.run("lstm", input=numpy.random.randn(500, 3), width=64)
    run["state/0/c"]                      # [T, width]
    run.xarray()["gate/0/forget"]         # with dimensions, units and coordinates
    run                                   # in a notebook: its figure

Settings are the hyper-parameters of the preset's card (`reclab show ID`) and the options of `reclab run`, `train` and `evaluate`, with
underscores for minuses: `seed=3`, `task="adding"`, `task_set={"delay": 40}`, `trained=True`; of a name that Python has for itself,
`with_=[...]`. NumPy is all that is needed; xarray and torch are imported where they are asked for.

The program is found by the variable RECLAB, beside this file's installation, or on the PATH; that of the figures, recurrence-lab, by
RECURRENCE_LAB, beside reclab, or on the PATH.
"""
import ast
import atexit
import csv
import functools
import hashlib
import html
import io
import json
import math
import os
import pathlib
import shlex
import shutil
import subprocess
import tempfile
import threading
import weakref
import zipfile
from collections.abc import Mapping

import numpy

__all__ = ["Error", "Lab", "Archive", "Run", "Training", "Table", "Figure", "run", "train", "evaluate", "sweep", "figure", "open_run",
           "presets", "card", "kinds", "named_as", "load_into"]


class Error(Exception):
    """A sentence of reclab. `status` is the exit status that `reclab` has for it: 2 is a mistake in the request."""

    def __init__(self, sentence, status=2):
        super().__init__(sentence)
        self.status = status


def _program(name, variable, beside=()):
    given = os.environ.get(variable)
    if given:
        if not shutil.which(given):
            raise Error(f"{variable} is {given}, which is no program: set it to {name}, or leave it out.")
        return given
    for folder in beside:
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        raise Error(f"{name} is not on the PATH: install it, or set {variable} to the program.")
    return found


# Arrays in files.


@functools.lru_cache(maxsize=1024)
def _header(text):
    fields = ast.literal_eval(text)
    return numpy.dtype(fields["descr"]), fields["shape"], fields["fortran_order"], math.prod(fields["shape"])


def _npy_header(view):
    """Type, shape, order, number of entries, and where the data begins, of the bytes of an NPY file."""
    if bytes(view[:6]) != b"\x93NUMPY":
        raise ValueError("these are no bytes of an NPY file")
    start = 12 if view[6] > 1 else 10
    end = start + int.from_bytes(view[8:start], "little")
    return *_header(bytes(view[start:end]).decode("utf-8" if view[6] > 2 else "latin1")), end


def _from_npy(view):
    """The array in the bytes of an NPY file, without a copy."""
    dtype, shape, fortran, count, start = _npy_header(view)
    return numpy.frombuffer(view, dtype, count, start).reshape(shape, order="F" if fortran else "C")


def _npy(array):
    to = io.BytesIO()
    numpy.lib.format.write_array(to, numpy.asarray(array), allow_pickle=False)
    return to.getvalue()


def _npz(arrays):
    """The bytes of an NPZ file, uncompressed."""
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy"), _npy(array))
    return to.getvalue()


class Archive(Mapping):
    """The arrays of an NPZ or safetensors file, each read when it is asked for, mapped into memory where it lies uncompressed."""

    _types = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U8": "|u1", "BOOL": "|b1"}

    def __init__(self, file):
        self.file = pathlib.Path(file)
        self._places = {}  # name -> a function that reads it
        with open(self.file, "rb") as stream:
            if stream.read(2) == b"PK":
                with zipfile.ZipFile(stream) as archive:
                    for info in archive.infolist():
                        if info.filename.endswith(".npy"):
                            self._places[info.filename[:-4]] = self._member(info)
                return
            stream.seek(0)
            size = int.from_bytes(stream.read(8), "little")
            if not 2 <= size <= min(self.file.stat().st_size, 100_000_000):
                raise Error(f"{self.file} is neither NPZ nor safetensors: give a file of named arrays.")
            header = json.loads(stream.read(size))
        for name, entry in header.items():
            if name != "__metadata__":
                self._places[name] = self._tensor(entry, 8 + size)

    def _map(self, dtype, shape, offset, order="C"):
        if not math.prod(shape):
            return numpy.empty(shape, dtype)
        return numpy.memmap(self.file, dtype, "r", offset, tuple(shape) or (1,), order).reshape(shape)

    def _member(self, info):
        def read():
            if info.compress_type != zipfile.ZIP_STORED:
                with zipfile.ZipFile(self.file) as archive:
                    return _from_npy(archive.read(info))
            with open(self.file, "rb") as stream:
                stream.seek(info.header_offset + 26)
                names = stream.read(4)
                begin = info.header_offset + 30 + int.from_bytes(names[:2], "little") + int.from_bytes(names[2:], "little")
                stream.seek(begin)
                dtype, shape, fortran, _, start = _npy_header(memoryview(stream.read(min(info.file_size, 1 << 16))))
            return self._map(dtype, shape, begin + start, "F" if fortran else "C")
        return read

    def _tensor(self, entry, data):
        def read():
            if entry["dtype"] not in self._types:
                raise Error(f"{self.file} has numbers of type {entry['dtype']}, which NumPy has not: read it with safetensors.")
            return self._map(numpy.dtype(self._types[entry["dtype"]]), entry["shape"], data + entry["data_offsets"][0])
        return read

    def __getitem__(self, name):
        return self._places[name]()

    def __iter__(self):
        return iter(self._places)

    def __len__(self):
        return len(self._places)


class _Part(Mapping):
    """The arrays of others whose names begin alike, without that beginning."""

    def __init__(self, arrays, start):
        self._arrays, self._start = arrays, start

    def __getitem__(self, name):
        return self._arrays[self._start + name]

    def __iter__(self):
        return (key[len(self._start):] for key in self._arrays if key.startswith(self._start))

    def __len__(self):
        return sum(1 for _ in self)


# The process.


class _Answer:
    def __init__(self, line, trace, state):
        self.line, self.trace, self.state = line, trace, state


class Lab:
    """A `reclab serve`, which stays for many calls and computes with so many threads (None: one a processor). Calls of several threads take
    turns."""

    def __init__(self, program=None, threads=None):
        here = pathlib.Path(__file__).resolve().parent
        self.program = program or _program("reclab", "RECLAB", [here / "../../../bin", here])
        self.threads = threads
        self._process = None
        self._turn = threading.Lock()
        self._cards, self._options = {}, {}

    def close(self):
        process, self._process = self._process, None
        if process:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
            process.terminate()
            process.wait()
            process.stdout.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, command, files=None, want=None):
        """Carries out a line of reclab, a list of words without "reclab". `files`: bytes by name; a word that is such a name stands for the
        file. `want`: the beginnings of keys of a run's arrays that are sent back; None: all. Raises Error."""
        files = files or {}
        request = {"command": [str(word) for word in command]}
        if files:
            request["files"] = [{"name": name, "bytes": len(contents)} for name, contents in files.items()]
        if want is not None:
            request["want"] = list(want)
        with self._turn:
            try:
                line, blocks = self._exchange([json.dumps(request).encode() + b"\n", *files.values()])
            except BaseException:  # a key that interrupts: what comes later would be taken for the next answer
                self.close()
                raise
        if line["status"]:
            raise Error(line["error"] or line["output"], line["status"])
        parts = {"trace": {}, "state": {}}
        for entry, block in zip(line.get("arrays", ()), blocks):
            parts[entry["of"]][entry["key"]] = _from_npy(block)
        return _Answer(line, parts["trace"], parts["state"])

    def _exchange(self, pieces):
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            threads = [] if self.threads is None else ["--threads", str(self.threads)]
            self._process = subprocess.Popen([self.program, "serve", "--stdio", *threads], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                             start_new_session=True)
        try:
            for piece in pieces:
                self._process.stdin.write(piece)
            self._process.stdin.flush()
            text = self._process.stdout.readline()
        except BrokenPipeError:
            text = b""
        if not text.endswith(b"\n"):
            raise Error(f"{self.program} ended with status {self._process.wait()} before it answered.", 1)
        line = json.loads(text)
        sizes = [entry["bytes"] for entry in line.get("arrays", ())]
        whole = memoryview(numpy.empty(sum(sizes), numpy.uint8))
        if self._process.stdout.readinto(whole) != len(whole):
            raise Error(f"{self.program} ended within an answer.", 1)
        whole, ends = whole.toreadonly(), numpy.cumsum(sizes, dtype=int).tolist()
        return line, [whole[end - size:end] for end, size in zip(ends, sizes)]

    def read_json(self, *command):
        return json.loads(self.ask(command).line["output"])

    def card(self, preset, inputs=1, set=None):
        words = ["show", preset, "--inputs", inputs, "--json"]
        for key, value in (set or {}).items():
            words += ["--set", f"{key}={_text(value)}"]
        key = tuple(map(str, words))
        if key not in self._cards:
            self._cards[key] = self.read_json(*words)
        return self._cards[key]

    def options(self, command):
        if command not in self._options:
            self._options[command] = {row["option"]: row for row in self.read_json("options", command, "--json")}
        return self._options[command]

    def words(self, command, preset, settings, set=None, options=None):
        """The words of a line, of which each setting is a hyper-parameter of the card or an option of the command."""
        settings, given = {**settings, **(options or {})}, options or {}
        options = self.options(command)
        keys = {row["key"] for row in self.card(preset)["hyper"]} if preset else ()
        words = [command] + ([preset] if preset else [])
        for key, value in (set or {}).items():
            words += ["--set", f"{key}={_text(value)}"]
        for name, value in settings.items():
            if value is None:
                continue
            option = "--" + name.rstrip("_").replace("_", "-")
            if name in keys and option in options and name not in given:
                raise Error(f"{name} is a hyper-parameter of {preset} and an option of reclab {command}: give set={{\"{name}\": ...}} for the "
                            f"first, or options={{\"{name}\": ...}}.")
            if name in keys and name not in given:
                words += ["--set", f"{name}={_text(value)}"]
            elif option in options and options[option]["argument"] is None:
                words += [option] if value else []
            elif isinstance(value, Mapping):
                for key, one in value.items():
                    words += [option, f"{key}={_text(one)}"]
            elif isinstance(value, (list, tuple, numpy.ndarray, range)) and options.get(option, {}).get("several"):
                for one in value:
                    words += [option, _text(one)]
            elif isinstance(value, (list, tuple, numpy.ndarray, range)):
                words += [option, ",".join(map(_text, value))]
            else:
                words += [option, ("yes" if value else "no") if isinstance(value, (bool, numpy.bool_)) else _text(value)]
        return words


def _text(value):
    if isinstance(value, (bool, numpy.bool_)):
        return "true" if value else "false"
    return repr(float(value)) if isinstance(value, (float, numpy.floating)) else str(value)


def _number(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


_labs = []


def _lab(lab=None):
    if lab is not None:
        return lab
    if not _labs:
        _labs.append(Lab())
        atexit.register(_labs[0].close)
    return _labs[0]


# What is asked for.


def _array(value):
    """NumPy's of an array of anybody's."""
    if hasattr(value, "detach"):  # torch
        value = value.detach().cpu()
    return numpy.asarray(value)


def _sequence(input, target=None, mask=None, time=None, classes=None):
    """The bytes of an NPZ file for --input."""
    arrays = {"input": _array(input)}
    if arrays["input"].ndim == 1:
        arrays["input"] = arrays["input"][:, None]
    for name, value in (("target", target), ("mask", mask), ("time", time), ("classes", classes)):
        if value is not None:
            arrays[name] = _array(value)
    return _npz(arrays)


def _weights(weights):
    """The bytes of an NPZ file for --weights, of a mapping, a torch module, or what has weights."""
    if hasattr(weights, "state_dict"):
        weights = weights.state_dict()
    elif hasattr(weights, "weights"):
        weights = weights.weights
    arrays = {name: _array(value) for name, value in weights.items()}
    for name, array in arrays.items():
        if numpy.iscomplexobj(array):
            arrays[name] = numpy.stack([array.real, array.imag], -1)
    return _npz(arrays)


def _is_path(value):
    return isinstance(value, (str, os.PathLike))


def _request(settings, input, target, mask, time, classes, weights, state=None):
    """Settings with those of the files, and the files themselves."""
    settings, files = dict(settings), {}
    if input is not None and not _is_path(input):
        files["input.npz"] = _sequence(input, target, mask, time, classes)
        settings["input"] = "input.npz"
        settings.setdefault("standardise", False)
    elif input is not None:
        settings["input"] = os.fspath(input)
        if target is not None:
            settings["target"] = target
        if time is not None:
            settings["time"] = time
    elif target is not None or mask is not None or time is not None or classes is not None:
        raise Error("target, mask, time and classes belong to an input: give it, too.")
    if weights is not None and _is_path(weights):
        settings["weights"] = os.fspath(weights)
    elif weights is not None:
        files["weights.npz"] = _weights(weights)
        settings["weights"] = "weights.npz"
        settings.setdefault("sizes", "weights")
    if state is not None and _is_path(state):
        settings["state"] = os.fspath(state)
    elif state is not None and not isinstance(state, Mapping):
        raise Error(f"state is {state!r}, and no state of a run: give Run.state, or set={{\"state\": ...}} for the hyper-parameter.")
    elif state is not None:
        files["initial.npz"] = _npz({name: _array(value) for name, value in state.items()})
        settings["state"] = "initial.npz"
    return settings, files


def run(preset, input=None, *, target=None, mask=None, time=None, classes=None, weights=None, state=None, set=None, options=None, want=None,
        lab=None, **settings):
    """Runs a preset, as `reclab run` does, and returns a Run.

    input: an array [T, channels], which is read as it is (standardise=True makes each column's mean 0 and deviation 1), or a file; without
    it the settings name a task, or it is the preset's own. target [T, outputs], or with `classes` a class a step [T]; mask [T]; time [T].
    Of a file, `target` and `time` name columns. weights: a torch module, a state dict, another mapping, a Run, a Training or a file; sizes
    are taken from them. state: `Run.state` of the run before. want: beginnings of the keys that are needed, None for all of them;
    `record=[...]` computes no others. set, options: hyper-parameters, and options of the command, where a name is both.
    """
    lab = _lab(lab)
    settings, files = _request(settings, input, target, mask, time, classes, weights, state)
    answer = lab.ask(lab.words("run", preset, settings, set, options), files, want)
    return Run(answer.trace, answer.state, answer.line["manifest"], lab, files, answer.line["seconds"])


def train(preset=None, input=None, *, target=None, mask=None, time=None, classes=None, weights=None, set=None, options=None, export=None,
          resume=None, lab=None, **settings):
    """Trains a preset, as `reclab train` does, and returns a Training. `export`: its folder; without it one that is removed with the Training.
    Arrays are kept beside the folder, in NAME-input.npz and NAME-weights.npz, which `resume` needs."""
    lab = _lab(lab)
    temporary = None
    if export is None and resume is None:
        temporary = tempfile.mkdtemp(prefix="reclab-")
        export = os.path.join(temporary, "training")
    settings, files = _request(settings, input, target, mask, time, classes, weights)
    folder = pathlib.Path(export if export is not None else resume).absolute()
    for name, contents in files.items():
        kept = folder.with_name(f"{folder.name}-{name}")
        kept.write_bytes(contents)
        settings[name.split(".")[0]] = str(kept)
    settings.update(export=None if export is None else str(folder), resume=None if resume is None else str(pathlib.Path(resume).absolute()))
    try:
        text = lab.ask(lab.words("train", preset, settings, set, options)).line["output"]
    except BaseException:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)
        raise
    return Training(folder, text, temporary)


def evaluate(preset, input=None, *, target=None, mask=None, time=None, classes=None, weights=None, set=None, options=None,
             lab=None, **settings):
    """Judges weights on sequences that training never saw, as `reclab evaluate` does, and returns a Table: loss and metric with intervals, by
    length, position, delay and class. `about` has the rest of `reclab evaluate --json`."""
    lab = _lab(lab)
    settings, files = _request(settings, input, target, mask, time, classes, weights)
    settings["json"] = True
    about = json.loads(lab.ask(lab.words("evaluate", preset, settings, set, options), files).line["output"])
    return Table(about.pop("rows"), about)


def sweep(plan, into, *, jobs=None, threads=None, lab=None):
    """Computes the cells of a plan (a dict, or a JSON file) that are not done in the folder, and returns the Table, a row a cell."""
    lab = _lab(lab)
    into = os.fspath(into)
    if isinstance(plan, Mapping):
        lab.ask(["sweep", "plan.json", "--into", into], {"plan.json": json.dumps(plan).encode()})
    else:
        lab.ask(["sweep", os.fspath(plan), "--into", into])
    words = ["sweep", "run", into]
    for option, value in (("--jobs", jobs), ("--threads", threads)):
        words += [option, value] if value is not None else []
    lab.ask(words)
    rows = csv.DictReader(io.StringIO(lab.ask(["sweep", "collect", into]).line["output"]))
    return Table([{key: _number(value) for key, value in row.items()} for row in rows])


def figure(what, panel=None, *, width=None, font_size=None, with_=None, lab=None, **settings):
    """The figure of a panel, as the window draws it: of a Run, or of a preset with settings. Without `panel` it is the first that the preset
    looks at. width in mm, font_size in pt; with_: of "title", "caption" and "cursor" those that are wanted. Returns a Figure."""
    lab = _lab(lab)
    if not isinstance(what, Run):
        what = run(what, want=(), record=["output"], lab=lab, **settings)
    if panel is None:
        looked_at = lab.card(what.manifest["preset"])["look_at"]
        panel = looked_at[0].split(":")[0] if looked_at else "output"
    words = _without(shlex.split(what.command)[2:], "--record")  # a panel records what it needs
    words += ["--figures", "figures", "--panels", panel, "--format", "svg"]
    for option, value in (("--width", width), ("--font-size", font_size), ("--with", ",".join(with_ or ()) or None)):
        words += [option, str(value)] if value is not None else []
    return Figure(panel, words, what.files, pathlib.Path(lab.program).resolve().parent)


def _without(words, option):
    """The words of a line without an option and its value."""
    kept, words = [], iter(words)
    for word in words:
        if word == option:
            next(words, None)
        elif not word.startswith(option + "="):
            kept.append(word)
    return kept


def presets(lab=None):
    """`reclab list --json`: a dict a preset."""
    return _lab(lab).read_json("list", "--json")


def card(preset, inputs=1, lab=None, **set):
    """`reclab show ID --json`: equations, hyper-parameters, parameters with shapes and reference names, states, gates, source."""
    return _lab(lab).card(preset, inputs, set)


def kinds(lab=None):
    """`reclab kinds --json`: the kinds of arrays, with keys, axes and units."""
    return _lab(lab).read_json("kinds", "--json")


def open_run(folder, lab=None):
    """The Run that `reclab run --export` or `Run.save` wrote. Arrays are read when they are asked for."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    files = {name: (folder / name).read_bytes() for name in ("input.npz", "weights.npz", "initial.npz") if name in manifest["files"]}
    return Run(Archive(folder / "trace.npz"), Archive(folder / "state.npz"), manifest, lab, files)


# What comes back.


class Run(Mapping):
    """The arrays of a run by their keys, as in trace.npz (`reclab kinds` has the kinds): `run["state/0/h"]`. In a notebook it is a figure."""

    def __init__(self, trace, state, manifest, lab, files=None, seconds=None):
        self._trace, self._lab, self.files = trace, lab, files or {}
        self.state = state  #: the final state, which another run begins with: `reclab.run(..., state=run.state)`
        self.manifest = manifest  #: all facts of the run, as in manifest.json
        self.seconds = seconds  #: of the run and its analyses, in the process that made it
        self._about = {entry["key"]: entry for entry in manifest["arrays"]}

    def __getitem__(self, key):
        return self._trace[key]

    def __iter__(self):
        return iter(self._trace)

    def __len__(self):
        return len(self._trace)

    def __repr__(self):
        return f"<reclab.Run of {self.manifest['preset']}: {self.manifest['input']['length']} steps, loss {self.loss}, {len(self)} arrays>"

    @property
    def command(self):
        """The line that repeats the run; files that it names without a folder are those that `save` writes."""
        return self.manifest["command"]

    @property
    def loss(self):
        value = self.manifest["loss"]["value"]
        return numpy.nan if value is None else value

    @property
    def notes(self):
        return self.manifest["notes"]

    @property
    def weights(self):
        """The parameters by their names on the card, `0/weight_ih`."""
        return _Part(self._trace, "param/")

    @property
    def gradients(self):
        """dL/dθ by the same names."""
        return _Part(self._trace, "gradient/param/")

    def about(self, key):
        """Unit, axes and a sentence on an array; `steps` names the array of its rows' steps where they are its own."""
        return self._about[key]

    def array(self, key):
        """An xarray.DataArray: dimensions, units and coordinates are those of the record."""
        import xarray

        about, values = self._about[key], self[key]
        dims, coords = [], {}
        for number, axis in enumerate(about["axes"]):
            name = axis["name"].replace(" ", "_") or f"axis_{number}"
            while name in dims:
                name += "_"
            dims.append(name)
            if axis.get("labels"):
                coords[name] = (name, axis["labels"], {"units": axis["unit"]})
        if dims and dims[0] == "time":
            steps = numpy.asarray(self[about.get("steps", "step")])
            if len(steps) == values.shape[0]:
                time = dict(zip(numpy.asarray(self["step"]).tolist(), numpy.asarray(self["time"]).tolist()))
                coords["step"] = ("time", steps)
                if all(step in time for step in steps.tolist()):
                    coords["time"] = ("time", [time[step] for step in steps.tolist()], {"units": self.manifest["time"]["unit"]})
        for name in ("input", "output"):
            channels = self.manifest[name]["channels"]
            if key == name and len(channels) == values.shape[-1] and dims[-1] not in coords:
                coords[dims[-1]] = (dims[-1], channels)
        attributes = {"units": about["unit"], "long_name": about["text"]}
        if "range" in about:
            attributes["valid_range"] = about["range"]
        return xarray.DataArray(values, coords, dims, key, attributes)

    def xarray(self, keys=None):
        """An xarray.Dataset of these arrays, or of all. A dimension of another length, or with other coordinates, than one of the same name
        has the array's key behind its name."""
        import xarray

        arrays, first = {}, {}
        for key in self._about if keys is None else keys:
            if key not in self._trace:
                continue
            array = self.array(key)
            for dim in array.dims:
                own = (array.sizes[dim], array[dim].values.tolist() if dim in array.coords else None,
                       array["step"].values.tolist() if dim == "time" and "step" in array.coords else None)
                if first.setdefault(dim, own) != own:
                    renamed = {dim: f"{dim}_{key.replace('/', '_')}"}
                    if dim == "time" and "step" in array.coords:
                        renamed["step"] = f"step_{key.replace('/', '_')}"
                    array = array.rename(renamed)
            arrays[key] = array
        facts = {name: self.manifest[name] for name in ("title", "preset", "seed", "form", "dtype", "device", "command", "version")}
        return xarray.Dataset(arrays, attrs=facts)

    def figure(self, panel=None, **style):
        return figure(self, panel, lab=self._lab, **style)

    def save(self, folder):
        """Writes manifest.json, trace.npz, state.npz and the files of the command, as `reclab run --export` does, into a folder that is made
        whole and then renamed; one that exists is an error."""
        folder = pathlib.Path(folder)
        if folder.exists():
            raise Error(f"{folder} is there: give a folder that is not.")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as aside:
            made = pathlib.Path(aside, "made")
            made.mkdir()
            written = {}
            for name, contents in {"trace.npz": _npz(self._trace), "state.npz": _npz(self.state), **self.files}.items():
                (made / name).write_bytes(contents)
                written[name] = {"bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}
            text = json.dumps({**self.manifest, "files": written}, indent=2, ensure_ascii=False)
            (made / "manifest.json").write_text(text + "\n", "utf-8")
            made.rename(folder)

    def named_as(self, names, arrays=None):
        return named_as(self, names, arrays)

    def load_into(self, module):
        return load_into(module, self)

    def _repr_html_(self):
        return f"<p>{html.escape(repr(self))}</p>" + self.figure()._repr_html_()


class Training:
    """A folder of `reclab train --export`: `reclab.run(preset, weights=training)` runs what was learned."""

    def __init__(self, folder, text="", temporary=None):
        self.folder, self.text = pathlib.Path(folder), text
        if temporary:
            weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True)
        self.manifest = json.loads((self.folder / "training.json").read_text("utf-8"))

    def __repr__(self):
        return f"<reclab.Training in {self.folder}>\n{self.text}"

    @property
    def weights(self):
        """By their names on the card, mapped into memory."""
        return _Part(Archive(self.folder / "weights.npz"), "param/")

    @property
    def history(self):
        """Loss and more of each step, and of what is held out: `history["held_out/loss"]`."""
        return Archive(self.folder / "history.npz")


class Table:
    """Rows with the same columns: `table["loss"]` is a column, `table.rows` are dicts, `table.about` what is said of all."""

    def __init__(self, rows, about=None):
        self.rows, self.about = rows, about or {}

    @property
    def columns(self):
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def __getitem__(self, column):
        if column not in self.columns:
            raise KeyError(column)
        values = [row.get(column) for row in self.rows]
        return numpy.array([numpy.nan if value is None else value for value in values])

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows)

    def where(self, **values):
        """The rows with these values."""
        return Table([row for row in self.rows if all(row.get(key) == value for key, value in values.items())], self.about)

    def __repr__(self):
        return f"<reclab.Table of {len(self)} rows: {', '.join(self.columns)}>"

    def _repr_html_(self):
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in self.columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(str(row.get(name, '')))}</td>" for name in self.columns) + "</tr>" for row in self.rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Figure:
    """A figure, which recurrence-lab draws when it is looked at."""

    def __init__(self, panel, words, files, beside):
        self.panel, self._words, self._files, self._beside, self._svg = panel, words, files, beside, None

    @property
    def svg(self):
        if self._svg is None:
            program = _program("recurrence-lab", "RECURRENCE_LAB", [self._beside])
            with tempfile.TemporaryDirectory(prefix="reclab-") as folder:
                for name, contents in self._files.items():
                    pathlib.Path(folder, name).write_bytes(contents)
                done = subprocess.run([program, *self._words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
                drawn = sorted(pathlib.Path(folder, "figures").glob("*.svg"))
                if done.returncode or not drawn:
                    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
                    raise Error(lines[-1] if lines else f"{program} ended with status {done.returncode}.", done.returncode or 1)
                self._svg = drawn[0].read_text("utf-8")
        return self._svg

    def save(self, file):
        pathlib.Path(file).write_text(self.svg, "utf-8")

    def _repr_html_(self):
        try:
            return self.svg[max(self.svg.find("<svg"), 0):]  # HTML has no declaration of XML
        except Error as error:
            return f"<p>{html.escape(str(error))}</p>"


# Names of reference implementations.


def _card_of(made):
    manifest = made.manifest
    inputs = len(manifest["input"]["channels"])
    return _lab(made._lab).card(manifest["preset"], inputs, manifest["hyper"])


def named_as(run, names, arrays=None):
    """Arrays of a Run under the names of a reference implementation: a dict of those `names` (a torch module or any names) that a parameter of
    the model has. `arrays`: by the names on the card, the run's weights where there are none, or `run.gradients`; complex ones are real and
    imaginary parts in a last axis of 2, and matrices that the reference has transposed are."""
    shapes = {}
    if hasattr(names, "state_dict"):
        shapes = {name: tuple(value.shape) for name, value in names.state_dict().items()}
        names = shapes
    names = list(names)
    arrays = run.weights if arrays is None else arrays
    card = _card_of(run)
    theirs = {row["name"]: row["reference"] for row in card["parameters"] + card["head"]}
    of_layers = [name for name in arrays if not name.startswith(("head/", "encoder"))]

    one_layer = all(name.startswith("0/") for name in of_layers)

    def candidates(own):
        """The names of the reference, its own, and without the number of the only layer."""
        more = [own, own.replace("/", ".")] + ([own[2:].replace("/", ".")] if one_layer and own.startswith("0/") else [])
        return [*theirs.get(own, ()), *({"name": name, "transposed": False} for name in more)]

    def entries(own, prefix):
        """(name, row or None, transposed) of each entry that the parameter has."""
        for reference in candidates(own):
            if "{i}" in reference["name"]:
                rows = [prefix + reference["name"].replace("{i}", str(row)) for row in range(arrays[own].shape[0])]
                if all(name in names for name in rows):
                    return [(name, row, False) for row, name in enumerate(rows)]
            elif prefix + reference["name"] in names:
                return [(prefix + reference["name"], None, reference["transposed"])]
        return []

    ends = {""} | {name[:-len(one["name"])] for own in of_layers for one in candidates(own) for name in names if name.endswith(one["name"])}
    prefix = max(sorted(ends), key=lambda end: sum(bool(entries(own, end)) for own in of_layers))
    found = {}
    for own in arrays:
        values = numpy.asarray(arrays[own])
        places = entries(own, prefix)
        if not places and own in of_layers:
            raise Error(f"{own} has none of these names: {', '.join(names[:20])}; its names are those of `reclab show {card['id']} --json`.")
        for name, row, transposed in places:
            part = values if row is None else values[row]
            part = part.T if transposed else part
            found[name] = part.reshape(shapes[name]) if name in shapes and part.size == int(numpy.prod(shapes[name])) else part
    return found


def load_into(module, run):
    """Puts the weights of a Run into a torch module, by the names of the reference implementation, and returns the module."""
    import torch

    state = module.state_dict()
    for name, values in named_as(run, module).items():
        if tuple(values.shape) != tuple(state[name].shape):
            raise Error(f"{name} has shape {list(state[name].shape)} in the module and {list(values.shape)} in the run: make a module of that size.")
        state[name] = torch.from_numpy(numpy.ascontiguousarray(values)).to(state[name])
    module.load_state_dict(state)
    return module
