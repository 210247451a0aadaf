// SPDX-License-Identifier: GPL-3.0-or-later
#include "rows.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <numbers>
#include <span>

#include "array/error.h"
#include "autodiff/ops.h"
#include "inputs.h"
#include "recurrence/outer/outer.h"
#include "recurrence/selective/selective.h"
#include "recurrence/step/step.h"

namespace reclab::bench {

Backend& backend_of(const std::string& row) {
  if (row[0] != 'G') return cpu_backend();
  std::string why;
  if (Backend* cuda = cuda_backend(&why)) return *cuda;
  throw Error(row + " needs a CUDA device: " + why);
}

namespace {

using Complex = std::complex<double>;

// s_t = a_t s_{t-1} + b_t, real, every a its own.
Row scan(const std::string& name, std::int64_t B, std::int64_t T, std::int64_t D) {
  struct Data {
    Backend& backend;
    DiagonalDims dims;
    std::vector<float> a, b;
    DeviceArray da, db, s, g, ga, gb;
  };
  Rng rng(1);
  Backend& backend = backend_of(name);
  const std::int64_t n = B * T * D;
  auto data = std::make_shared<Data>(Data{backend, {T, B * D, 0}, uniform(rng, n, 0.9, 1.0), normal(rng, n), {}, {}, {}, {}, {}, {}});
  Data& d = *data;
  d.da = on(backend, d.a);
  d.db = on(backend, d.b);
  d.s = DeviceArray(backend, d.a.size() * sizeof(float));
  Row row;
  row.name = name;
  row.text = "real time-varying scan, float32, B" + std::to_string(B) + " T" + std::to_string(T) + " D" + std::to_string(D);
  const double bytes = 4.0 * static_cast<double>(n);
  const auto forward = [&d](ScanMethod method) {
    d.backend.diagonal(DType::f32, d.dims, method, d.da.data(), d.db.data(), nullptr, d.s.data(), {});
  };
  // What the machine is best at: a loop over time on a processor, all steps at once on a device. The other is a part of its own there.
  const bool on_device = backend.device() == Device::cuda;
  const ScanMethod own = on_device ? ScanMethod::tree : ScanMethod::steps;
  const auto add = [&](const std::string& part, ScanMethod method) {
    row.parts.push_back({part,
                         [&d, forward, method] {
                           forward(method);
                           d.backend.finish();
                         },
                         3.0 * bytes,
                         0.0,
                         2.0 * static_cast<double>(n),
                         "reads a and b, writes s",
                         {},
                         "forward"});
  };
  add("forward", own);
  if (on_device) add("forward, step by step", ScanMethod::steps);
  if (name == "G1") {
    d.g = on(backend, d.b);
    d.ga = DeviceArray(backend, d.s.bytes());
    d.gb = DeviceArray(backend, d.s.bytes());
    row.parts.push_back({"with backward",
                         [&d, forward, own] {
                           forward(own);
                           d.backend.diagonal_adjoint(DType::f32, d.dims, own, d.da.data(), d.s.data(), nullptr, d.g.data(), nullptr,
                                                      d.ga.data(), false, d.gb.data(), false, nullptr, nullptr, nullptr, {});
                           d.backend.finish();
                         },
                         8.0 * bytes, 0.0, 6.0 * static_cast<double>(n), "and back: reads a, s and dL/ds, writes dL/da and dL/db"});
  }
  row.error = [&d] {
    const auto ours = from<float>(d.backend, d.s.data(), d.a.size());
    std::vector<double> exact(d.a.size());
    const auto width = static_cast<std::size_t>(d.dims.width);
    for (std::size_t i = 0; i < exact.size(); ++i)
      exact[i] = (i >= width ? static_cast<double>(d.a[i]) * exact[i - width] : 0.0) + static_cast<double>(d.b[i]);
    return difference(ours, exact);
  };
  row.save = [&d, T, B, D](NpzWriter& file) {
    save(file, "a", {T, B, D}, d.a);
    save(file, "b", {T, B, D}, d.b);
    if (d.g.bytes()) save(file, "g", {T, B, D}, d.b);
  };
  row.kept = data;
  return row;
}

// The LRU's recurrence: complex, the same a at every step; forward and backward.
Row lru(const std::string& name, std::int64_t B, std::int64_t T, std::int64_t D) {
  using C = std::complex<float>;
  struct Data {
    Backend& backend;
    DiagonalDims dims;
    std::vector<C> a, b, g;
    DeviceArray da, db, dg, s, ga, gb;
  };
  Rng rng(1);
  Backend& backend = backend_of(name);
  const auto n = static_cast<std::size_t>(B * T * D);
  auto data = std::make_shared<Data>(Data{backend, {T, B * D, D}, {}, {}, {}, {}, {}, {}, {}, {}, {}});
  Data& d = *data;
  for (std::int64_t i = 0; i < D; ++i) d.a.push_back(C(std::polar(rng.uniform(0.9, 0.999), rng.uniform(0.0, 2.0 * std::numbers::pi))));
  for (auto* values : {&d.b, &d.g})
    for (std::size_t i = 0; i < n; ++i) {
      const double re = rng.normal(), im = rng.normal();
      values->emplace_back(static_cast<float>(re), static_cast<float>(im));
    }
  d.da = on(backend, d.a);
  d.db = on(backend, d.b);
  d.dg = on(backend, d.g);
  d.s = DeviceArray(backend, d.db.bytes());
  d.gb = DeviceArray(backend, d.db.bytes());
  d.ga = DeviceArray(backend, d.da.bytes());
  Row row;
  row.name = name;
  row.text =
      "LRU's recurrence, complex64, forward and backward, B" + std::to_string(B) + " T" + std::to_string(T) + " D" + std::to_string(D);
  const double bytes = 8.0 * static_cast<double>(n);
  row.parts.push_back({"forward and backward",
                       [&d] {
                         d.backend.diagonal(DType::c64, d.dims, ScanMethod::steps, d.da.data(), d.db.data(), nullptr, d.s.data(), {});
                         d.backend.diagonal_adjoint(DType::c64, d.dims, ScanMethod::steps, d.da.data(), d.s.data(), nullptr, d.dg.data(),
                                                    nullptr, d.ga.data(), false, d.gb.data(), false, nullptr, nullptr, nullptr, {});
                         d.backend.finish();
                       },
                       5.0 * bytes, 0.0, 24.0 * static_cast<double>(n), "reads b, writes s; back: reads s and dL/ds, writes dL/db"});
  row.error = [&d, n] {
    const auto width = static_cast<std::size_t>(d.dims.width), period = static_cast<std::size_t>(d.dims.period);
    std::vector<Complex> s(n), gb(n), ga(period);
    for (std::size_t i = 0; i < n; ++i) s[i] = (i >= width ? Complex(d.a[i % period]) * s[i - width] : Complex{}) + Complex(d.b[i]);
    for (std::size_t i = n; i-- > 0;) {
      gb[i] = (i + width < n ? std::conj(Complex(d.a[i % period])) * gb[i + width] : Complex{}) + Complex(d.g[i]);
      if (i >= width) ga[i % period] += gb[i] * std::conj(s[i - width]);
    }
    return std::max({difference(from<C>(d.backend, d.s.data(), n), s), difference(from<C>(d.backend, d.gb.data(), n), gb),
                     difference(from<C>(d.backend, d.ga.data(), period), ga)});
  };
  row.save = [&d, B, T, D](NpzWriter& file) {
    const auto parts = [](const std::vector<C>& z) {
      return std::vector<float>(reinterpret_cast<const float*>(z.data()), reinterpret_cast<const float*>(z.data() + z.size()));
    };
    save(file, "a", {D, 2}, parts(d.a));
    save(file, "b", {T, B, D, 2}, parts(d.b));
    save(file, "g", {T, B, D, 2}, parts(d.g));
  };
  row.kept = data;
  return row;
}

/// A graph with leaves in memory, run forward and backward.
struct Computed {
  Backend& backend;
  std::unique_ptr<Graph> graph;
  std::map<std::string, std::pair<Var, std::vector<float>>> inputs;
  std::vector<DeviceArray> arrays;
  Var output;
  std::vector<double> exact;

  Computed(Backend& b) : backend(b), graph(std::make_unique<Graph>(DType::f32)) {}
  Var leaf(const std::string& name, const Shape& shape, std::vector<float> values) {
    const Var var = graph->leaf(LeafKind::variable, shape, DType::f32);
    inputs[name] = {var, std::move(values)};
    return var;
  }
  void ready(bool gradients) {
    graph->allocate(backend, gradients);
    for (const auto& [name, input] : inputs) {
      arrays.push_back(on(backend, input.second));
      graph->bind(input.first, arrays.back().data());
    }
  }
  void zero_states(const MemoryVars& memory) {
    for (const Var state : memory.initial) {
      arrays.emplace_back(backend, static_cast<std::size_t>(count(state.shape())) * sizeof(float));
      backend.zero(arrays.back().data(), arrays.back().bytes());
      graph->bind(state, arrays.back().data());
    }
  }
  void forward() {
    graph->forward();
    backend.finish();
  }
  double error() const { return difference(from<float>(backend, graph->value(output), exact.size()), exact); }
  void save_all(NpzWriter& file) const {
    for (const auto& [name, input] : inputs) save(file, name, input.first.shape(), input.second);
  }
};

// Mamba's selective recurrence with its discretisation and readout.
Row selective_scan(const std::string& name, std::int64_t B, std::int64_t T, std::int64_t D, std::int64_t N) {
  Backend& backend = backend_of(name);
  auto data = std::make_shared<Computed>(backend);
  Computed& d = *data;
  Rng rng(1);
  const Var x = d.leaf("x", {T, B, D}, normal(rng, T * B * D)), delta = d.leaf("delta", {T, B, D}, uniform(rng, T * B * D, 0.001, 0.1)),
            A = d.leaf("A", {D, N}, uniform(rng, D * N, -static_cast<double>(N), -1.0)), b = d.leaf("B", {T, B, N}, normal(rng, T * B * N)),
            c = d.leaf("C", {T, B, N}, normal(rng, T * B * N));
  const SelectiveVars memory = selective(*d.graph, Form::sequential, delta, A, x, b, c, false);
  d.output = memory.output;
  d.ready(false);
  d.zero_states(memory);
  Row row;
  row.name = name;
  row.text = "Mamba's recurrence, forward, float32, B" + std::to_string(B) + " T" + std::to_string(T) + " D" + std::to_string(D) + " N" +
             std::to_string(N);
  const double E = static_cast<double>(B * T * D), n = static_cast<double>(N);
  row.parts.push_back({"forward", [&d] { d.forward(); }, 4.0 * (3.0 * E + 2.0 * static_cast<double>(B * T * N)), 0.0, 40.0 * E * n,
                       "20 multiply-adds a state and step, the exponential included"});
  row.error = [&d, B, T, D, N] {
    const auto &xs = d.inputs["x"].second, &dt = d.inputs["delta"].second, &a = d.inputs["A"].second, &bs = d.inputs["B"].second,
               &cs = d.inputs["C"].second;
    d.exact.assign(xs.size(), 0.0);
    cpu::parallel(B * D, [&](std::int64_t i) {
      std::vector<double> h(static_cast<std::size_t>(N), 0.0);
      for (std::int64_t t = 0; t < T; ++t) {
        const auto at = static_cast<std::size_t>(t * B * D + i);
        const double step = dt[at], drive = step * static_cast<double>(xs[at]);
        for (std::int64_t k = 0; k < N; ++k) {
          const auto of = static_cast<std::size_t>((t * B + i / D) * N + k);
          double& h_now = h[static_cast<std::size_t>(k)];
          h_now = std::exp(step * static_cast<double>(a[static_cast<std::size_t>(i % D * N + k)])) * h_now +
                  drive * static_cast<double>(bs[of]);
          d.exact[at] += h_now * static_cast<double>(cs[of]);
        }
      }
    });
    return d.error();
  };
  row.save = [&d, B, T, D, N](NpzWriter& file) {
    for (const auto& [key, input] : d.inputs)
      save(file, key, key == "A" ? Shape{D, N} : Shape{T, B, key == "B" || key == "C" ? N : D}, input.second);
  };
  row.kept = data;
  return row;
}

// Causal convolution of each channel with a kernel as long as the sequence.
Row convolution(const std::string& name, std::int64_t B, std::int64_t D, std::int64_t T) {
  struct Data {
    Backend& backend;
    std::vector<float> kernel, u;
    DeviceArray dk, du, y, spectrum;
  };
  Backend& backend = backend_of(name);
  Rng rng(1);
  auto data = std::make_shared<Data>(Data{backend, normal(rng, D * T), normal(rng, T * B * D), {}, {}, {}, {}});
  Data& d = *data;
  for (std::int64_t i = 0; i < D * T; ++i)
    d.kernel[static_cast<std::size_t>(i)] *= static_cast<float>(std::exp(-3.0 * static_cast<double>(i % T) / static_cast<double>(T)));
  d.dk = on(backend, d.kernel);
  d.du = on(backend, d.u);
  d.y = DeviceArray(backend, d.du.bytes());
  d.spectrum = DeviceArray(backend, backend.spectrum_size(DType::f32, T, D));
  backend.spectrum(DType::f32, T, D, d.dk.data(), d.spectrum.data());
  Row row;
  row.name = name;
  row.text = "convolution by FFT, float32, B" + std::to_string(B) + " D" + std::to_string(D) + " T" + std::to_string(T);
  const double transforms = static_cast<double>(2 * B * D + (d.spectrum.bytes() ? 0 : D)), length = 2.0 * static_cast<double>(T);
  row.parts.push_back(
      {"forward",
       [&d, B, D, T] {
         d.backend.convolve_with(DType::f32, T, B, D, d.dk.data(), d.spectrum.data(), d.du.data(), d.y.data());
         d.backend.finish();
       },
       4.0 * static_cast<double>(2 * T * B * D) +
           static_cast<double>(d.spectrum.bytes() ? d.spectrum.bytes() : static_cast<std::size_t>(4 * D * T)),
       0.0, 2.5 * length * std::log2(length) * transforms,
       d.spectrum.bytes() ? "real transforms of length 2T, the kernel's kept" : "real transforms of length 2T, the kernel's included"});
  row.error = [&d, B, D, T] {
    const auto ours = from<float>(d.backend, d.y.data(), d.u.size());
    // Some channels and steps, by the sum itself.
    double most = 0.0, size = 0.0;
    for (std::int64_t c = 0; c < B * D; c += std::max<std::int64_t>(1, B * D / 16))
      for (std::int64_t t = 0; t < T; t += std::max<std::int64_t>(1, T / 64)) {
        double exact = 0.0;
        for (std::int64_t j = 0; j <= t; ++j)
          exact += static_cast<double>(d.kernel[static_cast<std::size_t>(c % D * T + j)]) *
                   static_cast<double>(d.u[static_cast<std::size_t>((t - j) * B * D + c)]);
        most = std::max(most, std::abs(static_cast<double>(ours[static_cast<std::size_t>(t * B * D + c)]) - exact));
        size = std::max(size, std::abs(exact));
      }
    return most / size;
  };
  row.save = [&d, B, D, T](NpzWriter& file) {
    save(file, "kernel", {D, T}, d.kernel);
    save(file, "u", {T, B, D}, d.u);
  };
  row.kept = data;
  return row;
}

// Gated linear attention: a decay of its own for each key dimension; the chunkwise form, and the sequential one beside it, each one
// operation.
Row gated_attention(const std::string& name, const std::vector<std::int64_t>& lengths, std::int64_t heads, std::int64_t size) {
  Backend& backend = backend_of(name);
  struct Data {
    std::vector<std::shared_ptr<Computed>> all;
  };
  auto data = std::make_shared<Data>();
  Row row;
  row.name = name;
  row.text = "gated linear attention, chunkwise, float32, " + std::to_string(heads) + " heads of " + std::to_string(size) + ", T " +
             std::to_string(lengths.front()) + " to " + std::to_string(lengths.back());
  for (auto length = lengths.rbegin(); length != lengths.rend(); ++length)
    for (const Form form : {Form::chunkwise, Form::sequential}) {
      const std::int64_t T = *length;
      Rng rng(1);
      auto one = std::make_shared<Computed>(backend);
      const Shape shape{T, 1, heads, size};
      const Var q = one->leaf("q", shape, normal(rng, count(shape), 1.0 / std::sqrt(static_cast<double>(size)))),
                k = one->leaf("k", shape, normal(rng, count(shape))), v = one->leaf("v", shape, normal(rng, count(shape))),
                decay = one->leaf("log_decay", shape, uniform(rng, count(shape), -0.1, 0.0));
      const OuterVars memory = outer(*one->graph, form, {q, k, v, decay}, false);
      one->output = memory.output;
      one->ready(false);
      one->zero_states(memory);
      Part part{(form == Form::chunkwise ? "chunkwise T" : "sequential T") + std::to_string(T), [one] { one->forward(); }};
      const double d = static_cast<double>(size);
      part.flops = static_cast<double>(T * heads) * (form == Form::chunkwise ? 4.0 * d * d + 16.0 * 2.0 * d : 5.0 * d * d);
      part.bytes = 4.0 * 5.0 * static_cast<double>(count(shape));
      part.floor =
          form == Form::chunkwise ? "4 dk dv + C (dk + dv) a token and head, C = 16" : "5 dk dv a token and head: decayed, written, read";
      part.beside = "chunkwise T" + std::to_string(T);
      row.parts.push_back(std::move(part));
      data->all.push_back(std::move(one));
    }
  Computed &d = *data->all.front(), &stepped = *data->all[1];
  row.error = [&d, &stepped, heads, size, T = lengths.back()] {
    d.exact.assign(static_cast<std::size_t>(T * heads * size), 0.0);
    const auto at = [&](const char* key, std::int64_t t, std::int64_t h, std::int64_t i) {
      return static_cast<double>(d.inputs.at(key).second[static_cast<std::size_t>((t * heads + h) * size + i)]);
    };
    cpu::parallel(heads, [&](std::int64_t h) {
      std::vector<double> S(static_cast<std::size_t>(size * size), 0.0);
      for (std::int64_t t = 0; t < T; ++t)
        for (std::int64_t i = 0; i < size; ++i) {
          const double keep = std::exp(at("log_decay", t, h, i)), key = at("k", t, h, i), query = at("q", t, h, i);
          double *memory = S.data() + i * size, *out = d.exact.data() + (t * heads + h) * size;
          const float* values = d.inputs.at("v").second.data() + (t * heads + h) * size;
          for (std::int64_t j = 0; j < size; ++j) {
            memory[j] = keep * memory[j] + key * static_cast<double>(values[j]);
            out[j] += query * memory[j];
          }
        }
    });
    stepped.exact = d.exact;
    stepped.forward();
    return std::max(d.error(), stepped.error());
  };
  row.save = [&d](NpzWriter& file) { d.save_all(file); };
  row.kept = data;
  return row;
}

/// z = sigmoid(a_t + w h + R h), h <- (1 - z) h + z tanh(b_t + v h + S h), w and v diagonal: a GRU without reset; R and S with `dense`
/// alone.
struct GatedCell {
  std::shared_ptr<Computed> computed;
  MemoryVars memory;
  std::int64_t B, T, D;
  bool dense;

  GatedCell(Backend& backend, Form form, std::int64_t batch, std::int64_t steps, std::int64_t width, bool with_matrices)
      : computed(std::make_shared<Computed>(backend)), B(batch), T(steps), D(width), dense(with_matrices) {
    Rng rng(1);
    Computed& c = *computed;
    const Var a = c.leaf("a", {T, B, D}, normal(rng, T * B * D)), b = c.leaf("b", {T, B, D}, normal(rng, T * B * D));
    const Var w = c.leaf("w", {D}, uniform(rng, D, -0.5, 0.5)), v = c.leaf("v", {D}, uniform(rng, D, -0.5, 0.5));
    const double spread = 0.5 / std::sqrt(static_cast<double>(D));
    const Var R = dense ? c.leaf("R", {D, D}, normal(rng, D * D, spread)) : Var{},
              S = dense ? c.leaf("S", {D, D}, normal(rng, D * D, spread)) : Var{};
    const auto cell = [=](Cell&, std::span<const Var> tokens, std::span<const Var> states) {
      const Var h = states[0];
      Var z = tokens[0] + w * h, n = tokens[1] + v * h;
      if (R) {
        z = z + linear(h, R);
        n = n + linear(h, S);
      }
      return std::vector<Var>{h + sigmoid(z) * (tanh(n) - h)};
    };
    memory = step(*c.graph, B, {{"h", {D}}}, {a, b}, cell, {}, form);
    c.output = memory.trajectories[0];
    c.ready(false);
    c.zero_states(memory);
  }
  Part part(const std::string& name) const {
    const double E = static_cast<double>(B * T * D);
    Part made{name,
              [c = computed] { c->forward(); },
              4.0 * 3.0 * E,
              0.0,
              (20.0 + (dense ? 4.0 * static_cast<double>(D) : 0.0)) * E,
              "reads a and b, writes h"};
    if (const NewtonReport* report = memory.memory->newton())
      made.facts = [c = computed, report] {
        return std::map<std::string, double>{{"iterations", report->iterations()},
                                             {"residual", report->residuals.empty() ? 0.0 : report->residuals.back()},
                                             {"converged", report->converged}};
      };
    return made;
  }
  void find_exact() const {
    Computed& c = *computed;
    const auto in = [&](const char* key, std::int64_t i) {
      return static_cast<double>(c.inputs.at(key).second[static_cast<std::size_t>(i)]);
    };
    c.exact.resize(static_cast<std::size_t>(B * T * D));
    std::vector<double> h(static_cast<std::size_t>(B * D), 0.0), next = h;
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t s = 0; s < B; ++s)
        for (std::int64_t i = 0; i < D; ++i) {
          const double own = h[static_cast<std::size_t>(s * D + i)];
          double z = in("a", (t * B + s) * D + i) + in("w", i) * own, n = in("b", (t * B + s) * D + i) + in("v", i) * own;
          for (std::int64_t j = 0; dense && j < D; ++j) {
            z += in("R", i * D + j) * h[static_cast<std::size_t>(s * D + j)];
            n += in("S", i * D + j) * h[static_cast<std::size_t>(s * D + j)];
          }
          next[static_cast<std::size_t>(s * D + i)] = own + (std::tanh(n) - own) / (1.0 + std::exp(-z));
        }
      h = next;
      std::copy(h.begin(), h.end(), c.exact.begin() + static_cast<std::ptrdiff_t>(t * B * D));
    }
  }
};

// Newton's iteration over all steps at once beside the loop over time: a cell with a diagonal Jacobian, and one with a dense one.
Row newton(const std::string& name, std::int64_t B, std::int64_t D, std::int64_t T, std::int64_t dense_D, std::int64_t dense_T) {
  Backend& backend = backend_of(name);
  struct Data {
    std::vector<GatedCell> cells;
  };
  auto data = std::make_shared<Data>();
  Row row;
  row.name = name;
  row.text = "Newton's forms of a gated cell, float32: diagonal B" + std::to_string(B) + " D" + std::to_string(D) + " T" +
             std::to_string(T) + ", dense B1 D" + std::to_string(dense_D) + " T" + std::to_string(dense_T);
  const auto add = [&](const std::string& part, Form form, bool dense) {
    data->cells.emplace_back(backend, form, dense ? 1 : B, dense ? dense_T : T, dense ? dense_D : D, dense);
    row.parts.push_back(data->cells.back().part(part));
  };
  add("diagonal, quasi-newton", Form::quasi_newton, false);
  add("diagonal, sequential", Form::sequential, false);
  add("dense, newton", Form::newton, true);
  add("dense, sequential", Form::sequential, true);
  const GatedCell& first = data->cells.front();
  row.error = [&first] {
    first.find_exact();
    return first.computed->error();
  };
  row.save = [&first](NpzWriter& file) { first.computed->save_all(file); };
  row.kept = data;
  return row;
}

using Make = std::function<Row(const std::string& name, const std::filesystem::path& folder)>;
const std::vector<std::pair<std::string, Make>>& all_rows() {
  static const std::vector<std::pair<std::string, Make>> rows{
      {"C1", [](const auto& name, const auto&) { return scan(name, 1, 16384, 1024); }},
      {"C2", [](const auto& name, const auto&) { return lru(name, 4, 4096, 512); }},
      {"C3", [](const auto& name, const auto&) { return selective_scan(name, 1, 4096, 512, 16); }},
      {"C4", [](const auto& name, const auto&) { return convolution(name, 1, 256, 4096); }},
      {"C5", [](const auto& name, const auto&) { return lstm(name, 1, 1000, {256, 64, 128, 512}, false); }},
      {"C6", [](const auto& name, const auto&) { return lstm(name, 32, 500, {256}, true); }},
      {"C7", [](const auto& name, const auto&) { return gated_attention(name, {256, 512, 1024, 2048, 4096, 8192}, 4, 64); }},
      {"C8", [](const auto& name, const auto&) { return training(name); }},
      {"C11", [](const auto& name, const auto&) { return evaluation(name); }},
      {"C13", reading},
      {"G1", [](const auto& name, const auto&) { return scan(name, 8, 4096, 1536); }},
      {"G2", [](const auto& name, const auto&) { return scan(name, 1, std::int64_t{1} << 20, 64); }},
      {"G3", [](const auto& name, const auto&) { return selective_scan(name, 8, 4096, 2048, 16); }},
      {"G4", [](const auto& name, const auto&) { return gated_attention(name, {8192}, 96, 128); }},
      {"G5", [](const auto& name, const auto&) { return lstm(name, 16, 1024, {256}, false); }},
      {"G6", [](const auto& name, const auto&) { return convolution(name, 16, 768, 4096); }},
      {"G7", [](const auto& name, const auto&) { return newton(name, 8, 256, 4096, 8, 65536); }},
  };
  return rows;
}

}  // namespace

std::vector<std::string> row_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : all_rows()) names.push_back(name);
  return names;
}

Row make_row(const std::string& name, const std::filesystem::path& folder) {
  for (const auto& [known, make] : all_rows())
    if (known == name) return make(name, folder);
  throw Error("There is no row " + name + "; the rows are " + some_of(row_names()) + ".");
}

double floor_of(const Part& part, const Roof& roof) {
  double seconds = 0.0;
  for (const auto& [work, rate] :
       {std::pair(part.bytes, roof.triad_bytes), std::pair(part.cached, roof.cached_bytes), std::pair(part.flops, roof.flops)})
    if (rate > 0.0) seconds = std::max(seconds, work / rate);
  return seconds;
}

}  // namespace reclab::bench
