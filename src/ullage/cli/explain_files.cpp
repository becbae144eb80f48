// SPDX-License-Identifier: Apache-2.0
#include "ullage/cli/explain_files.h"

#include "ullage/base/exit_code.h"
#include "ullage/cli/target.h"
#include "ullage/cli/terminal.h"
#include "ullage/cli/words.h"
#include "ullage/report/convert/convert.h"
#include "ullage/report/diagnosis_report.h"

#include <cstdlib>
#include <filesystem>
#include <ostream>

namespace ullage::cli {
namespace {

namespace fs = std::filesystem;

bool same_file(const fs::path& a, const fs::path& b) {
  std::error_code failed;
  return fs::equivalent(a, b, failed) && !failed;
}

Result<ReportFile> prepare(const std::string& name, const std::string& what, const std::string& option,
                           const std::string& input) {
  if (name == "-") return wrong(what + " goes to a file, not to standard output", option);
  if (!input.empty() && same_file(name, input == "-" ? "/dev/stdin" : input)) {
    return wrong(what + " would replace the input", name);
  }
  return ReportFile::prepare(name, what, option);
}

bool are_one(const std::optional<ReportFile>& a, const std::optional<ReportFile>& b) {
  return a && b && a->path() == b->path();
}

Status convert(const std::string& format, const trace::Input& input, std::ostream& out) {
  if (format == "perfetto") return report::write_perfetto(input, out);
  return report::write_memory_viz(input, out);
}

void write_words(const ExplainOptions& options, const Diagnoses& diagnoses, const trace::Input& input,
                 std::ostream& out, int descriptor) {
  if (options.json) return report::write_json(diagnoses, input, out);
  report::TerminalStyle style = terminal_style(descriptor, [](const char* name) { return std::getenv(name); });
  style.owners = options.top;
  report::write_terminal(diagnoses, style, out);
}

}  // namespace

Result<ExplainFiles> prepare_explain_files(const ExplainOptions& options, const std::string& input) {
  ExplainFiles files;
  if (!options.out.empty()) {
    ULLAGE_TRY_VALUE(files.answer, prepare(options.out, "the answer", "--out", input));
  }
  if (!options.html.empty()) {
    ULLAGE_TRY_VALUE(files.page, prepare(options.html, "the page", "--html", input));
  }
  if (!options.convert.empty()) {
    const std::string& format = options.convert.front();
    if (format != "memory_viz" && format != "perfetto") {
      return wrong("unknown format '" + format + "', there are memory_viz and perfetto", "--convert");
    }
    ULLAGE_TRY_VALUE(files.converted, prepare(options.convert.back(), "the converted file", "--convert", input));
  }
  if (are_one(files.page, files.converted)) {
    return wrong("the page and the converted file cannot be one file", "--convert");
  }
  if (are_one(files.answer, files.page) || are_one(files.answer, files.converted)) {
    return wrong("the answer cannot be written to the same file as the page or the converted file; name another",
                 "--out");
  }
  return files;
}

std::string no_conversion(const ExplainOptions& options, const trace::Input& input) {
  if (options.convert.empty() || std::holds_alternative<trace::Recording>(input)) return "";
  if (std::holds_alternative<trace::UnderstoodFile>(input)) return "";
  if (std::holds_alternative<trace::Log>(input)) return "a text has no history to convert";
  return options.convert.front() == "memory_viz" ? "only a snapshot or a trace can become a memory_viz file" : "";
}

std::optional<trace::At> moment_of(const ExplainOptions& options) {
  if (options.at == "peak") return trace::At::Peak;
  if (options.at == "oom") return trace::At::OutOfMemory;
  if (options.at == "end") return trace::At::End;
  return std::nullopt;
}

int write_answer(const ExplainOptions& options, const ExplainFiles& files, const Diagnoses& diagnoses,
                 const trace::Input& input, std::ostream& out, int descriptor, std::ostream& err) {
  if (!files.answer) {
    write_words(options, diagnoses, input, out, descriptor);
    out.flush();
    return to_int(ExitCode::Done);
  }
  const Status written = files.answer->write([&](std::ostream& file) {
    write_words(options, diagnoses, input, file, -1);
    return success();
  });
  if (!written) return refuse({to_int(ExitCode::Failed), written.error().text()}, "explain", err);
  err << "ullage: wrote " << options.out << '\n';
  return to_int(ExitCode::Done);
}

int write_beside(const ExplainOptions& options, const ExplainFiles& files, const Diagnoses& diagnoses,
                 const trace::Input& input, const std::function<void(const std::string&)>& before, std::ostream& err) {
  const auto write = [&](const ReportFile& file, const std::string& name, const ReportFile::Writer& writer) {
    const Status written = file.write(writer);
    before("");
    if (written) return err << "ullage: wrote " << name << '\n', to_int(ExitCode::Done);
    return refuse({to_int(ExitCode::Failed), written.error().text()}, "explain", err);
  };
  int code = to_int(ExitCode::Done);
  if (files.page) {
    before("drawing the page");
    code = write(*files.page, options.html, [&](std::ostream& out) {
      report::write_html(diagnoses, input, out);
      return success();
    });
  }
  if (files.converted && code == to_int(ExitCode::Done)) {
    before("converting");
    code = write(*files.converted, options.convert.back(),
                 [&](std::ostream& out) { return convert(options.convert.front(), input, out); });
  }
  return code;
}

}  // namespace ullage::cli
