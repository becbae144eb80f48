// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/profile/profile_stacks.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace ullage::read {
namespace {

constexpr std::size_t kDeepest = 128;

class StackMaker final {
 public:
  StackMaker(const ProfileEvents& events, trace::Stacks& stacks)
      : events_(events), stacks_(stacks), frame_by_text_(events.texts.size()) {}

  // `open`: outermost first.
  OpenSpans::At make(const std::vector<std::uint32_t>& open, Nanoseconds at) {
    OpenSpans::At result;
    ops_.clear();
    python_.clear();
    std::uint32_t call_stack = 0;
    const std::size_t looked_at = std::min(open.size(), kDeepest);
    for (std::size_t i = 0; i < looked_at; ++i) {
      const std::uint32_t index = open[open.size() - 1 - i];
      const Span& span = events_.spans[index];
      if (span.end < at) continue;  // overlapping spans need not be nested: this outer one has ended
      if (span.kind == Span::Kind::Op && result.op == kNoSpan) result.op = index;
      if (span.kind == Span::Kind::Python) {
        if (const auto id = frame(span)) python_.push_back(*id);
      } else if (const auto id = frame(span)) {
        ops_.push_back(*id);
      }
      if (call_stack == 0) call_stack = span.call_stack;
    }
    ops_.insert(ops_.end(), python_.begin(), python_.end());
    if (python_.empty() && call_stack != 0) {
      const auto& more = frames_of(call_stack);
      ops_.insert(ops_.end(), more.begin(), more.end());
    }
    result.stack = stacks_.add(ops_);
    return result;
  }

 private:
  // None if the span's name says nothing, or would give each step a different stack.
  std::optional<trace::FrameId> frame(const Span& span) {
    FrameOfText& known = frame_by_text_[span.name];
    if (!known.looked_up) {
      known.looked_up = true;
      const std::string& text = events_.texts[span.name];
      if (worth_a_frame(text, span.kind)) known.id = stacks_.add(frame_of(text));
    }
    return known.id;
  }

  static bool worth_a_frame(std::string_view text, Span::Kind kind) {
    if (text.empty() || text.starts_with("<built-in")) return false;
    if (kind != Span::Kind::Annotation || text.starts_with("Optimizer.") || text.starts_with("enumerate(")) return true;
    return text.find_first_of("0123456789") == std::string_view::npos;  // "ProfilerStep#7", "epoch 3"
  }

  const std::vector<trace::FrameId>& frames_of(std::uint32_t call_stack) {
    const auto [found, added] = call_stacks_.try_emplace(call_stack);
    std::string_view rest = added ? std::string_view(events_.texts[call_stack]) : std::string_view();
    while (!rest.empty() && found->second.size() < kDeepest) {
      const std::size_t end = std::min(rest.find(';'), rest.size());
      if (end > 0) found->second.push_back(stacks_.add(frame_of(rest.substr(0, end))));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    return found->second;
  }

  struct FrameOfText {
    bool looked_up = false;
    std::optional<trace::FrameId> id;
  };
  const ProfileEvents& events_;
  trace::Stacks& stacks_;
  std::vector<FrameOfText> frame_by_text_;
  std::unordered_map<std::uint32_t, std::vector<trace::FrameId>> call_stacks_;
  std::vector<trace::FrameId> ops_, python_;  // of the current event
};

// Returns the spans sorted by thread and begin. If spans begin together, the longer one comes first, as the outer one.
std::vector<std::uint32_t> spans_in_order(const std::vector<Span>& spans) {
  std::vector<std::uint32_t> order(spans.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const Span &x = spans[a], &y = spans[b];
    if (x.thread != y.thread) return x.thread < y.thread;
    return x.begin != y.begin ? x.begin < y.begin : x.end > y.end;
  });
  return order;
}

std::vector<std::uint32_t> memory_in_order(const std::vector<MemoryEvent>& memory) {
  std::vector<std::uint32_t> order(memory.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    const MemoryEvent &x = memory[a], &y = memory[b];
    return x.thread != y.thread ? x.thread < y.thread : x.at < y.at;
  });
  return order;
}

// The open spans of one thread, outermost first.
class OpenOnThread final {
 public:
  OpenOnThread(const std::vector<Span>& spans, std::vector<std::uint32_t>& parent) : spans_(spans), parent_(parent) {}

  void clear() { open_.clear(); }

  void push(std::uint32_t index) {
    const Span& span = spans_[index];
    end_before(span.begin);
    // A span that ends when this one begins is its neighbour, not its parent.
    while (!open_.empty() && spans_[open_.back()].end == span.begin && span.end > span.begin) open_.pop_back();
    if (!open_.empty())
      parent_[index] = spans_[open_.back()].kind == Span::Kind::Op ? open_.back() : parent_[open_.back()];
    open_.push_back(index);
  }

  const std::vector<std::uint32_t>& at(Nanoseconds time) {
    end_before(time);
    return open_;
  }

 private:
  void end_before(Nanoseconds time) {
    while (!open_.empty() && spans_[open_.back()].end < time) open_.pop_back();
  }

  const std::vector<Span>& spans_;
  std::vector<std::uint32_t>& parent_;
  std::vector<std::uint32_t> open_;
};

}  // namespace

trace::Frame frame_of(std::string_view text) {
  trace::Frame frame;
  const std::size_t close = text.find("): ");
  const std::size_t open = close == std::string_view::npos ? close : text.rfind('(', close);
  if (open != std::string_view::npos && open > 0) {
    const std::string_view line = text.substr(open + 1, close - open - 1);
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), frame.line);
    if (error == std::errc() && end == line.data() + line.size()) {
      frame.file = text.substr(0, open);
      frame.function = text.substr(close + 3);
      return frame;
    }
    frame.line = 0;
  }
  frame.file = "??";  // as PyTorch's own recordings name frames outside Python
  frame.function = text;
  return frame;
}

OpenSpans find_open_spans(const ProfileEvents& events, trace::Stacks& stacks) {
  OpenSpans result;
  result.at.resize(events.memory.size());
  result.parent.assign(events.spans.size(), kNoSpan);
  const std::vector<std::uint32_t> spans = spans_in_order(events.spans);
  StackMaker maker(events, stacks);
  OpenOnThread open(events.spans, result.parent);
  std::size_t next = 0;
  std::uint64_t thread = 0;
  for (const std::uint32_t index : memory_in_order(events.memory)) {
    const MemoryEvent& memory = events.memory[index];
    if (memory.thread != thread) open.clear();
    thread = memory.thread;
    for (; next < spans.size(); ++next) {
      const Span& span = events.spans[spans[next]];
      if (span.thread > thread || (span.thread == thread && span.begin > memory.at)) break;
      if (span.thread == thread) open.push(spans[next]);
    }
    result.at[index] = maker.make(open.at(memory.at), memory.at);
  }
  return result;
}

}  // namespace ullage::read
