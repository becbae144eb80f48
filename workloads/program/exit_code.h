// SPDX-License-Identifier: Apache-2.0
#pragma once

// Maps kinds of errors to exit codes.

#include "ullage/base/exit_code.h"
#include "ullage/base/result.h"

namespace ullage::program {

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

}  // namespace ullage::program
