// SPDX-License-Identifier: GPL-3.0-or-later
#include "measures/expression.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <numbers>
#include <utility>

#include "array/error.h"
#include "measures/measure.h"

namespace reclab {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const Measuring& measuring) : text_(text), measuring_(measuring) {}
  double all() {
    const double value = sum(0);
    skip();
    if (at_ != text_.size()) fail("has \"" + std::string(text_.substr(at_)) + "\" too much");
    return value;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const { throw Error("\"" + std::string(text_) + "\" " + why + ".", {}); }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  double sum(int depth) {
    if (depth > 50) fail("has too many brackets in each other");
    double value = product(depth);
    while (true) {
      if (take('+'))
        value += product(depth);
      else if (take('-'))
        value -= product(depth);
      else
        return value;
    }
  }
  double product(int depth) {
    double value = power(depth);
    while (true) {
      if (take('*'))
        value *= power(depth);
      else if (take('/'))
        value /= power(depth);
      else
        return value;
    }
  }
  double power(int depth) {
    if (depth > 50) fail("has too many signs in a row");
    if (take('-')) return -power(depth + 1);
    const double base = one(depth);
    return take('^') ? std::pow(base, power(depth + 1)) : base;
  }
  double one(int depth) {
    skip();
    if (take('(')) {
      const double value = sum(depth + 1);
      if (!take(')')) fail("lacks a )");
      return value;
    }
    if (take('[')) {
      const std::size_t end = text_.find(']', at_);
      if (end == std::string_view::npos) fail("lacks a ]");
      const std::string name(trimmed(text_.substr(at_, end - at_)));
      at_ = end + 1;
      return measuring_(name);
    }
    std::size_t end = at_;
    while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '.')) ++end;
    if (end == at_) fail("lacks a value");
    if (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '.') {
      double value = 0.0;
      const auto read = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (read.ec != std::errc()) fail("has a number that is none");
      at_ = static_cast<std::size_t>(read.ptr - text_.data());
      return value;
    }
    const std::string_view name = text_.substr(at_, end - at_);
    if (name == "pi") {
      at_ = end;
      return std::numbers::pi;
    }
    static const std::vector<std::pair<std::string_view, double (*)(double)>> functions{
        {"log10", [](double x) { return std::log10(x); }}, {"log2", [](double x) { return std::log2(x); }},
        {"ln", [](double x) { return std::log(x); }},      {"exp", [](double x) { return std::exp(x); }},
        {"sqrt", [](double x) { return std::sqrt(x); }},   {"abs", [](double x) { return std::abs(x); }},
        {"cos", [](double x) { return std::cos(x); }},     {"sin", [](double x) { return std::sin(x); }},
        {"round", [](double x) { return std::round(x); }}};
    const auto found = std::ranges::find(functions, name, [](const auto& each) { return each.first; });
    if (found == functions.end()) fail("has \"" + std::string(name) + "\", which is no number and no function");
    at_ = end;
    if (!take('(')) fail("lacks a ( behind " + std::string(name));
    const double value = sum(depth + 1);
    if (!take(')')) fail("lacks a )");
    return found->second(value);
  }

  std::string_view text_;
  const Measuring& measuring_;
  std::size_t at_ = 0;
};

}  // namespace

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return {};
  return value;
}

double evaluate(std::string_view expression, const Measuring& measuring) {
  expression = trimmed(expression);
  const std::string first(expression.substr(0, expression.find(' ')));
  return is_measure(first) ? measuring(std::string(expression)) : Parser(expression, measuring).all();
}

bool holds(std::string_view condition, const Measuring& measuring) {
  bool all = true;
  while (!condition.empty()) {
    const std::size_t end = condition.find(" and ");
    const std::string_view part = condition.substr(0, end);
    condition = end == std::string_view::npos ? std::string_view() : condition.substr(end + 5);
    const std::size_t at = part.find_first_of("<>");
    if (at == std::string_view::npos || at + 1 == part.size())
      throw Error("\"" + std::string(part) + "\" compares nothing; write <, <=, > or >= between two values.", {});
    const bool equal = part[at + 1] == '=';
    const double left = evaluate(part.substr(0, at), measuring), right = evaluate(part.substr(at + (equal ? 2 : 1)), measuring);
    all = all && (part[at] == '<' ? (equal ? left <= right : left < right) : (equal ? left >= right : left > right));
  }
  return all;
}

}  // namespace reclab
