// SPDX-License-Identifier: Apache-2.0
#include "torch_program/run_program.h"

#include "ullage/runtime/ops/torch_compat.h"

#include <c10/util/Exception.h>

#include <exception>

namespace ullage::torch_program {
namespace {

constexpr ExitCode exit_code_of(const Error& error) {
  switch (error.kind) {
    case Error::Kind::BadArgument:
      return ExitCode::WrongUse;
    case Error::Kind::NotFound:
    case Error::Kind::BadFile:
      return ExitCode::BadInput;
    case Error::Kind::System:
      return ExitCode::Failed;
  }
  return ExitCode::Failed;
}

}  // namespace

ExitCode run_program(const ProgramWords& words, program::Progress& progress,
                     const std::function<Result<ExitCode>()>& work) {
  const auto fail = [&](const std::string& what) { progress.say(words.name + ": " + what); };
  try {
    const Result<ExitCode> result = work();
    if (result) return *result;
    fail(result.error().text());
    return exit_code_of(result.error());
  } catch (const c10::OutOfMemoryError& error) {
    fail(error.what_without_backtrace());
    fail("out of memory: " + words.out_of_memory + "; under ullage run, a larger --memory gives more");
    return ExitCode::Infeasible;
  } catch (const c10::Error& error) {
    fail(error.what_without_backtrace());
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return ExitCode::Failed;
}

ExitCode run_program(const ProgramWords& words, std::ostream& out, bool terminal,
                     const std::function<Result<bool>(program::Progress&)>& rehearse,
                     const std::function<Result<ExitCode>(program::Progress&)>& work) {
  program::Progress progress(out, terminal);
  return run_program(words, progress, [&]() -> Result<ExitCode> {
    ULLAGE_TRY_VALUE(const auto rehearsed, rehearse(progress));
    return rehearsed ? ExitCode::Done : work(progress);
  });
}

}  // namespace ullage::torch_program
