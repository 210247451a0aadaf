// SPDX-License-Identifier: GPL-3.0-or-later
// Runs as a user sees them: the textbook gradient, cancelling, diverging, thinning, weights and states of one's own.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <thread>

#include "experiment/command/command.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "models/registry.h"
#include "places.h"
#include "safetensors.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;

namespace {

RunRequest request_for(const std::string& architecture, const std::string& task, std::int64_t length) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.sequence = make_task(task, {.length = length, .seed = 1});
  return request;
}

TracePtr run_quietly(const RunRequest& request) { return run(builtin_registry(), request, {}, {}).trace; }

std::filesystem::path scratch(const std::string& name) {
  const auto folder = std::filesystem::temp_directory_path() / ("reclab-test-run-" + name);
  std::filesystem::remove_all(folder);
  return folder;
}

bool same_bits(const TraceArray& a, const TraceArray& b) {
  return a.shape == b.shape && (a.is_complex() ? *a.complex == *b.complex : *a.real == *b.real);
}

}  // namespace

TEST_CASE("a linear network with an orthogonal matrix: ds_T/ds_t is R^(T-t), far beyond the range of a double") {
  for (const double radius : {0.5, 0.9, 0.99, 1.0, 1.1}) {
    RunRequest request = request_for("elman", "noise", 2000);
    request.set = {{"activation", "identity"}, {"spectral_radius", std::to_string(radius)}, {"width", "32"}};
    const auto trace = run_quietly(request);
    CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "finished");
    const TraceArray* jacobian = trace->find("jacobian/0");
    CHECK(jacobian && jacobian->shape == Shape({2000, 4}));
    for (std::int64_t t = 0; t < 2000; t += 37)
      CHECK_CLOSE((*jacobian->real)[static_cast<std::size_t>(t * 4)], std::log10(radius) * static_cast<double>(1999 - t), 1e-9);
    // The gradient of the last output falls at the same rate: nothing is lost below 1e-308.
    const auto& gradient = *trace->find("gradient/state/0/h")->real;
    if (radius < 1.0) CHECK_CLOSE((gradient[1999] - gradient[0]) / 1999.0, -std::log10(radius), 1e-3);
    CHECK(std::all_of(gradient.begin(), gradient.end(), [](double x) { return std::isfinite(x); }));
  }
}

TEST_CASE("the gradient through two layers is followed below 1e-600, where plain numbers are zero") {
  // Both layers multiply by R a step, so dL/ds_t of the lower one is a sum of T-t+1 equal terms: (T-t+1) R^(T-t) up to constants.
  RunRequest request = request_for("elman", "noise", 2400);
  request.set = {{"activation", "identity"}, {"spectral_radius", "0.5"}, {"width", "1"}, {"layers", "2"}, {"bias", "no"}};
  // The orthogonal 1 x 1 matrices are +-R: take a seed that draws the same sign for both, so that the terms do not alternate.
  TracePtr trace;
  do {
    ++request.seed;
    trace = run_quietly(request);
  } while ((*trace->find("param/0/weight_hh")->real)[0] * (*trace->find("param/1/weight_hh")->real)[0] < 0.0);
  const auto& lower = *trace->find("gradient/state/0/h")->real;
  const auto expected = [&](std::int64_t t) {
    return std::log10(static_cast<double>(2399 - t + 1)) + static_cast<double>(2399 - t) * std::log10(0.5);
  };
  CHECK(lower[0] < -700.0);
  for (const std::int64_t t : {0, 500, 1200, 2000})
    CHECK_CLOSE(lower[static_cast<std::size_t>(t)] - lower[2399], expected(t) - expected(2399), 1e-9);
}

TEST_CASE("a run that leaves the finite numbers stops there, names the step, and keeps what came before") {
  RunRequest request = request_for("elman", "noise", 9000);
  request.set = {{"activation", "identity"}, {"spectral_radius", "1.2"}};
  request.every = 1;
  const auto trace = run_quietly(request);
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "diverged");
  const TraceArray* h = trace->find("state/0/h");
  CHECK(h && h->shape[0] > 3000 && h->shape[0] < 5000);
  CHECK(std::all_of(h->real->begin(), h->real->end(), [](double x) { return std::isfinite(x); }));
  CHECK_SAYS(trace->info.sentence.find("step " + std::to_string(h->shape[0])) != std::string::npos, trace->info.sentence);
}

TEST_CASE("a note about arrays of a kind says of which, for whoever shows them") {
  const auto trace = run_quietly(request_for("hyena", "noise", 40));
  for (const Kind kind : {Kind::spectrum, Kind::jacobian})
    CHECK_SAYS(std::ranges::any_of(trace->info.note_kinds,
                                   [&](const auto& about) {
                                     return about.first == kind && about.second.terminal_text().starts_with("There are no eigenvalues") &&
                                            std::ranges::find(trace->info.notes, about.second) != trace->info.notes.end();
                                   }),
               std::string(info_of(kind).name));
}

TEST_CASE("a last layer is said to normalise its output where it does, and not where |y| happens to be the same at all steps") {
  const auto noted = [](const Trace& trace) {
    return std::ranges::any_of(trace.info.note_kinds, [](const auto& note) {
      return note.second.terminal_text().starts_with("The last layer normalises its output");
    });
  };
  for (const char* model : {"elman", "gru", "lstm"}) CHECK_SAYS(!noted(*run_quietly(request_for(model, "noise", 1))), model);
  CHECK(noted(*run_quietly(request_for("mega", "noise", 40))));
}

TEST_CASE("a gate with an entry a head is not said to be of units") {
  RunRequest request = request_for("deltanet", "noise", 20);
  request.set = {{"heads", "2"}};
  const auto trace = run_quietly(request);
  const TraceArray* beta = trace->find("gate/0/beta");
  CHECK(beta && beta->row_size() == 2);
  CHECK_EQUAL(beta->axes[1].name, "head");
  CHECK_EQUAL(run_quietly(request_for("lstm", "noise", 20))->find("gate/0/forget")->axes[1].name, "unit");
}

TEST_CASE("a run says what its model has none of, whatever is recorded") {
  const auto absent = [](const char* architecture) {
    RunRequest request = request_for(architecture, "noise", 40);
    request.recording.kinds = {Kind::output};
    return run_quietly(request)->info.absent;
  };
  const auto elman = absent("elman"), lru = absent("lru"), hyena = absent("hyena");
  CHECK_EQUAL(elman.at(Kind::gate), std::string("It has no gates."));
  for (const Kind kind : {Kind::kernel, Kind::response, Kind::time_constant})
    CHECK(elman.at(kind).find("has no convolution kernel, because ") != std::string::npos);
  CHECK(!elman.contains(Kind::spectrum) && !elman.contains(Kind::jacobian) && !elman.contains(Kind::lyapunov));
  CHECK(!lru.contains(Kind::kernel) && !lru.contains(Kind::gate));
  for (const Kind kind : {Kind::spectrum, Kind::jacobian, Kind::jacobian_min, Kind::lyapunov}) CHECK(hyena.contains(kind));
  CHECK(!hyena.contains(Kind::kernel));  // that of its long convolution
}

TEST_CASE("a run says what was subtracted from a standardised input and divided by") {
  RunRequest request = request_for("elman", "noise", 40);
  CHECK(run_quietly(request)->info.input_mean.empty());
  request.sequence = make_task("noise", {.length = 40, .seed = 1, .standardise = true});
  const auto trace = run_quietly(request);
  CHECK(trace->info.input_mean == request.sequence->mean && trace->info.input_deviation == request.sequence->deviation);
  const Sequence raw = make_task("noise", {.length = 40, .seed = 1});
  CHECK_CLOSE((*trace->find("input")->real)[7] * trace->info.input_deviation[0] + trace->info.input_mean[0], raw.input[7], 1e-12);
}

TEST_CASE("an output that is classes is said to be logits, and one that has a named target has its name") {
  const auto classes = run_quietly(request_for("elman", "copy", 60));
  CHECK_EQUAL(classes->find("output")->unit, "logit");
  CHECK(classes->output_names.empty());
  RunRequest request = request_for("elman", "copy", 60);
  request.loss = LossKind::last;  // then they are nothing but outputs
  CHECK_EQUAL(run_quietly(request)->find("output")->unit, "");
  const auto sum = run_quietly(request_for("elman", "adding", 60));
  CHECK_EQUAL(sum->find("output")->unit, "");
  request = request_for("elman", "adding", 60);
  request.sequence.own().target_names = {"sum"};
  const auto named = run_quietly(request);
  CHECK(named->output_names == std::vector<std::string>({"sum"}) && named->find("output")->axes[1].labels == named->output_names);
}

TEST_CASE("above the limit of memory every k-th step is recorded, and a note says so") {
  RunRequest request = request_for("gru", "noise", 5000);
  request.record_limit = 1 << 20;
  request.recording.kinds.remove(kinds_of(Stage::late));
  const auto trace = run_quietly(request);
  CHECK(trace->info.every > 1);
  CHECK(!trace->info.notes.empty() && trace->info.notes[0].terminal_text().find("--every 1") != std::string::npos);
  CHECK_EQUAL(trace->steps.back(), 4999);
  // The rows that were kept are those of the whole record.
  request.record_limit = std::int64_t{1} << 30;
  const auto whole = run_quietly(request);
  const auto *some = trace->find("state/0/h"), *all = whole->find("state/0/h");
  for (std::size_t row = 0; row < trace->steps.size(); ++row)
    for (std::int64_t j = 0; j < 64; ++j)
      CHECK_EQUAL((*some->real)[row * 64 + static_cast<std::size_t>(j)],
                  (*all->real)[static_cast<std::size_t>(trace->steps[row] * 64 + j)]);
}

TEST_CASE("what would be recorded is counted as it is: a little above it every step is, below it every second") {
  for (const std::string architecture : {"lstm", "block-recurrent"}) {
    RunRequest request = request_for(architecture, "noise", 400);
    if (architecture == "block-recurrent") request.set = {{"gate", "lstm"}};
    request.recording.kinds.remove(kinds_of(Stage::late));
    request.every = 1;
    std::int64_t bytes = 0;
    const auto whole = run_quietly(request);
    for (const auto& array : whole->arrays())
      if (!array->axes.empty() && array->axes[0].name == "time") bytes += 8 * array->size();
    request.every = 0;
    request.record_limit = bytes * 11 / 10;
    CHECK_SAYS(run_quietly(request)->info.every == 1, architecture);
    request.record_limit = bytes * 9 / 10;
    CHECK_SAYS(run_quietly(request)->info.every == 2, architecture);
  }
}

TEST_CASE("no array has fewer rows because another takes long") {
  // deltanet's Jacobians have 256 rows, nearly all of them of the identity.
  const PresetLibrary library(builtin_registry(), {test::source("presets")});
  RunRequest request;
  request.preset = library.find("deltanet");
  request.sequence = make_task("copy", {.length = 200, .seed = 1});
  const auto trace = run_quietly(request);
  CHECK_EQUAL(trace->info.every, 1);
  for (const auto& array : trace->arrays())
    if (!array->axes.empty() && array->axes[0].name == "time") CHECK_SAYS(array->shape[0] == 200 && array->steps.empty(), array->key);
  for (const Sentence& note : trace->info.notes)
    CHECK_SAYS(note.terminal_text().find("--every") == std::string::npos, note.terminal_text());
}

TEST_CASE("an analysis that takes long has rows of its own, says so, and has them all with --every") {
  RunRequest request = request_for("lstm", "noise", 3000);
  request.set = {{"width", "160"}};  // a decomposition of 320 x 320 takes tens of milliseconds
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient}).add({Kind::spectrum});
  // Which steps there will be is said before the first is decomposed: what follows need not be waited for.
  std::stop_source source;
  std::jthread other;
  const auto result = run(builtin_registry(), request, {}, source.get_token(), [&](const TracePtr& trace) {
    if (!trace->find("spectrum/0") && !other.joinable())
      other = std::jthread([&] {
        std::this_thread::sleep_for(std::chrono::seconds(2));
        source.request_stop();
      });
  });
  CHECK_EQUAL(result.trace->info.every, 1);
  CHECK_EQUAL(result.trace->find("state/0/c")->shape[0], 3000);
  CHECK_EQUAL(result.trace->find("gate/0/forget")->shape[0], 3000);
  std::string note;
  for (const Sentence& said : result.trace->info.notes)
    if (said.terminal_text().starts_with("spectrum/0 has ")) note = said.terminal_text();
  CHECK_SAYS(note.find(" rows of the 3000 recorded, which would take about ") != std::string::npos &&
                 note.find("--every 1 makes them all") != std::string::npos,
             note);
  const int rows = std::stoi(note.substr(std::string("spectrum/0 has ").size()));
  CHECK_SAYS(rows > 100 && rows < 3000, note);
  request.every = 1500;  // asked for by number: all of them
  CHECK_EQUAL(run_quietly(request)->find("spectrum/0")->shape[0], 3);
}

TEST_CASE("ordinals are written as they are said") {
  RunRequest request = request_for("elman", "noise", 300);
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
  std::map<std::int64_t, std::string> said;
  for (double limit = 4096.0; limit < double(1 << 20); limit *= 1.04) {
    request.record_limit = static_cast<std::int64_t>(limit);
    const auto trace = run_quietly(request);
    if (trace->info.every > 1) said[trace->info.every] = trace->info.notes.at(0).terminal_text();
  }
  for (const auto& [every, note] : said) {
    const bool teen = every % 100 >= 11 && every % 100 <= 13;
    const std::string end = !teen && every % 10 == 1 ? "st" : !teen && every % 10 == 2 ? "nd" : !teen && every % 10 == 3 ? "rd" : "th";
    CHECK_SAYS(note.starts_with("Every " + std::to_string(every) + end + " step was recorded"), note);
  }
  CHECK(said.contains(2) && said.contains(3) && said.contains(11));
}

TEST_CASE("what is recorded alone is what a run that records everything has of it") {
  for (const std::string architecture : {"gla", "retnet", "mlstm", "linear-attention", "lstm"}) {
    RunRequest request = request_for(architecture, "noise", 70);
    const TracePtr whole = run_quietly(request);
    for (const std::string only : {"gradient", "spectrum", "jacobian"}) {
      request.recording = recording_of({only});
      const TracePtr alone = run_quietly(request);
      std::size_t compared = 0;
      for (const auto& array : whole->arrays()) {
        if (!array->key.starts_with(only)) continue;
        const TraceArray* found = alone->find(array->key);
        CHECK_SAYS(found, architecture + ": " + array->key + " is not there");
        CHECK_SAYS(same_bits(*array, *found), architecture + ": " + array->key + " has other bits");
        ++compared;
      }
      CHECK_SAYS(compared > 0, architecture + " has no " + only);
    }
  }
}

TEST_CASE("weights and states are refused in a sentence, entry by entry, whatever the kind of file") {
  const auto folder = scratch("weights");
  RunRequest four = request_for("lstm", "noise", 20);
  four.sequence.own().width = 4;
  four.sequence.own().input.resize(80, 0.5);
  export_run(run(builtin_registry(), four, {}, {}), folder, false);
  test::npz_to_safetensors(folder / "trace.npz", "param/", folder / "trace.safetensors");
  test::npz_to_safetensors(folder / "state.npz", "state/", folder / "state.safetensors");
  for (const std::string kind : {"npz", "safetensors"}) {
    RunRequest request = request_for("lstm", "noise", 20);
    request.weights = folder / ("trace." + kind);
    const std::string file = request.weights.string() + ": the entry ";
    // check_files says the same as a run, without one.
    const auto refused = [&](const std::string& sentence) {
      CHECK_ERROR(run_quietly(request), sentence);
      CHECK_ERROR(check_files(builtin_registry(), request), sentence);
    };
    refused(
        file +
        "0/weight_ih has shape [256, 4] where the model has [256, 1]: the weights were made for 4 input columns where the sequence has 1.");
    request.set = {{"layers", "2"}};
    request.sequence = four.sequence;
    refused(file + "1/weight_ih of shape [256, 64] is missing, the file has ");
    refused(": the weights were made for layers = 1.");
    request.set = {{"bias", "no"}};
    refused(file + "0/bias_hh is not a parameter of this model, and has shape [256]: the weights were made for bias = true.");
    request.set = {{"width", "32"}};
    refused(file + "0/weight_ih has shape [256, 4] where the model has [128, 4]: the weights were made for width = 64.");
    request.set.clear();
    request.state = folder / ("state." + kind);
    run_quietly(request);
    check_files(builtin_registry(), request);
    request.set = {{"width", "32"}};
    request.weights.clear();
    refused(request.state.string() + ": the state state/0/h has shape [64] where the model has [32]: take the state.npz");
    request.set = {{"layers", "2"}};
    refused(request.state.string() + ": the state state/1/h of shape [64] is missing, the file has ");
    request.preset.id = request.preset.architecture = "elman";
    request.set.clear();
    refused(request.state.string() + ": the state ");
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE("weights with and without param/, and a final state alone, are read as they were saved") {
  test::Scratch folder;
  RunRequest request = request_for("s4d", "noise", 60);  // its C is complex: re and im are a last axis
  const RunResult drawn = run(builtin_registry(), request, {}, {});
  save_weights(*drawn.trace, folder / "w.npz");
  save_state(drawn.state, folder / "s.npz");
  CHECK(kind_of_file(folder / "w.npz") == FileKind::weights && kind_of_file(folder / "s.npz") == FileKind::state);
  test::npz_to_safetensors(folder / "w.npz", "", folder / "with.safetensors");
  test::npz_to_safetensors(folder / "w.npz", "param/", folder / "without.safetensors");
  CHECK(kind_of_file(folder / "without.safetensors") == FileKind::weights);
  save_sequence(request.sequence, folder / "sequence.npz");
  save_sequence(request.sequence, folder / "sequence.csv");
  CHECK(kind_of_file(folder / "sequence.npz") == FileKind::sequence && kind_of_file(folder / "sequence.csv") == FileKind::sequence);
  request.seed = 2;  // other weights, were they drawn
  for (const char* file : {"w.npz", "with.safetensors", "without.safetensors"}) {
    request.weights = folder / file;
    const auto loaded = run_quietly(request);
    CHECK_SAYS(same_bits(*loaded->find("output"), *drawn.trace->find("output")), file);
    CHECK_EQUAL(loaded->info.weights, request.weights.string());
  }
  CHECK(drawn.trace->info.weights.empty() && drawn.trace->info.state.empty());
  request.weights.clear();
  CHECK(!same_bits(*run_quietly(request)->find("output"), *drawn.trace->find("output")));
  // A matrix the other way round, and complex numbers where the card has re and im.
  const auto refused = [&](const std::string& key, const Shape& shape, bool complex, const std::string& sentence) {
    {
      AtomicFile out(folder / "bad.npz");
      NpzWriter writer(out);
      const NpzFile good(folder / "w.npz");
      for (const auto& name : good.names()) {
        const NpyArray array = good.read(name);
        if (name == key && complex)
          writer.add(name, shape,
                     std::span<const std::complex<double>>(std::vector<std::complex<double>>(static_cast<std::size_t>(count(shape)))));
        else
          writer.add(name, name == key ? shape : array.shape, std::span<const double>(array.real));
      }
      writer.finish();
      out.commit();
    }
    request.weights = folder / "bad.npz";
    CHECK_ERROR(run_quietly(request), sentence);
  };
  const TraceArray* C = drawn.trace->find("param/0/C");
  CHECK(C && C->shape.size() == 3 && C->shape[2] == 2);
  const Shape parts = C->shape, numbers{parts[0], parts[1]}, turned{parts[2], parts[1], parts[0]};
  refused(C->key, numbers, true,
          "the entry 0/C is complex, of shape " + to_string(numbers) + " where the model has " + to_string(parts) + ": save real numbers");
  refused(C->key, turned, false,
          "the entry 0/C has shape " + to_string(turned) + " where the model has " + to_string(parts) + ": save it transposed");
}

TEST_CASE("requests that cannot run say what can") {
  RunRequest request = request_for("lstm", "noise", 20);
  request.form = "scan";
  CHECK_ERROR(run_quietly(request), "lstm has no exact scan form: choose sequential");
  request.form = "sideways";
  CHECK_ERROR(run_quietly(request), "no form \"sideways\"");
  request.form = "sequential";
  request.dtype = "f16";
  CHECK_ERROR(run_quietly(request), "choose f64 or f32");
  request.dtype = "f64";
  request.loss = LossKind::task;
  CHECK_ERROR(run_quietly(request), "has no target");
  request.loss = LossKind::automatic;
  request.set = {{"width", "0"}};
  CHECK_ERROR(run_quietly(request), "width");
  CHECK_ERROR(run_quietly(request_for("s4d-typo", "noise", 20)), "nearest are s4d");
}
