// SPDX-License-Identifier: Apache-2.0

// Python maps torch long after this library's constructor has run. So if the process holds a Python, an audit hook is
// set, which Python's C interface allows before the interpreter starts. The hook waits for the first import, which is
// that of `site`, or the program's own if there is no `site`. It then puts a finder in front of sys.meta_path. The
// finder lets torch be found as usual, and has the runtime brought in when torch's own code has run. The hook also
// hears that another program is about to be started.
//
// A sitecustomize on PYTHONPATH is not used. So the environment stays as it is, whoever brings a sitecustomize keeps
// it, and python -I, -E and -S are reached too. Python is not linked: its functions are looked up. All but
// PySys_AddAuditHook are part of Python's stable interface.

#include "ullage/base/find_symbol.h"
#include "ullage/preload/preload.h"

#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace ullage::preload {
namespace {

struct Object;  // PyObject
struct Method {
  const char* name;
  Object* (*call)(Object* self, Object* arguments);
  int flags;
  const char* doc;
};
constexpr int kFileInput = 257;  // Py_file_input
constexpr int kVarArgs = 1;      // METH_VARARGS
using Hook = int (*)(const char* event, Object* arguments, void* data);

struct Python {
  int (*add_hook)(Hook, void*);
  int (*is_initialized)();
  Object* (*compile)(const char* text, const char* file, int start);
  Object* (*evaluate)(Object* code, Object* globals, Object* locals);
  Object* (*new_dict)();
  int (*set_item)(Object* dict, const char* key, Object* value);
  Object* (*new_function)(Method*, Object* self, Object* module);
  Object* (*item)(Object* tuple, std::intptr_t at);
  int (*is_true)(Object*);
  Object* (*call_with)(Object* callable, ...);
  void (*release)(Object*);
  void (*clear_error)();
  void (*print_error)();
};
Python python;

bool find_python() {
  return find_symbol(RTLD_DEFAULT, python.add_hook, "PySys_AddAuditHook") &&
         find_symbol(RTLD_DEFAULT, python.is_initialized, "Py_IsInitialized") &&
         find_symbol(RTLD_DEFAULT, python.compile, "Py_CompileString") &&
         find_symbol(RTLD_DEFAULT, python.evaluate, "PyEval_EvalCode") &&
         find_symbol(RTLD_DEFAULT, python.new_dict, "PyDict_New") &&
         find_symbol(RTLD_DEFAULT, python.set_item, "PyDict_SetItemString") &&
         find_symbol(RTLD_DEFAULT, python.new_function, "PyCFunction_NewEx") &&
         find_symbol(RTLD_DEFAULT, python.item, "PyTuple_GetItem") &&
         find_symbol(RTLD_DEFAULT, python.is_true, "PyObject_IsTrue") &&
         find_symbol(RTLD_DEFAULT, python.call_with, "PyObject_CallFunctionObjArgs") &&
         find_symbol(RTLD_DEFAULT, python.release, "Py_DecRef") &&
         find_symbol(RTLD_DEFAULT, python.clear_error, "PyErr_Clear") &&
         find_symbol(RTLD_DEFAULT, python.print_error, "PyErr_Print");
}

// `load_then_bring_in` is the C function below. It calls loaded() for every module that torch's loader loads, because a
// loader may serve several. For torch, loaded() clears `_initializing`, from which the runtime sees whether torch is
// imported. Python would clear it a moment later. loaded() flushes what was printed, because a runtime whose budget
// cannot be met ends the process.
constexpr const char* kFinder = R"(
import sys
from _functools import partial

class UllageFinder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name != 'torch':
            return None
        for finder in sys.meta_path:
            find = getattr(finder, 'find_spec', None)
            spec = find(name, path, target) if find and finder is not UllageFinder else None
            if spec is not None:
                load = getattr(spec.loader, 'exec_module', None)
                if load is not None:
                    spec.loader.exec_module = partial(load_then_bring_in, load, partial(loaded, spec.loader))
                return spec

def loaded(loader, module):
    if module.__name__ != 'torch':
        return False
    module.__spec__._initializing = False
    vars(loader).pop('exec_module', None)
    if UllageFinder in sys.meta_path:
        sys.meta_path.remove(UllageFinder)
    if sys.stdout is not None:
        sys.stdout.flush()
    return True

sys.meta_path.insert(0, UllageFinder)
)";

// The files of the last two scripts are gone if the process outlives the `ullage` that wrote them.
constexpr const char* kRunScripts = R"(
import os
def run(variable, name):
    path = os.environ.get(variable)
    if path and (name == 'ullage_drycard' or os.path.exists(path)):
        with open(path) as file:
            exec(compile(file.read(), '<ullage>', 'exec'), {'__name__': name})
run('ULLAGE_DRYCARD_SCRIPT', 'ullage_drycard')
run('ULLAGE_EXPLAIN_SCRIPT', 'ullage_explain')
run('ULLAGE_SWITCHES_SCRIPT', 'ullage_switches')
)";

void run(const char* text) {
  Object* globals = python.new_dict();
  Object* code = python.compile(text, "<ullage>", kFileInput);
  Object* none = globals != nullptr && code != nullptr ? python.evaluate(code, globals, globals) : nullptr;
  if (none == nullptr) python.print_error();
  for (Object* one : {globals, code, none}) {
    if (one != nullptr) python.release(one);
  }
}

// Takes (load, loaded, module). Calls load(module). If that was torch, or loaded() failed, brings the runtime in and
// runs the scripts. It is a C function, so that a torch that cannot be imported shows its own traceback. The
// interpreter's lock is held throughout.
Object* load_then_bring_in(Object*, Object* arguments) {
  Object* module = python.item(arguments, 2);
  Object* result = python.call_with(python.item(arguments, 0), module, nullptr);
  if (result == nullptr) return nullptr;
  Object* answer = python.call_with(python.item(arguments, 1), module, nullptr);
  const bool is_torch = answer == nullptr || python.is_true(answer) == 1;
  if (answer != nullptr) python.release(answer);
  python.clear_error();
  if (is_torch) {
    bring_in_the_runtime();
    if (is_set(kDeferCompiler)) run(kDeferCompilerText);
    if (has_scripts()) run(kRunScripts);
  }
  return result;
}

Method load_method = {"load_then_bring_in", &load_then_bring_in, kVarArgs, nullptr};

void install_finder() {
  Object* globals = python.new_dict();
  Object* function = python.new_function(&load_method, nullptr, nullptr);
  Object* code = python.compile(kFinder, "<ullage>", kFileInput);
  if (globals != nullptr && function != nullptr && code != nullptr &&
      python.set_item(globals, load_method.name, function) == 0) {
    if (Object* none = python.evaluate(code, globals, globals)) python.release(none);
  }
  for (Object* one : {globals, function, code}) {
    if (one != nullptr) python.release(one);
  }
  python.clear_error();
}

bool waiting = true;  // for the first import

// Is the interpreter about to start another program? The runtime itself sees a fork.
bool starts_a_program(const char* event) {
  for (const char* one : {"subprocess.Popen", "os.posix_spawn", "os.system", "os.spawn"}) {
    if (std::strcmp(event, one) == 0) return true;
  }
  return false;
}

// Python cannot remove a hook. It costs a tenth of a microsecond for each audit event.
int on_event(const char* event, Object*, void*) {
  if (waiting && std::strcmp(event, "import") == 0 && python.is_initialized() != 0) {
    waiting = false;
    install_finder();
  } else if (starts_a_program(event)) {
    announce_a_program();
  }
  return 0;
}

}  // namespace

void wait_for_import_of_torch() {
  if (find_python()) python.add_hook(&on_event, nullptr);
}

}  // namespace ullage::preload
