// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/input.h"

#include "ullage/read/file/content_kind.h"
#include "ullage/read/file/file_content.h"
#include "ullage/read/file/gzip.h"
#include "ullage/read/log/log.h"
#include "ullage/read/profile/profile.h"
#include "ullage/read/snapshot/snapshot.h"
#include "ullage/trace/file/trace_file.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace ullage::read {
namespace {

std::string_view as_text(std::span<const std::byte> content) {
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

template <class T>
Result<trace::Input> as_input(Result<T> read) {
  if (!read) return read.error();
  return trace::Input(std::move(read).value());
}

Error refuse(const ForeignContent& content, const std::string& name) {
  std::string message(content.what);
  if (!content.advice.empty()) message += fmt::format("; {}", content.advice);
  return {Error::Kind::BadFile, fmt::format("{}; {}", message, kWanted), name + ":0"};
}

// Reads text as a log, JSON too, because a log may be one JSON object a line. If JSON holds no error, the refusal says
// that it is JSON.
Result<trace::Input> read_text(std::string_view text, const std::string& name) {
  Result<trace::Log> log = read_log(text, name);
  if (!log && text.starts_with('{')) {
    return refuse({"JSON with no traceEvents (so no profiler trace) and no out-of-memory error in its texts", ""},
                  name);
  }
  return as_input(std::move(log));
}

Result<trace::Input> read_trace(std::span<const std::byte> content, const std::string& name) {
  ULLAGE_TRY_VALUE(trace::TraceFile file, trace::read_trace_file(content, name));
  return trace::Input(understood(std::move(file)));
}

Result<trace::Input> read_unzipped(std::span<const std::byte> content, const std::string& name) {
  if (content.empty()) return refuse({"an empty file", ""}, name);
  const auto kind = kind_of(content);
  if (const auto* foreign = std::get_if<ForeignContent>(&kind)) return refuse(*foreign, name);
  switch (std::get<ContentKind>(kind)) {
    case ContentKind::Gzip:
      return refuse({"gzip data within gzip data", "unpack it"}, name);
    case ContentKind::Snapshot:
      return as_input(read_snapshot(content, name));
    case ContentKind::Profile:
      return as_input(read_profile(as_text(content), name));
    case ContentKind::Trace:
      return read_trace(content, name);
    case ContentKind::WideText:
      return as_input(read_log(narrow(content), name));
    case ContentKind::Text:
      break;
  }
  return read_text(as_text(content), name);
}

}  // namespace

trace::UnderstoodFile understood(trace::TraceFile file) {
  trace::UnderstoodFile made{std::move(file), {}};
  for (trace::Take& take : made.file.takes) made.meanings.push_back(trace::understand(take));
  return made;
}

Result<trace::Input> read_input(std::span<const std::byte> content, const std::string& name) {
  if (!is_gzip(content)) return read_unzipped(content, name);
  ULLAGE_TRY_VALUE(std::string unzipped, gunzip(content, name));
  return read_unzipped(std::as_bytes(std::span(unzipped.data(), unzipped.size())), name + " (unzipped)");
}

Result<trace::Input> read_input_file(const std::string& path) {
  ULLAGE_TRY_VALUE(FileContent content, FileContent::open(path));
  return read_input(content.bytes(), path == "-" ? "standard input" : path);
}

}  // namespace ullage::read
