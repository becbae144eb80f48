// SPDX-License-Identifier: Apache-2.0
#include "ullage/read/pickle/pickle_globals.h"

#include <algorithm>
#include <span>

namespace ullage::read {
namespace {

constexpr std::string_view kPackages[] = {"_pickle",
                                          "_posixsubprocess",
                                          "_socket",
                                          "asyncio",
                                          "bdb",
                                          "codeop",
                                          "ctypes",
                                          "imp",
                                          "importlib",
                                          "marshal",
                                          "multiprocessing",
                                          "nt",
                                          "os",
                                          "pdb",
                                          "pickle",
                                          "pip",
                                          "pkgutil",
                                          "popen2",
                                          "posix",
                                          "pty",
                                          "requests",
                                          "runpy",
                                          "shelve",
                                          "shutil",
                                          "socket",
                                          "subprocess",
                                          "sys",
                                          "timeit",
                                          "urllib",
                                          "urllib2",
                                          "webbrowser"};

// In kModules only kFunctions are refused.
constexpr std::string_view kModules[] = {"__builtin__", "_io", "builtins", "io"};
constexpr std::string_view kFunctions[] = {"__import__", "apply",     "breakpoint", "compile", "delattr", "eval",
                                           "exec",       "execfile",  "file",       "globals", "input",   "locals",
                                           "open",       "raw_input", "reload",     "setattr", "vars"};

bool is_in(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string_view first_part(std::string_view path) { return path.substr(0, path.find('.')); }

}  // namespace

bool runs_programs(std::string_view module, std::string_view name) {
  const std::string_view package = first_part(module);
  if (is_in(kPackages, package)) return true;
  if (is_in(kModules, module) && is_in(kFunctions, name)) return true;
  for (std::size_t dot = name.find('.'); dot != std::string_view::npos; dot = name.find('.')) {
    if (is_in(kPackages, name.substr(0, dot))) return true;
    name.remove_prefix(dot + 1);
  }
  return false;
}

}  // namespace ullage::read
