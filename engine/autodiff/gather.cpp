// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "array/demand.h"
#include "autodiff/fresh.h"
#include "autodiff/operands.h"
#include "autodiff/ops.h"

namespace reclab {
namespace {

/// Copies a box out of its input, or, with `all`, its input in another order.
class GatherOperation final : public Operation, public OverwritesGradient {
 public:
  GatherOperation(DType type, const Strided& box, bool all) : type_(type), box_(box), all_(all) {}
  void forward(const ForwardCall& c) override { c.backend.gather(type_, box_, c.in[0], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.scatter(type_, box_, c.grad_out[0], c.grad_in[0], true);
  }
  bool writes(std::size_t) const override { return all_; }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    if (c.grad_in[0]) c.backend.scatter(type_, box_, c.grad_out[0], c.grad_in[0], !fresh[0]);
  }
  void tangent(const TangentCall& c) override { c.backend.gather(type_, box_, c.tangent_in[0], c.tangent_out[0], false); }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(box_.elements) * real_bytes(type_)}; }

 private:
  DType type_;
  Strided box_;
  bool all_;
};

/// Copies each input into a box of the output.
class Concat final : public Operation {
 public:
  Concat(DType type, std::vector<Strided> boxes) : type_(type), boxes_(std::move(boxes)) {}
  void forward(const ForwardCall& c) override {
    for (std::size_t i = 0; i < boxes_.size(); ++i) c.backend.scatter(type_, boxes_[i], c.in[i], c.out[0], false);
  }
  void backward(const BackwardCall& c) override {
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      if (c.grad_in[i]) c.backend.gather(type_, boxes_[i], c.grad_out[0], c.grad_in[i], true);
  }
  void tangent(const TangentCall& c) override {
    std::int64_t all = 0;
    for (const Strided& box : boxes_) all += box.elements;
    c.backend.zero(c.tangent_out[0], bytes(type_, all));
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      if (c.tangent_in[i]) c.backend.scatter(type_, boxes_[i], c.tangent_in[i], c.tangent_out[0], false);
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    double n = 0.0;
    for (const auto& box : boxes_) n += static_cast<double>(box.elements);
    return {0.0, 2.0 * n * real_bytes(type_)};
  }

 private:
  DType type_;
  std::vector<Strided> boxes_;
};

/// The box of `length` positions from `from` on along an axis of an array: three dimensions are enough.
Strided box_along(const Shape& shape, int axis, std::int64_t from, std::int64_t length) {
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, static_cast<int>(shape.size()));
  Strided box;
  box.rank = 2;
  box.size[0] = outer;
  box.stride[0] = shape[static_cast<std::size_t>(axis)] * inner;
  box.size[1] = length * inner;
  box.stride[1] = 1;
  box.offset = from * inner;
  box.elements = outer * length * inner;
  return box;
}

}  // namespace

Var reshape(Var x, Shape shape) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (auto& d : shape) {
    if (d < 0)
      open = &d;
    else
      known *= d;
  }
  if (open) *open = count(x.shape()) / known;
  RECLAB_DEMAND(count(shape) == count(x.shape()));
  return x.graph->alias(x, std::move(shape));
}

Var slice(Var x, int axis, std::int64_t from, std::int64_t to) {
  axis = axis_of(x, axis);
  Shape shape = x.shape();
  const auto a = static_cast<std::size_t>(axis);
  RECLAB_DEMAND(0 <= from && from <= to && to <= shape[a]);
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, static_cast<int>(shape.size()));
  const Strided box = box_along(shape, axis, from, to - from);
  shape[a] = to - from;
  if (outer == 1) return x.graph->alias(x, std::move(shape), from * inner);
  return x.graph->apply(std::make_unique<GatherOperation>(x.dtype(), box, false), {x}, {{shape, x.dtype()}})[0];
}

Var reversed(Var x) {
  const std::int64_t rows = x.dim(0), row = product(x.shape(), 1, static_cast<int>(x.shape().size()));
  Strided box;
  box.rank = 2;
  box.size[0] = rows;
  box.stride[0] = -row;
  box.size[1] = row;
  box.stride[1] = 1;
  box.offset = std::max<std::int64_t>(rows - 1, 0) * row;
  box.elements = rows * row;
  return x.graph->apply(std::make_unique<GatherOperation>(x.dtype(), box, true), {x}, {{x.shape(), x.dtype()}})[0];
}

Var last(Var x) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  const std::int64_t offset = count(x.shape()) - count(shape);
  return x.graph->alias(x, std::move(shape), offset);
}

std::vector<Var> split(Var x, int axis, std::int64_t parts) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis_of(x, axis))];
  RECLAB_DEMAND(size % parts == 0);
  std::vector<Var> made;
  for (std::int64_t i = 0; i < parts; ++i) made.push_back(slice(x, axis, i * (size / parts), (i + 1) * (size / parts)));
  return made;
}

Var concat(std::span<const Var> parts, int axis) {
  RECLAB_DEMAND(!parts.empty());
  Var any = parts[0];
  Graph* graph = any.graph;
  for (const Var& p : parts)
    if (p.graph != graph) graph = &innermost(any, p);
  axis = axis_of(any, axis);
  Shape shape = any.shape();
  std::int64_t total = 0;
  for (const Var& p : parts) total += p.shape()[static_cast<std::size_t>(axis)];
  shape[static_cast<std::size_t>(axis)] = total;
  std::vector<Strided> boxes;
  std::int64_t at = 0;
  for (const Var& p : parts) {
    const std::int64_t length = p.shape()[static_cast<std::size_t>(axis)];
    boxes.push_back(box_along(shape, axis, at, length));
    at += length;
  }
  return graph->apply(std::make_unique<Concat>(any.dtype(), std::move(boxes)), std::vector<Var>(parts.begin(), parts.end()),
                      {{shape, any.dtype()}})[0];
}

Var permute(Var x, std::span<const int> axes) {
  const Shape& from = x.shape();
  const int rank = static_cast<int>(from.size());
  RECLAB_DEMAND(rank <= 6 && static_cast<int>(axes.size()) == rank);
  Shape shape;
  Strided box;
  box.rank = rank;
  for (int d = 0; d < rank; ++d) {
    const int axis = axes[static_cast<std::size_t>(d)];
    shape.push_back(from[static_cast<std::size_t>(axis)]);
    box.size[d] = shape.back();
    box.stride[d] = product(from, axis + 1, rank);
  }
  box.elements = count(shape);
  return x.graph->apply(std::make_unique<GatherOperation>(x.dtype(), box, true), {x}, {{shape, x.dtype()}})[0];
}

Var transpose(Var x) {
  Shape shape = x.shape();
  const int rank = static_cast<int>(shape.size());
  RECLAB_DEMAND(rank >= 2);
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  Strided box;
  box.rank = 3;
  box.size[0] = product(shape, 0, rank - 2);
  box.stride[0] = rows * columns;
  box.size[1] = columns;
  box.stride[1] = 1;
  box.size[2] = rows;
  box.stride[2] = columns;
  box.elements = count(shape);
  std::swap(shape[static_cast<std::size_t>(rank - 1)], shape[static_cast<std::size_t>(rank - 2)]);
  return x.graph->apply(std::make_unique<GatherOperation>(x.dtype(), box, true), {x}, {{shape, x.dtype()}})[0];
}

}  // namespace reclab
