// SPDX-License-Identifier: Apache-2.0
#include "ullage/runtime/python/python_line.h"

#include "ullage/base/find_symbol.h"

#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

namespace ullage::runtime {
namespace {

// The functions of Python's C interface that are used; all belong to its stable part (3.9 and later).
struct PythonFrames {
  int (*ensure)();  // an enum of int's size
  void (*release)(int);
  void* (*thread_state)();
  void* (*frame)();      // returns a borrowed reference
  void* (*back)(void*);  // returns a new reference
  void* (*code)(void*);  // returns a new reference
  int (*line)(void*);
  void* (*attribute)(void*, const char*);
  const char* (*utf8)(void*);
  void (*keep)(void*);
  void (*let_go)(void*);
  void (*clear_error)();
};

const PythonFrames* find_python_frames() {
  static PythonFrames python{};
  static const bool all = find_symbol(RTLD_DEFAULT, python.ensure, "PyGILState_Ensure") &&
                          find_symbol(RTLD_DEFAULT, python.release, "PyGILState_Release") &&
                          find_symbol(RTLD_DEFAULT, python.thread_state, "PyGILState_GetThisThreadState") &&
                          find_symbol(RTLD_DEFAULT, python.frame, "PyEval_GetFrame") &&
                          find_symbol(RTLD_DEFAULT, python.back, "PyFrame_GetBack") &&
                          find_symbol(RTLD_DEFAULT, python.code, "PyFrame_GetCode") &&
                          find_symbol(RTLD_DEFAULT, python.line, "PyFrame_GetLineNumber") &&
                          find_symbol(RTLD_DEFAULT, python.attribute, "PyObject_GetAttrString") &&
                          find_symbol(RTLD_DEFAULT, python.utf8, "PyUnicode_AsUTF8") &&
                          find_symbol(RTLD_DEFAULT, python.keep, "Py_IncRef") &&
                          find_symbol(RTLD_DEFAULT, python.let_go, "Py_DecRef") &&
                          find_symbol(RTLD_DEFAULT, python.clear_error, "PyErr_Clear");
  return all ? &python : nullptr;
}

// The name of a file in recordings. Empty: it is torch's or the standard library's, or there is no such file.
std::string name_of_file(std::string_view path) {
  if (path.empty() || path.front() == '<') return {};
  for (const std::string_view packages : {"/site-packages/", "/dist-packages/"}) {
    const std::size_t at = path.rfind(packages);
    if (at == path.npos) continue;
    const std::string_view inner = path.substr(at + packages.size());
    return std::string(inner.starts_with("torch/") ? std::string_view() : inner);
  }
  if (path.find("/lib/python3") != path.npos) return {};
  std::error_code unknown;
  const std::string folder = std::filesystem::current_path(unknown).string() + "/";
  return std::string(path.starts_with(folder) ? path.substr(folder.size()) : path);
}

// Caches what is known of code objects. It keeps a reference to each, so that no two have the same address. The
// interpreter lock guards it.
class Lines {
 public:
  // The line of this frame. Empty: it is not the program's own; look at the outer frame.
  std::string_view at(const PythonFrames& python, void* frame) {
    void* code = python.code(frame);
    const std::string& file = file_of(python, code);
    if (file.empty()) return {};
    const int line = python.line(frame);
    std::string& text = lines_[{code, line}];
    if (text.empty()) text = fmt::format("{}:{}", file, line);
    return text;
  }

 private:
  // Takes over the reference to `code`.
  const std::string& file_of(const PythonFrames& python, void* code) {
    const auto known = files_.find(code);
    if (known != files_.end()) {
      python.let_go(code);
      return known->second;
    }
    void* name = python.attribute(code, "co_filename");
    const char* path = name != nullptr ? python.utf8(name) : nullptr;
    if (path == nullptr) python.clear_error();
    const std::string& file = files_[code] = name_of_file(path != nullptr ? path : "");
    if (name != nullptr) python.let_go(name);
    return file;
  }

  std::unordered_map<void*, std::string> files_;
  std::map<std::pair<void*, int>, std::string> lines_;
};

std::string_view find_line(const PythonFrames& python) {
  static auto* lines = new Lines;
  void* frame = python.frame();
  if (frame == nullptr) return {};
  python.keep(frame);
  for (;;) {
    const std::string_view line = lines->at(python, frame);
    void* outer = line.empty() ? python.back(frame) : nullptr;
    python.let_go(frame);
    if (outer == nullptr) return line;
    frame = outer;
  }
}

}  // namespace

std::string_view python_line() {
  const PythonFrames* python = find_python_frames();
  // A thread that Python does not know has no frames. After Python's end no thread has any.
  if (python == nullptr || python->thread_state() == nullptr) return {};
  const int before = python->ensure();
  const std::string_view line = find_line(*python);
  python->release(before);
  return line;
}

}  // namespace ullage::runtime
