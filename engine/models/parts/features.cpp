// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/features.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/demand.h"
#include "array/error.h"
#include "array/stop.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::parts {

Var largest(Var x) {
  for (std::int64_t n = x.dim(-1); n > 1; n = x.dim(-1)) x = maximum(slice(x, -1, 0, (n + 1) / 2), slice(x, -1, n / 2, n));
  return x;
}
Var squared_norm(Var x) { return mean_keep(square(x), -1) * static_cast<double>(x.dim(-1)); }
Var length(Var x) { return sqrt(at_least(squared_norm(x), 1e-30)); }

Var entrywise(const std::string& name, Var x) {
  if (name == "relu") return relu(x);
  if (name == "requ") return square(relu(x));
  if (name == "gelu") return gelu(x);
  if (name == "exp") return exp(x);
  if (name == "elu+1") return elu(x) + 1.0;
  if (name == "silu") return silu(x);
  if (name == "sigmoid") return sigmoid(x);
  RECLAB_DEMAND(name == "identity");
  return x;
}

Var dpfp(Var z, std::int64_t nu) {
  const std::int64_t n = 2 * z.dim(-1);
  const Var both[] = {relu(z), relu(-z)};
  const Var r = concat(both, -1);
  std::vector<Var> products;
  for (std::int64_t j = 1; j <= nu; ++j) {
    const std::int64_t by = j % n;
    const Var parts_of[] = {slice(r, -1, n - by, n), slice(r, -1, 0, n - by)};
    products.push_back(r * (by ? concat(parts_of, -1) : r));
  }
  return concat(products, -1);
}

Var softmax(Var x, double eps) {
  const auto n = x.dim(-1);
  Var most = eps > 0.0 ? x : detach(x);  // without eps it cancels
  for (std::int64_t left = n; left > 1;) {
    const std::int64_t half = (left + 1) / 2;  // of an odd number the middle one counts twice
    most = maximum(slice(most, -1, 0, half), slice(most, -1, left - half, left));
    left = half;
  }
  const Var weights = exp(x - most), sum = mean_keep(weights, -1) * static_cast<double>(n);
  return weights / (eps > 0.0 ? sum + eps : sum);
}

Var softmax_exponents(Var x, Var W) { return linear(x, W) - squared_norm(x) * 0.5; }

Var waves(Var x, Var W, bool sine_first) {
  const Var angle = linear(x, W), c = cos(angle), s = sin(angle);
  const Var both[] = {sine_first ? s : c, sine_first ? c : s};
  return concat(both, -1);
}

Init orthogonal_rows(RowLength length) {
  return [length](InitContext& c) {
    RECLAB_DEMAND(c.shape.size() == 2);
    const auto rows = static_cast<std::size_t>(c.shape[0]), columns = static_cast<std::size_t>(c.shape[1]);
    const Init block = init::orthogonal(1.0);
    const Shape square{c.shape[1], c.shape[1]};
    std::vector<double> made(columns * columns);
    for (std::size_t from = 0; from < rows; from += columns) {
      InitContext one{c.rng, square, made, c.other};
      block(one);
      for (std::size_t r = from; r < std::min(rows, from + columns); ++r) {
        double size = std::sqrt(static_cast<double>(columns));
        if (length == RowLength::gaussian) {
          double sum = 0.0;
          for (std::size_t j = 0; j < columns; ++j) {
            const double x = c.rng.normal();
            sum += x * x;
          }
          size = std::sqrt(sum);
        }
        for (std::size_t j = 0; j < columns; ++j) c.values[r * columns + j] = size * made[(r - from) * columns + j];
      }
      check_stop();
    }
  };
}

LinearRead linear_read(Layer& l, Var q, Var k, Var v, const std::string& memory_text, const std::string& sum_text, Var log_decay,
                       Var shown) {
  const std::int64_t heads = k.dim(2), key = k.dim(3), value = v.dim(3);
  const Var ones = affine(slice(v, -1, 0, 1), 0.0, 1.0);
  const Var read = outer(l, {"S", {heads, key, value}, memory_text}, {.q = q, .k = k, .v = v, .key_decay = log_decay, .shown = shown});
  return {read, outer(l, {"z", {heads, key}, sum_text}, {.q = q, .k = k, .v = ones, .key_decay = log_decay, .shown = shown})};
}

void add_lrpe_rows(std::vector<HyperSpec>& table) {
  table.push_back(hyper_choice("rotation", "complex", {"complex", "pairs", "half"},
                               "Λ: each entry turned in the complex plane, so that there are two numbers of it; pairs of entries turned in "
                               "their plane (rope); or pairs of the first half alone (mixed)."));
  table.push_back(
      hyper_choice("theta", "learned", {"learned", "a", "b", "c"},
                   "The angles a step: a parameter that starts as a; 10000^(−2j/e); evenly up to π/(2M); or π/(2M) divided by 1, 2, 3, …"));
  table.push_back(
      hyper_integer("horizon", "M", 512, 1, 1000000, "M of the angles b and c, in the code the length of the sequence at hand.", "steps"));
  table.push_back(hyper_choice("basis", "identity", {"identity", "dct", "householder", "householder-learned", "fourier", "odd-even"},
                               "P: what queries and keys are multiplied by before they turn."));
}

void check_lrpe(const Hyper& h, std::int64_t head, const std::string& model) {
  const std::string &rotation = h.choice("rotation"), &theta = h.choice("theta"), &basis = h.choice("basis");
  const auto refuse = [&](const char* key, const std::string& range, const std::string& why) {
    throw Error(model + ": " + key + " = " + h.text(key) + " " + why + ": choose " + range + ".",
                {.model = model, .parameter = key, .value = h.text(key), .range = range});
  };
  if (basis == "fourier" && (rotation != "complex" || theta != "a"))
    refuse("basis", "rotation = complex with theta = a, or another basis", "makes complex numbers, which have the angles a");
  if (rotation == "half" && theta == "learned") refuse("theta", "a, b or c", "is not made for rotation = half");
  if (rotation == "pairs" && head < 2) refuse("rotation", "complex", "needs heads of 2 entries or more");
  if (rotation == "half" && head < 3) refuse("rotation", "complex", "needs heads of 3 entries or more");
}

namespace {

/// The orthonormal cosine transform of the second kind, [n, n].
std::vector<double> cosine_transform(std::int64_t n) {
  std::vector<double> C;
  for (std::int64_t k = 0; k < n; ++k)
    for (std::int64_t j = 0; j < n; ++j)
      C.push_back(std::sqrt((k ? 2.0 : 1.0) / static_cast<double>(n)) *
                  std::cos(std::numbers::pi * (static_cast<double>(j) + 0.5) * static_cast<double>(k) / static_cast<double>(n)));
  return C;
}
/// The first n/2 + 1 rows of the unitary Fourier transform: real part, then imaginary part.
std::vector<double> fourier_transform(std::int64_t n, bool imaginary) {
  std::vector<double> F;
  for (std::int64_t k = 0; k <= n / 2; ++k)
    for (std::int64_t j = 0; j < n; ++j) {
      const double angle = 2.0 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
      F.push_back((imaginary ? -std::sin(angle) : std::cos(angle)) / std::sqrt(static_cast<double>(n)));
    }
  return F;
}
/// Entry 2i is x_i, entry 2i + 1 the ith of the second half.
std::vector<double> interleaving(std::int64_t n) {
  std::vector<double> M(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i < n; ++i) M[static_cast<std::size_t>(i * n + (i % 2 ? (i - 1) / 2 + n - n / 2 : i / 2))] = 1.0;
  return M;
}

}  // namespace

Lrpe::Lrpe(Layer& l, const std::string& own, std::int64_t head) : l_(l), head_(head) {
  const Hyper& h = l.hyper;
  const std::string &rotation = h.choice("rotation"), &type = h.choice("theta"), &basis = h.choice("basis");
  std::int64_t entries = head;
  if (basis == "dct") basis_ = l.graph().constant({head, head}, cosine_transform(head));
  if (basis == "odd-even") basis_ = l.graph().constant({head, head}, interleaving(head));
  if (basis == "fourier") {
    entries = head / 2 + 1;
    basis_ = l.graph().constant({entries, head}, fourier_transform(head, false));
    imaginary_ = l.graph().constant({entries, head}, fourier_transform(head, true));
  }
  if (basis.starts_with("householder")) {
    const bool learned = basis == "householder-learned";
    const Init start = [learned](InitContext& c) {
      init::normal(1.0)(c);
      double sum = 0.0;
      for (const double value : c.values) sum += value * value;
      if (!learned)
        for (double& value : c.values) value /= std::sqrt(sum);
    };
    const Var v = l.parameter(own + "urpe.v", {head}, start,
                              learned ? "v of Householder's reflection, brought to length 1 where it is used; starts N(0, 1)."
                                      : "v of Householder's reflection, taken as it is; starts as a random unit vector.");
    reflected_ = learned ? v / (length(v) + 1e-6) : v;
  }
  if (rotation != "complex") pairs_ = rotation == "pairs" ? head / 2 : (head / 2 + 1) / 2;
  const std::int64_t n = pairs_ ? pairs_ : entries;
  // e of the code: the entries that turn in pairs, or all of them.
  const double e = static_cast<double>(pairs_ ? (type == "learned" ? head : 2 * pairs_) : entries);
  const auto angle = [=, M = static_cast<double>(h.integer("horizon"))](std::int64_t j) {
    const double step = std::numbers::pi / (2.0 * M);
    if (type == "b") return step * static_cast<double>(j + 1) / static_cast<double>(n);
    if (type == "c") return step / static_cast<double>(j + 1);
    return std::pow(10000.0, -2.0 * static_cast<double>(j) / e);
  };
  if (type == "learned") {
    theta_ = reshape(l.parameter(own + "urpe.theta", {1, 1, n}, init::each([=](Rng&, std::int64_t j) { return angle(j); }),
                                 "θ, by how much each entry or pair turns a step; starts at 10000^(−2j/e)."),
                     {n});
  } else {
    std::vector<double> angles;
    for (std::int64_t j = 0; j < n; ++j) angles.push_back(angle(j));
    theta_ = l.graph().constant({n}, angles);
  }
}

Var Lrpe::transformed(Var x) const {
  if (basis_) return linear(x, basis_);
  return reflected_ ? x - mean_keep(x * reflected_, -1) * reflected_ * (2.0 * static_cast<double>(head_)) : x;
}

Phasors Lrpe::phasors(Var x) const {
  if (imaginary_) return {linear(x, basis_), linear(x, imaginary_), theta_};
  x = transformed(x);
  if (!pairs_) return {x, affine(x, 0.0, 0.0), theta_};
  // The first of each pair and the second, then the entries that are not rotated.
  Shape paired = x.shape(), one = x.shape();
  paired.back() = pairs_;
  paired.push_back(2);
  one.back() = pairs_;
  const Var all = reshape(slice(x, -1, 0, 2 * pairs_), paired), rest = slice(x, -1, 2 * pairs_, head_);
  const Var first = reshape(slice(all, -1, 0, 1), one), second = reshape(slice(all, -1, 1, 2), one);
  if (2 * pairs_ == head_) return {first, second, theta_};
  const Var re[] = {first, rest}, im[] = {second, affine(rest, 0.0, 0.0)},
            theta[] = {theta_,
                       l_.graph().constant({head_ - 2 * pairs_}, std::vector<double>(static_cast<std::size_t>(head_ - 2 * pairs_), 0.0))};
  return {concat(re, -1), concat(im, -1), concat(theta, -1)};
}

Var Lrpe::at_position(Var x) const {
  const Var angles = reshape(l_.position(), {l_.steps(), l_.batch(), 1, 1}) * theta_;
  if (pairs_) {
    x = transformed(x);
    const Var turned = rotated(slice(x, -1, 0, 2 * pairs_), angles, true);
    if (2 * pairs_ == head_) return turned;
    const Var both[] = {turned, slice(x, -1, 2 * pairs_, head_)};
    return concat(both, -1);
  }
  const Phasors z = phasors(x);
  const Var c = cos(angles), s = sin(angles);
  const Var both[] = {imaginary_ ? z.re * c - z.im * s : z.re * c, imaginary_ ? z.re * s + z.im * c : z.re * s};
  return concat(both, -1);
}

Var at_least(Var x, double least) { return maximum(x, affine(x, 0.0, least)); }

}  // namespace reclab::parts
