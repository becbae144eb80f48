// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/log/log_traceback.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace ullage::read {
namespace {

constexpr std::size_t kMostLines = 2000;  // of a traceback: deep recursion prints 1000 frames
constexpr std::size_t kMostOdd = 12;      // lines between two frames, the line of code included
constexpr std::size_t kMostBefore = 20;
constexpr std::size_t kLongestKept = 400;  // bytes kept of a line
constexpr std::size_t kMostAfter = 10;
constexpr std::size_t kLongestString = std::size_t{32} * 1024;  // bytes of a traceback in a string
constexpr std::string_view kErrorName = "Error";                // in the name of the exception, "OutOfMemoryError: "
constexpr std::string_view kBegin = "Traceback (most recent call last)";

std::string_view without_indent(std::string_view line) {
  const std::size_t first = line.find_first_not_of(" \t");
  return first == line.npos ? std::string_view() : line.substr(first);
}

// `File "train.py", line 12, in main`
std::optional<trace::Frame> frame_in(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  if (!line.starts_with(kFile)) return std::nullopt;
  const std::size_t after_name = line.find(kLine, kFile.size());
  if (after_name == line.npos) return std::nullopt;
  trace::Frame frame;
  frame.file = clean(line.substr(kFile.size(), after_name - kFile.size()), kLongestKept);
  const std::string_view rest = line.substr(after_name + kLine.size());
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), frame.line);
  if (error != std::errc()) return std::nullopt;
  const std::string_view tail = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (tail.starts_with(kIn)) frame.function = clean(tail.substr(kIn.size()), kLongestKept);
  return frame;
}

// The package rich draws a box around tracebacks: "| /home/me/train.py:12 in main   |" with bars of U+2502.
constexpr std::string_view kBar = "\xe2\x94\x82";
constexpr std::string_view kCorner = "\xe2\x95\xad";
constexpr std::string_view kArrow = "\xe2\x9d\xb1";  // before the line of code that failed

std::optional<trace::Frame> boxed_frame_of(std::string_view line) {
  const std::size_t in = line.find(" in ");
  if (in == line.npos) return std::nullopt;
  const std::size_t colon = line.rfind(':', in);
  if (colon == line.npos || colon == 0 || line[0] == ' ') return std::nullopt;
  trace::Frame frame;
  const auto [end, error] = std::from_chars(line.data() + colon + 1, line.data() + in, frame.line);
  if (error != std::errc() || end != line.data() + in) return std::nullopt;
  frame.file = clean(line.substr(0, colon), kLongestKept);
  frame.function = clean(line.substr(in + 4), kLongestKept);
  return frame;
}

// Returns the text between the bars of a box; none if the line does not begin with a bar.
std::optional<std::string_view> inside_box(std::string_view line) {
  if (!line.starts_with(kBar)) return std::nullopt;
  line.remove_prefix(kBar.size());
  const std::size_t last = line.rfind(kBar);
  return without_indent(line.substr(0, last));
}

// The header of a frame as IPython writes it: "File /x/model.py:12, in Net.forward(self, x)" or "Cell In[5], line 3".
// Up to version 8.4 it is "/x/model.py in forward(self, x)", and the number of the line stands in the code below.
std::optional<trace::Frame> ipython_frame_in(std::string_view line, std::uint64_t arrow_line) {
  trace::Frame frame;
  const std::size_t in = line.find(line.starts_with("File ") || line.starts_with("Cell ") ? ", in " : " in ");
  const std::string_view place = line.substr(0, in);
  if (in != line.npos) {
    const std::string_view function = line.substr(line.find("in ", in) + 3);
    frame.function = clean(function.substr(0, function.find('(')), kLongestKept);
  }
  constexpr std::string_view kLine = ", line ";
  const std::size_t colon = place.starts_with("Cell In[") ? place.find(kLine) : place.rfind(':');
  if (place.starts_with("File ") || place.starts_with("Cell In[")) {
    if (colon == place.npos) return std::nullopt;
    const std::string_view number = place.substr(colon + (place[colon] == ':' ? 1 : kLine.size()));
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), frame.line);
    if (error != std::errc()) return std::nullopt;
    const bool cell = place.starts_with("Cell");
    frame.file = cell ? "<ipython-input>" : clean(place.substr(5, colon - 5), kLongestKept);
    return frame;
  }
  if (in == line.npos || (!place.ends_with(".py") && !place.starts_with("<ipython-input"))) return std::nullopt;
  frame.file = clean(place, kLongestKept);
  frame.line = arrow_line;
  return frame;
}

// "---> 12     y = f(x)", the line that failed. Sets its number and returns its code; empty if it is no such line.
std::string_view ipython_code_in(std::string_view line, std::uint64_t& number) {
  const std::size_t head = line.find_first_not_of('-');
  if (head == 0 || head == line.npos || line[head] != '>') return {};
  line.remove_prefix(std::min(line.size(), line.find_first_not_of("-> ")));
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (error != std::errc()) return {};
  return without_indent(line.substr(static_cast<std::size_t>(end - line.data())));
}

// "~~~~^^^^" under the code, as Python 3.11 and later draw it.
bool is_underline(std::string_view line) { return !line.empty() && line.find_first_not_of("~^ ") == line.npos; }

// Notebooks and JSON logs keep a traceback in a string: line breaks, quotes and colors are escaped.
std::string unescaped(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      out += raw[i];
      continue;
    }
    const std::string_view rest = raw.substr(i + 1);
    if (rest.starts_with("u001b")) {
      out += '\x1b', i += 5;
    } else {
      out += rest[0] == 'n' ? '\n' : rest[0] == 't' ? ' ' : rest[0], ++i;
    }
  }
  return out;
}

// A notebook's file keeps each printed line in a string of its own, mostly followed by a comma: " File \"a.py\",
// line 7, in f\n". Returns the line; none if the text is no such string.
std::optional<std::string> line_in_quotes(std::string_view text) {
  if (text.ends_with(',')) text.remove_suffix(1);
  if (text.size() < 2 || !text.starts_with('"') || !text.ends_with('"')) return std::nullopt;
  std::string line = unescaped(text.substr(1, text.size() - 2));
  if (line.ends_with('\n')) line.pop_back();
  if (line.find('\n') != line.npos) return std::nullopt;
  return std::string(without_indent(line));
}

class TracebackWalk {
 public:
  TracebackWalk(std::string_view text, const Line& error, std::size_t not_before)
      : text_(text), error_(error), not_before_(not_before), rank_(rank_of(error.of(text))), at_(error), top_(error) {}

  Surroundings run() {
    // People often paste only the end of a traceback. Then its frames count, and the lines above the topmost frame are
    // those before the traceback.
    if (!read_traceback()) at_ = top_;
    read_before();
    return std::move(around_);
  }

 private:
  // Moves to the nearest line above that is of this rank or of none. False if there is none.
  bool step_back() {
    for (std::size_t i = 0; i < kMostLines; ++i) {
      const auto line = line_before(text_, at_);
      if (!line) return false;
      at_ = *line;
      const auto rank = rank_of(at_.of(text_));
      if (!rank_ || !rank || *rank == *rank_) return true;
    }
    return false;
  }

  // Walks upwards from the error; each frame stands above its line of code. False if no beginning was found.
  bool read_traceback() {
    std::string code;
    std::string plain;
    std::uint64_t arrow_line = 0;  // of IPython's arrow, if one has been seen since the last frame
    std::size_t odd = 0;
    for (std::size_t i = 0; i < kMostLines && step_back(); ++i) {
      if (at_.begin < not_before_) return false;
      const std::string_view whole = at_.of(text_);
      std::string_view line = without_indent(whole.substr(prefix_length(whole)));
      if (auto quoted = line_in_quotes(line)) line = plain = *std::move(quoted);
      if (line.starts_with('"')) line.remove_prefix(1);  // several lines in one string
      if (line.find('\x1b') != line.npos) line = plain = clean(line, kLongestKept);
      // The words may stand after the exception's name (IPython) or after a string's beginning (a JSON log).
      const std::size_t begins = line.find(kBegin);
      if (begins == 0 || (begins != line.npos && line.size() - begins <= kBegin.size() + 2)) return true;
      if (line.starts_with(kCorner) && line.find(kBegin) != line.npos) return true;
      const auto boxed = inside_box(line);
      if (boxed && odd != 0) code.clear(), odd = 0;  // the line below the box is not code
      auto frame = boxed ? boxed_frame_of(*boxed) : frame_in(line);
      if (!frame && !boxed) frame = ipython_frame_in(line, arrow_line);
      if (frame) {
        arrow_line = 0;
        top_ = at_;
        around_.frames.push_back(std::move(*frame));
        around_.code.push_back(std::move(code));
        code.clear();
        odd = 0;
        continue;
      }
      if (boxed) {
        if (boxed->starts_with(kArrow)) code = boxed_code(*boxed);
        continue;
      }
      if (is_underline(line)) continue;
      if (const std::string_view failed = ipython_code_in(line, arrow_line); !failed.empty()) {
        code = clean(failed, kLongestKept);
        continue;
      }
      if (arrow_line != 0) continue;  // the lines around the one that failed
      if (++odd > kMostOdd) return false;
      code = clean(line, kLongestKept);  // of several lines, the uppermost stays
    }
    return false;
  }

  // Returns the code in a line of arrow, line number and code.
  static std::string boxed_code(std::string_view line) {
    line = without_indent(line.substr(kArrow.size()));
    const std::size_t blank = line.find(' ');
    return clean(blank == line.npos ? std::string_view() : line.substr(blank), kLongestKept);
  }

  void read_before() {
    for (std::size_t i = 0; i < kMostBefore && step_back(); ++i) {
      std::string line = clean(at_.of(text_), kLongestKept);
      if (!line.empty()) around_.before.push_back(std::move(line));
    }
    std::ranges::reverse(around_.before);
  }

  std::string_view text_;
  Line error_;
  std::size_t not_before_;
  std::optional<unsigned> rank_;
  Line at_;
  Line top_;  // of the topmost frame; of the error if there is none
  Surroundings around_;
};

}  // namespace

Surroundings surroundings_of(std::string_view text, const Line& error, std::size_t not_before) {
  Surroundings around = TracebackWalk(text, error, not_before).run();
  // A notebook's file writes colors as escapes ("\u001b"), which would end up in the frames.
  const bool escaped = !around.frames.empty() && around.frames[0].file.find("u001b") != std::string::npos;
  if (!around.frames.empty() && !escaped) return around;
  const std::size_t end = std::min(text.size(), error.begin + kLongestString);
  const std::size_t begin = std::max(not_before, error.begin > kLongestString ? error.begin - kLongestString : 0);
  // A traceback in a string of the error's own line: the error is its last line.
  std::size_t stop = std::min(end, std::max(error.end, error.begin));
  const std::string_view raw = text.substr(begin, stop - begin);
  if (raw.find("\\n") == raw.npos) return around;
  const std::string text_then = unescaped(raw);
  const std::size_t last = text_then.rfind(kErrorName);
  if (last == std::string::npos) return around;
  Surroundings inside = TracebackWalk(text_then, line_at(text_then, last), 0).run();
  if (inside.frames.empty()) return around;
  around.frames = std::move(inside.frames), around.code = std::move(inside.code);
  return around;
}

std::vector<std::string> lines_after(std::string_view text, const Line& error) {
  std::vector<std::string> lines;
  for (auto line = line_after(text, error); line && lines.size() < kMostAfter; line = line_after(text, *line)) {
    lines.push_back(clean(line->of(text), kLongestKept));
  }
  return lines;
}

}  // namespace ullage::read
