// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/composed.h"

#include <algorithm>
#include <utility>

#include "array/error.h"

namespace reclab {
namespace {

constexpr std::int64_t block = 64;  // steps

}  // namespace

Composed::Steps& Composed::over(Backend& backend, std::int64_t steps) {
  const auto [at, fresh] = built_.try_emplace(steps, type_);
  Steps& made = at->second;
  if (!fresh) return made;
  for (const Input& input : inputs_) {
    Shape shape = input.shape;
    if (input.role == Role::sequence) shape.insert(shape.begin(), steps);
    made.in.push_back(input.role == Role::state ? Var{} : made.graph.leaf(LeafKind::variable, std::move(shape), type_));
  }
  made.made = build_(made.graph, made.in);
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    if (inputs_[i].role == Role::state) made.in[i] = made.made.state;
  made.graph.allocate(backend, false);
  return made;
}

void Composed::tangent(const TangentCall& c, std::int64_t steps, const Tangents& to) {
  Backend& b = c.backend;
  const auto bytes = [&](const Shape& shape) { return static_cast<std::size_t>(count(shape)) * bytes_of(type_); };
  const auto row = [](auto* base, std::size_t offset) {
    using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(base)>>, const char, char>;
    return static_cast<Byte*>(base) + offset;
  };
  const auto put = [&](const void* tangent, void* where, std::size_t size) {
    if (tangent)
      b.copy(where, tangent, size);
    else
      b.zero(where, size);
  };
  for (std::int64_t first = 0; first < steps; first += block) {
    if (c.stop.stop_requested()) throw Cancelled();
    const std::int64_t few = std::min(block, steps - first);
    const auto from = static_cast<std::size_t>(first);
    Steps& now = over(b, few);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const void *value = c.in[i], *moved = c.tangent_in[i];
      if (inputs_[i].role == Role::sequence) {
        const std::size_t offset = from * bytes(inputs_[i].shape);
        value = row(value, offset);
        if (moved) moved = row(moved, offset);
      } else if (inputs_[i].role == Role::state && first) {
        value = state_[0].data();
        moved = moved_[0].data();
      }
      now.graph.bind(now.in[i], value);
      now.graph.bind_tangent(now.in[i], moved);
    }
    now.graph.forward(c.stop);
    now.graph.push_tangents(c.stop);
    const Made& made = now.made;
    const std::size_t read = bytes(made.output.shape()) / static_cast<std::size_t>(few), state = bytes(made.state.shape()),
                      end = static_cast<std::size_t>(few - 1) * state;
    const void* trajectory = now.graph.tangent(made.trajectory);
    const void* after = trajectory ? row(trajectory, end) : nullptr;
    if (to.output) put(now.graph.tangent(made.output), row(to.output, from * read), static_cast<std::size_t>(few) * read);
    if (to.states) put(trajectory, row(to.states, from * state), static_cast<std::size_t>(few) * state);
    if (first + few == steps) {
      if (to.last) put(after, to.last, state);
      break;
    }
    b.copy(state_[1].resize(b, type_, count(made.state.shape())), row(now.graph.value(made.trajectory), end), state);
    put(after, moved_[1].resize(b, type_, count(made.state.shape())), state);
    std::swap(state_[0], state_[1]);
    std::swap(moved_[0], moved_[1]);
  }
}

}  // namespace reclab
