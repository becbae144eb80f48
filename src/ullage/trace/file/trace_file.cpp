// SPDX-License-Identifier: Apache-2.0
#include "ullage/trace/file/trace_file.h"

#include "ullage/trace/file/file_json.h"
#include "ullage/trace/file/file_parts.h"
#include "ullage/trace/file/take_reader.h"
#include "ullage/trace/file/take_writer.h"

#include <utility>

namespace ullage::trace {
namespace {

class TraceReader final {
 public:
  TraceReader(std::span<const std::byte> content, const std::string& name)
      : parts_(content, name), allowance_(content.size()) {}

  Result<TraceFile> read();

 private:
  using Step = std::optional<Error>;

  Step next();
  Step expect(std::string_view kind);
  Step read_front();
  Step read_take();
  Step wrong(const std::optional<Problem>& problem) const;
  Step wrong(const std::optional<std::string>& problem) const;
  Error unexpected(std::string_view wanted) const;
  std::string_view json() const { return {reinterpret_cast<const char*>(part_.content.data()), part_.content.size()}; }

  PartReader parts_;
  Allowance allowance_;
  FileTables tables_;
  Part part_;
  TraceFile file_;
};

TraceReader::Step TraceReader::wrong(const std::optional<Problem>& problem) const {
  if (!problem) return std::nullopt;
  return parts_.bad("the trace is damaged: " + problem->message, part_.offset + problem->at);
}

TraceReader::Step TraceReader::wrong(const std::optional<std::string>& problem) const {
  if (!problem) return std::nullopt;
  return parts_.bad("the trace is damaged: " + *problem, part_.offset);
}

Error TraceReader::unexpected(std::string_view wanted) const {
  std::string kind(part_.kind());
  for (char& letter : kind) {
    if (letter < ' ' || letter > '~') letter = '?';
  }
  return parts_.bad("the trace is damaged: a part " + kind + " where " + std::string(wanted) + " is expected",
                    part_.offset);
}

TraceReader::Step TraceReader::next() {
  ULLAGE_TRY_VALUE(part_, parts_.next());
  return std::nullopt;
}

TraceReader::Step TraceReader::expect(std::string_view kind) {
  if (Step error = next()) return error;
  if (part_.kind() != kind) return unexpected(kind);
  return std::nullopt;
}

TraceReader::Step TraceReader::read_front() {
  if (Step error = expect(part::kHead)) return error;
  if (!allowance_.spend(16 * part_.content.size()))
    return wrong(Problem{"its head is too large for a file of this size", 0});
  if (Step error = wrong(read_head(json(), file_))) return error;
  if (Step error = expect(part::kTexts)) return error;
  if (Step error = wrong(tables_.read_texts(part_.content, allowance_))) return error;
  if (Step error = expect(part::kShapes)) return error;
  return wrong(tables_.read_shapes(part_.content, allowance_));
}

// Reads a take. Its TAKE part is the current one.
TraceReader::Step TraceReader::read_take() {
  TakeReader take(tables_, allowance_);
  TakeHead head;
  if (Step error = wrong(trace::read_take(json(), head))) return error;
  if (Step error = wrong(take.begin(head))) return error;
  if (Step error = expect(part::kBefore)) return error;
  if (Step error = wrong(take.before(part_.content))) return error;
  while (true) {
    if (Step error = next()) return error;
    if (part_.kind() == part::kTakeEnd) break;
    if (part_.kind() != part::kChunk && part_.kind() != part::kGap) return unexpected("EVTS, LOST or TEND");
    const bool gap = part_.kind() == part::kGap;
    if (Step error = wrong(gap ? take.gap(part_.content) : take.chunk(part_.content))) return error;
  }
  TakeEnd end;
  if (Step error = wrong(read_take_end(json(), end))) return error;
  if (Step error = wrong(take.end(end))) return error;
  file_.takes.push_back(take.take());
  return std::nullopt;
}

Result<TraceFile> TraceReader::read() {
  ULLAGE_TRY(parts_.begin());
  if (Step error = read_front()) return *error;
  while (true) {
    if (Step error = next()) return *error;
    if (part_.kind() == part::kEnd) return std::move(file_);
    if (part_.kind() != part::kTake) return unexpected("TAKE or DONE");
    if (Step error = read_take()) return *error;
  }
}

}  // namespace

Result<TraceFile> read_trace_file(std::span<const std::byte> content, const std::string& name) {
  return TraceReader(content, name).read();
}

// Goes through the takes twice, because the names and shapes come first in the file.
void write_trace_file(const TraceFile& file, std::ostream& out) {
  Texts texts;
  Shapes shapes;
  for (const Take& take : file.takes) TakeWriter(take, texts, shapes, nullptr).write();
  PartWriter parts(out);
  parts.write(part::kHead, head_json(file));
  PackedBytes bytes;
  texts.pack(bytes);
  parts.write(part::kTexts, bytes);
  bytes.clear();
  shapes.pack(bytes);
  parts.write(part::kShapes, bytes);
  for (const Take& take : file.takes) TakeWriter(take, texts, shapes, &parts).write();
  parts.finish();
}

}  // namespace ullage::trace
