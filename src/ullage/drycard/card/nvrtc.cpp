// SPDX-License-Identifier: Apache-2.0
// NVRTC, if the real one is not there. Every program compiles, to a few bytes that cuModuleLoadData accepts.

#include "ullage/drycard/card/abi.h"
#include "ullage/drycard/card/process.h"

#include <cstring>
#include <set>
#include <string>

namespace ullage::drycard {
namespace {

struct Program {
  std::set<std::string> names;  // lowered names; callers keep pointers to their text
};

constexpr char kBinary[] = "dry";

int put_size(std::size_t* size) {
  *size = sizeof kBinary;
  return 0;
}
int put_binary(char* binary) {
  std::memcpy(binary, kBinary, sizeof kBinary);
  return 0;
}

}  // namespace

ULLAGE_CARD_API int nvrtcVersion(int* major, int* minor) {
  *major = machine().version / 1000;
  *minor = machine().version / 10 % 100;
  return 0;
}
ULLAGE_CARD_API const char* nvrtcGetErrorString(int error) {
  return error == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR_INTERNAL_ERROR";
}
ULLAGE_CARD_API int nvrtcCreateProgram(Program** program) {
  *program = new Program;
  return 0;
}
ULLAGE_CARD_API int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}
ULLAGE_CARD_API int nvrtcAddNameExpression(Program* program, const char* name) {
  program->names.insert(name);
  return 0;
}
ULLAGE_CARD_API int nvrtcCompileProgram(Program*, int, const char* const*) { return 0; }
// cuDNN compiles its engines with this. It fails, so that cuDNN leaves out the engines that it would have to compile.
ULLAGE_CARD_API int __nvrtcCPEx() {
  constexpr int kInternalError = 11;
  return kInternalError;
}
ULLAGE_CARD_API int nvrtcGetLoweredName(Program* program, const char* name, const char** lowered) {
  *lowered = program->names.insert(name).first->c_str();
  return 0;
}
ULLAGE_CARD_API int nvrtcGetPTXSize(Program*, std::size_t* size) { return put_size(size); }
ULLAGE_CARD_API int nvrtcGetPTX(Program*, char* binary) { return put_binary(binary); }
ULLAGE_CARD_API int nvrtcGetCUBINSize(Program*, std::size_t* size) { return put_size(size); }
ULLAGE_CARD_API int nvrtcGetCUBIN(Program*, char* binary) { return put_binary(binary); }
ULLAGE_CARD_API int nvrtcGetProgramLogSize(Program*, std::size_t* size) {
  *size = 1;
  return 0;
}
ULLAGE_CARD_API int nvrtcGetProgramLog(Program*, char* text) {
  *text = '\0';
  return 0;
}
ULLAGE_CARD_API int nvrtcGetNumSupportedArchs(int* count) {
  *count = 1;
  return 0;
}
ULLAGE_CARD_API int nvrtcGetSupportedArchs(int* architectures) {
  *architectures = machine().model.major * 10 + machine().model.minor;
  return 0;
}

}  // namespace ullage::drycard
